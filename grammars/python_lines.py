"""The logical lines of a document: where statements begin, without parsing any.

Knows strings, comments, brackets and newlines. Must not know the grammar; it works on broken text as well, where it
does what a reader would: a string without an end stops at the end of its line, and a bracket that was left open
is given up where a line begins with a word that stands in no bracket.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from grammars.python_lexer import Mode, Space
from grammars.python_states import BYTE_ORDER_MARK, python
from grammars.python_strings import open_string

_NEWLINE = rb"(?:\r\n|\r|\n)"
_INERT = rb"[^()\[\]{}'\"\#\\\n\r]"
_BEGIN = re.compile(rb"(?:[ \t\f]*+(?:\#[^\n\r]*+)?" + _NEWLINE + rb")*+([ \t\f]*+)")
_SIMPLE_LINE = re.compile(
    rb"(?:" + _INERT + rb"++|\(" + _INERT + rb"*+\)|\[" + _INERT + rb"*+\]"
    rb"|\"[^\"\\{\n\r]++\"|'[^'\\{\n\r]++')*+(?:\#[^\n\r]*+)?" + _NEWLINE
)
_PART = re.compile(
    rb"(?P<string>\"\"\"|'''|\"|')|(?P<skip>\#[^\n\r]*+|\\(?:\r\n|.)?)|(?P<open>[(\[{])|(?P<close>[)\]}])"
    rb"|(?P<newline>\r\n|\r|\n)",
    re.DOTALL,
)
_REST_OF_STRING = {
    b'"': re.compile(rb"(?:[^\"\\\n\r]++|\\(?:\r\n|.))*+\"?", re.DOTALL),
    b"'": re.compile(rb"(?:[^'\\\n\r]++|\\(?:\r\n|.))*+'?", re.DOTALL),
    b'"""': re.compile(rb"(?:[^\"\\]++|\\.|\"(?!\"\"))*+(?:\"\"\"|\\?\Z|\"{0,2}\Z)", re.DOTALL),
    b"'''": re.compile(rb"(?:[^'\\]++|\\.|'(?!''))*+(?:'''|\\?\Z|'{0,2}\Z)", re.DOTALL),
}
_STATEMENT = re.compile(
    rb"[ \t\f]*(?:def|class|return|import|while|raise|del|pass|break|continue|global|nonlocal|assert|try|except"
    rb"|finally|elif|with)(?![A-Za-z0-9_\x80-\xff])"
)
"""What never begins a line inside brackets."""


LONGEST_LINE = 16_384
"""Bytes of a line that is still code. Longer ones are data, and what grows with them (states, trees that are nested as
deep as they are long) takes seconds at every key: 119 s for an attribute of an attribute, 30,000 times."""


def has_long_line(data: bytes, start: int = 0, end: int | None = None) -> bool:
    """Whether [start, end) of `data` lies on, or holds, a line of more than LONGEST_LINE bytes."""
    end = len(data) if end is None else end
    position = max(data.rfind(b"\n", max(0, start - LONGEST_LINE - 1), start) + 1, start - LONGEST_LINE - 1, 0)
    while position <= end and position + LONGEST_LINE < len(data):
        newline = data.rfind(b"\n", position, position + LONGEST_LINE + 1)
        if newline < 0:
            return True
        position = newline + 1
    return False


class LogicalLine(NamedTuple):
    """One statement line, or the header of a block.

    Attributes:
        begin: offset of the physical line it begins on.
        content: offset of its first character that is no white space.
        end: offset after its newline, or the end of the text.
        column: tabs count to multiples of 8.
        complete: its newline was read.
    """

    begin: int
    content: int
    end: int
    column: int
    complete: bool


def logical_lines(data: bytes, start: int = 0) -> Iterator[LogicalLine]:
    """The logical lines of `data` from offset `start`, which must be the begin of one. Blank lines and lines with a
    comment only belong to none."""
    position = len(BYTE_ORDER_MARK) if not start and data.startswith(BYTE_ORDER_MARK) else start
    while True:
        match = _BEGIN.match(data, position)
        assert match is not None, "the pattern matches the empty text"
        begin, content = match.span(1)
        if content == len(data) or data[content] == 0x23:
            return
        simple = _SIMPLE_LINE.match(data, content)
        position, complete = (simple.end(), True) if simple else _end_of_line(data, content)
        yield LogicalLine(begin, content, position, column_of(data[begin:content]), complete)


def column_of(blank: bytes) -> int:
    """The column after white space."""
    column = 0
    for byte in blank:
        column = column // 8 * 8 + 8 if byte == 0x09 else 0 if byte == 0x0C else column + 1
    return column


def _end_of_line(data: bytes, position: int) -> tuple[int, bool]:
    """The end of the logical line that `position` is in, and whether it is complete."""
    depth = 0
    while match := _PART.search(data, position):
        position = match.end()
        match match.lastgroup:
            case "open":
                depth += 1
            case "close":
                depth = max(depth - 1, 0)
            case "string":
                position = _end_of_string(data, match)
            case "newline":
                if depth == 0 or _STATEMENT.match(data, position):
                    return position, True
    return len(data), False


def _end_of_string(data: bytes, quotes: re.Match[bytes]) -> int:
    prefix = data[max(quotes.start() - 3, 0) : quotes.start()].lower()
    if prefix[-1:] == b"f" or prefix[-2:] == b"fr":
        letters = "fr" if b"r" in prefix[-2:] else "f"
        return _end_of_fstring(data, quotes.start(), letters)
    if len(quotes[0]) == 3 or data[quotes.end() : quotes.end() + 1] != quotes[0]:
        rest = _REST_OF_STRING[quotes[0]].match(data, quotes.end())
        assert rest is not None, "the pattern matches the empty text"
        return rest.end()
    return quotes.end() + 1


def _end_of_fstring(data: bytes, position: int, letters: str) -> int:
    """Quotes may be nested in replacement fields: this needs the real lexer."""
    lexer = python().lexer
    mode: Mode = open_string(lexer, (), letters, data[position]).mode
    outside = lexer.get(Space, ())
    for offset in range(position + 1, len(data)):
        step = mode.step(data[offset])
        if step is None:
            return offset
        mode = step.mode
        if mode is outside:
            return offset + 1
    return len(data)
