"""Segments of stacks: what lies below a bracket or block changes nothing inside, and comes back behind it."""

from __future__ import annotations

from importlib.resources import files

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grammars.lalr import read_grammar
from grammars.python_parser import python_tables
from grammars.python_stacks import Node
from grammars.python_states import State
from tests.grammars.syntax.programs import expressions, programs

relaxed = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
TERMINALS = python_tables().terminals
OPENERS = ("(", "[", "{", "FIELD_OPEN", "INDENT")


def after(text: str) -> State:
    state = State.start().run(text.encode())
    assert state is not None
    return state


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("f(", "a.b[c] = [x, -f("),
        ("x = [1, ", "while [1, "),
        ("def f():\n    a\n", "class A:\n  def g():\n          a\n"),
        ("f'{a + ", "x = [f'{a + "),
    ],
)
def test_places_share_what_is_inside_a_bracket_or_block(one: str, other: str) -> None:
    assert after(one).spot.top is after(other).spot.top
    assert after(one).frame is not after(other).frame


@relaxed
@given(expressions)
def test_a_closed_bracket_is_forgotten(inner: str) -> None:
    state = State.start().run(f"f({inner})".encode())
    if state is not None:
        assert state == after("f(a)")


@pytest.mark.parametrize(
    "text",
    [
        "with (a, b) as c:\n    pass\n",
        "with (a, b):\n    pass\n",
        "match (a, b):\n    case (1, 2): pass\n",
        "match (a)\n",
    ],
)
def test_several_readings_come_back_to_one(text: str) -> None:
    state = State.start()
    widest = 0
    for byte in f"{text}x\n".encode():
        following = state.step(byte)
        assert following is not None
        state, widest = following, max(widest, len(following.spot.top.nodes))
    assert widest > 1
    assert state.machine.depth == 0
    assert len(state.spot.top.nodes) == 1
    assert state.may_end()


@relaxed
@given(programs, st.integers(0, 300))
def test_merged_segments_read_on_alike(program: str, cut: int) -> None:
    data = program.encode()
    state = State.start().run(data[:cut])
    if state is None or state.frame.base is None:
        return
    merged = state.machine.merged().state(state.mode)
    for byte in data[cut:]:
        one, other = state.step(byte), merged.step(byte)
        assert (one is None) == (other is None)
        if one is None or other is None:
            return
        state, merged = one, other
        assert state.viable == merged.viable
        assert state.machine.acceptable == merged.machine.acceptable
        assert state.machine.depth == merged.machine.depth
        assert state.machine.indents == merged.machine.indents


def test_operands_never_lie_below_a_segment() -> None:
    """What an expression may be used as is looked up in its own segment: nothing that is looked at stands before a
    bracket of its production."""
    grammar = read_grammar(files("grammars").joinpath("python313.gram").read_text(encoding="utf-8"))
    for production in grammar.productions:
        if production.action in ("", "single", "empty"):
            continue
        operands = [i for i, symbol in enumerate(production.right) if symbol >= grammar.terminal_count]
        openers = [i for i, symbol in enumerate(production.right) if grammar.symbols[symbol] in OPENERS]
        assert not openers or max(openers) < min(operands)


def test_a_node_remembers_its_continuations() -> None:
    root = Node.root(python_tables())
    (name,) = root.shift(TERMINALS["NAME"])
    assert isinstance(name, Node)
    assert root.shift(TERMINALS["NAME"]) == (name,)
    assert not root.shift(TERMINALS[")"])
    assert name.onto(root).height == name.height + 1, "the segment's begin lies on the stack below"
