"""Pygls with what an editor needs changed: no second document store, no popups, an honest exit status.

Knows pygls and lsprotocol; nothing of completions.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
from collections.abc import Callable, Generator
from contextvars import ContextVar
from importlib.metadata import version
from threading import Event
from typing import Any, BinaryIO

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.io_ import StdoutWriter, run_async
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol, lsp_method

from lsp_server.stdio import stream_of

log = logging.getLogger(__name__)


arrived: ContextVar[int] = ContextVar("arrived", default=0)
"""The newest revision of any document when the message being handled arrived. A handler may start after later
messages were handled, and a position means the text that the client saw."""


class Protocol(LanguageServerProtocol):
    """Hands document notifications straight to our handlers instead of also keeping, and re-splitting, the text."""

    exit_status = 1
    """0 once the client has asked for shutdown before exit, as the specification wants."""

    _dismissed = False

    clock: Callable[[], int] = staticmethod(lambda: 0)
    """Tells the newest revision of any document."""

    def handle_message(self, message: Any) -> None:
        """Notes what the client could know when it sent the message."""
        arrived.set(self.clock())
        super().handle_message(message)

    def structure_message(self, data: dict[str, Any]) -> Any:
        """Answers a request that cannot be read with an error, where pygls would leave it unanswered."""
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            if "id" in data and "method" in data:
                self._send_response(data["id"], error=error.to_response_error())
            raise

    # Ours alone, and called directly: for handlers that are generators, as its own are, pygls keeps every notification
    # for ever.

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: types.DidOpenTextDocumentParams) -> None:
        """Calls our handler only."""
        self.fm.features[types.TEXT_DOCUMENT_DID_OPEN](params)

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: types.DidChangeTextDocumentParams) -> None:
        """Calls our handler only."""
        self.fm.features[types.TEXT_DOCUMENT_DID_CHANGE](params)

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: types.DidCloseTextDocumentParams) -> None:
        """Calls our handler only."""
        self.fm.features[types.TEXT_DOCUMENT_DID_CLOSE](params)

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    def lsp_notebook_document__did_open(self, params: types.DidOpenNotebookDocumentParams) -> None:
        """Calls our handler only."""
        self.fm.features[types.NOTEBOOK_DOCUMENT_DID_OPEN](params)

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def lsp_notebook_document__did_change(self, params: types.DidChangeNotebookDocumentParams) -> None:
        """Calls our handler only."""
        self.fm.features[types.NOTEBOOK_DOCUMENT_DID_CHANGE](params)

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def lsp_notebook_document__did_close(self, params: types.DidCloseNotebookDocumentParams) -> None:
        """Calls our handler only."""
        self.fm.features[types.NOTEBOOK_DOCUMENT_DID_CLOSE](params)

    @lsp_method(types.SHUTDOWN)
    def lsp_shutdown(self, *args: Any) -> Generator[Any, Any, None]:
        """Remembers that the client said goodbye: it may be gone before everything has ended."""
        self._dismissed = True
        yield from super().lsp_shutdown(*args)

    @lsp_method(types.EXIT)
    def lsp_exit(self, *args: Any) -> Generator[Any, Any, None]:
        """Remembers the exit status, which pygls raises and then swallows."""
        self.exit_status = 0 if self._dismissed else 1
        yield from super().lsp_exit(*args)


class Server(LanguageServer):
    """The server of one editor."""

    protocol: Protocol

    def __init__(self) -> None:
        super().__init__(
            "draftwood",
            version("draftwood"),
            text_document_sync_kind=types.TextDocumentSyncKind.Incremental,
            notebook_document_sync=types.NotebookDocumentSyncOptions(
                [types.NotebookDocumentFilterWithCells([types.NotebookCellLanguage("python")], notebook="*")]
            ),
            protocol_cls=Protocol,
        )

    def start_io(self, stdin: BinaryIO | None = None, stdout: BinaryIO | None = None) -> None:
        """Serves one client until it says goodbye or is gone."""
        try:
            asyncio.run(self._serve(stdin or sys.stdin.buffer, stdout or sys.stdout.buffer))
        except BrokenPipeError:
            log.error("the client is gone")
        except (KeyboardInterrupt, SystemExit):
            log.info("told to end")
        finally:
            self.shutdown()  # type: ignore[no-untyped-call]

    async def _serve(self, stdin: BinaryIO, stdout: BinaryIO) -> None:
        self._stop_event = Event()
        self.protocol.set_writer(StdoutWriter(stdout))
        reader = await stream_of(stdin, stdout)
        # The protocol's types alone are 70,000 objects, which a full collection takes 60 ms to look through.
        gc.freeze()
        try:
            await run_async(self._stop_event, reader, self.protocol, log, self.report_server_error)
        except asyncio.IncompleteReadError:
            log.error("the client ended in the middle of a message")

    def report_server_error(self, error: Exception, source: type[Exception]) -> None:
        """Logs where pygls would pop up a window."""
        log.error("%s in the server", type(error).__name__, exc_info=error)
