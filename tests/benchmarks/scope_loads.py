"""How often the scope view misses a name that real code reads: over the standard library of Python 3.13.

    python -m tests.benchmarks.scope_loads [--every N] [--shard I/N] [--json]

At every N-th name load of every file, the name is cut out, the rest of the file is kept, and the view at the hole is
asked. A load counts as active where the view has no escape hatch (only there may a hard constraint forbid anything),
and as masked where the name is missing from an active view; every masked one is listed.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

from grammars.scope_index import ScopeIndex
from grammars.scopes import view
from tests.grammars.scope.oracle import name_loads, oracle_python, stdlib_files


def measure(python: str, files: list[Path], every: int) -> dict[str, object]:
    """Counts over every `every`-th load of `files`."""
    total = active = skipped = 0
    masked: list[str] = []
    hatches: Counter[str] = Counter()
    for path, loads in zip(files, name_loads(python, files), strict=True):
        index = ScopeIndex.of(path.read_bytes())
        for start, length, name in loads or []:
            skipped += 1
            if skipped % every:
                continue
            seen = view(index.edited(start, start + length, b""), start)
            total += 1
            if seen.escape_hatch is not None:
                hatches[seen.escape_hatch] += 1
                continue
            active += 1
            if name not in seen.names:
                masked.append(f"{path.parent.name}/{path.name}:{index.text.count(10, 0, start) + 1} {name}")
    return {"files": len(files), "loads": total, "active": active, "masked": masked, "hatches": dict(hatches)}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--shard", default="0/1", help="I/N: every N-th file, beginning with file I")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    python = oracle_python()
    if python is None:
        parser.error("needs Python 3.13 as `python3.13` on PATH or in DRAFTWOOD_PYTHON313")
    shard, _, shards = options.shard.partition("/")
    row = measure(python, stdlib_files(python)[int(shard) :: int(shards)], options.every)
    if options.json:
        print(json.dumps(row))
        return
    loads, active, masked = row["loads"], row["active"], row["masked"]
    assert isinstance(loads, int)
    assert isinstance(active, int)
    assert isinstance(masked, list)
    print(f"{row['files']} files, {loads} loads, {100 * active / max(1, loads):.1f}% active, hatches {row['hatches']}")
    print(f"masked {len(masked)} ({100 * len(masked) / max(1, loads):.4f}%)", *masked, sep="\n  ")


if __name__ == "__main__":
    main()
