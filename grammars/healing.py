"""Token healing as a constraint: the first new tokens must begin with the text that was taken back.

Knows token bytes. Must not know Python or a model. A cursor often splits what the tokenizer would join (`retu|rn`,
`foo(|)`): the prompt then ends in a token that the model has seldom seen there. Backing up one token and forcing
what comes next to begin with its text gives the model back its usual alphabet (Lundberg, "The art of prompt
design: prompt boundaries and token healing", 2023).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from grammars.constraint import Bitmask, Constraint, bitmask_of, validate_by_advancing
from grammars.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class HealingConstraint:
    """Tokens must spell `remaining`, and may go on after it; `then` is asked as well.

    Attributes:
        remaining: the bytes still owed, never empty.
        then: a constraint that stands before `remaining` (it is advanced over the healed tokens too).
    """

    vocabulary: Vocabulary = field(repr=False)
    remaining: bytes
    then: Constraint

    def advance(self, token: int) -> Constraint | None:
        """See `Constraint`: once `remaining` is spelt, the state of `then` alone."""
        if not self._spells(token):
            return None
        after = self.then.advance(token)
        rest = self.remaining[len(self.vocabulary.tokens[token]) :]
        if after is None or not rest:
            return after
        return HealingConstraint(self.vocabulary, rest, after)

    def permits(self, token: int) -> bool:
        """See `Constraint`."""
        return self._spells(token) and self.then.permits(token)

    def validate(self, tokens: Sequence[int]) -> int:
        """See `Constraint`."""
        return validate_by_advancing(self, tokens)

    def allowed(self) -> Bitmask:
        """See `Constraint`."""
        mask = bitmask_of(healing_candidates(self.vocabulary, self.remaining), self.vocabulary.size)
        inner = self.then.allowed()
        if inner is not None:
            mask &= inner[: len(mask)]
        return mask

    def penalty(self) -> tuple[NDArray[np.int32], NDArray[np.float32]] | None:
        """See `Constraint`: a token that spells the healed text and goes on is judged as a whole by `then`."""
        return self.then.penalty()

    def penalty_of(self, token: int) -> float:
        """See `Constraint`."""
        return self.then.penalty_of(token)

    def _spells(self, token: int) -> bool:
        text = self.vocabulary.tokens[token] if token < self.vocabulary.size else b""
        return bool(text) and (text.startswith(self.remaining) or self.remaining.startswith(text))


def healing_candidates(vocabulary: Vocabulary, text: bytes) -> NDArray[np.int32]:
    """The tokens that begin with `text`, and those that are a beginning of it."""
    longer = vocabulary.with_prefix(text)
    by_bytes = vocabulary.ids_by_bytes
    shorter = [by_bytes[text[:size]] for size in range(1, len(text)) if text[:size] in by_bytes]
    return np.concatenate([longer, np.asarray(shorter, dtype=np.int32)])


def worth_healing(vocabulary: Vocabulary, text: bytes) -> bool:
    """Whether any other token begins with `text`: if none does, the tokenizer would have split here anyway."""
    return bool(text) and len(vocabulary.with_prefix(text)) > 1
