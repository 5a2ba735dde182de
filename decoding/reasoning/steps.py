"""The steps of a function or a piece of code: what an explanation quotes, one after the other.

Knows Python's statements. Must not know who explains, or how.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Sequence
from itertools import pairwise

MOST_STEPS = 6
_LINES = 4
"""Simple statements are taken together up to about so many lines."""
_COMPOUND = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.Match)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def steps_of(code: str) -> tuple[str, ...]:
    """The steps of code at column 0, dedented: of the body of a function, else of the statements themselves. Each
    parses by itself. Nothing where the code does not parse, or is a class: that is a list, and has no steps."""
    try:
        body = ast.parse(code).body
    except (SyntaxError, ValueError, RecursionError):
        return ()
    first_line = 1
    if len(body) == 1 and isinstance(body[0], ast.FunctionDef | ast.AsyncFunctionDef):
        node = body[0]
        body = node.body[1:] if ast.get_docstring(node) is not None else node.body
        first_line = (node.body[0].end_lineno or 1) + 1 if len(body) < len(node.body) else node.body[0].lineno
    if not body or any(isinstance(node, ast.ClassDef) for node in body):
        return ()
    lines = code.split("\n")
    spans = _merged(_grouped(body, first_line))
    quotes = [textwrap.dedent("\n".join(lines[first - 1 : last])).strip("\n") for first, last in spans]
    return tuple(quotes) if all(map(_parses, quotes)) else ()


def _grouped(body: Sequence[ast.stmt], first_line: int) -> list[tuple[int, int]]:
    """1-based line spans: a compound statement alone, simple ones together; comments go with what follows them."""
    spans: list[tuple[int, int]] = []
    open_group = False
    for node in body:
        assert node.end_lineno is not None
        begin = spans[-1][1] + 1 if spans else first_line
        simple = not isinstance(node, (*_COMPOUND, *_DEFINITIONS))
        joins = open_group and simple and node.end_lineno - spans[-1][0] < _LINES
        if spans and (joins or begin > node.lineno):  # several statements on a line stay together
            spans[-1] = (spans[-1][0], max(spans[-1][1], node.end_lineno))
        else:
            spans.append((begin, node.end_lineno))
        open_group = simple
    return spans


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """At most MOST_STEPS: the shortest neighbours become one."""
    spans = list(spans)
    while len(spans) > MOST_STEPS:
        sizes = [later[1] - earlier[0] for earlier, later in pairwise(spans)]
        at = sizes.index(min(sizes))
        spans[at : at + 2] = [(spans[at][0], spans[at + 1][1])]
    return spans


def _parses(code: str) -> bool:
    try:
        ast.parse(code)
    except (SyntaxError, ValueError, RecursionError):
        return False
    return bool(code.strip())
