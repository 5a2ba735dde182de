"""`draftwood bench reasoning`: the figures of the commands that explain, fix, document, test and edit.

Knows click and rich; what is measured is the business of `decoding.benchmark.reasoning`.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from lsp_server.cli_complete import engine_options, load_assistant, options_from

_MEASUREMENTS = ("thoughts", "docstrings", "edits", "tests", "explanations", "fixes", "speed")


@click.command()
@click.option("--only", multiple=True, type=click.Choice(_MEASUREMENTS), help="Only these (repeatable).")
@click.option("--cases", type=click.IntRange(1), default=40, show_default=True, help="Cases of each measurement.")
@click.option("--skip", type=click.IntRange(0), default=0, help="Leave out so many first: for a run in parts.")
@click.option("--minutes", type=float, default=60.0, show_default=True, help="Stop after so long.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@engine_options
def reasoning(only: tuple[str, ...], cases: int, skip: int, minutes: float, as_json: bool, **values: Any) -> None:
    """Measure the reasoning commands on public data. Generated code is run, in limited subprocesses."""
    from decoding.benchmark.figures import bootstrap, ratio_of_sums
    from decoding.benchmark.reasoning import Outcome, ReasoningBenchmark

    benchmark = ReasoningBenchmark(load_assistant(options_from(values)), cases, skip)
    outcomes: list[Outcome] = []
    load = os.getloadavg()
    ends = time.monotonic() + 60 * minutes
    for name in only or _MEASUREMENTS:
        for outcome in benchmark.measurements[name]():
            outcomes.append(outcome)
            print(f"{name}: {outcome.figure}, {outcome.case}: {outcome.part:g}/{outcome.whole:g}", file=sys.stderr)
            if time.monotonic() > ends:
                break
    figures = {}
    for figure in dict.fromkeys(outcome.figure for outcome in outcomes):
        pairs = [(each.part, each.whole) for each in outcomes if each.figure == figure]
        value = bootstrap(pairs, ratio_of_sums)
        figures[figure] = {"value": value.value, "low": value.low, "high": value.high, "cases": len(pairs)}
    if as_json:
        print(json.dumps({"figures": figures, "load": [*load, *os.getloadavg()]}))
        return
    table = Table("figure", "value", "95%", "cases")
    for figure, found in figures.items():
        table.add_row(
            figure, f"{found['value']:.3f}", f"{found['low']:.3f} to {found['high']:.3f}", str(found["cases"])
        )
    Console().print(table)
