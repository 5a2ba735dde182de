"""The scope constraint over tokens: what it forbids, what it leaves alone, and that its masks are its steps."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grammars.constraint import bit_is_set, empty_bitmask
from grammars.scope_constraint import Penalties, ScopeConstraint, ScopeMode
from grammars.scope_index import ScopeIndex
from grammars.scope_lexer import read
from grammars.scope_state import ScopeState
from grammars.vocabulary import Vocabulary

_PENALTIES = Penalties()
_WORDS = [
    "alpha",
    "alphabet",
    "beta",
    "print",
    "self",
    "value",
    "x",
    "y",
    "zeta",
    "gamma",
    "f",
    "rb",
    "None",
    "in",
    "Zeta",
    "Ze",
    "ZETA",
]
_SIGNS = [
    ".",
    "(",
    ")",
    "[",
    "]",
    ",",
    ":",
    "=",
    " = ",
    "\n",
    "\n    ",
    "'",
    '"',
    "#",
    "{",
    "}",
    "+",
    "\\",
    "*",
    "@",
    ";",
]
_MIXED = [
    "(x",
    ".alpha",
    "[zeta",
    "=beta",
    " alpha(",
    "x)",
    "f'",
    "x, y",
    '"abc',
    "_a",
    "1e5",
    "é",
    "x:=",
    ' "", z',
    "!r",
]
_TOKENS = [
    *(f"{blank}{word}" for word in [*_WORDS, "def", "for", "lambda", "import", "as", "if"] for blank in ("", " ")),
    *_SIGNS,
    *_MIXED,
    *"abcdefghijklmnopqrstuvwxyz01 ",
    *["al", "pha", "bet", " ze", "ta", "lpha"],
]
_TEXTS = list(dict.fromkeys(_TOKENS))
_END = len(_TEXTS)


@pytest.fixture(scope="module")
def constraint() -> ScopeConstraint:
    return ScopeConstraint(Vocabulary.from_tokens([text.encode() for text in _TEXTS] + [b""], end=[_END]))


def tokens_of(text: str) -> list[int]:
    """The longest tokens that spell `text`."""
    ids = []
    while text:
        best = max((t for t in _TEXTS if text.startswith(t)), key=len)
        ids.append(_TEXTS.index(best))
        text = text[len(best) :]
    return ids


def opened(constraint: ScopeConstraint, code: str, mode: ScopeMode = "hard") -> ScopeState:
    """The state at the `|` of `code`."""
    offset = len(code[: code.index("|")].encode())
    return constraint.open(ScopeIndex.of(code.replace("|", "", 1).encode()), offset, mode)


def spells(constraint: ScopeConstraint, code: str, completion: str) -> bool:
    tokens = tokens_of(completion)
    return opened(constraint, code).validate(tokens) == len(tokens)


_FUNCTION = "alpha = 1\ndef beta(x):\n    return |\n"


@pytest.mark.parametrize(
    ("code", "completion"),
    [
        (_FUNCTION, "alpha"),
        (_FUNCTION, "alpha.zeta(x)"),
        (_FUNCTION, "x + beta(alpha, zeta=x)"),
        (_FUNCTION, "print(x)"),
        (_FUNCTION, "lambda y: y + x"),
        (_FUNCTION, "f'zeta{x}'"),
        (_FUNCTION, "rb'zeta'"),
        (_FUNCTION, '"zeta" + x'),
        (_FUNCTION, "1e5 + x"),
        (_FUNCTION, "x # zeta"),
        (_FUNCTION, "x\n    zeta = 1\n    print(zeta)"),
        (_FUNCTION, "[y for y in x]"),
        (_FUNCTION, "beta(y.value for y in x)"),
        (_FUNCTION, "(y:=x) + y"),
        (_FUNCTION, "é"),
        (_FUNCTION, "beta(y == zeta for y, zeta in x)"),
        (_FUNCTION, "beta(x, value=alpha)"),
        (_FUNCTION, "x if alpha else None"),
        ("x = 1\n|", "y = x"),
        ("x = 1\n|", "y, zeta = x, x"),
        ("x = 1\n|", "y: x = x"),
        ("x = 1\n|", "y = zeta = x\nzeta"),
        ("x = 1\n|", "(y, zeta) = x\nzeta"),
        ("x = 1\n|", "import zeta\nzeta.y"),
        ("x = 1\n|", "import zeta.y as gamma\ngamma"),
        ("x = 1\n|", "for y in x:\n    print(y)"),
        ("x = 1\n|", "def gamma(y, zeta=x):\n    y + gamma"),
        ("|\nbeta = 1\n", "def gamma():\n    beta"),
        ("x = 1\nal|\nalpha = 2\n", "pha = x"),
        ("alpha = 1\nprint(al|)", "pha"),
        ("zet|", "a.x"),
        ("def f(x):\n    return x.|", "zeta"),
        ("print(value=|)", "print"),
        ("def f(zeta, value=|", "None):\n    zeta"),
        ("for zeta in |", "print:\n    zeta"),
        ("def f(zet|", "a):\n    zeta"),
        ("def f(|):\n    pass\nzeta = 1\n", "x=1):\n    zeta"),
        ("zeta = print(|)", "1)\nzeta"),
        ("zet|", "a = 1\nzeta"),
        ("def f(zeta):\n    zeta\n|", "    zeta"),
        ("class A:\n    alpha = 1\n    def f(self):\n        self\n|", "    beta = alpha"),
    ],
)
def test_allowed(constraint: ScopeConstraint, code: str, completion: str) -> None:
    assert spells(constraint, code, completion)


@pytest.mark.parametrize(
    ("code", "completion"),
    [
        (_FUNCTION, "zeta"),
        (_FUNCTION, "alph "),
        (_FUNCTION, "alphabet"),
        (_FUNCTION, "ze"),
        (_FUNCTION, "x + zeta"),
        (_FUNCTION, "x[zeta"),
        (_FUNCTION, "beta(alpha, zeta)"),
        (_FUNCTION, "beta(value=zeta"),
        (_FUNCTION, "f'{zeta"),
        (_FUNCTION, "'' + zeta"),
        (_FUNCTION, "[y for y in zeta"),
        (_FUNCTION, "lambda y: zeta"),
        ("x = 1\n|", "zeta(x"),
        ("x = 1\n|", "zeta.x"),
        ("x = 1\n|", "y = zeta("),
        ("x = 1\n|", "y = x + zeta"),
        ("x = 1\n|", "def gamma(y=zeta"),
        ("x = 1\n|", "@zeta"),
        ("|\nbeta = 1\n", "x = beta\n"),
        ("alpha = 1\nx = 1 + al|", "x"),
    ],
)
def test_forbidden(constraint: ScopeConstraint, code: str, completion: str) -> None:
    assert not spells(constraint, code, completion)


@pytest.mark.parametrize(
    "code", ["from x import *\nreturn_ = |", "exec(x)\nx = |", "try:\n    x = |\nexcept NameError: x\n"]
)
def test_an_escape_hatch_turns_it_off(constraint: ScopeConstraint, code: str) -> None:
    state = opened(constraint, code)
    assert state.off_reason
    assert state.allowed() is None
    assert state.validate(tokens_of("zeta(gamma)")) == len(tokens_of("zeta(gamma)"))
    assert opened(constraint, code, "soft").penalty() is None


def test_soft_forbids_nothing_and_makes_unknown_names_less_probable(constraint: ScopeConstraint) -> None:
    state = opened(constraint, _FUNCTION, "soft")
    assert state.allowed() is None
    penalty = state.penalty()
    assert penalty is not None
    lowered = dict(zip(penalty[0].tolist(), penalty[1].tolist(), strict=True))
    assert lowered[_TEXTS.index("zeta")] == _PENALTIES.load
    assert _TEXTS.index("alpha") not in lowered
    after = state.advance(_TEXTS.index("zeta"))
    assert after is not None
    assert after.penalty() is None  # an unknown word is paid for once


@pytest.mark.parametrize(
    ("code", "completion", "token", "penalty"),
    [
        ("beta(x, |", "", "zeta", 0.0),  # perhaps a keyword argument
        ("beta(x, |", "", "Zeta", _PENALTIES.capital),
        ("beta(|", "", "ZETA", _PENALTIES.capital),
        ("beta(x, |", "zeta", "=", 0.0),
        ("beta(x, |", "zeta", ")", _PENALTIES.unbound),
        ("beta(x, |", "zeta", ".", _PENALTIES.unbound),
        ("|", "zeta", "(", _PENALTIES.unbound),
        ("|", "zeta", " = ", 0.0),
        ("|", "print", "(", 0.0),
        ("x = |", "", "zeta", _PENALTIES.chain),
        ("x = |", "zeta", "(", 0.0),  # paid for: more would make a model go on with anything but the sign
        ("if |", "zeta", ")", 0.0),
        ("if |", "", "zeta", _PENALTIES.condition),
    ],
)
def test_soft_knows_where_a_new_name_is_likely(
    constraint: ScopeConstraint, code: str, completion: str, token: str, penalty: float
) -> None:
    state = opened(constraint, code, "soft")
    for spelt in tokens_of(completion):
        following = state.advance(spelt)
        assert following is not None
        state = following
    assert state.penalty_of(_TEXTS.index(token)) == penalty


def test_healed_tokens_are_read_again(constraint: ScopeConstraint) -> None:
    index = ScopeIndex.of(b"alpha = 1\nx = 1 + alp")
    state = constraint.open(index, 21, "hard", start=18)
    assert state.permits(_TEXTS.index("alpha"))
    assert not state.permits(_TEXTS.index("zeta"))


def assert_masks_are_steps(state: ScopeState, size: int) -> None:
    mask, penalty = state.allowed(), state.penalty()
    lowered = dict(zip(penalty[0].tolist(), penalty[1].tolist(), strict=True)) if penalty is not None else {}
    for token in range(size - 1):
        assert (mask is None or bit_is_set(mask, token)) == state.permits(token), _TEXTS[token]
        assert lowered.get(token, 0.0) == pytest.approx(state.penalty_of(token)), _TEXTS[token]
    assert mask is None or bit_is_set(mask, _END)


_CODES = [
    _FUNCTION,
    "|",
    "x = 1\nal|",
    "print(x, |",
    "x = f'{|",
    "x = '|",
    "class A(|",
    "def f(x, y=|",
    "for x in |",
    "x = |",
    "import |",
    *(f"x = alpha{sign}|" for sign in ("\\", " \\", " + ''", ' + f"', " + rb'")),
    *(f"print(x, {sign}|" for sign in ("zeta\\", 'zeta"', "'", '""')),
]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(_CODES), st.sampled_from(["soft", "hard"]), st.integers(0, 2**32))
def test_masks_are_steps(constraint: ScopeConstraint, code: str, mode: ScopeMode, seed: int) -> None:
    chance = random.Random(seed)
    state = opened(constraint, code, mode)
    for _ in range(8):
        assert_masks_are_steps(state, len(_TEXTS) + 1)
        allowed = [token for token in range(len(_TEXTS)) if state.permits(token)]
        if not allowed:
            return
        following = state.advance(chance.choice(allowed))
        assert following is not None
        state = following


@pytest.mark.parametrize(
    "before", ["x = ", "x = al", "print(", "x.y", "x = '", "x = ''", "x = f'", "x = zz\\", "x = \\"]
)
def test_words_are_not_surveyed_one_by_one(before: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A vocabulary of 152,000 tokens took three seconds behind a backslash, and 200 MB."""
    texts = [*_TEXTS, *(f"{blank}{a}{b}" for blank in ("", " ") for a in _WORDS for b in range(60))]
    state = opened(ScopeConstraint(Vocabulary.from_tokens([text.encode() for text in texts], end=[])), before + "|")
    reads = []

    def counting(*arguments: Any) -> Any:
        reads.append(arguments)
        return read(*arguments)

    monkeypatch.setattr("grammars.scope_state.read", counting)
    state.allowed()
    assert len(reads) < len(texts) / 10


def test_states_are_immutable(constraint: ScopeConstraint) -> None:
    state = opened(constraint, "x = 1\n|")
    before = state.validate(tokens_of("zeta("))
    assert state.validate(tokens_of("zeta = 1\nzeta(")) == len(tokens_of("zeta = 1\nzeta("))
    assert state.validate(tokens_of("zeta(")) == before


def test_masks_cover_the_vocabulary(constraint: ScopeConstraint) -> None:
    mask = opened(constraint, _FUNCTION).allowed()
    assert mask is not None
    assert mask.shape == empty_bitmask(len(_TEXTS) + 1).shape
    assert mask.dtype == np.int32
