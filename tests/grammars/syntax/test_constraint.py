"""PythonConstraint over a small vocabulary: opening, stopping, and the protocol."""

from __future__ import annotations

import numpy as np
import pytest

from grammars.constraint import bit_is_set, bitmask_to_bool
from grammars.python_constraint import PythonConstraint, PythonState
from grammars.vocabulary import Vocabulary

TOKENS = [bytes((byte,)) for byte in range(256)]
TOKENS += [b"return", b" return", b"self", b"))", b"):", b"\n    ", b"pass", b"x", b"<end>", b"<mask>"]
END, SPECIAL = len(TOKENS) - 2, len(TOKENS) - 1
VOCABULARY = Vocabulary.from_tokens(TOKENS, special=[SPECIAL], end=[END])


@pytest.fixture(scope="module")
def constraint() -> PythonConstraint:
    return PythonConstraint(VOCABULARY)


def opened(constraint: PythonConstraint, text: str, *, suffix: bool = True) -> PythonState:
    """The state at the "|" of a document."""
    before, _, after = text.partition("|")
    return constraint.open((before + after).encode(), len(before.encode()), suffix=suffix)


def write(state: PythonState, text: str) -> PythonState | None:
    """The state after `text`, byte by byte."""
    for byte in text.encode():
        following = state.advance(byte)
        if following is None:
            return None
        state = following
    return state


ACCEPTED = [
    ("def f():\n    |", "return 1"),
    ("class A:\n    def f(self):\n        x = 1\n\n    |", "def g(self): pass"),
    ("if a:\n    b\n|", "else:\n    c"),
    ("if a:\n    b\nel|", "if c: d"),
    ("try:\n    a\nexcept B:\n    c\n|", "finally:\n    d"),
    ("while a:\n    if b:\n        |", "break"),
    ("@dec\n|", "class A: pass"),
    ("@dec\nasync def f():\n    |", "await x"),
    ('"""doc |', 'string"""'),
    ("# a comment |", "(\nx = 1"),
    ("x = [\n    1,\n    |", "2]\n"),
    ("match x:\n    case 1:\n        pass\n    |", "case 2: pass"),
    ("x = f'{a|", "!r}'"),
    ("def f():\n\tif x:\n\t\ty\n\t|", "z"),
    ("def f(:\n    ((\ndef g():\n    |", "return 1"),  # broken code above
    ("x = = 1\ny = |", "2"),
    ("class A\n    def f(self):\n        for x in y:\n            |", "continue"),
    ("if x:\n    y = (1,\n\ndef f():\n    |", "return 2"),
    ("else:\n    |", "return"),
]
REFUSED = [
    ("def f():\n    |", ")"),
    ("class A:\n    |", "return"),
    ("x = [\n    1,\n    |", "def "),
    ("@dec\n|", "x "),
    ("if a:\n    b\nc\n|", "else:"),
    ("f() |", "= "),
    ("match x:\n    |", "y"),
]


@pytest.mark.parametrize(("text", "written"), ACCEPTED)
def test_what_may_follow_a_cursor(constraint: PythonConstraint, text: str, written: str) -> None:
    state = opened(constraint, text)
    assert state.off_reason is None
    assert write(state, written) is not None


@pytest.mark.parametrize(("text", "written"), REFUSED)
def test_what_may_not_follow_a_cursor(constraint: PythonConstraint, text: str, written: str) -> None:
    state = opened(constraint, text)
    assert state.off_reason is None
    assert write(state, written + " ") is None


@pytest.mark.parametrize("text", ["x = = |", "def f(:|", "foo(]|", "  x\n y|", "x = {)|", "\x00|"])
def test_a_broken_line_at_the_cursor_turns_it_off(constraint: PythonConstraint, text: str) -> None:
    state = opened(constraint, text)
    assert state.off_reason
    assert "\n" not in state.off_reason
    assert state.allowed() is None
    assert state.advance(41) is state
    assert state.permits(END)
    assert state.validate([1, 2, 3]) == 3


def test_the_reason_holds_nothing_of_the_text(constraint: PythonConstraint) -> None:
    reason = opened(constraint, "secret_name = = |").off_reason
    assert reason is not None
    assert "secret" not in reason


