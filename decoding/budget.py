"""Budget: how large a tree is worth verifying on this machine.

Knows what passes cost and how probable the nodes are. Must not know tokens or where drafts come from.
"""

from __future__ import annotations

from typing import Protocol

from decoding.draft_tree import DraftTree
from decoding.verify import Verdict


class Budget(Protocol):
    """Decides the size of each round's tree."""

    def most_nodes(self, context: int) -> int:
        """The largest tree worth proposing with `context` tokens before it; 0 stops drafting for this round."""

    def best_size(self, tree: DraftTree, context: int) -> int:
        """How many of the tree's nodes (best first) to verify."""

    def observe(self, tree: DraftTree, verdict: Verdict, context: int, seconds: float) -> None:
        """Learn from a pass: what was accepted and what the target's forward pass took."""


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

    def observe(self, tree: DraftTree, verdict: Verdict, context: int, seconds: float) -> None:
        """Nothing to learn."""
