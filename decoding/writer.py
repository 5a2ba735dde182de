"""Writer: from the tokens of a prompt to a text, round by round.

Knows a loaded model, its caches and drafters, and the engine. Must not know documents, cursors or chats: what guides a
text and what ends it comes from the caller.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from decoding.draft_tree import DraftTree
from decoding.drafters.drafter import Drafter
from decoding.drafting import Drafting
from decoding.engine import Guide, Round, generate
from decoding.errors import BadPosition, Cancelled
from decoding.kv_cache import CachePool
from decoding.messages import Chunk, EngineOptions, ModelProgress, StopReason
from decoding.models.loading import LoadedModel
from decoding.models.target import KVCache
from decoding.sampling import Sampling, best_tokens
from decoding.stats import Tally
from decoding.steering import Steering
from decoding.text_stream import TextStream
from decoding.together import Branch, Forest
from grammars.constraint import Constraint

CancelCheck = Callable[[], bool]
Emit = Callable[[Chunk], None]
Watch = Callable[[Round], None]
T = TypeVar("T")
Text = tuple[str, int, StopReason, str | None]
"""A raw text: what it says, how many tokens it has, why it ended, and why the constraint went off on the way."""

_CACHED_PROMPTS = 4
_MORE_ROWS = 64
"""Room behind the longest text for the rows of a tree."""


@dataclass(slots=True)
class Request:
    """One generation on its way: what was asked, and what came of it so far.

    Attributes:
        tokens: prompt and text.
        prompt_length: tokens of the prompt.
        healed: bytes that the text spells again first.
    """

    tokens: list[int]
    prompt_length: int
    healed: bytes
    tally: Tally = field(default_factory=Tally)

    @property
    def generated(self) -> list[int]:
        """The tokens after the prompt."""
        return self.tokens[self.prompt_length :]


@dataclass(frozen=True, slots=True)
class Start:
    """Where a text begins: its prompt, what guides it, and how its tokens are chosen."""

    request: Request
    guide: Guide
    sampling: Sampling


class Writer:
    """One loaded model with its caches and drafters.

    Attributes:
        drafting: what proposes tokens, and how many are verified.
        pool: keys and values of the latest prompts.
    """

    def __init__(self, model: LoadedModel, options: EngineOptions, progress: Callable[[ModelProgress], None]) -> None:
        """Raises what `Drafting` raises for a draft model that cannot be used."""
        self.model = model
        capacity = min(options.context_tokens, model.target.max_context) + _MORE_ROWS
        self.pool = CachePool(model.target, capacity, _CACHED_PROMPTS)
        self.drafting = Drafting(model, options, capacity, progress)

    @property
    def room(self) -> int:
        """Tokens of the longest prompt with its text."""
        return self.pool.capacity - _MORE_ROWS

    def write_all(
        self,
        starts: Sequence[Start],
        options: EngineOptions,
        steering: Steering,
        cancelled: CancelCheck,
        emit: Emit,
        watch: Watch | None,
    ) -> Iterator[tuple[Start, Text]]:
        """What the model writes after every start: as many at a time as fit into one pass; one alone is drafted."""
        rows = min(self.model.target.most_rows, self.pool.capacity - starts[0].request.prompt_length) - 1
        together = max(1, rows // options.max_tokens)
        for begin in range(0, len(starts), together):
            group = starts[begin : begin + together]
            branches = [Branch(start.request.tokens, start.guide, start.sampling) for start in group]
            cache = self.prefilled(group[0].request, cancelled) if len(group) > 1 else None
            forest = Forest(self.model.target, cache, branches, self.model.vocabulary.end) if cache else None
            runs = [
                self.write(start, options, steering, cancelled, watch, rounds=forest.rounds(number) if forest else ())
                for number, start in enumerate(group)
            ]
            try:
                texts = _in_turns(runs, emit)
            finally:
                if forest is not None:
                    forest.close()
            yield from zip(group, texts, strict=True)

    def write(
        self,
        start: Start,
        options: EngineOptions,
        steering: Steering,
        cancelled: CancelCheck,
        watch: Watch | None,
        kept: Sequence[int] = (),
        rounds: Iterable[Round] = (),
    ) -> Generator[Chunk, None, Text]:
        """Generate until something ends the text, which is returned; the chunks are what came of it in each round.
        `kept`: tokens of it that are there already; `rounds`: those before it goes on alone.

        Whether the text is over is asked after every single token, so that the answer does not depend on how many
        tokens a pass emits.
        """
        request, guide = start.request, start.guide
        spoken = TextStream(request.healed)
        tokens = list(kept)
        for token in kept:
            spoken.add(self.model.vocabulary.decode([token]))
        ends = self.model.vocabulary.end | steering.stops
        reason: StopReason = "length"
        for round_ in itertools.chain(rounds, self._rounds(start, options, steering.pause, cancelled)):
            request.tally.add(round_)
            if watch is not None:
                watch(round_)
            new, said = [], ""
            verdict: StopReason | None = "constraint" if round_.verdict.exhausted else None
            for token in round_.token_ids:
                if token in ends:
                    verdict = "end"
                    break
                tokens.append(token)
                new.append(token)
                said += spoken.add(steering.marks.get(token) or self.model.vocabulary.decode([token]))
                verdict = steering.over(spoken.text) or ("length" if len(tokens) >= options.max_tokens else None)
                if verdict is not None:
                    break
            if new:
                yield Chunk(text=said, token_ids=tuple(new), alternative=start.sampling.alternative)
            if verdict is None and cancelled():
                verdict = "cancelled"
            if verdict is not None:
                reason = verdict
                break
        return spoken.text, len(tokens), reason, guide.off_reason

    def _rounds(
        self,
        start: Start,
        options: EngineOptions,
        pause: Callable[[], bool],
        cancelled: CancelCheck,
    ) -> Iterator[Round]:
        """The engine's rounds. After a pause in which the caches and drafters served another request they begin
        again where they were: keys and values that are gone are computed anew, and a sample depends on its position
        only."""
        interrupted = True
        while interrupted:
            interrupted = False
            for round_ in generate(
                self.model.target,
                self.prefilled(start.request, cancelled),
                start.request.tokens,
                self.drafters(options),
                start.guide,
                start.sampling,
                self.drafting.budget(options),
                self.model.vocabulary.end,
            ):
                yield round_
                if pause():
                    interrupted = not (round_.verdict.ended or round_.verdict.exhausted)
                    break

    def prefilled(self, request: Request, cancelled: CancelCheck) -> KVCache:
        """A cache that holds everything of the request's tokens but the last. Raises BadPosition, Cancelled."""
        started = time.perf_counter()
        known = request.tokens[:-1]
        room = self.room
        if len(known) >= room:
            raise BadPosition(f"the prompt has {len(known)} tokens, the context holds {room}: raise context_tokens")
        cache, reused = self.pool.acquire(known)
        if cancelled():
            raise Cancelled("useless before it began")
        self.model.target.prefill(known[reused:], cache, cancelled)
        if not request.tally.steps:
            request.tally.prompt_tokens = len(request.tokens)
            request.tally.reused_tokens = reused
        request.tally.prefill_ms += 1e3 * (time.perf_counter() - started)
        return cache

    def ranked_first_tokens(self, request: Request, state: Constraint, count: int, cancelled: CancelCheck) -> list[int]:
        """The `count` tokens that the text most probably begins with, of those that `state` allows; best first."""
        cache = self.prefilled(request, cancelled)
        scored = self.model.target.forward_tree(request.tokens[-1], DraftTree.empty(), cache)
        return best_tokens(scored.logits[0], state, count)

    def drafters(self, options: EngineOptions) -> list[Drafter]:
        """What proposes tokens under these options."""
        return [] if options.drafter == "none" else self.drafting.drafters(options)


def sampling_of(options: EngineOptions, alternative: int = 0) -> Sampling:
    """The sampling part of the options."""
    return Sampling(
        temperature=options.temperature,
        top_p=options.top_p,
        top_k=options.top_k,
        min_p=options.min_p,
        repetition_penalty=options.repetition_penalty,
        seed=options.seed,
        alternative=alternative,
    )


def _in_turns(runs: Sequence[Generator[Chunk, None, T]], emit: Emit) -> list[T]:
    """What the generators return, each of which is asked for one chunk a turn."""
    results: dict[int, T] = {}
    while len(results) < len(runs):
        for number, run in enumerate(runs):
            if number not in results:
                try:
                    emit(next(run))
                except StopIteration as end:
                    results[number] = end.value
    return [results[number] for number in range(len(runs))]


def drained(chunks: Generator[Chunk, None, T], emit: Emit) -> T:
    """Hand every chunk to `emit`; what the generator returns."""
    while True:
        try:
            chunk = next(chunks)
        except StopIteration as end:
            result: T = end.value
            return result
        emit(chunk)
