"""One server and its parts: who is made when, and who is told what.

Knows every part of this package; the handlers in `server` call it.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from typing import Any

import psutil
from lsprotocol import types
from pygls.capabilities import ServerCapabilitiesBuilder

from decoding.errors import DraftwoodError
from decoding.messages import EngineOptions
from lsp_server.commands import AnswerParams, Commands
from lsp_server.counts import Counts
from lsp_server.documents import Document, DocumentStore
from lsp_server.imports import Imports
from lsp_server.items import Asked
from lsp_server.lines import Encoding
from lsp_server.notebooks import Notebooks
from lsp_server.protocol import Server, arrived
from lsp_server.session import NOTHING, Session, Suggestions
from lsp_server.settings import Settings
from lsp_server.settings_source import SettingsSource
from lsp_server.status import StatusReporter
from lsp_server.usage import Usage
from lsp_server.worker_client import WorkerClient

log = logging.getLogger(__name__)

_REMOTE = ("remote_url", "remote_model", "remote_key_env")
_LOADED_WITH = ("model", "draft_model", "runtime", "device", "dtype", "threads", "context_tokens", *_REMOTE)
"""Options that only a new worker can follow."""
_PARENT_SECONDS = 3.0
_STATS_SECONDS = 1.0
_NOTE_SECONDS = 300.0
"""So much of the counts is lost where the server is killed."""


class Application:
    """Everything behind the handlers of one connection."""

    def __init__(self, server: Server, factory: str) -> None:
        self._server = server
        server.protocol.clock = lambda: self.documents.newest
        self._factory = factory
        self._source = SettingsSource(server)
        self._tasks: set[asyncio.Task[None]] = set()
        self.documents = DocumentStore()
        self.notebooks = Notebooks(self.documents)
        self.counts = Counts()
        self._noted = Counts()
        self.session: Session | None = None
        self._begun = asyncio.Event()
        self._worker: WorkerClient | None = None
        self._status: StatusReporter | None = None

    def begin(self, params: types.InitializeParams) -> Settings:
        """The client introduced itself. Nothing is sent yet."""
        encoding = ServerCapabilitiesBuilder.choose_position_encoding(params.capabilities)
        self.documents.encoding = _encoding(str(getattr(encoding, "value", encoding)))
        if params.process_id is not None:
            self._spawn(self._watch_parent(params.process_id))
        return self._source.begin(params)

    async def start(self) -> None:
        """The client is ready: load the model."""
        self._make(await self._source.pull())
        self._begun.set()
        Usage.of_user().join()
        self._spawn(self._note_counts())

    async def reconfigure(self, settings: Any) -> None:
        """Follows new settings; a new worker only where it has to be."""
        before = self._source.current.engine_options()
        after = await self._source.changed(settings)
        if self.session is None:
            return
        if all(getattr(before, name) == getattr(after.engine_options(), name) for name in _LOADED_WITH):
            self.session.reconfigure(after)
            return
        await self._unmake()
        self._make(after)

    def ask(
        self, uri: str, position: types.Position, selected: types.SelectedCompletionInfo | None = None
    ) -> Asked | None:
        """What a request asks for; None where the document is not open, or has changed since the request arrived."""
        document = self.documents.get(uri)
        if document is None or document.revision > arrived.get():
            return None
        context = self.notebooks.context(document.uri)
        return Asked.at(document, position, self.documents.encoding, selected, context)

    def opened(self, document: Document) -> None:
        """A document was opened, perhaps again. Nobody says where its cursor is: its end is where texts go on."""
        self.changed(document)
        self.rests(document, len(document.data))

    def rests(self, document: Document, offset: int) -> None:
        """The cursor is at `offset` of a document, or may be expected there."""
        if self.session is not None:
            self.session.rest(document.view(offset).behind(self.notebooks.context(document.uri)))

    def selected(self, uri: str, span: types.Range) -> None:
        """Something is selected, or nothing: then its ends are the cursor."""
        document = self.documents.get(uri)
        if document is not None and span.start == span.end and document.revision <= arrived.get():
            self.rests(document, document.offset_at(span.start, self.documents.encoding))

    def changed(self, document: Document | None) -> None:
        """A document was edited; None: one that is not open."""
        if document is not None and self.session is not None:
            data = self.notebooks.context(document.uri) + document.data
            self.session.changed(document.uri, data, document.revision)

    def closed(self, document: Document | None) -> None:
        """A document was closed."""
        if document is not None and self.session is not None:
            self.session.closed(document.uri)

    def notebook_opened(self, params: types.DidOpenNotebookDocumentParams) -> None:
        """A notebook was opened, and its cells with it."""
        for document in self.notebooks.open(params):
            self.opened(document)

    def notebook_changed(self, params: types.DidChangeNotebookDocumentParams) -> None:
        """Cells were edited, added, removed or moved."""
        edited, closed = self.notebooks.change(params)
        for document in edited:
            self.changed(document)
        for document in closed:
            self.closed(document)

    def notebook_closed(self, params: types.DidCloseNotebookDocumentParams) -> None:
        """A notebook was closed, and its cells with it."""
        for document in self.notebooks.close(params):
            self.closed(document)

    async def suggest(self, asked: Asked | None, *, explicit: bool) -> Suggestions:
        """Suggestions for a request, best first."""
        await self._begun.wait()
        wanted = explicit or self._source.current.suggest.automatic
        if asked is None or self.session is None or not wanted:
            return NOTHING
        self.counts.requests += 1
        suggestions = await self.session.suggest(asked.view, explicit=explicit)
        self.counts.shown += bool(suggestions.best_first)
        return suggestions

    async def accepted(self, argument: Any) -> None:
        """The editor says that a suggestion was accepted: it is counted, and gets the imports that it lacks."""
        self.counts.accept(argument)
        workspace = self._server.client_capabilities.workspace
        wanted = self._source.current.constraint.imports and workspace is not None and workspace.apply_edit
        uri = argument.get("uri") if isinstance(argument, Mapping) else None
        if self._worker is None or not wanted or not isinstance(uri, str) or self.notebooks.holds(uri):
            return
        edits = workspace.workspace_edit if workspace is not None else None
        imports = Imports(
            self.documents, self._worker, self._apply, versioned=bool(edits is not None and edits.document_changes)
        )
        await imports.add(argument)

    async def _apply(self, edit: types.WorkspaceEdit) -> None:
        await self._server.workspace_apply_edit_async(types.ApplyWorkspaceEditParams(edit, "Add import"))

    async def answer(self, params: AnswerParams) -> dict[str, Any]:
        """The answer to a command. Raises JsonRpcException, with one line for people."""
        await self._begun.wait()
        if self._worker is None or self._status is None:
            return {"text": "", "edit": None}
        if self.session is not None:
            self.session.step_aside()
        settings = self._source.current
        commands = Commands(
            self.documents, self._server.protocol.notify, self._server.client_capabilities, self._status.activity
        )
        return await commands.answer(params, self._worker, settings.engine_options(), settings.answer)

    async def stats(self, argument: Any = None) -> dict[str, Any]:
        """Counts, and what the assistant says of itself: now if it is not busy, and not at all if `brief` is asked."""
        facts = self._status.facts if self._status is not None else {}
        brief = isinstance(argument, Mapping) and bool(argument.get("brief"))
        if self._worker is not None and not self._worker.busy and not brief:
            try:
                facts = await asyncio.wait_for(self._worker.describe(), _STATS_SECONDS)
            except (TimeoutError, DraftwoodError):
                log.info("the worker does not describe itself now")
        return {**facts, **self.counts.table()}

    async def stop(self) -> None:
        """Ends the worker; nothing is left running."""
        self._note()
        await self._unmake()

    def _make(self, settings: Settings) -> None:
        options: EngineOptions = settings.engine_options()
        window = self._server.client_capabilities.window
        self._status = StatusReporter(self._server, options.model, work_done=bool(window and window.work_done_progress))
        self._worker = WorkerClient(options, self._status.worker, self._factory)
        self.session = Session(self._worker, settings, self.counts, self._status.activity)
        self._worker.start()
        for document in self.documents:
            self.opened(document)

    async def _unmake(self) -> None:
        if self.session is not None:
            self.session.stop()
            self.session = None
        if self._worker is not None:
            await self._worker.stop()
            self._worker = None

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _note_counts(self) -> None:
        while True:
            await asyncio.sleep(_NOTE_SECONDS)
            self._note()

    def _note(self) -> None:
        """Writes down what was counted since the last time."""
        counted = self.counts.since(self._noted)
        if counted != Counts() and Usage.of_user().add(counted, date.today()):
            self._noted = replace(self.counts)

    async def _watch_parent(self, process_id: int) -> None:
        """Ends everything if the editor is gone without a word; its pipe may be held open by others."""
        if not psutil.pid_exists(process_id):
            return  # the editor is in another container or on another machine: its pipe alone says that it is gone
        while psutil.pid_exists(process_id):
            await asyncio.sleep(_PARENT_SECONDS)
        log.warning("the editor is gone")
        await self.stop()
        os._exit(1)  # the thread that reads standard input cannot be interrupted


def _encoding(name: str) -> Encoding:
    if name == "utf-8":
        return "utf-8"
    return "utf-32" if name == "utf-32" else "utf-16"
