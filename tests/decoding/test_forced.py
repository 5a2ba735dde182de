from __future__ import annotations

import pytest

from decoding.drafters.forced import ForcedDrafter
from grammars.python_constraint import PythonConstraint
from grammars.vocabulary import Vocabulary

TOKENS = [bytes((byte,)) for byte in range(256)] + [b"se", b"else", b"port", b"import", b"<end>"]
END = len(TOKENS) - 1
VOCABULARY = Vocabulary.from_tokens(TOKENS, end=[END])


@pytest.fixture(scope="module")
def constraint() -> PythonConstraint:
    return PythonConstraint(VOCABULARY)


def drafted(constraint: PythonConstraint, before: str, budget: int = 8) -> list[bytes]:
    state = constraint.open(before.encode(), len(before.encode()))
    tree = ForcedDrafter(VOCABULARY).propose([1], state, budget)
    assert tree.parents.tolist() == list(range(-1, len(tree) - 1))
    assert list(tree.log_probs) == sorted(tree.log_probs, reverse=True)
    assert state.validate(tree.token_ids.tolist()) == len(tree)
    return [TOKENS[token] for token in tree.token_ids]


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("x = a if b el", [b"se"]),
        ("from a im", [b"port"]),
        ("x = '\\N", [b"{"]),
    ],
)
def test_what_is_forced_is_drafted(constraint: PythonConstraint, before: str, expected: list[bytes]) -> None:
    assert drafted(constraint, before)[: len(expected)] == expected


@pytest.mark.parametrize("before", ["", "x = ", "x = a", "def ", "x = '", "# "])
def test_a_choice_is_not_drafted(constraint: PythonConstraint, before: str) -> None:
    assert drafted(constraint, before) == []


def test_the_only_token_is_certain(constraint: PythonConstraint) -> None:
    before = b"x = '\\N"
    tree = ForcedDrafter(VOCABULARY).propose([1], constraint.open(before, len(before)), 1)
    assert tree.log_probs.tolist() == [0.0]


def test_nothing_is_forced_without_a_constraint(constraint: PythonConstraint) -> None:
    drafter = ForcedDrafter(VOCABULARY)
    assert len(drafter.propose([1], None, 8)) == 0
    off = constraint.open(b"x = = ", 6)
    assert off.off_reason
    assert len(drafter.propose([1], off, 8)) == 0


def test_the_budget_is_kept(constraint: PythonConstraint) -> None:
    assert len(drafted(constraint, "x = a if b el", budget=0)) == 0
