"""The tokens of a vocabulary, sorted by the word they hold, so that the tokens that spell one of many names are found
by looking names up instead of reading the vocabulary.

Most tokens of a code vocabulary are one word, alone or behind a blank or a sign. Knows bytes of tokens; must not
know lexical states or scopes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from grammars.vocabulary import Vocabulary

_HEAD = re.compile(rb"([^0-9A-Za-z_\x80-\xff]*)([0-9A-Za-z_\x80-\xff]*)(.*)", re.S)
_UNDECIDED = frozenset({b"'", b"''", b'"', b'""', b"\\"})
_IRREGULAR = re.compile(rb"[0-9A-Za-z_\x80-\xff'\"\\]")


@dataclass
class WordTokens:
    """The tokens that begin with one prefix of signs and blanks (maybe none) and a word.

    Attributes:
        ending: word -> tokens that end with the word, which the next token may go on with.
        closing: word -> tokens in which signs follow the word.
        ids: all of them.
        free_first: those whose word begins with a digit, or is not ASCII (names are compared in form NFKC, which
            bytes cannot follow): never a name that is unknown.
        free_inside: those whose word is not ASCII.
        capital: those whose word begins with a capital letter.
    """

    prefix: bytes
    ending: dict[bytes, list[int]] = field(default_factory=dict)
    closing: dict[bytes, list[int]] = field(default_factory=dict)
    ids: list[int] = field(default_factory=list)
    free_first: list[int] = field(default_factory=list)
    free_inside: list[int] = field(default_factory=list)
    capital: list[int] = field(default_factory=list)


class TokenTable:
    """All ordinary tokens of a vocabulary.

    Attributes:
        groups: the tokens with a word, by what stands before it.
        by_sign: first sign (byte that is neither a blank nor part of a word) -> tokens that begin with it, blanks
            before it left out of account; key 0 holds the tokens of blanks only.
        irregular: tokens that hold further words, or quotes, behind their first word, and those that end where only
            the next byte says what they mean (a quote may be one of three).
        size: of the vocabulary.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.size = vocabulary.size
        self.groups: dict[bytes, WordTokens] = {}
        by_sign: dict[int, list[int]] = {}
        by_first: dict[int, list[int]] = {}
        irregular: list[int] = []
        for token, text in enumerate(vocabulary.tokens):
            match = _HEAD.match(text)
            if not text or match is None:
                continue
            by_first.setdefault(text[0], []).append(token)
            signs, word, rest = match.groups()
            visible = signs.lstrip(b" \t\f")
            if not word and visible in _UNDECIDED:
                irregular.append(token)
            elif visible or not word:
                by_sign.setdefault(visible[0] if visible else 0, []).append(token)
            if word:
                self._add(token, signs, word, rest)
                if _IRREGULAR.search(rest):
                    irregular.append(token)
        self.by_sign = {byte: np.asarray(ids, dtype=np.int32) for byte, ids in by_sign.items()}
        self.irregular = np.asarray(irregular, dtype=np.int32)
        self._by_first = {byte: by_first.get(byte, []) for byte in b"\r\n'\""}

    def by_first_byte(self, wanted: bytes) -> NDArray[np.int32]:
        """int32[N]: the tokens that begin with one of `wanted`, of newlines and quotes."""
        return np.asarray([token for byte in wanted for token in self._by_first[byte]], dtype=np.int32)

    def _add(self, token: int, signs: bytes, word: bytes, rest: bytes) -> None:
        group = self.groups.setdefault(signs, WordTokens(signs))
        group.ids.append(token)
        words = group.closing if rest else group.ending
        words.setdefault(word, []).append(token)
        if not word.isascii():
            group.free_inside.append(token)
            group.free_first.append(token)
        elif word[:1].isdigit():
            group.free_first.append(token)
        elif word[:1].isupper():
            group.capital.append(token)
