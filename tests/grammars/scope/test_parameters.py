"""Keyword arguments that a call takes, and what they make of unknown words among its arguments."""

from __future__ import annotations

import numpy as np
import pytest

from grammars.scope_constraint import Penalties, ScopeConstraint
from grammars.scope_index import ScopeIndex
from grammars.scope_parameters import KnownParameters
from grammars.scope_state import ScopeState
from grammars.scopes import visible_names
from grammars.vocabulary import Vocabulary

TOKENS = [bytes((byte,)) for byte in range(1, 256)]
TOKENS += [
    b" width",
    b" unheard",
    b"width",
    b"unheard",
    b"unheard,",
    b" width=",
    b" wi",
    b" un",
    b" Unheard",
    b" total",
]
END = len(TOKENS)
VOCABULARY = Vocabulary.from_tokens([*TOKENS, b"<end>"], special=[END], end=[END])
LOAD = Penalties().load

CODE = """\
def plain(value, width=1, *rest, height: int = 2, **): pass
def anything(value, **more): pass
def twice(value): pass
def twice(width): pass
@wrapped
def decorated(width): pass
alias = plain
class Shape:
    def __init__(self, width): pass
def outer(value):
    def inner(width): pass
    ⌖
"""


def known(name: str) -> frozenset[str] | None:
    code = CODE.replace(", **): pass", "): pass", 1)
    return KnownParameters(visible_names(code.replace("⌖", ""), code.index("⌖")).frames).of(name)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("plain", {"value", "width", "height"}),
        ("anything", None),
        ("twice", None),
        ("decorated", None),
        ("alias", None),
        ("Shape", None),
        ("inner", {"width"}),
        ("value", None),
        ("len", set()),
        ("print", {"sep", "end", "file", "flush"}),
        ("dict", None),
        ("nothing", None),
    ],
)
def test_parameters_of_functions_that_are_known(name: str, parameters: set[str] | None) -> None:
    assert known(name) == parameters


@pytest.fixture(scope="module")
def constraint() -> ScopeConstraint:
    return ScopeConstraint(VOCABULARY)


def opened(constraint: ScopeConstraint, marked: str) -> ScopeState:
    before, _, after = marked.partition("⌖")
    return constraint.open(ScopeIndex.of((before + after).encode()), len(before.encode()), "soft")


DEF = "def take(value, width): pass\nsize = 1\n"


@pytest.mark.parametrize(
    ("code", "token", "penalty"),
    [
        (DEF + "take(size,⌖)\n", b" unheard", LOAD),
        (DEF + "take(size,⌖)\n", b" un", LOAD),
        (DEF + "take(size, un⌖)\n", b",", 0.0),  # the user's own word
        (DEF + "take(size,⌖)\n", b" width", 0.0),
        (DEF + "take(size,⌖)\n", b" wi", 0.0),
        (DEF + "take(size,⌖)\n", b" width=", 0.0),
        (DEF + "other(size,⌖)\n", b" unheard", 0.0),
        (DEF + "size.take(size,⌖)\n", b" unheard", 0.0),
        (DEF + "take (size,⌖)\n", b" unheard", LOAD),
        (DEF + "x = take(size, take)(size,⌖)\n", b" unheard", 0.0),
        (DEF + "len(size,⌖)\n", b" unheard", LOAD),
        (DEF + "take(⌖)\n", b"unheard", 0.0),  # a variable of a comprehension, perhaps
        (DEF + "def f():\n    total = sum(⌖)\n", b" total", LOAD),
        (DEF + "def f():\n    total = sum(⌖)\n", b"unheard", 0.0),
        (DEF + "def f(total):\n    total = sum(⌖)\n", b" total", 0.0),
    ],
)
def test_an_argument_that_nobody_takes_is_no_name(
    constraint: ScopeConstraint, code: str, token: bytes, penalty: float
) -> None:
    assert opened(constraint, code).penalty_of(TOKENS.index(token)) == penalty


@pytest.mark.parametrize(
    "code",
    [DEF + "take(size,⌖)\n", DEF + "take(size, w⌖)\n", DEF + "def f():\n    total = sum(⌖)\n", DEF + "take(x, y=⌖)\n"],
)
def test_the_table_of_penalties_is_that_of_single_tokens(constraint: ScopeConstraint, code: str) -> None:
    state = opened(constraint, code)
    table = np.zeros(len(TOKENS) + 1, dtype=np.float32)
    found = state.penalty()
    if found is not None:
        table[found[0]] = found[1]
    assert table.tolist() == [state.penalty_of(token) for token in range(len(TOKENS) + 1)]
