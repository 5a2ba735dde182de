"""Budget: how large a tree is worth verifying on this machine, and when drafting does not pay at all.

Knows what passes cost and how probable the nodes are. Must not know tokens or where drafts come from.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

from decoding.draft_tree import DraftTree
from decoding.pass_cost import PassCost
from decoding.payoff import Payoff
from decoding.verify import Verdict


class Budget(Protocol):
    """Decides the size of each round's tree."""

    def most_nodes(self, context: int) -> int:
        """The largest tree worth proposing with `context` tokens before it; 0 stops drafting for this round."""

    def best_size(self, tree: DraftTree, context: int) -> int:
        """How many of the tree's nodes (best first) to verify."""

    def observe(self, tree: DraftTree, verdict: Verdict, context: int, forward_ms: float, drafting_ms: float) -> None:
        """Learn from a round: what was accepted, what the target's pass and what drafting took."""


class FixedBudget:
    """Always the same number of nodes: for tests, sweeps and users who ask for it."""

    def __init__(self, nodes: int) -> None:
        self._nodes = nodes

    def most_nodes(self, context: int) -> int:
        """See `Budget`."""
        return self._nodes

    def best_size(self, tree: DraftTree, context: int) -> int:
        """See `Budget`."""
        return min(len(tree), self._nodes)

    def observe(self, tree: DraftTree, verdict: Verdict, context: int, forward_ms: float, drafting_ms: float) -> None:
        """Nothing to learn."""


_MOST_NODES = 24
"""Larger trees never paid on any machine measured, and growing them takes time of its own."""
_MEMORY = 0.98
"""Of the sums that say how much of what trees promised came true: about fifty rounds."""
_DOUBT = 0.1
"""Nodes a round that are taken to come true whatever happened: distrust fades where nothing is verified."""
_FIRST_NODES, _FEWEST_NODES, _SPARE_NODES = 8, 4, 2
_DEAREST = 2.5
"""A pass that costs this many plain ones is never asked for."""
_SMOOTHING = 0.05


class MeasuredBudget:
    """Adds nodes while they gain more tokens than their time is worth, and stops drafting where it loses.

    Time is worth the tokens a millisecond that decoding has been giving lately: a tree of n nodes with joint
    probabilities p_i is worth sum(p_i) tokens minus that rate times what its rows cost. Judged over many rounds,
    drafting has to give more tokens than the time that it takes, growing and merging trees included; else it pauses
    and is probed now and then.
    """

    def __init__(self, cost: PassCost, drifted: Callable[[PassCost], None] = lambda _: None) -> None:
        """`drifted` is told when the cost had to be corrected."""
        self.cost = cost
        self._drifted = drifted
        self._rate = 0.0  # tokens a millisecond, smoothed
        self._payoff = Payoff()
        self._asked = _FIRST_NODES
        self._expected, self._accepted = 1.0, 1.0  # accepted nodes a round, smoothed

    def most_nodes(self, context: int) -> int:
        """See `Budget`."""
        if self._payoff.resting:
            return 0
        table = self.cost.now(context)
        dearest = _DEAREST * table[1]
        most = min(self._asked, len(table) - 2)
        while most > 0 and table[most + 1] > dearest:
            most -= 1
        return most

    def best_size(self, tree: DraftTree, context: int) -> int:
        """See `Budget`."""
        table = self.cost.now(context)
        rate = self._rate or 1.0 / table[1]
        trust = min(1.0, self._accepted / self._expected)
        best, best_worth, tokens = 0, 0.0, 0.0
        for nodes, log_prob in enumerate(tree.log_probs.tolist(), 1):
            if nodes + 1 >= len(table):
                break
            tokens += trust * math.exp(log_prob)
            worth = tokens - rate * (table[nodes + 1] - table[1])
            if worth > best_worth:
                best, best_worth = nodes, worth
        self._ask_for_more_than(best)
        return best

    def observe(self, tree: DraftTree, verdict: Verdict, context: int, forward_ms: float, drafting_ms: float) -> None:
        """See `Budget`."""
        rows, emitted = len(tree) + 1, len(verdict.token_ids)
        table = self.cost.now(context)
        if rows < len(table):
            self._learn(emitted, table[rows], table[1], drafting_ms)
        expected = sum(map(math.exp, tree.log_probs.tolist()))
        self._expected = _MEMORY * self._expected + (1.0 - _MEMORY) * (_DOUBT + expected)
        self._accepted = _MEMORY * self._accepted + (1.0 - _MEMORY) * (_DOUBT + len(verdict.path) - 1)
        if self.cost.observe(rows, context, forward_ms):
            self._drifted(self.cost)

    def _ask_for_more_than(self, used: int) -> None:
        """Trees are grown a little larger than what is used of them, since a node costs 40 µs to grow; where all is
        used, they grow by half."""
        if used >= self._asked:
            self._asked = min(max(used + used // 2, _FEWEST_NODES), _MOST_NODES)
        else:
            self._asked = max(used + _SPARE_NODES, self._asked - 1, _FEWEST_NODES)

    def _learn(self, emitted: int, pass_ms: float, plain_pass_ms: float, drafting_ms: float) -> None:
        """Judge by what passes cost at this moment by their median: a disturbed pass must not look like a bad draft."""
        rate = emitted / (pass_ms + drafting_ms)
        self._rate = rate if not self._rate else self._rate + _SMOOTHING * (rate - self._rate)
        if self._payoff.resting:
            self._payoff.rested()
        else:
            self._payoff.saved(emitted * plain_pass_ms - pass_ms - drafting_ms)
