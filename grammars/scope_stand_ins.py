"""What may stand in the place of a statement that cannot be read, so that the code around it can.

Knows lines and columns of broken text. Must not know trees or scopes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from grammars.scope_pieces import logical_line_start
from grammars.scope_position import PLACEHOLDER

_CLOSES = re.compile(rb"[ \t]*[)\]}]")
_CONTINUES = re.compile(rb"[ \t]*(?:else|elif|except|finally)\b")
_FAR = 4096
"""So far before the cursor a statement may begin."""
_MOST_LINES = 200
StandIn = tuple[int, int, bytes]
"""The bytes [start, end) of the text that are to be replaced, and by what: it contains `PLACEHOLDER`."""


def stand_ins(text: bytes, offset: int) -> Iterator[StandIn]:
    """What to try, in turn: the cursor's line as a statement or a header, then more and more of the lines around it."""
    line = text.rfind(b"\n", 0, offset) + 1
    line_end = _line_end(text, offset)
    blank = not text[line:line_end].strip()
    indent = _indent_of_block(text, line) if blank else _indent(text[line:line_end])
    name = indent + PLACEHOLDER
    header = indent + b"if " + PLACEHOLDER + b":"
    clause = header + b" pass"
    inner, rest = _ends_of_lines(text, line_end, len(indent.expandtabs(8)))
    follows = text[line_end + 1 : _line_end(text, line_end + 1)]
    if _CONTINUES.match(follows):
        yield line, line_end, clause
    yield line, line_end, header
    yield line, line_end, name
    if inner != line_end:
        yield line, inner, name
    start = logical_line_start(text, max(0, text.rfind(b"\n", 0, max(0, line - _FAR)) + 1), offset)
    if start < line:
        outer = _indent(text[start:line]) + PLACEHOLDER
        yield start, line_end, outer
        yield start, _ends_of_lines(text, line_end, len(_indent(text[start:line]).expandtabs(8)))[0], outer
    if rest != inner:
        yield line, rest, name


def _line_end(text: bytes, offset: int) -> int:
    end = text.find(b"\n", offset)
    return len(text) if end < 0 else end


def _indent(line: bytes) -> bytes:
    return line[: len(line) - len(line.lstrip(b" \t\f"))]


def _indent_of_block(text: bytes, line: int) -> bytes:
    """The blanks that a statement on an empty line needs: those of the code before it, deeper below a header."""
    before = text[:line].rstrip()
    last = before[before.rfind(b"\n") + 1 :]
    return _indent(last) + (b"    " if before.endswith(b":") else b"")


def _ends_of_lines(text: bytes, line_end: int, column: int) -> tuple[int, int]:
    """Where the lines end that belong to the statement, deeper ones and closing brackets, and where its block ends."""
    inner = end = line_end
    still_inner = True
    for _ in range(_MOST_LINES):
        if end >= len(text):
            break
        following = _line_end(text, end + 1)
        line = text[end + 1 : following]
        depth = len(_indent(line).expandtabs(8))
        if line.strip() and depth < column and not _CLOSES.match(line):
            break
        belongs = not line.strip() or depth > column or (depth == column and bool(_CLOSES.match(line)))
        still_inner = still_inner and belongs
        end = following
        inner = end if still_inner else inner
    return inner, end
