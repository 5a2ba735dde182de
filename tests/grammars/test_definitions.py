"""Definitions and statements of finished and unfinished files."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grammars.definitions import outline, statements_around

SOURCE = '''\
"""Module."""
import os
from sys import path


@cache
def area(w, h):
    """Doc."""
    return w * h


class Bäcker:
    size = 1

    async def bake(self, x: int = 2) -> str:
        def inner(): return x

        if x:
            y = inner()
            z = 2
        else:
            z = 3
        return z
'''.encode()


def part(start: int, end: int) -> str:
    return SOURCE[start:end].decode()


def test_the_outline_has_every_definition_with_its_place() -> None:
    found = outline(SOURCE)
    assert [each.qualified_name for each in found.definitions] == ["area", "Bäcker", "Bäcker.bake", "Bäcker.bake.inner"]
    area, baker, bake, inner = found.definitions
    assert part(area.start, area.end).startswith("@cache\ndef area")
    assert part(area.start, area.header_end).endswith("(w, h):")
    assert part(area.body_start, area.end).startswith('"""Doc."""')
    assert (baker.kind, bake.kind) == ("class", "function")
    assert bake.in_class
    assert not inner.in_class
    assert part(bake.start, bake.header_end) == "async def bake(self, x: int = 2) -> str:"
    assert part(inner.body_start, inner.end) == "return x"
    assert [part(*each) for each in found.imports] == ["import os", "from sys import path"]
    at = SOURCE.index(b"z = 2")
    assert found.around(at, at + 1) == bake
    assert found.around(0, 0) is None


@pytest.mark.parametrize(
    ("selected", "whole"),
    [
        ("w * h", "return w * h"),
        ("z = 2", "z = 2"),
        ("y = inner()\n            z", "y = inner()\n            z = 2"),
        ("z = 2\n        else", None),
        ("import os\nfrom", "import os\nfrom sys import path"),
        ("\n\n\n", ""),
    ],
)
def test_a_selection_grows_to_whole_statements(selected: str, whole: str | None) -> None:
    at = SOURCE.index(selected.encode())
    start, end = statements_around(SOURCE, at, at + len(selected.encode()))
    if whole is None:  # from one branch into the other: all of the `if`
        assert part(start, end).startswith("if x:")
        assert part(start, end).endswith("z = 3")
    else:
        assert part(start, end) == whole


@given(st.integers(0, len(SOURCE)), st.integers(0, len(SOURCE)))
def test_any_selection_is_held_by_what_it_grows_to(one: int, other: int) -> None:
    start, end = min(one, other), max(one, other)
    grown_start, grown_end = statements_around(SOURCE, start, end)
    selected = SOURCE[start:end].strip()
    assert selected in SOURCE[grown_start:grown_end]
    if grown_end > grown_start:
        line_start = SOURCE.rfind(b"\n", 0, grown_start) + 1
        column = grown_start - line_start
        code = "\n".join(
            line[column:] if i else line for i, line in enumerate(part(grown_start, grown_end).split("\n"))
        )
        ast.parse(code)


@given(st.binary(max_size=200))
def test_no_text_makes_it_fail(text: bytes) -> None:
    outline(text)
    statements_around(text, 0, len(text))


def test_an_unfinished_file_keeps_what_can_be_read() -> None:
    names = [each.name for each in outline(b"def f(x):\n    return x\n\n\ndef g(y):\n    return (y\n").definitions]
    assert "f" in names
