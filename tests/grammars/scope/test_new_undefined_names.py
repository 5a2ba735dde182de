"""What a text reads that nothing binds, in the document that it was put into."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from grammars.scope_index import ScopeIndex
from grammars.undefined_names import new_undefined_names, undefined_names


def found(marked: str, new: bool = True) -> list[str]:
    """The names between the two marks."""
    before, text, after = marked.split("|")
    index = ScopeIndex.of((before + text + after).encode())
    start = len(before.encode())
    names = (new_undefined_names if new else undefined_names)(index, start, start + len(text.encode()))
    assert all(index.text[each.offset :].startswith(each.name.encode()) for each in names)
    return [each.name for each in names]


@pytest.mark.parametrize(
    ("marked", "names"),
    [
        ("|print(x)|\n", ["x"]),
        ("|x = 1\nprint(x, y)|\n", ["y"]),
        ("|f(key=1, other=value)|\n", ["f", "value"]),
        ("|a.b.c|\n", ["a"]),
        ("|sum(i for i in range(3))|\n", []),
        ("|sum(i for i in i)|\n", ["i"]),
        ("|sum(j for i in range(3))|\n", ["j"]),
        ("|lambda z: z + w|\n", ["w"]),
        ("|for k in k: print(k)|\n", ["k"]),
        ("|for _ in range(3): print(last); last = 1|\n", []),
        ("|x: int = y|\n", ["y"]),
        ("|def f(a: B = c) -> D: return a|\n", ["B", "c", "D"]),
        ("|@deco\ndef f(): return later|\nlater = 1\n", ["deco"]),
        ("|print(later)|\nlater = 1\n", ["later"]),
        ("|f'{x} {y!r} x'|\n", ["x", "y"]),
        ("|'x'  # x|\n", []),
        ("|import a.b, c as d\na, d, c|\n", ["c"]),
        ("|global g|\n", []),
        ("|del x|\n", ["x"]),
        ("class A:\n    def f(self):\n        return |self.x + B(y)|\n\nclass B: pass\n", ["y"]),
        ("def f():\n    x = 1\n\ndef g():\n    return |x|\n", ["x"]),
        ("from a import *\n|print(x)|\n", []),
        ("|print(x|\n", []),  # cannot be read
        ("|print(x)|\nprint(x)\n", []),  # the user's own: undefined already
        ("|x(1)|\ndef f(x): return x\n", ["x"]),
        ("|try:\n    é = ü\nexcept Error as e:\n    print(e)\nprint(e)|\n", ["ü", "Error", "e"]),
        ("|match a:\n    case Point(x=y): print(y)\n    case _: z|\n", ["a", "z"]),
        ("fu|n|\n", ["fun"]),
    ],
)
def test_what_is_undefined(marked: str, names: list[str]) -> None:
    if marked.startswith("fu"):
        index = ScopeIndex.of(b"fun\n")
        assert [each.name for each in new_undefined_names(index, 2, 3)] == names
        return
    assert found(marked) == names


def test_what_the_user_left_undefined_is_listed_but_not_new() -> None:
    assert found("|print(x)|\nprint(x)\n", new=False) == ["x"]


def test_against_what_pyflakes_reports() -> None:
    data = Path(os.environ.get("DRAFTWOOD_DATA", Path(__file__).parents[4] / "shared" / "data"))
    file = data / "undefined_names" / "pyflakes_dev.jsonl"
    if not file.exists():
        pytest.skip("needs the undefined_names data set (DRAFTWOOD_DATA)")
    seen = reported = 0
    for case in map(json.loads, file.read_text("utf-8").splitlines()):
        source = case["source"].encode()
        index = ScopeIndex.of(source)
        mine = {(each.name, line_of(source, each.offset)) for each in undefined_names(index, 0, len(source))}
        kinds = ("UndefinedName", "UndefinedLocal")
        theirs = {(text.split("'")[1], line) for kind, line, _, text in case["messages"] if kind in kinds}
        assert mine <= theirs, case["name"]
        seen, reported = seen + len(mine), reported + len(theirs)
    assert seen >= 0.85 * reported  # not what is written as a string, nor a name that is read again once deleted


def line_of(source: bytes, offset: int) -> int:
    return source.count(b"\n", 0, offset) + 1
