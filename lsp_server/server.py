"""Everything that the language server answers: a table of contents, a few lines each.

Knows the protocol's messages and whom to ask: text is `documents`' business, what is suggested `session`'s, what runs
`worker_client`'s. A handler that fails is logged and answers nothing, so that no editor pops up a window.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Awaitable, Callable
from typing import Any, ParamSpec, TypeVar

from lsprotocol import types

from lsp_server import private_log
from lsp_server.application import Application
from lsp_server.commands import (
    ANSWER,
    CODE_ACTIONS,
    COMMANDS,
    PREFIX,
    answer_params,
    code_actions,
    plain,
    read_params,
)
from lsp_server.items import ACCEPTED, completion_items, inline_items
from lsp_server.lenses import CODE_LENSES, code_lenses
from lsp_server.protocol import Server
from lsp_server.worker_client import ASSISTANT

log = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")


def serve_stdio(factory: str = ASSISTANT) -> int:
    """Serves one editor on standard input and output; the exit status."""
    private_log.set_up()
    server = make_server(factory)
    server.start_io()
    return server.protocol.exit_status


def serve_tcp(host: str, port: int, factory: str = ASSISTANT) -> int:
    """Serves one editor that connects to an address; the exit status."""
    private_log.set_up()
    log.warning("listening on %s:%d", host, port)
    server = make_server(factory)
    server.start_tcp(host, port)
    return server.protocol.exit_status


def make_server(factory: str = ASSISTANT) -> Server:
    """A server whose worker makes its assistant with `factory` ("module:callable")."""
    server = Server()
    app = Application(server, factory)
    _lifecycle(server, app)
    _documents(server, app)
    _notebooks(server, app)
    _suggestions(server, app)
    _commands(server, app)
    _answers(server, app)
    return server


def _lifecycle(server: Server, app: Application) -> None:
    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        wanted = app.begin(params).suggest.completion_list
        text_document = params.capabilities.text_document
        has_ghost_text = text_document is not None and text_document.inline_completion is not None
        if wanted == "on" or (wanted == "auto" and not has_ghost_text):
            _completion_list(server, app)

    @server.feature(types.INITIALIZED)
    @quietly
    async def initialized(_: types.InitializedParams) -> None:
        await app.start()

    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    @quietly
    async def did_change_configuration(params: types.DidChangeConfigurationParams) -> None:
        await app.reconfigure(params.settings)

    @server.feature(types.SHUTDOWN)
    @quietly
    async def shutdown(_: None) -> None:
        await app.stop()


def _documents(server: Server, app: Application) -> None:
    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def did_open(params: types.DidOpenTextDocumentParams) -> None:
        app.opened(app.documents.open(params.text_document))

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def did_change(params: types.DidChangeTextDocumentParams) -> None:
        app.changed(app.documents.change(params))

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def did_close(params: types.DidCloseTextDocumentParams) -> None:
        app.closed(app.documents.close(params.text_document.uri))


def _notebooks(server: Server, app: Application) -> None:
    @server.feature(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    def did_open(params: types.DidOpenNotebookDocumentParams) -> None:
        app.notebook_opened(params)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def did_change(params: types.DidChangeNotebookDocumentParams) -> None:
        app.notebook_changed(params)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def did_close(params: types.DidCloseNotebookDocumentParams) -> None:
        app.notebook_closed(params)


def _suggestions(server: Server, app: Application) -> None:
    @server.feature(types.TEXT_DOCUMENT_INLINE_COMPLETION, types.InlineCompletionOptions())
    @quietly
    async def inline_completion(params: types.InlineCompletionParams) -> list[types.InlineCompletionItem]:
        asked = app.ask(params.text_document.uri, params.position, params.context.selected_completion_info)
        explicit = params.context.trigger_kind == types.InlineCompletionTriggerKind.Invoked
        suggestions = await app.suggest(asked, explicit=explicit)
        # Empty, not null: at null Neovim 0.12 keeps its last suggestion on the screen.
        return inline_items(asked, suggestions) if asked is not None and suggestions.best_first else []


def _completion_list(server: Server, app: Application) -> None:
    @server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions())
    @quietly
    async def completion(params: types.CompletionParams) -> types.CompletionList | None:
        asked = app.ask(params.text_document.uri, params.position)
        suggestions = await app.suggest(asked, explicit=False)
        return completion_items(asked, suggestions) if asked is not None and suggestions.best_first else None


def _commands(server: Server, app: Application) -> None:
    @server.command(ACCEPTED)
    @quietly
    async def accepted(*arguments: Any) -> None:
        await app.accepted(plain(arguments[0]) if arguments else None)

    @server.command("draftwood.stats")
    @quietly
    async def stats(*arguments: Any) -> dict[str, Any]:
        return await app.stats(arguments[0] if arguments else None)


def _answers(server: Server, app: Application) -> None:
    @server.feature(ANSWER)
    async def answer(params: Any) -> dict[str, Any]:
        return await app.answer(read_params(params))

    def offer(name: str) -> None:
        @server.command(PREFIX + name)
        async def run(*arguments: Any) -> dict[str, Any]:
            return await app.answer(answer_params(name, arguments))

    for name in COMMANDS:
        offer(name)

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, CODE_ACTIONS)
    def code_action(params: types.CodeActionParams) -> list[types.CodeAction]:
        app.selected(params.text_document.uri, params.range)
        return code_actions(params)

    @server.feature(types.TEXT_DOCUMENT_CODE_LENS, CODE_LENSES)
    def code_lens(params: types.CodeLensParams) -> list[types.CodeLens]:
        document = app.documents.get(params.text_document.uri)
        return code_lenses(document, app.documents.encoding) if document is not None else []


def quietly(handler: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R | None]]:
    """Logs what a handler raises and answers nothing; a cancel passes."""

    @functools.wraps(handler)
    async def quiet(*args: P.args, **kwargs: P.kwargs) -> R | None:
        try:
            return await handler(*args, **kwargs)
        except Exception:
            log.exception("%s failed", handler.__name__)
            return None

    return quiet
