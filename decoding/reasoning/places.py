"""Which code a change is about: what is selected, what a diagnostic or a traceback points at, what we find ourselves.

Knows sources, diagnostics and tracebacks. Must not know prompts or how code is changed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from decoding.errors import BadInput
from decoding.reasoning.checks import findings, syntax_error
from decoding.reasoning.pieces import Piece
from decoding.reasoning.requests import Problem
from decoding.reasoning.source import Source

_TRACEBACK_LINE = re.compile(r'File "([^"]+)", line (\d+)|^([^\s:]+\.py):(\d+)', re.MULTILINE)
_SYNTAX_LINE = re.compile(r"line (\d+): ")
_QUOTED_NAME = re.compile(r"""[`'"]([^\W\d]\w*)[`'"]""")


def selected_piece(source: Source) -> Piece:
    """The selected statements, the definition at the cursor or the statement there; with the cursor at the very
    beginning the whole file, which is what a file named without lines is about. Raises BadInput where nothing is."""
    piece = source.whole_statements()
    if not source.selected and source.definition is not None:
        piece = source.piece_of(source.definition)
    elif not source.selected and not source.start:
        piece = source.everything()
    if not piece.code.strip():
        raise BadInput("there is no code here: select some, or put the cursor into a function")
    return piece


def broken_piece(source: Source, problems: Sequence[Problem], message: str) -> Piece:
    """The definition around the problem, or the statements there."""
    at = _pointed_at(source, problems, message)
    pointed = Source(source.data, at, at, source.uri) if at is not None else source
    if pointed.definition is not None:
        return source.piece_of(pointed.definition)
    if at is not None and not pointed.whole_statements().code.strip():
        return _block_at(source, at)
    return selected_piece(pointed)


def _block_at(source: Source, at: int) -> Piece:
    """From a line that begins at column 0 to before the next one: where the code is too broken for a syntax tree."""
    at = len(source.data[: _line_around(source.data, at)[1]].rstrip())  # a blank line belongs to what stands above
    starts = [found.start() for found in re.finditer(rb"^[^\s#)\]}]", source.data, re.MULTILINE)]
    before = [start for start in starts if start < at]
    end = next((start for start in starts if start >= at), len(source.data))
    start = before[-1] if before else 0
    return source.piece(start, start + len(source.data[start:end].rstrip()))


def _pointed_at(source: Source, problems: Sequence[Problem], message: str) -> int | None:
    """The byte that the problem points at: the first diagnostic, the last line of a traceback in this file, or, where
    a file is named without a line, the first of our own findings that the message speaks of."""
    if problems:
        return problems[0].start
    lines = [
        int(match[2] or match[4])
        for match in _TRACEBACK_LINE.finditer(message)
        if (match[1] or match[3]).replace("\\", "/").rsplit("/", 1)[-1] == source.name
    ]
    if lines:
        return _start_of_line(source, lines[-1])
    if source.start or source.selected or source.definition is not None:
        return None
    if (error := syntax_error(source.text)) is not None:
        found = _SYNTAX_LINE.match(error)
        return _start_of_line(source, int(found[1])) if found else None
    for finding in findings(source.text):
        if not message.strip() or speaks_of(message, finding.names):
            return _start_of_line(source, finding.line)
    return None


def speaks_of(message: str, names: Sequence[str]) -> bool:
    """Whether one of the names occurs in the message as a whole word."""
    return any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", message) for name in names)


def _start_of_line(source: Source, line: int) -> int | None:
    """The byte where a 1-based line begins, None where there is no such line."""
    starts = [0, *(match.end() for match in re.finditer(rb"\n", source.data))]
    return starts[line - 1] if 1 <= line <= len(starts) else None


def settled(source: Source, problem: Problem) -> Problem:
    """A problem inside of the text. Checkers report late: where a name that the message quotes is not in its line, but
    in another one, the problem has moved to the nearest of those."""
    data = source.data
    start = min(problem.start, len(data))
    inside = problem.model_copy(update={"start": start, "end": max(start, min(problem.end, len(data)))})
    quoted = _QUOTED_NAME.search(problem.message)
    if quoted is None:
        return inside
    name = re.compile(rb"(?<!\w)%s(?!\w)" % re.escape(quoted[1].encode("utf-8", "surrogatepass")))
    begin, end = _line_around(data, start)
    if name.search(data, begin, end):
        return inside
    places = [found.start() for found in name.finditer(data)]
    if not places:
        return inside
    nearest = min(places, key=lambda place: abs(place - start))
    return inside.model_copy(update={"start": nearest, "end": nearest + len(quoted[1].encode())})


def _line_around(data: bytes, at: int) -> tuple[int, int]:
    end = data.find(b"\n", at)
    return data.rfind(b"\n", 0, at) + 1, end if end >= 0 else len(data)


def described(source: Source, problems: Sequence[Problem], message: str) -> str:
    """The problem in words, with the line that it is about."""
    told = []
    for problem in problems:
        begin, end = _line_around(source.data, problem.start)
        line = source.data[begin:end].decode("utf-8", "replace").strip()
        told.append(f"{problem.message} (in the line `{line}`)")
    return "\n".join(filter(None, (*told, message.strip())))


def own_problems(source: Source, piece: Piece) -> tuple[Problem, ...]:
    """What pyflakes finds in the piece, where nothing was said; nothing in a file that does not parse."""
    starts = [0, *(found.end() for found in re.finditer(rb"\n", source.data))]
    places = [(starts[min(finding.line, len(starts)) - 1], finding.text) for finding in findings(source.text)]
    begin = source.data.rfind(b"\n", 0, piece.start) + 1
    return tuple(Problem(start=place, end=place, message=text) for place, text in places if begin <= place < piece.end)
