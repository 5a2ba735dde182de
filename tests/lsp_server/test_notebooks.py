"""Notebook cells are completed as the continuation of the cells before them."""

from __future__ import annotations

import asyncio

from lsprotocol import types

from lsp_server.documents import DocumentStore
from lsp_server.notebooks import CONTEXT_BYTES, Notebooks
from tests.lsp_server.editor import Editor, capabilities
from tests.lsp_server.stub import continuation

NOTEBOOK = "file:///n.ipynb"


def uri(name: str) -> str:
    return f"vscode-notebook-cell:/n.ipynb#{name}"


def item(name: str, text: str) -> types.TextDocumentItem:
    return types.TextDocumentItem(uri(name), "python", 1, text)


def cell(name: str, kind: types.NotebookCellKind = types.NotebookCellKind.Code) -> types.NotebookCell:
    return types.NotebookCell(kind, uri(name))


def opening(*texts: str) -> types.DidOpenNotebookDocumentParams:
    names = [str(number) for number in range(len(texts))]
    notebook = types.NotebookDocument(NOTEBOOK, "jupyter-notebook", 1, [cell(name) for name in names])
    return types.DidOpenNotebookDocumentParams(notebook, [item(n, t) for n, t in zip(names, texts, strict=True)])


def changing(change: types.NotebookDocumentCellChanges) -> types.DidChangeNotebookDocumentParams:
    event = types.NotebookDocumentChangeEvent(cells=change)
    return types.DidChangeNotebookDocumentParams(types.VersionedNotebookDocumentIdentifier(2, NOTEBOOK), event)


def structure(start: int, delete: int, *names: str) -> types.NotebookDocumentCellChangeStructure:
    array = types.NotebookCellArrayChange(start, delete, [cell(name) for name in names])
    return types.NotebookDocumentCellChangeStructure(array, did_open=[item(name, f"new {name}") for name in names])


def test_earlier_cells_are_the_context() -> None:
    notebooks = Notebooks(DocumentStore())
    notebooks.open(opening("import a\n", "", "b = 1", "c"))
    assert notebooks.context(uri("0")) == b""
    assert notebooks.context(uri("3")) == b"import a\n\nb = 1\n\n"
    assert notebooks.context("file:///other.py") == b""


def test_cells_come_go_and_change() -> None:
    store = DocumentStore()
    notebooks = Notebooks(store)
    notebooks.open(opening("a", "b", "c"))
    edited, closed = notebooks.change(changing(types.NotebookDocumentCellChanges(structure(1, 1, "x", "y"))))
    assert [document.uri for document in edited] == [uri("x"), uri("y")]
    assert closed == []
    assert notebooks.context(uri("2")) == b"a\n\nnew x\n\nnew y\n\n"
    whole = types.TextDocumentContentChangeWholeDocument("changed")
    content = types.NotebookDocumentCellContentChanges(types.VersionedTextDocumentIdentifier(2, uri("x")), [whole])
    notebooks.change(changing(types.NotebookDocumentCellChanges(text_content=[content])))
    assert notebooks.context(uri("2")) == b"a\n\nchanged\n\nnew y\n\n"
    cells = [types.TextDocumentIdentifier(uri(name)) for name in ("0", "x", "y", "2")]
    identifier = types.NotebookDocumentIdentifier(NOTEBOOK)
    assert len(notebooks.close(types.DidCloseNotebookDocumentParams(identifier, cells))) == 4
    assert notebooks.context(uri("2")) == b""


def test_far_cells_are_left_out() -> None:
    notebooks = Notebooks(DocumentStore())
    notebooks.open(opening("far", "x" * (CONTEXT_BYTES - 10), "near", "here"))
    context = notebooks.context(uri("3"))
    assert context.endswith(b"x\n\nnear\n\n")
    assert b"far" not in context


async def test_over_the_protocol() -> None:
    capable = capabilities()
    capable.notebook_document = types.NotebookDocumentClientCapabilities(types.NotebookDocumentSyncClientCapabilities())
    editor = await Editor().start(capable=capable)
    assert editor.result is not None
    assert editor.result.capabilities.notebook_document_sync is not None
    editor.client.notebook_document_did_open(opening("import é\n", "x = ", "z"))
    [shown] = await editor.items(0, 4, uri=uri("1"))
    text = continuation("import é\n\nx = ", "", 64).rstrip("\n")
    assert shown.insert_text == text
    assert shown.range == types.Range(types.Position(0, 4), types.Position(0, 4))
    whole = types.TextDocumentContentChangeWholeDocument(f"x = {text[:2]}")
    content = types.NotebookDocumentCellContentChanges(types.VersionedTextDocumentIdentifier(2, uri("1")), [whole])
    editor.client.notebook_document_did_change(changing(types.NotebookDocumentCellChanges(text_content=[content])))
    assert await editor.text(0, 6, uri=uri("1")) == text[2:]
    assert (await editor.command("draftwood.stats"))["from_cache"] == 1
    await asyncio.wait_for(editor.stop(), 60)
