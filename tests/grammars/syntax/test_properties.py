"""What must hold for any program and any text."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grammars import check_prefix
from grammars.python_cursor import open_at_cursor
from grammars.python_states import State, first_hopeless_byte
from tests.grammars.syntax.corpus import NO_ORACLE, Judge, oracle
from tests.grammars.syntax.programs import expressions, programs

pytestmark = pytest.mark.skipif(oracle() is None, reason=NO_ORACLE)
relaxed = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge() as process:
        yield process


def is_valid(text: str) -> bool:
    state, offset = first_hopeless_byte(State.start(), text.encode())
    return offset is None and state.may_end()


@relaxed
@given(programs)
def test_every_prefix_of_a_valid_program_is_viable(judge: Judge, program: str) -> None:
    verdict = judge.verdict(program)
    state, offset = first_hopeless_byte(State.start(), program.encode())
    if verdict["valid"]:
        assert offset is None, program.encode()[: offset + 1].decode(errors="replace")
        assert state.may_end()
    elif verdict["parses"] is False:
        assert offset is not None or not state.may_end()


@relaxed
@given(programs, st.data())
def test_changed_programs_are_judged_as_cpython_does(judge: Judge, program: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(program)))
    end = data.draw(st.integers(start, min(start + 3, len(program))))
    changed = program[:start] + data.draw(st.text("()[]{}:,.=+*'\"\\#\n fx1!", max_size=2)) + program[end:]
    verdict = judge.verdict(changed)
    if verdict["valid"]:
        assert is_valid(changed)
    elif not verdict["parses"]:
        assert not is_valid(changed) or "unknown Unicode character name" in verdict["message"]


@relaxed
@given(expressions, st.lists(st.integers(0, 200), max_size=6))
def test_reading_in_pieces_is_reading_at_once(text: str, cuts: list[int]) -> None:
    data = text.encode()
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    state: State | None = State.start()
    for start, end in pairwise(places):
        state = state and state.read(data[start:end])
    assert state == State.start().run(data)


@relaxed
@given(st.one_of(st.text(max_size=60), st.binary(max_size=60)))
def test_any_text_has_a_verdict(text: str | bytes) -> None:
    verdict = check_prefix(text)
    assert verdict.viable is (verdict.offset is None) is (verdict.reason is None)
    if verdict.offset is not None:
        assert check_prefix(text[: verdict.offset]).viable
        assert not check_prefix(text[: verdict.offset + 1]).viable or isinstance(text, bytes)


@relaxed
@given(programs, st.integers(0, 400))
def test_opening_at_a_cursor_is_reading_from_the_top(program: str, cut: int) -> None:
    data = program.encode()[:cut]
    read = State.start().run(data)
    opened = open_at_cursor(data)
    if read is None:
        return
    assert opened.state is not None
    assert not opened.repaired
    dedent = 1 << read.machine.language.dedent  # needs a statement before, which may have been left out
    assert opened.state.mode is read.mode
    assert opened.state.machine.acceptable | dedent == read.machine.acceptable | dedent
    assert opened.state.machine.indents == read.machine.indents
    assert opened.state.machine.depth == read.machine.depth


@pytest.mark.parametrize("before", [b"x = ", b"x = y", b"x = '", b"# "])
@relaxed
@given(lead=st.integers(0xC2, 0xF4), rest=st.lists(st.integers(0x80, 0xBF), max_size=2))
def test_a_character_that_is_begun_can_be_finished(before: bytes, lead: int, rest: list[int]) -> None:
    """Planes of private use, U+100000 and others, hold no letter at all."""
    begun = State.start().run(before + bytes([lead, *rest]))
    assert begun is None or any(begun.step(byte) is not None for byte in range(256))
