"""Contenders of our own: one engine, drafted in different ways.

Knows the engine. All of them run the same loaded target; they differ in drafters and budget only, and each one has
sources of its own, so that none learns from what another one generated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from decoding.assistant import Assistant
from decoding.benchmark.workloads import Case
from decoding.budget import Budget, FixedBudget, MeasuredBudget
from decoding.drafters.drafter import Drafter
from decoding.drafters.growing import GrowingDrafter
from decoding.drafters.guarded import GuardedDrafter
from decoding.drafters.lookup import LookupSource
from decoding.drafters.paying import PayingDrafter
from decoding.drafters.recycle import RecycleSource
from decoding.drafters.source import Source
from decoding.drafters.successors import Successors, successors_for
from decoding.engine import Guide, Stopwatch, generate
from decoding.models.target import KVCache
from decoding.pass_cost import PassCost
from decoding.sampling import Sampling
from decoding.text_stream import TextStream

FIXED_SIZES = (3, 5, 7, 9, 12, 16)
"""Nodes of the fixed trees that the measured budget is compared with."""
SOURCE_SIZES = (4, 7, 12)
"""The same of one source alone."""
PLAIN, FULL, MODEL = "plain", "full", "model"


FIXED = (
    ("fixed", "lr", FIXED_SIZES),
    ("fixed lookup", "l", SOURCE_SIZES),
    ("fixed recycle", "r", SOURCE_SIZES),
)
"""Sweeps of fixed sizes: name, sources, nodes."""


@dataclass(frozen=True, slots=True)
class Run:
    """What one contender did with one case.

    Attributes:
        token_ids: generated tokens, at most what was asked for.
        decode_ms: time after the prompt was read; prefill_ms: before.
        passes: target passes, 0 where a peer does not tell.
        drafted: nodes that were verified.
        stages_ms: time by stage of a round, summed; empty for peers.
        sizes: nodes verified in each round.
    """

    token_ids: tuple[int, ...]
    decode_ms: float
    prefill_ms: float
    passes: int = 0
    drafted: int = 0
    stages_ms: dict[str, float] = field(default_factory=dict)
    sizes: tuple[int, ...] = ()


class Contender(Protocol):
    """Something that continues prompts."""

    @property
    def name(self) -> str:
        """For tables and plots."""

    def begin(self) -> None:
        """A new repeat: forget what was learned from the cases."""

    def run(self, case: Case, tokens: int) -> Run:
        """Continue the case by at most `tokens` tokens."""


class Ours:
    """Our engine with one way of drafting."""

    def __init__(self, name: str, engine: SharedEngine, sources: str, budget: Callable[[], Budget]) -> None:
        """`sources` is made of the letters l (lookup) and r (recycle), in the order of trust, and m (the draft model),
        which is asked only while it pays where it is not alone."""
        self.name = name
        self._engine = engine
        self._sources = sources
        self._make_budget = budget
        self.begin()

    def begin(self) -> None:
        """See `Contender.begin`."""
        made: dict[str, Callable[[], Source[Any]]] = {
            "l": LookupSource,
            "r": lambda: RecycleSource(self._engine.successors),
        }
        growing = [made[letter]() for letter in self._sources if letter in made]
        drafters: list[Drafter] = [GrowingDrafter(growing)] if growing else []
        draft = self._engine.assistant.writer.drafting.draft_model
        if "m" in self._sources and draft is not None:
            drafters.append(PayingDrafter(draft) if drafters else draft)
        size = self._engine.assistant.model.vocabulary.size
        self._drafters: list[Drafter] = [GuardedDrafter(drafter, size) for drafter in drafters]
        self._budget = self._make_budget()

    def run(self, case: Case, tokens: int) -> Run:
        """See `Contender.run`."""
        return self._engine.run(case, tokens, self._drafters, self._budget)


class SharedEngine:
    """One loaded model and the cache that holds the current case's prompt for all of our contenders."""

    def __init__(self, assistant: Assistant) -> None:
        self.assistant = assistant
        self.successors: Successors | None = successors_for(assistant.model.vocabulary)
        self._cache: KVCache = assistant.model.target.new_cache(assistant.writer.pool.capacity)
        self._prefill_ms: dict[str, float] = {}

    def run(self, case: Case, tokens: int, drafters: Sequence[Drafter], budget: Budget) -> Run:
        """Generate for one case; the constraint is off, since peers have none."""
        prefill_ms = self._prefilled(case)
        generated = list(case.prompt_ids)
        ends = self.assistant.model.vocabulary.end
        passes, drafted, total = 0, 0, 0.0
        sizes: list[int] = []
        stages: dict[str, float] = {}
        sampling = Sampling(temperature=case.temperature, seed=1)
        target = self.assistant.model.target
        for round_ in generate(target, self._cache, generated, drafters, Guide(), sampling, budget, ends):
            passes += 1
            drafted += len(round_.pruned.tree)
            sizes.append(len(round_.pruned.tree))
            total += round_.ms.total
            for stage in ("propose", "prune", "forward", "verify", "observe"):
                stages[stage] = stages.get(stage, 0.0) + getattr(round_.ms, stage)
            if len(generated) - len(case.prompt_ids) >= tokens:
                break
        new = generated[len(case.prompt_ids) :][:tokens]
        return Run(tuple(new), total, prefill_ms, passes, drafted, stages, tuple(sizes))

    def length_of(self, case: Case, plain: Run) -> int:
        """How many tokens of the plain run belong to the answer: up to an end token, or to where the case is over."""
        said = TextStream(b"")
        vocabulary = self.assistant.model.vocabulary
        for count, token in enumerate(plain.token_ids, 1):
            said.add(vocabulary.decode([token]))
            if token in vocabulary.end or case.over(said.text) is not None:
                return count
        return len(plain.token_ids)

    def _prefilled(self, case: Case) -> float:
        """Make the cache hold the prompt; what reading it took when it was read."""
        known = list(case.prompt_ids[:-1])
        key = f"{case.category} {case.id}"
        if list(self._cache.token_ids[: len(known)]) == known:
            self._cache.truncate(len(known))
            return self._prefill_ms[key]
        self._cache.truncate(0)
        clock = Stopwatch()
        self.assistant.model.target.prefill(known, self._cache, lambda: False)
        self._prefill_ms[key] = clock.lap_ms()
        return self._prefill_ms[key]


def our_contenders(engine: SharedEngine, cost: PassCost) -> Iterator[Ours]:
    """Plain, each source alone, all of them, and the fixed sizes."""

    def measured() -> Budget:
        return MeasuredBudget(PassCost(list(cost.sizes), list(cost.short_ms), list(cost.long_ms)))

    yield Ours(PLAIN, engine, "", lambda: FixedBudget(0))
    yield Ours("lookup", engine, "l", measured)
    yield Ours("recycle", engine, "r", measured)
    if engine.assistant.writer.drafting.draft_model is not None:
        yield Ours(MODEL, engine, "m", measured)
    yield Ours(FULL, engine, "lrm", measured)
    for name, sources, sizes in FIXED:
        for size in sizes:
            yield Ours(f"{name} {size}", engine, sources, lambda size=size: FixedBudget(size))  # type: ignore[misc]
