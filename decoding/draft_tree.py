"""DraftTree: proposed continuations that share prefixes, as flat arrays.

Knows arrays only. Must not know where a proposal came from, what a model is or what a constraint forbids.

Row numbering, used by every part of the engine: row 0 of a pass is the root (the last emitted token, whose keys
and values are computed in the same pass); row i + 1 is node i of the tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


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
