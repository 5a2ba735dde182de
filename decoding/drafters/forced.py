"""The forced drafter: what the constraint leaves no choice about.

Knows a constraint's masks and the bytes of tokens. Must not know what the constraint is about.

A mask rarely leaves one token: a vocabulary that has `se` has `s` as well. But where every allowed token is a
beginning of the longest one, the text is forced, and the longest token is how a model writes it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from decoding.draft_tree import DraftTree
from decoding.drafters.drafter import Observation
from grammars.constraint import Bitmask, Constraint
from grammars.vocabulary import Vocabulary

_MOST_ALLOWED = 16
"""A forced text of n bytes has at most n beginnings; more allowed tokens are a choice."""
_ALMOST_SURE = math.log(0.98)
"""Of a forced text the model may still write a shorter token first."""


class ForcedDrafter:
    """Drafts the tokens that follow necessarily, as one chain.

    Args:
        vocabulary: the bytes of every token.
    """

    name = "forced"

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    def begin(self, tokens: Sequence[int]) -> None:
        """Nothing is remembered."""

    def observe(self, seen: Observation) -> None:
        """Nothing is learned."""

    def propose(self, tokens: Sequence[int], state: Constraint | None, budget: int) -> DraftTree:
        """At most `budget` tokens below the root, none where there is a choice or no constraint."""
        chain: list[int] = []
        log_probs: list[float] = []
        log_prob = 0.0
        while state is not None and len(chain) < budget:
            found = self._forced(state.allowed())
            if found is None:
                break
            token, only = found
            log_prob += 0.0 if only else _ALMOST_SURE
            state = state.advance(token)
            if state is not None:
                chain.append(token)
                log_probs.append(log_prob)
        return DraftTree.from_lists(chain, range(-1, len(chain) - 1), log_probs, [self.name] * len(chain))

    def _forced(self, mask: Bitmask | None) -> tuple[int, bool] | None:
        """The token that the mask forces, and whether it is the only one."""
        if mask is None or not 0 < np.count_nonzero(mask) <= _MOST_ALLOWED:
            return None
        words = np.flatnonzero(mask)
        flags = np.unpackbits(mask[words].view(np.uint8), bitorder="little").reshape(len(words), 32)
        rows, bits = np.nonzero(flags)
        ids = (words[rows] * 32 + bits).tolist()
        if len(ids) > _MOST_ALLOWED or any(token in self._vocabulary.end for token in ids):
            return None
        texts = self._vocabulary.tokens
        longest = max(ids, key=lambda token: (len(texts[token]), -token))
        if all(texts[longest].startswith(texts[token]) for token in ids):
            return longest, len(ids) == 1
        return None
