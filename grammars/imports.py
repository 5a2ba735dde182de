"""The import that a completion lacks: which module, and where its line belongs.

Placement follows isort's sections (future, standard library, third party, first party), in the order that isort and
ruff call "force-sort-within-sections off": plain imports before `from` imports. Knows the scope index; must not know
the protocol: an edit is a byte offset and text.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import sys
from dataclasses import dataclass
from functools import cache

from tree_sitter import Node

from grammars.scope_facts import difference
from grammars.scope_index import ScopeIndex, statement_of
from grammars.undefined_names import Undefined, undefined_names
from grammars.well_known_imports import MEMBERS, MODULES, WELL_KNOWN

_ATTRIBUTE = re.compile(rb"[ \t]*\.[ \t]*([A-Za-z_\x80-\xff][0-9A-Za-z_\x80-\xff]*)")
_FUTURE, _STANDARD, _THIRD_PARTY, _LOCAL = range(4)


@dataclass(frozen=True, slots=True)
class ImportEdit:
    """Insert `text` at byte `offset` of the document, to import `name`."""

    name: str
    offset: int
    text: str


@dataclass(frozen=True, slots=True)
class MissingImports:
    """`text` takes the place of the bytes [start, end) of the document: that imports `names`."""

    names: tuple[str, ...]
    start: int
    end: int
    text: str


def missing_imports(index: ScopeIndex, start: int, end: int) -> MissingImports | None:
    """The imports that the bytes [start, end) of a document lack: of well-known modules and what is in them.

    Only names that nothing in the document binds, and only where nothing dynamic makes that doubtful.
    """
    found = [each.name for each in undefined_names(index, start, end) if is_importable(index.text, each)]
    after, edits = index, list[ImportEdit]()
    for name in dict.fromkeys(found):
        edit = import_edit(after, name)
        if edit.offset <= start + len(after.text) - len(index.text):  # one below its use helps nobody
            after = after.edited(edit.offset, edit.offset, edit.text.encode())
            edits.append(edit)
    if not edits:
        return None
    names = tuple(edit.name for edit in edits)
    if len(edits) == 1:
        return MissingImports(names, edits[0].offset, edits[0].offset, edits[0].text)
    first, last, _ = difference(index.text, after.text)
    first = index.text.rfind(b"\n", 0, first) + 1  # whole lines
    tail = len(index.text) - (index.text.find(b"\n", last - 1) + 1 if last else 0)
    text = after.text[first : len(after.text) - tail].decode("utf-8", "replace")
    return MissingImports(names, first, len(index.text) - tail, text)


def is_importable(text: bytes, name: Undefined) -> bool:
    """Whether an undefined name means something well known: a module is read through a dot, by an attribute that it
    has; a bare `time` or `string.words` is more likely a variable that is missing."""
    if name.name in MEMBERS:
        return True
    attribute = _ATTRIBUTE.match(text, name.offset + len(name.name.encode("utf-8", "replace")))
    if name.name not in MODULES or attribute is None:
        return False
    known = _attributes(MODULES[name.name].split()[1])
    return known is None or attribute[1].decode("utf-8", "replace") in known


@cache
def _attributes(module: str) -> frozenset[str] | None:
    """What is in a module of the standard library; None for others, which are not looked into."""
    if module not in sys.stdlib_module_names:
        return None
    try:
        found = dir(importlib.import_module(module))
    except ImportError:  # not on this system
        return None
    inside = (each.name for each in pkgutil.iter_modules(getattr(sys.modules[module], "__path__", ())))
    return frozenset(found).union(inside)


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
    node = statement_of(first) if not first.damaged else None
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
        node = statement_of(entry) if not entry.damaged else None
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
