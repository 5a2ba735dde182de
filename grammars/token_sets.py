"""Sets of the tokens of one vocabulary by their bytes: those that mean the same wherever they occur.

Knows bytes and which of them Python's lexer treats alike. Must not know what a parser accepts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cached_property

import numpy as np

from grammars.constraint import Bitmask, bitmask_of
from grammars.python_lexer import Word
from grammars.python_states import python
from grammars.vocabulary import Vocabulary

_WIDEST_LEAD = 40
_PLAIN = re.compile(rb"[^'\"\\{}\n\r\0]+\Z")
_CODE_LEAD = re.compile(rb"( *)[^ \t\f\n\r\\#]")
_NAME_RUN = re.compile(rb"[A-Za-z_0-9]+")
_FIELD_BYTES = re.compile(rb"[})\]:!]")
DIGITS = frozenset(b"0123456789")
LETTERS = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_")
IDENTIFIER = LETTERS | DIGITS | frozenset(range(0x80, 0x100))
"""The bytes of identifiers, of all characters beyond ASCII."""
ALL_BYTES = frozenset(range(256))


class TokenSets:
    """Sets of tokens of one vocabulary, by their bytes."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.size = vocabulary.size
        self.ordinary = [token for token, text in enumerate(vocabulary.tokens) if text]
        self._first: dict[int, list[int]] = {}
        for token in self.ordinary:
            self._first.setdefault(vocabulary.tokens[token][0], []).append(token)
        self._masks: dict[frozenset[int], Bitmask] = {}

    def beginning(self, first_bytes: Iterable[int]) -> list[int]:
        """The tokens whose first byte is one of `first_bytes`."""
        return [token for byte in first_bytes for token in self._first.get(byte, ())]

    def mask_beginning(self, first_bytes: frozenset[int]) -> Bitmask:
        """`beginning` as a bitmask."""
        if first_bytes not in self._masks:
            self._masks[first_bytes] = bitmask_of(self.beginning(first_bytes), self.size)
        return self._masks[first_bytes]

    def where(self, test: Callable[[bytes], object]) -> list[int]:
        """The tokens whose bytes pass `test`."""
        return [token for token in self.ordinary if test(self.vocabulary.tokens[token])]

    def mask(self, tokens: Iterable[int]) -> Bitmask:
        """A bitmask of `tokens`."""
        return bitmask_of(np.fromiter(tokens, dtype=np.int32), self.size)

    @cached_property
    def everything(self) -> Bitmask:
        """Every ordinary token."""
        return self.mask(self.ordinary)

    @cached_property
    def plain(self) -> list[int]:
        """Whole characters without quotes, braces, backslashes and newlines: they change nothing in a string."""
        return self.where(lambda text: _PLAIN.match(text) and _is_utf8(text))

    @cached_property
    def plain_mask(self) -> Bitmask:
        """`plain` as a bitmask."""
        return self.mask(self.plain)

    @cached_property
    def not_plain(self) -> list[int]:
        """All others."""
        plain = set(self.plain)
        return [token for token in self.ordinary if token not in plain]

    @cached_property
    def by_bytes(self) -> dict[bytes, list[int]]:
        """Token bytes -> the ids that have them."""
        found: dict[bytes, list[int]] = {}
        for token in self.ordinary:
            found.setdefault(self.vocabulary.tokens[token], []).append(token)
        return found

    @cached_property
    def mixed_after(self) -> dict[bytes, list[int]]:
        """The letters and digits that a token begins with -> those tokens where something else follows them."""
        found: dict[bytes, list[int]] = {}
        for token in self.names[1]:
            run = _NAME_RUN.match(self.vocabulary.tokens[token])
            if run:
                found.setdefault(run[0], []).append(token)
        return found

    @cached_property
    def field_bytes(self) -> list[int]:
        """Tokens that may mean something else inside the replacement field of an f-string: what may end the field's
        expression. (Newlines count for nothing there, as inside any bracket.)"""
        return self.where(_FIELD_BYTES.search)

    @cached_property
    def leads(self) -> list[tuple[int, Bitmask]]:
        """(n, the tokens of n spaces and then code) for every n up to the widest."""
        found: dict[int, list[int]] = {}
        for token in self.ordinary:
            match = _CODE_LEAD.match(self.vocabulary.tokens[token])
            if match and len(match[1]) <= _WIDEST_LEAD:
                found.setdefault(len(match[1]), []).append(token)
        return [(lead, self.mask(tokens)) for lead, tokens in sorted(found.items())]

    @cached_property
    def no_code(self) -> list[int]:
        """Tokens that do not begin with at most some spaces and then code."""

        def test(text: bytes) -> bool:
            match = _CODE_LEAD.match(text)
            return match is None or len(match[1]) > _WIDEST_LEAD

        return self.where(test)

    @cached_property
    def names(self) -> tuple[list[int], list[int]]:
        """Of the tokens that begin with a character of identifiers: those that consist of such, and the others."""
        word = python().lexer.get(Word, (), "")
        pure: list[int] = []
        mixed: list[int] = []
        for token in self.beginning(IDENTIFIER):
            step = word.try_read(self.vocabulary.tokens[token])
            (pure if step and step.mode is word and not step.events else mixed).append(token)
        return pure, mixed


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
