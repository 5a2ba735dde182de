"""Hand-picked hard cuts. The expectation stands inside the fixture files; `lexemes.txt` explains their notation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from grammars import check_prefix
from grammars.python_states import State
from tests.grammars.syntax.corpus import NO_ORACLE, Judge, oracle

HOPELESS, VALID = "⛔", "✅"


def cases() -> list[tuple[str, str]]:
    found = []
    for path in sorted((Path(__file__).parent / "cuts").glob("*.txt")):
        for block in re.split(r"^== ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
            name, _, body = block.partition("\n")
            lines = body.rstrip().split("\n")
            found.append((f"{path.stem}: {name}", "\n".join(line.removeprefix("  ") for line in lines)))
    return found


@pytest.mark.parametrize(("name", "text"), cases(), ids=[name for name, _ in cases()])
def test_cut(name: str, text: str) -> None:
    before, mark, after = text.partition(HOPELESS)
    if mark:
        verdict = check_prefix(before + after)
        assert not verdict.viable
        assert verdict.offset == len(before), verdict.reason
        assert verdict.reason
        assert check_prefix(before).viable
        return
    whole = text.removesuffix(VALID)
    assert check_prefix(whole) == check_prefix(whole.encode())
    assert check_prefix(whole).viable, check_prefix(whole)
    if text.endswith(VALID):
        state = State.start().run(whole.encode())
        assert state is not None
        assert state.may_end()


@pytest.mark.skipif(oracle() is None, reason=NO_ORACLE)
def test_python_3_13_agrees_with_the_expectations() -> None:
    with Judge() as judge:
        for name, text in cases():
            if HOPELESS in text:
                assert not judge.verdict(text.replace(HOPELESS, ""))["valid"], name
            elif text.endswith(VALID):
                assert judge.verdict(text.removesuffix(VALID))["valid"], name


def test_offsets_are_characters_of_str_and_bytes_of_bytes() -> None:
    text = "é = (1,\n$"
    assert check_prefix(text).offset == 8
    assert check_prefix(text.encode()).offset == 9


@pytest.mark.parametrize(
    ("text", "suffix", "fits"),
    [
        ("f(a", ")\n", True),
        ("f(a)", ")\n", False),
        ("x = ", "\ny = 2\n", False),
        ("x = 1", "\ny = 2\n", True),
        ("def f():\n    if x:\n        y", "\n    else:\n        z\n", True),
        ("def f():\n    if x:\n        y\n    w", "\n    else:\n        z\n", False),
        ("try:\n    x\n", "finally:\n    y\n", True),
        ("try:\n    x\n", "y\n", False),
        ('x = """a', '"""\n', True),
        ("", "", True),
    ],
)
def test_a_suffix_must_fit(text: str, suffix: str, fits: bool) -> None:
    assert check_prefix(text).viable
    assert check_prefix(text, suffix=suffix).viable is fits
