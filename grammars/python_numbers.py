"""Number literals of Python as an automaton over characters.

Knows digits; must not know what follows a number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

NUMBER_START = "start"
"""The state before the first digit."""
FRACTION_START = "point"
"""The state after a point that follows no digit and is followed by one."""

_DECIMAL = "0123456789"
_REAL, _IMAGINARY = frozenset({"NUMBER"}), frozenset({"IMAGINARY"})
_EITHER = _REAL | _IMAGINARY


def _moves(*moves: tuple[Iterable[str], str]) -> dict[str, str]:
    return {character: state for characters, state in moves for character in characters}


_AFTER_INTEGER = ((".", "dot"), ("eE", "exponent_start"), ("jJ", "imaginary"))
_STATES: Mapping[str, Mapping[str, str]] = {
    NUMBER_START: _moves(("123456789", "decimal"), ("0", "zero")),
    "zero": _moves(
        ("0", "zero"),
        ("_", "zero_"),
        ("123456789", "leading_zero"),
        *_AFTER_INTEGER,
        *((f"{k}{k.upper()}", f"{k}_start") for k in "xob"),
    ),
    "zeros": _moves(("0", "zeros"), ("_", "zero_"), ("123456789", "leading_zero"), *_AFTER_INTEGER),
    "zero_": _moves(("0", "zeros"), ("123456789", "leading_zero")),
    # 012 is no integer, but 012.5 and 012j are numbers.
    "leading_zero": _moves((_DECIMAL, "leading_zero"), ("_", "leading_zero_"), *_AFTER_INTEGER),
    "leading_zero_": _moves((_DECIMAL, "leading_zero")),
    "decimal": _moves((_DECIMAL, "decimal"), ("_", "decimal_"), *_AFTER_INTEGER),
    "decimal_": _moves((_DECIMAL, "decimal")),
    "dot": _moves((_DECIMAL, "fraction"), ("eE", "exponent_start"), ("jJ", "imaginary")),
    FRACTION_START: _moves((_DECIMAL, "fraction")),
    "fraction": _moves((_DECIMAL, "fraction"), ("_", "fraction_"), ("eE", "exponent_start"), ("jJ", "imaginary")),
    "fraction_": _moves((_DECIMAL, "fraction")),
    "exponent_start": _moves((_DECIMAL, "exponent"), ("+-", "exponent_sign")),
    "exponent_sign": _moves((_DECIMAL, "exponent")),
    "exponent": _moves((_DECIMAL, "exponent"), ("_", "exponent_"), ("jJ", "imaginary")),
    "exponent_": _moves((_DECIMAL, "exponent")),
    "imaginary": {},
    "x_start": _moves(("0123456789abcdefABCDEF", "x"), ("_", "x_")),
    "x": _moves(("0123456789abcdefABCDEF", "x"), ("_", "x_")),
    "x_": _moves(("0123456789abcdefABCDEF", "x")),
    "o_start": _moves(("01234567", "o"), ("_", "o_")),
    "o": _moves(("01234567", "o"), ("_", "o_")),
    "o_": _moves(("01234567", "o")),
    "b_start": _moves(("01", "b"), ("_", "b_")),
    "b": _moves(("01", "b"), ("_", "b_")),
    "b_": _moves(("01", "b")),
}
_COMPLETE = {
    **dict.fromkeys(("zero", "zeros", "decimal", "dot", "fraction", "exponent", "x", "o", "b"), "NUMBER"),
    "imaginary": "IMAGINARY",
}
_REFUSED_DIGITS = {"o": "89", "b": "23456789"}


def number_step(state: str, character: str) -> str | None:
    """The state after one more character of the number, None where the number ends before it."""
    return _STATES[state].get(character)


def number_kind(state: str, following: str = "") -> str | None:
    """The terminal that a number ending in `state` is, or None where it cannot end there before `following`."""
    if following and following in _REFUSED_DIGITS.get(state, ""):
        return None
    return _COMPLETE.get(state)


def number_future(state: str) -> frozenset[str]:
    """The terminals that a number may still become."""
    if state == "imaginary":
        return _IMAGINARY
    return _REAL if state.split("_")[0] in ("x", "o", "b") else _EITHER
