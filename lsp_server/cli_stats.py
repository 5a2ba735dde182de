"""`draftwood stats`: how suggestions fared, from the numbers that servers on this machine wrote down.

Knows click, rich and the counts.
"""

from __future__ import annotations

import json
from datetime import date, timedelta

import click
from rich.console import Console
from rich.table import Table

from lsp_server.counts import Counts
from lsp_server.usage import Usage

_PERIODS = {"today": 1, "7 days": 7, "30 days": 30, "ever": None}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout, with every day.")
@click.option("--forget", is_flag=True, help="Delete the numbers.")
def stats(as_json: bool, forget: bool) -> None:
    """Show how many suggestions you accepted, took a part of, and dismissed. The numbers never leave this machine."""
    usage = Usage.of_user()
    if forget:
        usage.forget()
    days = usage.days()
    if as_json:
        table = {day.isoformat(): counts.table() for day, counts in days.items()}
        click.echo(json.dumps({"file": str(usage.path), "total": _sum(days, None).table(), "days": table}))
        return
    if not days:
        click.echo("Nothing is counted yet: an editor has to ask for suggestions first.")
        return
    table_ = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("", "SHOWN", "ACCEPTED", "RATE", "IN PART", "DISMISSED", "CHARACTERS", "AT ONCE"):
        table_.add_column(heading, justify="right" if heading else "left")
    for name, length in _PERIODS.items():
        table_.add_row(name, *_row(_sum(days, length)))
    Console().print(table_)
    click.echo(f"AT ONCE: answered from memory. Kept in {usage.path}, and nowhere else.")


def _sum(days: dict[date, Counts], length: int | None) -> Counts:
    """The counts of the last `length` days; None: of all."""
    first = date.min if length is None else date.today() - timedelta(days=length - 1)
    total = Counts()
    for day, counts in days.items():
        if day >= first:
            total = total.plus(counts)
    return total


def _row(counts: Counts) -> list[str]:
    at_once = counts.from_cache / counts.requests if counts.requests else 0.0
    return [
        f"{counts.shown:,}",
        f"{counts.accepted:,}",
        f"{counts.acceptance_rate:.0%}",
        f"{counts.partly_accepted:,}",
        f"{counts.dismissed:,}",
        f"{counts.accepted_characters:,}",
        f"{at_once:.0%}",
    ]
