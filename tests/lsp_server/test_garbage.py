"""Messages that no client should send: none of them may end the server, stop its answers or make it run in circles."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import psutil
import pytest

from tests.benchmarks.replay_client import ReplayClient
from tests.benchmarks.replay_server import SETTINGS
from tests.lsp_server.editor import serving

URI = "file:///a.py"
START = {"line": 0, "character": 0}


def place(line: float, character: float) -> dict[str, float]:
    return {"line": line, "character": character}


def changed(start: Any, end: Any, text: Any = "q", uri: str = URI) -> dict[str, Any]:
    change = {"range": {"start": start, "end": end}, "text": text}
    document = {"uri": uri, "version": 2}
    return {"method": "textDocument/didChange", "params": {"textDocument": document, "contentChanges": [change]}}


def asked(where: Any, uri: str = URI, context: Any = None) -> dict[str, Any]:
    params = {"textDocument": {"uri": uri}, "position": where, "context": context or {"triggerKind": 2}}
    return {"id": 900, "method": "textDocument/inlineCompletion", "params": params}


def executed(command: str, *arguments: Any) -> dict[str, Any]:
    return {"id": 901, "method": "workspace/executeCommand", "params": {"command": command, "arguments": arguments}}


GARBAGE: dict[str, Any] = {
    "no JSON": b"{",
    "nothing": b"",
    "a list": b"[1, 2]",
    "a number": b"3",
    "deep": b"[" * 100_000,
    "no UTF-8": b'{"jsonrpc": "2.0", "method": "x", "params": "\xff"}',
    "unknown method": {"id": 1_000, "method": "nothing/here"},
    "unknown notification": {"method": "nothing/here"},
    "no params": {"id": 1_001, "method": "textDocument/inlineCompletion"},
    "no id": {"id": None, "method": "textDocument/inlineCompletion", "params": None},
    "an answer to nobody": {"id": 99_999, "result": {}},
    "a cancel of nothing": {"method": "$/cancelRequest", "params": {"id": 99_999}},
    "a cancel without id": {"method": "$/cancelRequest", "params": {}},
    "negative positions": changed(place(-1, -1), place(-1, -1)),
    "positions that are far": changed(place(10**9, 0), place(10**9, 10**9)),
    "backwards": changed(place(2, 5), START),
    "a text that is none": changed(START, START, 3),
    "half a character": changed(START, START, "\ud83d"),
    "control characters": changed(START, START, "\x00\ufeff\u2028\x0c\r"),
    "a document that is not open": changed(START, START, uri="file:///b.py"),
    "an address that is none": {
        "method": "textDocument/didOpen",
        "params": {"textDocument": {"uri": "\ud800", "languageId": "\udc00", "version": 0, "text": "x = "}},
    },
    "asked there": asked(place(0, 4), "\ud800"),
    "asked elsewhere": asked(START, "file:///b.py"),
    "asked nowhere": asked(place(-1, 10**12)),
    "an unknown trigger": asked(START, context={"triggerKind": 7}),
    "a list's choice of nothing": asked(
        START,
        context={
            "triggerKind": 2,
            "selectedCompletionInfo": {"range": {"start": place(5, 5), "end": START}, "text": "z"},
        },
    ),
    "an unknown command": executed("nothing"),
    "a command about nothing": executed("draftwood.explain"),
    "a command about another file": executed("draftwood.explain", {"textDocument": {"uri": "file:///b.py"}}),
    "an acceptance of nothing": executed("draftwood.accepted", {"characters": "x"}),
    "settings that are none": {"method": "workspace/didChangeConfiguration", "params": {"settings": [1]}},
    "cells of no notebook": {
        "method": "notebookDocument/didChange",
        "params": {
            "notebookDocument": {"uri": "file:///n.ipynb", "version": 1},
            "change": {"cells": {"textContent": [{"document": {"uri": "c", "version": 1}, "changes": []}]}},
        },
    },
}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
async def test_the_server_goes_on(encoding: str) -> None:
    client = await ReplayClient.start(SETTINGS, serving(), encoding)
    assert client.process.stdin is not None
    for number, (name, message) in enumerate(GARBAGE.items()):
        client.open("x = \ny = 😀\n", URI)
        body = message if isinstance(message, bytes) else json.dumps({"jsonrpc": "2.0", **message}).encode()
        client.process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        other = f"file:///other{number}.py"
        client.open("x = \n", other)
        _, answer = client.complete((0, 4), other)
        reply = await asyncio.wait_for(answer, 60)
        assert reply.error is None, name
        assert reply.result, name
    process = psutil.Process(client.process.pid)
    await asyncio.sleep(0.3)
    process.cpu_percent()
    await asyncio.sleep(0.3)
    assert process.cpu_percent() < 50, "it runs in circles"
    await client.stop()
    assert client.process.returncode == 0
