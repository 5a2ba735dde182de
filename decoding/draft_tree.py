"""DraftTree: proposed continuations that share prefixes, as flat arrays; merging and pruning them.

Knows arrays and the Constraint protocol. Must not know how a proposal was made, or what a model is.

Row numbering, used by every part of the engine: row 0 of a pass is the root (the last emitted token, whose keys
and values are computed in the same pass); row i + 1 is node i of the tree.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from grammars.constraint import Constraint

OVERSUPPLY = 3
"""A drafter may return up to this many times the nodes it was asked for: pruning then has something to promote."""


@dataclass(frozen=True, slots=True)
class DraftTree:
    """A tree of n proposed tokens below the root.

    Nodes are in topological order: a parent comes before its children. Siblings carry distinct tokens.

    Attributes:
        token_ids: int32[n].
        parents: int32[n], the index of the parent node, -1 for a child of the root.
        log_probs: float32[n], the joint log probability of the path that ends in the node, as the drafters
            estimate it; never larger than the parent's.
        sources: one name per node of the drafter that proposed it (several joined by "+"), for traces.
    """

    token_ids: NDArray[np.int32]
    parents: NDArray[np.int32]
    log_probs: NDArray[np.float32]
    sources: tuple[str, ...] = field(default=())

    @classmethod
    def empty(cls) -> DraftTree:
        """No proposal: verifying it is plain decoding."""
        return cls(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.float32))

    @classmethod
    def from_lists(
        cls,
        token_ids: Sequence[int],
        parents: Sequence[int],
        log_probs: Sequence[float],
        sources: Sequence[str] = (),
    ) -> DraftTree:
        """A tree of parallel sequences; raises ValueError where the order or the lengths are wrong."""
        if not len(token_ids) == len(parents) == len(log_probs):
            raise ValueError("token_ids, parents and log_probs differ in length")
        if any(not -1 <= parent < node for node, parent in enumerate(parents)):
            raise ValueError("a parent must be -1 or an earlier node")
        return cls(
            np.asarray(token_ids, dtype=np.int32),
            np.asarray(parents, dtype=np.int32),
            np.asarray(log_probs, dtype=np.float32),
            tuple(sources),
        )

    def __len__(self) -> int:
        return len(self.token_ids)

    def depths(self) -> NDArray[np.int32]:
        """int32[n]: 1 for a child of the root. The position of a node is prefix length + depth."""
        depths = np.empty(len(self), dtype=np.int32)
        for node, parent in enumerate(self.parents):
            depths[node] = 1 if parent < 0 else depths[parent] + 1
        return depths

    def children(self) -> list[dict[int, int]]:
        """For every row (0 = root): token id -> row of the child that carries it."""
        children: list[dict[int, int]] = [{} for _ in range(len(self) + 1)]
        for node, (token, parent) in enumerate(zip(self.token_ids.tolist(), self.parents.tolist(), strict=True)):
            children[parent + 1][token] = node + 1
        return children

    def row_parents(self) -> NDArray[np.int32]:
        """int32[n + 1] over rows: the parent row of each row, -1 for the root row."""
        return np.concatenate([np.array([-1], np.int32), self.parents + np.int32(1)])


def merge(trees: Sequence[DraftTree]) -> DraftTree:
    """One tree of several proposals: equal paths are joined.

    A node proposed more than once gets the probability that at least one of its proposers is right, taken as
    independent: 1 - prod(1 - p), of conditional probabilities, so that a child never exceeds its parent.
    """
    trees = [tree for tree in trees if len(tree)]
    if len(trees) <= 1:
        return trees[0] if trees else DraftTree.empty()
    index: dict[tuple[int, int], int] = {}
    tokens: list[int] = []
    parents: list[int] = []
    misses: list[float] = []  # log of prod(1 - conditional p)
    sources: list[list[str]] = []
    for tree in trees:
        merged_ids: list[int] = []
        joint = tree.log_probs.tolist()
        for node, (token, parent) in enumerate(zip(tree.token_ids.tolist(), tree.parents.tolist(), strict=True)):
            above = merged_ids[parent] if parent >= 0 else -1
            conditional = math.exp(min(0.0, joint[node] - (joint[parent] if parent >= 0 else 0.0)))
            miss = math.log1p(-min(conditional, 1.0 - 1e-9))
            merged = index.setdefault((above, token), len(tokens))
            if merged == len(tokens):
                tokens.append(token)
                parents.append(above)
                misses.append(0.0)
                sources.append([])
            misses[merged] += miss
            source = tree.sources[node] if tree.sources else ""
            if source and source not in sources[merged]:
                sources[merged].append(source)
            merged_ids.append(merged)
    log_probs: list[float] = []
    for parent, miss in zip(parents, misses, strict=True):
        conditional_log = math.log(max(-math.expm1(miss), 1e-12))
        log_probs.append(conditional_log + (log_probs[parent] if parent >= 0 else 0.0))
    return DraftTree.from_lists(tokens, parents, log_probs, ["+".join(names) for names in sources])


@dataclass(frozen=True, slots=True)
class Pruned:
    """A tree after pruning.

    Attributes:
        tree: the nodes that the target will see, most probable first.
        refused: (parent node in `tree` or -1, token) of every branch that the constraint cut.
    """

    tree: DraftTree
    refused: tuple[tuple[int, int], ...] = ()


def prune(tree: DraftTree, state: Constraint | None, nodes: int, end_token_ids: frozenset[int]) -> Pruned:
    """The `nodes` most probable nodes of `tree` that the constraint allows, best first.

    A forbidden node takes its subtree with it, and what it would have cost goes to the next best branches. Nothing
    is kept below an end-of-text token. Ties are broken by depth, so that a certain child (log p = 0, like its
    parent) never displaces the parent.
    """
    count = len(tree)
    below: list[list[int]] = [[] for _ in range(count + 1)]
    for node, parent in enumerate(tree.parents.tolist()):
        below[parent + 1].append(node)
    token_of, log_prob_of = tree.token_ids.tolist(), tree.log_probs.tolist()
    depth_of = tree.depths().tolist()
    frontier = [(-log_prob_of[node], depth_of[node], node) for node in below[0]]
    heapq.heapify(frontier)
    new_index: dict[int, int] = {-1: -1}
    states: dict[int, Constraint | None] = {-1: state}
    parents_of = tree.parents.tolist()
    chosen: list[int] = []
    refused: list[tuple[int, int]] = []
    while frontier and len(chosen) < nodes:
        _, _, node = heapq.heappop(frontier)
        token, parent = token_of[node], parents_of[node]
        before = states[parent]
        ends = token in end_token_ids
        if before is not None:
            after = before if ends and before.permits(token) else None if ends else before.advance(token)
            if after is None:
                refused.append((new_index[parent], token))
                continue
            states[node] = after
        else:
            states[node] = None
        new_index[node] = len(chosen)
        chosen.append(node)
        if not ends:
            for child in below[node + 1]:
                heapq.heappush(frontier, (-log_prob_of[child], depth_of[child], child))
    kept = DraftTree(
        tree.token_ids[chosen],
        np.asarray([new_index[parents_of[node]] for node in chosen], dtype=np.int32),
        tree.log_probs[chosen],
        tuple(tree.sources[node] for node in chosen) if tree.sources else (),
    )
    return Pruned(kept, tuple(refused))


def first_nodes(tree: DraftTree, count: int) -> DraftTree:
    """The first `count` nodes of a pruned tree, which are again a tree since parents come first."""
    return DraftTree(tree.token_ids[:count], tree.parents[:count], tree.log_probs[:count], tree.sources[:count])
