"""The report of a benchmark: every figure of it as one JSON object (as a page: `report_page.py`).

Knows the file of runs and figures. Must not know how runs are made.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from statistics import mean
from typing import Any

from decoding.benchmark.contenders import FIXED, FULL, MODEL, PLAIN
from decoding.benchmark.figures import Figure, speed_up, tokens_per_second
from decoding.benchmark.runner import Results

ByCase = dict[str, list[tuple[float, int]]]
STAGES = ("propose", "prune", "forward", "verify", "observe")
_OURS = (PLAIN, "lookup", "recycle", MODEL, FULL)


def summary(results: Results) -> dict[str, Any]:
    """All figures of the report."""
    runs = [run for run in results.runs.values() if "contender" in run]
    categories = sorted({run["category"] for run in runs})
    contenders = list(dict.fromkeys(run["contender"] for run in runs))
    return {
        **{name: value for name, value in results.header.items() if name != "lengths"},
        "load_average": round(mean(run["load"] for run in runs if run["load"] is not None), 2) if runs else None,
        "categories": {
            category: {name: _figures(runs, category, name) for name in contenders if _select(runs, category, name)}
            for category in categories
        },
        "dynamic_against_best_fixed": _against_fixed(runs, categories),
        "against_best_peer": _against_peers(runs, categories, contenders),
        "outside_the_model": _outside(runs),
        "identical": _identical(runs),
        "pass_ms": results.runs.get("cost"),
    }


def _select(runs: Sequence[dict[str, Any]], category: str | None, contender: str) -> list[dict[str, Any]]:
    return [run for run in runs if run["contender"] == contender and category in (None, run["category"])]


def _by_case(runs: Sequence[dict[str, Any]], with_prefill: bool = False) -> ByCase:
    found: ByCase = defaultdict(list)
    for run in runs:
        if run["token_ids"]:
            extra = run["prefill_ms"] if with_prefill else 0.0
            found[f"{run['category']} {run['case']}"].append((run["decode_ms"] + extra, len(run["token_ids"])))
    return dict(found)


def _figures(runs: Sequence[dict[str, Any]], category: str, name: str) -> dict[str, Any]:
    mine, plain = _select(runs, category, name), _select(runs, category, PLAIN)
    tokens = sum(len(run["token_ids"]) for run in mine)
    passes = sum(run["passes"] for run in mine)
    rounds = sum(len(run["sizes"]) for run in mine)
    return {
        "cases": len({run["case"] for run in mine}),
        "tokens": tokens,
        "mean_accepted": round(tokens / passes, 3) if passes else None,
        "nodes": round(sum(run["drafted"] for run in mine) / rounds, 2) if rounds else None,
        "tokens_per_second": _interval(tokens_per_second(_by_case(mine))),
        "speed_up": _interval(speed_up(_by_case(plain), _by_case(mine))),
        "stages_ms": {
            stage: round(sum(run["stages_ms"].get(stage, 0.0) for run in mine) / passes, 4) for stage in STAGES
        }
        if passes
        else None,
    }


def _interval(figure: Figure) -> list[float]:
    return [round(figure.value, 3), round(figure.low, 3), round(figure.high, 3)]


def _against_fixed(runs: Sequence[dict[str, Any]], categories: Sequence[str]) -> dict[str, Any]:
    """The measured budget against the one fixed size that is best over all categories, each weighing the same: of the
    same sources, and of each source alone."""

    def score(name: str) -> float:
        ups = [speed_up(_by_case(_select(runs, c, PLAIN)), _by_case(_select(runs, c, name))).value for c in categories]
        return len(ups) / sum(1.0 / up for up in ups) if ups and min(ups) > 0 else 0.0

    sweeps = {name: [f"{name} {size}" for size in sizes] for name, _, sizes in FIXED}
    scores = {name: round(score(name), 3) for name in [FULL, *(each for sweep in sweeps.values() for each in sweep)]}
    best = {name: max(sweep, key=lambda each: scores[each]) for name, sweep in sweeps.items()}
    ratios = {each: round(scores[FULL] / scores[each], 3) if scores[each] else None for each in best.values()}
    together, *alone = best.values()
    return {
        "scores": scores,
        "best_fixed": together,
        "ratio": ratios[together],
        "of_single_sources": {each: ratios[each] for each in alone},
    }


def _against_peers(
    runs: Sequence[dict[str, Any]], categories: Sequence[str], contenders: Sequence[str]
) -> dict[str, Any]:
    """Against the fastest configuration of any peer, on the cases that it ran; end to end with the prompt too."""
    peers = [name for name in contenders if name not in _OURS and not name.startswith("fixed")]
    found: dict[str, Any] = {}
    for category in categories:
        speeds = {name: tokens_per_second(_by_case(_select(runs, category, name))).value for name in peers}
        if not any(speeds.values()):
            continue
        best = max(speeds, key=lambda name: speeds[name])
        ours, theirs = _select(runs, category, FULL), _select(runs, category, best)
        found[category] = {
            "best_peer": best,
            "decode": _interval(_per_token_ratio(theirs, ours, False)),
            "end_to_end": _interval(_per_token_ratio(theirs, ours, True)),
        }
    return found


def _per_token_ratio(theirs: list[dict[str, Any]], ours: list[dict[str, Any]], with_prefill: bool) -> Figure:
    return speed_up(_by_case(theirs, with_prefill), _by_case(ours, with_prefill))


def _outside(runs: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Share of a round of the full contender that is not the target's pass."""
    found = {}
    for name in _OURS:
        stages = [run["stages_ms"] for run in runs if run["contender"] == name and run["stages_ms"]]
        total = sum(sum(stage.values()) for stage in stages)
        found[name] = round(1.0 - sum(stage["forward"] for stage in stages) / total, 4) if total else 0.0
    return found


def _identical(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Cases whose tokens equal those of plain decoding, for each of our contenders."""
    plain = {(run["category"], run["case"]): run["token_ids"] for run in runs if run["contender"] == PLAIN}
    found: dict[str, Any] = {}
    for run in runs:
        if run["passes"] and run["contender"] != PLAIN:
            same = found.setdefault(run["contender"], {"equal": 0, "different": 0})
            equal = list(run["token_ids"]) == list(plain.get((run["category"], run["case"]), ()))
            same["equal" if equal else "different"] += 1
    return found
