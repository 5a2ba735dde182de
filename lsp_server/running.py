"""A generation under way, and those that are kept when they have ended.

Knows generations, tasks and clocks; not what is asked or shown.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable

from lsp_server.generation import Generation

CACHED = 64
CACHED_BYTES = 32_000_000


class Running:
    """A generation under way and who waits for it."""

    def __init__(self, generation: Generation, task: asyncio.Task[None], before: Generation | None = None) -> None:
        self.generation = generation
        self.task = task
        self.waiting = 0
        self.before = before
        """For what is computed ahead: the suggestion on the screen, which has to be accepted first."""
        self._clock: asyncio.TimerHandle | None = None

    @property
    def ahead(self) -> bool:
        """Whether it is computed for a text that is not there yet."""
        return self.before is not None

    def agrees(self, data: bytes) -> bool:
        """Whether a document may still come to where this is of use."""
        return self.generation.agrees(data) or (self.before is not None and self.before.agrees(data))

    def stop_after(self, seconds: float) -> None:
        """Stops it unless somebody waits for it by then."""
        self.keep()
        self._clock = self.task.get_loop().call_later(seconds, self._stop_if_unwanted)

    def keep(self) -> None:
        """Stops the clock."""
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def stop(self) -> None:
        """Tells the worker to stop at its next step."""
        self.keep()
        self.task.cancel()

    def _stop_if_unwanted(self) -> None:
        if not self.waiting:
            self.task.cancel()


class Cache:
    """Finished generations, the latest used last, within a number and a size."""

    def __init__(self) -> None:
        self._kept: OrderedDict[int, Generation] = OrderedDict()
        self._bytes = 0

    def add(self, generation: Generation) -> None:
        """Keeps it, and drops the longest unused where there is no room."""
        self._kept[id(generation)] = generation
        self._bytes += generation.size
        while len(self._kept) > 1 and (len(self._kept) > CACHED or self._bytes > CACHED_BYTES):
            self._bytes -= self._kept.popitem(last=False)[1].size

    def find(self, wanted: Callable[[Generation], bool]) -> Generation | None:
        """The latest that is wanted."""
        for key in reversed(self._kept):
            if wanted(self._kept[key]):
                self._kept.move_to_end(key)
                return self._kept[key]
        return None

    def drop(self, unwanted: Callable[[Generation], bool]) -> None:
        """Forgets those that are unwanted."""
        for key in [key for key, generation in self._kept.items() if unwanted(generation)]:
            self._bytes -= self._kept.pop(key).size
