"""An editor for tests: a real client that talks to the real server over its real transport."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import Process
from collections.abc import Callable
from typing import Any, cast

from lsprotocol import types
from pytest_lsp import LanguageClient, make_test_lsp_client

from tests.lsp_server.conftest import ROOT, STUB

URI = "file:///a.py"
STATUS = "draftwood/status"


def serving(factory: str = STUB) -> list[str]:
    """The command line of a server with that assistant."""
    return [sys.executable, "-c", f"import sys, lsp_server.server as s; sys.exit(s.serve_stdio({factory!r}))"]


def capabilities(encoding: str = "utf-16") -> types.ClientCapabilities:
    return types.ClientCapabilities(
        general=types.GeneralClientCapabilities(position_encodings=[types.PositionEncodingKind(encoding)]),
        text_document=types.TextDocumentClientCapabilities(
            inline_completion=types.InlineCompletionClientCapabilities()
        ),
        workspace=types.WorkspaceClientCapabilities(configuration=True),
        window=types.WindowClientCapabilities(work_done_progress=True),
    )


class Editor:
    """One document at a time, as a shadow that applies its own edits."""

    def __init__(self) -> None:
        self.client: LanguageClient = make_test_lsp_client()
        self.statuses: list[dict[str, Any]] = []
        self.result: types.InitializeResult | None = None
        self.version = 0
        self.client.feature(STATUS)(lambda params: self._on_status(params))

    def _on_status(self, params: Any) -> None:
        self.statuses.append(params if isinstance(params, dict) else params._asdict())

    async def start(
        self,
        settings: dict[str, Any] | None = None,
        *,
        command: list[str] | None = None,
        capable: types.ClientCapabilities | None = None,
        encoding: str = "utf-16",
        root: str | None = None,
        ready: bool = True,
        ready_s: float = 300,
    ) -> Editor:
        program, *arguments = command or serving()
        await self.client.start_io(program, *arguments, cwd=ROOT)
        self.result = await self.client.initialize_session(
            types.InitializeParams(
                capabilities=capable or capabilities(encoding),
                initialization_options=settings or {"model": {"name": "stub"}},
                root_uri=root,
            )
        )
        if ready:
            await self.until(lambda status: status["state"] == "ready", ready_s)
        return self

    async def until(self, holds: Callable[[dict[str, Any]], bool], seconds: float = 300) -> dict[str, Any]:
        """The first status, past or future, for which that holds."""
        async with asyncio.timeout(seconds):
            while not any(map(holds, self.statuses)):
                await asyncio.sleep(0.005)
        return next(filter(holds, self.statuses))

    @property
    def server(self) -> Process:
        return cast(Process, self.client._server)

    def open(self, text: str, uri: str = URI, language: str = "python") -> None:
        self.version = 1
        item = types.TextDocumentItem(uri, language, self.version, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    def edit(self, line: int, column: int, text: str, until: tuple[int, int] | None = None, uri: str = URI) -> None:
        start = types.Position(line, column)
        end = types.Position(*until) if until else start
        change = types.TextDocumentContentChangePartial(types.Range(start, end), text)
        self.version += 1
        identifier = types.VersionedTextDocumentIdentifier(self.version, uri)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(identifier, [change]))

    def close(self, uri: str = URI) -> None:
        self.client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri)))

    async def items(
        self,
        line: int,
        column: int,
        *,
        explicit: bool = False,
        selected: types.SelectedCompletionInfo | None = None,
        uri: str = URI,
    ) -> list[types.InlineCompletionItem]:
        kinds = types.InlineCompletionTriggerKind
        answer = await self.client.text_document_inline_completion_async(
            types.InlineCompletionParams(
                types.InlineCompletionContext(kinds.Invoked if explicit else kinds.Automatic, selected),
                types.TextDocumentIdentifier(uri),
                types.Position(line, column),
            )
        )
        return list(cast("list[types.InlineCompletionItem]", answer or []))

    async def text(self, line: int, column: int, **how: Any) -> str | None:
        items = await self.items(line, column, **how)
        return str(items[0].insert_text) if items else None

    async def command(self, name: str, argument: dict[str, Any] | None = None) -> Any:
        return await self.client.workspace_execute_command_async(types.ExecuteCommandParams(name, [argument or {}]))

    async def stop(self) -> int | None:
        """Shuts the server down as an editor does; its exit status."""
        if self.server.returncode is None:
            await asyncio.wait_for(self.client.shutdown_session(), 200)
        status = self.server.returncode
        await self.client.stop()
        return status
