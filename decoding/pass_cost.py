"""PassCost: what one pass of this model on this machine takes, by its rows and by the context before it.

Knows milliseconds. Must not know trees or tokens. Measured once in seconds, kept in the user's cache folder (numbers
only), and corrected by every pass that is made: where reality drifts from what was measured, reality wins. Beside that
lasting measurement stands what passes take at this moment (`now`), which is forgotten soon.
"""

from __future__ import annotations

import itertools
import json
import logging
import os
import platform
import statistics
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path

import numpy as np

from decoding.draft_tree import DraftTree
from decoding.models.target import KVCache, TargetModel

_log = logging.getLogger(__name__)

SIZES = (1, 2, 4, 6, 8, 10, 12, 14, 16, 20, 24, 32)
"""Rows of the passes that are measured; between them the cost is interpolated."""
_SHORT, _LONG = 32, 768
_STEP = 128
"""Tokens of context that are taken to cost the same."""
_REPEATS = 6
_FORMAT = 2
_DRIFT = 0.5
"""A size whose passes take this much more or less than measured, relative to all sizes, was measured wrongly or on
another machine."""
_ENOUGH = 32
"""Passes of a size that are judged together, by the fastest: whatever disturbs a pass makes it slower. Judged by
their mean, an hour on a busy machine had left 16 rows at five times the cost of one, and drafting had stopped. Sizes
are not used at the same moments, so that on a busy machine even the fastest differ by 20-30%: only what is far off is
corrected."""

_MOMENT = 7
"""Passes of a size whose median tells what it costs now; single ones are disturbed by whatever else runs."""
_FRESH = 96
"""Passes after which an observation says nothing about the moment: a second or two. On a virtual machine whose memory
slows down from 60 to 36 GB/s for seconds at a time, T(8)/T(1) falls from 1.5 to 1.1 with it, and trees of nine nodes
were worth 1.76 times plain decoding where the lasting measurement chose four and got 1.55."""
_FEWEST = 3


