"""How long the scope index takes to follow one keystroke, view at the cursor included.

    python -m tests.benchmarks.scope_refresh [--strokes N] [--lines 500 3000] [--json]

For each size, files of the running interpreter's standard library nearest to that many lines are opened; in each,
lines chosen by a fixed seed are emptied and typed again character by character. One sample is what a request pays:
`ScopeIndex.edited` for the keystroke and `view` at the new cursor. Files that declare a star import count too.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sysconfig
import time
from pathlib import Path

from grammars.scope_index import ScopeIndex
from grammars.scopes import view


def files_of(lines: int, count: int) -> list[Path]:
    """The `count` standard-library files whose line counts are nearest to `lines`."""
    root = Path(sysconfig.get_path("stdlib"))
    sized = [(abs(path.read_bytes().count(b"\n") - lines), path) for path in sorted(root.glob("*.py"))]
    return [path for _, path in sorted(sized)[:count]]


def keystrokes(path: Path, strokes: int, chance: random.Random) -> list[tuple[float, float]]:
    """(milliseconds of the edit, of the view) of `strokes` keystrokes in one file."""
    text = path.read_bytes()
    samples: list[tuple[float, float]] = []
    starts = [0, *(i + 1 for i, byte in enumerate(text) if byte == 0x0A)]
    index = ScopeIndex.of(text)
    while len(samples) < strokes:
        start = chance.choice(starts)
        end = text.find(b"\n", start)
        line = text[start:end]
        if end < 0 or not line.strip() or not line.isascii():
            continue
        typed = index.edited(start, end, b"")
        for i in range(len(line)):
            begin = time.perf_counter()
            typed = typed.edited(start + i, start + i, line[i : i + 1])
            middle = time.perf_counter()
            view(typed, start + i + 1)
            samples.append(((middle - begin) * 1e3, (time.perf_counter() - middle) * 1e3))
    return samples[:strokes]


def measure(lines: int, strokes: int, files: int = 5) -> dict[str, float]:
    """Percentiles over `strokes` keystrokes, spread over `files` files of about `lines` lines, in milliseconds."""
    chance = random.Random(lines)
    samples = [s for path in files_of(lines, files) for s in keystrokes(path, strokes // files, chance)]
    totals = sorted(edit + seen for edit, seen in samples)
    return {
        "lines": lines,
        "keystrokes": len(totals),
        "p50_ms": statistics.median(totals),
        "p90_ms": totals[int(0.90 * len(totals))],
        "p99_ms": totals[int(0.99 * len(totals))],
        "max_ms": totals[-1],
        "edit_p50_ms": statistics.median(edit for edit, _ in samples),
        "view_p50_ms": statistics.median(seen for _, seen in samples),
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--strokes", type=int, default=3000)
    parser.add_argument("--lines", type=int, nargs="+", default=[500, 3000])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    results = [measure(lines, options.strokes) for lines in options.lines]
    report = {"load": os.getloadavg(), "python": sysconfig.get_python_version(), "results": results}
    if options.json:
        print(json.dumps(report))
        return
    print(f"Python {report['python']}, load average {os.getloadavg()[0]:.2f}")
    for row in results:
        print("  ".join(f"{name} {value:.2f}" if "ms" in name else f"{name} {value}" for name, value in row.items()))


if __name__ == "__main__":
    main()
