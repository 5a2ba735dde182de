"""Standard input as a stream: pipes, sockets and files, whole or cut off, and servers that are given none."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from lsp_server.stdio import stream_of
from tests.lsp_server.conftest import ROOT
from tests.lsp_server.editor import serving


def framed(message: dict[str, Any]) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


INITIALIZE = framed({"id": 1, "method": "initialize", "params": {"processId": None, "capabilities": {}}})
GOODBYE = framed({"id": 2, "method": "shutdown"}) + framed({"method": "exit"})


async def read_all(source: BinaryIO, sink: BinaryIO) -> bytes:
    reader = await stream_of(source, sink)
    return await asyncio.wait_for(reader.read(), 20)


async def test_a_pipe_is_read_to_its_end() -> None:
    source, sink = os.pipe()
    with os.fdopen(sink, "wb") as writer:
        writer.write(b"one\ntwo")
    with os.fdopen(source, "rb") as reader, open(os.devnull, "r+b") as answers:
        assert await read_all(reader, answers) == b"one\ntwo"


async def test_a_file_is_read_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "input").write_bytes(b"text" * 100_000)
    with (tmp_path / "input").open("rb") as source:
        assert await read_all(source, source) == b"text" * 100_000


async def test_one_socket_for_both_ways_stays_blocking() -> None:
    ours, theirs = socket.socketpair()
    theirs.sendall(b"text")
    theirs.shutdown(socket.SHUT_WR)
    with ours, theirs, os.fdopen(ours.fileno(), "rb", closefd=False) as source:
        assert await read_all(source, source) == b"text"
        assert os.get_blocking(ours.fileno())


def served(command: list[str] | None = None, **how: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command or serving(), capture_output=True, cwd=ROOT, timeout=60, check=False, **how)


@pytest.mark.parametrize("command", [serving(), [sys.executable, "-m", "lsp_server.cli", "serve"]])
def test_a_conversation_that_is_a_file(tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "input").write_bytes(INITIALIZE + GOODBYE)
    with (tmp_path / "input").open("rb") as conversation:
        result = served(command, stdin=conversation)
    assert result.returncode == 0
    assert b'"capabilities"' in result.stdout
    assert b"Traceback" not in result.stderr


@pytest.mark.parametrize("cut", [5, 40, len(INITIALIZE) - 3])
def test_a_client_that_ends_in_the_middle_of_a_message(cut: int) -> None:
    result = served(input=INITIALIZE[:cut])
    assert result.returncode == 1
    assert b"Traceback" not in result.stderr


@pytest.mark.parametrize("closed", ["<&-", ">&-"])
def test_serving_without_an_input_or_an_output(closed: str) -> None:
    command = f"exec {sys.executable} -m lsp_server.cli serve {closed}"
    result = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60, cwd=ROOT, check=False)
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    assert "is closed" in result.stderr


def test_an_interrupt_ends_the_server_quietly() -> None:
    server = subprocess.Popen(
        serving(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
    )
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(INITIALIZE)
    server.stdin.flush()
    assert server.stdout.readline()
    server.send_signal(signal.SIGINT)
    _, errors = server.communicate(timeout=60)
    assert b"Traceback" not in errors
