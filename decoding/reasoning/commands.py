"""One command: from the request to the result. The table of contents of what there is.

Knows all commands; must not know where their texts come from.
"""

from __future__ import annotations

from collections.abc import Callable

from decoding.errors import BadInput
from decoding.reasoning.backend import Backend, Say
from decoding.reasoning.documenting import docstring
from decoding.reasoning.explaining import explain, reason
from decoding.reasoning.fixing import Trial, edit, fix
from decoding.reasoning.report import Report
from decoding.reasoning.requests import CommandName, CommandRequest, CommandResult
from decoding.reasoning.test_writing import tests

_COMMANDS: dict[CommandName, Callable[[CommandRequest, Report], CommandResult]] = {
    "explain": explain,
    "fix": fix,
    "docstring": docstring,
    "tests": tests,
    "edit": edit,
    "reason": reason,
}
_PYTHON_ONLY = frozenset({"fix", "docstring", "tests", "edit"})
"""What a file of another language cannot be asked for: changes are held to Python's grammar."""


def run_command(request: CommandRequest, backend: Backend, say: Say, trial: Trial | None = None) -> CommandResult:
    """Run a command; `say` gets the Markdown as it grows. Nothing is changed on disk.

    `trial` runs the user's tests for `fix`, where the user asked for it. Raises BadInput, Cancelled, ModelError.
    """
    if request.command in _PYTHON_ONLY and request.snapshot.language != "python":
        raise BadInput(f"{request.command} works on Python only, and this file is {request.snapshot.language}")
    report = Report(backend, say)
    if request.command == "fix":
        return fix(request, report, trial)
    return _COMMANDS[request.command](request, report)
