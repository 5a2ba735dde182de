"""The Drafter protocol: anything that proposes tokens.

Knows tokens and trees. A drafter cannot change the output: what it proposes is verified, and one that fails
proposes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from decoding.draft_tree import DraftTree
from decoding.models.target import TreeLogits
from decoding.verify import Verdict
from grammars.constraint import Constraint


@dataclass(frozen=True, slots=True)
class Observation:
    """What a pass taught: the tree that was verified, the logits of its rows and the verdict.

    Attributes:
        root: the token of row 0.
        before: the token before it, -1 where there is none.
        tree: what the target saw.
        scored: its logits (only valid until the next pass).
        verdict: which rows stayed and which tokens were emitted.
    """

    root: int
    before: int
    tree: DraftTree
    scored: TreeLogits
    verdict: Verdict


class Drafter(Protocol):
    """One source of drafts."""

    @property
    def name(self) -> str:
        """One word, for traces and statistics."""

    def begin(self, tokens: Sequence[int]) -> None:
        """A new request starts with these prompt tokens (what was learned from earlier requests may stay)."""

    def propose(self, tokens: Sequence[int], state: Constraint | None, budget: int) -> DraftTree:
        """The `budget` nodes that are most worth verifying after `tokens` (the last of them is the root), with
        honest joint probabilities, and at most OVERSUPPLY * budget in all: what is too many takes the place of nodes
        that the constraint cuts. `state` may be used to rank; pruning is done by the engine."""

    def observe(self, seen: Observation) -> None:
        """Learn from the pass that just ended, whether or not it was asked to propose for it."""
