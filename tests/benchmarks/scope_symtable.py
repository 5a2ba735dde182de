"""Agreement with the `symtable` module: the scope of every name in the standard library of Python 3.13.

python -m tests.benchmarks.scope_symtable [--every N] [--json]
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from tests.grammars.scope.agreement import disagreements
from tests.grammars.scope.oracle import oracle_python, stdlib_files, symbol_tables


def count_symbols(table: Any) -> int:
    """Symbols of a table and of all tables in it."""
    return len(table[3]) + sum(count_symbols(child) for child in table[4])


def main() -> None:
    """Print how many files and symbols agree, and every disagreement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    python = oracle_python()
    if python is None:
        parser.error("needs Python 3.13 as `python3.13` on PATH or in DRAFTWOOD_PYTHON313")
    files = stdlib_files(python)[:: options.every]
    compared = symbols = 0
    differing: dict[str, list[str]] = {}
    for path, table in zip(files, symbol_tables(python, files), strict=True):
        if "error" in table:
            continue
        compared, symbols = compared + 1, symbols + count_symbols(table)
        if found := list(disagreements(path.read_bytes(), table, inlined=True)):
            differing[f"{path.parent.name}/{path.name}"] = found
    if options.json:
        print(json.dumps({"files": compared, "symbols": symbols, "differing": differing}))
        return
    print(f"{compared} files, {symbols} symbols, {len(differing)} files differ")
    for name, found in differing.items():
        print(f"  {name}: {found[0]}")


if __name__ == "__main__":
    main()
