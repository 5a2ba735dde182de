"""E1, E2, E3: whatever is drafted, the tokens are those of plain decoding with the same constraint."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decoding.budget import FixedBudget
from decoding.draft_tree import DraftTree
from decoding.drafters.drafter import Drafter
from decoding.drafters.growing import GrowingDrafter
from decoding.drafters.guarded import GuardedDrafter
from decoding.drafters.lookup import LookupSource
from decoding.drafters.recycle import RecycleSource
from decoding.engine import Guide, Round, generate
from decoding.sampling import Sampling
from grammars.constraint import Constraint, Unconstrained
from tests.decoding.fakes import (
    END,
    VOCAB,
    DislikeConstraint,
    OracleDrafter,
    ParityConstraint,
    RaisingDrafter,
    ScriptedDrafter,
    tiny_model,
)

ENDS = frozenset({END})
GREEDY = Sampling()


def lookup() -> Drafter:
    return GrowingDrafter([LookupSource()])


def mixture() -> Drafter:
    return GrowingDrafter([LookupSource(), RecycleSource()])


def run(
    prompt: list[int],
    drafters: list[Drafter],
    *,
    sampling: Sampling = GREEDY,
    state: Constraint | None = None,
    enforce: bool = True,
    nodes: int = 16,
    count: int = 24,
    seed: int = 0,
) -> tuple[list[int], list[Round]]:
    """Generated tokens (cut to `count`) and the rounds they took."""
    model = tiny_model(seed)
    cache = model.new_cache(256)
    model.prefill(prompt[:-1], cache, lambda: False)
    tokens = list(prompt)
    rounds = []
    guide = Guide.enforcing(state) if enforce else Guide(None, state)
    for round_ in generate(model, cache, tokens, drafters, guide, sampling, FixedBudget(nodes), ENDS):
        rounds.append(round_)
        assert cache.token_ids == tokens[:-1]
        if len(tokens) - len(prompt) >= count:
            break
    return tokens[len(prompt) :][:count], rounds


prompts = st.lists(st.integers(1, VOCAB - 1), min_size=1, max_size=12)


@st.composite
def trees(draw: st.DrawFn) -> DraftTree:
    """Any tree: chains, stars, depth 1, width 16, end-of-text inside."""
    size = draw(st.integers(0, 20))
    ids: list[int] = []
    parents: list[int] = []
    taken: set[tuple[int, int]] = set()
    for node in range(size):
        parent, token = draw(st.integers(-1, node - 1)), draw(st.integers(0, VOCAB - 1))
        if len(ids) != node or (parent, token) in taken:
            break
        taken.add((parent, token))
        ids.append(token)
        parents.append(parent)
    log_probs: list[float] = []
    for parent in parents:
        above = log_probs[parent] if parent >= 0 else 0.0
        log_probs.append(above - draw(st.floats(0, 3)))
    return DraftTree.from_lists(ids, parents, log_probs)


samplings = st.one_of(
    st.just(Sampling()),
    st.builds(
        Sampling,
        temperature=st.sampled_from([0.3, 1.0, 1.7]),
        top_p=st.sampled_from([1.0, 0.9]),
        top_k=st.sampled_from([0, 5]),
        min_p=st.sampled_from([0.0, 0.05]),
        repetition_penalty=st.sampled_from([1.0, 1.3]),
        seed=st.integers(0, 2**32),
    ),
    st.builds(Sampling, repetition_penalty=st.just(1.2)),
)
constraints = st.sampled_from([None, ParityConstraint, DislikeConstraint])


@settings(max_examples=60, deadline=None)
@given(prompts, st.lists(trees(), max_size=4), samplings, constraints, st.sampled_from([1, 3, 16]), st.integers(0, 3))
def test_any_draft_gives_the_tokens_of_plain_decoding(prompt, drafts, sampling, kind, nodes, seed) -> None:
    state = kind(prompt[-1]) if kind else None
    plain, rounds = run(prompt, [], sampling=sampling, state=state, seed=seed)
    assert all(len(round_.token_ids) <= 1 for round_ in rounds)
    oracle = OracleDrafter(plain, len(prompt), 5, siblings=2)
    mixed: list[Drafter] = [ScriptedDrafter(drafts), mixture(), oracle]
    for drafters in ([mixed[0]], [lookup()], [GrowingDrafter([RecycleSource()])], mixed):
        drafted, _ = run(prompt, drafters, sampling=sampling, state=state, nodes=nodes, seed=seed)
        assert drafted == plain


@settings(max_examples=25, deadline=None)
@given(prompts, st.lists(trees(), max_size=3), samplings)
def test_draft_mode_gives_the_unconstrained_text(prompt, drafts, sampling) -> None:
    plain, _ = run(prompt, [], sampling=sampling)
    state = ParityConstraint(prompt[-1])
    drafted, _ = run(prompt, [ScriptedDrafter(drafts)], sampling=sampling, state=state, enforce=False)
    assert drafted == plain


@settings(max_examples=25, deadline=None)
@given(prompts, samplings, constraints)
def test_enforced_text_obeys(prompt, sampling, kind) -> None:
    state = ParityConstraint(prompt[-1])
    text, _ = run(prompt, [lookup()], sampling=sampling, state=state)
    for token in text:
        assert state.permits(token)
        if token == END:
            break
        state = state.advance(token)


def test_a_perfect_drafter_needs_few_passes() -> None:
    prompt = [3, 1, 4, 1, 5]
    plain, _ = run(prompt, [])
    drafted, rounds = run(prompt, [OracleDrafter(plain, len(prompt), depth=5)])
    assert drafted == plain
    assert len(rounds) == -(-len(plain) // 6)


def test_forbidden_branches_are_cut_before_the_target_and_their_budget_is_used() -> None:
    prompt = [3, 1, 4, 1, 5]  # 5 is odd: only tokens below 30 may follow
    tree = DraftTree.from_lists([40, 7, 41, 9], [-1, -1, 0, 1], [-0.1, -1.0, -0.2, -1.5])
    _, rounds = run(prompt, [ScriptedDrafter([tree])], state=ParityConstraint(5), nodes=2, count=1)
    assert rounds[0].pruned.tree.token_ids.tolist() == [7, 9]
    assert rounds[0].pruned.refused == ((-1, 40),)


def test_nothing_is_drafted_below_an_end_token() -> None:
    tree = DraftTree.from_lists([END, 7, 9], [-1, 0, 1], [-0.1, -0.2, -0.3])
    _, rounds = run([3, 1], [ScriptedDrafter([tree])], count=1)
    assert rounds[0].pruned.tree.token_ids.tolist() == [END]


class Nothing(ParityConstraint):
    """Allows nothing at all."""

    def permits(self, token: int) -> bool:
        return False


def test_a_constraint_that_allows_nothing_stops_the_text() -> None:
    text, rounds = run([3, 1], [], state=Nothing(1))
    assert text == []
    assert rounds[-1].verdict.exhausted


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(temperature=1.0, seed=4)])
def test_an_empty_mask_opens_the_constraint_and_says_so(sampling: Sampling) -> None:
    class Dies(ParityConstraint):
        """Allows nothing once the last token was below `limit`."""

        def permits(self, token: int) -> bool:
            return self.last >= 20 and super().permits(token)

        def advance(self, token: int):
            return Dies(token) if self.permits(token) and token != END else None

    prompt = [3, 1, 4, 22]
    texts = []
    for drafters in (
        [],
        [ScriptedDrafter([DraftTree.from_lists([7, 9, 23], [-1, 0, -1], [-0.1, -0.2, -0.3])]), lookup()],
    ):
        model = tiny_model()
        cache = model.new_cache(256)
        model.prefill(prompt[:-1], cache, lambda: False)
        tokens, guide = list(prompt), Guide.enforcing(Dies(22), Unconstrained())
        for _ in generate(model, cache, tokens, drafters, guide, sampling, FixedBudget(8), ENDS):
            assert cache.token_ids == tokens[:-1]
            if len(tokens) > 40:
                break
        assert guide.off_reason
        texts.append(tokens[:40])
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    "how", ["begin", "propose", "observe", "rubbish ids", "rubbish parents", "twins", "nan", "nothing"]
)
def test_a_faulty_drafter_changes_nothing(how: str) -> None:
    prompt = [3, 1, 4, 1, 5]
    plain, _ = run(prompt, [])
    drafted, _ = run(prompt, [GuardedDrafter(RaisingDrafter(how), VOCAB), lookup()])
    assert drafted == plain


def test_the_cache_after_keep_equals_a_fresh_prefill() -> None:
    model = tiny_model()
    prompt = [3, 1, 4, 1, 5, 9, 2, 6]
    cache = model.new_cache(64)
    model.prefill(prompt[:-1], cache, lambda: False)
    tree = DraftTree.from_lists([7, 8, 9, 10, 11, 12], [-1, -1, 0, 1, 2, 4], [-1.0] * 6)
    model.forward_tree(prompt[-1], tree, cache)
    cache.keep([0, 1, 3, 5, 6])
    assert cache.token_ids == [*prompt, 7, 9, 11, 12]
    fresh = model.new_cache(64)
    model.prefill([*prompt, 7, 9, 11, 12], fresh, lambda: False)
    for ours, theirs in zip(cache.cache.layers, fresh.cache.layers, strict=True):
        assert ours.length == theirs.length
        assert ours.keys[:, :, : ours.length].allclose(theirs.keys[:, :, : ours.length], atol=1e-12)
        assert ours.values[:, :, : ours.length].allclose(theirs.values[:, :, : ours.length], atol=1e-12)


def test_generation_stops_when_the_cache_is_full() -> None:
    model = tiny_model()
    cache = model.new_cache(20)
    model.prefill([1, 2, 3], cache, lambda: False)
    tokens = [1, 2, 3, 4]
    list(
        itertools.islice(
            generate(model, cache, tokens, [lookup()], Guide(), Sampling(), FixedBudget(16), frozenset()), 100
        )
    )
    assert len(cache.token_ids) == 20
    assert len(tokens) == 21
