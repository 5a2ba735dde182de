"""When a suggestion is over."""

from __future__ import annotations

import pytest

from decoding.hole import Hole
from decoding.stopping import StopRule, wants_lines


def hole_at(marked: str) -> Hole:
    head, _, tail = marked.partition("|")
    return Hole.at(head + tail, len(head.encode()))


@pytest.mark.parametrize(
    ("marked", "several"),
    [
        ("x = |", False),
        ("foo(|)", False),
        ("def f():\n    |\n", True),
        ("def f():|\n", True),
        ("if x:  # why|", True),
        ("    | return x", False),
        ("|", True),
        ("a = b[|]\n", False),
    ],
)
def test_whether_the_position_calls_for_lines(marked: str, several: bool) -> None:
    assert wants_lines(hole_at(marked), "auto") is several
    assert wants_lines(hole_at(marked), "always") is True
    assert wants_lines(hole_at(marked), "never") is False


@pytest.mark.parametrize(
    ("marked", "raw", "reason"),
    [
        ("x = |\ny", "1\n", "line"),
        ("x = |\ny", "1", None),
        ("def f():\n    |", "a = 1\n    b = 2\n", None),
        ("def f():\n    |", "a = 1\n    b = 2\nc", "block"),
        ("def f():|", "\n    a = 1\n", None),
        ("def f():|", "\n    a = 1\nb", "block"),
        ("def f():\n    |\n    return total\n", "total = 1\n    return total\n", "suffix"),
        ("import os\n|", "def f():\n    return 1\n\n\n", None),
        ("import os\n|", "def f():\n    return 1\n\n\ndef", "block"),
        ("import os\n|", "x = (\n\n1", None),
    ],
)
def test_why_a_text_is_over(marked: str, raw: str, reason: str | None) -> None:
    hole = hole_at(marked)
    assert StopRule(hole, wants_lines(hole, "auto")).reason(raw) == reason


def test_stop_texts() -> None:
    assert StopRule(hole_at("x = |"), False, texts=("END",)).reason("1 END") == "stop_text"
