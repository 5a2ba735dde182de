"""The model drafter: a smaller model of the same family guesses, level by level, with tree attention.

Knows a draft model by the TargetModel protocol, so that any runtime can draft. Must not know the target. The draft
model has a cache of its own; each level is one of its passes, and rows of earlier levels are scored again with it,
which costs nearly nothing on runtimes whose passes do (eight rows cost about what one costs). Tree expansion by joint
confidence is that of EAGLE-2 (arXiv 2406.16858), with a plain model instead of a trained head.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from decoding.draft_tree import OVERSUPPLY, DraftTree
from decoding.drafters.calibration import Calibration
from decoding.drafters.drafter import Observation
from decoding.models.target import KVCache, TargetModel, TreeLogits
from grammars.constraint import Constraint

_WIDTH = 2
"""Nodes that are scored anew in a level."""
_MOST_LEVELS = 8
_CATCH_UP = 128
"""Tokens of a prompt that are read before one round at the most: a request that is dropped meanwhile must not wait."""
_CHAIN = 32
"""Missing tokens that are scored together with the root instead of being prefilled."""
_SMOOTHING = 0.1
_ROWS = _WIDTH * _MOST_LEVELS + _CHAIN


@dataclass(slots=True)
class _Expansion:
    """A tree on its way. `scored` counts the nodes whose own successors are known; they come first."""

    token_ids: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)
    claims: list[float] = field(default_factory=list)
    candidates: list[tuple[float, int, int, float]] = field(default_factory=list)

    def add(self, candidate: tuple[float, int, int, float]) -> None:
        cost, token, parent, claim = candidate
        self.token_ids.append(token)
        self.parents.append(parent)
        self.log_probs.append(-cost)
        self.claims.append(claim)

    def tree(self) -> DraftTree:
        return DraftTree.from_lists(self.token_ids, self.parents, self.log_probs, ["model"] * len(self.token_ids))


class ModelDrafter:
    """Drafts from a smaller model."""

    name = "model"

    def __init__(self, draft: TargetModel, never: frozenset[int], capacity: int) -> None:
        """`never` are ids that must not be drafted (see `pairs.check_pair`); `capacity` is the target cache's."""
        self._draft = draft
        self._never = never
        self._cache: KVCache = draft.new_cache(min(capacity, draft.max_context) + _ROWS)
        self._room = min(capacity, draft.max_context)
        self._calibration = Calibration()
        self._last = _Expansion()
        self._rows = 0  # nodes of the last tree that have rows in our cache, waiting for `keep`
        self._seconds_a_pass = 0.0
        self._seconds_a_token = math.inf
        self._proposed_at = 0.0

    def begin(self, tokens: Sequence[int]) -> None:
        """See `Drafter.begin`: what the cache shares with these tokens stays; proposals read the rest."""
        self._last, self._rows, self._proposed_at = _Expansion(), 0, 0.0
        shared = 0
        for mine, theirs in zip(self._cache.token_ids, tokens[:-1], strict=False):
            if mine != self._known(theirs):
                break
            shared += 1
        self._cache.truncate(shared)

    def propose(self, tokens: Sequence[int], state: Constraint | None, budget: int) -> DraftTree:
        """See `Drafter.propose`. Proposes nothing while the draft model still reads the prompt."""
        growth = self._last = _Expansion()
        self._rows, self._proposed_at = 0, 0.0
        if len(tokens) + _MOST_LEVELS >= self._room or not self._catch_up(tokens):
            return DraftTree.empty()
        scored = self._score_missing(tokens)
        self._branch(growth, -1, scored, len(scored.top_ids) - 1)
        levels = 1
        while growth.candidates and levels < _MOST_LEVELS and len(growth.token_ids) + _WIDTH <= budget:
            if math.exp(-growth.candidates[0][0]) < self._least_worthwhile():
                break
            first = len(growth.token_ids)
            for _ in range(min(_WIDTH, len(growth.candidates))):
                growth.add(heapq.heappop(growth.candidates))
            scored = self._pass(self._known(tokens[-1]), growth.tree())
            for node in range(first, len(growth.token_ids)):
                self._branch(growth, node, scored, node + 1)
            levels += 1
        self._rows = len(growth.token_ids)
        for candidate in heapq.nsmallest(OVERSUPPLY * budget - self._rows, growth.candidates):
            growth.add(candidate)
        self._proposed_at = time.perf_counter()
        return growth.tree()

    def observe(self, seen: Observation) -> None:
        """See `Drafter.observe`: which claims were right, and which of our rows became text."""
        now = time.perf_counter()
        emitted = seen.verdict.token_ids
        if self._proposed_at and emitted:
            self._seconds_a_token = _smoothed(self._seconds_a_token, (now - self._proposed_at) / len(emitted))
        growth, node, path = self._last, -1, [0]
        for token in emitted:
            below = [child for child, parent in enumerate(growth.parents) if parent == node]
            for child in below:
                self._calibration.observe(self.name, growth.claims[child], growth.token_ids[child] == token)
            found = [child for child in below if growth.token_ids[child] == token]
            if not found:
                break
            node = found[0]
            if node < self._rows:
                path.append(node + 1)
        if self._rows:
            # The last token is the next root: it counts as unread, though our tree may have a row for it.
            self._cache.keep(path[: max(1, len(emitted))])
            self._rows = 0

    def _least_worthwhile(self) -> float:
        """The joint probability from which on one more of our passes saves more than it takes."""
        return 0.05 if math.isinf(self._seconds_a_token) else min(1.0, self._seconds_a_pass / self._seconds_a_token)

    def _catch_up(self, tokens: Sequence[int]) -> bool:
        """Read so much of the prompt that the cache lacks a few tokens at the most; False while it lacks more than
        one round should read."""
        self._cache.truncate(len(self._cache.token_ids))  # drop rows that nobody decided on
        held = len(self._cache.token_ids)
        missing = len(tokens) - 1 - held
        if missing >= _CHAIN:
            chunk = [self._known(token) for token in tokens[held : held + min(missing, _CATCH_UP)]]
            self._draft.prefill(chunk, self._cache, lambda: False)
            missing -= len(chunk)
        return missing < _CHAIN

    def _score_missing(self, tokens: Sequence[int]) -> TreeLogits:
        """One pass over the tokens that the cache lacks and the root: after a fully accepted path, for one, the
        last of its tokens was never scored. The root's row is the last; the others are kept."""
        first, *rest = [self._known(token) for token in tokens[len(self._cache.token_ids) :]]
        chain = DraftTree.from_lists(rest, range(-1, len(rest) - 1), [0.0] * len(rest))
        scored = self._pass(first, chain)
        self._cache.keep(range(len(rest)))
        return scored

    def _pass(self, root: int, tree: DraftTree) -> TreeLogits:
        self._cache.truncate(len(self._cache.token_ids))  # drop the rows of the level before
        started = time.perf_counter()
        scored = self._draft.forward_tree(root, tree, self._cache)
        self._seconds_a_pass = _smoothed(self._seconds_a_pass or math.inf, time.perf_counter() - started)
        return scored

    def _branch(self, growth: _Expansion, node: int, scored: TreeLogits, row: int) -> None:
        """Make the best successors of a scored node candidates."""
        above = growth.log_probs[node] if node >= 0 else 0.0
        logits = scored.top_logits[row].numpy()
        weights = np.exp(logits - logits[0])
        for token, claim in zip(scored.top_ids[row].tolist(), (weights / weights.sum()).tolist(), strict=True):
            if token not in self._never and claim > 0.0:
                joint = above + math.log(self._calibration.corrected(self.name, claim))
                heapq.heappush(growth.candidates, (-joint, token, node, claim))

    def _known(self, token: int) -> int:
        """`token`, or 0 for one that the draft model has no embedding for."""
        return token if token < self._draft.vocab_size else 0


def _smoothed(old: float, new: float) -> float:
    return new if math.isinf(old) else old + _SMOOTHING * (new - old)
