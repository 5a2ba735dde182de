"""`draftwood`: the command line.

Knows click, and which module has which command; commands are imported when they are called, so that
`draftwood --version` costs nothing. Errors become one line and an exit status here and nowhere else.
"""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Sequence
from importlib.metadata import version

import click

from decoding.errors import BadInput, Cancelled, DraftwoodError

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


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 on success, 2 on bad input, 1 on an internal error."""
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status."""
    try:
        result = cli.main(args=list(arguments) if arguments is not None else None, standalone_mode=False)
    except (click.ClickException, BadInput) as error:
        return _say(error.format_message() if isinstance(error, click.ClickException) else str(error), 2)
    except (click.Abort, KeyboardInterrupt, Cancelled):
        return _say("interrupted", 130)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output left: nobody is there to be told
        return 0
    except DraftwoodError as error:
        return _say(str(error), 1)
    except Exception as error:
        logging.getLogger(__name__).info("internal error", exc_info=True)
        return _say(f"internal error: {type(error).__name__}: {error} (run with -v for the traceback)", 1)
    return result if isinstance(result, int) else 0


def _say(message: str, status: int) -> int:
    click.echo(f"draftwood: {' '.join(message.split())}", err=True)
    return status


if __name__ == "__main__":
    main()
