"""The lookup drafter: what followed the same tokens before.

Knows token sequences: the prompt, what was generated, other open documents, accepted completions. No model.
Prompt lookup (Saxena 2023) and suffix decoding (arXiv 2411.04975) as a tree: all earlier places whose context ends
like the current one vote for what comes next, longer matches weigh more, and the branches of one tree are the
ways in which those places went on.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from decoding.draft_tree import DraftTree
from decoding.drafters.drafter import Observation
from grammars.constraint import Constraint

_LONGEST = 24
"""Context tokens compared; longer matches say nothing more (acceptance is flat from about 16 on)."""
_PLACES = 32
"""Most recent places looked at per request of a proposal; bounds the time on repetitive files."""
_LEAST_PROBABILITY = 2e-3
_PRIOR_HITS = (0.15, 0.25, 0.45, 0.6, 0.7, 0.75, 0.8, 0.85, 0.88, 0.9, 0.92)
"""Chance that a match of length 0, 1, 2 … goes on as before, until this user's own text has been watched."""
_PRIOR_WEIGHT = 12.0


@dataclass(slots=True)
class SuffixIndex:
    """Token sequences and, for every pair and single token, the places that follow it.

    Places are positions in `tokens`; sequences are kept apart by -1. Appending is O(1) a token.
    """

    tokens: list[int] = field(default_factory=list)
    after_one: defaultdict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    after_two: defaultdict[tuple[int, int], list[int]] = field(default_factory=lambda: defaultdict(list))

    def append(self, token: int) -> None:
        """Continue the current sequence."""
        here = len(self.tokens)
        self.tokens.append(token)
        if token < 0:
            return
        self.after_one[token].append(here + 1)
        if here and self.tokens[here - 1] >= 0:
            self.after_two[self.tokens[here - 1], token].append(here + 1)

    def extend(self, tokens: Sequence[int]) -> None:
        """Continue the current sequence with several tokens."""
        for token in tokens:
            self.append(token)

    def start_sequence(self) -> None:
        """What follows is another text."""
        if self.tokens and self.tokens[-1] >= 0:
            self.append(-1)

    def matches(self, context: Sequence[int]) -> list[tuple[int, int]]:
        """(place, match length) of the latest places whose text before ends like `context`; pairs first."""
        if not context:
            return []
        places: list[int] = []
        if len(context) > 1:
            places = self.after_two.get((context[-2], context[-1]), [])[-_PLACES:]
        if not places:
            places = self.after_one.get(context[-1], [])[-_PLACES:]
        limit = len(self.tokens)
        return [(place, self._match_length(place, context)) for place in reversed(places) if place < limit]

    def _match_length(self, place: int, context: Sequence[int]) -> int:
        length = 0
        tokens = self.tokens
        for back in range(1, min(_LONGEST, place, len(context)) + 1):
            if tokens[place - back] != context[-back]:
                break
            length = back
        return length


@dataclass(slots=True)
class _HitRates:
    """How often a match of a length went on as before: a beta prior, updated by every verified node."""

    hits: list[float] = field(default_factory=lambda: [_PRIOR_WEIGHT * p for p in _PRIOR_HITS])
    trials: list[float] = field(default_factory=lambda: [_PRIOR_WEIGHT] * len(_PRIOR_HITS))

    def bucket(self, length: int) -> int:
        return min(length, len(self.hits) - 1) if length < 10 else len(self.hits) - 1

    def probability(self, length: int) -> float:
        bucket = self.bucket(length)
        return min(self.hits[bucket] / self.trials[bucket], 0.98)

    def update(self, length: int, hit: bool) -> None:
        bucket = self.bucket(length)
        # Exponential forgetting over about 200 trials, so that a change of file shows.
        decay = 0.995
        self.hits[bucket] = decay * self.hits[bucket] + hit
        self.trials[bucket] = decay * self.trials[bucket] + 1.0


