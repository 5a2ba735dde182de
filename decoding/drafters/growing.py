"""GrowingDrafter: one tree grown along the best paths of several sources.

Knows the Source and Constraint protocols. At every node the sources are asked in the order of their trust: each one
shares out what those before it left open. So one source goes on where another ends, and a token that several name
counts once, with the sum of what they give it. The tree grows along what the constraint allows only: no node is wasted.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from decoding.draft_tree import DraftTree
from decoding.drafters.calibration import Calibration
from decoding.drafters.drafter import Observation
from decoding.drafters.source import Source
from grammars.constraint import Constraint

_LEAST = math.log(2e-3)
"""Log probability below which no machine's budget ever verified a node."""

_SUREST = 0.95
"""The most that is believed of a token because others are forbidden."""

_BELOW_A_GUESS = 0.6
"""What a less trusted source says below a guessed node came true that much more seldom than below the root."""
_LEAST_LEFT = 0.02
"""What a source leaves to the next ones at the least: none is ever certain."""

Claim = tuple[int, float, str]
"""A token, its probability after its parent as the sources claim it (not corrected), and their names."""


_Leaf = tuple[float, int, int, int, str, tuple[Any, ...], Constraint | None]
"""(-joint log probability, tie, token, parent, names of sources, places and constraint state of the parent). Ties are
distinct; those of leaves whose preference was taken into account are negative."""


def _allowed(state: Constraint, token: int, ends: frozenset[int]) -> Constraint | None:
    """The state behind `token`, None where it is forbidden; an end leads nowhere and leaves the state."""
    if token in ends:
        return state if state.permits(token) else None
    return state.advance(token)


def _shared_out(claims: list[Claim], state: Constraint, ends: frozenset[int]) -> list[Claim]:
    """The claims that the constraint allows: they get, in proportion, what the others would have got."""
    allowed = [claim for claim in claims if _allowed(state, claim[0], ends) is not None]
    lost = sum(claimed for _, claimed, _ in claims) - sum(claimed for _, claimed, _ in allowed)
    if lost <= 0.0 or not allowed:
        return allowed
    scale = 1.0 / max(1.0 - lost, _LEAST_LEFT)
    return [(token, min(claimed * scale, _SUREST), names) for token, claimed, names in allowed]


@dataclass(slots=True)
class _Growth:
    """One tree on its way. `claims` and `places` are what was said below every expanded node and where the sources
    stood there, for what they learn later; -1 is the root."""

    claims: dict[int, list[Claim]] = field(default_factory=dict)
    places: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    nodes: dict[tuple[int, int], int] = field(default_factory=dict)
    token_ids: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    ties: int = 0

    def next_tie(self) -> int:
        self.ties += 1
        return self.ties

    def add(self, token: int, parent: int, log_prob: float, sources: str) -> int:
        node = len(self.token_ids)
        self.nodes[parent, token] = node
        self.token_ids.append(token)
        self.parents.append(parent)
        self.log_probs.append(log_prob)
        self.sources.append(sources)
        return node


class GrowingDrafter:
    """A drafter made of sources, the most trusted one first."""

    def __init__(self, sources: Sequence[Source[Any]], end_token_ids: frozenset[int] = frozenset()) -> None:
        """At least one source. Nothing grows below the tokens that end a text."""
        self._sources = tuple(sources)
        self._ends = end_token_ids
        self._calibration = Calibration()
        self._last = _Growth()
        self._names = [
            "+".join(source.name for bit, source in enumerate(self._sources) if mask >> bit & 1)
            for mask in range(1 << len(self._sources))
        ]

    @property
    def name(self) -> str:
        """The names of all sources."""
        return self._names[-1]

    def begin(self, tokens: Sequence[int]) -> None:
        """See `Drafter.begin`."""
        for source in self._sources:
            source.begin(tokens)

    def propose(self, tokens: Sequence[int], state: Constraint | None, budget: int) -> DraftTree:
        """See `Drafter.propose`: `budget` nodes, grown best first along what the constraint allows, from the most
        probable one to the least. A branch that it refuses costs no node, and what it promised goes to the others."""
        growth = self._last = _Growth()
        frontier: list[_Leaf] = []
        self._expand(growth, frontier, -1, 0.0, tuple(source.root(tokens) for source in self._sources), state)
        while frontier and len(growth.token_ids) < budget:
            cost, tie, token, parent, names, above, before = heapq.heappop(frontier)
            after = before
            if before is not None:
                # Preferences are asked for last, like permission: of most leaves nobody wants to know.
                penalty = before.penalty_of(token) if tie >= 0 else 0.0
                if penalty < 0.0:
                    heapq.heappush(frontier, (cost - penalty, -1 - tie, token, parent, names, above, before))
                    continue
                after = _allowed(before, token, self._ends)
                if after is None:
                    continue
            node = growth.add(token, parent, -cost, names)
            places = tuple(source.after(place, token) for source, place in zip(self._sources, above, strict=True))
            if token not in self._ends:
                self._expand(growth, frontier, node, -cost, places, after)
        return DraftTree(
            np.array(growth.token_ids, dtype=np.int32),
            np.array(growth.parents, dtype=np.int32),
            np.array(growth.log_probs, dtype=np.float32),
            tuple(growth.sources),
        )

    def observe(self, seen: Observation) -> None:
        """See `Drafter.observe`. Every claim below a node of the accepted path was decided, verified or not."""
        growth, node = self._last, -1
        self._last = _Growth()  # a round without a proposal decides nothing
        path: list[tuple[Any, ...]] = []
        for token in seen.verdict.token_ids:
            if node not in growth.places:
                break
            path.append(growth.places[node])
            for claimed_token, claimed, names in growth.claims[node]:
                self._calibration.observe(names, claimed, claimed_token == token)
            if (child := growth.nodes.get((node, token))) is None:
                break
            node = child
        for number, source in enumerate(self._sources):
            source.observe(seen, [places[number] for places in path])

    def _expand(
        self,
        growth: _Growth,
        frontier: list[_Leaf],
        node: int,
        log_prob: float,
        places: tuple[Any, ...],
        state: Constraint | None,
    ) -> None:
        """Push the successors of one node."""
        growth.places[node] = places
        claims = growth.claims[node] = self._claims(places, 1.0 if node < 0 else _BELOW_A_GUESS)
        if node < 0 and state is not None:
            claims = growth.claims[node] = _shared_out(claims, state, self._ends)
        for token, claimed, names in claims:
            joint = log_prob + math.log(self._calibration.corrected(names, claimed))
            if joint > _LEAST:
                heapq.heappush(frontier, (-joint, growth.next_tie(), token, node, names, places, state))

    def _claims(self, places: tuple[Any, ...], belief: float) -> list[Claim]:
        """What all sources together say comes next; all but the first are believed by `belief`."""
        left = 1.0
        claimed: dict[int, float] = {}
        masks: dict[int, int] = {}
        bit = 1
        for source, place in zip(self._sources, places, strict=True):
            given = 0.0
            for token, probability in source.successors(place):
                if token in claimed:
                    claimed[token] += left * probability
                    masks[token] |= bit
                else:
                    claimed[token] = left * probability
                    masks[token] = bit
                given += probability
            left *= belief * max(1.0 - given, _LEAST_LEFT)
            bit <<= 1
        return [(token, probability, self._names[masks[token]]) for token, probability in claimed.items()]
