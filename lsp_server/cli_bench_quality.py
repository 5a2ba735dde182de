"""`draftwood bench quality`: how good suggestions are at real holes, with and without the constraints.

Knows click and rich; what is measured is the business of `decoding.benchmark.quality`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from lsp_server.cli_complete import engine_options, load_assistant, options_from
from lsp_server.progress import CountBar

_VARIANTS = ("off", "syntax", "soft", "hard", "signatures")
_USUAL = ("off", "syntax", "soft", "hard")
_POINTS = {"lines": 150, "blocks": 60, "humaneval-line": 60, "humaneval-lines": 60}
_MORE = ("more-lines", "more-blocks")
_QUICK_POINTS = 6
_PERCENT = ("exact", "similarity", "identifiers", "shown", "parses", "finished", "passed")


@click.command()
@click.option("--quick", is_flag=True, help=f"{_QUICK_POINTS} points of each set.")
@click.option("--set", "sets", multiple=True, type=click.Choice([*_POINTS, *_MORE]), help="Only these (repeatable).")
@click.option("--points", type=click.IntRange(1), help="Points of each set.")
@click.option("--skip", type=click.IntRange(0), default=0, help="Leave out so many of each set, which were tuned on.")
@click.option(
    "--variant", "variants", multiple=True, type=click.Choice(_VARIANTS), help="Only these and `off` (repeatable)."
)
@click.option("--minutes", type=float, default=120.0, show_default=True, help="Stop after so long.")
@click.option(
    "--output", default="benchmark/quality.jsonl", show_default=True, help="Results; an interrupted run goes on there."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@engine_options
def quality(
    quick: bool,
    sets: tuple[str, ...],
    points: int | None,
    skip: int,
    variants: tuple[str, ...],
    minutes: float,
    output: str,
    as_json: bool,
    **values: Any,
) -> None:
    """Measure suggestions at holes in public code, constraints off and on. Generated programs are run, in a sandbox.

    --constraint and --scope have no effect: the variants are `off`, `syntax`, and syntax with `soft` or `hard` scope,
    and, where asked for, `signatures`: `soft`, and what is declared outside of the window is in the prompt.
    """
    from decoding.benchmark.quality import BASELINE, ResultsFile, run_quality
    from decoding.benchmark.quality_summary import quality_summary
    from decoding.benchmark.runner import header_of

    counts = {name: points or (_QUICK_POINTS if quick else _POINTS.get(name, 100)) for name in sets or _POINTS}
    chosen = tuple(dict.fromkeys((BASELINE, *(variants or _USUAL))))
    options = options_from(values)
    assistant = load_assistant(options)
    header = header_of(assistant)
    del header["date"], header["absent"]
    header["options"] = options.model_dump(exclude={"constraint", "scope"})
    with CountBar() as bar:
        file = ResultsFile(Path(output), header)
        results = run_quality(assistant, counts, chosen, file, bar, 60 * minutes, skip)
    table = quality_summary(results)
    if as_json:
        print(json.dumps({"header": header, "sets": table}))
    else:
        _show(table)
    print(f"results: {output}", file=sys.stderr)


def _show(sets: dict[str, dict[str, dict[str, Any]]]) -> None:
    console = Console()
    for name, variants in sets.items():
        table = Table("score", *variants, title=f"{name}: mean, n (difference to off, 95%)")
        for key in dict.fromkeys(key for scores in variants.values() for key in scores):
            table.add_row(key, *(_cell(key, scores[key]) if key in scores else "" for scores in variants.values()))
        console.print(table)


def _cell(key: str, row: dict[str, Any]) -> str:
    """A mean and its difference, in percent where the score is a rate."""
    scale, unit = (100, "%") if key in _PERCENT else (1, "")
    text = f"{scale * row['mean']:.2f}{unit}, {row['n']}"
    if "difference" in row:
        low, high = scale * row["difference_low"], scale * row["difference_high"]
        text += f"\n({scale * row['difference']:+.2f}, {low:+.2f} to {high:+.2f})"
    return text
