"""The second try of a word: only names that exist, not the first try again, then whatever the rest allows."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grammars.constraint import Unconstrained, bit_is_set
from grammars.known_word import KnownWordFirst
from grammars.scope_constraint import ScopeConstraint
from grammars.vocabulary import Vocabulary

_TEXTS = ["al", "alpha", "bet", " alpha", " bet", "pha", "a", "b", "'", '"', "(", ",", "(al", " ", "é", "1", ")", "a)"]
_WORDS = [*_TEXTS, "alpha(", "alpha.x", "beta", "x=", "(beta", "\n", "for", "None", "", "f'", "_", "<end>"]
_VOCABULARY = Vocabulary.from_tokens([text.encode() for text in _WORDS], special=[], end=[len(_WORDS) - 1])
_SCOPES = ScopeConstraint(_VOCABULARY)
_IDS = {text: token for token, text in enumerate(_WORDS)}


def opened(before: str, owed: str = "", never: str = "") -> KnownWordFirst:
    state = _SCOPES.open_word(["alpha", "alpine"], before.encode(), begun=before.endswith("al"))
    return KnownWordFirst(state, Unconstrained(), len(owed), (owed + never).encode())


@pytest.mark.parametrize(
    ("before", "token", "allowed"),
    [
        ("f(", "alpha", True),
        ("f(", "al", True),
        ("f(", "bet", False),
        ("f(", "x=", False),  # a keyword argument is not what was meant
        ("x = [", "bet", False),  # nor a variable of a comprehension
        ("", "bet", False),
        ("x = ", "beta", False),
        ("if ", "beta", False),
        ("f(", "alpha(", True),
        ("f(", "a)", False),
        ("f(", "'", True),
        ("f(", "1", True),
        ("f(", "é", False),  # free elsewhere
        ("f(", "None", True),
        ("f(", "<end>", False),
        ("x.", "beta", True),  # no name is read here
        ("f(al", "pha", True),
        ("f(al", "a", False),
        ("f(al", ")", False),
    ],
)
def test_what_may_stand_there(before: str, token: str, allowed: bool) -> None:
    state = opened(before)
    assert state.permits(_IDS[token]) is allowed
    assert bit_is_set(state.allowed(), _IDS[token]) is allowed


def test_the_first_try_is_not_written_again_though_names_begin_with_it() -> None:
    state = opened("f(", never="al")
    assert not state.permits(_IDS["al"])
    assert not state.permits(_IDS["alpha"])
    after = state.advance(_IDS["a"])
    assert after is not None
    assert not after.permits(_IDS["a"])
    assert not after.permits(_WORDS.index("pha"))


def test_behind_the_word_and_its_sign_only_the_rest_counts() -> None:
    rest = Unconstrained()
    state = KnownWordFirst(_SCOPES.open_word(["alpha"], b"f("), rest, 0, b"")
    assert state.advance(_IDS["'"]) is rest
    assert state.advance(_IDS["alpha("]) is rest
    word = state.advance(_IDS["alpha"])
    assert word is not rest
    assert word is not None
    assert word.advance(_IDS[","]) is rest


def test_what_is_owed_comes_before_the_word() -> None:
    state = opened("alpha", owed="(", never="beta")
    assert not state.permits(_IDS["(beta"])
    after = state.advance(_IDS["("])
    assert isinstance(after, KnownWordFirst)
    assert not after.permits(_IDS["beta"])
    assert not after.permits(_IDS["bet"])
    assert after.permits(_IDS["alpha"])


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(["f(", "[", "", "x = ", "f(al", "if ", "'", "a.", "f(x="]),
    st.sampled_from(["", "al", "beta", "b"]),
    st.lists(st.integers(0, len(_WORDS) - 2), max_size=3),
)
def test_masks_are_steps(before: str, never: str, tokens: list[int]) -> None:
    state: object = opened(before, never=never)
    for token in tokens:
        if not isinstance(state, KnownWordFirst):
            return
        mask = state.allowed()
        for other in range(len(_WORDS)):
            assert bit_is_set(mask, other) == state.permits(other) == (state.validate([other]) == 1), _WORDS[other]
        state = state.advance(token)
