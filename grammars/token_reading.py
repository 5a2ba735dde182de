"""What the tokens of a vocabulary do to the lexer, read many at a time.

Knows bytes and modes of the lexer. Must not know what a parser accepts.

Tokens are read in step: one numpy gather per byte position moves all of them through a table of transitions, which is
filled from the lexer wherever a byte is met in a place for the first time. 150,000 tokens share some thousand such
places, so that reading them costs milliseconds instead of a tenth of a second.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grammars.python_lexer import Mode, Step
from grammars.python_terminals import Event
from grammars.vocabulary import Vocabulary

_UNREAD, _DEAD = -1, -2
TokenIds = NDArray[np.int32]


class Group(NamedTuple):
    """Tokens that do the same to a mode.

    Attributes:
        step: the mode after them, and what they complete.
        tokens: int32 ids.
    """

    step: Step
    tokens: TokenIds


class TokenReader:
    """Reads the tokens of one vocabulary.

    Args:
        vocabulary: their bytes.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._bytes = np.frombuffer(b"".join(vocabulary.tokens), dtype=np.uint8)
        self._lengths = vocabulary.token_bytes_lengths
        self._starts = np.cumsum(self._lengths, dtype=np.int64) - self._lengths

    def read(self, mode: Mode, tokens: TokenIds) -> Iterator[Group]:
        """What each of `tokens` does in `mode`, those that cannot be read left out. No token may be empty."""
        places = _Places(mode)
        ended: list[tuple[TokenIds, NDArray[np.int32]]] = []
        at = np.zeros(len(tokens), dtype=np.int32)
        depth = 0
        while len(tokens):
            at = places.after(at, self._bytes[self._starts[tokens] + depth])
            depth += 1
            ends = (self._lengths[tokens] == depth) & (at != _DEAD)
            ended.append((tokens[ends], at[ends]))
            goes_on = (self._lengths[tokens] > depth) & (at != _DEAD)
            tokens, at = tokens[goes_on], at[goes_on]
        ids = np.concatenate([found for found, _ in ended]) if ended else tokens
        reached = np.concatenate([place for _, place in ended]) if ended else at
        order = np.argsort(reached, kind="stable")
        ids, reached = ids[order], reached[order]
        borders = np.flatnonzero(np.diff(reached)) + 1
        for group in np.split(np.arange(len(ids)), borders) if len(ids) else ():
            yield Group(places.steps[int(reached[group[0]])], ids[group])


class _Places:
    """Where reading has come to: the mode, and what was completed on the way. Numbered from 0, the begin."""

    def __init__(self, mode: Mode) -> None:
        self.steps = [Step(mode)]
        self._numbers: dict[tuple[Mode, tuple[Event, ...]], int] = {(mode, ()): 0}
        self._moves = np.full((64, 256), _UNREAD, dtype=np.int32)

    def after(self, at: NDArray[np.int32], byte: NDArray[np.uint8]) -> NDArray[np.int32]:
        """The places after one more byte each, `_DEAD` where it cannot be read."""
        reached: NDArray[np.int32] = self._moves[at, byte]
        unread = reached == _UNREAD
        if not unread.any():
            return reached
        for key in np.unique(at[unread].astype(np.int64) << 8 | byte[unread]).tolist():
            moved = self._move(key >> 8, key & 255)
            self._moves[key >> 8, key & 255] = moved
        return np.asarray(self._moves[at, byte])

    def _move(self, place: int, byte: int) -> int:
        before = self.steps[place]
        step = before.mode.step(byte)
        if step is None:
            return _DEAD
        key = (step.mode, before.events + step.events)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.steps)
            self.steps.append(Step(*key))
            if number == len(self._moves):
                self._moves = np.concatenate([self._moves, np.full_like(self._moves, _UNREAD)])
        return number
