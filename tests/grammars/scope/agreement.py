"""Compare our scopes of a file with the tables of `symtable`, scope by scope and name by name.

Since Python 3.12 (PEP 709) `symtable` shows list, set and dict comprehensions merged into the scope around them; a
table from an older interpreter keeps them apart. Both forms are compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from grammars.scope_facts import ScopeKind
from grammars.scope_frames import Frame, frames_of, scope_of
from grammars.scope_index import ScopeIndex

_TYPES = {
    ScopeKind.MODULE: "module",
    ScopeKind.CLASS: "class",
    ScopeKind.FUNCTION: "function",
    ScopeKind.LAMBDA: "function",
    ScopeKind.COMPREHENSION: "function",
    ScopeKind.GENERATOR: "function",
    ScopeKind.TYPE_PARAMETERS: "type parameters",
    ScopeKind.TYPE_ALIAS: "type alias",
}
_IMPLICIT = frozenset(
    {"__classdict__", "__class__", "__type_params__", "__static_attributes__", "__conditional_annotations__"}
)


@dataclass
class Node:
    """One of our scopes with its frames (innermost first) and children in order."""

    frames: tuple[Frame, ...]
    line: int
    start: int
    children: list[Node] = field(default_factory=list)

    @property
    def frame(self) -> Frame:
        return self.frames[0]


def scope_tree(index: ScopeIndex) -> Node:
    """All scopes of a document, nested."""
    root = Node(frames_of(index, len(index.entries) - 1, 0, 0)[-1:], 0, 0)
    bodies: dict[int, Node] = {}  # class header entry -> the class's node
    for entry, found in enumerate(index.entries):
        headers = index.headers_of(entry)
        outer = bodies[headers[-1]] if headers else root
        nodes = {0: outer}
        for number, scope in enumerate(found.facts.scopes[1:], start=1):
            start = index.starts[entry] + scope.start
            frames = frames_of(index, entry, number, 0)
            if found.piece.opens_class and number == found.facts.body:
                first = next(iter(index.body_of(entry)), None)
                if first is not None:
                    frames = frames_of(index, first, 0, 0)
            node = Node(frames, index.text.count(b"\n", 0, start) + 1, start)
            nodes[number] = node
            nodes[scope.parent].children.append(node)
        if found.piece.opens_class:
            bodies[entry] = nodes[found.facts.body]
    return root


def disagreements(text: bytes, table: Any, inlined: bool) -> Iterator[str]:
    """Everything in which our scopes of `text` differ from `table`; `inlined`: comprehensions are merged in it."""
    yield from _compare(scope_tree(ScopeIndex.of(text)), table, inlined, "module", ())


def _compare(node: Node, table: Any, inlined: bool, path: str, private: tuple[str, ...]) -> Iterator[str]:
    kind, name, _, symbols, tables = table
    merged: set[str] = set()
    children = list(_children(node, inlined, merged))
    tables = _flat(tables)
    if kind == "class" or any(child[:2] == ["class", name] for child in tables):
        private = (*private, name)  # names of a class body, and of its type parameters, are mangled
    locals_ = {_mangled(local, private) for local in node.frame.local_names}
    merged = {_mangled(local, private) for local in merged}
    for symbol, theirs in symbols.items():
        if symbol.startswith(".") or symbol in _IMPLICIT:
            continue
        ours = _resolution(node, symbol, private)
        if theirs == "declared" and node.frame.kind is ScopeKind.MODULE:
            continue
        if ours != theirs and not (theirs == "local" and symbol in merged):
            yield f"{path}: {symbol} is {theirs}, not {ours}"
    if missing := {n for n in locals_ if n not in symbols}:
        yield f"{path}: {sorted(missing)} are not in the table"
    ours_ordered = sorted(children, key=lambda child: _our_key(child, inlined))
    theirs_ordered = sorted(tables, key=_their_key)
    mine = [_our_key(child, inlined)[:3] for child in ours_ordered]
    wanted = [_their_key(child)[:3] for child in theirs_ordered]
    if mine != wanted:
        yield f"{path}: scopes {set(mine) - set(wanted)} against {set(wanted) - set(mine)}"
        return
    for child, sub in zip(ours_ordered, theirs_ordered, strict=True):
        yield from _compare(child, sub, inlined, f"{path}.{sub[1]}:{sub[2]}", private)


def _our_key(node: Node, inlined: bool) -> tuple[int, str, str, list[str], list[Any]]:
    children = (_our_key(child, inlined) for child in _children(node, inlined, set()))
    bound = sorted(node.frame.local_names)
    return node.line, _TYPES[node.frame.kind], node.frame.name, bound, sorted(children)


def _their_key(table: Any) -> tuple[int, str, str, list[str], list[Any]]:
    """Several lambdas may share a line, and `symtable` lists them in the order of evaluation: tell them apart by
    what they bind and hold."""
    kind, name, line, symbols, tables = table
    bound = sorted(name for name, how in symbols.items() if how == "local" and not name.startswith("."))
    return line, kind, name, bound, sorted(map(_their_key, _flat(tables)))


def _flat(tables: list[Any]) -> list[Any]:
    """The tables, those of type variables' bounds replaced by what is in them."""
    return [sub for table in tables for sub in (table[4] if table[0] == "type variable" else [table])]


def _children(node: Node, inlined: bool, merged: set[str]) -> Iterator[Node]:
    """The scopes below `node`, those of inlined comprehensions counted as its own and their names as merged."""
    for child in node.children:
        if inlined and child.frame.kind is ScopeKind.COMPREHENSION:
            merged |= child.frame.local_names
            yield from _children(child, inlined, merged)
        else:
            yield child


def _resolution(node: Node, symbol: str, private: tuple[str, ...]) -> str:
    return scope_of(node.frames, _unmangled(symbol, private))


def _mangled(name: str, private: tuple[str, ...]) -> str:
    if private and name.startswith("__") and not name.endswith("__") and private[-1].strip("_"):
        return f"_{private[-1].lstrip('_')}{name}"
    return name


def _unmangled(name: str, private: tuple[str, ...]) -> str:
    prefix = f"_{private[-1].lstrip('_')}__" if private and private[-1].strip("_") else None
    return name[len(prefix) - 2 :] if prefix and name.startswith(prefix) and not name.endswith("__") else name
