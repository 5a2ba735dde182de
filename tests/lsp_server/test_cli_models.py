"""`draftwood models` and `draftwood doctor`: what people and scripts read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from decoding.models.convert import GgufFile, write_folder_files
from decoding.models.registry import REGISTRY
from decoding.models.store import ModelStore
from lsp_server.cli import run
from lsp_server.doctor import Check, examine
from tests.decoding.models.gguf_files import write_gguf

SMOLLM = "smollm2-135m"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelStore:
    """The user's store, empty."""
    monkeypatch.setenv("DRAFTWOOD_CACHE", str(tmp_path / "cache"))
    return ModelStore.of_user()


def provision(store: ModelStore, name: str) -> Path:
    """Put a tiny model under a registered name."""
    partial = store.partial(name, "index")
    write_folder_files(GgufFile(write_gguf(partial / "model.gguf")), partial)
    store.publish(name, partial, "package index", None)
    return store.path(name)


def draftwood(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = run(arguments)
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_an_empty_list_names_what_can_be_had(store: ModelStore, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = draftwood(capsys, "models", "list")
    assert status == 0
    assert all(name in out for name in REGISTRY)


def test_list_as_json_is_one_object(store: ModelStore, capsys: pytest.CaptureFixture[str]) -> None:
    path = provision(store, SMOLLM)
    status, out, _ = draftwood(capsys, "models", "list", "--json")
    assert status == 0
    listed = json.loads(out)
    rows = {row["name"]: row for row in listed["models"]}
    assert listed["cache"] == str(store.root)
    assert rows[SMOLLM]["provisioned"]
    assert rows[SMOLLM]["path"] == str(path)
    assert rows[SMOLLM]["bytes"] == sum(file.stat().st_size for file in path.iterdir())
    assert [row["name"] for row in rows.values() if row["default"]] == ["qwen2.5-coder-0.5b"]
    assert not rows["qwen2.5-coder-0.5b"]["provisioned"]


def test_a_hub_model_is_listed_too(store: ModelStore, capsys: pytest.CaptureFixture[str]) -> None:
    provision(store, "owner/model")
    assert "owner/model" in draftwood(capsys, "models", "list")[1]
    assert draftwood(capsys, "models", "path", "owner/model")[1].strip() == str(store.path("owner/model"))


def test_path_then_remove_then_nothing_is_left(store: ModelStore, capsys: pytest.CaptureFixture[str]) -> None:
    path = provision(store, SMOLLM)
    assert draftwood(capsys, "models", "path", SMOLLM) == (0, f"{path}\n", "")
    status, out, _ = draftwood(capsys, "models", "remove", SMOLLM)
    assert status == 0
    assert "removed" in out
    assert not path.exists()
    for command in ("path", "remove"):
        status, out, err = draftwood(capsys, "models", command, SMOLLM)
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert "not provisioned" in err


@pytest.mark.parametrize("name", ["no-such-model", "", "a/b/c", "./nowhere"])
def test_pull_of_an_unknown_name_is_bad_input_in_one_line(
    store: ModelStore, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    status, out, err = draftwood(capsys, "models", "pull", name)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "qwen2.5-coder-0.5b" in err


def test_pull_of_what_is_there_says_where(store: ModelStore, capsys: pytest.CaptureFixture[str]) -> None:
    path = provision(store, SMOLLM)
    status, out, err = draftwood(capsys, "models", "pull", SMOLLM)
    assert (status, err) == (0, "")
    assert str(path) in out


def test_commands_that_list_load_nothing_heavy(store: ModelStore) -> None:
    code = (
        "import sys; from lsp_server.cli import run; run(['models', 'list']); listing = set(sys.modules);"
        "run(['doctor', '--no-network']); loaded = listing & {'torch', 'transformers', 'numpy'};"
        "print(loaded | sys.modules.keys() & {'torch', 'transformers'}, file=sys.stderr)"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stderr.strip() == "set()"


def named(checks: list[Check], name: str) -> Check:
    return next(check for check in checks if check.name == name)


def test_doctor_advises_to_pull_the_default_model(store: ModelStore) -> None:
    checks = examine(store, ask_network=False)
    assert "models pull qwen2.5-coder-0.5b" in named(checks, "default model").advice
    assert all(check.advice for check in checks if check.state != "good")
    assert all("\n" not in check.value + check.advice for check in checks)


def test_doctor_finds_a_damaged_model(store: ModelStore) -> None:
    path = provision(store, SMOLLM)
    assert named(examine(store, ask_network=False), "model").state == "good"
    (path / "config.json").unlink()
    damaged = named(examine(store, ask_network=False), "model")
    assert damaged.state == "note"
    assert f"models pull {SMOLLM}" in damaged.advice


def test_doctor_warns_of_too_little_memory_and_disk(store: ModelStore, monkeypatch: pytest.MonkeyPatch) -> None:
    provision(store, "qwen2.5-coder-0.5b")
    checks = examine(store, ask_network=False)
    assert named(checks, "memory").state == "good"
    assert "target 0.0 GB" in named(checks, "memory").value

    class Little:
        available, total, free = 1 << 20, 1 << 30, 1 << 20

    monkeypatch.setattr("decoding.memory.psutil.virtual_memory", lambda: Little)
    monkeypatch.setattr("lsp_server.doctor.shutil.disk_usage", lambda _path: Little)
    checks = examine(store, ask_network=False)
    assert named(checks, "memory").state == "problem"
    assert named(checks, "disk").state == "problem"


def test_doctor_as_json_is_one_object(store: ModelStore, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = draftwood(capsys, "doctor", "--no-network", "--json")
    assert status == 0
    report = json.loads(out)
    assert {"name", "value", "state", "advice"} == set(report["checks"][0])
    assert report["problems"] == sum(check["state"] == "problem" for check in report["checks"])


def test_doctor_as_text_shows_every_check(store: ModelStore, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = draftwood(capsys, "doctor", "--no-network")
    assert status == 0
    assert all(name in out for name in ("draftwood", "libraries", "processor", "native runtime", "memory", "disk"))


def test_doctor_says_what_cannot_be_reached(store: ModelStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    checks = examine(store, ask_network=True)
    assert "HF_HUB_OFFLINE" in named(checks, "model hub").value
    assert "pip config list" in named(checks, "package index").advice
