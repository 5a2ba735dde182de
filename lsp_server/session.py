"""What is suggested, when, from what: the latest request wins, and work that the user's typing agrees with lives on.

Knows documents and generations; nothing of the protocol. An answer comes from what was written before, from what is
being written, or from a new generation. In idle time it is computed what follows a suggestion once it is accepted, and
read what stands where the cursor rests.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from decoding.hole import Hole
from decoding.messages import EngineOptions
from decoding.trimming import Trimmed
from lsp_server.counts import Counts
from lsp_server.documents import View
from lsp_server.generation import Generation
from lsp_server.pace import Pace
from lsp_server.running import Running
from lsp_server.settings import Settings
from lsp_server.shown import Shown
from lsp_server.texts import Texts
from lsp_server.warming import Warming
from lsp_server.worker_client import WorkerClient
from lsp_server.writing import Linger, Writing

_COLD_PREFIX, _COLD_SUFFIX = 256, 64
"""Tokens around the cursor for the first answer at a place; the whole window is read while it is looked at."""
_FEW_TOKENS = 16
"""Of a prompt, read anew: what a word or a new line costs."""


Source = Literal["kept", "adopted", "new"]
"""Where an answer comes from: generated before, under way when it was asked for, or begun for it."""


@dataclass(frozen=True, slots=True)
class Suggestions:
    """An answer, best first; how it was come by, and how many prompt tokens had to be read for it."""

    best_first: tuple[Trimmed, ...]
    source: Source
    prefilled: int


NOTHING = Suggestions((), "kept", 0)


class Session:
    """All documents' suggestions, from one worker."""

    def __init__(
        self,
        worker: WorkerClient,
        settings: Settings,
        counts: Counts,
        on_activity: Callable[[bool], None] = lambda _: None,
        linger: Linger | None = None,
    ) -> None:
        self._worker = worker
        self._counts = counts
        self._on_activity = on_activity
        self._linger = linger or Linger()
        self.settings = settings
        self._texts = Texts()
        self._writing = self._new_writing()
        self._shown = Shown(counts)
        self._pace = Pace()
        self._turns: dict[str, asyncio.Future[None]] = {}
        self._warming = Warming(worker)

    def _new_writing(self) -> Writing:
        return Writing(self._worker, self._counts, self._texts, self._ended, self._linger)

    async def suggest(self, view: View, *, explicit: bool = False) -> Suggestions:
        """Suggestions at the view's cursor, best first; none where there is nothing to say or no use in it any more."""
        if self._texts.overtaken(view):
            return NOTHING
        turn = self._take_turn(view.uri)
        try:
            if not explicit and not makes_sense(view):
                return NOTHING
            found, source = await self._found(view, turn, explicit)
            if found is None:
                return NOTHING
            prefilled = found.prefilled if source != "kept" else 0
            self._counts.answered += 1
            self._counts.answered_unread += prefilled <= _FEW_TOKENS
            return Suggestions(tuple(self._answers(found, view, explicit)), source, prefilled)
        finally:
            if self._turns.get(view.uri) is turn:
                del self._turns[view.uri]

    def changed(self, uri: str, data: bytes, revision: int) -> None:
        """A document was edited: who waits for the text before gets nothing, and what contradicts it stops."""
        self._pace.key(time.monotonic())
        self._warming.drop()
        self._texts.note(uri, data, revision)
        self._end_turn(uri)
        self._shown.edited(uri, data)
        self._writing.changed(uri, data)

    def closed(self, uri: str) -> None:
        """A document was closed: nothing of it is kept."""
        self._end_turn(uri)
        self._shown.closed(uri)
        self._texts.forget(uri)
        self._warming.forget(uri)
        self._writing.closed(uri)

    def rest(self, view: View) -> None:
        """The cursor is here, or may be expected here: in idle time the model reads what stands around it.

        Once in each document, and at every place where it is being written: who only reads is not to hear the fan.
        """
        suggest = self.settings.suggest
        wanted = suggest.warm and suggest.automatic and not self._texts.overtaken(view)
        if wanted and (self._texts.is_written(view.uri) or not self._warming.knows(view.uri)):
            self._warming.rest(view, self.settings.engine_options())

    def step_aside(self) -> None:
        """Somebody waits for something else: what nobody waits for stops."""
        self._warming.drop()
        self._writing.step_aside()

    def reconfigure(self, settings: Settings) -> None:
        """Other settings: what was computed under the old ones is dropped."""
        self.stop()
        self.settings = settings
        self._writing = self._new_writing()
        self._warming = Warming(self._worker)

    def stop(self) -> None:
        """Stops all work."""
        for uri in list(self._turns):
            self._end_turn(uri)
        self._warming.drop()
        self._writing.stop()

    # Turns ------------------------------------------------------------------------------------------------------

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

    # Where an answer comes from ---------------------------------------------------------------------------------

    async def _found(self, view: View, turn: asyncio.Future[None], explicit: bool) -> tuple[Generation | None, Source]:
        """A finished generation that has the answer, and how it was come by. None if it is not wanted any more."""
        if (kept := self._kept(view, explicit)) is not None:
            self._counts.from_cache += 1
            return kept, "kept"
        source: Source = "adopted"
        if not explicit and self._adopted(view, explicit) is None and (delay := self._delay()):
            await asyncio.wait([turn], timeout=delay)
        while not turn.done():
            running = self._adopted(view, explicit)
            if running is None:
                running, source = self._begin(view, self._options(view, explicit)), "new"
            else:
                self._counts.adopted += 1
            if await self._first_lines(running, view, turn, explicit):
                return running.generation, source
            if running.generation.failed:
                return None, source
            if not turn.done() and (kept := self._kept(view, explicit)) is not None:
                return kept, source
        return None, source

    async def _first_lines(self, running: Running, view: View, turn: asyncio.Future[None], explicit: bool) -> bool:
        """Waits until a generation ends; True if it takes long and has whole lines to show before."""
        patience: float | None = None if explicit else self._linger.first_lines
        while not turn.done() and not running.task.done():
            await self._wait(running, turn, patience)
            if not explicit and not turn.done() and self._says_enough(running, view):
                return True
            patience = None if explicit else self._linger.look_again
        return False

    def _says_enough(self, running: Running, view: View) -> bool:
        """Whether what was written so far has whole lines to show; the rest is there when they are accepted."""
        generation = running.generation
        typed = generation.typed(view)
        if running.task.done() or typed is None or "\n" not in generation.raws.get(0, "")[len(typed) :].strip():
            return False
        return generation.answer(view, typed, self.settings.suggest.multiline) is not None

    def _kept(self, view: View, explicit: bool) -> Generation | None:
        """A finished generation for this view: with something left to say, or with nothing from the start."""
        multiline = self.settings.suggest.multiline
        wanted = self._alternatives(explicit)

        def serves(generation: Generation) -> bool:
            if generation.view.uri != view.uri or generation.options.alternatives < wanted:
                return False
            typed = generation.typed(view)
            return typed is not None and (not typed or generation.answer(view, typed, multiline) is not None)

        return self._writing.kept.find(serves)

    def _adopted(self, view: View, explicit: bool) -> Running | None:
        """The running generation, if it is on its way to answer this view."""
        running = self._writing.on_its_way(view.uri)
        if running is None or running.generation.options.alternatives < self._alternatives(explicit):
            return None
        typed = running.generation.typed(view)
        return running if typed is not None and running.generation.may_follow(typed) else None

    def _answers(self, generation: Generation, view: View, explicit: bool) -> list[Trimmed]:
        """The distinct alternatives that agree with what was typed of them, without what was turned down here."""
        typed = generation.typed(view)
        answers: list[Trimmed] = []
        for rank in generation.raws if typed is not None else ():
            answer = generation.answer(view, typed or "", self.settings.suggest.multiline, rank)
            if answer is None or answer.text in (other.text for other in answers):
                continue
            if explicit:
                self._shown.forgive(view, answer)
            if not self._shown.unwanted(view, answer):
                answers.append(answer)
        if answers:
            self._shown.show(generation, view, answers[0])
            self._work_ahead(generation, view, answers[0])
        return answers[: self._alternatives(explicit)]

    # What runs --------------------------------------------------------------------------------------------------

    def _begin(self, view: View, options: EngineOptions, before: Generation | None = None) -> Running:
        self._warming.drop()
        # Who waits in another document gets nothing: two that begin anew in turn would stop each other for ever.
        for uri in [uri for uri in self._turns if uri != view.uri]:
            self._end_turn(uri)
        running = self._writing.begin(view, options, before)
        self._on_activity(not running.ahead)
        return running

    async def _wait(self, running: Running, turn: asyncio.Future[None], seconds: float | None) -> None:
        began = time.monotonic()
        await self._writing.wait(running, turn, seconds)
        if running.generation.finished:
            self._pace.answered(time.monotonic() - began)

    def _ended(self, running: Running) -> None:
        """Nothing is being written any more."""
        generation = running.generation
        self._on_activity(False)
        if generation.finished and generation.options.prefix_tokens == self.settings.suggest.prefix_tokens:
            self._warming.note(generation.view)
        if generation.finished and not running.ahead:
            self.rest(generation.view)

    # Ahead of the user ------------------------------------------------------------------------------------------

    def _work_ahead(self, generation: Generation, view: View, suggestion: Trimmed) -> None:
        """In idle time, what comes after the suggestion, and with it the whole window of a place that is new to us."""
        if self._writing.running is not None or not self.settings.suggest.prefetch or view.hypothetical:
            return
        after = view.what_if(suggestion.start, suggestion.end, suggestion.text)
        if self._kept(after, explicit=False) is None:
            self._counts.prefetched += 1
            options = self.settings.engine_options().model_copy(update={"multiline": "always"})
            self._begin(after, options, before=generation)

    def _options(self, view: View, explicit: bool) -> EngineOptions:
        """The settings' options, with a short window where the text around the cursor has not been read."""
        options = self.settings.engine_options(explicit=explicit)
        if self._warming.is_read(view) or not self.settings.suggest.warm:
            return options
        short = {
            "prefix_tokens": min(options.prefix_tokens, _COLD_PREFIX),
            "suffix_tokens": min(options.suffix_tokens, _COLD_SUFFIX),
        }
        return options.model_copy(update=short)

    def _alternatives(self, explicit: bool) -> int:
        return self.settings.suggest.alternatives if explicit else 1

    def _delay(self) -> float:
        chosen = self.settings.suggest.debounce_ms
        return chosen / 1000 if chosen >= 0 else self._pace.delay(time.monotonic())


LINE = 1_000
"""Bytes on either side that hold the cursor's line, or as much of a longer one as matters."""
_OPENS_GAP = re.compile(r"[\s(\[{=+\-*/%<>,:.|&^~!@\"']\Z")


def makes_sense(view: View) -> bool:
    """Whether to suggest unasked: not inside a word, and before other text of the line only into a gap or brackets."""
    hole = Hole.at(*view.window(LINE, LINE))
    after = hole.after.strip()
    if not after:
        return True
    if hole.after[0].isalnum() or hole.after[0] == "_":
        return False
    return after[0] in ")]}\"',:;" or _OPENS_GAP.search(hole.before) is not None
