"""Soundness on real code: a name that a file reads is never missing where it was cut out, nor refused bytewise."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from grammars.scope_constraint import ScopeConstraint
from grammars.scope_index import ScopeIndex
from grammars.scopes import view
from grammars.vocabulary import Vocabulary
from tests.grammars.scope.oracle import name_loads, require_oracle, stdlib_files

_FILES, _LOADS = 60, 10  # every load of every file: tests/benchmarks/scope_loads.py
# Names that the standard library reads and nobody ever binds.
_UNDEFINED = {
    *(("test_rpc.py", name) for name in "abc"),
    *(("__init__.py", name) for name in ("_findvar1_rx", "_findvar2_rx")),
    ("test_pathlib_abc.py", "q"),
}


@pytest.fixture(scope="module")
def cuts() -> list[tuple[Path, ScopeIndex, int, bytes]]:
    """(file, index without the name, where it was, the name) of a sample of loads."""
    return list(_cuts())


def _cuts() -> Iterator[tuple[Path, ScopeIndex, int, bytes]]:
    python = require_oracle()
    chance = random.Random(7)
    files = chance.sample([path for path in stdlib_files(python) if path.stat().st_size < 200_000], _FILES)
    for path, loads in zip(files, name_loads(python, files), strict=True):
        index = ScopeIndex.of(path.read_bytes())
        for start, length, name in chance.sample(loads or [], min(_LOADS, len(loads or []))):
            if (path.name, name) not in _UNDEFINED:
                yield path, index.edited(start, start + length, b""), start, index.text[start : start + length]


def test_views_hold_the_names(cuts: list[tuple[Path, ScopeIndex, int, bytes]]) -> None:
    views = [(path, start, name, view(index, start)) for path, index, start, name in cuts]
    active = [(path, start, name, seen) for path, start, name, seen in views if seen.escape_hatch is None]
    assert [(path.name, start, name) for path, start, name, seen in active if name.decode() not in seen.names] == []
    assert len(active) / len(views) >= 0.75  # over every load: 0.85


def test_the_hard_constraint_permits_the_names(cuts: list[tuple[Path, ScopeIndex, int, bytes]]) -> None:
    bytewise = ScopeConstraint(Vocabulary.from_tokens([bytes([byte]) for byte in range(256)]))
    refused = []
    for path, index, start, name in cuts[::2]:
        state = bytewise.open(index, start, "hard")
        if state.validate(list(name)) < len(name):
            refused.append((path.name, start, name))
    assert refused == []
