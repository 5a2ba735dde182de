"""Run by the oracle interpreter: for every path on stdin print one JSON line with the symbol tables of the file.

Imports nothing of the project: the interpreter that runs it has only its own standard library.
"""

import json
import symtable
import sys


def describe(table):
    """[type, name, line, {symbol: "local" | "global" | "free"}, children]."""
    symbols = {}
    for symbol in table.get_symbols():
        if symbol.is_declared_global():
            kind = "declared"
        elif symbol.is_local():
            kind = "local"
        elif symbol.is_free():
            kind = "free"
        else:
            kind = "global"
        symbols[symbol.get_name()] = kind
    kind = getattr(table.get_type(), "value", table.get_type())
    return [kind, table.get_name(), table.get_lineno(), symbols, [describe(child) for child in table.get_children()]]


def main():
    for line in sys.stdin:
        path = line.rstrip("\n")
        with open(path, "rb") as file:
            source = file.read()
        try:
            answer = describe(symtable.symtable(source, path, "exec"))
        except (SyntaxError, ValueError) as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
