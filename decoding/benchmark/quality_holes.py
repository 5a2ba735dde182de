"""More holes in real files, where the data set has none: what is tuned on one half can be tested on the other.

Knows source text. Holes are chosen by a fixed seed, in an order that does not depend on how many are asked for.
"""

from __future__ import annotations

import ast
import io
import keyword
import random
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

_SEED = 11
_MOST_LINES = 8
"""Of a block that is cut out, as in the data set."""
_IN_FILE = {"line": 10, "block": 4}
"""So many holes are taken from one file at most."""
_COMPOUND = (ast.If, ast.For, ast.While, ast.With, ast.Try, ast.FunctionDef)


@dataclass(frozen=True, slots=True)
class Hole:
    """Characters [start, end) of a file, on lines `first` to `last` (from 1)."""

    file: str
    start: int
    end: int
    first: int
    last: int


def more_holes(kind: str, files: Mapping[str, str], taken: Mapping[str, Iterable[tuple[int, int]]]) -> list[Hole]:
    """Holes of a kind, "line" (the rest of a line behind a token, which reads a name) or "block" (the body of a
    statement, up to 8 lines), on no line of `taken` (file -> first and last lines of other holes)."""
    chance = random.Random(_SEED)
    found: list[Hole] = []
    for file in sorted(files):
        lines = {line for first, last in taken.get(file, ()) for line in range(first, last + 1)}
        holes = _lines(file, files[file]) if kind == "line" else _blocks(file, files[file])
        free = [hole for hole in holes if lines.isdisjoint(range(hole.first, hole.last + 1))]
        chance.shuffle(free)
        found += _apart(free)[: _IN_FILE[kind]]
    chance.shuffle(found)
    return found


def _apart(holes: list[Hole]) -> list[Hole]:
    """The first of those that share a line."""
    lines: set[int] = set()
    kept = []
    for hole in holes:
        own = range(hole.first, hole.last + 1)
        if lines.isdisjoint(own):
            lines.update(own)
            kept.append(hole)
    return kept


def _lines(file: str, text: str) -> Iterator[Hole]:
    """The rest of a line behind each of its tokens, where that reads a name."""
    starts = _line_starts(text)
    tokens = [token for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.string.strip()]
    for before, token in pairwise(tokens):
        line = token.start[0]
        rest = [each for each in tokens if each.start[0] == line and each.start >= token.start]
        code = [each for each in rest if each.type != tokenize.COMMENT]
        if before.end[0] != line or not code or any(each.end[0] != line for each in code):
            continue
        if any(_reads(each, code[i - 1].string if i else before.string) for i, each in enumerate(code)):
            yield Hole(file, starts[line] + before.end[1], starts[line] + code[-1].end[1], line, line)


def _reads(token: tokenize.TokenInfo, before: str) -> bool:
    return token.type == tokenize.NAME and before != "." and not keyword.iskeyword(token.string)


def _blocks(file: str, text: str) -> Iterator[Hole]:
    """The bodies of statements, but for those that begin with a docstring."""
    starts = _line_starts(text)
    source = text.split("\n")
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, _COMPOUND) or isinstance(_value(node.body[0]), ast.Constant):
            continue
        first, last = node.body[0], node.body[-1]
        last_line, last_column = last.end_lineno or 0, last.end_col_offset or 0
        if node.lineno < first.lineno and last_line - first.lineno < _MOST_LINES:
            start = starts[first.lineno] + _characters(source[first.lineno - 1], first.col_offset)
            end = starts[last_line] + _characters(source[last_line - 1], last_column)
            yield Hole(file, start, end, first.lineno, last_line)


def _value(statement: ast.stmt) -> ast.expr | None:
    return statement.value if isinstance(statement, ast.Expr) else None


def _characters(line: str, column: int) -> int:
    """`ast` counts columns in bytes."""
    return len(line.encode("utf-8")[:column].decode("utf-8"))


def _line_starts(text: str) -> dict[int, int]:
    """Line number, from 1 -> offset of its first character."""
    starts, at = {1: 0}, 0
    for number, line in enumerate(text.split("\n"), 1):
        starts[number] = at
        at += len(line) + 1
    return starts
