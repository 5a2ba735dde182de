"""The import that an accepted suggestion lacks, added to the document that it was accepted in.

An inline completion has no further edits, only a command that runs once it was accepted: the command's argument says
what was put where, and the server asks the editor to apply the import (`workspace/applyEdit`), so that no client needs
logic of its own. Knows the protocol's shapes, documents and the worker. Which imports are missing and where they
belong is not its business.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from lsprotocol import types
from pydantic import BaseModel, ValidationError

from decoding.errors import DraftwoodError
from decoding.reasoning.requests import Replacement
from lsp_server.documents import Document, DocumentStore
from lsp_server.lines import encode
from lsp_server.worker_client import WorkerClient

log = logging.getLogger(__name__)

Apply = Callable[[types.WorkspaceEdit], Awaitable[Any]]
_LOOKS, _PAUSE = 20, 0.05
"""So often, and after so many seconds, it is looked whether the document has the accepted text: editors may run the
command before they tell of the edit."""


class _Place(BaseModel):
    line: int
    character: int


class Accepted(BaseModel):
    """What a suggestion's command says of it: the text and the position that it begins at."""

    uri: str
    start: _Place
    text: str


@dataclass(frozen=True, slots=True)
class Imports:
    """Adds imports to open documents.

    Attributes:
        apply: asks the editor to apply an edit.
        versioned: whether it takes edits that name the version of a document.
    """

    documents: DocumentStore
    worker: WorkerClient
    apply: Apply
    versioned: bool

    async def add(self, argument: Any) -> None:
        """Add what the accepted suggestion lacks; nothing where the document has gone on meanwhile."""
        try:
            accepted = Accepted.model_validate(argument)
        except ValidationError:
            return  # a command of another version of ours, or none
        found = await self._arrived(accepted)
        if found is None:
            return
        document, start, end = found
        before = document.data[:end]
        try:
            edits = await self.worker.imports(document.view(end), start)
        except DraftwoodError as error:
            log.info("no import: %s", error)
            return
        now = self.documents.get(accepted.uri)
        if edits and now is not None and now.data.startswith(before):
            await self.apply(self._edit(now, edits))

    async def _arrived(self, accepted: Accepted) -> tuple[Document, int, int] | None:
        """The document with the accepted text in it, and the bytes from the beginning of its line to its end."""
        for _ in range(_LOOKS):
            document = self.documents.get(accepted.uri)
            if document is None or document.language != "python":
                return None
            position = types.Position(accepted.start.line, accepted.start.character)
            offset = document.offset_at(position, self.documents.encoding)
            for text in (accepted.text, accepted.text.replace("\r\n", "\n"), accepted.text.replace("\n", "\r\n")):
                if document.data.startswith(encode(text), offset):
                    line = document.data.rfind(b"\n", 0, offset) + 1
                    return document, line, offset + len(encode(text))
            await asyncio.sleep(_PAUSE)
        return None

    def _edit(self, document: Document, edits: tuple[Replacement, ...]) -> types.WorkspaceEdit:
        changes = [
            types.TextEdit(
                types.Range(
                    document.position_at(edit.start, self.documents.encoding),
                    document.position_at(edit.end, self.documents.encoding),
                ),
                edit.text,
            )
            for edit in edits
        ]
        if not self.versioned:
            return types.WorkspaceEdit(changes={document.uri: changes})
        identity = types.OptionalVersionedTextDocumentIdentifier(document.uri, document.version)
        return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(identity, list(changes))])
