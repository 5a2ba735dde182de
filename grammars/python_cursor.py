"""Open a syntax state at a cursor: which part of a document has to be read, and what to do where it is broken.

Knows lines, blocks and columns. Must not know tokens or what a completion is.

What may follow a cursor depends on the headers of the blocks around it and on the statement that it stands in, not
on the statements before: the bodies of finished blocks are left out. So a state opens in the time that a dozen
lines take, wherever the cursor is, and mistakes elsewhere in the document do not matter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from grammars.python_lines import LogicalLine, has_long_line, logical_lines
from grammars.python_parser import ANYWHERE
from grammars.python_states import State, describe_refusal, first_hopeless_byte, python
from grammars.text_diff import common_prefix

_GOES_ON = re.compile(rb"(?:async[ \t\f]+)?(?:if|elif|else|for|while|try|except)\b")
"""Clauses that another may follow, also where their body is on the same line (`try: x()`)."""
_LONGEST_STATEMENT = 65_536
"""Bytes of a statement before the cursor in it; reading takes 1 µs for each, at every key."""
_CONTINUES = re.compile(rb"(?:elif|else|except|finally)(?![A-Za-z0-9_\x80-\xff])")


@dataclass(frozen=True, slots=True)
class Opened:
    """The syntax at a cursor.

    Attributes:
        state: None where the text before the cursor is hopeless.
        off_reason: why, in one line without any of the text; None where there is a state.
        repaired: whether lines above the cursor were broken and something sound was read in their place.
    """

    state: State | None
    off_reason: str | None = None
    repaired: bool = False


@dataclass(slots=True)
class LineCache:
    """The logical lines of the document that was asked for last: an edit costs the lines below it only."""

    data: bytes = b""
    lines: list[LogicalLine] = field(default_factory=list)

    def before(self, data: bytes) -> list[LogicalLine]:
        """The logical lines of `data`."""
        same = common_prefix(self.data, data)
        kept = self.lines
        while kept and (kept[-1].end >= same or not kept[-1].complete):
            kept.pop()
        kept.extend(logical_lines(data, kept[-1].end if kept else 0))
        self.data = data
        return kept


def open_at_cursor(data: bytes, cache: LineCache | None = None) -> Opened:
    """The state after `data`, the text before the cursor."""
    if has_long_line(data, len(data)):
        return Opened(None, "the line at the cursor is too long")
    lines = (cache or LineCache()).before(data)
    if lines and len(data) - lines[-1].begin > _LONGEST_STATEMENT:
        return Opened(None, "the statement at the cursor is too long")
    if not lines:
        return _read_last(python().start(), data, repaired=False)
    pieces = list(_skeleton(data, lines))[::-1]
    exact = _read_all(python().start(), pieces)
    last = lines[-1]
    if exact is not None:
        opened = _read_last(exact, data[last.begin :], repaired=False)
        if opened.state is not None:
            return opened
    around = _read_repaired(pieces)
    if around is None:
        return Opened(None, "the blocks around the cursor are not indented consistently")
    if not last.complete:
        return _read_last(around, data[last.begin :], repaired=True)
    opened = _read_last(around, data[last.begin :], repaired=True)
    return opened if opened.state is not None else _without_last(around, data, last, opened)


def _without_last(around: State, data: bytes, last: LogicalLine, opened: Opened) -> Opened:
    """The state below a broken line that is over: as if it were sound."""
    header = data[last.content : last.end].rstrip().endswith(b":")
    sound = around.run(_substitute(data, last, header))
    if sound is None:
        return opened
    return _read_last(sound, data[last.end :], repaired=True)


def _read_last(state: State, text: bytes, repaired: bool) -> Opened:
    read = state.run(text)
    if read is not None:
        return Opened(read, repaired=repaired)
    before, offset = first_hopeless_byte(state, text)
    assert offset is not None, "run and step disagree"
    return Opened(None, f"the code at the cursor is broken: {describe_refusal(before, text[offset])}")


def _substitute(data: bytes, line: LogicalLine, header: bool) -> bytes:
    """A sound line in the place of a broken one."""
    return data[line.begin : line.content] + (b"if 1:\n" if header else b"pass\n")


@dataclass(frozen=True, slots=True)
class _Piece:
    """A line that the skeleton keeps, and what stands for the body that it leaves out."""

    text: bytes
    body: bytes
    substitute: bytes


def _skeleton(data: bytes, lines: list[LogicalLine]) -> Iterator[_Piece]:
    """What has to be read before the last line, backwards: the headers around it, and the clauses that a header or
    the last line itself may go on with (`else` after `if`, a function after its decorator)."""
    level = lines[-1].column
    continues = True  # the last line may be an unfinished `else`
    for number in range(len(lines) - 2, -1, -1):
        line = lines[number]
        if line.column > level or (line.column == level and not continues):
            continue
        inner = lines[number + 1]
        has_body = inner.column > line.column
        goes_on = data[line.content] == 0x40 or _GOES_ON.match(data, line.content) is not None
        if line.column == level and not goes_on:
            continues = False
            continue
        enclosing = line.column < level
        body = b"" if enclosing or not has_body else data[inner.begin : inner.content] + b"pass\n"
        yield _Piece(data[line.begin : line.end], body, _substitute(data, line, header=True) if enclosing else b"")
        level = line.column
        continues = data[line.content] == 0x40 or _CONTINUES.match(data, line.content) is not None
        if level == 0 and not continues:
            return


def _read_all(state: State, pieces: list[_Piece]) -> State | None:
    for piece in pieces:
        following = state.run(piece.text + piece.body)
        if following is None:
            return None
        state = following
    return state


def _read_repaired(pieces: list[_Piece]) -> State | None:
    """The state after `pieces`, sound headers in the place of broken ones, in a context that allows everything."""
    state = python().start(ANYWHERE)
    for piece in pieces:
        following = state.run(piece.text + piece.body) or (state.run(piece.substitute) if piece.substitute else state)
        if following is None:
            return None
        state = following
    return state
