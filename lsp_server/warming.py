"""Reading a document's window into the model before anybody asks: where it was opened, and where the cursor rests.

Knows views and the worker; not what is suggested. It is the least urgent of all work: one place at a time, the latest,
begun when nothing else runs and dropped at the first sign of anything else.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from typing import Protocol

from decoding.errors import DraftwoodError
from decoding.messages import EngineOptions
from lsp_server.documents import View

log = logging.getLogger(__name__)

_REST = 0.25
"""Seconds without an edit, a question or another place: who moves through a file with the arrow keys is faster."""
_REMEMBERED = 32
"""More places than the worker has caches for."""


class Reader(Protocol):
    """What is needed of the worker."""

    @property
    def busy(self) -> bool:
        """Whether any job is under way."""

    async def warm(self, view: View, options: EngineOptions) -> None:
        """Prefills for a completion at the view's cursor."""


class Warming:
    """Which places were read, and the one that is read next."""

    def __init__(self, worker: Reader, rest: float = _REST) -> None:
        self._worker = worker
        self._rest = rest
        self._read: OrderedDict[tuple[str, int], None] = OrderedDict()
        self._clock: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    def is_read(self, view: View) -> bool:
        """Whether the whole window around the view's cursor was read, and not only the lines next to it."""
        return _place(view) in self._read

    def knows(self, uri: str) -> bool:
        """Whether any place of a document was read."""
        return any(place[0] == uri for place in self._read)

    def note(self, view: View) -> None:
        """The whole window was read."""
        self._read[_place(view)] = None
        self._read.move_to_end(_place(view))
        if len(self._read) > _REMEMBERED:
            self._read.popitem(last=False)

    def rest(self, view: View, options: EngineOptions) -> None:
        """The cursor rests here, as far as is known."""
        self.drop()
        if not self.is_read(view):
            self._wait(view, options)

    def drop(self) -> None:
        """Something else is to be done."""
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def forget(self, uri: str) -> None:
        """A document was closed."""
        self.drop()
        for place in [place for place in self._read if place[0] == uri]:
            del self._read[place]

    def _wait(self, view: View, options: EngineOptions) -> None:
        self._clock = asyncio.get_running_loop().call_later(self._rest, self._begin, view, options)

    def _begin(self, view: View, options: EngineOptions) -> None:
        self._clock = None
        if self._worker.busy:
            self._wait(view, options)
        else:
            self._task = asyncio.create_task(self._warm(view, options), name="warming")

    async def _warm(self, view: View, options: EngineOptions) -> None:
        try:
            await self._worker.warm(view, options)
        except DraftwoodError as error:
            log.info("nothing was read ahead: %s", error)
            return
        self.note(view)


def _place(view: View) -> tuple[str, int]:
    """What stays the same while somebody writes: the text behind the cursor, which the model reads first."""
    return view.uri, len(view.data) - view.follows
