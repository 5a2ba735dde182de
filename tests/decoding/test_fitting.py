"""Suggestions are cut back to where they may end: whatever stopped them, the file around them stays in order."""

from __future__ import annotations

import ast
import sys
import unicodedata
from pathlib import Path

import pytest

from decoding.assistant import Assistant
from decoding.fitting import cut_to_fit
from decoding.hole import Hole
from decoding.messages import EngineOptions, Snapshot
from decoding.trimming import Trimmed, trim_at
from grammars.python_filling import Gap


def shown(marked: str, raw: str, *, finished: bool = False, multiline: bool = False) -> tuple[str | None, str]:
    """(the document after accepting, None where nothing is shown; the raw text that is left)."""
    before, _, after = marked.partition("|")
    document, offset = (before + after).encode(), len(before.encode())
    hole, gap = Hole.at(before + after, offset), Gap.at(document, offset)

    def trim(text: str, whole: bool) -> Trimmed | None:
        return trim_at(text, hole, offset, finished=whole, multiline=multiline)

    found = cut_to_fit(raw, finished, trim, lambda text: gap.fits(text.text.encode(), text.end - text.start))
    if found.trimmed is None:
        return None, found.raw
    return (document[:offset] + found.trimmed.text.encode() + document[found.trimmed.end :]).decode(), found.raw


@pytest.mark.parametrize(
    ("marked", "raw", "joined"),
    [
        ("print(|)\n", "foo(", "print(foo)\n"),
        ("print(|)\n", "foo(a, b", "print(foo)\n"),
        ("x = |\n", "[1, 2, (3", None),
        ("x = |\n", "a + [1, 2, (3", "x = a\n"),
        ("x = |\n", "'abc", None),
        ("x = |\n", "y or 'abc", "x = y\n"),
        ("x = |\n", "y if f'{a", "x = y\n"),
        ("if |\n", "x", None),  # the colon is missing
        ("if |:\n    pass\n", "x and not y(", "if x and not y:\n    pass\n"),
        ("for |:\n    pass\n", "x", None),
        ("import |\n", "os as", "import os\n"),
        ("f'{|}'\n", "a[", "f'{a}'\n"),
        ("|\n", "x = f'", None),  # `f` alone would be a name
        ("|\n", "path =", None),  # a name alone would say something else
        ("|\n", "path = a.", "path = a\n"),
        ("d = {|}\n", "'a': 1, 'b'", "d = {'a': 1,}\n"),
        ("d = {\n    |\n}\n", "'a': 1, 'b': ", "d = {\n    'a': 1,\n}\n"),
    ],
)
def test_a_line_that_the_budget_cuts_leaves_the_file_in_order(marked: str, raw: str, joined: str | None) -> None:
    document, left = shown(marked, raw)
    assert document == joined
    assert raw.startswith(left)
    if document is not None:
        ast.parse(document)


@pytest.mark.parametrize(
    ("marked", "raw", "joined"),
    [
        ("if (isinstance(x, |) or (\n    y)): pass\n", "int) or (\n", "if (isinstance(x, int) or (\n    y)): pass\n"),
        ("a|\n    'k': 1})\n", ".update(1)\n", None),
        ("a|\n    'k': 1})\n", ".update({\n", "a.update({\n    'k': 1})\n"),
        ("def f():\n    |\n", "if x:\n", None),
        ("def f():\n    |\n    return 1\n", "if x:\n", None),
        ("def f():\n    if |\n", "x:\n", "def f():\n    if x:\n"),
    ],
)
def test_a_line_that_ends_too_early_is_cut_or_not_shown(marked: str, raw: str, joined: str | None) -> None:
    assert shown(marked, raw, finished=True)[0] == joined


def test_of_several_lines_whole_ones_are_kept() -> None:
    document, left = shown("def f():\n    |\n", "x = 1\n    try:\n        y = 2\n", finished=True, multiline=True)
    assert document == "def f():\n    x = 1\n"
    assert left == "x = 1"


@pytest.mark.parametrize(
    ("marked", "raw"),
    [
        ("def f():\n    if |\n    return 1\n", "x > 0:"),
        ("def f(|\n", "self):"),
        ("try:\n    |\n", "x = 1"),
        ("def f():\n    try:\n        |\n", "x = 1"),
        ("@|\n", "property"),
    ],
)
def test_what_the_user_has_begun_may_stay_unfinished(marked: str, raw: str) -> None:
    assert shown(marked, raw, finished=True)[0] == marked.replace("|", raw)


def test_what_fits_is_left_alone_and_a_broken_file_decides_nothing() -> None:
    assert shown("x = |\n", "a + b +", finished=False)[1] == "a + b +"
    assert shown("def (:\n  x = )|\n", "a(", finished=True)[0] == "def (:\n  x = )a(\n"


HOLES = [
    "print(|)\n",
    "x = |\n",
    "def f(a):\n    return |\n",
    "def f(a):\n    |\n",
    "if |:\n    pass\n",
    "d = {'a': |}\n",
    "s = '|'\n",
    "for x in |:\n    pass\nelse:\n    pass\n",
    *(["s = f'{|}'\n"] if sys.version_info >= (3, 12) else []),  # the quotes of fields are judged by `ast`
]


@pytest.fixture(scope="module")
def assistant(tiny_folder: Path) -> Assistant:
    return Assistant(EngineOptions(model=str(tiny_folder), runtime="transformers", dtype="float32"))


@pytest.mark.parametrize("marked", HOLES)
@pytest.mark.parametrize("multiline", ["never", "always"])
def test_whatever_a_model_says_the_file_parses(assistant: Assistant, marked: str, multiline: str) -> None:
    before, _, after = marked.partition("|")
    for seed in range(2):
        for tokens in (3, 9):
            options = assistant.options.model_copy(
                update={"temperature": 1.0, "seed": seed, "max_tokens": tokens, "multiline": multiline}
            )
            snapshot = Snapshot(uri="file:///a.py", text=before + after, offset=len(before))
            found = assistant.complete(snapshot, options, lambda: False, lambda _: None)[0]
            # A character that this Python's Unicode does not know yet may be a letter in a newer one.
            if found.text and not any(unicodedata.category(character) == "Cn" for character in found.text):
                ast.parse(before + found.text + (before + after)[found.end :])
