"""Token healing: exactly the texts that begin with what was taken back."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grammars.constraint import Constraint, Unconstrained, bit_is_set
from grammars.healing import HealingConstraint, worth_healing
from grammars.vocabulary import Vocabulary

TOKENS = [b"r", b"e", b"t", b"re", b"ret", b"return", b"retu", b"turn", b" ", b"return x", b"n", b"x", "é".encode()[:1]]
VOCABULARY = Vocabulary.from_tokens([*TOKENS, b"<end>"], end=[len(TOKENS)])


def after(state: Constraint | None, tokens: list[int]) -> Constraint | None:
    for token in tokens:
        state = state.advance(token) if state is not None else None
    return state


@settings(deadline=None, max_examples=300)
@given(
    st.binary(min_size=1, max_size=6).filter(bool) | st.sampled_from([b"ret", b"re", b"retur", b"return"]), st.data()
)
def test_a_sequence_is_allowed_iff_its_text_agrees_with_what_is_owed(owed: bytes, data: st.DataObject) -> None:
    tokens = data.draw(st.lists(st.integers(0, len(TOKENS)), max_size=6))
    state = after(HealingConstraint(VOCABULARY, owed, Unconstrained()), tokens)
    text = b""
    allowed = True
    for token in tokens:
        if len(text) < len(owed) and token == len(TOKENS):
            allowed = False  # the end is a special token: it spells nothing
            break
        text += VOCABULARY.tokens[token]
    allowed = allowed and (text.startswith(owed) or owed.startswith(text))
    assert (state is not None) == allowed
    start = HealingConstraint(VOCABULARY, owed, Unconstrained())
    assert (start.validate(tokens) == len(tokens)) == allowed


def test_mask_and_permits_agree() -> None:
    state = HealingConstraint(VOCABULARY, b"ret", Unconstrained())
    mask = state.allowed()
    for token in range(VOCABULARY.size):
        assert bit_is_set(mask, token) == state.permits(token)
    assert {TOKENS[t] for t in range(len(TOKENS)) if state.permits(t)} == {
        b"r", b"re", b"ret", b"retu", b"return", b"return x",
    }  # fmt: skip


def test_the_inner_constraint_is_asked_too() -> None:
    state = HealingConstraint(VOCABULARY, b"re", HealingConstraint(VOCABULARY, b"retu", Unconstrained()))
    assert state.permits(TOKENS.index(b"return"))
    assert state.permits(TOKENS.index(b"ret"))
    assert not after(state, [TOKENS.index(b"re")]).permits(TOKENS.index(b"x"))


@pytest.mark.parametrize(("text", "worth"), [(b"re", True), (b"return x", False), (b"", False), (b"x", False)])
def test_worth_healing_only_where_another_token_begins_so(text: bytes, worth: bool) -> None:
    assert worth_healing(VOCABULARY, text) is worth