class LookupDrafter:
    """Drafts from earlier text. State that lasts: a bounded corpus of other texts and the measured hit rates."""

    name = "lookup"

    def __init__(self, corpus_tokens: int = 200_000) -> None:
        """`corpus_tokens` bounds what is remembered of other documents and accepted completions."""
        self._corpus_tokens = corpus_tokens
        self._documents: dict[str, tuple[int, ...]] = {}
        self._corpus: SuffixIndex | None = None
        self._live = SuffixIndex()
        self._seen = 0
        self._rates = _HitRates()
        self._proposed: dict[tuple[int, ...], int] = {}

    def remember(self, key: str, tokens: Sequence[int]) -> None:
        """Make a text (an open document, an accepted completion) a source; the oldest texts leave first."""
        text = tuple(tokens)
        if self._documents.get(key) == text:
            return
        self._documents.pop(key, None)
        self._documents[key] = text
        total = sum(len(document) for document in self._documents.values())
        while total > self._corpus_tokens and len(self._documents) > 1:
            total -= len(self._documents.pop(next(iter(self._documents))))
        self._corpus = None

    def forget(self, key: str) -> None:
        """Drop a text."""
        if self._documents.pop(key, None) is not None:
            self._corpus = None

    def begin(self, tokens: Sequence[int]) -> None:
        """See `Drafter.begin`."""
        self._live = SuffixIndex()
        self._live.extend(tokens)
        self._seen = len(tokens)
        if self._corpus is None and self._documents:
            self._corpus = SuffixIndex()
            for document in self._documents.values():
                self._corpus.extend(document[-self._corpus_tokens :])
                self._corpus.start_sequence()

    def propose(self, tokens: Sequence[int], state: Constraint | None, budget: int) -> DraftTree:
        """See `Drafter.propose`: the places that match vote, best joint probability first."""
        self._catch_up(tokens)
        context = tokens[-_LONGEST:]
        places = [(self._live, place, length) for place, length in self._live.matches(context)]
        if self._corpus is not None:
            places += [(self._corpus, place, length) for place, length in self._corpus.matches(context)]
        self._proposed = {}
        token_ids: list[int] = []
        parents: list[int] = []
        log_probs: list[float] = []
        counter = itertools.count()
        # Heap of (-joint log probability, tie, parent node, token, path, places that go on this way).
        frontier: list[tuple[float, int, int, int, tuple[int, ...], list[tuple[SuffixIndex, int, int]]]] = []
        self._branch(frontier, counter, -1, 0.0, (), places)
        while frontier and len(token_ids) < budget:
            cost, _, parent, token, path, going_on = heapq.heappop(frontier)
            node = len(token_ids)
            token_ids.append(token)
            parents.append(parent)
            log_probs.append(-cost)
            path = (*path, token)
            self._proposed[path] = max(length for _, _, length in going_on) - 1
            self._branch(frontier, counter, node, -cost, path, going_on)
        return DraftTree.from_lists(token_ids, parents, log_probs, [self.name] * len(token_ids))

    def observe(self, seen: Observation) -> None:
        """See `Drafter.observe`: count, per match length, which proposals the target confirmed."""
        emitted = seen.verdict.token_ids
        for path, length in self._proposed.items():
            depth = len(path)
            if depth <= len(emitted) and path[:-1] == emitted[: depth - 1]:
                best = max(
                    other_length
                    for other, other_length in self._proposed.items()
                    if len(other) == depth and other[:-1] == path[:-1]
                )
                if length == best:
                    self._rates.update(length, path[-1] == emitted[depth - 1])

    def _catch_up(self, tokens: Sequence[int]) -> None:
        for token in itertools.islice(tokens, self._seen, None):
            self._live.append(token)
        self._seen = len(tokens)

    def _branch(
        self,
        frontier: list[tuple[float, int, int, int, tuple[int, ...], list[tuple[SuffixIndex, int, int]]]],
        counter: itertools.count[int],
        parent: int,
        log_prob: float,
        path: tuple[int, ...],
        places: list[tuple[SuffixIndex, int, int]],
    ) -> None:
        """Group `places` by the token that follows and push one branch per token."""
        groups: dict[int, list[tuple[SuffixIndex, int, int]]] = {}
        for index, place, length in places:
            token = index.tokens[place] if place < len(index.tokens) else -1
            if token >= 0:
                groups.setdefault(token, []).append((index, place + 1, min(length + 1, _LONGEST)))
        if not groups:
            return
        # A place with a match one token longer counts twice: frequencies decide only among equals.
        weights = {t: sum(2.0 ** min(length, 12) for _, _, length in group) for t, group in groups.items()}
        total = sum(weights.values())
        longest = max(length for group in groups.values() for _, _, length in group) - 1
        chance = self._rates.probability(longest)
        for token, group in groups.items():
            probability = chance * weights[token] / total
            if probability > 0 and (joint := log_prob + math.log(probability)) > math.log(_LEAST_PROBABILITY):
                heapq.heappush(frontier, (-joint, next(counter), parent, token, path, group))
