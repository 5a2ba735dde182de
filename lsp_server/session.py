"""What is suggested, when, from what: the latest request wins, and work that the user's typing agrees with lives on.

Knows documents, generations and the worker; nothing of the protocol. Editors cancel at every keystroke: here a cancel
only starts a clock. A generation goes on while the document agrees with what it writes and somebody may still ask for
it; it is stopped at once by an edit that contradicts it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from decoding.errors import DraftwoodError, WorkerDied
from decoding.messages import Chunk, EngineOptions
from decoding.trimming import Trimmed
from lsp_server.counts import Counts
from lsp_server.documents import Document, DocumentStore, View
from lsp_server.generation import Generation
from lsp_server.settings import Settings
from lsp_server.worker_client import WorkerClient

log = logging.getLogger(__name__)

CACHED = 64
CACHED_BYTES = 32_000_000


@dataclass(frozen=True, slots=True)
class Linger:
    """How long a generation that nobody waits for goes on, in seconds."""

    cancelled: float = 0.08
    """After a cancel: the edit that caused it is about to arrive, or the user went away."""
    agreed: float = 0.5
    """After an edit that agrees: the editor is about to ask again (Neovim waits 200 ms)."""


class Running:
    """A generation under way and who waits for it."""

    def __init__(self, generation: Generation, task: asyncio.Task[None]) -> None:
        self.generation = generation
        self.task = task
        self.waiting = 0
        self._clock: asyncio.TimerHandle | None = None

    def stop_after(self, seconds: float) -> None:
        """Stops it unless somebody waits for it by then."""
        self.keep()
        self._clock = asyncio.get_running_loop().call_later(seconds, self._stop_if_unwanted)

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


class Session:
    """All documents' suggestions, from one worker."""

    def __init__(
        self,
        documents: DocumentStore,
        worker: WorkerClient,
        settings: Settings,
        counts: Counts,
        on_activity: Callable[[bool], None] = lambda _: None,
        linger: Linger | None = None,
    ) -> None:
        self._documents = documents
        self._worker = worker
        self._counts = counts
        self.settings = settings
        self._on_activity = on_activity
        self._linger = linger or Linger()
        self._cache = Cache()
        self._running: Running | None = None
        self._turns: dict[str, asyncio.Future[None]] = {}

    async def suggest(self, view: View, *, explicit: bool = False) -> list[Trimmed]:
        """Suggestions at the view's cursor, best first; none where there is nothing to say or no use in it any more."""
        turn = self._take_turn(view.uri)
        options = self.settings.engine_options(explicit=explicit)
        running: Running | None = None
        try:
            while not turn.done():
                if (kept := self._cached(view, options)) is not None:
                    self._counts.from_cache += running is None
                    return kept
                running = self._adopted(view, options) or self._begin(view, options)
                await self._wait(running, turn)
                if running.generation.failed:
                    return []
        finally:
            if self._turns.get(view.uri) is turn:
                del self._turns[view.uri]
        return []

    def changed(self, document: Document) -> None:
        """A document was edited: who waits for the text before gets nothing, and what contradicts it stops."""
        self._end_turn(document.uri)
        running = self._running
        if running is None or running.generation.view.uri != document.uri:
            return
        if running.generation.agrees(document.data):
            running.stop_after(self._linger.agreed)
        else:
            running.stop()

    def closed(self, uri: str) -> None:
        """A document was closed: nothing of it is kept."""
        self._end_turn(uri)
        if self._running is not None and self._running.generation.view.uri == uri:
            self._running.stop()
        self._cache.drop(lambda generation: generation.view.uri == uri)
        self._worker.forget(uri)

    def stop(self) -> None:
        """Stops all work."""
        for uri in list(self._turns):
            self._end_turn(uri)
        if self._running is not None:
            self._running.stop()

    def _take_turn(self, uri: str) -> asyncio.Future[None]:
        """The newest request of a document; the one before gets nothing."""
        self._end_turn(uri)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._turns[uri] = turn
        return turn

    def _end_turn(self, uri: str) -> None:
        turn = self._turns.pop(uri, None)
        if turn is not None and not turn.done():
            turn.set_result(None)

    def _cached(self, view: View, options: EngineOptions) -> list[Trimmed] | None:
        """The answer from what was generated before; None where that has none."""
        found = self._cache.find(lambda generation: _serves(generation, view, options))
        return _answers(found, view) if found is not None else None

    def _adopted(self, view: View, options: EngineOptions) -> Running | None:
        """The running generation, if it is on its way to answer this view."""
        running = self._running
        if running is None or running.generation.finished or running.generation.options != options:
            return None
        typed = running.generation.typed(view)
        if typed is None or not running.generation.may_follow(typed):
            return None
        self._counts.adopted += 1
        return running

    def _begin(self, view: View, options: EngineOptions) -> Running:
        """A new generation; the one before it stops."""
        if self._running is not None:
            self._running.stop()
        self._counts.generated += 1
        generation = Generation.at(view, options)
        task = asyncio.create_task(self._generate(generation), name="generation")
        self._running = running = Running(generation, task)
        task.add_done_callback(lambda _: self._ended(running))
        self._on_activity(True)
        return running

    async def _wait(self, running: Running, turn: asyncio.Future[None]) -> None:
        """Until the generation ends or the turn is over. A cancel starts the clock for what nobody else wants."""
        running.keep()
        running.waiting += 1
        try:
            await asyncio.wait([running.task, turn], return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            running.stop_after(self._linger.agreed if turn.done() else self._linger.cancelled)
            raise
        finally:
            running.waiting -= 1

    async def _generate(self, generation: Generation) -> None:
        try:
            try:
                await self._complete(generation)
            except WorkerDied:
                await self._complete(generation)  # once more: it may have died before it heard of this
            self._cache.add(generation)
        except DraftwoodError as error:
            log.warning("no suggestion: %s", error)
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
        document = self._documents.get(generation.view.uri)
        running = self._running
        if running is None or running.generation is not generation or document is None or generation.view.patches:
            return
        if document.revision != generation.view.revision and not generation.agrees(document.data):
            running.stop()

    def _ended(self, running: Running) -> None:
        running.keep()
        if self._running is running:
            self._running = None
            self._on_activity(False)


def _serves(generation: Generation, view: View, options: EngineOptions) -> bool:
    """Whether a finished generation has the answer for the view: still something to say, or nothing from the start."""
    if generation.options != options or generation.view.uri != view.uri:
        return False
    typed = generation.typed(view)
    return typed is not None and (not typed or generation.answer(view, typed) is not None)


def _answers(generation: Generation, view: View) -> list[Trimmed]:
    """The distinct alternatives that agree with what was typed of them."""
    typed = generation.typed(view)
    if typed is None:
        return []
    answers: list[Trimmed] = []
    for rank in generation.raws:
        answer = generation.answer(view, typed, rank)
        if answer is not None and answer.text not in (other.text for other in answers):
            answers.append(answer)
    return answers
