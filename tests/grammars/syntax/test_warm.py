from __future__ import annotations

import numpy as np

from grammars.python_constraint import PythonConstraint
from grammars.python_states import State
from grammars.vocabulary import Vocabulary
from grammars.warm_sample import SAMPLE, typical_sources


def test_the_sample_is_sound_to_its_end() -> None:
    state = State.start().run(SAMPLE)
    assert state is not None
    assert state.may_end()


def test_typical_sources_are_read_to_their_ends() -> None:
    for text in typical_sources():
        state = State.start().run(text)
        assert state is not None
        assert state.may_end()


def test_warming_changes_no_answer() -> None:
    vocabulary = Vocabulary.from_tokens(
        [*(bytes((byte,)) for byte in range(256)), b"return", b"):\n", b"---", b"<end>"]
    )
    fresh, warmed = PythonConstraint(vocabulary), PythonConstraint(vocabulary)
    steps = sum(1 for _ in warmed.warming())
    assert steps > 100, "an idle moment is short"
    for text in ("def f(x):\n    ", "x = (1, 'a", "class A:\n    pass\n", "f'{x"):
        one, other = fresh.open(text.encode(), len(text)), warmed.open(text.encode(), len(text))
        assert np.array_equal(one.allowed(), other.allowed())


def test_what_was_read_ahead_is_remembered_and_changes_no_answer() -> None:
    vocabulary = Vocabulary.from_tokens([*(bytes((byte,)) for byte in range(256)), b"peculiar", b"_word ", b"= (", b""])
    constraint = PythonConstraint(vocabulary)
    branch = [256, 257, 258, ord("1"), ord(")"), ord("\n"), 256, ord(")")]
    before = constraint.open(b"", 0).validate(branch)
    start = State.start()
    # Marks, ids of no token, the middle of a line: a window begins anywhere.
    constraint.study([259, 999, -1, ord(")"), *branch, *branch])
    assert constraint.open(b"", 0).validate(branch) == before == 7
    assert b"peculiar" in start.mode.texts
    assert start.mode.texts[b"peculiar"] in start.spot.after
