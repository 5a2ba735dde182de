"""The modes of the lexer inside strings and f-strings (PEP 701).

Knows quotes, escapes and replacement fields; everything between the braces of a field is read by the modes of
python_lexer.py, which carry the open f-strings along.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from grammars.python_lexer import (
    BACKSLASH,
    NEWLINE,
    PLAIN,
    RETURN,
    Frames,
    FString,
    Lexer,
    Mode,
    Operator,
    Space,
    Step,
    Utf8,
    after_newline,
    character,
)

_HEX = frozenset(b"0123456789abcdefABCDEF")
_NAME = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 -()")
_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}
_MOST_FIELDS = 3  # CPython refuses a fourth field inside format specifications
_OPEN, _CLOSE = b"{}"


@dataclass(frozen=True, slots=True)
class Style:
    """How a plain string is written: its prefix letters, its quote and whether three of them close it."""

    letters: str
    quote: int
    triple: bool = False


class Opening(Mode):
    """After one or two opening quotes: the string may be empty, or triple-quoted."""

    __slots__ = ("frames", "quotes", "style")

    def __init__(self, lexer: Lexer, frames: Frames, style: Style, quotes: int) -> None:
        super().__init__(lexer, 1 << lexer.terminals.string_kind(style.letters), may_end=quotes == 2)
        self.frames = frames
        self.style = style
        self.quotes = quotes

    def _step(self, byte: int) -> Step | None:
        lexer, style = self.lexer, self.style
        kind = lexer.terminals.string_kind(style.letters)
        formatted = "f" in style.letters
        if self.quotes == 1 and byte == style.quote:
            return Step(lexer.get(Opening, self.frames, style, 2))
        if self.quotes == 2 and byte != style.quote:
            events = (kind, lexer.terminals["FSTRING_END"]) if formatted else (kind,)
            return self._then(events, lexer.get(Space, self.frames), byte)
        triple = self.quotes == 2
        if formatted:
            opened = FString(style.quote, triple, "r" in style.letters)
            text: Mode = lexer.get(Literal, (*self.frames, opened))
            return Step(text, (kind,)) if triple else self._then((kind,), text, byte)
        text = lexer.get(String, self.frames, replace(style, triple=triple))
        return Step(text) if triple else text.step(byte)


def open_string(lexer: Lexer, frames: Frames, letters: str, quote: int) -> Step:
    """The step of a string's first quote."""
    return Step(lexer.get(Opening, frames, Style(letters, quote), 1))


class String(Mode):
    """In a string without replacement fields, after `quotes` quotes that may turn out to close it."""

    __slots__ = ("frames", "quotes", "style")

    def __init__(self, lexer: Lexer, frames: Frames, style: Style, quotes: int = 0) -> None:
        super().__init__(lexer, 1 << lexer.terminals.string_kind(style.letters))
        self.frames = frames
        self.style = style
        self.quotes = quotes

    def _step(self, byte: int) -> Step | None:
        lexer, style = self.lexer, self.style
        if byte == style.quote:
            if not style.triple or self.quotes == 2:
                return Step(lexer.get(Space, self.frames), (lexer.terminals.string_kind(style.letters),))
            return Step(lexer.get(String, self.frames, style, self.quotes + 1))
        plain = lexer.get(String, self.frames, style)
        if byte == BACKSLASH:
            return Step(lexer.get(Escape, plain, "r" in style.letters, "b" in style.letters))
        if byte in (NEWLINE, RETURN):
            return Step(after_newline(plain, byte)) if style.triple else None
        if "b" in style.letters and byte >= 0x80:
            return None
        return character(plain, byte)

    def try_read(self, text: bytes) -> Step | None:
        """See `Mode`."""
        return Step(self) if not self.quotes and PLAIN.fullmatch(text) else super().try_read(text)


