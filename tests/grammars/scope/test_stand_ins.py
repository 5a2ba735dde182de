"""Scope views where the statement at the cursor cannot be read: what is around it counts all the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grammars.scope_position import PLACEHOLDER
from grammars.scope_stand_ins import stand_ins
from grammars.scopes import visible_names

BROKEN = [
    # What the text after the cursor needs is missing: an opening bracket, a header, the end of a condition.
    "def f(data):\n    local = Sor|\n        key=1,\n    )\n    return local\n",
    "def f(data):\n    local = []\n|\n        local.append(item)\n    return local\n",
    "def f(data):\n    local = 0\n    while data |\n        local += 1\n    return local\n",
    "def f(data):\n    local = 0\n    for x in data:\n|\n            local += 1\n        else:\n            pass\n",
    "def f(data):\n    local = {1: 1,\n|\n        try:\n            pass\n        except E:\n            pass\n",
    # The statement is not begun well.
    "def f(data):\n    local = 1\n    from .|\n    return local\n",
    "def f(data):\n    local = 1\n    x = (lambda q: |) for\n    return local\n",
    "def f(data):\n    local = 1\n    foo(a b, |\n    return local\n",
]


@pytest.mark.parametrize("marked", BROKEN)
def test_names_around_a_broken_statement_are_known(marked: str) -> None:
    before, _, after = marked.partition("|")
    seen = visible_names(before + after, len(before))
    assert seen.escape_hatch is None
    assert {"data", "f", "print"} <= seen.names
    assert ("local" in seen.names) or "local = " not in before.rpartition("\n")[0]
    assert "missing" not in seen.names


def test_the_words_of_a_statement_that_cannot_be_read_count_as_names() -> None:
    text = "def f():\n    x = (lambda quite: qu) for\n    return x\n"
    seen = visible_names(text, text.index("qu)") + 2)
    assert seen.escape_hatch is None
    assert "quite" in seen.names
    assert "qu" not in seen.names, "what is being typed is no name yet"
    assert seen.prefix == "qu"


@given(st.text("ab:=()[]{}'\" \n\t#\\,.é", max_size=80), st.data())
def test_stand_ins_are_edits_around_the_cursor(text: str, data: st.DataObject) -> None:
    raw = text.encode()
    offset = data.draw(st.integers(0, len(raw)))
    for start, end, statement in stand_ins(raw, offset):
        assert 0 <= start <= offset <= end <= len(raw)
        assert PLACEHOLDER in statement
        assert start == 0 or raw[start - 1 : start] == b"\n"
        assert end == len(raw) or raw[end : end + 1] == b"\n"
    visible_names(raw, offset)


def test_a_broken_literal_of_a_thousand_lines_is_left_alone() -> None:
    code = "x = [\n" + "    f(a=1, b=[2, 3]),\n" * 5_000 + "    g(h ⌖ i j),\n]\n"
    seen = visible_names(code.replace("⌖", ""), code.index("⌖"))
    assert seen.escape_hatch == "syntax error"
