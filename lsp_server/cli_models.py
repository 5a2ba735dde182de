"""`draftwood models …` and `draftwood doctor`.

Knows click, rich and the store. What is imported here at the top is light: listing models loads no torch.
"""

from __future__ import annotations

import json
from dataclasses import asdict

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from decoding.errors import BadInput
from decoding.models.registry import DEFAULT_MODEL, REGISTRY
from decoding.models.store import ModelStore

_MARKS = {"good": "[green]✓[/]", "note": "[yellow]![/]", "problem": "[red]✗[/]"}


@click.group()
def models() -> None:
    """List, pull and remove models."""


@models.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def list_models(as_json: bool) -> None:
    """Show the registered models and everything that is provisioned."""
    store = ModelStore.of_user()
    stored = {model.name: model for model in store.all()}
    if as_json:
        rows = [
            {
                "name": name,
                "provisioned": name in stored,
                "bytes": stored[name].size if name in stored else None,
                "path": str(stored[name].path) if name in stored else None,
                "source": stored[name].source if name in stored else None,
                "default": name == DEFAULT_MODEL,
            }
            for name in [*REGISTRY, *(name for name in stored if name not in REGISTRY)]
        ]
        click.echo(json.dumps({"cache": str(store.root), "models": rows}))
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("NAME", "HERE", "FROM", "LICENSE"):
        table.add_column(heading, no_wrap=True)
    table.add_column("FOR")  # gives way where the terminal is narrow
    for name, entry in REGISTRY.items():
        here = stored.pop(name, None)
        size = f"{here.size / 1e6:,.0f} MB" if here else "-"
        shown = f"{name} *" if name == DEFAULT_MODEL else name
        table.add_row(shown, size, here.source if here else "", entry.license, entry.purpose)
    for model in stored.values():
        table.add_row(model.name, f"{model.size / 1e6:,.0f} MB", escape(model.source))
    Console().print(table)
    click.echo(f"* is the default. Models are kept in {store.root}")


@models.command()
@click.argument("name", default=DEFAULT_MODEL)
def pull(name: str) -> None:
    """Bring the model NAME (or a hub id) to this machine."""
    from decoding.models.provision import ensure_model
    from lsp_server.progress import ProgressBar

    with ProgressBar() as progress:
        folder = ensure_model(name, progress)
    click.echo(f"{folder.name} is in {folder.path} ({folder.source})")


@models.command()
@click.argument("name")
def remove(name: str) -> None:
    """Delete the model NAME from this machine."""
    freed = ModelStore.of_user().remove(name)
    if not freed:
        raise BadInput(f"{name} is not provisioned: draftwood models list shows what is")
    click.echo(f"{name} is removed, {freed / 1e6:,.0f} MB are free again")


@models.command()
@click.argument("name", default=DEFAULT_MODEL)
def path(name: str) -> None:
    """Print the folder of the model NAME."""
    folder = ModelStore.of_user().find(name)
    if folder is None:
        raise BadInput(f"{name} is not provisioned: draftwood models pull {name}")
    click.echo(folder.path)


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
@click.option("--network/--no-network", default=True, help="Ask whether the hub and the package index answer.")
def doctor(as_json: bool, network: bool) -> None:
    """Say what Draftwood finds on this machine, and what to do where something is wrong."""
    from lsp_server.doctor import examine

    checks = examine(ModelStore.of_user(), network)
    problems = sum(check.state == "problem" for check in checks)
    if as_json:
        click.echo(json.dumps({"problems": problems, "checks": [asdict(check) for check in checks]}))
        return
    console = Console(soft_wrap=True, highlight=False)
    for check in checks:
        console.print(f"{_MARKS[check.state]} {check.name:<16}{escape(check.value)}")
        if check.advice:
            console.print(f"  {'':<16}[bold]→ {escape(check.advice)}[/]")
    if problems:
        console.print(f"{problems} of {len(checks)} checks found a problem.")
    else:
        console.print(f"All {len(checks)} checks passed; lines with ! can be improved.")
