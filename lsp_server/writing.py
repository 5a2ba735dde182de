"""The one generation under way: begun, listened to, stopped once it is of no use, and kept when it has ended.

Knows the worker, generations and the newest texts; nothing of what is asked, shown or turned down. Editors cancel at
every keystroke: here a cancel only starts a clock. A generation goes on while the document agrees with what it writes
and somebody may still ask for it; it is stopped at once by an edit that contradicts it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from decoding.errors import DraftwoodError, WorkerDied
from decoding.messages import Chunk, EngineOptions
from lsp_server.counts import Counts
from lsp_server.documents import View
from lsp_server.generation import Generation
from lsp_server.running import Cache, Running
from lsp_server.texts import Texts
from lsp_server.worker_client import WorkerClient

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Linger:
    """How long it is waited, in seconds: for whom a generation goes on, and what is shown of a long one."""

    cancelled: float = 0.08
    """After a cancel: the edit that caused it is about to arrive, or the user went away."""
    agreed: float = 0.5
    """After an edit that agrees: the editor is about to ask again (Neovim waits 200 ms)."""
    first_lines: float = 0.5
    """After that, whole lines are shown while the rest is still being written."""
    look_again: float = 0.1


class Writing:
    """What the worker writes, one text at a time, and the texts that are kept."""

    def __init__(
        self, worker: WorkerClient, counts: Counts, texts: Texts, on_end: Callable[[Running], None], linger: Linger
    ) -> None:
        """`on_end` is told of each generation that ended while no other had taken its place."""
        self._worker = worker
        self._counts = counts
        self._texts = texts
        self._on_end = on_end
        self._linger = linger
        self.kept = Cache()
        self.running: Running | None = None

    def begin(self, view: View, options: EngineOptions, before: Generation | None = None) -> Running:
        """A new generation, ahead of the user if `before` has to be accepted first; the one before it stops."""
        self.stop()
        generation = Generation.at(view, options)
        task = asyncio.create_task(self._generate(generation), name="generation")
        self.running = running = Running(generation, task, before)
        task.add_done_callback(lambda _: self._ended(running))
        self._counts.generated += 1
        return running

    def on_its_way(self, uri: str) -> Running | None:
        """The running generation if it is one for that document and goes on."""
        running = self.running
        if running is None or running.generation.view.uri != uri or running.task.done() or running.task.cancelling():
            return None
        return running

    async def wait(self, running: Running, turn: asyncio.Future[None], seconds: float | None = None) -> None:
        """Until the generation ends, the turn is over or time is up. A cancel starts the clock."""
        running.keep()
        running.waiting += 1
        try:
            await asyncio.wait([running.task, turn], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            running.stop_after(self._linger.agreed if turn.done() else self._linger.cancelled)
            raise
        finally:
            running.waiting -= 1

    def changed(self, uri: str, data: bytes) -> None:
        """A document was edited: what contradicts it stops."""
        running = self.running
        if running is None or running.generation.view.uri != uri:
            return
        if not running.agrees(data):
            running.stop()
        elif not running.ahead:
            running.stop_after(self._linger.agreed)

    def closed(self, uri: str) -> None:
        """A document was closed: nothing of it is kept."""
        if self.running is not None and self.running.generation.view.uri == uri:
            self.running.stop()
        self.kept.drop(lambda generation: generation.view.uri == uri)
        self._worker.forget(uri)

    def step_aside(self) -> None:
        """What nobody waits for stops."""
        if self.running is not None and self.running.ahead and not self.running.waiting:
            self.running.stop()

    def stop(self) -> None:
        """What is being written stops at its next step."""
        if self.running is not None:
            self.running.stop()

    async def _generate(self, generation: Generation) -> None:
        try:
            try:
                await self._complete(generation)
            except WorkerDied:
                await self._complete(generation)  # once more: it may have died before it heard of this
            self.kept.add(generation)
        except DraftwoodError as error:
            log.warning("no suggestion: %s", error)
            self._counts.failed += 1
            generation.failed = True

    async def _complete(self, generation: Generation) -> None:
        generation.raws.clear()
        generation.finish(
            await self._worker.complete(
                generation.view, generation.options, lambda chunk: self._take(generation, chunk)
            )
        )

    def _take(self, generation: Generation, chunk: Chunk) -> None:
        """More text: stops if it contradicts what the user typed meanwhile."""
        generation.add(chunk)
        self._counts.tokens += len(chunk.token_ids)
        self._counts.tokens_shown += len(chunk.token_ids) if generation.seen else 0
        running = self.running
        if running is None or running.generation is not generation or not self._texts.overtaken(generation.view):
            return
        may_judge = running.ahead or not generation.view.hypothetical
        if may_judge and not running.agrees(self._texts.newest(generation.view)):
            running.stop()

    def _ended(self, running: Running) -> None:
        running.keep()
        error = None if running.task.cancelled() else running.task.exception()
        if error is not None:  # one that is nobody's fault but ours: who waits must not begin it again and again
            log.error("a generation failed", exc_info=error)
            self._counts.failed += 1
            running.generation.failed = True
        if self.running is running:
            self.running = None
            self._on_end(running)
