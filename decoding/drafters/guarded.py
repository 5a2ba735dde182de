"""GuardedDrafter: keeps a faulty drafter from doing harm.

Knows the Drafter protocol. A drafter that raises, takes too long or returns rubbish proposes nothing from then on
in that request; it can cost speed, never the answer.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from decoding.draft_tree import OVERSUPPLY, DraftTree
from decoding.drafters.drafter import Drafter, Observation
from grammars.constraint import Constraint

T = TypeVar("T")

_log = logging.getLogger(__name__)

SLOW_SECONDS = 0.25
"""A proposal that takes longer than several passes of any model we run never pays."""
_STRIKES = 3


class GuardedDrafter:
    """The drafter `inner`, minus its faults."""

    def __init__(self, inner: Drafter, vocab_size: int) -> None:
        """Token ids at or above `vocab_size` count as rubbish."""
        self.inner = inner
        self._vocab_size = vocab_size
        self._off = False
        self._slow = 0

    @property
    def name(self) -> str:
        """The inner drafter's name."""
        return self.inner.name

    def begin(self, tokens: Sequence[int]) -> None:
        """See `Drafter.begin`; a new request is a new chance."""
        self._off = False
        self._slow = 0
        self._guard(lambda: self.inner.begin(tokens), None)

    def propose(self, tokens: Sequence[int], state: Constraint | None, budget: int) -> DraftTree:
        """See `Drafter.propose`."""
        started = time.perf_counter()
        tree = self._guard(lambda: self.inner.propose(tokens, state, budget), DraftTree.empty())
        if time.perf_counter() - started > SLOW_SECONDS:
            self._slow += 1
            if self._slow >= _STRIKES:
                self._switch_off("is too slow")
        if not self._sound(tree, budget):
            self._switch_off("proposed what is no tree of this vocabulary")
            return DraftTree.empty()
        return tree

    def observe(self, seen: Observation) -> None:
        """See `Drafter.observe`."""
        self._guard(lambda: self.inner.observe(seen), None)

    def _guard(self, call: Callable[[], T], otherwise: T) -> T:
        if self._off:
            return otherwise
        try:
            return call()
        except Exception as error:  # noqa: BLE001 - the boundary: a drafter must not change the output
            self._switch_off(f"raised {type(error).__name__}")
            return otherwise

    def _switch_off(self, why: str) -> None:
        self._off = True
        _log.warning("drafter %s %s: it proposes nothing for the rest of this request", self.inner.name, why)

    def _sound(self, tree: DraftTree, budget: int) -> bool:
        if not isinstance(tree, DraftTree):
            return False
        n = len(tree)
        if n > max(budget, 0) * OVERSUPPLY or len(tree.parents) != n or len(tree.log_probs) != n:
            return False
        if n == 0:
            return True
        inside = bool(np.all((tree.token_ids >= 0) & (tree.token_ids < self._vocab_size)))
        ordered = bool(np.all((tree.parents >= -1) & (tree.parents < np.arange(n))))
        pairs = set(zip(tree.parents.tolist(), tree.token_ids.tolist(), strict=True))
        return inside and ordered and bool(np.all(np.isfinite(tree.log_probs))) and len(pairs) == n
