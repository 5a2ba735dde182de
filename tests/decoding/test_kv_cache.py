"""The cache pool: reuse, and documents that do not destroy each other's prefix."""

from __future__ import annotations

import pytest

from decoding.errors import Cancelled
from decoding.kv_cache import CachePool, shared_prefix
from tests.decoding.fakes import tiny_model


def fill(pool: CachePool, tokens: list[int]) -> int:
    cache, reused = pool.acquire(tokens)
    pool.target.prefill(tokens[reused:], cache, lambda: False)
    return reused


def test_shared_prefix() -> None:
    assert shared_prefix([1, 2, 3], [1, 2, 4]) == 2
    assert shared_prefix([], [1]) == 0


def test_two_documents_keep_their_prefixes() -> None:
    pool = CachePool(tiny_model(), 128, most=2)
    one, two = list(range(1, 40)), list(range(40, 1, -1))
    assert fill(pool, one) == 0
    assert fill(pool, two) == 0
    assert fill(pool, [*one, 5]) == len(one)
    assert fill(pool, [*two, 5]) == len(two)


def test_the_least_recently_used_leaves() -> None:
    pool = CachePool(tiny_model(), 64, most=2)
    first, second, third = ([seed] * 20 for seed in (1, 2, 3))
    for tokens in (first, second, third):
        fill(pool, tokens)
    assert len(pool.caches) == 2
    assert fill(pool, second) == 20
    assert fill(pool, first) == 0


def test_a_shorter_prompt_of_the_same_text_reuses_it() -> None:
    pool = CachePool(tiny_model(), 64, most=2)
    fill(pool, [1, 2, 3, 4, 5, 6])
    cache, reused = pool.acquire([1, 2, 3, 4])
    assert reused == 4
    assert list(cache.token_ids) == [1, 2, 3, 4]


def test_a_cancelled_prefill_keeps_what_it_did() -> None:
    pool = CachePool(tiny_model(), 512, most=1)
    tokens = [1 + n % 40 for n in range(400)]
    cache, _ = pool.acquire(tokens)
    looks = iter([False, False, True])
    with pytest.raises(Cancelled):
        pool.target.prefill(tokens, cache, lambda: next(looks))
    assert 0 < len(cache.token_ids) < 400
    assert pool.acquire(tokens)[1] == len(cache.token_ids)
