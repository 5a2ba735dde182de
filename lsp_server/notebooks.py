"""Notebooks: which cells follow which, so that a cell is completed as the continuation of those before it.

Knows the protocol's notebook messages and the document store, where every cell is a document of its own.
"""

from __future__ import annotations

from lsprotocol import types

from lsp_server.documents import Document, DocumentStore, normalise

CONTEXT_BYTES = 12_000
"""Of earlier cells, nearest first; what is more is further away than any prompt reaches."""


class Notebooks:
    """The open notebooks, each a list of its code cells."""

    def __init__(self, documents: DocumentStore) -> None:
        self._documents = documents
        self._cells: dict[str, list[types.NotebookCell]] = {}
        self._notebook_of: dict[str, str] = {}

    def holds(self, uri: str) -> bool:
        """Whether a document is the cell of a notebook."""
        return normalise(uri) in self._notebook_of

    def context(self, uri: str) -> bytes:
        """The code of the cells before this one, b"" for what is no cell."""
        notebook = self._notebook_of.get(normalise(uri))
        if notebook is None:
            return b""
        before: list[bytes] = []
        for cell in self._cells[notebook]:
            if normalise(cell.document) == normalise(uri):
                break
            document = self._documents.get(cell.document)
            if document is not None and cell.kind == types.NotebookCellKind.Code and document.data.strip():
                before.append(document.data.rstrip(b"\r\n") + b"\n\n")
        size, chosen = 0, b""
        for code in reversed(before):
            size += len(code)
            if size > CONTEXT_BYTES:
                break
            chosen = code + chosen
        return chosen

    def open(self, params: types.DidOpenNotebookDocumentParams) -> list[Document]:
        """The cells that were opened."""
        uri = normalise(params.notebook_document.uri)
        self._cells[uri] = list(params.notebook_document.cells)
        opened = [self._documents.open(item) for item in params.cell_text_documents]
        self._index(uri)
        return opened

    def change(self, params: types.DidChangeNotebookDocumentParams) -> tuple[list[Document], list[Document]]:
        """The cells that were opened or edited, and those that were closed."""
        uri = normalise(params.notebook_document.uri)
        cells, changes = self._cells.get(uri), params.change.cells
        if cells is None or changes is None:
            return [], []
        edited: list[Document | None] = []
        closed: list[Document | None] = []
        if changes.structure is not None:
            array = changes.structure.array
            cells[array.start : array.start + array.delete_count] = array.cells or []
            edited += [self._documents.open(item) for item in changes.structure.did_open or []]
            closed += [self._documents.close(item.uri) for item in changes.structure.did_close or []]
            self._index(uri)
        for content in changes.text_content or []:
            edited.append(self._documents.change(types.DidChangeTextDocumentParams(content.document, content.changes)))
        return [cell for cell in edited if cell is not None], [cell for cell in closed if cell is not None]

    def close(self, params: types.DidCloseNotebookDocumentParams) -> list[Document]:
        """The cells that were closed with their notebook."""
        uri = normalise(params.notebook_document.uri)
        self._cells.pop(uri, None)
        self._index(uri)
        closed = [self._documents.close(item.uri) for item in params.cell_text_documents]
        return [cell for cell in closed if cell is not None]

    def _index(self, uri: str) -> None:
        """Notes anew which cells are this notebook's."""
        for cell in [cell for cell, notebook in self._notebook_of.items() if notebook == uri]:
            del self._notebook_of[cell]
        for known in self._cells.get(uri, []):
            self._notebook_of[normalise(known.document)] = uri
