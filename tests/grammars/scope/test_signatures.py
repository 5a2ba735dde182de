"""Signatures of what is in scope but outside of the window."""

from __future__ import annotations

from grammars.scope_index import ScopeIndex
from grammars.scope_modules import Module
from grammars.signatures import signatures_in_scope

_TEXT = b'''import os
from dataclasses import dataclass
from shapes import Circle, Square

LIMIT = 10
TABLE = {"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6, "g": 7, "h": 8, "i": 9}


@dataclass(frozen=True)
class Point:
    """A point."""

    x: int
    y: int = 0

    def moved(
        self,
        by: int,  # to the right
    ) -> "Point":
        return Point(self.x + by, self.y)


def unrelated(a, b=1, *rest):
    return a


def area(circle: Circle, points: list[Point]) -> float:
    total = 0
    for point in points:
        total += point.x
    return total
'''
_START = _TEXT.index(b"def area")
_CURSOR = _TEXT.index(b"total += ") + 9
_WINDOW = (_START, len(_TEXT))


def test_everything_outside_of_the_window_fits() -> None:
    shown = signatures_in_scope(ScopeIndex.of(_TEXT), _CURSOR, _WINDOW, 10_000)
    assert shown == (
        "import os\n"
        "from dataclasses import dataclass\n"
        "from shapes import Circle, Square\n"
        "LIMIT = 10\n"
        "TABLE = ...\n"
        "@dataclass(frozen=True)\nclass Point:\n"
        "    x: int\n"
        "    y: int = 0\n"
        '    def moved(self, by: int) -> "Point": ...\n'
        "def unrelated(a, b=1, *rest): ...\n"
    ).replace("by: int) ->", "by: int) ->")


def test_what_the_window_mentions_comes_first() -> None:
    shown = signatures_in_scope(ScopeIndex.of(_TEXT), _CURSOR, _WINDOW, 110)
    assert "class Point:" in shown
    assert "    x: int\n" in shown
    assert "unrelated" not in shown
    assert len(shown) <= 110


def test_the_class_around_the_cursor_is_shown() -> None:
    cursor = _TEXT.index(b"Point(self.x")
    shown = signatures_in_scope(ScopeIndex.of(_TEXT), cursor, (cursor - 30, cursor + 30), 200)
    assert "    y: int = 0\n" in shown


def test_the_text_does_not_change_while_a_line_is_typed() -> None:
    index = ScopeIndex.of(_TEXT)
    shown = signatures_in_scope(index, _CURSOR, _WINDOW, 150)
    for i, byte in enumerate(b"unrelated(TABLE"):
        index = index.edited(_CURSOR + i, _CURSOR + i, bytes([byte]))
        assert signatures_in_scope(index, _CURSOR + i + 1, (_START, len(index.text)), 150) == shown


def test_names_from_open_files_are_shown() -> None:
    other = ScopeIndex.of(b"class Circle:\n    radius: float\n    def grow(self): pass\nclass Square: pass\nX = 1\n")
    shown = signatures_in_scope(ScopeIndex.of(_TEXT), _CURSOR, _WINDOW, 300, find_module={"shapes": Module(other)}.get)
    assert shown.startswith("class Circle:\n    radius: float\n    def grow(self): ...\n")
    assert "class Square" not in shown


def test_a_budget_is_kept() -> None:
    for budget in range(0, 200, 7):
        assert len(signatures_in_scope(ScopeIndex.of(_TEXT), _CURSOR, _WINDOW, budget)) <= budget


def test_broken_code_is_left_out() -> None:
    index = ScopeIndex.of(b"def broken(x:\n    y = (\ndef fine(a): pass\n\nfine\n")
    assert signatures_in_scope(index, 47, (44, 50), 500) == "def fine(a): ...\n"
