"""The commands of `draftwood`, by name.

Knows click, and which module has which command; commands are imported when they are called, so that
`draftwood --version` costs nothing.
"""

from __future__ import annotations

import importlib
import logging
import sys
from importlib.metadata import version

import click

_COMMANDS = {
    "complete": "lsp_server.cli_complete:complete",
    "generate": "lsp_server.cli_complete:generate",
    "explain": "lsp_server.cli_commands:explain",
    "fix": "lsp_server.cli_commands:fix",
    "docstring": "lsp_server.cli_commands:docstring",
    "tests": "lsp_server.cli_commands:tests",
    "edit": "lsp_server.cli_commands:edit",
    "reason": "lsp_server.cli_commands:reason",
    "demo": "lsp_server.cli_demo:demo",
    "bench": "lsp_server.cli_bench:bench",
    "serve": "lsp_server.cli_serve:serve",
    "models": "lsp_server.cli_models:models",
    "stats": "lsp_server.cli_stats:stats",
    "doctor": "lsp_server.cli_models:doctor",
}


class _LazyGroup(click.Group):
    """A group whose commands live in modules of their own."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        place = _COMMANDS.get(cmd_name)
        if place is None:
            return None
        module, _, name = place.partition(":")
        command = getattr(importlib.import_module(module), name)
        assert isinstance(command, click.Command)
        return command


@click.command(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(version("draftwood"), prog_name="draftwood")
@click.option("-v", "--verbose", is_flag=True, help="Log to stderr what happens.")
def cli(verbose: bool) -> None:
    """Private, local code completion for Python, behind the Language Server Protocol."""
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO if verbose else logging.WARNING,
        format="%(levelname)s %(name)s: %(message)s",
    )
