"""PayingDrafter: asks a dear drafter only while its drafts are worth their time.

Knows the Drafter protocol and milliseconds. Meant for drafters whose proposals take about as long as a pass of the
target; what other sources would have proposed as well does not count in its favour.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from decoding.draft_tree import DraftTree
from decoding.drafters.drafter import Drafter, Observation
from decoding.payoff import Payoff
from grammars.constraint import Constraint

_SMOOTHING = 0.1


class PayingDrafter:
    """The drafter `inner`, while it pays."""

    def __init__(self, inner: Drafter) -> None:
        self._inner = inner
        self._payoff = Payoff()
        self._asked = False
        self._ms = 0.0
        self._proposed_at = 0.0
        self._round_ms: float | None = None

    @property
    def name(self) -> str:
        """The inner drafter's name."""
        return self._inner.name

    def begin(self, tokens: Sequence[int]) -> None:
        """See `Drafter.begin`."""
        self._inner.begin(tokens)

    def propose(self, tokens: Sequence[int], state: Constraint | None, budget: int) -> DraftTree:
        """See `Drafter.propose`; nothing while it rests."""
        self._asked = not self._payoff.resting
        if not self._asked:
            self._payoff.rested()
            self._proposed_at = time.perf_counter()
            return DraftTree.empty()
        started = time.perf_counter()
        tree = self._inner.propose(tokens, state, budget)
        self._proposed_at = time.perf_counter()
        self._ms = 1e3 * (self._proposed_at - started)
        if not len(tree):
            self._asked = False  # it still reads the prompt: nothing to judge
        return tree

    def observe(self, seen: Observation) -> None:
        """See `Drafter.observe`."""
        round_ms = 1e3 * (time.perf_counter() - self._proposed_at)
        self._round_ms = (
            round_ms if self._round_ms is None else self._round_ms + _SMOOTHING * (round_ms - self._round_ms)
        )
        if not self._asked:
            return
        own = sum(seen.tree.sources[row - 1] == self.name for row in seen.verdict.path[1:])
        # Without these tokens the target would have made that much more of its passes.
        saved = own * self._round_ms / max(1, len(seen.verdict.token_ids) - own)
        self._payoff.saved(saved - self._ms)
        self._inner.observe(seen)
