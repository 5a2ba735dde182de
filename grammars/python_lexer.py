"""The Python 3.13 lexer as an automaton over UTF-8 bytes, built while it runs.

Knows bytes, terminals and how CPython's tokenizer splits text. Must not know what the parser accepts, how deep the
brackets outside f-strings are, or which columns are open: a newline and the column of a line's first character are
events that the machine interprets (python_states.py), so that a mode means the same wherever it occurs and each of
its steps is computed once. Strings have their modes in python_strings.py.

A mode answers for text that may end anywhere: `future` holds the terminals that the unfinished lexeme may still
become. A mode without one (white space, a comment) can always go on.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

from grammars.python_numbers import FRACTION_START, NUMBER_START, number_future, number_kind, number_step
from grammars.python_terminals import AFTER_NUMBER, Event, Line, Terminals
from grammars.python_utf8 import begins_character, may_begin_in_identifier, sequence_length


class Step:
    """What reading some bytes does: the mode after it, and what it completed. Compared by identity."""

    __slots__ = ("events", "mode")

    def __init__(self, mode: Mode, events: tuple[Event, ...] = ()) -> None:
        self.mode = mode
        self.events = events


@dataclass(frozen=True, slots=True)
class FString:
    """An f-string that is open.

    Attributes:
        quote: the byte that closes it.
        triple: whether three of them do.
        raw: no escapes.
        fields: for every open replacement field, how many brackets are open inside it. Literal text inside a field
            is the format specification of the last one.
    """

    quote: int
    triple: bool
    raw: bool
    fields: tuple[int, ...] = ()

    def nested(self, change: int) -> FString:
        """With `change` more brackets open in the last field."""
        return replace(self, fields=(*self.fields[:-1], self.fields[-1] + change))


Frames = tuple[FString, ...]
AnyMode = TypeVar("AnyMode", bound="Mode")

_BLANKS = frozenset(b" \t\f")
_NO_CODE = frozenset(b"\t\f\n\r\\#")
_LETTERS = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_")
_DIGITS = frozenset(b"0123456789")
NEWLINE, RETURN, BACKSLASH, HASH = b"\n\r\\#"
_OPENERS, _CLOSERS = frozenset("([{"), frozenset(")]}")
PLAIN = re.compile(rb"[ !#-&(-\[\]-z|~\t]+")
"""ASCII characters that change nothing in comments, strings and the text of f-strings."""
_MOST_TEXTS = 400_000
"""About 100 bytes each."""


class Lexer:
    """Makes modes, one object for each distinct one, and holds what they look up."""

    def __init__(self, terminals: Terminals) -> None:
        self.terminals = terminals
        self.prefixes = terminals.prefixes
        self.operators = terminals.operators
        self.operator_beginnings = frozenset(op[:i] for op in self.operators for i in range(1, len(op) + 1))
        self.operator_bytes = frozenset(op.encode()[0] for op in self.operators) | set(b"!-<>")
        self._modes: dict[tuple[object, ...], Mode] = {}
        self._steps: dict[tuple[Mode, tuple[Event, ...]], Step] = {}
        self._texts = 0

    @property
    def is_full(self) -> bool:
        """Whether the modes remember so many texts that they had better `forget`."""
        return self._texts > _MOST_TEXTS

    def forget(self) -> None:
        """Let go of what `Mode.read` remembers."""
        for mode in self._modes.values():
            mode.texts.clear()
        self._steps.clear()
        self._texts = 0

    def step(self, mode: Mode, events: tuple[Event, ...]) -> Step:
        """The one step that leads to `mode` with `events`."""
        self._texts += 1
        key = (mode, events)
        step = self._steps.get(key)
        if step is None:
            step = self._steps[key] = Step(mode, events)
        return step

    def get(self, kind: type[AnyMode], *arguments: Any) -> AnyMode:
        """The mode `kind(self, *arguments)`, always the same object."""
        key = (kind, *arguments)
        mode = self._modes.get(key)
        if mode is None:
            mode = self._modes[key] = kind(self, *arguments)
        return cast(AnyMode, mode)

    def start(self) -> Mode:
        """The mode at the beginning of a file."""
        return self.get(LineStart, 0, 0, 0)

    def newline(self, frames: Frames) -> Mode:
        """The mode after a newline in code: inside a replacement field it is nothing but white space."""
        return self.get(Space, frames) if frames else self.start()


class Mode(ABC):
    """A state of the lexer. Immutable; make it with `Lexer.get`.

    Attributes:
        steps: what each byte does, None where it can never follow; filled by `step`.
        texts: what whole texts do; filled by `read`.
        future: the set of terminals that the unfinished lexeme may become, 0 where there is none.
        may_end: whether a file may end here (after the newline that the end of a file stands for).
    """

    __slots__ = ("future", "lexer", "may_end", "steps", "texts")

    def __init__(self, lexer: Lexer, future: int = 0, may_end: bool = False) -> None:
        self.lexer = lexer
        self.future = future
        self.may_end = may_end
        self.steps: dict[int, Step | None] = {}
        self.texts: dict[bytes, Step | None] = {}

    def step(self, byte: int) -> Step | None:
        """Read one byte."""
        try:
            return self.steps[byte]
        except KeyError:
            step = self.steps[byte] = self._step(byte)
            return step

    def read(self, text: bytes) -> Step | None:
        """Read several bytes: the mode after them and all that they completed. Remembers the answer, and gives the
        same object for all texts that do the same."""
        try:
            return self.texts[text]
        except KeyError:
            found = self.try_read(text)
            step = self.texts[text] = found and self.lexer.step(found.mode, found.events)
            return step

    def remember(self, step: Step, texts: Iterable[bytes]) -> None:
        """Take it from the caller that each of `texts` is read with `step`."""
        self.texts.update(dict.fromkeys(texts, self.lexer.step(step.mode, step.events)))

    def try_read(self, text: bytes) -> Step | None:
        """`read` without remembering the answer."""
        mode: Mode = self
        events: tuple[Event, ...] = ()
        for byte in text:
            step = mode.step(byte)
            if step is None:
                return None
            mode = step.mode
            if step.events:
                events += step.events
        return Step(mode, events)

    @abstractmethod
    def _step(self, byte: int) -> Step | None: ...

    def _then(self, events: tuple[Event, ...], mode: Mode, byte: int) -> Step | None:
        """The step of a byte that ends a lexeme: report `events`, then read the byte in `mode`."""
        step = mode.step(byte)
        return step and Step(step.mode, events + step.events)


class Space(Mode):
    """Between two lexemes of a line, inside the replacement fields of `frames`."""

    __slots__ = ("continued", "frames")

    def __init__(self, lexer: Lexer, frames: Frames, continued: bool = False) -> None:
        super().__init__(lexer, may_end=not continued and not frames)
        self.frames = frames
        self.continued = continued

    def _step(self, byte: int) -> Step | None:
        lexer, frames = self.lexer, self.frames
        if byte in _BLANKS:
            return Step(self)
        if byte in (NEWLINE, RETURN):
            events = () if frames else (lexer.terminals["NEWLINE"],)
            return Step(after_newline(lexer.newline(frames), byte), events)
        if byte == BACKSLASH:
            return Step(lexer.get(Continuation, lexer.get(Space, frames, True)))
        if byte == HASH:
            return Step(lexer.get(Comment, frames, False))
        return lexeme(lexer, frames, byte)


class LineStart(Mode):
    """In the white space that a line begins with.

    `column` counts tabs to multiples of 8, `alternate` as one; `continued` is the column that a backslash in the
    white space fixed (CPython takes a fixed column 0 for none).
    """

    __slots__ = ("alternate", "column", "continued")

    def __init__(self, lexer: Lexer, column: int, alternate: int, continued: int) -> None:
        super().__init__(lexer, may_end=True)
        self.column = column
        self.alternate = alternate
        self.continued = continued

    def _step(self, byte: int) -> Step | None:
        lexer = self.lexer
        match byte:
            case 0x20:
                return Step(lexer.get(LineStart, self.column + 1, self.alternate + 1, self.continued))
            case 0x09:
                return Step(lexer.get(LineStart, self.column // 8 * 8 + 8, self.alternate + 1, self.continued))
            case 0x0C:
                return Step(lexer.get(LineStart, 0, 0, self.continued))
            case 0x0A | 0x0D:
                return Step(after_newline(lexer.start(), byte))
            case 0x5C:
                fixed = self.continued or self.column
                return Step(lexer.get(Continuation, lexer.get(LineStart, self.column, self.alternate, fixed)))
            case 0x23:
                return Step(lexer.get(Comment, (), True))
        return self._then((self._line(0),), lexer.get(Space, ()), byte)

    def _line(self, spaces: int) -> Line:
        """The line that begins after some more spaces."""
        if self.continued:
            return Line(self.continued, self.continued)
        return Line(self.column + spaces, self.alternate + spaces)

    def try_read(self, text: bytes) -> Step | None:
        """See `Mode`."""
        code = text.lstrip(b" ")
        if not code or code[0] in _NO_CODE:
            return super().try_read(text)
        rest = self.lexer.get(Space, ()).read(code)
        return rest and Step(rest.mode, (self._line(len(text) - len(code)), *rest.events))


class AfterReturn(Mode):
    """After a carriage return, which is a newline together with a line feed that follows."""

    __slots__ = ("mode",)

    def __init__(self, lexer: Lexer, mode: Mode) -> None:
        super().__init__(lexer, mode.future, mode.may_end)
        self.mode = mode

    def _step(self, byte: int) -> Step | None:
        return Step(self.mode) if byte == NEWLINE else self.mode.step(byte)


def after_newline(mode: Mode, byte: int) -> Mode:
    """The mode after `byte`, a line feed or a carriage return, where the next line is read in `mode`."""
    return mode if byte == NEWLINE else mode.lexer.get(AfterReturn, mode)


class Continuation(Mode):
    """After a backslash outside strings: only a newline may follow; the line goes on in `mode`."""

    __slots__ = ("mode",)

    def __init__(self, lexer: Lexer, mode: Mode) -> None:
        super().__init__(lexer)
        self.mode = mode

    def _step(self, byte: int) -> Step | None:
        return Step(after_newline(self.mode, byte)) if byte in (NEWLINE, RETURN) else None


class Comment(Mode):
    """In a comment; `alone` where nothing but white space stands before it on its line."""

    __slots__ = ("alone", "frames")

    def __init__(self, lexer: Lexer, frames: Frames, alone: bool) -> None:
        super().__init__(lexer, may_end=not frames)
        self.frames = frames
        self.alone = alone

    def _step(self, byte: int) -> Step | None:
        lexer = self.lexer
        if byte in (NEWLINE, RETURN):
            events = () if self.frames or self.alone else (lexer.terminals["NEWLINE"],)
            return Step(after_newline(lexer.newline(self.frames), byte), events)
        return character(self, byte)

    def try_read(self, text: bytes) -> Step | None:
        """See `Mode`."""
        return Step(self) if PLAIN.fullmatch(text) else super().try_read(text)


class Utf8(Mode):
    """Inside a character of several bytes whose identity does not matter; then goes on in `mode`."""

    __slots__ = ("mode", "read_bytes")

    def __init__(self, lexer: Lexer, mode: Mode, read_bytes: bytes) -> None:
        super().__init__(lexer, mode.future)
        self.mode = mode
        self.read_bytes = read_bytes

    def _step(self, byte: int) -> Step | None:
        data = self.read_bytes + bytes((byte,))
        if not begins_character(data):
            return None
        complete = len(data) == sequence_length(data[0])
        return Step(self.mode if complete else self.lexer.get(Utf8, self.mode, data))


def character(mode: Mode, byte: int) -> Step | None:
    """The step of any character but NUL that leaves `mode` as it is."""
    if byte < 0x80:
        return Step(mode) if byte else None
    first = bytes((byte,))
    return Step(mode.lexer.get(Utf8, mode, first)) if begins_character(first) else None


class Lexeme(Mode):
    """In a lexeme that another may touch: a word or an operator."""

    __slots__ = ("frames",)

    def __init__(self, lexer: Lexer, frames: Frames, future: int, may_end: bool = False) -> None:
        super().__init__(lexer, future, may_end)
        self.frames = frames

    @abstractmethod
    def ended_by(self, byte: int) -> tuple[Event, ...] | None:
        """What is complete where `byte` begins something else, which is read as between lexemes; None where it goes
        on with the lexeme or can never follow."""

    def try_read(self, text: bytes) -> Step | None:
        """See `Mode`. What follows a lexeme is nearly always remembered between lexemes."""
        ended = self.ended_by(text[0]) if text else None
        if ended is None:
            return super().try_read(text)
        rest = self.lexer.get(Space, self.frames).read(text)
        return rest and Step(rest.mode, ended + rest.events)

    def _end(self, byte: int) -> Step | None:
        ended = self.ended_by(byte)
        return None if ended is None else self._then(ended, self.lexer.get(Space, self.frames), byte)


class Word(Lexeme):
    """In an identifier or keyword.

    `text` is what was read as long as it may become a keyword or a string prefix, else "". `after_number` where it
    touches a number before it, so that only a few keywords are possible.
    """

    __slots__ = ("after_number", "text")

    def __init__(self, lexer: Lexer, frames: Frames, text: str, after_number: bool = False) -> None:
        terminals = lexer.terminals
        if after_number:
            future = terminals.set_of(word for word in AFTER_NUMBER if word.startswith(text))
        else:
            future = terminals.word_future(text) if text else 1 << terminals["NAME"]
        super().__init__(lexer, frames, future, may_end=not frames)
        self.text = text
        self.after_number = after_number

    def _step(self, byte: int) -> Step | None:
        lexer = self.lexer
        if byte in _LETTERS or byte in _DIGITS:
            return self._longer(self.text + chr(byte))
        if byte >= 0x80:
            return None if self.after_number else wide_character(lexer, self.frames, False, byte)
        if byte in b"\"'" and self.text in lexer.prefixes and not self.after_number:
            from grammars.python_strings import open_string

            return open_string(lexer, self.frames, lexer.prefixes[self.text], byte)
        return self._end(byte)

    def ended_by(self, byte: int) -> tuple[Event, ...] | None:
        """See `Lexeme`."""
        if byte >= 0x80 or byte in _LETTERS or byte in _DIGITS or (byte in b"\"'" and self.text in self.lexer.prefixes):
            return None
        if self.after_number and self.text not in AFTER_NUMBER:
            return None
        terminals = self.lexer.terminals
        return (terminals.word_event(self.text) if self.text else terminals["NAME"],)

    def _longer(self, text: str) -> Step | None:
        lexer = self.lexer
        if self.after_number:
            alive = any(word.startswith(text) for word in AFTER_NUMBER)
            return Step(lexer.get(Word, self.frames, text, True)) if alive else None
        only_name = not self.text or lexer.terminals.word_future(text) == 1 << lexer.terminals["NAME"]
        return Step(lexer.get(Word, self.frames, "" if only_name else text))


class WideCharacter(Mode):
    """Inside a character of several bytes that must fit into an identifier."""

    __slots__ = ("first", "frames", "read_bytes")

    def __init__(self, lexer: Lexer, frames: Frames, first: bool, read_bytes: bytes) -> None:
        super().__init__(lexer, 1 << lexer.terminals["NAME"])
        self.frames = frames
        self.first = first
        self.read_bytes = read_bytes

    def _step(self, byte: int) -> Step | None:
        data = self.read_bytes + bytes((byte,))
        if not may_begin_in_identifier(data, self.first):
            return None
        if len(data) < sequence_length(data[0]):
            return Step(self.lexer.get(WideCharacter, self.frames, self.first, data))
        return Step(self.lexer.get(Word, self.frames, ""))


def wide_character(lexer: Lexer, frames: Frames, first: bool, byte: int) -> Step | None:
    """The step of the first byte of a character beyond ASCII in code."""
    data = bytes((byte,))
    return Step(lexer.get(WideCharacter, frames, first, data)) if may_begin_in_identifier(data, first) else None


class Number(Mode):
    """In a number literal; `state` is one of python_numbers.py."""

    __slots__ = ("frames", "state")

    def __init__(self, lexer: Lexer, frames: Frames, state: str) -> None:
        super().__init__(lexer, lexer.terminals.set_of(number_future(state)), number_kind(state) is not None)
        self.frames = frames
        self.state = state

    def _step(self, byte: int) -> Step | None:
        lexer, character = self.lexer, chr(byte)
        following = number_step(self.state, character)
        if following is not None:
            return Step(lexer.get(Number, self.frames, following))
        touching = character if byte in _LETTERS else ""
        state = self.state
        if state == "exponent_start" and character == "l":  # 1else: the "e" was no exponent
            state, touching = "decimal", "el"
        kind = number_kind(state, character)
        if kind is None:
            return None
        event = lexer.terminals[kind]
        if not touching:
            return self._then((event,), lexer.get(Space, self.frames), byte)
        if not any(word.startswith(touching) for word in AFTER_NUMBER):
            return None
        return Step(lexer.get(Word, self.frames, touching, True), (event,))


class Operator(Lexeme):
    """In an operator that may become longer."""

    __slots__ = ("text",)

    def __init__(self, lexer: Lexer, frames: Frames, text: str) -> None:
        future = lexer.terminals.set_of(op for op in lexer.operators if op.startswith(text))
        if text in (".", ".."):
            future |= lexer.terminals.set_of(("NUMBER", "IMAGINARY", "."))
        super().__init__(lexer, frames, future, may_end=not frames)
        self.text = text

    def _step(self, byte: int) -> Step | None:
        lexer, longer = self.lexer, self.text + chr(byte)
        if longer in lexer.operator_beginnings:
            return operator(lexer, self.frames, longer)
        if self.text[0] == "." and byte in _DIGITS:
            read = (lexer.terminals["."],) * (len(self.text) - 1)
            return self._then(read, lexer.get(Number, self.frames, FRACTION_START), byte)
        return self._end(byte)

    def ended_by(self, byte: int) -> tuple[Event, ...] | None:
        """See `Lexeme`."""
        lexer = self.lexer
        if self.text == "!" or self.text + chr(byte) in lexer.operator_beginnings:
            return None
        if self.text[0] == "." and byte in _DIGITS:
            return None
        return (lexer.terminals["."],) * 2 if self.text == ".." else (lexer.terminals[self.text],)


def operator(lexer: Lexer, frames: Frames, text: str) -> Step:
    """The step of an operator's next byte: pending where it may become longer, else complete."""
    if any(op != text and op.startswith(text) for op in lexer.operators):
        return Step(lexer.get(Operator, frames, text))
    if frames and text in _OPENERS | _CLOSERS:
        frames = (*frames[:-1], frames[-1].nested(1 if text in _OPENERS else -1))
    return Step(lexer.get(Space, frames), (lexer.terminals[text],))


def lexeme(lexer: Lexer, frames: Frames, byte: int) -> Step | None:
    """The step of a lexeme's first byte in code."""
    from grammars.python_strings import end_of_expression, open_string

    if byte in _LETTERS:
        text = chr(byte)
        only_name = lexer.terminals.word_future(text) == 1 << lexer.terminals["NAME"]
        return Step(lexer.get(Word, frames, "" if only_name else text))
    if byte in _DIGITS:
        return lexer.get(Number, frames, NUMBER_START).step(byte)
    if byte in b"\"'":
        return open_string(lexer, frames, "", byte)
    if byte >= 0x80:
        return wide_character(lexer, frames, True, byte)
    text = chr(byte)
    if frames and frames[-1].fields[-1] == 0 and text in ":!})]":
        return end_of_expression(lexer, frames, text)
    return operator(lexer, frames, text) if text in lexer.operator_beginnings else None
