"""Docstrings: valid, complete and in the right place, whatever words fill them."""

from __future__ import annotations

import ast
import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decoding.reasoning.docstrings import (
    Shape,
    cleaned,
    insertion,
    literal,
    parameters_in,
    shape_of,
    style_of,
    summary_line,
    written,
)
from decoding.reasoning.pieces import applied
from grammars.definitions import outline

STYLES = ["google", "numpy", "sphinx"]

FUNCTION = """\
@staticmethod
async def fetch(
    url: str, /, tries: int = 3, *hosts: str, verbose=False, **options: object
) -> dict[str, int]:  # slow
    if not url:
        raise ValueError("no url")
    def inner(x):
        raise KeyError(x)
    return await get(url)
"""


def test_the_shape_comes_from_the_code() -> None:
    shape = shape_of(FUNCTION, method=True)
    assert shape == Shape(
        parameters=(
            ("url", "str"),
            ("tries", "int"),
            ("*hosts", "str"),
            ("verbose", ""),
            ("**options", "object"),
        ),
        result="returns",
        annotation="dict[str, int]",
        exceptions=("ValueError",),
    )
    assert shape_of("def f(self, x):\n    yield x\n", method=True) == Shape((("x", ""),), "yields")
    assert shape_of("def f(x):\n    return\n", method=False) == Shape((("x", ""),))
    assert shape_of("class A:\n    pass\n", method=False) == Shape()
    assert shape_of("def f(:\n", method=False) is None


@pytest.mark.parametrize(
    ("text", "style"),
    [
        ('def f(x):\n    """A.\n\n    Args:\n        x: b.\n    """\n', "google"),
        ('def f(x):\n    """A.\n\n    Parameters\n    ----------\n    x : int\n    """\n', "numpy"),
        ('def f(x):\n    """A.\n\n    :param x: b\n    """\n', "sphinx"),
        ("x = 1\n", "google"),
    ],
)
def test_the_style_is_the_file_s_own(text: str, style: str) -> None:
    assert style_of(text) == style


def test_google_looks_like_google() -> None:
    words = {"summary": "fetch it", "url": "where", "*hosts": "who", "returns": "what came", "ValueError": "if empty"}
    text = written(shape_of(FUNCTION, method=False), words, "google", "    ")
    assert textwrap.dedent("    " + text) == textwrap.dedent("""\
        Fetch it.

        Args:
            url: Where.
            tries:
            *hosts: Who.
            verbose:
            **options:

        Returns:
            What came.

        Raises:
            ValueError: If empty.
    """)


@pytest.mark.parametrize(
    ("words", "room", "summary", "rest"),
    [
        ("merge the given dictionaries", 40, "Merge the given dictionaries.", ""),
        ("merge them. later ones win", 16, "Merge them.", "later ones win."),
        ("merge the given dictionaries, so that the later ones win", 40, "Merge the given dictionaries.", ""),
        ("return the number of all the words of the text", 30, "Return the number of all.", ""),
        ("x" * 50, 20, "X" + "x" * 18 + ".", ""),
    ],
)
def test_a_summary_is_one_line_and_ends_where_a_clause_does(words: str, room: int, summary: str, rest: str) -> None:
    assert summary_line(words, room) == (summary, rest)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=200), st.integers(40, 88))
def test_a_summary_never_is_longer_than_its_line(words: str, room: int) -> None:
    summary, _ = summary_line(words, room)
    assert len(summary) <= room
    assert "\n" not in summary


PLACES = [
    "def f(a, b):\n    return a\n",
    "def f(a, b):  # why\n    # a comment\n    return a\n",
    "def f(a, b): return a\n",
    'def f(a, b):\n    """Old."""\n    return a\n',
    'def f(a, b):\n    "Old " "one"\n',
    'def f(a, b): "Old"\n',
    "class A:\n\tdef f(self, a, b):\n\t\treturn a\n",
    "class A:\n    @property\n    def f(\n        self,\n        a,\n        b=(1, 2),\n    ):\n\n        return a\n",
    "if 1:\n    def f(a, b): return {a: b}\n",
    "def f(a, b):\r\n    return a\r\n",
    "def f(a, b) -> 'x':\n    f'{a}'\n    return b\n",
    "def f(a, b):\n    x = 1; return x\n",
    "def f(a, b, c=lambda: 0): return a; b\n",
]
words = st.text(st.characters(exclude_categories=["Cs"]), max_size=80) | st.sampled_from(
    ['"""', "'''", "\\", 'ends with "', "a\nb", "\\N{x}", "```", "{x}", "é🦉", '"', "\x00"]
)


slots = st.fixed_dictionaries({}, optional=dict.fromkeys(("summary", "a", "b", "c", "returns"), words))


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(PLACES), st.sampled_from(STYLES), slots)
def test_any_words_give_the_same_code_with_a_complete_docstring(place: str, style, said: dict[str, str]) -> None:
    data = place.encode()
    definition = next(each for each in outline(data).definitions if each.name == "f")
    node = next(n for n in ast.walk(ast.parse(place)) if isinstance(n, ast.FunctionDef) and n.name == "f")
    shape = shape_of(ast.unparse(node), method=definition.in_class)
    assert shape is not None
    change = insertion(data, definition, lambda indentation: written(shape, said, style, indentation))
    assert change is not None
    after = applied(data, (change,))
    assert ("\r\n" in place) == ("\r\n" in after)
    found = next(n for n in ast.walk(ast.parse(after)) if isinstance(n, ast.FunctionDef) and n.name == "f")
    docstring = ast.get_docstring(found)
    assert docstring is not None
    assert parameters_in(docstring, style) == tuple(name for name, _ in shape.parameters)


@given(words)
def test_any_text_has_a_literal(text: str) -> None:
    value = ast.literal_eval(literal(cleaned(text)))
    assert value.rstrip() == cleaned(text).rstrip()
