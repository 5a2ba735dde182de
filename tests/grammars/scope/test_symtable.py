"""Our scopes against CPython's own: on the standard library, and on programs made of nested scopes."""

from __future__ import annotations

import symtable
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.grammars.scope.agreement import disagreements
from tests.grammars.scope.oracle import require_oracle, stdlib_files, symbol_tables
from tests.grammars.scope.symtable_script import describe

_EVERY = 12  # every file: tests/benchmarks/scope_symtable.py
# tree-sitter cannot read one function of this file (a line in brackets that is indented less than its statement).
_UNREADABLE = {("test", "test_compile.py")}


def test_standard_library() -> None:
    python = require_oracle()
    files = [path for path in stdlib_files(python)[::_EVERY] if path.parts[-2:] not in _UNREADABLE]
    wrong: dict[str, list[str]] = {}
    for path, table in zip(files, symbol_tables(python, files), strict=True):
        if "error" not in table and (found := list(disagreements(path.read_bytes(), table, inlined=True))):
            wrong[path.name] = found[:3]
    assert wrong == {}


_NAMES = st.sampled_from(["a", "b", "c", "d"])


def _indented(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


def _expressions() -> st.SearchStrategy[str]:
    return st.recursive(
        _NAMES,
        lambda inner: st.one_of(
            st.builds("[{} for {} in {} if {}]".format, inner, _NAMES, inner, inner),
            st.builds("{{{}: {} for {}, {} in {}}}".format, inner, inner, _NAMES, _NAMES, inner),
            st.builds("f({} for {} in {})".format, inner, _NAMES, inner),
            st.builds("(lambda {}={}: {})".format, _NAMES, inner, inner),
            st.builds("({}.b[{}], {})".format, _NAMES, inner, inner),
        ),
        max_leaves=5,
    )


def _simple_statements() -> st.SearchStrategy[list[str]]:
    lines = st.one_of(
        st.builds("{} = {}".format, _NAMES, _expressions()),
        st.builds("{}, *{}, ({}.x, [{}]) = {}".format, _NAMES, _NAMES, _NAMES, _NAMES, _expressions()),
        st.builds("{}: {}".format, _NAMES, _NAMES),
        st.builds("{} += {}".format, _NAMES, _expressions()),
        st.builds("print({} := {})".format, _NAMES, _NAMES),
        st.builds("del {}, {}.x".format, _NAMES, _NAMES),
        st.builds("import {}.{}, {} as {}".format, _NAMES, _NAMES, _NAMES, _NAMES),
        st.builds("from .{} import {}, {} as {}".format, _NAMES, _NAMES, _NAMES, _NAMES),
        _expressions(),
    )
    return lines.map(lambda line: [line])


def _compound(inner: st.SearchStrategy[list[str]]) -> st.SearchStrategy[list[str]]:
    body = st.lists(inner, min_size=1, max_size=3).map(lambda blocks: _indented([x for block in blocks for x in block]))

    def headed(*parts: st.SearchStrategy[str] | str) -> st.SearchStrategy[list[str]]:
        header = st.tuples(*(st.just(p) if isinstance(p, str) else p for p in parts)).map("".join)
        return st.builds(lambda head, lines: [head, *lines], header, body)

    return st.one_of(
        headed("def ", _NAMES, "(", _NAMES, "=", _expressions(), ", *e, f: ", _NAMES, " = 1, **g):"),
        headed("@", _NAMES, "\ndef ", _NAMES, "():").map(lambda lines: [*lines[0].split("\n"), *lines[1:]]),
        headed("class ", _NAMES, "(", _expressions(), "):"),
        headed("for ", _NAMES, ", ", _NAMES, " in ", _expressions(), ":"),
        headed("with ", _expressions(), " as (", _NAMES, ", ", _NAMES, "):"),
        headed("if ", _expressions(), ":"),
        st.builds(lambda name, a, b: ["try:", *a, f"except E as {name}:", *b], _NAMES, body, body),
        st.builds(
            lambda subject, one, two, rest, lines: [
                f"match {subject}:",
                f"    case C([{one}, *{rest}], x={two}) | " + f"{{'k': ({one} as {two}), **{rest}}}:",
                *_indented(lines),
            ],
            _NAMES,
            st.just("m"),
            st.just("n"),
            st.just("o"),
            body,
        ),
    )


_PROGRAMS = st.lists(st.recursive(_simple_statements(), _compound, max_leaves=8), min_size=1, max_size=4).map(
    lambda blocks: "\n".join(line for block in blocks for line in block) + "\n"
)


def _table(source: str) -> Any:
    try:
        return describe(symtable.symtable(source, "program", "exec"))
    except SyntaxError:
        return None  # the generator makes some programs that Python forbids, such as `(a := 1)` over a parameter


@settings(max_examples=150, deadline=None)
@given(_PROGRAMS)
def test_nested_scopes(source: str) -> None:
    table = _table(source)
    if table is not None:
        assert list(disagreements(source.encode(), table, inlined=sys.version_info >= (3, 12))) == []


@pytest.mark.parametrize(
    "source",
    [
        "def f():\n    global x\n    x = 1\n    def g():\n        nonlocal y\n        y = x\n    y = 2\n",
        "def f():\n    x = 1\n    def g():\n        global x\n        def h(): return x\n",
        "class A:\n    global x\n    x = 1\n    def f(self): return x\n",
        "def f(x):\n    (x): int\n    (y): int\n    z: int\n    return y, z\n",
        "class A:\n    __x = 1\n    def f(self): return __x\n",
    ],
)
def test_declarations(source: str) -> None:
    assert list(disagreements(source.encode(), _table(source), inlined=sys.version_info >= (3, 12))) == []
