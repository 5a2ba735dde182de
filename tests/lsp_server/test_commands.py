"""Commands over stdio with the stub: streams, edits, cancels, code actions, and suggestions that go first."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from lsp_server.commands import COMMANDS, code_actions, plain
from tests.lsp_server.editor import URI, Editor, capabilities, serving
from tests.lsp_server.stub import continuation
from tests.lsp_server.stub_commands import WORDS

FACTORY = "tests.lsp_server.stub_commands:AnsweringStub"
TEXT = "x = 'é😀'\ny = x\n"


class Asking(Editor):
    """An editor that shows answers."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: dict[str, list[str]] = {}
        self.client.protocol.fm.features["$/progress"] = self._on_progress

    def _on_progress(self, params: Any) -> None:
        value = plain(params.value)
        if "text" in value:
            self.pieces.setdefault(str(params.token), []).append(value["text"])

    async def answer(self, name: str, token: str = "t", span: Any = None, **arguments: Any) -> dict[str, Any]:
        params = {
            "command": f"draftwood.{name}",
            "textDocument": {"uri": URI},
            "arguments": arguments,
            "token": token,
            **({"range": span} if span else {}),
        }
        return plain(await self.client.protocol.send_request_async("draftwood/answer", params))


def span(*ends: int) -> dict[str, Any]:
    line, column, last_line, last_column = ends
    return {"start": {"line": line, "character": column}, "end": {"line": last_line, "character": last_column}}


def capable(*, versioned: bool = True) -> types.ClientCapabilities:
    able = capabilities()
    assert able.workspace is not None
    able.workspace.workspace_edit = types.WorkspaceEditClientCapabilities(
        document_changes=versioned, resource_operations=[types.ResourceOperationKind.Create] if versioned else []
    )
    return able


async def start(token: float = 0.0, *, versioned: bool = True, **settings: Any) -> Asking:
    editor = Asking()
    await editor.start(
        {"model": {"name": f"stub?token={token}"}, **settings},
        command=serving(FACTORY),
        capable=capable(versioned=versioned),
    )
    editor.open(TEXT)
    return editor


@pytest.fixture
async def editor() -> AsyncIterator[Asking]:
    running = await start()
    yield running
    await running.stop()


async def test_every_command_is_offered(editor: Asking) -> None:
    assert editor.result is not None
    offered = editor.result.capabilities
    assert offered.execute_command_provider is not None
    assert set(offered.execute_command_provider.commands) >= {f"draftwood.{name}" for name in COMMANDS}
    assert offered.code_action_provider is not None


async def test_an_answer_streams_and_is_whole(editor: Asking) -> None:
    result = await editor.answer("explain", span=span(0, 5, 0, 8), message="why")
    assert result["text"].startswith("explain 'why' b'\\xc3\\xa9\\xf0\\x9f\\x98\\x80' 0 1")
    assert "".join(editor.pieces["t"]) == result["text"]
    assert len(editor.pieces["t"]) > 3
    assert result["edit"] is None


async def test_an_edit_has_the_clients_positions_and_version(editor: Asking) -> None:
    editor.edit(1, 0, "#")
    result = await editor.answer("edit", span=span(0, 5, 0, 8), instruction="new")
    [change] = result["edit"]["documentChanges"]
    assert change["textDocument"] == {"uri": URI, "version": 2}
    assert change["edits"] == [{"range": span(0, 5, 0, 8), "newText": "new0"}]


async def test_clients_without_versions_get_plain_changes() -> None:
    editor = await start(versioned=False)
    result = await editor.answer("edit", span=span(0, 5, 0, 8), instruction="new")
    # The test client cannot keep a URI as a key.
    [edits] = result["edit"]["changes"].values()
    assert edits == [{"range": span(0, 5, 0, 8), "newText": "new0"}]
    assert (await editor.answer("tests"))["edit"] is None  # it could not create the file
    await editor.stop()


async def test_new_files_are_created_first(editor: Asking) -> None:
    created, filled = (await editor.answer("tests"))["edit"]["documentChanges"]
    assert (created["kind"], created["uri"]) == ("create", "file:///test_a.py")
    assert filled["edits"][0]["newText"].startswith("def test")


async def test_diagnostics_reach_the_fix(editor: Asking) -> None:
    diagnostic = {"range": span(1, 4, 1, 5), "message": "undefined", "source": "pyright", "severity": 1}
    result = await editor.answer("fix", span=span(1, 4, 1, 5), diagnostics=[diagnostic])
    assert result["edit"]["documentChanges"][0]["edits"][0]["newText"] == "1"


async def test_commands_without_streaming(editor: Asking) -> None:
    argument = {"textDocument": {"uri": URI}, "range": span(1, 0, 1, 1), "instruction": "do"}
    result = plain(await editor.command("draftwood.edit", argument))
    assert result["text"].startswith("edit 'do' b'y'")
    assert editor.pieces == {}


