"""Is drafting lossless with the real model: the same token ids with every source as with none, on real prompts.

    python -m tests.benchmarks.identity [--points 50] [--model NAME] [--json]

Holes in real files and HumanEval are completed under three settings (the constraint off and greedy, enforced and
greedy, enforced and sampled with a seed), questions are answered and stories written; each by every drafter in turn,
with what it learned from the prompts before. The native runtime gives a row the same bits whatever else is in the pass,
so that not one id may differ. Times mean nothing here.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import click
from rich.progress import track

from decoding.assistant import Assistant
from decoding.benchmark.quality import VARIANTS, complete_point
from decoding.benchmark.quality_points import SETS
from decoding.benchmark.workloads import cases
from decoding.engine import Guide, generate
from decoding.messages import EngineOptions
from decoding.sampling import Sampling

DRAFTERS = ("none", "lookup", "recycle", "auto")
SETTINGS: dict[str, dict[str, Any]] = {
    "constraint off": dict(VARIANTS["off"]),
    "enforced": dict(VARIANTS["soft"]),
    "enforced, T=0.8": {**VARIANTS["soft"], "temperature": 0.8, "seed": 11},
}
HOLES = ("lines", "blocks", "humaneval-lines")
TEXTS = ("questions", "creative", "edit")
_TOKENS = 96


def of_holes(assistant: Assistant, points: int) -> Iterator[tuple[str, str, dict[str, Sequence[int]]]]:
    """(setting, what, token ids by drafter) of every hole."""
    for name in HOLES:
        for point in track(SETS[name](points), description=name):
            for setting, values in SETTINGS.items():
                found = {}
                for drafter in DRAFTERS:
                    options = assistant.options.model_copy(update={**values, "drafter": drafter})
                    found[drafter] = complete_point(assistant, point, options).token_ids
                yield f"{name}, {setting}", point.id, found


def of_texts(assistant: Assistant, count: int) -> Iterator[tuple[str, str, dict[str, Sequence[int]]]]:
    """The same of prompts that are no holes; creative ones are sampled at T=1."""
    model = assistant.model
    for name in TEXTS:
        for case in track(cases(assistant, name, count), description=name):
            found = {}
            cache = model.target.new_cache(assistant.writer.pool.capacity)
            known = list(case.prompt_ids)
            model.target.prefill(known[:-1], cache, lambda: False)
            for drafter in DRAFTERS:
                options = assistant.options.model_copy(update={"drafter": drafter})
                cache.truncate(len(known) - 1)
                tokens = list(known)
                drafters, budget = assistant.writer.drafters(options), assistant.writer.drafting.budget(options)
                sampling = Sampling(temperature=case.temperature, seed=1)
                rounds = generate(
                    model.target, cache, tokens, drafters, Guide(), sampling, budget, model.vocabulary.end
                )
                for _ in rounds:
                    if len(tokens) - len(known) >= _TOKENS:
                        break
                found[drafter] = tokens[len(known) :][:_TOKENS]
            yield name, case.id, found


@click.command()
@click.option("--points", default=50, show_default=True, help="Of each set of holes.")
@click.option("--texts", default=12, show_default=True, help="Of each kind of other prompts.")
@click.option("--model", default=EngineOptions().model, show_default=True)
@click.option("--json", "as_json", is_flag=True)
def main(points: int, texts: int, model: str, as_json: bool) -> None:
    """Print how many texts are the same, and which are not."""
    assistant = Assistant(EngineOptions(model=model), lambda _: None)
    same: dict[str, Counter[str]] = {}
    different: list[str] = []
    tokens = 0
    for kind in (of_holes(assistant, points), of_texts(assistant, texts)):
        for group, what, found in kind:
            plain = found["none"]
            tokens += len(plain)
            for drafter in DRAFTERS[1:]:
                equal = list(found[drafter]) == list(plain)
                same.setdefault(group, Counter())["same" if equal else "different"] += 1
                if not equal:
                    different.append(f"{group}: {what}: {drafter}")
    table = {"tokens": tokens, "texts": {group: dict(counts) for group, counts in same.items()}, "different": different}
    print(json.dumps(table) if as_json else "\n".join(f"{key}: {value}" for key, value in table.items()))


if __name__ == "__main__":
    main()
