"""What fits into a gap of a document, judged by `ast` where the document is sound without it."""

from __future__ import annotations

import ast

import pytest

from grammars.python_constraint import PythonConstraint
from grammars.python_filling import Gap
from grammars.vocabulary import Vocabulary

TRY = "x = 1\n{0}try:\n{0}    y = 2"
CASES = [
    ("def f():\n    |\n", TRY.format("    ")),
    ("def f():\n    |", TRY.format("    ")),
    ("def f():\n    |\n    # the end\n", TRY.format("    ")),
    ("def f():\n    |\n    # the end", "return 1"),
    ("class A:\n    def f(self):\n        |\n    x = 3\n\n", TRY.format("        ")),
    ("class A:\n    def f(self):\n        |\n        x = 3\n", TRY.format("        ")),
    (
        "class A:\n    def f(self):\n        |\n        x = 3\n",
        TRY.format("        ") + "\n        except E:\n            z",
    ),
    ("class A:\n    def f(self):\n        |\n    def g(self):\n        pass\n", "x = 1"),
    ("try:\n    |\nexcept E:\n    pass\n", "x = 1"),
    ("try:\n    |\nexcept E:\n    pass\n", "x = 1\nz = 3"),
    ("x = [|]\n", "1, 2"),
    ("x = [|]\n", "1, (2"),
    ("x = '|'\n", "it"),
    ("x = '|'\n", "it's"),
    ("f(|)\n", "a) + g(b"),
]


@pytest.mark.parametrize(("marked", "text"), CASES)
def test_what_fits_leaves_a_file_that_parses(marked: str, text: str) -> None:
    before, _, after = marked.partition("|")
    try:
        ast.parse(before + text + after)
    except SyntaxError:
        sound = False
    else:
        sound = True
    assert Gap.at((before + after).encode(), len(before)).fits(text.encode()) is sound


def test_bytes_after_the_gap_can_be_replaced() -> None:
    gap = Gap.at(b"f(g()\n", 4)
    assert gap.fits(b"1))", replaced=1)
    assert not gap.fits(b"1)", replaced=1)


_LONG = "\n" + "def f(x):\n    '''What it says.'''\n    return [x, (1, 2)]\n\n\n" * 300
"""Longer than what is read of a line that goes on: a string that the gap opened could swallow all of that."""


@pytest.mark.parametrize("depth", range(9))
@pytest.mark.parametrize("before", ["x = ", "def g(self):\n    return ", "class A:\n    x: int = ", "print(1); y = "])
def test_brackets_before_a_long_text_can_be_closed(before: str, depth: int) -> None:
    opened = before + "f(" * depth
    constraint = PythonConstraint(Vocabulary.from_tokens([bytes([byte]) for byte in range(256)], end=[]))
    state = constraint.open((opened + _LONG).encode(), len(opened))
    text = b"y" + b")" * depth
    assert state.validate(list(text)) == len(text)
    assert state.validate(list(text + b")")) == len(text)
    gap = Gap.at((opened + _LONG).encode(), len(opened))
    assert gap.fits(text)
    assert depth == 0 or not gap.fits(text[:-1])
    assert not gap.fits(text + b" + '''z")


@pytest.mark.parametrize(
    "cursor", ["x = '", "x = f('", 'x = """', "x = f'", "x = f'{", "# ", "x = (", "def f(", "'\\", ""]
)
@pytest.mark.parametrize("behind", ["\n)]}\n", "\ndef f(:\n", "'''\n", "\n    if\n", "\\x"])
def test_a_text_that_nothing_mends_is_given_up(cursor: str, behind: str) -> None:
    """Closing bracket after bracket never ended in a string."""
    for after in (behind, behind + _LONG):
        Gap.at((cursor + after).encode(), len(cursor)).fits(b"x")
