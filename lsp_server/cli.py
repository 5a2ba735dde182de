"""`draftwood`: where the command line is entered and left.

Knows errors and exit statuses: each becomes one line here and nowhere else. Imports nothing of weight before an
interrupt has somebody to answer it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 on success, 2 on bad input, 1 on an internal error."""
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status."""
    try:
        status = _run(arguments)
        if sys.stdout is not None and not sys.stdout.closed:  # a server closes it when it is told to go
            sys.stdout.flush()  # here, where a full disk is an error; at the exit of the interpreter it is a traceback
    except KeyboardInterrupt:
        return _say("interrupted", _INTERRUPTED)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output left: nobody is there to be told
        return 0
    except OSError as error:
        if error.filename is None and sys.stdout is not None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or it is tried again at the exit
        return _say(f"{error.filename or 'standard output'}: {error.strerror}", 1)
    return status


def _run(arguments: Sequence[str] | None) -> int:
    import logging

    import click

    from decoding.errors import BadInput, Cancelled, DraftwoodError
    from lsp_server.command_line import cli

    try:
        result = cli.main(args=list(arguments) if arguments is not None else None, standalone_mode=False)
    except (click.ClickException, BadInput) as error:
        return _say(error.format_message() if isinstance(error, click.ClickException) else str(error), 2)
    except (click.Abort, Cancelled):
        return _say("interrupted", _INTERRUPTED)
    except DraftwoodError as error:
        return _say(str(error), 1)
    except OSError:
        raise
    except Exception as error:
        logging.getLogger(__name__).info("internal error", exc_info=True)
        return _say(f"internal error: {type(error).__name__}: {error} (run with -v for the traceback)", 1)
    return result if isinstance(result, int) else 0


def _say(message: str, status: int) -> int:
    print(f"draftwood: {' '.join(message.split())}", file=sys.stderr)
    return status


if __name__ == "__main__":
    main()
