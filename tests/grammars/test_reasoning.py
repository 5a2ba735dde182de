"""The thought grammar as a state machine: every walk is well formed, and a mask says what `permits` says."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grammars.constraint import Constraint, Unconstrained, bitmask_to_bool
from grammars.reasoning import PLAN_MARKS, TEXT_MARKS, ThoughtGrammar, ThoughtMarks
from grammars.vocabulary import Vocabulary

LETTERS = [bytes([byte]) for byte in range(256)]
WORDS = [
    b"<th", b"think", b"<think>", b"</", b"</think", b"</think>", b"</think>\n\n", b"</think> so", b"k>", b">\n", b">x",
    b"nk>\n\n", b"```", b"``", b"`python", b"### ", b"\n### ", b"###", b"Plan", b"Plan\n", b"Answer", b"Answer\n",
    b" Answer\n\n", b"\n\n", b" the", b"\n### Answer\n", b"Answer\nx", b"### Plan\n", b"a<", b"</think></think>",
]  # fmt: skip
SPECIAL = [b"<END>", b"<OPEN>", b"<CLOSE>", b"<OTHER>"]
END, OPEN, CLOSE, OTHER = range(len(LETTERS) + len(WORDS), len(LETTERS) + len(WORDS) + 4)
VOCABULARY = Vocabulary.from_tokens([*LETTERS, *WORDS, *SPECIAL], special=[OPEN, CLOSE, OTHER], end=[END])
TOKEN_MARKS = ThoughtMarks(open_token=OPEN, close_token=CLOSE)
KINDS = {"tokens": TOKEN_MARKS, "text": TEXT_MARKS, "plan": PLAN_MARKS}
GRAMMARS = {name: ThoughtGrammar(VOCABULARY, marks) for name, marks in KINDS.items()}
kinds = st.sampled_from(sorted(KINDS))


def spoken(tokens: list[int], marks: ThoughtMarks) -> bytes:
    """The text as readers see it, marks that are tokens included."""
    shown = {OPEN: b"<think>", CLOSE: b"</think>"} if marks.open_token is not None else {}
    return b"".join(shown.get(token) or VOCABULARY.tokens[token] for token in tokens)


def assert_well_formed(tokens: list[int], marks: ThoughtMarks, *, opened: bool = False) -> tuple[bytes, bytes]:
    """(thought, answer) of a text that must be one block and an answer."""
    text = spoken(tokens, marks)
    opening = marks.open.strip()
    if opened:
        text = marks.open + text
    if marks.close.startswith(b"\n"):  # headings count at the beginning of a line only
        text, opening = b"\n" + text, b"\n" + opening
    assert text.startswith(opening), text
    assert text.count(opening) == 1, text
    assert text.count(marks.close) == 1, text
    thought, answer = text[len(opening) :].split(marks.close)
    assert not any(unwanted in thought for unwanted in marks.unwanted)
    return thought, answer


def walk(state: Constraint, max_tokens: int, choose: random.Random, eager: float = 0.1) -> tuple[list[int], bool]:
    """Random permitted tokens, marks preferred, until the end or the limit; whether it ended by itself."""
    tokens: list[int] = []
    favourites = range(len(LETTERS), VOCABULARY.size)
    while len(tokens) < max_tokens:
        if choose.random() < eager and state.permits(END):
            return tokens, True
        pool = favourites if choose.random() < 0.7 else range(VOCABULARY.size)
        candidates = [token for token in pool if token != END and state.permits(token)]
        if not candidates:
            candidates = [token for token in range(VOCABULARY.size) if token != END and state.permits(token)]
        assert candidates, "a state that allows nothing"
        token = choose.choice(candidates)
        following = state.advance(token)
        assert following is not None
        tokens.append(token)
        state = following
    return tokens, False


@settings(max_examples=300, deadline=None)
@given(kinds, st.integers(1, 40), st.integers(1, 120), st.booleans(), st.randoms(use_true_random=False))
def test_every_walk_is_one_closed_block_and_an_answer(kind, budget, more, opened, choose) -> None:
    grammar = GRAMMARS[kind]
    least = grammar.opening_cost + grammar.closing_cost + 2
    max_tokens = least + more
    state = grammar.start(budget, max_tokens, Unconstrained(), opened=opened)
    tokens, _ = walk(state, max_tokens, choose)
    thought, _ = assert_well_formed(tokens, grammar.marks, opened=opened)
    assert len(thought) <= max(len(word) for word in WORDS) * (budget + 1) + len(grammar.marks.open)


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("max_tokens", [1, 2, 3, 5, 8, 13])
def test_a_limit_too_low_for_a_block_gives_an_answer_alone(kind: str, max_tokens: int) -> None:
    grammar = GRAMMARS[kind]
    tokens, _ = walk(grammar.start(512, max_tokens, Unconstrained()), max_tokens, random.Random(max_tokens))
    text = b"\n" + spoken(tokens, grammar.marks)
    if grammar.marks.open.strip() in text:
        assert_well_formed(tokens, grammar.marks)
    else:
        assert grammar.marks.close not in text


@settings(max_examples=100, deadline=None)
@given(kinds, st.integers(1, 12), st.integers(0, 60), st.randoms(use_true_random=False))
def test_the_mask_says_what_permits_and_advance_say(kind, budget, steps, choose) -> None:
    grammar = GRAMMARS[kind]
    state: Constraint = grammar.start(budget, 400, Unconstrained())
    for _ in range(steps):
        permitted = [token for token in range(VOCABULARY.size) if token != END and state.permits(token)]
        token = choose.choice([token for token in permitted if token >= len(LETTERS)] or permitted)
        following = state.advance(token)
        assert following is not None
        state = following
    mask = state.allowed()
    assert mask is not None
    allowed = bitmask_to_bool(mask, VOCABULARY.size)
    permitted = np.array([state.permits(token) for token in range(VOCABULARY.size)])
    assert (allowed == permitted).all()
    for token in range(VOCABULARY.size):
        if token != END:
            assert (state.advance(token) is not None) == bool(allowed[token])
            assert state.validate([token]) == int(allowed[token])


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_the_budget_is_kept_to_the_token(kind: str) -> None:
    grammar = GRAMMARS[kind]
    for budget in (1, 2, 7):
        state: Constraint = grammar.start(budget, 500, Unconstrained())
        tokens: list[int] = []
        while len(tokens) < grammar.opening_cost + budget:
            token = ord("a") if state.permits(ord("a")) else next(t for t in range(VOCABULARY.size) if state.permits(t))
            tokens.append(token)
            state = state.advance(token)
        assert spoken(tokens, grammar.marks).count(b"a") >= budget  # "Plan" has one of its own
        while not state.permits(ord("b")):  # closing is forced: one token is allowed at each step
            (token,) = [token for token in range(VOCABULARY.size) if state.permits(token)]
            tokens.append(token)
            state = state.advance(token)
        assert_well_formed(tokens, grammar.marks)


@pytest.mark.parametrize("size", range(1, len(TEXT_MARKS.close)))
def test_a_mark_that_is_half_written_when_the_budget_ends_is_finished(size: int) -> None:
    grammar = GRAMMARS["text"]
    state: Constraint = grammar.start(size, 500, Unconstrained(), opened=True)
    written = list(TEXT_MARKS.close[:size])
    for token in written:
        state = state.advance(token)
    while not state.permits(ord("b")):
        (token,) = [token for token in range(VOCABULARY.size) if state.permits(token)]
        written.append(token)
        state = state.advance(token)
    assert spoken(written, TEXT_MARKS) == TEXT_MARKS.close


def test_nothing_ends_before_something_was_answered() -> None:
    state: Constraint | None = GRAMMARS["tokens"].start(5, 100, Unconstrained())
    for token in (OPEN, ord("a"), CLOSE, ord("\n"), ord(" ")):
        assert state is not None
        assert not state.permits(END)
        state = state.advance(token)
    assert state is not None
    assert not state.permits(END)
    assert state.advance(ord("x")).permits(END)
