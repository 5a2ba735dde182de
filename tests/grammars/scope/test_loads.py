"""Soundness on real code: the name that a file reads is never missing from the view where it was cut out."""

from __future__ import annotations

import random

from grammars.scope_index import ScopeIndex
from grammars.scopes import view
from tests.grammars.scope.oracle import name_loads, require_oracle, stdlib_files

_FILES, _LOADS = 60, 10  # every load of every file: tests/benchmarks/scope_loads.py


def test_standard_library_loads() -> None:
    python = require_oracle()
    chance = random.Random(7)
    files = chance.sample(stdlib_files(python), _FILES)
    masked, active, total = [], 0, 0
    for path, loads in zip(files, name_loads(python, files), strict=True):
        index = ScopeIndex.of(path.read_bytes())
        for start, length, name in chance.sample(loads or [], min(_LOADS, len(loads or []))):
            cut = view(index.edited(start, start + length, b""), start)
            total += 1
            active += cut.escape_hatch is None
            if cut.escape_hatch is None and name not in cut.names:
                masked.append((path.name, start, name))
    assert masked == []
    assert active / total >= 0.75  # over every load: 0.82