class Escape(Mode):
    """After a backslash in a string; goes on in `mode`."""

    __slots__ = ("mode", "only_bytes", "raw")

    def __init__(self, lexer: Lexer, mode: Mode, raw: bool, only_bytes: bool) -> None:
        super().__init__(lexer, mode.future)
        self.mode = mode
        self.raw = raw
        self.only_bytes = only_bytes

    def _step(self, byte: int) -> Step | None:
        lexer, letter = self.lexer, chr(byte)
        if byte in (NEWLINE, RETURN):
            return Step(after_newline(self.mode, byte))
        if byte in (_OPEN, _CLOSE) and isinstance(self.mode, Literal):
            return self.mode.step(byte)  # a brace is a brace in spite of the backslash
        if not self.raw and (letter == "x" or (letter in "uU" and not self.only_bytes)):
            return Step(lexer.get(HexDigits, self.mode, "", _HEX_DIGITS[letter]))
        if not self.raw and letter == "N" and not self.only_bytes:
            return Step(lexer.get(CharacterName, self.mode, 0))
        if self.only_bytes and byte >= 0x80:
            return None
        return character(self.mode, byte)


class HexDigits(Mode):
    """In the digits of an escape that needs exactly `count`."""

    __slots__ = ("count", "digits", "mode")

    def __init__(self, lexer: Lexer, mode: Mode, digits: str, count: int) -> None:
        super().__init__(lexer, mode.future)
        self.mode = mode
        self.digits = digits
        self.count = count

    def _step(self, byte: int) -> Step | None:
        if byte not in _HEX:
            return None
        digits = self.digits + chr(byte)
        if self.count == 8 and int(digits.ljust(8, "0"), 16) > 0x10FFFF:
            return None
        complete = len(digits) == self.count
        return Step(self.mode if complete else self.lexer.get(HexDigits, self.mode, digits, self.count))


class CharacterName(Mode):
    r"""In `\N{...}`, after `length` characters, the brace included (counted up to 2: a name is not empty)."""

    __slots__ = ("length", "mode")

    def __init__(self, lexer: Lexer, mode: Mode, length: int) -> None:
        super().__init__(lexer, mode.future)
        self.mode = mode
        self.length = length

    def _step(self, byte: int) -> Step | None:
        if self.length == 0:
            return Step(self.lexer.get(CharacterName, self.mode, 1)) if byte == _OPEN else None
        if byte == _CLOSE and self.length == 2:
            return Step(self.mode)
        return Step(self.lexer.get(CharacterName, self.mode, 2)) if byte in _NAME else None


class Literal(Mode):
    """In the literal text of the last of `frames`, or in a format specification there.

    `seen` holds what was read of a closing triple quote, or a brace that may be doubled.
    """

    __slots__ = ("frames", "seen")

    def __init__(self, lexer: Lexer, frames: Frames, seen: str = "") -> None:
        super().__init__(lexer)
        self.frames = frames
        self.seen = seen

    def _step(self, byte: int) -> Step | None:
        lexer, frames, frame = self.lexer, self.frames, self.frames[-1]
        plain = lexer.get(Literal, frames)
        if self.seen == "{":
            return Step(plain) if byte == _OPEN else open_field(lexer, frames, byte)
        if self.seen == "}":
            return Step(plain) if byte == _CLOSE else None
        if byte == frame.quote:
            quotes = self.seen + chr(byte)
            if frame.triple and len(quotes) < 3:
                return Step(lexer.get(Literal, frames, quotes))
            return Step(lexer.get(Space, frames[:-1]), (lexer.terminals["FSTRING_END"],))
        if byte == _OPEN:
            return open_field(lexer, frames, None) if frame.fields else Step(lexer.get(Literal, frames, "{"))
        if byte == _CLOSE:
            return close_field(lexer, frames) if frame.fields else Step(lexer.get(Literal, frames, "}"))
        if byte == BACKSLASH:
            return Step(lexer.get(Escape, plain, frame.raw, False))
        if byte in (NEWLINE, RETURN) and not frame.triple:
            # In a format specification the newline leads back into the field, where only "}" can follow.
            return Step(after_newline(lexer.get(Space, frames), byte)) if frame.fields else None
        return character(plain, byte)

    def try_read(self, text: bytes) -> Step | None:
        """See `Mode`."""
        return Step(self) if not self.seen and PLAIN.fullmatch(text) else super().try_read(text)


