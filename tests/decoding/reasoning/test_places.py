"""Where a change is made: what messages, tracebacks and late diagnostics point at."""

from __future__ import annotations

import pytest

from decoding.errors import BadInput
from decoding.reasoning.places import settled
from decoding.reasoning.requests import Problem
from decoding.reasoning.source import Source
from tests.decoding.reasoning.fakes import ScriptedBackend, ask, user_text

CODE = "import os\n\n\ndef one():\n    return uno\n\n\ndef two():\n    return dos\n"
ELSEWHERE = 'Traceback (most recent call last):\n  File "/far/away.py", line 2, in f\n    x\nNameError: '


def source(text: str = CODE) -> Source:
    return Source(text.encode(), 0, 0, "file:///project/shop.py")


def asked_about(marked: str, message: str = "", **fields: object) -> str:
    """The code that `fix` shows to the model."""
    backend = ScriptedBackend("    return 1\n```")
    ask(backend, "fix", marked, text=message, **fields)
    return user_text(backend.turns[0]).partition("```python\n")[2].partition("\n```")[0]


def test_a_file_without_a_line_is_fixed_where_something_is_found() -> None:
    assert asked_about("⟦⟧" + CODE, "NameError: name 'dos' is not defined").startswith("def two")
    assert asked_about("⟦⟧" + CODE.replace("import os\n", "")).startswith("def one")
    assert asked_about("⟦⟧" + CODE.replace("return dos", "return (")).startswith("def two")


def test_what_we_find_ourselves_is_looked_for_afterwards() -> None:
    backend = ScriptedBackend("    return dos\n```", "    return 2\n```")
    result, _ = ask(backend, "fix", CODE.replace("return dos", "return dos + 1⟦⟧"), tries=2)
    assert "undefined name 'dos' (in the line `return dos + 1`)" in user_text(backend.turns[0])
    assert "gone: undefined name 'dos'" in result.checks
    assert result.tries == 2


def test_a_traceback_from_elsewhere_leaves_the_place_to_the_user() -> None:
    assert asked_about(CODE.replace("return uno", "⟦⟧return uno"), ELSEWHERE + "x").startswith("def one")
    assert asked_about("⟦⟧" + CODE, ELSEWHERE + "name 'dos' is not defined").startswith("def two")
    assert asked_about("⟦⟧" + CODE, ELSEWHERE + "name 'x' is not defined") == CODE.strip()


def test_a_traceback_that_is_older_than_the_file_is_no_place() -> None:
    late = 'File "/project/shop.py", line 900, in two\n'
    assert asked_about(CODE.replace("return uno", "⟦⟧return uno"), late).startswith("def one")


@pytest.mark.parametrize(
    ("start", "message", "line"),
    [
        (CODE.index("return uno"), "undefined name 'dos'", "    return dos"),  # lines were added or taken away
        (CODE.index("return dos"), "undefined name 'dos'", "    return dos"),
        (CODE.index("import"), "`uno` is not defined", "    return uno"),
        (9_000, "undefined name 'uno'", "    return uno"),
        (CODE.index("return uno"), "undefined name 'tres'", "    return uno"),  # it is gone: where it was
        (CODE.index("return uno"), "line too long", "    return uno"),
    ],
)
def test_a_stale_diagnostic_moves_to_the_line_that_it_speaks_of(start: int, message: str, line: str) -> None:
    found = settled(source(), Problem(start=start, end=start + 3, message=message))
    begin = CODE.rfind("\n", 0, found.start) + 1
    assert CODE[begin : CODE.index("\n", begin)] == line
    assert found.start <= found.end <= len(CODE)


def test_a_stale_diagnostic_is_fixed_where_it_is_now() -> None:
    moved = Problem(start=CODE.index("one"), end=CODE.index("one") + 3, message="undefined name 'dos'")
    assert asked_about("⟦⟧" + CODE, problems=(moved,)).startswith("def two")


def test_an_instruction_that_leaves_no_room_is_refused_in_a_line() -> None:
    with pytest.raises(BadInput, match="shorten it"):
        ask(ScriptedBackend("x"), "edit", CODE.replace("one", "⟦⟧one"), text="please " * 1500)
