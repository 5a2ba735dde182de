"""`draftwood demo`: complete a hole in a sample file, and say how to go on."""

from __future__ import annotations

from typing import Any

import click
from rich.console import Console
from rich.panel import Panel

from decoding.messages import Snapshot
from lsp_server.cli_complete import engine_options, options_from
from lsp_server.progress import ProgressBar
from lsp_server.show import show_completion

SAMPLE = '''\
"""Sum up a shop's orders."""

from dataclasses import dataclass


@dataclass
class Order:
    customer: str
    product: str
    quantity: int
    unit_price: float

    @property
    def total(self) -> float:
        return self.quantity * self.unit_price


def total_by_customer(orders: list[Order]) -> dict[str, float]:
    """What each customer spent in all."""
    totals: dict[str, float] = {}
    |
    return totals


def print_report(orders: list[Order]) -> None:
    for customer, total in sorted(total_by_customer(orders).items()):
        print(f"{customer}: {total:.2f}")
'''
"""`|` marks the cursor."""

_NEXT = """\
Connect an editor (details in the README):
  VS Code   install the extension from editor-client/vscode
  Neovim    add editor-client/nvim to the runtime path, then  vim.lsp.enable("draftwood")
  others    any LSP client with inline completion can run  draftwood serve"""


@click.command()
@click.option("--svg", type=click.Path(dir_okay=False), metavar="FILE", help="Also write what is shown as a picture.")
@engine_options
def demo(svg: str | None, **values: Any) -> None:
    """Complete a hole in a sample file."""
    from decoding.assistant import Assistant

    options = options_from(values)
    head, _, tail = SAMPLE.partition("|")
    snapshot = Snapshot(uri="untitled:orders.py", text=head + tail, offset=len(head.encode("utf-8")))
    with ProgressBar() as progress:
        assistant = Assistant(options, progress)
    completion = assistant.complete(snapshot, options, lambda: False, lambda _: None)[0]
    # A picture is drawn as a terminal of fixed width with colours would show it.
    console = Console(highlight=False, record=True, width=100, force_terminal=True) if svg else Console(highlight=False)
    console.rule("orders.py")
    show_completion(completion, snapshot, console)
    console.print(Panel(_NEXT, border_style="dim", expand=False))
    if svg:
        console.save_svg(svg, title="make demo")
