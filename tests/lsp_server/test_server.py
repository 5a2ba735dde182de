"""The whole server over stdio with the stub assistant: what an editor sees."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from tests.lsp_server.conftest import ROOT, STUB
from tests.lsp_server.editor import URI, Editor, capabilities, serving
from tests.lsp_server.stub import continuation


def says(before: str, after: str = "", tokens: int = 64) -> str:
    """What the stub suggests there, on one line."""
    return continuation(before, after, tokens).rstrip("\n")


@pytest.fixture
async def editor() -> AsyncIterator[Editor]:
    running = await Editor().start()
    yield running
    await running.stop()


async def slow(token: float = 0.02, **settings: Any) -> Editor:
    return await Editor().start({"model": {"name": f"stub?token={token}"}, **settings})


async def test_what_is_offered(editor: Editor) -> None:
    assert editor.result is not None
    offered = editor.result.capabilities
    assert offered.inline_completion_provider is not None
    assert offered.completion_provider is None
    sync = offered.text_document_sync
    assert isinstance(sync, types.TextDocumentSyncOptions)
    assert (sync.open_close, sync.change) == (True, types.TextDocumentSyncKind.Incremental)
    assert offered.execute_command_provider is not None
    assert set(offered.execute_command_provider.commands) >= {"draftwood.accepted", "draftwood.stats"}


async def test_open_edit_complete(editor: Editor) -> None:
    editor.open("x = 1\ny = ")
    [item] = await editor.items(1, 4)
    assert item.insert_text == says("x = 1\ny = ")
    assert item.range == types.Range(types.Position(1, 4), types.Position(1, 4))
    editor.edit(0, 4, "😀", until=(0, 5))
    editor.edit(1, 4, "é")
    assert await editor.text(1, 5) == says("x = 😀\ny = é")


@pytest.mark.parametrize(("encoding", "column"), [("utf-8", 9), ("utf-16", 6), ("utf-32", 5)])
async def test_positions_in_each_encoding(encoding: str, column: int) -> None:
    editor = await Editor().start(encoding=encoding)
    assert editor.result is not None
    assert editor.result.capabilities.position_encoding == encoding
    editor.open("\f\u2028'😀'\r\n'é😀'  ".replace("'", "", 0))
    line = "'é😀'"
    width = {"utf-8": 8, "utf-16": 5, "utf-32": 4}[encoding]
    [item] = await editor.items(1, width)
    assert item.insert_text == says("\f\u2028'😀'\r\n" + line, "  ")
    assert item.range is not None
    assert item.range.start == types.Position(1, width)
    await editor.stop()


async def test_closers_that_follow_are_no_part_of_what_is_read(editor: Editor) -> None:
    """Editors bring them along with the bracket. The stub writes letters only, so that they stay; see the trimming
    tests for the rest."""
    editor.open("f()")
    [item] = await editor.items(0, 2)
    assert item.insert_text == says("f(")
    assert item.range is not None
    assert item.range.start.line == item.range.end.line


async def test_alternatives_only_on_request(editor: Editor) -> None:
    editor.open("x = ")
    assert len(await editor.items(0, 4)) == 1
    texts = [item.insert_text for item in await editor.items(0, 4, explicit=True)]
    assert texts == [says("x = "), "1" + says("x = "), "2" + says("x = ")]


async def test_accepting_is_counted(editor: Editor) -> None:
    editor.open("x = ")
    [item] = await editor.items(0, 4)
    assert item.command is not None
    assert item.command.command == "draftwood.accepted"
    await editor.client.workspace_execute_command_async(
        types.ExecuteCommandParams(item.command.command, item.command.arguments)
    )
    stats = await editor.command("draftwood.stats")
    assert stats["accepted"] == 1
    assert stats["accepted_characters"] == len(str(item.insert_text))
    assert stats["model"] == "stub"


async def test_commands_take_any_argument(editor: Editor) -> None:
    for arguments in (None, [], [None], [3], [{"characters": "many"}], [{}, {}]):
        await editor.client.workspace_execute_command_async(types.ExecuteCommandParams("draftwood.accepted", arguments))
    assert (await editor.command("draftwood.stats"))["accepted"] == 6


async def test_an_editors_own_choice_is_extended_over_its_range(editor: Editor) -> None:
    editor.open("x = os.pa\n")
    span = types.Range(types.Position(0, 7), types.Position(0, 9))
    selected = types.SelectedCompletionInfo(span, "path")
    [item] = await editor.items(0, 9, selected=selected)
    assert item.insert_text == "path" + says("x = os.path", "\n")
    assert item.range == span


async def test_a_cancel_is_answered_at_once_and_stops_the_worker() -> None:
    editor = await slow(0.05, suggest={"maxTokens": 4000, "multiline": "always"})
    editor.open("x = ")
    before = (await describe(editor))["asked"]
    request = asyncio.create_task(editor.items(0, 4))
    await asyncio.sleep(0.3)
    cancel_all(editor)
    with pytest.raises(JsonRpcException) as raised:
        await asyncio.wait_for(request, 200)
    assert raised.value.code == -32800
    await asyncio.sleep(0.5)
    idle = await describe(editor)
    assert idle["asked"] == before + 1
    await asyncio.sleep(0.3)
    assert (await describe(editor))["generated"] == idle["generated"]
    await editor.stop()


def cancel_all(editor: Editor) -> None:
    """What an editor sends for each request that it does not want any more."""
    for number, future in list(editor.client.protocol._request_futures.items()):
        if not future.done():
            editor.client.cancel_request(types.CancelParams(number))


async def describe(editor: Editor) -> dict[str, Any]:
    result = await editor.command("draftwood.stats")
    assert isinstance(result, dict)
    return result


async def test_a_newer_request_supersedes() -> None:
    editor = await slow(0.02)
    editor.open("x = \ny = ")
    first = asyncio.create_task(editor.items(0, 4))
    await asyncio.sleep(0.1)
    assert await editor.text(1, 4) == says("x = \ny = ")
    assert await first == []
    await editor.stop()


async def test_an_answer_to_an_old_text_is_nothing() -> None:
    """For clients that neither cancel nor compare versions."""
    editor = await slow(0.02)
    editor.open("x = ")
    first = asyncio.create_task(editor.items(0, 4))
    await asyncio.sleep(0.1)
    editor.edit(0, 0, "yy")
    assert await asyncio.wait_for(first, 200) == []
    assert await editor.text(0, 6) == says("yyx = ")
    await editor.stop()


async def test_initialize_is_answered_while_the_model_loads() -> None:
    editor = await Editor().start({"model": {"name": "stub?load=1"}}, ready=False)
    assert editor.statuses == [] or editor.statuses[-1]["state"] != "ready"
    editor.open("x = ")
    assert await editor.text(0, 4) == says("x = ")
    states = [status["state"] for status in editor.statuses]
    assert states[0] == "starting"
    assert "loading" in states
    assert editor.statuses[-1]["model"] == "stub?load=1"
    [reports] = editor.client.progress_reports.values()
    kinds = [type(report).__name__ for report in reports]
    assert kinds[0] == "WorkDoneProgressBegin"
    assert kinds[-1] == "WorkDoneProgressEnd"
    await editor.stop()


async def test_long_work_is_told_as_busy() -> None:
    editor = await slow(0.02)
    editor.open("x = ")
    await editor.items(0, 4)
    await editor.until(lambda status: status["state"] == "busy")
    await asyncio.sleep(0.4)
    assert editor.statuses[-1]["state"] == "ready"
    await editor.stop()


def worker_of(editor: Editor) -> psutil.Process:
    [worker] = psutil.Process(editor.server.pid).children()
    return worker


async def test_a_killed_worker_is_no_reason_to_restart_anything(editor: Editor) -> None:
    editor.open("x = ")
    worker_of(editor).kill()
    await editor.until(lambda status: "started again" in status.get("message", ""))
    assert await editor.text(0, 4) == says("x = ")
    assert editor.client.messages == []


@pytest.mark.parametrize("word", ["CRASH_NOW", "RAISE_NOW", "REFUSE_NOW", "EXHAUST_NOW"])
async def test_what_fails_is_answered_with_nothing_and_no_window(editor: Editor, word: str) -> None:
    editor.open(f"x = 1  # {word}\n")
    assert await editor.items(1, 0) == []
    editor.edit(0, 0, "x = ", until=(1, 0))
    assert await editor.text(0, 4) == says("x = ")
    assert editor.client.messages == []


async def test_a_model_that_is_not_there_is_an_error_status() -> None:
    editor = await Editor().start({"model": {"name": "stub?broken=1"}}, ready=False)
    status = await editor.until(lambda status: status["state"] == "error")
    assert status["message"] == "there is no such stub: choose another"
    editor.open("x = ")
    assert await editor.items(0, 4) == []
    await editor.stop()


async def test_shutdown_and_exit_leave_nothing_behind() -> None:
    editor = await Editor().start()
    worker = worker_of(editor)
    assert await editor.stop() == 0
    assert not worker.is_running()


async def test_exit_without_shutdown_is_status_1() -> None:
    editor = await Editor().start()
    worker = worker_of(editor)
    editor.client.exit(None)
    assert await asyncio.wait_for(editor.server.wait(), 200) == 1
    assert not worker.is_running()
    await editor.client.stop()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
async def test_a_killed_server_takes_its_worker_along(how: signal.Signals) -> None:
    editor = await Editor().start()
    worker = worker_of(editor)
    os.kill(editor.server.pid, how)
    await asyncio.to_thread(worker.wait, 60)
    await editor.client.stop()


async def test_an_editor_that_vanishes_ends_the_server() -> None:
    """Its process is gone, but something else holds the pipe open."""
    editor = Editor()
    vanishing = subprocess.Popen(["sleep", "600"])
    program, *arguments = serving()
    await editor.client.start_io(program, *arguments, cwd=ROOT)
    named = types.InitializeParams(capabilities=capabilities(), process_id=vanishing.pid)
    await editor.client.initialize_session(named)
    vanishing.kill()
    vanishing.wait()
    assert await asyncio.wait_for(editor.server.wait(), 200) == 1
    await editor.client.stop()


async def test_an_editor_in_another_container_is_served() -> None:
    """Its process id means nothing here."""
    editor = Editor()
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    program, *arguments = serving()
    await editor.client.start_io(program, *arguments, cwd=ROOT)
    await editor.client.initialize_session(types.InitializeParams(capabilities=capabilities(), process_id=gone.pid))
    await editor.until(lambda status: status["state"] == "ready")
    editor.open("x = ")
    assert await editor.items(0, 4)
    assert await editor.stop() == 0


async def test_the_server_loads_no_torch(editor: Editor) -> None:
    editor.open("x = ")
    await editor.items(0, 4)
    libraries = [Path(region.path).name for region in psutil.Process(editor.server.pid).memory_maps()]
    assert not [name for name in libraries if "torch" in name or "tree_sitter" in name]
    assert any("pydantic" in name for name in libraries)


async def test_what_libraries_print_does_not_reach_the_client(editor: Editor) -> None:
    """The stub prints when it is made; the session would have broken."""
    assert await editor.command("draftwood.stats")


async def test_settings_by_start_options() -> None:
    editor = await Editor().start({"model": {"name": "stub"}, "suggest": {"maxTokens": 5}})
    editor.open("x = ")
    assert await editor.text(0, 4) == says("x = ", tokens=5)
    await editor.stop()


async def test_settings_are_asked_for() -> None:
    editor = Editor()
    editor.client.set_configuration({"draftwood": {"model": {"name": "stub"}, "suggest": {"maxTokens": 6}}})
    await editor.start({"suggest": {"maxTokens": 5}})
    editor.open("x = ")
    assert await editor.text(0, 4) == says("x = ", tokens=6)
    await editor.stop()


async def test_settings_from_the_project(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.draftwood.suggest]\nmax-tokens = 7\n")
    editor = await Editor().start(root=tmp_path.as_uri())
    editor.open("x = ")
    assert await editor.text(0, 4) == says("x = ", tokens=7)
    await editor.stop()


async def test_settings_that_change_later(editor: Editor) -> None:
    editor.open("x = ")
    await editor.items(0, 4)
    worker = worker_of(editor).pid
    settings = {"draftwood": {"model": {"name": "stub"}, "suggest": {"maxTokens": 8}}}
    editor.client.set_configuration(settings)
    editor.client.workspace_did_change_configuration(types.DidChangeConfigurationParams(settings))
    assert await editor.text(0, 4) == says("x = ", tokens=8)
    assert worker_of(editor).pid == worker


async def test_another_model_is_another_worker(editor: Editor) -> None:
    worker = worker_of(editor).pid
    settings = {"draftwood": {"model": {"name": "stub?load=0.01"}}}
    editor.client.set_configuration(settings)
    editor.client.workspace_did_change_configuration(types.DidChangeConfigurationParams(settings))
    await editor.until(lambda status: status["state"] == "ready" and status["model"] == "stub?load=0.01")
    editor.open("x = ")
    assert await editor.text(0, 4) == says("x = ")
    assert worker_of(editor).pid != worker


async def test_bad_settings_warn_once() -> None:
    editor = await Editor().start({"model": {"name": "stub"}, "suggest": {"maxTokens": "many", "maxToken": 3}})
    for _ in range(2):
        editor.client.workspace_did_change_configuration(types.DidChangeConfigurationParams({}))
    await describe(editor)
    warnings = [message.message for message in editor.client.messages]
    assert len(warnings) == 2
    assert all(warning.startswith("Draftwood: draftwood.suggest.maxToken") for warning in warnings)
    await editor.stop()


async def test_automatic_suggestions_may_be_off() -> None:
    editor = await Editor().start({"model": {"name": "stub"}, "suggest": {"automatic": False}})
    editor.open("x = ")
    assert await editor.items(0, 4) == []
    assert len(await editor.items(0, 4, explicit=True)) == 3
    await editor.stop()


@pytest.mark.parametrize("text", ["", "\n", "\ud83d", "x = '\ude00\ud83d'\n", "a" * 5_000_000, "é = 1\n" * 700_000])
async def test_any_document_is_valid_input(editor: Editor, text: str) -> None:
    editor.open(text)
    assert await editor.text(0, 0, explicit=True) is not None
    editor.edit(0, 0, "x = \n")
    assert await editor.text(0, 4) is not None


async def test_places_that_do_not_exist(editor: Editor) -> None:
    editor.open("x = ")
    assert await editor.text(99, 99) == says("x = ")
    assert await editor.text(0, 99) == says("x = ")
    assert await editor.items(0, 0, uri="file:///not-open.py") == []
    editor.edit(0, 0, "z", uri="file:///not-open.py")
    editor.close("file:///not-open.py")
    assert await editor.text(0, 4) == says("x = ")


async def test_a_request_that_cannot_be_read_is_answered(editor: Editor) -> None:
    answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    editor.client.protocol._request_futures[77] = answer  # type: ignore[assignment]
    editor.client.protocol._result_types[77] = None
    editor.client.protocol._send_data(
        {"jsonrpc": "2.0", "id": 77, "method": "textDocument/inlineCompletion", "params": {"nonsense": 1}}
    )
    with pytest.raises(JsonRpcException):
        await asyncio.wait_for(answer, 200)
    editor.open("x = ")
    assert await editor.text(0, 4) == says("x = ")


async def test_two_documents(editor: Editor) -> None:
    editor.open("x = ")
    editor.open("y = ", uri="untitled:Untitled-1")
    assert await editor.text(0, 4, uri="untitled:Untitled-1") == says("y = ")
    assert await editor.text(0, 4) == says("x = ")
    editor.close()
    assert await editor.items(0, 4) == []
    assert await editor.text(0, 4, uri="untitled:Untitled-1") == says("y = ")


async def test_nothing_is_logged_of_the_text(capfd: pytest.CaptureFixture[str]) -> None:
    editor = await Editor().start()
    editor.open("CANARY_7f3 = 1  # RAISE_NOW\n")
    assert await editor.items(1, 0) == []
    with pytest.raises(JsonRpcException):
        await editor.client.protocol.send_request_async("custom/unknown", {"text": "CANARY_7f3"})
    editor.client.protocol.notify("custom/unknown", {"text": "CANARY_7f3"})
    await editor.stop()
    logged = capfd.readouterr().err
    assert "RuntimeError in tests.lsp_server.stub" in logged
    assert "custom/unknown" not in logged or "CANARY" not in logged
    assert "CANARY" not in logged


def initialize_bodies() -> list[Any]:
    folder = Path(os.environ.get("DRAFTWOOD_DATA", ROOT.parent / "shared" / "data"))
    file = folder / "lsp_client_capabilities" / "all.jsonl"
    if not file.is_file():
        return [pytest.param(None, marks=pytest.mark.skip("no lsp_client_capabilities in DRAFTWOOD_DATA"))]
    bodies = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    return [pytest.param(body, id=body["client"]) for body in bodies]


@pytest.mark.parametrize("body", initialize_bodies())
async def test_real_clients_capabilities_are_obeyed(body: dict[str, Any]) -> None:
    """None of them has ghost text: they get the ordinary list, and what pytest-lsp checks on the way."""
    editor = Editor()
    capable = editor.client.protocol._converter.structure(body["capabilities"], types.ClientCapabilities)
    await editor.start(capable=capable)
    assert editor.result is not None
    assert editor.result.capabilities.completion_provider is not None
    editor.open("x = val")
    answer = await editor.client.text_document_completion_async(
        types.CompletionParams(types.TextDocumentIdentifier(URI), types.Position(0, 7))
    )
    assert isinstance(answer, types.CompletionList)
    [item] = answer.items
    assert isinstance(item.text_edit, types.TextEdit)
    assert item.text_edit.new_text == "val" + says("x = val")
    assert item.text_edit.range == types.Range(types.Position(0, 4), types.Position(0, 7))
    await editor.stop()


async def warmed(editor: Editor, count: int) -> bool:
    """Whether the worker comes to have read so many windows."""
    for _ in range(400):
        if (await editor.command("draftwood.stats")).get("warmed") == count:
            return True
        await asyncio.sleep(0.05)
    return False


async def test_what_is_opened_and_where_the_cursor_rests_is_read() -> None:
    editor = await Editor().start(ready=False)
    editor.open("x = 1\ny = ")  # perhaps before the model is there
    assert await warmed(editor, 1)
    editor.edit(1, 4, "a")  # where is written, each place is read
    for line, column in ((0, 1), (0, 2), (0, 5)):  # only the last is a rest
        here = types.Position(line, column)
        await editor.client.text_document_code_action_async(
            types.CodeActionParams(
                types.TextDocumentIdentifier(URI), types.Range(here, here), types.CodeActionContext([])
            )
        )
    assert await warmed(editor, 2)
    await editor.stop()


def test_over_tcp() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    code = f"import sys, lsp_server.server as s; sys.exit(s.serve_tcp('127.0.0.1', {port}, {STUB!r}))"
    server = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stderr=subprocess.PIPE)
    assert server.stderr is not None
    assert f"127.0.0.1:{port}".encode() in server.stderr.readline()
    with _connected(port) as connection, connection.makefile("rb") as answers:
        _say(connection, {"id": 1, "method": "initialize", "params": {"capabilities": {}, "processId": None}})
        assert _hear(answers)["result"]["serverInfo"]["name"] == "draftwood"
        _say(connection, {"id": 2, "method": "shutdown"})
        while _hear(answers).get("id") != 2:
            pass
        _say(connection, {"method": "exit"})
    assert server.wait(200) == 0
    server.stderr.close()


def _connected(port: int) -> socket.socket:
    for _ in range(200):
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=200)
        except ConnectionRefusedError:
            time.sleep(0.02)
    raise TimeoutError


def _say(connection: socket.socket, message: dict[str, Any]) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    connection.sendall(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))


def _hear(answers: Any) -> dict[str, Any]:
    length = 0
    while line := answers.readline().strip():
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    message = json.loads(answers.read(length))
    assert isinstance(message, dict)
    return message
