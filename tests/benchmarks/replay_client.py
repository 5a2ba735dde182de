"""A bare client for timing the server: one document, JSON over pipes, a time stamp on each message.

Knows the protocol's frames only, so that what it measures is the server and not a client library.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

URI = "file:///replay.py"


@dataclass(slots=True)
class Reply:
    """An answer and when it came, on the clock of `time.perf_counter`."""

    result: Any
    error: Any
    at: float


@dataclass
class ReplayClient:
    """Speaks to one server process."""

    process: asyncio.subprocess.Process
    waiting: dict[int, asyncio.Future[Reply]] = field(default_factory=dict)
    statuses: list[dict[str, Any]] = field(default_factory=list)
    version: int = 0
    number: int = 0
    reader: asyncio.Task[None] | None = None

    @classmethod
    async def start(
        cls, settings: dict[str, Any], command: Sequence[str] | None = None, encoding: str = "utf-32"
    ) -> ReplayClient:
        """A server that is ready to complete."""
        program = command or [sys.executable, "-m", "lsp_server.cli", "serve"]
        pipe = asyncio.subprocess.PIPE
        # A place of its own for the counts: they are the user's, and nobody accepted anything here.
        place = {**os.environ, "XDG_STATE_HOME": tempfile.mkdtemp(prefix="replay-")}
        process = await asyncio.create_subprocess_exec(*program, stdin=pipe, stdout=pipe, limit=2**24, env=place)
        client = cls(process)
        client.reader = asyncio.create_task(client._read())
        capable = {"textDocument": {"inlineCompletion": {}}, "general": {"positionEncodings": [encoding]}}
        params = {"processId": os.getpid(), "capabilities": capable, "initializationOptions": settings}
        await client.request("initialize", params)
        client.notify("initialized", {})
        while not any(status["state"] == "ready" for status in client.statuses):
            if any(status["state"] == "error" for status in client.statuses):
                raise RuntimeError(client.statuses[-1])
            await asyncio.sleep(0.01)
        return client

    async def stop(self) -> None:
        """Shuts it down."""
        await self.request("shutdown", None)
        self.notify("exit", None)
        await self.process.wait()

    async def _read(self) -> None:
        assert self.process.stdout is not None
        while header := await self.process.stdout.readline():
            length = int(header.split(b":")[1])
            while (await self.process.stdout.readline()).strip():
                pass
            message = json.loads(await self.process.stdout.readexactly(length))
            now = time.perf_counter()
            if message.get("method") == "draftwood/status":
                self.statuses.append(message["params"])
            elif "method" in message and "id" in message:
                self._send({"id": message["id"], "result": None})
            elif "id" in message and (future := self.waiting.pop(message["id"], None)):
                future.set_result(Reply(message.get("result"), message.get("error"), now))

    def _send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))

    def notify(self, method: str, params: Any) -> None:
        self._send({"method": method, "params": params})

    def ask(self, method: str, params: Any) -> tuple[int, asyncio.Future[Reply]]:
        """Sends a request: its number, and its answer when it comes."""
        self.number += 1
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self.waiting[self.number] = future
        self._send({"id": self.number, "method": method, "params": params})
        return self.number, future

    async def request(self, method: str, params: Any) -> Reply:
        return await self.ask(method, params)[1]

    # Documents --------------------------------------------------------------------------------------------------

    def open(self, text: str, uri: str = URI, language: str = "python") -> None:
        self.version = 1
        item = {"uri": uri, "languageId": language, "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": item})

    def close(self, uri: str = URI) -> None:
        self.notify("textDocument/didClose", {"textDocument": {"uri": uri}})

    def edit(self, start: tuple[int, int], end: tuple[int, int], text: str, uri: str = URI) -> None:
        self.version += 1
        span = {"start": position(start), "end": position(end)}
        changes = [{"range": span, "text": text}]
        document = {"uri": uri, "version": self.version}
        self.notify("textDocument/didChange", {"textDocument": document, "contentChanges": changes})

    def rest(self, at: tuple[int, int], uri: str = URI) -> None:
        """The cursor was put somewhere: editors then ask what could be done there."""
        here = {"start": position(at), "end": position(at)}
        params = {"textDocument": {"uri": uri}, "range": here, "context": {"diagnostics": []}}
        self.ask("textDocument/codeAction", params)

    def complete(self, at: tuple[int, int], uri: str = URI, kind: int = 2) -> tuple[int, asyncio.Future[Reply]]:
        params = {"textDocument": {"uri": uri}, "position": position(at), "context": {"triggerKind": kind}}
        return self.ask("textDocument/inlineCompletion", params)

    def cancel(self, number: int) -> None:
        self.notify("$/cancelRequest", {"id": number})

    async def command(self, name: str, argument: dict[str, Any] | None = None) -> Reply:
        return await self.request("workspace/executeCommand", {"command": name, "arguments": [argument or {}]})


def position(at: tuple[int, int]) -> dict[str, int]:
    return {"line": at[0], "character": at[1]}