STOPS = [
    ("x = |\n", "", False),
    ("x = |\n", "1", True),
    ("f(|)\n", "", True),
    ("f(|)\n", "a, (b", False),
    ("f(|\n)\n", "a,", True),
    ("x = (|\ny = 2\n", "1", False),
    ("x = (|\ny = 2\n", "1)", True),
    ("def f():\n    |\n\nx = 1\n", "", False),
    ("def f():\n    |\n\nx = 1\n", "pass", True),
    ("if a:\n    b\n|else:\n    c\n", "", True),
    ("if a:\n    b\n|else:\n    c\n", "d\n", False),
    ("x = '|'\n", "abc", True),
    ("x = '|'\n", "abc'", True),  # written over the quote that stands there
    ("x = '|'\n", "abc' + 'd", False),
    ("x = '|'\n", "abc' + 'd'", True),
    ("f('|')\n", "abc')", True),
    ("f('|', b)\n", "abc' + c", True),
    ("f(|)\n", "a)", True),
    ("f(|)\n", "a) + g(b", False),
    ("f(|)\n", "a) + g(b)", True),
    ("f(g(| ) )\n", "a) + 1", True),
    ("f(g(|))[0]\n", "a) + (b)", True),
    ("f(g(|))[0]\n", "a)) + c[", False),
    ("f'{a}|'\n", "b{c}'", True),
    ("f'{a}|'\n", "b{c", False),
    ("f'|'\n", "b{c}'", True),
    ("f'|'\n", "b{c}d", True),
    ("x = 1|", "", True),
    ("x = |", "", False),
    ("a = |\n$\n", "1", True),  # the text after the cursor is broken whatever is written
    ("def |\n    return 1\n", "f", False),
    ("def |\n    return 1\n", "f():", True),
]


@pytest.mark.parametrize(("text", "written", "may_stop"), STOPS)
def test_where_a_completion_may_stop(constraint: PythonConstraint, text: str, written: str, may_stop: bool) -> None:
    state = write(opened(constraint, text), written)
    assert state is not None
    assert state.permits(END) is may_stop
    mask = state.allowed()
    assert mask is not None
    assert bit_is_set(mask, END) is may_stop


@pytest.mark.parametrize(
    ("text", "written", "closing"),
    [
        ("f(\n    |\n)\n", "a", b")"),
        ("f(|, b)\n", "a", b")"),
        ("x = {|: 1}\n", "a", b"}"),
        ("f'{|}'\n", "a", b"}"),
        ("x = '|b'\n", "a", b"'"),
        ("f(|)\n", "a)", b")"),
    ],
)
def test_a_completion_that_closes_what_the_file_closes_is_over(
    constraint: PythonConstraint, text: str, written: str, closing: bytes
) -> None:
    state = write(opened(constraint, text), written)
    assert state is not None
    over = state.advance(closing[0])
    if text == "f(|)\n":
        assert over is None, "nothing is left to close"
        return
    assert over is not None
    assert over.permits(END)
    assert [token for token in range(len(TOKENS)) if over.permits(token)] == [END]
    mask = over.allowed()
    assert mask is not None
    assert np.flatnonzero(bitmask_to_bool(mask, len(TOKENS))).tolist() == [END]
    assert state.validate([closing[0], ord("b")]) == 1
    assert state.validate([closing[0], END]) == 2


@pytest.mark.parametrize(("text", "written"), [("f(\n    |\n)\n", "a +"), ("f(|, b)\n", "not ")])
def test_nothing_is_closed_before_the_completion_may_end(constraint: PythonConstraint, text: str, written: str) -> None:
    state = write(opened(constraint, text), written)
    assert state is not None
    assert state.advance(ord(")")) is None
    mask = state.allowed()
    assert mask is not None
    assert not bit_is_set(mask, ord(")"))
    assert write(state, "(b)") is not None, "its own brackets may be closed"


@pytest.mark.parametrize(
    ("text", "again", "written", "may_stop"),
    [
        ("x = [len(|)]\n", 1, "(a)]", True),
        ("x = [len(|)]\n", 4, "len(a)]", True),
        ("x = [len(|)]\n", 1, "(a", True),
        ("x = [len(|)]\n", 1, "(a)", True),
        ("x = [f()[|]]\n", 2, ")[a]]", True),
        ("x = ['|']\n", 1, "'a']", True),
        ("x = [f(|\n)]\n", 1, "(a, b", True),
    ],
)
def test_what_is_read_again_stands_before_the_cursor(
    constraint: PythonConstraint, text: str, again: int, written: str, may_stop: bool
) -> None:
    before, _, after = text.partition("|")
    state = write(constraint.open((before + after).encode(), len(before), again=again), written)
    assert state is not None
    assert state.permits(END) is may_stop


