"""Cut a Python text into pieces that can be parsed and cached one by one.

A piece is a statement of the module body, or of the body of a class that is itself reached through class bodies
only; a class header is a piece of its own and its body follows as further pieces. Functions are never cut. The
cutter knows lines, brackets, strings and indentation, nothing of the grammar: it must give the same answer for
broken text whatever the history of edits was, which no error-recovering parser promises.

Pieces partition the text. Each begins at the start of a line, and carries the stack of class bodies it was met in,
so that cutting can begin again at any piece and stop at the first old piece that it meets in the same state.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_TOKEN = re.compile(rb"(#[^\r\n]*)|(['\"])|([(\[{])|([)\]}])|(\\(?:\r\n|\r|\n))|(\r\n|\r|\n)")
# Words that begin a statement and cannot begin a line inside brackets: meeting one there means that a bracket was
# left open, which is how most unfinished code looks.
_STATEMENT_WORDS = frozenset(
    b"def class return while try with raise del pass break continue global nonlocal assert elif except finally import"
    b" @".split()
)
_CLAUSE_WORDS = frozenset(b"else elif except finally".split())

_STRING_END = {
    b'"': rb'(?:[^"\\\r\n]++|\\(?:\r\n|[\s\S]))*+"',
    b"'": rb"(?:[^'\\\r\n]++|\\(?:\r\n|[\s\S]))*+'",
    b'"""': rb'(?:[^"\\]++|\\[\s\S]|"(?!""))*+"""',
    b"'''": rb"(?:[^'\\]++|\\[\s\S]|'(?!''))*+'''",
}
# One match reads a logical line, strings of several lines and four levels of brackets included (4 times as fast as
# going token by token, which is left for what may not end: fields of f-strings, continued lines, broken code).
_STRING = rb"(?<![fFtT])(?<![fFtT][rR])(?:%s)" % b"|".join(
    (mark if len(mark) == 3 else mark + b"(?!%s)" % (mark * 2)) + end for mark, end in _STRING_END.items()
)
_WITHOUT_FIELDS = rb"""\"(?!\"\")[^\"\\\r\n{}]*+\"|'(?!'')[^'\\\r\n{}]*+'"""
_PLAIN = rb"""[^\r\n\#'"()\[\]{}\\]++|%s|%s""" % (_STRING, _WITHOUT_FIELDS)
_INSIDE = rb"%s|(?:\#[^\r\n]*+)?+(?>\r\n|\r|\n)(?![ \t\f]*+(?:@|(?:%s)(?![0-9A-Za-z_\x80-\xff])))" % (
    _PLAIN,
    rb"|".join(sorted(_STATEMENT_WORDS - {b"@"})),
)
_NESTED = _INSIDE
for _ in range(3):
    _NESTED = rb"%s|[(\[{](?:%s)*+[)\]}]" % (_INSIDE, _NESTED)
_LOGICAL_LINE = re.compile(
    rb"([ \t\f]*+)(?=([A-Za-z_\x80-\xff][0-9A-Za-z_\x80-\xff]*+|@)?+)((?:%s|[(\[{](?:%s)*+[)\]}])*+)"
    rb"(?:\#[^\r\n]*+)?+(?:\r\n|\r|\n|\Z)" % (_PLAIN, _NESTED)
)
_STRING_PREFIX = re.compile(rb"(?<![0-9A-Za-z_\x80-\xff])[rbuftRBUFT]{1,2}\Z")
_WORD = re.compile(rb"[A-Za-z_\x80-\xff][0-9A-Za-z_\x80-\xff]*")
_INDENT = re.compile(rb"[ \t\f]*")
_CLOSED = {mark: re.compile(end) for mark, end in _STRING_END.items()}
_CLOSER = {b"(": b")", b"[": b"]", b"{": b"}"}
_LINE_END = re.compile(rb"[^\r\n]*")
_FIELD_STOP = re.compile(rb"\{\{|\}\}|\{|\\[\s\S]|['\"]|\r\n|\r|\n")

Stack = tuple[tuple[int, int], ...]
"""Open class bodies, outermost first: (column of the class, column of its body or -1 before its first line)."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of a text, without its position.

    Attributes:
        text: its bytes, from the start of a line to the start of the next piece.
        column: indentation of its first line, tabs to multiples of 8.
        opens_class: it is a class header whose body follows as pieces of their own.
        stack: class bodies that were open before its first line was read.
        parents: columns of the classes whose bodies it belongs to, outermost first.
        misindented: a line of it is indented as no line may be there, or a header has no body.
    """

    text: bytes
    column: int
    opens_class: bool
    stack: Stack
    parents: tuple[int, ...]
    misindented: bool


@dataclass(frozen=True, slots=True)
class _Line:
    """A logical line: where its first physical line starts, its indentation, first word, and whether `:` ends it."""

    start: int
    column: int
    word: bytes
    ends_in_colon: bool


def cut(
    text: bytes, start: int = 0, stack: Stack = (), known: Callable[[int, Stack], bool] = lambda start, stack: False
) -> Iterator[tuple[int, Piece]]:
    """The pieces of `text` from `start` on, each with its offset; `stack` is the state there.

    `known` is asked where each further piece begins, with the state there; cutting ends when it says that what
    follows is known.
    """
    open_piece: _OpenPiece | None = None
    for line in _logical_lines(text, start):
        if open_piece is not None and open_piece.takes(line):
            open_piece.add(line)
            continue
        begin = start
        if open_piece is not None:
            yield open_piece.begin, open_piece.close(text, line.start)
            begin, stack = line.start, open_piece.stack_after
            if known(begin, stack):
                return
        open_piece = _OpenPiece(begin, line, stack)
    if open_piece is None:
        yield start, Piece(text[start:], 0, False, stack, tuple(column for column, _ in stack), False)
    else:
        yield open_piece.begin, open_piece.close(text, len(text))


class _OpenPiece:
    """A piece whose end is not known yet, and what decides which lines still belong to it."""

    def __init__(self, begin: int, first: _Line, stack: Stack) -> None:
        self.begin = begin
        self._before = stack
        while stack and first.column <= stack[-1][0]:
            stack = stack[:-1]
        self.misindented = False
        if not stack:
            self.misindented = first.column > 0
        elif stack[-1][1] < 0:
            stack = (*stack[:-1], (stack[-1][0], first.column))
        else:
            self.misindented = first.column != stack[-1][1]
        self._column = first.column
        self._body = stack
        self._indents = [first.column]
        self._last = first
        self._opens_class = _is_class_header(first)

    @property
    def stack_after(self) -> Stack:
        """The open class bodies after this piece."""
        return (*self._body, (self._column, -1)) if self._opens_class else self._body

    def takes(self, line: _Line) -> bool:
        """Whether `line` continues the piece: a nested line, a clause, or what a decorator belongs to."""
        if self._last.word == b"@" and len(self._indents) == 1:
            return True
        if self._opens_class:
            return False
        return line.column > self._column or (line.column == self._column and line.word in _CLAUSE_WORDS)

    def add(self, line: _Line) -> None:
        """Take a line in, and note whether it stands where Python expects one (tree-sitter does not)."""
        if line.column > self._indents[-1]:
            self.misindented |= not self._last.ends_in_colon
            self._indents.append(line.column)
        else:
            self.misindented |= self._last.ends_in_colon
            while len(self._indents) > 1 and line.column < self._indents[-1]:
                self._indents.pop()
            self.misindented |= line.column != self._indents[-1]
        if self._last.word == b"@" and len(self._indents) == 1:
            self._opens_class = _is_class_header(line)
        self._last = line

    def close(self, text: bytes, end: int) -> Piece:
        """The piece, which ends at `end`."""
        return Piece(
            text=text[self.begin : end],
            column=self._column,
            opens_class=self._opens_class,
            stack=self._before,
            parents=tuple(column for column, _ in self._body),
            misindented=self.misindented or (self._last.ends_in_colon and not self._opens_class),
        )


def _is_class_header(line: _Line) -> bool:
    return line.word == b"class" and line.ends_in_colon


def _logical_lines(text: bytes, position: int) -> Iterator[_Line]:
    """The logical lines from `position`, which is the start of a line."""
    size = len(text)
    while position < size:
        simple = _LOGICAL_LINE.match(text, position)
        if simple is not None:
            indent, word, code = simple.span(1)[1], simple[2], simple.span(3)[1]
            if code > indent:
                yield _Line(position, _column(text[position:indent]), word or b"", _colon_before(text, indent, code))
            position = simple.end()
            continue
        match = _INDENT.match(text, position)
        content = match.end() if match else position
        end, colon = _end_of_logical_line(text, content)
        yield _Line(position, _column(text[position:content]), _first_word(text, content), colon)
        position = end


def _first_word(text: bytes, content: int) -> bytes:
    if text[content : content + 1] == b"@":
        return b"@"
    match = _WORD.match(text, content)
    return match[0] if match else b""


def _next_line(text: bytes, position: int) -> int:
    match = _LINE_END.match(text, position)
    end = match.end() if match else position
    return end + (2 if text[end : end + 2] == b"\r\n" else 1)


def _column(indent: bytes) -> int:
    if indent.isspace() and b"\t" not in indent and b"\f" not in indent:
        return len(indent)
    column = 0
    for byte in indent:
        column = {0x09: (column // 8 + 1) * 8, 0x0C: 0}.get(byte, column + 1)
    return column


def _end_of_logical_line(text: bytes, position: int) -> tuple[int, bool]:
    """(start of the line after the logical line that is being read at `position`, whether a colon ends it)."""
    depth, significant = 0, position
    size = len(text)
    while True:
        token = _TOKEN.search(text, position)
        if token is None:
            return size, _colon_before(text, significant, size)
        kind = token.lastindex
        if kind == 1:
            if depth == 0:
                return _next_line(text, token.end()), _colon_before(text, significant, token.start())
            position = token.end()
        elif kind == 2:
            position = significant = _end_of_string(text, token.start())
        elif kind == 3:
            depth, position = depth + 1, token.end()
        elif kind == 4:
            depth, position = max(0, depth - 1), token.end()
        elif kind == 5:
            position = token.end()
        else:
            position = token.end()
            if depth == 0 or _starts_statement(text, position):
                return position, _colon_before(text, significant, token.start())


def logical_line_start(text: bytes, start: int, offset: int) -> int:
    """Where the logical line that holds `offset` begins, when reading begins at `start`, the start of a line."""
    begin = start
    for line in _logical_lines(text, start):
        if line.start > offset:
            break
        begin = line.start
    match = _INDENT.match(text, begin)
    end, _ = _end_of_logical_line(text, match.end() if match else begin)
    if end <= offset and text[end - 1 : end] in (b"\n", b"\r"):  # blank lines and comments follow it
        return max(text.rfind(b"\n", begin, offset), text.rfind(b"\r", begin, offset)) + 1
    return begin


def open_brackets(text: bytes, start: int, offset: int) -> bytes:
    """What closes the brackets that are open at `offset` when reading begins at `start`, innermost first."""
    stack: list[bytes] = []
    position = start
    while (token := _TOKEN.search(text, position, offset)) is not None:
        kind = token.lastindex
        position = _end_of_string(text, token.start()) if kind == 2 else token.end()
        if kind == 3:
            stack.append(_CLOSER[token[0]])
        elif kind == 4 and stack:
            stack.pop()
        elif kind == 6 and _starts_statement(text, position):
            stack.clear()
    return b"".join(reversed(stack))


def _colon_before(text: bytes, start: int, end: int) -> bool:
    return text[start:end].rstrip(b" \t\f")[-1:] == b":"


def _starts_statement(text: bytes, line_start: int) -> bool:
    match = _INDENT.match(text, line_start)
    return _first_word(text, match.end() if match else line_start) in _STATEMENT_WORDS


def _end_of_string(text: bytes, quote_at: int) -> int:
    """Offset after the string whose opening quote is at `quote_at`; an open one-line string ends with its line."""
    quote = text[quote_at : quote_at + 1]
    triple = text[quote_at : quote_at + 3] == quote * 3
    mark = quote * 3 if triple else quote
    prefix = _STRING_PREFIX.search(text, max(0, quote_at - 3), quote_at)
    body = quote_at + len(mark)
    if prefix and prefix[0].lower().strip(b"r") in (b"f", b"t"):
        end = _end_of_fstring(text, body, mark)
        if end is not None:
            return end
    closed = _CLOSED[mark].match(text, body)
    if closed:
        return closed.end()
    if triple:
        return len(text)
    line = _LINE_END.match(text, body)
    return line.end() if line else body


def _end_of_fstring(text: bytes, position: int, mark: bytes) -> int | None:
    """Offset after the f-string (PEP 701: fields may hold any string), None where it does not end."""
    while True:
        stop = _FIELD_STOP.search(text, position)
        if stop is None:
            return None
        found = stop[0]
        if found == b"{":
            after = _end_of_field(text, stop.end(), mark)
            if after is None:
                return None
            position = after
        elif found in (b"'", b'"'):
            if text.startswith(mark, stop.start()):
                return stop.start() + len(mark)
            position = stop.end()
        elif found in (b"\n", b"\r", b"\r\n") and len(mark) == 1:
            return None
        else:
            position = stop.end()


def _end_of_field(text: bytes, position: int, mark: bytes) -> int | None:
    """Offset after the `}` of a replacement field whose `{` is just before `position`."""
    depth = 0
    while True:
        match = re.compile(rb"[{}()\[\]'\":\r\n#]").search(text, position)
        if match is None:
            return None
        char = match[0]
        position = match.end()
        if char in b"([{":
            depth += 1
        elif char == b"}" and depth == 0:
            return position
        elif char in b")]}":
            depth -= 1
        elif char in b"'\"":
            # Before PEP 701 the outer quote cannot occur in a field: then this one ends the string early, and the
            # caller falls back to reading it as a plain string.
            position = _end_of_string(text, match.start())
        elif char == b":" and depth == 0:
            return _end_of_format(text, position, mark)
        elif char in b"\r\n" and _starts_statement(text, position):
            return None


def _end_of_format(text: bytes, position: int, mark: bytes) -> int | None:
    """Offset after the `}` that ends a field whose format specification begins at `position`."""
    while True:
        match = re.compile(rb"[{}'\"\r\n]").search(text, position)
        if match is None or (match[0] in b"\r\n" and len(mark) == 1):
            return None
        if match[0] == b"{":
            after = _end_of_field(text, match.end(), mark)
            if after is None:
                return None
            position = after
        elif match[0] == b"}":
            return match.end()
        elif text.startswith(mark, match.start()):
            return None
        else:
            position = match.end()
