"""The tokens of a vocabulary, sorted by the word they hold, so that the tokens that spell one of many names are found
by looking names up instead of reading the vocabulary.

Most tokens of a code vocabulary are one word, alone or behind a blank or a sign. Knows bytes of tokens; must not
know lexical states or scopes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grammars.vocabulary import Vocabulary

_HEAD = re.compile(rb"([^0-9A-Za-z_\x80-\xff]*)([0-9A-Za-z_\x80-\xff]*)(.*)", re.S)
_UNDECIDED = frozenset({b"'", b"''", b'"', b'""', b"\\"})
_IRREGULAR = re.compile(rb"[0-9A-Za-z_\x80-\xff'\"\\]")


@dataclass(frozen=True)
class WordTokens:
    """The tokens that begin with one prefix of signs and blanks (maybe none) and a word.

    Attributes:
        ending: word -> tokens that end with the word, which the next token may go on with.
        closing: word -> tokens in which signs follow the word.
        ids: int32[N], all of them.
        asked_first: int32[N], those whose word is no name where it is unknown: not the ones that begin with a digit,
            nor those that are not ASCII (names are compared in form NFKC, which bytes cannot follow).
        asked_inside: int32[N], the same where a part of the word stands before them: digits count.
    """

    prefix: bytes
    ending: dict[bytes, list[int]]
    closing: dict[bytes, list[int]]
    ids: NDArray[np.int32]
    asked_first: NDArray[np.int32]
    asked_inside: NDArray[np.int32]


class TokenTable:
    """All ordinary tokens of a vocabulary.

    Attributes:
        groups: the tokens with a word, by what stands before it.
        by_sign: first sign (byte that is neither a blank nor part of a word) -> tokens that begin with it, blanks
            before it left out of account; key 0 holds the tokens of blanks only.
        irregular: tokens that hold further words, or quotes, behind their first word, and those that end where only
            the next byte says what they mean (a quote may be one of three).
        capital: bool[V], the tokens whose first word begins with a capital letter.
        size: of the vocabulary.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.size = vocabulary.size
        self.capital = np.zeros(self.size, dtype=np.bool_)
        words: dict[bytes, list[tuple[int, bytes, bytes]]] = {}
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
                words.setdefault(signs, []).append((token, word, rest))
                self.capital[token] = word.isascii() and word[:1].isupper()
                if _IRREGULAR.search(rest):
                    irregular.append(token)
        self.groups = {signs: _group(signs, tokens) for signs, tokens in words.items()}
        self.by_sign = {byte: np.asarray(ids, dtype=np.int32) for byte, ids in by_sign.items()}
        self.irregular = np.asarray(irregular, dtype=np.int32)
        self._by_first = {byte: by_first.get(byte, []) for byte in b"\r\n'\""}

    def by_first_byte(self, wanted: bytes) -> NDArray[np.int32]:
        """int32[N]: the tokens that begin with one of `wanted`, of newlines and quotes."""
        return np.asarray([token for byte in wanted for token in self._by_first[byte]], dtype=np.int32)


def _group(signs: bytes, tokens: list[tuple[int, bytes, bytes]]) -> WordTokens:
    """The group of tokens, each with its word and what stands behind that."""
    ending: dict[bytes, list[int]] = {}
    closing: dict[bytes, list[int]] = {}
    for token, word, rest in tokens:
        (closing if rest else ending).setdefault(word, []).append(token)
    inside = [(token, word) for token, word, _ in tokens if word.isascii()]
    return WordTokens(
        prefix=signs,
        ending=ending,
        closing=closing,
        ids=np.asarray([token for token, _, _ in tokens], dtype=np.int32),
        asked_first=np.asarray([token for token, word in inside if not word[:1].isdigit()], dtype=np.int32),
        asked_inside=np.asarray([token for token, _ in inside], dtype=np.int32),
    )
