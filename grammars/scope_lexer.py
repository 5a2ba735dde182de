"""Where words stand in a line of Python that is being written: a small lexer over the bytes of one statement.

It says of every word whether it reads a name, and if the name is unknown, which next byte still makes it legal: `=`
behind a keyword argument or a new variable, `:` of a walrus. Unlike a parser it never refuses anything; where it
cannot tell, a word is free. It is the seam to a full lexer: `grammars.scope_state` needs `read` and nothing else.
Knows bytes; must not know which names exist.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum

from grammars.scope_words import KEYWORDS, STRING_PREFIXES, Follow, Word, WordKind

_TOKEN = re.compile(rb"[0-9A-Za-z_\x80-\xff]+|[ \t\f]+|\r\n|\\(?:\r\n|[\r\n])|.", re.S)
_STRING_STOP = re.compile(rb"\\(?:\r\n|[\s\S]|\Z)|'{3}|\"{3}|'|\"|\{\{|\}\}|\{|\r\n|\n|\r")
_SOFT_KEYWORDS = frozenset({b"match", b"case", b"type"})
_CONSTANTS = frozenset({b"None", b"True", b"False", b"pass", b"break", b"continue"})
_HEADERS = frozenset(b"if elif else while for with try except finally def class async match case".split())


class _Last(Enum):
    """What stands before the next token."""

    OPERATOR = 0
    OPERAND = 1
    DOT = 2
    NAME = 3  # a name to bind is due: after `def`, `class`, `as`, a soft keyword
    EQUALS = 4  # one `=` behind an operand; another one makes it a comparison


class _Mode(Enum):
    """What words of a bracket, or of the statement outside of brackets, are."""

    EXPRESSION = 0
    TARGETS = 1  # after `for`, up to `in`
    LAMBDA = 2  # parameters
    NAMES = 3  # of an import or a global statement
    PATTERN = 4


class _Slot(Enum):
    """What a word may be at the beginning of an element."""

    LOAD = 0
    CONDITION = 1
    ARGUMENT = 2
    CHAIN = 3
    STATEMENT = 4
    PARAMETER = 5


_KIND_OF_SLOT = {
    _Slot.LOAD: WordKind.LOAD,
    _Slot.CONDITION: WordKind.CONDITION,
    _Slot.ARGUMENT: WordKind.ARGUMENT,
    _Slot.CHAIN: WordKind.CHAIN,
    _Slot.STATEMENT: WordKind.STATEMENT,
    _Slot.PARAMETER: WordKind.BINDING,
}


@dataclass(frozen=True, slots=True)
class _String:
    """An open string: its closing quotes, and whether `{` opens a field."""

    quotes: bytes
    fields: bool


@dataclass(frozen=True, slots=True)
class _Frame:
    """An open bracket; the outermost frame is the statement outside of all brackets.

    Attributes:
        slot: what the first word of an element is.
        fresh: nothing of the current element was read.
        element: a `for` may still make a comprehension of this bracket.
        condition: the element was opened by `if` or `while`: a walrus may begin it.
        definition: `def`, `class` or `type` whose head is being read: brackets of it hold parameters.
        header: the statement is a compound one, and its colon begins another.
        string: for the field of an f-string, the string it stands in.
        callee: the name that is called, where it is a name.
    """

    slot: _Slot
    mode: _Mode = _Mode.EXPRESSION
    fresh: bool = True
    element: bool = False
    condition: bool = False
    definition: bytes = b""
    header: bool = False
    string: _String | None = None
    callee: bytes = b""


@dataclass(frozen=True, slots=True)
class LexicalState:
    """The state after some bytes. `word` is unfinished: the next byte may be part of it."""

    frames: tuple[_Frame, ...] = (_Frame(_Slot.STATEMENT),)
    last: _Last = _Last.OPERATOR
    word: bytes = b""
    kind: WordKind = WordKind.FREE
    string: _String | None = None
    partial: bytes = b""  # quotes or a backslash at the end of what was read, whose meaning the next byte decides
    comment: bool = False
    awaits_follow: bool = False
    name: bytes = b""  # the name just read, or just before a dot and the word behind it
    callable: bytes = b""  # the name just read, which a parenthesis would call
    must_exist: bool = False  # the next word reads a name, whatever it could be otherwise

    @property
    def owner(self) -> bytes:
        """What the word that is being written belongs to: see `Word.object`."""
        return self.frames[-1].callee if self.kind is WordKind.ARGUMENT else self.name

    @property
    def in_code(self) -> bool:
        """Whether the next byte is code, not part of a string or a comment."""
        return self.string is None and not self.comment

    @property
    def next_kind(self) -> WordKind:
        """What the word is that is being written, or that would begin here."""
        if not self.in_code:
            return WordKind.FREE
        return self.kind if self.word else _kind_of_next(self)


@dataclass(frozen=True, slots=True)
class Reading:
    """What reading some bytes gives: the state after them and what was finished on the way, in order."""

    state: LexicalState
    events: tuple[Word | Follow, ...]
    newline: bool = False


def read(state: LexicalState, text: bytes) -> Reading:
    """Read `text` from `state`."""
    reader = _Reader(state)
    reader.run(text)
    return Reading(reader.frozen(), tuple(reader.events), reader.newline)


def _kind_of_next(state: LexicalState | _Reader) -> WordKind:
    frame = state.frames[-1]
    if state.last is _Last.DOT and state.name:
        return WordKind.ATTRIBUTE
    if state.last in (_Last.DOT, _Last.OPERAND):
        return WordKind.FREE
    if state.last is _Last.NAME or frame.mode in (_Mode.TARGETS, _Mode.NAMES, _Mode.PATTERN):
        return WordKind.BINDING
    if frame.mode is _Mode.LAMBDA:
        return WordKind.BINDING if frame.fresh else WordKind.LOAD
    if frame.slot is _Slot.PARAMETER and frame.fresh:
        return WordKind.BINDING
    inner = len(state.frames) - (state.last is _Last.EQUALS)  # no comprehension behind `f(x=`
    if any(outer.element for outer in state.frames[:inner]):
        return WordKind.ELEMENT
    if not frame.fresh:
        return WordKind.LOAD
    return WordKind.CONDITION if frame.condition else _KIND_OF_SLOT[frame.slot]


class _Reader:
    """Reads bytes, changing a thawed state."""

    def __init__(self, state: LexicalState) -> None:
        self.frames = list(state.frames)
        self.last = state.last
        self.word, self.kind = state.word, state.kind
        self.string = state.string
        self.partial = state.partial
        self.comment = state.comment
        self.awaits_follow = state.awaits_follow
        self.name, self.callable = state.name, state.callable
        self.must_exist = state.must_exist
        self.events: list[Word | Follow] = []
        self.newline = False
        self._prefix = b""  # of the string that is about to open

    def frozen(self) -> LexicalState:
        return LexicalState(
            tuple(self.frames),
            self.last,
            self.word,
            self.kind,
            self.string,
            self.partial,
            self.comment,
            self.awaits_follow,
            self.name,
            self.callable,
            self.must_exist,
        )

    def run(self, text: bytes) -> None:
        text, self.partial, position = self.partial + text, b"", 0
        while position < len(text):
            if self.comment:
                position = self._read_comment(text, position)
            elif self.string is not None:
                position = self._read_string(text, position, self.string)
            else:
                position = self._read_code(text, position)

    def _read_comment(self, text: bytes, position: int) -> int:
        while position < len(text) and text[position] not in b"\r\n":
            position += 1
        self.comment = position >= len(text)
        return position

    def _read_string(self, text: bytes, position: int, string: _String) -> int:
        while (stop := _STRING_STOP.search(text, position)) is not None:
            found, end = stop[0], stop.end()
            if found == string.quotes or (len(string.quotes) == 1 and found == string.quotes * 3):
                self.string, self.last = None, _Last.OPERAND
                return stop.start() + len(string.quotes)
            run = text[stop.start() :]
            opens = len(string.quotes) == 3 and len(run) < 3 and run == string.quotes[: len(run)]
            if run == b"\\" or opens or (run == b"{" and string.fields):
                self.partial = run  # the next byte decides what it means
                return len(text)
            if found == b"{" and string.fields:
                self.frames.append(_Frame(_Slot.LOAD, string=string))
                self.string, self.last = None, _Last.OPERATOR
                return end
            if found in (b"\n", b"\r", b"\r\n") and len(string.quotes) == 1:
                self.string, self.last = None, _Last.OPERAND
                return stop.start()
            position = end if len(found) == 1 or found[:1] not in b"'\"" else stop.start() + 1
        return len(text)

    def _read_code(self, text: bytes, position: int) -> int:
        match = _TOKEN.match(text, position)
        token = match[0] if match else text[position : position + 1]
        end = position + len(token)
        first = token[0]
        if _is_word(first):
            if not self.word:
                self.kind = WordKind.FREE if 0x30 <= first <= 0x39 else _kind_of_next(self)
                if self.must_exist and self.kind.may_read:
                    self.kind, self.must_exist = WordKind.LOAD, False
                self._note_follow(first)
            self.word += token
            return end
        if first == 0x5C and end == len(text) == position + 1:
            self.partial = token  # before a newline it joins two lines
            return end
        if first in b"'\"" and not self._decide_quotes(text, position):
            return len(text)
        if self.word:
            self._finish_word(first)
        if first in b" \t\f" or (first == 0x5C and len(token) > 1):
            return end
        if first in b"\r\n":
            self._newline()
        elif first == 0x23:
            self.comment = True
        elif first in b"'\"":
            return self._open_string(text, position)
        else:
            self._note_follow(first)
            self._operator(first)
        return end

    def _decide_quotes(self, text: bytes, position: int) -> bool:
        """Whether enough was read to tell `'` from an empty string and from three quotes; if not, it waits."""
        run = text[position : position + 3]
        mark = run[:1]
        if len(run) < 3 and run == mark * len(run):
            self.partial = run
            return False
        return True

    def _open_string(self, text: bytes, position: int) -> int:
        self._note_follow(text[position])
        self.name = self.callable = b""
        mark = text[position : position + 1]
        quotes = mark * 3 if text[position : position + 3] == mark * 3 else mark
        prefix = self._prefix
        self._prefix = b""
        self.string = _String(quotes, fields=bool(set(prefix.lower()) & set(b"ft")))
        self._consume()
        return position + len(quotes)

    def _note_follow(self, byte: int) -> None:
        """A sign, word or string begins with `byte`: it shows what the word and the `=` before it were."""
        if self.last is _Last.EQUALS and byte != 0x3D and not self.word:
            self._set(element=False)
        if self.awaits_follow:
            self.events.append(Follow(byte))
            self.awaits_follow = False

    def _consume(self) -> None:
        """Something of the current element was read."""
        frame = self.frames[-1]
        if frame.fresh:
            self.frames[-1] = replace(frame, fresh=False)

    def _set(self, **changes: object) -> None:
        self.frames[-1] = replace(self.frames[-1], **changes)  # type: ignore[arg-type]

    # Words.

    def _finish_word(self, following: int) -> None:
        word, kind = self.word, self.kind
        self.word, self._prefix = b"", b""
        if following in b"'\"" and word in STRING_PREFIXES:
            self._prefix = word
            return
        if word in KEYWORDS:
            self.name = self.callable = b""
            self._keyword(word)
            self.events.append(Word(word, WordKind.FREE))
            return
        starts = len(self.frames) == 1 and kind is WordKind.STATEMENT and self.frames[0].fresh
        if kind is not WordKind.FREE:
            owner = {WordKind.ATTRIBUTE: self.name, WordKind.ARGUMENT: self.frames[-1].callee}.get(kind, b"")
            self.events.append(Word(word, kind, owner))
            self.awaits_follow = kind.legalised_by is not None
        # What a statement begins with may get new attributes: of that object none is unknown.
        self.name = b"" if kind in (WordKind.FREE, WordKind.ATTRIBUTE, WordKind.STATEMENT) else word
        self.callable = word if kind.may_read else b""
        self._consume()
        self.last = _Last.OPERAND
        if starts and word in _SOFT_KEYWORDS:
            self.last = _Last.NAME if following in b" \t" else _Last.OPERAND
            if word == b"type":
                self._set(definition=word)
            else:
                self._set(mode=_Mode.PATTERN if word == b"case" else _Mode.EXPRESSION, header=True)

    def _keyword(self, word: bytes) -> None:
        frame = self.frames[-1]
        starts = len(self.frames) == 1 and frame.slot is _Slot.STATEMENT and frame.fresh
        self.last = _Last.OPERAND if word in _CONSTANTS else _Last.OPERATOR
        if starts:
            self._set(slot=_Slot.LOAD, header=word in _HEADERS, fresh=False)
        if word in (b"def", b"class"):
            self.last = _Last.NAME
            self._set(definition=word)
        elif word == b"lambda":
            self._set(mode=_Mode.LAMBDA, fresh=True)
        elif word == b"for":
            self._set(mode=_Mode.TARGETS, element=False)
        elif word == b"in" and frame.mode is _Mode.TARGETS:
            self._set(mode=_Mode.EXPRESSION, fresh=False)
        elif word == b"as":
            self.last = _Last.NAME
        elif word in (b"import", b"global", b"nonlocal") or (word == b"from" and starts):
            self._set(mode=_Mode.NAMES)
        elif word in (b"if", b"while", b"elif"):
            mode = _Mode.EXPRESSION if frame.mode is _Mode.PATTERN else frame.mode
            self._set(condition=True, fresh=True, mode=mode)
        elif word == b"async" and starts:
            self._set(slot=_Slot.STATEMENT, fresh=True)
        else:
            self._consume()

    # Everything else.

    def _newline(self) -> None:
        self.newline = True
        if len(self.frames) == 1:
            self._note_follow(0x0A)
            self._begin_statement()

    def _begin_statement(self) -> None:
        self.frames = [_Frame(_Slot.STATEMENT)]
        self.last, self.name, self.callable = _Last.OPERATOR, b"", b""

    def _operator(self, byte: int) -> None:
        if byte != 0x2E or self.last is not _Last.OPERAND:
            self.name = b""
        callee, self.callable = self.callable, b""
        if byte in b"([{":
            self._open(byte, callee)
        elif byte in b")]}":
            self._close()
        elif byte == 0x2E or (byte == 0x21 and self.frames[-1].string is not None):  # . or !r in a field
            self.last = _Last.DOT
        elif byte == 0x2C:  # ,
            self.last = _Last.OPERATOR
            self._set(fresh=True, element=False, condition=False)
        elif byte == 0x3B and len(self.frames) == 1:  # ;
            self._begin_statement()
        elif byte == 0x3A:  # :
            self._colon()
        elif byte == 0x3D:  # =
            self._equals()
        elif byte == 0x40 and len(self.frames) == 1 and self.frames[0].slot is _Slot.STATEMENT and self.frames[0].fresh:
            self.last = _Last.OPERATOR  # @: a decorator
            self._set(slot=_Slot.LOAD, fresh=False)
        elif byte == 0x2A and self.frames[-1].fresh:  # * before a target, a parameter or an argument
            self.last = _Last.OPERATOR
        else:
            self.last = _Last.OPERATOR
            self._consume()

    def _open(self, byte: int, callee: bytes) -> None:
        outer, after_operand = self.frames[-1], self.last is _Last.OPERAND
        if outer.mode in (_Mode.TARGETS, _Mode.PATTERN, _Mode.NAMES):
            frame = _Frame(_Slot.LOAD, mode=outer.mode)
        elif outer.definition and byte in b"([":
            parameters = byte == 0x5B or outer.definition != b"class"
            frame = _Frame(_Slot.PARAMETER if parameters else _Slot.ARGUMENT)
            self._set(definition=outer.definition if byte == 0x5B else b"")
        elif self.last is _Last.NAME:
            frame = _Frame(_Slot.LOAD, mode=_Mode.TARGETS)
        elif after_operand and byte == 0x28:
            frame = _Frame(_Slot.ARGUMENT, element=True, callee=callee)
        elif after_operand and byte == 0x5B:
            frame = _Frame(_Slot.LOAD)
        elif outer.slot is _Slot.STATEMENT and outer.fresh and byte != 0x7B:
            frame = _Frame(_Slot.LOAD, mode=_Mode.TARGETS)  # `(a, b) = …`
        else:
            frame = _Frame(_Slot.CONDITION, element=True)
        self._consume()
        self.frames.append(frame)
        self.last = _Last.OPERATOR

    def _close(self) -> None:
        if len(self.frames) > 1:
            frame = self.frames.pop()
            self.last = _Last.OPERAND
            if frame.string is not None:
                self.string = frame.string

    def _colon(self) -> None:
        frame = self.frames[-1]
        self.last = _Last.OPERATOR
        if frame.mode is _Mode.LAMBDA:
            self._set(mode=_Mode.EXPRESSION, fresh=False)
        elif frame.string is not None:
            # A format specification: literal text of the f-string again, whose `{` opens a field inside this one.
            self.string = frame.string
            self.frames.pop()
        elif len(self.frames) == 1 and frame.header:
            self._begin_statement()
        elif len(self.frames) == 1:
            self._set(slot=_Slot.LOAD, fresh=False)
        else:
            self._set(fresh=False)

    def _equals(self) -> None:
        frame = self.frames[-1]
        self.last = _Last.EQUALS if self.last is _Last.OPERAND and frame.slot is _Slot.ARGUMENT else _Last.OPERATOR
        chains = len(self.frames) == 1 and frame.slot in (_Slot.STATEMENT, _Slot.CHAIN)
        if chains:
            self._set(fresh=True, slot=_Slot.CHAIN, mode=_Mode.EXPRESSION, definition=b"")
        else:
            self._set(fresh=False)


def _is_word(byte: int) -> bool:
    return byte >= 0x80 or byte == 0x5F or 0x30 <= byte <= 0x39 or 0x41 <= (byte & 0xDF) <= 0x5A
