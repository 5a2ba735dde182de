"""The Source protocol: what may follow one path, token by token.

Knows tokens only. A source is cheaper than a `Drafter`: it answers for one node at a time, in microseconds, so that
a tree can grow along the best paths of several sources at once (`growing.py`) and each source can go on where
another one ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from decoding.drafters.drafter import Observation

Place = TypeVar("Place")


class Source(Protocol[Place]):
    """Successors of a path. `Place` is whatever a source needs to know about where a node is; it is immutable."""

    @property
    def name(self) -> str:
        """One word, for traces and statistics."""

    def begin(self, tokens: Sequence[int]) -> None:
        """A new request starts with these prompt tokens (what was learned from earlier requests may stay)."""

    def root(self, tokens: Sequence[int]) -> Place:
        """The place of the root, which is the last of `tokens`."""

    def after(self, place: Place, token: int) -> Place:
        """The place after one more token, whoever proposed it."""

    def successors(self, place: Place) -> Sequence[tuple[int, float]]:
        """(token, probability) of what may come next, in any order; the probabilities sum to at most 1. What is
        left is the chance that none of them is right."""

    def observe(self, seen: Observation, places: Sequence[Place]) -> None:
        """Learn from the pass that just ended. `places` are where the source stood before the first, second … of the
        emitted tokens, as far as it was asked about them."""
