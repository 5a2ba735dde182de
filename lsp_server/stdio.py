"""Standard input as a stream of the event loop.

Knows file descriptors and asyncio; no messages. pygls reads through a pool of threads, three hand-overs a message, and
where the engine has every core busy each of them waits for its turn: reading where the handlers run takes none.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import threading
from typing import BinaryIO

_LIMIT = 2**20
"""Bytes that are taken in before the writer is made to wait, about two times over."""
_PIECE = 2**16


async def stream_of(source: BinaryIO, sink: BinaryIO) -> asyncio.StreamReader:
    """What comes from `source`; `sink` is where answers go, and stays blocking."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_LIMIT)
    if _may_be_polled(source.fileno(), sink.fileno()):
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), source)
    else:
        threading.Thread(target=_pump, args=(source.fileno(), loop, reader), name="reader", daemon=True).start()
    return reader


def _may_be_polled(source: int, sink: int) -> bool:
    """Whether an event loop can wait for it: on Windows, and for files and terminals, it cannot. Where answers go to
    the very same socket it must not, since polling makes both ways non-blocking."""
    if os.name == "nt":
        return False
    kind = os.fstat(source)
    return stat.S_ISFIFO(kind.st_mode) or (stat.S_ISSOCK(kind.st_mode) and not os.path.sameopenfile(source, sink))


def _pump(source: int, loop: asyncio.AbstractEventLoop, reader: asyncio.StreamReader) -> None:
    with contextlib.suppress(RuntimeError):  # the loop may be closed by now: nobody wants this any more
        while piece := os.read(source, _PIECE):
            loop.call_soon_threadsafe(reader.feed_data, piece)
        loop.call_soon_threadsafe(reader.feed_eof)
