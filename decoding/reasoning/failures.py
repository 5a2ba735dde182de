"""What a failed test run says, in the few lines that matter: a small model reads no more, and less.

Knows the outputs of pytest, unittest and plain tracebacks. Must not know who ran the tests.
"""

from __future__ import annotations

import re

_MOST_LINES = 8
_MOST_CHARACTERS = 600
_PYTEST_SAID = re.compile(r"^E(?: {3}|$)")
_PYTEST_AT = re.compile(r"^>\s+\S|^ {4}(?![ ~^]+$)\S")
_TRACEBACK = "Traceback (most recent call last):"
_ADDRESS = re.compile(r"<function (\S+) at 0x[0-9a-f]+>")
_NOT_SAID = re.compile(r"^E\s*(?:Use -v|Full diff:|\?)")


def essence(output: str) -> str:
    """The first failure: the statement that failed and what was said of it; the end of the output where it has none
    that is known."""
    lines = output.rstrip().split("\n")
    found = _of_pytest(lines) or _of_traceback(lines) or [line.rstrip() for line in lines[-_MOST_LINES:]]
    return _ADDRESS.sub(r"\1", "\n".join(found))[:_MOST_CHARACTERS].rstrip()


def _of_pytest(lines: list[str]) -> list[str]:
    """The line that is marked with `>` (or the last one shown, where tracebacks are short), and the `E` lines."""
    first = next((number for number, line in enumerate(lines) if _PYTEST_SAID.match(line)), None)
    if first is None:
        return []
    shown = [line for line in lines[:first] if _PYTEST_AT.match(line)]
    marked = [line for line in shown if line.startswith(">")]
    statement = (marked or shown)[-1:]
    said: list[str] = []
    for line in lines[first:]:
        if not _PYTEST_SAID.match(line) or len(said) == _MOST_LINES - 1:
            break
        if line[1:].strip() and not _NOT_SAID.match(line):
            said.append(line[4:].rstrip())
    return [*(line.lstrip("> ").rstrip() for line in statement), *said]


def _of_traceback(lines: list[str]) -> list[str]:
    """The innermost statement and the error of the first traceback."""
    if _TRACEBACK not in lines:
        return []
    begin = lines.index(_TRACEBACK) + 1
    end = next((number for number in range(begin, len(lines)) if not lines[number].startswith(" ")), len(lines) - 1)
    statements = [line.strip() for line in lines[begin:end] if line.startswith("    ") and line.strip("~^ ")]
    return [*statements[-1:], *(line.rstrip() for line in lines[end : end + 1])]
