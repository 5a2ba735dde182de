"""Figures: medians, intervals and ratios of runs. Pure: knows numbers only."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

_RESAMPLES = 1000


@dataclass(frozen=True, slots=True)
class Figure:
    """A value and its 95% bootstrap interval over cases."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


def bootstrap(
    items: Sequence[tuple[float, float]], statistic: Callable[[Sequence[tuple[float, float]]], float]
) -> Figure:
    """`statistic` of the items, and where it lies in 95% of resamples of them. Deterministic."""
    random_ = random.Random(5)
    if not items:
        return Figure(0.0, 0.0, 0.0)
    values = sorted(statistic(random_.choices(items, k=len(items))) for _ in range(_RESAMPLES))
    return Figure(statistic(items), values[_RESAMPLES // 40], values[-_RESAMPLES // 40])


def ratio_of_sums(pairs: Sequence[tuple[float, float]]) -> float:
    """Sum of the first over sum of the second: for (time before, time after), the speed-up over all cases together."""
    below = sum(second for _, second in pairs)
    return sum(first for first, _ in pairs) / below if below else 0.0


def speed_up(baseline: dict[str, list[tuple[float, int]]], other: dict[str, list[tuple[float, int]]]) -> Figure:
    """How much less time a token takes than with the baseline, over the cases that both ran.

    Each maps a case to (milliseconds, tokens) by repeat; a case counts by the median time a token of its repeats,
    weighted with the baseline's tokens.
    """
    pairs = []
    for case, runs in baseline.items():
        theirs = other.get(case)
        if runs and theirs:
            tokens = runs[0][1]
            pairs.append((tokens * _per_token(runs), tokens * _per_token(theirs)))
    return bootstrap(pairs, ratio_of_sums)


def tokens_per_second(runs: dict[str, list[tuple[float, int]]]) -> Figure:
    """Over all cases together, median of the repeats of each."""
    pairs = [(1e3 * of_case[0][1], of_case[0][1] * _per_token(of_case)) for of_case in runs.values() if of_case]
    return bootstrap(pairs, ratio_of_sums)


def _per_token(runs: Sequence[tuple[float, int]]) -> float:
    return median(milliseconds / max(1, tokens) for milliseconds, tokens in runs)
