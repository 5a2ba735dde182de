"""Run by the oracle interpreter: for every path on stdin print one JSON line with the name loads of the file.

Imports nothing of the project: the interpreter that runs it has only its own standard library.
"""

import ast
import json
import sys


def loads_of(source):
    """[[byte offset, length in bytes, name], …] of every name that is read, in order."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            start = starts[node.lineno - 1] + node.col_offset
            found.append([start, node.end_col_offset - node.col_offset, node.id])
    return sorted(found)


def main():
    for line in sys.stdin:
        with open(line.rstrip("\n"), "rb") as file:
            source = file.read()
        try:
            answer = loads_of(source)
        except (SyntaxError, ValueError):
            answer = None
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
