"""The lookup source: an index that is cut and continued, and probabilities from longest agreements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decoding.draft_tree import DraftTree
from decoding.drafters.drafter import Observation
from decoding.drafters.growing import GrowingDrafter
from decoding.drafters.lookup import LookupSource, SuffixIndex
from decoding.verify import Verdict
from grammars.constraint import Constraint, validate_by_advancing
from tests.decoding.fakes import no_logits

texts = st.lists(st.integers(0, 5), max_size=40)


@given(texts, st.lists(texts, max_size=4))
def test_an_index_that_was_changed_equals_a_fresh_one(first: list[int], later: list[list[int]]) -> None:
    index = SuffixIndex()
    for tokens in [first, *later]:
        index.become(tokens)
        fresh = SuffixIndex()
        fresh.extend(tokens)
        assert index.tokens == fresh.tokens == tokens
        for before in range(-1, 6):
            for token in range(6):
                assert index.places_after(before, token, 100) == fresh.places_after(before, token, 100)


@given(texts.filter(lambda text: len(text) > 1))
def test_places_follow_what_was_asked(text: list[int]) -> None:
    index = SuffixIndex()
    index.extend(text)
    pair = tuple(text[-2:])
    places = index.places_after(*pair, 100)
    pairs = [i for i in range(2, len(text)) if tuple(text[i - 2 : i]) == pair]
    assert places == (pairs or [i for i in range(1, len(text)) if text[i - 1] == pair[1]])
    for place in places:
        agreed = index.agreement(place, text)
        assert text[place - agreed : place] == text[len(text) - agreed :]
        assert agreed in (16, place, len(text)) or text[place - agreed - 1] != text[-agreed - 1]


def successors(source: LookupSource, tokens: list[int]) -> dict[int, float]:
    source.begin(tokens)
    return dict(source.successors(source.root(tokens)))


def test_the_longest_agreement_gets_the_most() -> None:
    found = successors(LookupSource(), [1, 2, 3, 7, 9, 2, 3, 8, 1, 2, 3])
    assert found[7] > found[8] > 0
    assert sum(found.values()) <= 1.0


@given(texts.filter(bool))
def test_probabilities_never_sum_to_more_than_one(text: list[int]) -> None:
    assert sum(successors(LookupSource(), text).values()) <= 1.0 + 1e-9


def test_other_documents_are_looked_up_and_forgotten() -> None:
    source = LookupSource()
    assert successors(source, [1, 2]) == {}
    source.remember("other", [5, 1, 2, 6, 7])
    assert set(successors(source, [1, 2])) == {6}
    source.remember("other", [5, 1, 2, 8, 7])
    assert set(successors(source, [1, 2])) == {8}
    source.forget("other")
    source.forget("never seen")
    assert successors(source, [1, 2]) == {}


def test_what_is_remembered_is_bounded_and_the_oldest_leaves() -> None:
    source = LookupSource(corpus_tokens=10)
    for number in range(5):
        source.remember(str(number), [number, 20 + number, 30 + number, 40])
    assert successors(source, [0, 20]) == {}
    assert set(successors(source, [4, 24])) == {34}
    source.remember("huge", [1, 2, 3] * 50)
    assert sum(len(index.tokens) for index in source._documents.values()) <= 10


def test_after_a_surprise_the_pair_is_looked_up() -> None:
    source = LookupSource()
    tokens = [1, 2, 3, 4, 2, 9, 8, 1, 2]
    source.begin(tokens)
    root = source.root(tokens)
    assert set(dict(source.successors(source.after(source.after(root, 9), 8)))) == {1}
    assert source.successors(source.after(root, 77)) == []


def test_rates_follow_what_happens() -> None:
    source = LookupSource()
    drafter = GrowingDrafter([source])
    tokens = [1, 2, 3] * 4
    drafter.begin(tokens)
    before = dict(source.successors(source.root(tokens)))[1]
    for _ in range(30):
        tree = drafter.propose(tokens, None, 4)
        verdict = Verdict((0,), (50,), None)  # always something else
        drafter.observe(Observation(tokens[-1], tokens[-2], tree, no_logits(len(tree) + 1), verdict))
    assert dict(source.successors(source.root(tokens)))[1] < before / 2


def test_a_tree_of_a_repeated_text_is_one_long_path() -> None:
    drafter = GrowingDrafter([LookupSource()])
    tokens = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1, 2, 3]
    drafter.begin(tokens)
    tree = drafter.propose(tokens, None, 5)
    assert tree.token_ids.tolist()[:5] == [4, 5, 6, 7, 8]
    assert tree.parents.tolist()[:5] == [-1, 0, 1, 2, 3]
    assert set(tree.sources) == {"lookup"}


def test_nothing_to_look_up_is_an_empty_tree() -> None:
    drafter = GrowingDrafter([LookupSource()])
    for tokens in ([1], [1, 2, 3]):
        drafter.begin(tokens)
        assert len(drafter.propose(tokens, None, 5)) == 0


@dataclass(frozen=True)
class Only:
    """Allows some tokens, dislikes others, everywhere."""

    allowed_tokens: frozenset[int]
    disliked: frozenset[int] = frozenset()

    def advance(self, token: int) -> Only | None:
        return self if token in self.allowed_tokens else None

    def permits(self, token: int) -> bool:
        return token in self.allowed_tokens

    def validate(self, tokens: Sequence[int]) -> int:
        return validate_by_advancing(self, tokens)

    def allowed(self) -> None:
        raise AssertionError("growing a tree needs no mask")

    def penalty(self) -> None:
        raise AssertionError("growing a tree needs no table of preferences")

    def penalty_of(self, token: int) -> float:
        return -6.0 if token in self.disliked else 0.0


def grown(state: Constraint | None, budget: int, ends: frozenset[int] = frozenset()) -> DraftTree:
    """A tree from a text in which 10, 11 … follow (1, 2), and each is followed by 3, 4."""
    drafter = GrowingDrafter([LookupSource()], ends)
    tokens = [token for number in range(8) for token in (1, 2, 10 + number, 3, 4)] + [1, 2]
    drafter.begin(tokens)
    return drafter.propose(tokens, state, budget)


@pytest.mark.parametrize("budget", [1, 2, 7])
def test_a_refused_branch_costs_no_node_and_gives_its_probability_to_the_others(budget: int) -> None:
    free = grown(None, budget)
    guided = grown(Only(frozenset({11, 3, 4, 1, 2})), budget)
    assert free.token_ids.tolist()[0] != 11
    assert len(free) == budget
    assert len(guided) == min(budget, 5)  # what follows the whole of the text is nowhere to be seen
    assert set(guided.token_ids.tolist()) <= {11, 3, 4, 1, 2}
    assert guided.token_ids.tolist()[:3] == [11, 3, 4][:budget]
    several = grown(None, 30)
    assert guided.log_probs[0] > several.log_probs[several.token_ids.tolist().index(11)]


def test_a_disliked_branch_comes_later() -> None:
    every = frozenset(range(30))
    best = grown(Only(every), 12).token_ids.tolist()[0]
    later = grown(Only(every, frozenset({best})), 12)
    assert later.token_ids.tolist()[0] != best
    assert np.all(np.diff(later.log_probs) <= 1e-6)


def test_nothing_grows_below_an_end_and_an_end_may_be_refused() -> None:
    tree = grown(Only(frozenset({17, 3, 4})), 6, frozenset({17}))
    assert tree.token_ids.tolist() == [17]
    assert 17 not in grown(Only(frozenset({16, 3, 4})), 6, frozenset({17})).token_ids.tolist()


def test_another_text_counts_for_less_than_the_text_itself() -> None:
    source = LookupSource()
    source.remember("other", [5, 1, 2, 6])
    source.begin([9, 1, 2, 7, 1, 2])
    found = successors(source, [9, 1, 2, 7, 1, 2])
    assert found[7] > found[6] > 0


def test_a_place_that_the_text_itself_has_is_no_second_witness() -> None:
    tokens = [3, 1, 2, 7, 8, 3, 1, 2]
    alone, beside_itself = LookupSource(), LookupSource()
    beside_itself.remember("the same", tokens)
    assert successors(beside_itself, tokens) == successors(alone, tokens)