def test_a_bracket_that_is_read_again_counts_as_open(constraint: PythonConstraint) -> None:
    over = write(constraint.open(b"x = [f(\n)]\n", 7, again=1), "(a)")
    assert over is not None
    assert [token for token in range(len(TOKENS)) if over.permits(token)] == [END]


def test_a_fence_ends_a_completion_where_it_may_end(constraint: PythonConstraint) -> None:
    for text, written, ends in (("x = |\n", "1", True), ("x = |\n", "1 +", False), ("def f():\n    |\n", "y\n", True)):
        state = write(opened(constraint, text), written)
        assert state is not None
        assert state.permits(ord("`")) is ends
        mask = state.allowed()
        assert mask is not None
        assert bit_is_set(mask, ord("`")) is ends
        over = state.advance(ord("`"))
        assert ends is (over is not None and not over.permits(ord("`")) and over.permits(END))
    assert write(opened(constraint, "x = '|'\n"), "`a`") is not None


def test_what_replaces_the_rest_of_the_document_may_close(constraint: PythonConstraint) -> None:
    state = opened(constraint, "f(|)\n", suffix=False)
    assert write(state, "a)") is not None


@pytest.mark.parametrize("blank", [b"\n", b" ", b"\t"])
def test_white_space_loops_are_cut(constraint: PythonConstraint, blank: bytes) -> None:
    state: PythonState | None = opened(constraint, "x = 1\n|")
    count = 0
    while state is not None and (following := state.advance(blank[0])) is not None:
        state, count = following, count + 1
        assert count < 200
    assert state is not None
    mask = state.allowed()
    assert mask is not None
    assert not bit_is_set(mask, blank[0])
    assert write(state, "# c\n\n") is not None


@pytest.mark.parametrize("text", ["def f(a):\n    |\n", "x = f(|)\n", "x = '|'\n", "|", "x = 1 |\n"])
def test_the_protocol_agrees_with_itself(constraint: PythonConstraint, text: str) -> None:
    state = opened(constraint, text)
    mask = state.allowed()
    assert mask is not None
    assert mask.dtype == np.int32
    assert mask.shape == ((VOCABULARY.size + 31) // 32,)
    for token, allowed in enumerate(bitmask_to_bool(mask, VOCABULARY.size)):
        assert state.permits(token) is bool(allowed), VOCABULARY.tokens[token]
        assert state.validate([token]) == int(allowed)
        if token != END:
            assert (state.advance(token) is not None) is bool(allowed)
    assert state.penalty() is None


def test_special_and_unknown_tokens_are_forbidden(constraint: PythonConstraint) -> None:
    state = opened(constraint, "|")
    assert not state.permits(SPECIAL)
    assert not state.permits(VOCABULARY.size + 5)
    assert not state.permits(-1)


def test_states_are_shared_between_branches(constraint: PythonConstraint) -> None:
    state = opened(constraint, "x = |")
    assert state.advance(ord("a")) is state.advance(ord("a"))
    one, other = write(state, "a + b"), write(state, "a(b")
    assert one is not None
    assert other is not None
    assert write(state, "a + b") is one
    assert state.validate(list(b"a + )b")) == 4


def test_a_multi_byte_character_may_be_split_over_tokens(constraint: PythonConstraint) -> None:
    assert write(opened(constraint, "x = '|'"), "é€") is not None
    assert write(opened(constraint, "|"), "né = 1") is not None
    state = opened(constraint, "x = '|'").advance(0xC3)
    assert state is not None
    assert not state.permits(ord("a"))
    assert not state.permits(END)


def test_a_cursor_inside_a_character_is_answered(constraint: PythonConstraint) -> None:
    state = constraint.open("é = 1".encode(), 1)
    assert state.off_reason is None
    assert state.advance(0xA9) is not None


def test_carriage_returns_are_newlines(constraint: PythonConstraint) -> None:
    state = opened(constraint, "def f():\r\n    x = 1\r\n    |\r\n")
    assert write(state, "return x\r\n    y") is not None
