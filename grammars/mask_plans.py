"""How the mask of each mode of the lexer is put together.

Knows the modes and sets of tokens. Must not know what a parser accepts. Most modes differ from plain code for few
tokens only: those are read one by one, and the others are delegated to the table of plain code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property, singledispatchmethod

from grammars.constraint import Bitmask
from grammars.python_lexer import (
    AfterReturn,
    Comment,
    Continuation,
    LineStart,
    Mode,
    Number,
    Operator,
    Space,
    Utf8,
    WideCharacter,
    Word,
)
from grammars.python_numbers import number_kind, number_step
from grammars.python_states import python
from grammars.python_strings import CharacterName, Conversion, Escape, HexDigits, Literal, Opening, String
from grammars.python_terminals import AFTER_NUMBER, SOFT_KEYWORDS, Event, Line
from grammars.token_sets import ALL_BYTES, DIGITS, IDENTIFIER, LETTERS, TokenSets

_NAME_CHARACTERS = re.compile(rb"[-A-Za-z0-9 ()]+\Z")


_HEXADECIMAL = ("x_start", "x", "x_")
_AFTER_DIGIT = re.compile(
    rb"(?:a|an|e|el|els|f|fo|i|o|n|no)\Z|and|else|for|if|in|is|or|not|[xXjJ_]|[eEoObB](?![A-Za-z]{2})"
)
"""The letters that may follow a digit which is no hexadecimal one: a keyword, an exponent, a base, an imaginary."""


@dataclass(frozen=True, slots=True)
class Delegate:
    """The tokens `subset` do what they would do in `mode` after `events`."""

    events: tuple[Event, ...]
    mode: Mode
    subset: Bitmask


@dataclass(slots=True)
class Plan:
    """How the mask of a mode is put together.

    Attributes:
        always: tokens that may follow whatever the parser says.
        read: tokens whose reading is filed one by one.
        pure_names: tokens that go on with an identifier.
        delegates: tokens that do what they do in another mode.
    """

    always: Bitmask | None = None
    read: Iterable[int] = ()
    pure_names: bool = False
    delegates: list[Delegate] = field(default_factory=list)


class Planner:
    """Makes the plans for one vocabulary."""

    def __init__(self, sets: TokenSets) -> None:
        self.sets = sets
        self._code = python().lexer.get(Space, ())

    @singledispatchmethod
    def plan(self, mode: Mode) -> Plan:
        """Read every token: right for every mode, and slow. The others say how they are like plain code."""
        return Plan(read=self.sets.ordinary)

    @plan.register
    def _(self, mode: Space) -> Plan:
        sets = self.sets
        if mode is self._code:
            return Plan(read=sets.ordinary)
        if not mode.frames or mode.continued:
            same = mode.lexer.get(Space, mode.frames)
            return Plan(delegates=[Delegate((), same, sets.everything)])
        others = sets.everything & ~sets.mask(sets.field_bytes)
        return Plan(read=sets.field_bytes, delegates=[Delegate((), self._code, others)])

    @plan.register
    def _(self, mode: LineStart) -> Plan:
        sets, fixed = self.sets, mode.continued
        delegates = [
            Delegate((Line(fixed or mode.column + n, fixed or mode.alternate + n),), self._code, subset)
            for n, subset in sets.leads
        ]
        return Plan(read=self.sets.no_code, delegates=delegates)

    @plan.register
    def _(self, mode: AfterReturn) -> Plan:
        rest = self.sets.mask_beginning(ALL_BYTES - {0x0A})
        return Plan(read=self.sets.beginning(b"\n"), delegates=[Delegate((), mode.mode, rest)])

    @plan.register
    def _(self, mode: Continuation) -> Plan:
        return Plan(read=self.sets.beginning(b"\r\n"))

    @plan.register(Utf8)
    @plan.register(WideCharacter)
    def _(self, mode: Mode) -> Plan:
        return Plan(read=self.sets.beginning(range(0x80, 0xC0)))

    @plan.register
    def _(self, mode: Word) -> Plan:
        sets, lexer = self.sets, mode.lexer
        mixed = sets.names[1]
        others = ALL_BYTES - IDENTIFIER
        plan = Plan()
        if mode.after_number:
            plan.read = [*mixed, *self._keyword_ends(mode.text, AFTER_NUMBER)]
        elif not mode.text:
            plan.read, plan.pure_names = mixed, True
        else:
            read = self._keyword_ends(mode.text, self._words)
            if mode.text in lexer.prefixes:
                read += sets.beginning(b"'\"")
                others -= frozenset(b"'\"")
            names = sets.mask_beginning(IDENTIFIER) & ~sets.mask(read)
            plan.read = read
            plan.delegates.append(Delegate((), lexer.get(Word, mode.frames, ""), names))
        if not mode.after_number or mode.text in AFTER_NUMBER:
            event = lexer.terminals.word_event(mode.text) if mode.text else lexer.terminals["NAME"]
            plan.delegates.append(Delegate((event,), lexer.get(Space, mode.frames), sets.mask_beginning(others)))
        return plan

    @cached_property
    def _words(self) -> frozenset[str]:
        """The words that mean more than a name."""
        terminals = python().terminals
        return frozenset({*terminals.keywords, *SOFT_KEYWORDS, *terminals.prefixes})

    def _keyword_ends(self, text: str, words: Iterable[str]) -> list[int]:
        """The tokens that go on with one of `words` after `text`: with a part of its rest, or beyond it."""
        found: set[int] = set()
        for word in words:
            rest = word[len(text) :].encode()
            if text and word.startswith(text) and rest:
                found.update(t for end in range(1, len(rest) + 1) for t in self.sets.by_bytes.get(rest[:end], ()))
                found.update(self.sets.mixed_after.get(rest, ()))
        return list(found)

    @plan.register
    def _(self, mode: Number) -> Plan:
        ends = frozenset(b for b in range(128) if b not in LETTERS | DIGITS and not number_step(mode.state, chr(b)))
        goes_on = ALL_BYTES - ends - frozenset(range(0x80, 0x100))
        read = self.sets.beginning(b for b in goes_on if mode.step(b) is not None)
        if mode.state not in _HEXADECIMAL:
            texts = self.sets.vocabulary.tokens
            read = [t for t in read if texts[t][0] not in LETTERS or _AFTER_DIGIT.match(texts[t])]
        plan = Plan(read=read)
        kind = number_kind(mode.state)
        if kind is not None:
            code = mode.lexer.get(Space, mode.frames)
            others = self.sets.mask_beginning(ALL_BYTES - goes_on)
            plan.delegates.append(Delegate((mode.lexer.terminals[kind],), code, others))
        return plan

    @plan.register
    def _(self, mode: Operator) -> Plan:
        lexer = mode.lexer
        goes_on = frozenset(b for b in range(128) if mode.text + chr(b) in lexer.operator_beginnings)
        if mode.text[0] == ".":
            goes_on |= frozenset(b"0123456789")
        plan = Plan(read=self.sets.beginning(goes_on))
        if mode.text != "!":
            point = lexer.terminals["."]
            events = (point, point) if mode.text == ".." else (lexer.terminals[mode.text],)
            others = self.sets.mask_beginning(ALL_BYTES - goes_on)
            plan.delegates.append(Delegate(events, lexer.get(Space, mode.frames), others))
        return plan

    @plan.register(Comment)
    @plan.register(String)
    @plan.register(Opening)
    @plan.register(Escape)
    @plan.register(Literal)
    def _(self, mode: Comment | String | Opening | Escape | Literal) -> Plan:
        sets = self.sets
        if isinstance(mode, Literal) and mode.seen in ("{", "}"):
            return self._after_brace(mode)
        if isinstance(mode, Opening) and mode.quotes == 2:
            return self._after_empty(mode)
        if isinstance(mode, Escape):
            always, special = self._plain_escapes
            if not mode.raw:
                return Plan(always & self._ascii if mode.only_bytes else always, [*sets.not_plain, *special])
        only_bytes = mode.only_bytes if isinstance(mode, Escape) else _is_bytes(mode)
        plain = sets.plain_mask
        return Plan(always=plain & self._ascii if only_bytes else plain, read=sets.not_plain)

    @cached_property
    def _plain_escapes(self) -> tuple[Bitmask, list[int]]:
        """Of the plain tokens those that are harmless after a backslash too, and the others."""
        tokens = self.sets.vocabulary.tokens
        special = [token for token in self.sets.plain if tokens[token][0] in b"xuUN"]
        return self.sets.plain_mask & ~self.sets.mask(special), special

    @cached_property
    def _ascii(self) -> Bitmask:
        return self.sets.mask(self.sets.where(bytes.isascii))

    def _after_brace(self, mode: Literal) -> Plan:
        sets = self.sets
        if mode.seen == "}":
            return Plan(read=sets.beginning(b"}"))
        opened = mode.step(0x20)
        assert opened is not None, "white space may begin a replacement field"
        others = sets.mask_beginning(ALL_BYTES - {0x7B})
        return Plan(read=sets.beginning(b"{"), delegates=[Delegate(opened.events, opened.mode, others)])

    def _after_empty(self, mode: Opening) -> Plan:
        sets, quote = self.sets, mode.style.quote
        closed = mode.step(0x20)
        assert closed is not None, "white space may follow a string"
        others = sets.mask_beginning(ALL_BYTES - {quote})
        return Plan(read=sets.beginning((quote,)), delegates=[Delegate(closed.events, closed.mode, others)])

    @plan.register
    def _(self, mode: HexDigits) -> Plan:
        return Plan(read=self.sets.beginning(b"0123456789abcdefABCDEF"))

    @plan.register
    def _(self, mode: CharacterName) -> Plan:
        if mode.length == 0:
            return Plan(read=self.sets.beginning(b"{"))
        names = self._character_names
        closing = self.sets.where(lambda text: b"}" in text)
        return Plan(always=self.sets.mask(names), read=closing)

    @cached_property
    def _character_names(self) -> list[int]:
        return self.sets.where(_NAME_CHARACTERS.match)

    @plan.register
    def _(self, mode: Conversion) -> Plan:
        sets = self.sets
        if not mode.letter:
            texts = sets.vocabulary.tokens
            short = [t for t in sets.beginning(b"sra") if len(texts[t]) == 1 or texts[t][1] not in IDENTIFIER]
            return Plan(read=[*sets.beginning(b"="), *short])
        closed = mode.step(0x20)
        assert closed is not None, "white space may follow a conversion"
        others = sets.mask_beginning(ALL_BYTES - IDENTIFIER)
        return Plan(delegates=[Delegate(closed.events, closed.mode, others)])


def _is_bytes(mode: Mode) -> bool:
    """Whether characters beyond ASCII are refused in `mode`."""
    return isinstance(mode, String | Opening) and "b" in mode.style.letters
