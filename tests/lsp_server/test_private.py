"""Nothing of the user's text leaves memory: no socket, no log, no file. What cannot be had is said, not popped up."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import psutil
import pytest

from lsp_server.worker_client import ASSISTANT
from tests.lsp_server.conftest import STUB
from tests.lsp_server.editor import Editor, serving
from tests.lsp_server.test_server import says

CANARY = "CANARY_4c1d9e"
SMALLEST = "smollm2-135m"
WEIGHTS = (".safetensors", ".pack")


def without_network() -> list[str]:
    """A command prefix: an empty network namespace."""
    unshare = shutil.which("unshare")
    if unshare is None or subprocess.run([unshare, "-rn", "true"], check=False).returncode:
        pytest.skip("network namespaces are not available here")
    return [unshare, "-rn"]


async def work(editor: Editor) -> None:
    """What leaves traces if anything does: text, answers, accepts, failures, strange messages."""
    editor.open(f"{CANARY} = 1\ndef f({CANARY}_argument):\n    return {CANARY}\n\nx = ")
    items = await editor.items(4, 4, explicit=True)
    editor.edit(4, 4, f"{CANARY}.")
    await editor.items(4, 5 + len(CANARY))
    await editor.command("draftwood.accepted", {"characters": 3, "text": CANARY})
    editor.edit(0, 0, f"# RAISE_NOW {CANARY}\n")
    await editor.items(5, 5 + len(CANARY), explicit=True)
    editor.client.protocol.notify("custom/unknown", {"text": CANARY})
    editor.close()
    assert items


@pytest.mark.parametrize(
    ("factory", "model"), [(STUB, "stub"), pytest.param(ASSISTANT, SMALLEST, marks=pytest.mark.model)]
)
async def test_without_a_network(factory: str, model: str) -> None:
    editor = await Editor().start({"model": {"name": model}}, command=[*without_network(), *serving(factory)])
    await work(editor)
    assert editor.client.messages == []
    await editor.stop()


@pytest.mark.parametrize(
    ("factory", "model"), [(STUB, "stub"), pytest.param(ASSISTANT, SMALLEST, marks=pytest.mark.model)]
)
async def test_no_internet_socket_is_opened(factory: str, model: str) -> None:
    editor = await Editor().start({"model": {"name": model}}, command=serving(factory))
    server = psutil.Process(editor.server.pid)
    await work(editor)
    for process in [server, *server.children(recursive=True)]:
        assert process.net_connections(kind="inet") == []
    await editor.stop()


@pytest.mark.parametrize(
    ("factory", "model"), [(STUB, "stub"), pytest.param(ASSISTANT, SMALLEST, marks=pytest.mark.model)]
)
async def test_a_canary_is_found_nowhere(
    factory: str,
    model: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    for name in ("TMPDIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        folder = tmp_path / name.lower()
        folder.mkdir()
        monkeypatch.setenv(name, str(folder))
    if factory == STUB:
        monkeypatch.setenv("HOME", str(tmp_path))
    editor = await Editor().start({"model": {"name": model}}, command=serving(factory))
    server = psutil.Process(editor.server.pid)
    await work(editor)
    written = [file.path for process in [server, *server.children()] for file in process.open_files()]
    await editor.stop()
    places = [path for path in tmp_path.rglob("*") if path.is_file()]
    places += [
        Path(path) for path in written if Path(path).is_file() and Path(path).suffix not in (".safetensors", ".pack")
    ]
    assert [place for place in places if CANARY.encode() in place.read_bytes()] == []
    output = capfd.readouterr()
    assert CANARY not in output.err
    assert CANARY not in output.out


async def test_a_model_that_is_gone_is_an_honest_status(tmp_path: Path) -> None:
    missing = tmp_path / "deleted"
    editor = await Editor().start({"model": {"name": str(missing)}}, command=serving(ASSISTANT), ready=False)
    status = await editor.until(lambda status: status["state"] == "error")
    assert "\n" not in status["message"]
    editor.open("x = ")
    assert await editor.items(0, 4) == []
    assert editor.client.messages == []
    await editor.stop()


async def test_files_that_are_not_on_disk(tmp_path: Path) -> None:
    """Deleted, read-only, behind a link, in a folder that does not exist: the editor's text is what counts."""
    gone = tmp_path / "gone.py"
    gone.write_text("x = 1")
    link = tmp_path / "link.py"
    link.symlink_to(gone)
    gone.chmod(0o400)
    editor = await Editor().start()
    for uri in (gone.as_uri(), link.as_uri(), "file:///nowhere/at/all.py", "untitled:Untitled-1", "file:///c%3A/a.py"):
        editor.open("x = ", uri=uri)
        assert await editor.text(0, 4, uri=uri) == says("x = ")
        gone.unlink(missing_ok=True)
    editor.open("let x = ", uri="file:///a.js", language="javascript")
    assert await editor.text(0, 8, uri="file:///a.js") == says("let x = ")
    await editor.stop()