@pytest.mark.parametrize(
    ("command", "arguments", "says"),
    [
        ("explain", {"message": "REFUSE"}, "select some code first"),
        ("dance", {}, "no command"),
        ("explain", {"diagnostics": "none"}, "diagnostics"),
    ],
)
async def test_what_cannot_be_answered_is_said_in_one_line(editor: Asking, command, arguments, says) -> None:
    with pytest.raises(JsonRpcException) as caught:
        await editor.answer(command, **arguments)
    assert says in caught.value.message
    assert "\n" not in caught.value.message
    assert (await editor.answer("explain"))["text"]  # the next one works


async def test_a_command_is_told_of_the_other_open_python_files(editor: Asking) -> None:
    def opened(name: str, text: str, language: str = "python") -> None:
        item = types.TextDocumentItem(f"file:///{name}", language, 1, text)
        editor.client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    opened("old.py", "x")
    opened("big.py", "#" * 500_000)
    opened("text.md", "y", "markdown")
    opened("new.py", "z")
    assert (await editor.answer("explain", message="OPEN"))["text"] == "file:///new.py:'z' file:///old.py:'x'"


async def test_a_document_that_is_not_open(editor: Asking) -> None:
    editor.close()
    with pytest.raises(JsonRpcException):
        await editor.answer("explain")
    assert (await editor.answer("reason", question="why"))["text"].startswith("reason 'why'")


async def test_a_cancel_stops_the_engine_within_a_step() -> None:
    editor = await start(0.02)
    asked = asyncio.ensure_future(editor.answer("explain"))
    while not editor.pieces:
        await asyncio.sleep(0.005)
    [identity] = [key for key in editor.client.protocol._request_futures if not str(key).startswith("progress")][-1:]
    editor.client.cancel_request(types.CancelParams(identity))
    with pytest.raises((JsonRpcException, asyncio.CancelledError)):
        await asked
    before = (await editor.command("draftwood.stats"))["generated"]
    await asyncio.sleep(0.1)
    assert (await editor.command("draftwood.stats"))["generated"] == before < WORDS
    await editor.stop()


async def test_a_suggestion_goes_before_the_rest_of_an_answer() -> None:
    editor = await start(0.1)  # the answer takes seconds, the suggestion less even on a busy machine
    asked = asyncio.ensure_future(editor.answer("explain"))
    while not editor.pieces:
        await asyncio.sleep(0.005)
    assert await editor.text(1, 5) == continuation(TEXT[:-1], "\n", 64).rstrip("\n")
    assert not asked.done()
    result = await asked
    assert "".join(editor.pieces["t"]) == result["text"]
    await editor.stop()


async def test_several_answers_come_in_their_order() -> None:
    editor = await start(0.005)
    ended: list[str] = []

    async def ask(token: str) -> None:
        result = await editor.answer("explain", token, message=token)
        assert f"'{token}'" in result["text"]
        assert "".join(editor.pieces[token]) == result["text"]
        ended.append(token)

    await asyncio.gather(*(ask(token) for token in "abc"))
    assert ended == ["a", "b", "c"]
    await editor.stop()


async def test_a_change_for_a_text_that_is_gone_is_not_proposed() -> None:
    editor = await start(0.02)
    asked = asyncio.ensure_future(editor.answer("edit", span=span(1, 0, 1, 1), instruction="new"))
    while not editor.pieces:
        await asyncio.sleep(0.005)
    editor.edit(0, 0, "#")
    result = await asked
    assert result["edit"] is None
    assert "changed meanwhile" in result["text"]
    await editor.stop()


def actions(diagnostics: list[types.Diagnostic], only: list[str] | None = None) -> types.CodeActionParams:
    return types.CodeActionParams(
        types.TextDocumentIdentifier(URI),
        types.Range(types.Position(1, 0), types.Position(1, 5)),
        types.CodeActionContext(diagnostics, only=only),
    )


PROBLEM = types.Diagnostic(types.Range(types.Position(1, 4), types.Position(1, 5)), "undefined", source="pyright")


def test_code_actions_offer_what_fits() -> None:
    def offered(*arguments: Any) -> list[str]:
        return [action.command.command.removeprefix("draftwood.") for action in code_actions(actions(*arguments))]

    assert offered([]) == ["explain", "docstring", "tests"]
    assert offered([PROBLEM]) == ["fix", "explain", "docstring", "tests"]
    assert offered([PROBLEM], ["quickfix"]) == ["fix"]
    assert offered([PROBLEM], ["refactor"]) == ["docstring"]
    assert code_actions(actions([PROBLEM]))[0].kind == types.CodeActionKind.QuickFix


async def test_a_code_action_runs_with_its_argument(editor: Asking) -> None:
    assert len(await editor.client.text_document_code_action_async(actions([PROBLEM]))) == 4
    command = code_actions(actions([PROBLEM]))[0].command
    result = plain(
        await editor.client.workspace_execute_command_async(
            types.ExecuteCommandParams(command.command, command.arguments)
        )
    )
    assert result["edit"]["documentChanges"][0]["edits"][0]["newText"] == "1"


async def test_settings_reach_the_command() -> None:
    editor = await start(answer={"thinkingTokens": 7})
    result = await editor.answer("reason", question="why")
    assert result["text"].startswith("reason")
    await editor.stop()
