"""Sampling against exact probabilities, with and without drafts, with and without a mask."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from decoding.budget import FixedBudget
from decoding.draft_tree import DraftTree
from decoding.engine import Guide, generate
from decoding.sampling import Sampling, best_tokens, choose, draw, support
from grammars.constraint import Bitmask, bitmask_of, bitmask_to_bool
from tests.decoding.fakes import END, VOCAB, DislikeConstraint, ParityConstraint, ScriptedDrafter, tiny_model


def exact(logits: np.ndarray, sampling: Sampling, state: ParityConstraint | None = None) -> np.ndarray:
    """float64[V]: the distribution by definition, in plain steps."""
    scores = logits.astype(np.float64).copy()
    if state is not None:
        scores[~bitmask_to_bool(state.allowed(), len(scores))] = -np.inf
        if (penalty := state.penalty()) is not None:
            scores[penalty[0]] += penalty[1]
    weights = np.exp((scores - scores.max()) / sampling.temperature)
    order = np.argsort(-weights, kind="stable")
    keep = order[: sampling.top_k] if sampling.top_k else order
    mass = np.cumsum(weights[keep]) / weights[keep].sum()
    keep = keep[: int(np.searchsorted(mass, sampling.top_p)) + 1]
    keep = keep[weights[keep] >= sampling.min_p * weights.max()]
    probabilities = np.zeros(len(scores))
    probabilities[keep] = weights[keep] / weights[keep].sum()
    return probabilities


samplings = st.builds(
    Sampling,
    temperature=st.sampled_from([0.2, 0.7, 1.0, 2.0]),
    top_p=st.sampled_from([1.0, 0.95, 0.5]),
    top_k=st.sampled_from([0, 1, 7, 400]),
    min_p=st.sampled_from([0.0, 0.05, 0.4]),
)


@settings(max_examples=150, deadline=None)
@given(samplings, st.integers(0, 2**31), st.sampled_from([5, 300, 5000]), st.sampled_from([0.3, 3.0, 15.0]))
def test_the_support_is_the_definition(sampling: Sampling, seed: int, size: int, spread: float) -> None:
    logits = (np.random.default_rng(seed).normal(size=size) * spread).astype(np.float32)
    ids, weights = support(logits, sampling)
    found = np.zeros(size)
    found[slice(None) if ids is None else ids] = weights
    expected = exact(logits, sampling)
    # A token at the very edge of top-p or min-p may fall on either side: compare mass, not membership.
    assert np.abs(found / found.sum() - expected).sum() < 2e-3 + 2 * expected[expected > 0].min()


@given(st.lists(st.floats(0, 1, width=32), min_size=1, max_size=1500).filter(any), st.floats(0, 1, exclude_max=True))
def test_a_draw_is_the_inverse_of_the_running_sum(weights: list[float], uniform: float) -> None:
    array = np.asarray(weights, dtype=np.float32)
    found = draw(array, uniform)
    cumulative = np.cumsum(array, dtype=np.float64)
    assert array[found] > 0
    assert cumulative[found] >= uniform * cumulative[-1] * (1 - 1e-9)
    assert (cumulative[found] - array[found]) <= uniform * cumulative[-1] * (1 + 1e-9) + 1e-12


def test_the_highest_number_draws_the_last_weight() -> None:
    weights = np.zeros(1030, dtype=np.float32)
    weights[[3, 700]] = 1.0
    assert draw(weights, np.nextafter(1.0, 0.0)) == 700
    assert draw(weights, 0.0) == 3
    assert draw(weights, 0.5) == 700


def total_variation(counts: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(counts / counts.sum() - expected).sum() / 2)


def noise(expected: np.ndarray, draws: int) -> float:
    """The total variation that so many draws from `expected` itself have on average."""
    return float(np.sqrt(2 * expected * (1 - expected) / (np.pi * draws)).sum() / 2)


DRAWS = 6000


@pytest.mark.parametrize("state", [None, ParityConstraint(5), DislikeConstraint(5)])
@pytest.mark.parametrize(
    "sampling",
    [Sampling(temperature=0.5), Sampling(temperature=1.0), Sampling(temperature=1.0, top_p=0.8, min_p=0.02)],
)
def test_choices_are_distributed_as_they_should_be(sampling: Sampling, state: ParityConstraint | None) -> None:
    logits = torch.from_numpy(np.random.default_rng(3).normal(size=VOCAB).astype(np.float32) * 2)
    best = logits.topk(8)
    counts = np.zeros(VOCAB)
    for seed in range(DRAWS):
        seeded = Sampling(sampling.temperature, sampling.top_p, sampling.top_k, sampling.min_p, seed=seed)
        token = choose(logits, best.indices.tolist(), best.values.tolist(), state, seeded, [4, 5])
        assert token is not None
        counts[token] += 1
    expected = exact(logits.numpy(), sampling, state)
    assert total_variation(counts, expected) < 1.5 * noise(expected, DRAWS) + 0.004


def continuations(sampling: Sampling, drafts: DraftTree, state: ParityConstraint | None, count: int) -> np.ndarray:
    """How often each pair of next tokens was generated, float[V, V]."""
    model, prompt = tiny_model(), [3, 1, 5]
    cache = model.new_cache(64)
    model.prefill(prompt[:-1], cache, lambda: False)
    counts = np.zeros((VOCAB, VOCAB))
    for seed in range(count):
        cache.truncate(len(prompt) - 1)
        tokens = list(prompt)
        seeded = Sampling(sampling.temperature, sampling.top_p, seed=seed)
        drafters = [ScriptedDrafter([drafts])]
        for _ in generate(
            model, cache, tokens, drafters, Guide.enforcing(state), seeded, FixedBudget(8), frozenset({END})
        ):
            if len(tokens) >= len(prompt) + 2 or tokens[-1] == END:
                break
        first, second = [*tokens[len(prompt) :], END][:2]
        counts[first, second] += 1
    return counts


@pytest.mark.parametrize("state", [None, ParityConstraint(5)])
@pytest.mark.parametrize("temperature", [0.6, 1.0])
def test_drafted_text_has_the_exact_distribution(temperature: float, state: ParityConstraint | None) -> None:
    """Two tokens over a tree that covers both of them partly; compared with the model's own probabilities."""
    sampling = Sampling(temperature=temperature)
    model, prompt = tiny_model(), [3, 1, 5]
    cache = model.new_cache(64)
    model.prefill(prompt[:-1], cache, lambda: False)
    logits = model.forward_tree(prompt[-1], DraftTree.empty(), cache).logits[0].numpy().copy()
    first = exact(logits, sampling, state)
    likely = np.argsort(-first)[:3].tolist()
    drafts = DraftTree.from_lists([*likely, 20, 21], [-1, -1, -1, 0, 1], [-0.5, -0.6, -0.7, -0.8, -0.9])
    count = 1200
    counts = continuations(sampling, drafts, state, count)
    assert total_variation(counts.sum(axis=1), first) < 1.5 * noise(first, count) + 0.004
    token = likely[0]
    if token != END:
        cache.truncate(len(prompt) - 1)
        tree = DraftTree.from_lists([token], [-1], [0.0])
        after = model.forward_tree(prompt[-1], tree, cache).logits[1].numpy().copy()
        second = exact(after, sampling, state.advance(token) if state else None)
        # Chi-squared over outcomes that are expected at least five times, the rest together.
        observed, expected = counts[token], second * counts[token].sum()
        big = expected >= 5
        statistic = ((observed[big] - expected[big]) ** 2 / expected[big]).sum()
        rest = expected[~big].sum()
        if rest > 1:
            statistic += (observed[~big].sum() - rest) ** 2 / rest
        freedom = int(big.sum())
        assert statistic < freedom + 4 * np.sqrt(2 * freedom) + 4


