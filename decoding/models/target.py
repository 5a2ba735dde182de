"""The TargetModel and KVCache protocols: what the engine needs of a model runtime.

Knows shapes and meanings. Must not know which runtime answers, what a constraint is or where text comes from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from decoding.draft_tree import DraftTree

Cancelled = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class TreeLogits:
    """The target's answer to one pass over root + tree (n + 1 rows, row 0 = root), `ready` of which were there before.

    Attributes:
        logits: float32[n + 1 - ready, V], possibly a view of a buffer that the next pass overwrites. Ids beyond the
            tokenizer are -inf.
        top_ids: int32[n + 1 - ready, k], the k largest logits of each row, best first; ties go to the lower id.
        top_logits: float32[n + 1 - ready, k], their logits.
    """

    logits: torch.Tensor
    top_ids: torch.Tensor
    top_logits: torch.Tensor


class KVCache(Protocol):
    """Keys and values of one token sequence, plus the rows of the last pass until `keep` decides on them."""

    @property
    def token_ids(self) -> Sequence[int]:
        """The tokens whose keys and values are held, in order. Rows of a pass count only once they are kept."""

    @property
    def capacity(self) -> int:
        """How many tokens fit, the rows of a pass included."""

    def keep(self, path: Sequence[int]) -> None:
        """Make the rows `path` of the last pass (ascending depth, beginning with row 0 = root) contiguous after
        the prefix; every other row is dropped."""

    def truncate(self, length: int) -> None:
        """Forget everything from token `length` on."""


class TargetModel(Protocol):
    """A causal language model that can score a tree of continuations in one pass."""

    @property
    def vocab_size(self) -> int:
        """V: columns of the logits (at least the tokenizer's ids, padding rows included)."""

    @property
    def runtime(self) -> str:
        """What runs it, for people: for example "native int8 avx512-vnni" or "transformers bfloat16 cpu"."""

    @property
    def max_context(self) -> int:
        """The longest sequence the model was made for."""

    @property
    def most_rows(self) -> int:
        """Rows of a tree at the most, those that are ready included."""

    def new_cache(self, capacity: int) -> KVCache:
        """An empty cache for `capacity` tokens."""

    def prefill(self, token_ids: Sequence[int], cache: KVCache, cancelled: Cancelled) -> None:
        """Append `token_ids` to the cache, in chunks; raises decoding.errors.Cancelled between chunks once
        `cancelled()` is true (chunks done by then stay in the cache)."""

    def forward_tree(self, root: int, tree: DraftTree, cache: KVCache, top_k: int = 8, ready: int = 0) -> TreeLogits:
        """Score root + tree in one pass. A row's position is len(cache.token_ids) + depth, and it sees the cache
        and its own ancestors only. The rows wait in the cache for `keep`.

        The first `ready` rows are those of the last pass, which wait there still: only the others are computed and
        scored, so that a tree can grow from pass to pass. Raises ValueError where they are others."""
