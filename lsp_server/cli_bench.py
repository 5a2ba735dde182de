"""`draftwood bench`: how fast this machine decodes, against plain decoding, fixed trees and other runtimes.

Knows click and rich; what is measured is the business of `decoding.benchmark`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from decoding.errors import BadFile
from lsp_server.cli_bench_quality import quality
from lsp_server.cli_bench_reasoning import reasoning
from lsp_server.cli_complete import engine_options, load_assistant, options_from
from lsp_server.progress import CountBar

_CATEGORIES = ("infill", "humaneval", "edit", "questions", "creative")


@click.group(invoke_without_command=True)
@click.option("--quick", is_flag=True, help="Fewer cases and repeats: under five minutes.")
@click.option(
    "--category", "categories", multiple=True, type=click.Choice(_CATEGORIES), help="Only these (repeatable)."
)
@click.option("--cases", type=click.IntRange(1), help="Cases of each category.")
@click.option("--repeats", type=click.IntRange(1), help="Repeats of each of our contenders.")
@click.option("--peers/--no-peers", default=True, help="Also run other runtimes where they are installed.")
@click.option("--minutes", type=float, help="Stop after so long; the same command goes on from there.")
@click.option(
    "--output", default="benchmark", show_default=True, help="Folder for runs.jsonl, report.json, report.html."
)
@engine_options
def bench(
    quick: bool,
    categories: tuple[str, ...],
    cases: int | None,
    repeats: int | None,
    peers: bool,
    minutes: float | None,
    output: str,
    **values: Any,
) -> None:
    """Measure speed on public data. Leave the machine alone meanwhile; an interrupted run is resumed."""
    if click.get_current_context().invoked_subcommand is not None:
        return
    from decoding.benchmark.report import summary
    from decoding.benchmark.report_page import page
    from decoding.benchmark.runner import Plan, run_benchmark

    assistant = load_assistant(options_from({**values, "drafter": "none"}))
    plan = Plan(
        categories=categories or _CATEGORIES,
        cases=cases or (8 if quick else 60),
        peer_cases=2 if quick else 12,
        repeats=repeats or (1 if quick else 5),
        peer_repeats=1 if quick else 5,
        peers=peers,
        seconds=60 * minutes if minutes is not None else 240.0 if quick else 85 * 60.0,
    )
    folder = Path(output)
    with CountBar() as bar:
        results = run_benchmark(assistant, plan, folder / "runs.jsonl", bar)
    data = summary(results)
    try:
        (folder / "report.json").write_text(json.dumps(data, indent=1), encoding="utf-8")
        (folder / "report.html").write_text(page(data), encoding="utf-8")
    except OSError as error:
        raise BadFile(f"{folder} cannot be written: {error.strerror}") from error
    _show(data)
    print(f"report: {folder / 'report.html'}", file=sys.stderr)


bench.add_command(reasoning)
bench.add_command(quality)


def _show(data: dict[str, Any]) -> None:
    table = Table("category", "contender", "tokens/s", "speed-up", "95%", "tokens a pass", "nodes")
    for category, figures in data["categories"].items():
        for name, figure in figures.items():
            up = figure["speed_up"]
            table.add_row(
                category,
                name,
                f"{figure['tokens_per_second'][0]:.1f}",
                f"{up[0]:.2f}x",
                f"{up[1]:.2f} to {up[2]:.2f}",
                str(figure["mean_accepted"] or ""),
                str(figure["nodes"] or ""),
            )
    console = Console()
    console.print(table)
    console.print(f"outside the model: {data['outside_the_model']}")
    console.print(f"measured budget against the best fixed size: {data['dynamic_against_best_fixed']}")
    for category, figure in data["against_best_peer"].items():
        console.print(f"{category}: {figure['decode'][0]:.2f}x the fastest peer ({figure['best_peer']})")
    for name, why in data["absent"].items():
        console.print(Text(f"absent: {name}: {why}"))
