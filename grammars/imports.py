"""The import that a completion lacks: which module, and where its line belongs.

Placement follows isort's sections (future, standard library, third party, first party), in the order that isort and
ruff call "force-sort-within-sections off": plain imports before `from` imports. Knows the scope index; must not know
the protocol: an edit is a byte offset and text.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass

from tree_sitter import Node

from grammars.scope_index import ScopeIndex
from grammars.scopes import view
from grammars.signatures import statement_of

# The names under which people know a module; nothing else is imported by guess.
WELL_KNOWN = {
    **{
        name: f"import {name}"
        for name in [
            "abc",
            "argparse",
            "array",
            "ast",
            "asyncio",
            "base64",
            "bisect",
            "calendar",
            "collections",
            "contextlib",
            "copy",
            "csv",
            "dataclasses",
            "datetime",
            "decimal",
            "enum",
            "fractions",
            "functools",
            "glob",
            "gzip",
            "hashlib",
            "heapq",
            "importlib",
            "inspect",
            "io",
            "itertools",
            "json",
            "logging",
            "math",
            "multiprocessing",
            "operator",
            "os",
            "pathlib",
            "pickle",
            "platform",
            "queue",
            "random",
            "re",
            "secrets",
            "shutil",
            "signal",
            "socket",
            "sqlite3",
            "statistics",
            "string",
            "struct",
            "subprocess",
            "sys",
            "tempfile",
            "textwrap",
            "threading",
            "time",
            "traceback",
            "types",
            "typing",
            "unittest",
            "urllib",
            "uuid",
            "warnings",
            "weakref",
            "zipfile",
            "zlib",
            "pytest",
            "requests",
        ]
    },
    "np": "import numpy as np",
    "pd": "import pandas as pd",
    "plt": "import matplotlib.pyplot as plt",
    "tf": "import tensorflow as tf",
    "torch": "import torch",
    "Path": "from pathlib import Path",
    "dataclass": "from dataclasses import dataclass",
    "defaultdict": "from collections import defaultdict",
    "Counter": "from collections import Counter",
    "deque": "from collections import deque",
    "partial": "from functools import partial",
    "Any": "from typing import Any",
}
_USE = re.compile(r"(?<![\w.])([A-Za-z_]\w*)(?=\s*([.(\[]|))")
_STRINGS = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|#[^\n]*")
_FUTURE, _STANDARD, _THIRD_PARTY, _LOCAL = range(4)


@dataclass(frozen=True, slots=True)
class ImportEdit:
    """Insert `text` at byte `offset` of the document, to import `name`."""

    name: str
    offset: int
    text: str


def missing_imports(index: ScopeIndex, offset: int, completion: str) -> tuple[ImportEdit, ...]:
    """The imports that `completion`, inserted at byte `offset`, lacks: of well-known modules only, and only of names
    that nothing in the document binds. None where the scope view has an escape hatch: then nobody knows."""
    seen = view(index, offset)
    if seen.escape_hatch is not None:
        return ()
    typed = seen.prefix + completion
    used = [match for match in _USE.finditer(_STRINGS.sub("", typed)) if match[1] in WELL_KNOWN]
    # A module is used through a dot; a bare `time` is more likely to be a variable of that name.
    wanted = [
        match[1] for match in used if match[2] == "." or not WELL_KNOWN[match[1]].startswith(f"import {match[1]}")
    ]
    bound = {name for frame in seen.frames for name in frame.local_names} | seen.names
    bound |= set(re.findall(r"(?<![\w.])(\w+)\s*(?==(?!=)|:=|\bin\b)", typed))
    edits = [import_edit(index, name) for name in dict.fromkeys(wanted) if name not in bound]
    return tuple(edit for edit in edits if edit.offset <= offset)


def import_edit(index: ScopeIndex, name: str) -> ImportEdit:
    """Where the import of a well-known name belongs. Raises KeyError for another name."""
    line = WELL_KNOWN[name]
    key = _sort_key(line)
    newline = "\r\n" if b"\r\n" in index.text else "\n"
    imports = _imports(index)
    section = [(number, text) for number, text in imports if _section(text) == key[0]]
    smaller = [number for number, text in section if _sort_key(text) < key]
    earlier = [number for number, text in imports if _section(text) < key[0]]
    if smaller:
        return ImportEdit(name, *_behind(index, smaller[-1], "", line, newline))
    if section:
        return ImportEdit(name, _start_of_statement(index, section[0][0]), line + newline)
    if earlier:
        return ImportEdit(name, *_behind(index, earlier[-1], newline, line, newline))
    if imports:
        return ImportEdit(name, _start_of_statement(index, imports[0][0]), line + newline + newline)
    return _first_import(index, name, line, newline)


def _behind(index: ScopeIndex, entry: int, gap: str, line: str, newline: str) -> tuple[int, str]:
    """(offset, text) of a line behind a statement, `gap` between them."""
    end = _end_of_statement(index, entry)
    unended = newline if end and not index.text[:end].endswith((b"\n", b"\r")) else ""
    return end, unended + gap + line + newline


def _first_import(index: ScopeIndex, name: str, line: str, newline: str) -> ImportEdit:
    """An import where there is none: behind the module's comments and docstring."""
    first = index.entries[0]
    node = statement_of(first) if not first.facts.damaged else None
    if node is None:
        return ImportEdit(name, 0, line + newline)
    if node.type == "expression_statement" and node.named_children and node.named_children[0].type == "string":
        offset, text = _behind(index, 0, newline, line, newline)
        rest = index.text[offset:]
        return ImportEdit(
            name, offset, text + (newline if rest.strip() and not rest.startswith((b"\n", b"\r")) else "")
        )
    return ImportEdit(name, _start_of_statement(index, 0), line + newline + newline)


def _imports(index: ScopeIndex) -> list[tuple[int, str]]:
    """(entry, text) of the import statements at the head of the module: those before anything else."""
    found: list[tuple[int, str]] = []
    for number, entry in enumerate(index.entries):
        node = statement_of(entry) if not entry.facts.damaged else None
        if node is not None and "import" in node.type:
            found.append((number, _text(node)))
        elif found:
            break
    return found


def _text(node: Node) -> str:
    return " ".join((node.text or b"").decode("utf-8", "replace").split())


def _sort_key(line: str) -> tuple[int, bool, str]:
    words = line.split()
    return _section(line), words[0] == "from", words[1]


def _section(line: str) -> int:
    module = line.split()[1]
    top = module.partition(".")[0].rstrip(",")
    if module.startswith("."):
        return _LOCAL
    if top == "__future__":
        return _FUTURE
    return _STANDARD if top in sys.stdlib_module_names else _THIRD_PARTY


def _start_of_statement(index: ScopeIndex, entry: int) -> int:
    node = statement_of(index.entries[entry])
    start = node.start_byte - index.entries[entry].parsed.shift if node is not None else 0
    return index.starts[entry] + start


def _end_of_statement(index: ScopeIndex, entry: int) -> int:
    """Offset of the line after a statement."""
    node = statement_of(index.entries[entry])
    end = index.starts[entry] + (node.end_byte - index.entries[entry].parsed.shift if node is not None else 0)
    newline = index.text.find(b"\n", end)
    return newline + 1 if newline >= 0 else len(index.text)
