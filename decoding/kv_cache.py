"""The KV caches of one target: which one serves a prompt, and how much of it can be reused.

Knows token ids and the KVCache protocol. Must not know text, documents or how keys are stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from decoding.models.target import KVCache, TargetModel

_WORTH_KEEPING = 0.5
"""A cache is taken over (and cut) when a prompt shares at least this part of it; else another cache is used, so
that two documents do not destroy each other's prefix."""


def shared_prefix(left: Sequence[int], right: Sequence[int]) -> int:
    """How many leading tokens are the same."""
    count = 0
    for mine, theirs in zip(left, right, strict=False):
        if mine != theirs:
            break
        count += 1
    return count


@dataclass(slots=True)
class CachePool:
    """A few caches, least recently used last.

    Attributes:
        target: whose caches they are.
        capacity: tokens of each.
        most: how many caches at the most; this is the memory cap, since a cache has a fixed size.
    """

    target: TargetModel
    capacity: int
    most: int = 4
    caches: list[KVCache] = field(default_factory=list)

    def acquire(self, token_ids: Sequence[int]) -> tuple[KVCache, int]:
        """A cache that holds the longest reusable prefix of `token_ids` and nothing else, and that prefix' length.

        The caller prefills the rest.
        """
        best, reused = None, 0
        for cache in self.caches:
            shared = shared_prefix(cache.token_ids, token_ids)
            if shared > reused:
                best, reused = cache, shared
        if best is None or (reused < _WORTH_KEEPING * len(best.token_ids) and len(self.caches) < self.most):
            # All caches are busy with other texts: the least recently used one leaves.
            best, reused = self._new() if len(self.caches) < self.most else self.caches[-1], 0
        best.truncate(reused)
        self.caches = [best, *(cache for cache in self.caches if cache is not best)]
        return best, reused

    def _new(self) -> KVCache:
        cache = self.target.new_cache(self.capacity)
        self.caches.append(cache)
        return cache

    def clear(self) -> None:
        """Forget everything."""
        self.caches = []