def test_one_number_a_position_whatever_was_drawn_before() -> None:
    sampling = Sampling(temperature=1.0, seed=7)
    numbers = [sampling.uniform(position) for position in range(100)]
    assert [sampling.uniform(position) for position in reversed(range(100))] == numbers[::-1]
    assert len(set(numbers)) == 100
    assert Sampling(temperature=1.0, seed=7, alternative=1).uniform(3) != numbers[3]
    assert Sampling(temperature=1.0, seed=-1).uniform(3) != numbers[3]


def test_nothing_allowed_is_nothing_chosen() -> None:
    class Nothing(ParityConstraint):
        def permits(self, token: int) -> bool:
            return False

    logits = torch.zeros(VOCAB)
    for sampling in (Sampling(), Sampling(temperature=1.0), Sampling(temperature=1.0, top_p=0.5, top_k=3)):
        assert choose(logits, [0], [0.0], Nothing(1), sampling, [1]) is None
    assert best_tokens(logits, Nothing(1), 3) == []


@dataclass(frozen=True)
class TableConstraint(ParityConstraint):
    """Permits and dislikes what it is told to, of a vocabulary of any size; counts how often its mask was asked for."""

    last: int = 0
    permitted: frozenset[int] = frozenset()
    disliked: dict[int, float] = field(default_factory=dict)
    size: int = VOCAB
    asked: list[str] = field(default_factory=list)

    def permits(self, token: int) -> bool:
        return token in self.permitted

    def allowed(self) -> Bitmask:
        self.asked.append("mask")
        return bitmask_of(sorted(self.permitted), self.size)

    def penalty(self) -> tuple[np.ndarray, np.ndarray]:
        return np.array(list(self.disliked), dtype=np.int32), np.array(list(self.disliked.values()), dtype=np.float32)

    def penalty_of(self, token: int) -> float:
        return self.disliked.get(token, 0.0)


