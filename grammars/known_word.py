"""A constraint for a second try: the word at the beginning must be a name that exists; then any other constraint.

Knows states of constraints and token bytes. Must not know models, or how the first try came about.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grammars.constraint import Bitmask, Both, Constraint, bitmask_of, empty_bitmask, validate_by_advancing
from grammars.scope_state import ScopeState
from grammars.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class KnownWordFirst:
    """Until the first word behind `owed` bytes is finished, `word` counts as well as `then`; behind it `then` alone.

    Attributes:
        word: a state in which the next word has to exist: see `ScopeConstraint.open_word`.
        then: stands at the same place.
        owed: so many bytes come before the word.
        never: what the text must not begin with: the first try. Where that is a beginning of names, or like the `b`
            of `b""`, a model would write it again and be left with what nobody would say. Empty: already avoided.
    """

    word: ScopeState
    then: Constraint
    owed: int
    never: bytes

    def advance(self, token: int) -> Constraint | None:
        """See `Constraint`."""
        text = self._vocabulary.tokens[token] if token < self._vocabulary.size else b""
        if not text or not text.isascii() or (self.never and text.startswith(self.never)):
            return None  # words beyond ASCII are free elsewhere: a model would flee into them
        word, then = self.word.advance(token), self.then.advance(token)
        if word is None or then is None:
            return None
        if len(text) > self.owed and not word.lexical.word:
            return then
        never = self.never[len(text) :] if self.never.startswith(text) else b""
        return KnownWordFirst(word, then, max(0, self.owed - len(text)), never)

    @property
    def _vocabulary(self) -> Vocabulary:
        return self.word.constraint.vocabulary

    def permits(self, token: int) -> bool:
        """See `Constraint`: here the text cannot end."""
        return self.advance(token) is not None

    def validate(self, tokens: Sequence[int]) -> int:
        """See `Constraint`."""
        return validate_by_advancing(self, tokens)

    def allowed(self) -> Bitmask:
        """See `Constraint`."""
        both = Both(self.word, self.then).allowed()
        size = self._vocabulary.size
        mask = ~empty_bitmask(size) if both is None else both
        refused = [*self._vocabulary.end, *(self._vocabulary.with_prefix(self.never) if self.never else ())]
        return mask & ~bitmask_of(refused, size)[: len(mask)] & self.word.constraint.ascii[: len(mask)]

    def penalty(self) -> tuple[NDArray[np.int32], NDArray[np.float32]] | None:
        """See `Constraint`."""
        return self.then.penalty()

    def penalty_of(self, token: int) -> float:
        """See `Constraint`."""
        return self.then.penalty_of(token)
