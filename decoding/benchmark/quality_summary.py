"""The table of the quality benchmark: means, and paired differences to the unconstrained suggestions.

Knows results. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any

from decoding.benchmark.figures import Figure, bootstrap, ratio_of_sums
from decoding.benchmark.quality import BASELINE, Result, Score

SCORES = tuple(field.name for field in fields(Score))
Pair = tuple[float, float]


def quality_summary(results: Sequence[Result]) -> dict[str, dict[str, dict[str, Any]]]:
    """Set -> variant -> score -> figures.

    A figure has `n`, `mean`, `low`, `high` (95%, bootstrap over points). That of a constrained variant has also its
    `difference` to the baseline with `difference_low` and `difference_high`, over the `pairs` points where both have
    the score; `undefined` has the `ratio` of the sums and its bounds, too. `tokens a pass` is a mean over all tokens,
    `time` the decoding time over the baseline's where both wrote the same.
    """
    table: dict[str, dict[str, dict[str, Any]]] = {}
    for name in dict.fromkeys(result.set for result in results):
        of_set = [result for result in results if result.set == name]
        rows = table[name] = {}
        baseline = _scores(of_set, BASELINE)
        for variant in dict.fromkeys(result.variant for result in of_set):
            scores = _scores(of_set, variant)
            rows[variant] = {
                key: _figures(scores, baseline if variant != BASELINE else {}, key)
                for key in SCORES
                if any(score[key] is not None for score in scores.values())
            }
            rows[variant] |= _speed([r for r in of_set if r.variant == variant], of_set)
    return table


def _speed(mine: list[Result], every: list[Result]) -> dict[str, dict[str, Any]]:
    """Tokens a pass, and decoding time against the baseline's where that wrote the same."""
    passes = [(float(result.tokens), float(result.steps)) for result in mine if result.steps]
    found = {"tokens a pass": {"n": len(passes), **_named(bootstrap(passes, ratio_of_sums), "mean", "")}}
    theirs = {result.point: result for result in every if result.variant == BASELINE}
    pairs = [
        (result.decode_ms, other.decode_ms)
        for result in mine
        if result.variant != BASELINE
        and (other := theirs.get(result.point))
        and (other.suggestion, other.tokens) == (result.suggestion, result.tokens)
    ]
    if pairs:
        found["time"] = {"n": len(pairs), **_named(bootstrap(pairs, ratio_of_sums), "mean", "")}
    return found


def _scores(results: Sequence[Result], variant: str) -> dict[str, dict[str, float | None]]:
    return {result.point: asdict(result.score) for result in results if result.variant == variant}


def _figures(
    scores: dict[str, dict[str, float | None]], baseline: dict[str, dict[str, float | None]], key: str
) -> dict[str, Any]:
    values = [value for score in scores.values() if (value := score[key]) is not None]
    mean = bootstrap([(value, 0.0) for value in values], _mean_of_first)
    row: dict[str, Any] = {"n": len(values), **_named(mean, "mean", "")}
    pairs = [
        (mine, theirs)
        for point, score in scores.items()
        if point in baseline and (mine := score[key]) is not None and (theirs := baseline[point][key]) is not None
    ]
    if pairs:
        row["pairs"] = len(pairs)
        row |= _named(bootstrap(pairs, _mean_difference), "difference", "difference_")
        if key == "undefined":
            row |= _named(bootstrap(pairs, _ratio), "ratio", "ratio_")
    return row


def _named(figure: Figure, name: str, prefix: str) -> dict[str, float]:
    return {name: figure.value, f"{prefix}low": figure.low, f"{prefix}high": figure.high}


def _mean_of_first(pairs: Sequence[Pair]) -> float:
    return sum(first for first, _ in pairs) / len(pairs)


def _mean_difference(pairs: Sequence[Pair]) -> float:
    return sum(mine - theirs for mine, theirs in pairs) / len(pairs)


def _ratio(pairs: Sequence[Pair]) -> float:
    """Sum over sum; 1 where the baseline has none, which says nothing."""
    below = sum(theirs for _, theirs in pairs)
    return sum(mine for mine, _ in pairs) / below if below else 1.0