def best_of(row: torch.Tensor, count: int) -> tuple[list[int], list[float]]:
    """As the kernels rank: ties go to the lower id."""
    ids = np.argsort(-row.numpy(), kind="stable")[:count].tolist()
    return ids, row[ids].tolist()


@pytest.mark.parametrize(("rank", "asked"), [(0, 0), (7, 0), (8, 0), (200, 0), (400, 1), (699, 1)])
def test_greedy_asks_the_mask_only_when_many_are_refused(rank: int, asked: int) -> None:
    row = torch.arange(700, 0, -1, dtype=torch.float32)
    state = TableConstraint(permitted=frozenset({rank, 699}), size=700)
    assert choose(row, *best_of(row, 8), state, Sampling(), [1]) == rank
    assert len(state.asked) == asked


@settings(max_examples=200, deadline=None)
@given(
    st.integers(0, 2**32),
    st.integers(2, 600),
    st.integers(1, 9),
    st.sampled_from([1, 5, 100]),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_greedy_is_the_best_of_all(
    seed: int, size: int, count: int, levels: int, permitted: float, disliked: float
) -> None:
    chance = np.random.default_rng(seed)
    row = torch.from_numpy(chance.integers(0, levels, size).astype(np.float32))  # with ties
    allowed = frozenset(np.flatnonzero(chance.random(size) < permitted).tolist())
    lowered = {token: -float(chance.integers(1, 5)) for token in np.flatnonzero(chance.random(size) < disliked)}
    state = TableConstraint(permitted=allowed, disliked=lowered, size=size)
    scores = {token: float(row[token]) + lowered.get(token, 0.0) for token in sorted(allowed)}
    expected = max(scores, key=scores.__getitem__) if scores else None
    assert choose(row, *best_of(row, count), state, Sampling(), [1]) == expected


def test_a_row_is_never_written_to() -> None:
    logits = torch.randn(VOCAB)
    before = logits.clone()
    for sampling in (Sampling(temperature=1.0), Sampling(repetition_penalty=1.5), Sampling(temperature=1.0, top_k=3)):
        for state in (None, DislikeConstraint(5)):
            choose(logits, logits.topk(2).indices.tolist(), logits.topk(2).values.tolist(), state, sampling, [4, 5])
    assert torch.equal(logits, before)
