"""Toy constraints over the tokens of a text model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grammars.constraint import Bitmask, bitmask_of


@dataclass(frozen=True)
class OnlyTokens:
    """Nothing but `tokens`, for ever."""

    tokens: tuple[int, ...]
    vocab_size: int

    def advance(self, token: int) -> OnlyTokens | None:
        return self if token in self.tokens else None

    def permits(self, token: int) -> bool:
        return token in self.tokens

    def validate(self, tokens: Sequence[int]) -> int:
        return next((count for count, token in enumerate(tokens) if token not in self.tokens), len(tokens))

    def allowed(self) -> Bitmask:
        return bitmask_of(list(self.tokens), self.vocab_size)

    def penalty(self) -> None:
        return None

    def penalty_of(self, token: int) -> float:
        return 0.0
