"""What fits into a gap of a document, judged by `ast` where the document is sound without it."""

from __future__ import annotations

import ast

import pytest

from grammars.python_filling import Gap

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
