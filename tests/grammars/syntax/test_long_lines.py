"""Lines and statements that are data: the constraints stay out of them, whatever they hold."""

from __future__ import annotations

import pytest

from grammars.python_cursor import open_at_cursor
from grammars.python_filling import Gap
from grammars.python_lines import LONGEST_LINE, has_long_line
from grammars.scope_documents import ScopeDocuments

TOP = b"import os\n\n\ndef f(a):\n    return a\n\n\n"
LINES = {
    "list": b"x = [" + b"1, " * 60_000,
    "attributes": b"x = a" + b".b" * 60_000,
    "operators": b"x = a" + b" + a" * 60_000,
    "unary": b"x = " + b"-" * 60_000,
    "brackets": b"x = " + b"(" * 60_000,
    "calls": b"x = " + b"f(a" * 60_000,
    "statements": b"a; " * 60_000,
    "lambdas": b"x = " + b"lambda: " * 60_000,
    "string": b"x = '" + b"lorem ipsum " * 30_000,
    "characters": b"x = '" + "😀é".encode() * 60_000,
    "no Python": b"lorem ipsum " * 30_000,
}


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_a_line_of_60_000_tokens(line: bytes) -> None:
    for before in (TOP + line, line):
        assert open_at_cursor(before).off_reason == "the line at the cursor is too long"
        assert Gap.at(before + b"\n", len(before)).fits(b")\n")
        assert ScopeDocuments().index("a", before + b"\nprint(x)\n") is None


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_next_to_such_a_line_code_is_code(line: bytes) -> None:
    assert open_at_cursor(TOP + b"# " + line + b"\nx = f(").off_reason is None
    assert Gap.at(TOP + b"\n# " + line, len(TOP)).fits(b"x = f(1)")


def test_a_statement_of_many_lines() -> None:
    rows = b"x = [\n" + b"    (1, 'abc', 2.5),\n" * 8_000
    assert open_at_cursor(TOP + rows).off_reason == "the statement at the cursor is too long"
    assert open_at_cursor(TOP + rows + b"]\ny = f(").off_reason is None


def test_which_lines_are_long() -> None:
    long, short = b"a" * (LONGEST_LINE + 1), b"a" * LONGEST_LINE
    assert has_long_line(long)
    assert not has_long_line(short)
    assert has_long_line(b"\n" + short + b"\n" + long + b"\n" + short)
    assert not has_long_line((short + b"\n") * 3)
    text = b"x\n" + long + b"\ny"
    assert [has_long_line(text, at, at) for at in (0, 1, 2, 50, len(text) - 2, len(text) - 1, len(text))] == [
        False, False, True, True, True, False, False,
    ]  # fmt: skip
