"""The `Constraint` protocol: what may come next, one token at a time.

Knows token ids and packed numpy bitmasks. Must not know a model, a tree of drafts or an editor: the engine
asks, a constraint answers. States are immutable, so that the branches of a draft tree share them and nothing
is ever rolled back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Bitmask = NDArray[np.int32]
"""int32[ceil(V / 32)]; bit `t % 32` of word `t // 32` is set when token `t` is allowed."""


class Constraint(Protocol):
    """One immutable state of a constraint.

    A state answers for the position after everything that was advanced over. A state whose text may end here
    permits the end-of-text tokens; they can be asked for with `permits` but a state is never advanced over one.
    """

    def advance(self, token: int) -> Constraint | None:
        """The state after `token`, or None where `token` is forbidden."""

    def permits(self, token: int) -> bool:
        """Whether `token` may come next. Cheap: greedy decoding asks this before it builds any mask."""

    def validate(self, tokens: Sequence[int]) -> int:
        """How many of `tokens`, read from here, are allowed: 0..len(tokens)."""

    def allowed(self) -> Bitmask | None:
        """Bitmask of what may come next, or None where everything may."""

    def penalty(self) -> tuple[NDArray[np.int32], NDArray[np.float32]] | None:
        """Soft preferences: token ids and what is added to their logits (negative), or None."""

    def penalty_of(self, token: int) -> float:
        """What `penalty` adds to one logit, <= 0. Cheap: greedy decoding asks it for the few best tokens only."""


def empty_bitmask(vocab_size: int) -> Bitmask:
    """All tokens forbidden: int32[ceil(vocab_size / 32)] of zeros."""
    return np.zeros((vocab_size + 31) // 32, dtype=np.int32)


def bitmask_of(token_ids: Sequence[int] | NDArray[np.int32], vocab_size: int) -> Bitmask:
    """The bitmask that allows exactly `token_ids`."""
    flags = np.zeros((vocab_size + 31) // 32 * 32, dtype=np.uint8)
    flags[np.asarray(token_ids, dtype=np.int64)] = 1
    return np.packbits(flags, bitorder="little").view(np.int32)


def bitmask_to_bool(mask: Bitmask, vocab_size: int) -> NDArray[np.bool_]:
    """bool[vocab_size] of a packed mask."""
    return np.unpackbits(mask.view(np.uint8), count=vocab_size, bitorder="little").astype(np.bool_)


def bit_is_set(mask: Bitmask, token: int) -> bool:
    """Whether `token` is allowed by `mask`."""
    return bool((int(mask[token >> 5]) >> (token & 31)) & 1)


@dataclass(frozen=True, slots=True)
class Unconstrained:
    """Allows everything, for ever."""

    def advance(self, token: int) -> Constraint | None:
        """See `Constraint`."""
        return self

    def permits(self, token: int) -> bool:
        """See `Constraint`."""
        return True

    def validate(self, tokens: Sequence[int]) -> int:
        """See `Constraint`."""
        return len(tokens)

    def allowed(self) -> Bitmask | None:
        """See `Constraint`."""
        return None

    def penalty(self) -> tuple[NDArray[np.int32], NDArray[np.float32]] | None:
        """See `Constraint`."""
        return None

    def penalty_of(self, token: int) -> float:
        """See `Constraint`."""
        return 0.0


@dataclass(frozen=True, slots=True)
class FirstToken:
    """Forces one token, then goes on as the state `then` would after it."""

    token: int
    then: Constraint
    vocab_size: int

    def advance(self, token: int) -> Constraint | None:
        """See `Constraint`."""
        return self.then.advance(token) if token == self.token else None

    def permits(self, token: int) -> bool:
        """See `Constraint`."""
        return token == self.token and self.then.permits(token)

    def validate(self, tokens: Sequence[int]) -> int:
        """See `Constraint`."""
        return validate_by_advancing(self, tokens)

    def allowed(self) -> Bitmask | None:
        """See `Constraint`."""
        return bitmask_of([self.token] if self.then.permits(self.token) else [], self.vocab_size)

    def penalty(self) -> tuple[NDArray[np.int32], NDArray[np.float32]] | None:
        """See `Constraint`."""
        return None

    def penalty_of(self, token: int) -> float:
        """See `Constraint`."""
        return 0.0


@dataclass(frozen=True, slots=True)
class Both:
    """What two constraints allow together; their preferences add up."""

    one: Constraint
    other: Constraint

    def advance(self, token: int) -> Constraint | None:
        """See `Constraint`."""
        one = self.one.advance(token)
        other = self.other.advance(token) if one is not None else None
        return Both(one, other) if one is not None and other is not None else None

    def permits(self, token: int) -> bool:
        """See `Constraint`."""
        return self.one.permits(token) and self.other.permits(token)

    def validate(self, tokens: Sequence[int]) -> int:
        """See `Constraint`."""
        allowed = self.one.validate(tokens)
        return min(allowed, self.other.validate(tokens[:allowed])) if allowed else 0

    def allowed(self) -> Bitmask | None:
        """See `Constraint`."""
        one, other = self.one.allowed(), self.other.allowed()
        if one is None or other is None:
            return other if one is None else one
        size = min(len(one), len(other))
        return one[:size] & other[:size]

    def penalty(self) -> tuple[NDArray[np.int32], NDArray[np.float32]] | None:
        """See `Constraint`."""
        one, other = self.one.penalty(), self.other.penalty()
        if one is None or other is None:
            return other if one is None else one
        ids = np.concatenate([one[0], other[0]])
        unique, place = np.unique(ids, return_inverse=True)
        values = np.zeros(len(unique), dtype=np.float32)
        np.add.at(values, place, np.concatenate([one[1], other[1]]))
        return unique, values

    def penalty_of(self, token: int) -> float:
        """See `Constraint`."""
        return self.one.penalty_of(token) + self.other.penalty_of(token)


def validate_by_advancing(state: Constraint, tokens: Sequence[int]) -> int:
    """`Constraint.validate` for states that have nothing faster than `advance`."""
    after: Constraint | None = state
    for count, token in enumerate(tokens):
        after = after.advance(token) if after is not None else None
        if after is None:
            return count
    return len(tokens)