@dataclass(slots=True)
class PassCost:
    """T(rows, context) in milliseconds: interpolated between measured sizes, linear in the context.

    Attributes:
        sizes: rows, ascending.
        short_ms, long_ms: the cost of each size after `_SHORT` and `_LONG` tokens of context.
    """

    sizes: list[int]
    short_ms: list[float]
    long_ms: list[float]
    _recent: list[deque[float]] = field(default_factory=list, repr=False)
    _tables: dict[int, list[float]] = field(default_factory=dict, repr=False)
    _passes: int = field(default=0, repr=False)
    _now: tuple[tuple[int, int], list[float]] | None = field(default=None, repr=False)
    _moment: list[deque[tuple[int, float]]] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        self._recent = [deque(maxlen=_ENOUGH) for _ in self.sizes]
        self._moment = [deque(maxlen=_MOMENT) for _ in self.sizes]

    def table(self, context: int) -> list[float]:
        """Milliseconds by rows: index 1 is plain decoding, index 0 is unused; as far as it was measured."""
        key = context // _STEP
        if (found := self._tables.get(key)) is None:
            found = self._tables[key] = self._interpolated(_STEP * key + _STEP // 2)
        return found

    def now(self, context: int) -> list[float]:
        """Like `table`, for this moment: each size times how much more than measured its latest passes took.

        Sizes between two that were used lately are taken to be disturbed as these are, larger ones to add what they
        add on the idle machine: too little where all is slow, which the first such pass tells.
        """
        asked = (context // _STEP, self._passes)
        if self._now is None or self._now[0] != asked:
            self._now = asked, self._at_this_moment(context)
        return self._now[1]

    def _at_this_moment(self, context: int) -> list[float]:
        table = self.table(context)
        ratios = {index: ratio for index in range(len(self.sizes)) if (ratio := self._ratio(index)) is not None}
        if not ratios:
            return table
        known = list(ratios)
        factors = np.interp(range(len(self.sizes)), known, [ratios[index] for index in known]).tolist()
        costs = [table[size] * factor for size, factor in zip(self.sizes, factors, strict=True)]
        last = known[-1]
        costs[last + 1 :] = [costs[last] + table[size] - table[self.sizes[last]] for size in self.sizes[last + 1 :]]
        costs = [min(costs[index:]) for index in range(len(costs))]
        return self._by_rows(costs)

    def _ratio(self, index: int) -> float | None:
        """What the latest passes of a size took, in what was measured; None where it was not used lately."""
        fresh = [ratio for at, ratio in self._moment[index] if self._passes - at < _FRESH]
        return statistics.median(fresh) if len(fresh) >= _FEWEST else None

    def observe(self, rows: int, context: int, milliseconds: float) -> bool:
        """Learn from a pass; True where a size turned out to be far from what was measured.

        A busy machine makes all sizes slower alike, which changes no decision: the fastest recent passes of a size are
        compared with those of the other sizes.
        """
        table = self.table(context)
        if not 0 < rows < len(table):
            return False
        nearest = min(range(len(self.sizes)), key=lambda index: abs(self.sizes[index] - rows))
        self._passes += 1
        self._moment[nearest].append((self._passes, milliseconds / table[rows]))
        recent = self._recent[nearest]
        recent.append(milliseconds / table[rows])
        if len(recent) < _ENOUGH:
            return False
        load = statistics.median(min(ratios) for ratios in self._recent if len(ratios) == _ENOUGH)
        factor = min(recent) / load
        if abs(factor - 1.0) < _DRIFT:
            return False
        self._correct(nearest, factor)
        return True

    def _correct(self, index: int, factor: float) -> None:
        """Scale one size. No size is dearer than a larger one: more rows never make a pass cheaper."""
        self._recent[index].clear()
        self._moment[index].clear()
        self._now = None
        for column in (self.short_ms, self.long_ms):
            column[index] *= factor
            column[:] = [min(column[start:]) for start in range(len(column))]
        self._tables.clear()

    def _interpolated(self, context: int) -> list[float]:
        share = max(0.0, (context - _SHORT) / (_LONG - _SHORT))
        costs = [
            short + share * max(long - short, 0.0) for short, long in zip(self.short_ms, self.long_ms, strict=True)
        ]
        return self._by_rows(costs)

    def _by_rows(self, costs: list[float]) -> list[float]:
        """By rows what is given by measured sizes."""
        table = [costs[0]] * (self.sizes[0] + 1)
        pairs = list(zip(self.sizes, costs, strict=True))
        for (low, cheap), (high, dear) in itertools.pairwise(pairs):
            table += [cheap + (dear - cheap) * (rows - low) / (high - low) for rows in range(low + 1, high + 1)]
        return table


def measure(target: TargetModel, progress: Callable[[float], None] = lambda _: None) -> PassCost:
    """Time passes of every size after a short and a long context: the fastest of several rounds over all sizes, since
    whatever disturbs a pass makes it slower, and no size dearer than a larger one. Takes about 170 passes."""
    longest = min(_LONG, target.max_context - SIZES[-1] - 1)
    caches = [(context, _filled_cache(target, context)) for context in (_SHORT, longest)]
    times: dict[tuple[int, int], list[float]] = {(context, size): [] for context, _ in caches for size in SIZES}
    # Both contexts in every repeat: what slows the machine down for a second must not fall on one of them alone.
    for repeat in range(_REPEATS + 1):
        for context, cache in caches:
            for size in SIZES:
                tree = _bush(size - 1, target.vocab_size)
                started = time.perf_counter()
                target.forward_tree(1, tree, cache)
                if repeat:  # the first round warms up
                    times[context, size].append(1e3 * (time.perf_counter() - started))
                cache.truncate(context)
        progress((repeat + 1) / (_REPEATS + 1))
    fastest = [[min(times[context, size]) for size in SIZES] for context, _ in caches]
    short, long = ([min(column[index:]) for index in range(len(SIZES))] for column in fastest)
    return PassCost(list(SIZES), short, long)


def _filled_cache(target: TargetModel, context: int) -> KVCache:
    cache = target.new_cache(context + SIZES[-1] + 1)
    target.prefill([token % target.vocab_size for token in range(100, 100 + context)], cache, lambda: False)
    return cache


def _bush(nodes: int, vocab_size: int) -> DraftTree:
    """A tree of the usual form: two branches at every step."""
    parents = [-1 if node < 2 else node - 2 for node in range(nodes)]
    return DraftTree.from_lists([(7 * node + 1) % vocab_size for node in range(nodes)], parents, [0.0] * nodes)


@dataclass(frozen=True, slots=True)
class CostFile:
    """Where the measurement of one model, runtime, thread count and machine is kept."""

    path: Path

    @classmethod
    def of(cls, folder: Path, model: str, runtime: str, threads: int) -> CostFile:
        """The file for this machine in `folder`; another processor or runtime has another file."""
        what = "\0".join(
            [str(_FORMAT), version("draftwood"), model, runtime, str(threads), _processor(), str(os.cpu_count())]
        )
        return cls(folder / f"{blake2b(what.encode(), digest_size=10).hexdigest()}.json")

    def read(self) -> PassCost | None:
        """What was measured, None where nothing (or nothing readable) is there."""
        try:
            data = json.loads(self.path.read_text(encoding="utf-8"))
            cost = PassCost(data["sizes"], data["short_ms"], data["long_ms"])
            whole = len(cost.sizes) == len(cost.short_ms) == len(cost.long_ms) > 1 and min(cost.short_ms) > 0
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return cost if whole else None

    def write(self, cost: PassCost) -> None:
        """Keep a measurement. A cache folder that cannot be written is no error: it is measured again."""
        data = {name: value for name, value in asdict(cost).items() if not name.startswith("_")}
        partial = self.path.with_suffix(f".{os.getpid()}.partial")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            partial.write_text(json.dumps(data), encoding="utf-8")
            partial.replace(self.path)
        except OSError as error:
            _log.info("the measurement is not kept: %s", error.strerror)


def known_cost(
    target: TargetModel, model: str, threads: int, folder: Path, progress: Callable[[float], None] = lambda _: None
) -> tuple[PassCost, CostFile]:
    """What passes of this model cost here: read from `folder`, else measured (seconds) and kept there."""
    file = CostFile.of(folder, model, target.runtime, threads)
    cost = file.read()
    if cost is None:
        cost = measure(target, progress)
        file.write(cost)
    return cost, file


def _processor() -> str:
    """The processor's name, as far as the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
