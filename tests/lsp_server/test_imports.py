"""Accepting a suggestion adds the import that it lacks, over the real transport and with no logic in the client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import attrs
import pytest
from lsprotocol import types

from tests.lsp_server.editor import URI, Editor, capabilities


def able(**changes: Any) -> types.ClientCapabilities:
    workspace = types.WorkspaceClientCapabilities(
        configuration=True,
        apply_edit=True,
        workspace_edit=types.WorkspaceEditClientCapabilities(document_changes=True),
    )
    return attrs.evolve(capabilities(), workspace=attrs.evolve(workspace, **changes))


class Applying(Editor):
    """An editor that applies what the server asks for."""

    def __init__(self) -> None:
        super().__init__()
        self.applied: list[types.WorkspaceEdit] = []
        self.client.feature(types.WORKSPACE_APPLY_EDIT)(lambda params: self._apply(params))

    def _apply(self, params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
        self.applied.append(params.edit)
        return types.ApplyWorkspaceEditResult(applied=True)

    async def accept(self, line: int, column: int, typed: str = "") -> None:
        """Takes the first suggestion and, where that is given, puts `typed` there in its place."""
        [item] = await self.items(line, column)
        assert item.command is not None
        [argument] = item.command.arguments or []
        argument = dict(argument, text=typed or item.insert_text)
        self.edit(line, column, argument["text"])
        await self.command(item.command.command, argument)

    def edits(self) -> list[tuple[int, int, str]]:
        """(first line, last line, text) of all edits."""
        changes = [
            edit
            for each in self.applied
            for change in each.document_changes or []
            for edit in change.edits  # type: ignore[union-attr]
        ]
        return [(edit.range.start.line, edit.range.end.line, edit.new_text) for edit in changes]


@pytest.fixture
async def editor() -> AsyncIterator[Applying]:
    editor = Applying()
    await editor.start(capable=able())
    yield editor
    await editor.stop()


async def test_the_import_is_added_where_isort_would_have_it(editor: Applying) -> None:
    editor.open("import abc\nimport os\n\nx = ")
    await editor.accept(3, 4, "json.dumps(abc.ABC)")
    assert editor.edits() == [(1, 1, "import json\n")]
    [edit] = editor.applied
    [change] = edit.document_changes or []
    assert isinstance(change, types.TextDocumentEdit)
    assert (change.text_document.uri, change.text_document.version) == (URI, editor.version)


async def test_what_the_user_typed_of_the_line_counts(editor: Applying) -> None:
    editor.open("é = 1\nx = math.")
    await editor.accept(1, 9, "pi")
    assert editor.edits() == [(0, 0, "import math\n\n")]


async def test_nothing_is_added_that_is_there_or_that_nobody_knows(editor: Applying) -> None:
    editor.open("import json\nx = ")
    await editor.accept(1, 4, "json.dumps(undefined, time)")
    editor.open("from a import *\nx = ")
    await editor.accept(1, 4, "json.dumps(1)")
    assert editor.applied == []


async def test_nothing_is_added_once_the_text_is_gone(editor: Applying) -> None:
    editor.open("x = ")
    [item] = await editor.items(0, 4)
    assert item.command is not None
    await editor.command(item.command.command, {**(item.command.arguments or [{}])[0], "text": "json.dumps(1)"})
    assert editor.applied == []


async def test_the_editor_may_tell_of_the_edit_after_the_command(editor: Applying) -> None:
    editor.open("x = ")
    [item] = await editor.items(0, 4)
    assert item.command is not None
    argument = {**(item.command.arguments or [{}])[0], "text": "json.dumps(1)"}
    command = asyncio.create_task(editor.command(item.command.command, argument))
    await asyncio.sleep(0)
    editor.edit(0, 4, "json.dumps(1)")
    await command
    assert editor.edits() == [(0, 0, "import json\n\n")]


async def test_a_notebook_keeps_its_cells(editor: Applying) -> None:
    cell = types.NotebookCell(types.NotebookCellKind.Code, "vscode-notebook-cell:/n#1")
    editor.client.notebook_document_did_open(
        types.DidOpenNotebookDocumentParams(
            types.NotebookDocument("file:///n.ipynb", "jupyter-notebook", 1, [cell]),
            [types.TextDocumentItem(cell.document, "python", 1, "x = json.dumps(1)")],
        )
    )
    argument = {"uri": cell.document, "start": {"line": 0, "character": 4}, "text": "json.dumps(1)"}
    await editor.command("draftwood.accepted", argument)
    assert editor.applied == []


@pytest.mark.parametrize(
    ("settings", "capable"),
    [({"constraint": {"imports": False}}, able()), ({}, able(apply_edit=False)), ({}, capabilities())],
)
async def test_it_can_be_turned_off_and_needs_an_editor_that_applies_edits(
    settings: dict[str, Any], capable: types.ClientCapabilities
) -> None:
    editor = Applying()
    await editor.start({"model": {"name": "stub"}, **settings}, capable=capable)
    editor.open("x = ")
    await editor.accept(0, 4, "json.dumps(1)")
    assert editor.applied == []
    await editor.stop()


async def test_an_editor_without_versions_gets_plain_changes() -> None:
    editor = Applying()
    await editor.start(capable=able(workspace_edit=None))
    editor.open("x = ")
    await editor.accept(0, 4, "json.dumps(1)")
    [edit] = editor.applied
    assert edit.document_changes is None
    assert [each.new_text for each in (edit.changes or {})[URI]] == ["import json\n\n"]
    await editor.stop()
