"""Undefined-name cases of pyflakes' tests: what it reports is not visible, everything else it reads is."""

from __future__ import annotations

import ast
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from grammars import visible_names

_DATA = Path(os.environ.get("DRAFTWOOD_DATA", Path(__file__).parents[4] / "shared" / "data"))
_CASES = _DATA / "undefined_names" / "pyflakes_dev.jsonl"


@pytest.fixture(scope="module")
def cases() -> list[dict[str, object]]:
    if not _CASES.exists():
        pytest.skip("needs the undefined_names data set (DRAFTWOOD_DATA)")
    return [json.loads(line) for line in _CASES.read_text("utf-8").splitlines()]


def offset_of(source: str, line: int, column: int) -> int:
    lines = source.split("\n")
    before = sum(len(earlier) + 1 for earlier in lines[: line - 1])
    return before + len(lines[line - 1].encode()[:column].decode())


def reported(case: dict) -> Iterator[tuple[int, str]]:
    """(offset, name) of every undefined name that pyflakes reports in a case."""
    source = case["source"]
    for kind, line, column, text in case["messages"]:
        if kind in ("UndefinedName", "UndefinedLocal"):
            name = text.split("'")[1]
            yield source.index(name, offset_of(source, line, column)), name


def test_names_that_are_reported_are_not_visible(cases: list) -> None:
    found = [(case, offset, name) for case in cases for offset, name in reported(case)]
    assert len(found) >= 40
    wrong = []
    for case, offset, name in found:
        view = visible_names(case["source"], offset)
        if view.escape_hatch or name in view.names:
            wrong.append((case["name"], name))
    assert wrong == []


def test_names_that_are_not_reported_are_visible(cases: list) -> None:
    wrong, loads = [], 0
    for case in cases:
        undefined = set(reported(case))
        for node in ast.walk(ast.parse(case["source"])):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                offset = offset_of(case["source"], node.lineno, node.col_offset)
                view = visible_names(case["source"], offset)
                loads += 1
                known = node.id in view.names or view.escape_hatch or (offset, node.id) in undefined
                wrong += [] if known else [(case["name"], node.id, node.lineno)]
    assert loads >= 500
    assert wrong == []
