"""What the constraint does for and to decoding: accepted tokens a pass with and without pruning, and tokens a second.

    python -m tests.benchmarks.guided [--points 40] [--nodes 7 --nodes 15] [--speed] [--json]

Guided and unguided decoding emit the same ids: the target is masked alike, and only the drafts are grown and pruned
with the constraint or without it, at the same number of nodes. `--speed` times decoding with the constraint off, with
syntax alone and with scope as well, interleaved, over the texts that are the same in all three. Leave the machine alone
then. Drafters learn from what they see: for the first table each run begins with new ones, for the second each goes
first equally often.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from statistics import median
from typing import Any

import click

from decoding.assistant import Assistant
from decoding.benchmark.figures import Figure, bootstrap, ratio_of_sums
from decoding.benchmark.quality import VARIANTS, complete_point
from decoding.benchmark.quality_points import SETS, Point
from decoding.engine import Guide
from decoding.messages import Completion, EngineOptions, Snapshot
from decoding.prompts import Prompt
from decoding.verify import Verdict


@dataclass(slots=True)
class Unguided(Guide):
    """Masks the target, and leaves the drafts alone."""

    def follow(self, verdict: Verdict) -> None:
        """See `Guide`."""
        self.prunes = self.masks  # else it would seem that the model had left what prunes
        Guide.follow(self, verdict)
        self.prunes = None


class SwitchedAssistant(Assistant):
    """An assistant whose drafts may be left alone."""

    guided = True

    def _guide(self, prompt: Prompt, snapshot: Snapshot, options: EngineOptions) -> Guide:
        guide = super()._guide(prompt, snapshot, options)
        return guide if self.guided else Unguided(guide.masks, None, guide.otherwise, guide.off_reason)


def accepted(assistant: SwitchedAssistant, points: list[Point], nodes: int) -> dict[str, Any]:
    """Tokens a pass with and without pruning, and their ratio, at a fixed number of nodes."""
    runs: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    for point in points:
        ids = []
        for guided in (False, True):
            assistant.guided = guided
            assistant.writer.drafting.unlearn()
            found = complete_point(assistant, point, assistant.options.model_copy(update={"tree_nodes": nodes}))
            runs[guided].append((found.stats.tokens, found.stats.steps))
            ids.append(found.token_ids)
        if ids[0] != ids[1]:
            raise AssertionError(f"{point.id}: guided and unguided drafts gave different texts")
    pairs = [(theirs[1], mine[1]) for theirs, mine in zip(runs[False], runs[True], strict=True)]
    return {
        "unguided": bootstrap(runs[False], ratio_of_sums),
        "guided": bootstrap(runs[True], ratio_of_sums),
        "guided over unguided": bootstrap(pairs, ratio_of_sums),
        "points": len(points),
    }


def lost(assistant: SwitchedAssistant, points: list[Point], repeats: int) -> dict[str, Any]:
    """Decoding time with the constraint over without it, for texts that it does not change."""
    assistant.guided = True
    names = ("off", "syntax", "soft")
    kept: dict[str, list[tuple[float, float]]] = {"syntax": [], "soft": []}
    for number, point in enumerate(points):
        times: dict[str, list[float]] = {}
        texts: dict[str, Completion] = {}
        for repeat in range(repeats):
            for place in range(len(names)):
                name = names[(number + repeat + place) % len(names)]
                options = assistant.options.model_copy(update=dict(VARIANTS[name]))
                texts[name] = complete_point(assistant, point, options)
                times.setdefault(name, []).append(texts[name].stats.decode_ms)
        for name, pairs in kept.items():
            if texts[name].token_ids == texts["off"].token_ids:
                pairs.append((median(times[name]), median(times["off"])))
    return {
        name: {"time over off": bootstrap(pairs, ratio_of_sums), "points": len(pairs)} for name, pairs in kept.items()
    }


@click.command()
@click.option("--points", default=40, show_default=True, help="Of lines, and of blocks.")
@click.option("--nodes", multiple=True, type=int, default=(7, 15), show_default=True)
@click.option("--speed", is_flag=True, help="Time decoding as well.")
@click.option("--repeats", default=3, show_default=True, help="Of each timing.")
@click.option("--json", "as_json", is_flag=True)
def main(points: int, nodes: tuple[int, ...], speed: bool, repeats: int, as_json: bool) -> None:
    """Print both tables."""
    assistant = SwitchedAssistant(EngineOptions(threads=2))
    chosen = {name: SETS[name](points) for name in ("lines", "blocks")}
    table: dict[str, Any] = {"load": os.getloadavg()}
    if speed:
        table["speed"] = lost(assistant, [*chosen["lines"], *chosen["blocks"]], repeats)
    for name, of_set in chosen.items():
        for count in nodes:
            table[f"{name}, {count} nodes"] = accepted(assistant, of_set, count)
    print(json.dumps(table, default=_plain) if as_json else "\n".join(f"{key}: {row}" for key, row in table.items()))


def _plain(figure: Figure) -> list[float]:
    return [figure.value, figure.low, figure.high]


if __name__ == "__main__":
    main()
