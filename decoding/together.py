"""Forest: several continuations of one prompt, decoded together. Each pass scores the latest token of every one.

Knows a target, its cache and guides, as the engine does. Must not know text, stop rules or how alternatives are chosen.
Passes are bound by reading the weights, so that three rows take hardly longer than one. The rows wait in the cache as
one tree that grows from pass to pass. What each one says is what it would say alone: its rows see the prompt and their
own ancestors only. The last one left is not served any more: drafts make better use of the rows than the others did.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from decoding.draft_tree import DraftTree, Pruned
from decoding.engine import Guide, Round, StageTimes, Stopwatch
from decoding.models.target import KVCache, TargetModel, TreeLogits
from decoding.sampling import Sampling
from decoding.verify import verify

_NO_DRAFTS = DraftTree.empty()


@dataclass(slots=True)
class Branch:
    """One continuation.

    Attributes:
        tokens: the prompt and what was generated, which grows. All branches have the same prompt.
        guide, sampling: as in `generate`.
        path: its rows of the tree, from the root on.
        rounds: what was generated and not asked for yet.
        wanted: whether somebody still asks.
        ended: whether nothing follows.
    """

    tokens: list[int]
    guide: Guide
    sampling: Sampling
    path: list[int] = field(default_factory=lambda: [0])
    rounds: deque[Round] = field(default_factory=deque)
    wanted: bool = True
    ended: bool = False

    @property
    def goes_on(self) -> bool:
        """Whether the next pass is for it, too."""
        return self.wanted and not self.ended


class Forest:
    """Continuations of the prompt that a cache holds all but the last token of."""

    def __init__(
        self, target: TargetModel, cache: KVCache, branches: Sequence[Branch], end_token_ids: frozenset[int]
    ) -> None:
        """At least one branch. The cache must not be used by anybody else until `close`."""
        self._target, self._cache, self._branches, self._ends = target, cache, branches, end_token_ids
        self._tokens, self._parents = [branches[0].tokens[-1]], [-1]
        self._rows: dict[tuple[int, int], int] = {}
        self._ready = 0
        self._closed = False
        self._room = min(target.most_rows, cache.capacity - len(cache.token_ids))

    def rounds(self, number: int) -> Iterator[Round]:
        """The rounds of one branch, each of one token. Asked for in turns, every pass serves all branches that are
        still wanted. Ends with the text, where no other branch is wanted any more, or where there is no room for more
        rows: then the forest is closed, and the cache holds this branch."""
        branch = self._branches[number]
        try:
            while branch.rounds or (not branch.ended and self._pass()):
                yield branch.rounds.popleft()
            if not branch.ended:
                self.close(number)
        finally:
            branch.wanted = False

    def close(self, number: int = 0) -> None:
        """Let the cache hold one branch, as far as it was computed, and no other. Nothing happens a second time."""
        if not self._closed:
            self._closed = True
            self._cache.keep([row for row in self._branches[number].path if row < self._ready])

    def _pass(self) -> bool:
        clock = Stopwatch()
        going_on = [branch for branch in self._branches if branch.goes_on]
        if self._closed or len(going_on) < 2:
            return False
        if self._ready:
            for branch in going_on:
                branch.path.append(self._row(branch.path[-1], branch.tokens[-1]))
        if len(self._tokens) > self._room:
            return False
        parents = [parent - 1 for parent in self._parents[1:]]
        tree = DraftTree.from_lists(self._tokens[1:], parents, [0.0] * len(parents))
        scored = self._target.forward_tree(self._tokens[0], tree, self._cache, ready=self._ready)
        forward_ms = clock.lap_ms() / len(going_on)
        for branch in going_on:
            self._follow(branch, _one_row(scored, branch.path[-1] - self._ready), forward_ms)
        self._ready = len(self._tokens)
        return True

    def _row(self, parent: int, token: int) -> int:
        """The row of a token behind another row; two branches that say the same share it."""
        row = self._rows.setdefault((parent, token), len(self._tokens))
        if row == len(self._tokens):
            self._tokens.append(token)
            self._parents.append(parent)
        return row

    def _follow(self, branch: Branch, scored: TreeLogits, forward_ms: float) -> None:
        clock = Stopwatch()
        guide = branch.guide
        verdict = verify(_NO_DRAFTS, scored, guide.masks, branch.sampling, branch.tokens, self._ends, guide.otherwise)
        guide.follow(verdict)
        branch.tokens.extend(verdict.token_ids)
        branch.ended = verdict.ended or verdict.exhausted
        times = StageTimes(0.0, 0.0, forward_ms, clock.lap_ms(), 0.0)
        branch.rounds.append(Round(verdict.token_ids, _NO_DRAFTS, Pruned(_NO_DRAFTS), verdict, times))


def _one_row(scored: TreeLogits, row: int) -> TreeLogits:
    return TreeLogits(scored.logits[row : row + 1], scored.top_ids[row : row + 1], scored.top_logits[row : row + 1])