def open_field(lexer: Lexer, frames: Frames, byte: int | None) -> Step | None:
    """The step that opens a replacement field; `byte` is the first of the field where it was read already."""
    frame = frames[-1]
    if len(frame.fields) == _MOST_FIELDS:
        return None
    inside = lexer.get(Space, (*frames[:-1], replace(frame, fields=(*frame.fields, 0))))
    opened = (lexer.terminals["FIELD_OPEN"],)
    if byte is None:
        return Step(inside, opened)
    step = inside.step(byte)
    return step and Step(step.mode, opened + step.events)


def close_field(lexer: Lexer, frames: Frames) -> Step:
    """The step of the brace that closes the last replacement field."""
    frame = frames[-1]
    outside = (*frames[:-1], replace(frame, fields=frame.fields[:-1]))
    return Step(lexer.get(Literal, outside), (lexer.terminals["FIELD_CLOSE"],))


def end_of_expression(lexer: Lexer, frames: Frames, text: str) -> Step | None:
    """The step of ":", "!" or "}" outside the brackets of a replacement field; ")" and "]" close nothing there."""
    if text == "}":
        return close_field(lexer, frames)
    if text == ":":
        return Step(lexer.get(Literal, frames), (lexer.terminals["FIELD_SPEC"],))
    return Step(lexer.get(Conversion, frames, "")) if text == "!" else None


class Conversion(Mode):
    """After "!" in a replacement field: `!=`, or a conversion whose letter is `letter`."""

    __slots__ = ("frames", "letter")

    def __init__(self, lexer: Lexer, frames: Frames, letter: str) -> None:
        conversion = 1 << lexer.terminals["CONVERSION"]
        super().__init__(lexer, conversion if letter else conversion | 1 << lexer.terminals["!="])
        self.frames = frames
        self.letter = letter

    def _step(self, byte: int) -> Step | None:
        lexer = self.lexer
        if not self.letter and byte == ord("="):
            return lexer.get(Operator, self.frames, "!").step(byte)
        if not self.letter:
            return Step(lexer.get(Conversion, self.frames, chr(byte))) if byte in b"sra" else None
        if chr(byte).isalnum() or byte == ord("_") or byte >= 0x80:
            return None
        return self._then((lexer.terminals["CONVERSION"],), lexer.get(Space, self.frames), byte)


def level_of(mode: Mode) -> tuple[int, Mode]:
    """How many f-strings are open, and the mode in whose text an escape or a character stands."""
    while isinstance(mode, Escape | HexDigits | CharacterName | Utf8):
        mode = mode.mode
    return len(getattr(mode, "frames", ())), mode


@dataclass(frozen=True, slots=True)
class OpenString:
    """A string: how many f-strings are open in its text, itself included, and whether it is one."""

    level: int
    formatted: bool

    @classmethod
    def of(cls, mode: Mode) -> OpenString | None:
        """The string in whose text the lexer is, None in code."""
        level, mode = level_of(mode)
        if isinstance(mode, Opening):
            formatted = "f" in mode.style.letters
            return cls(level + formatted, formatted)
        if isinstance(mode, Literal):
            return cls(level, True) if mode.seen != "{" else None
        return cls(level, False) if isinstance(mode, String) else None

    def is_left(self, mode: Mode) -> bool:
        """Whether the string is over where the lexer is in `mode`."""
        level, mode = level_of(mode)
        if isinstance(mode, Opening):
            return False
        return level < self.level if self.formatted else not isinstance(mode, String)
