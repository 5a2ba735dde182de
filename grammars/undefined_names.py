"""Names that a piece of a document reads and that nothing binds: what a text that was put there got wrong.

Knows the scope index of the document with the text in it. Must not know tokens or who wrote the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from grammars.scope_facts import identifier
from grammars.scope_index import ScopeIndex
from grammars.scope_position import reads_name
from grammars.scopes import names_read_at

_MOST_USES = 40
"""Other uses of a name that are looked at: if one of the first is undefined too, the name is the user's own."""


@dataclass(frozen=True, slots=True)
class Undefined:
    """A name that is read at byte `offset` and that nothing binds."""

    name: str
    offset: int


def undefined_names(index: ScopeIndex, start: int, end: int) -> list[Undefined]:
    """What is undefined among the names that the bytes [start, end) read, in order.

    Code that cannot be read, and code in which nobody knows the names, has none.
    """
    known: set[tuple[str, int, int]] = set()
    found = []
    for entry in range(index.entry_at(start), index.entry_at(max(start, end - 1)) + 1):
        for node in _identifiers(index, entry, start, end):
            offset = _offset(index, entry, node)
            name = identifier(node.text or b"")
            place = name, entry, index.entries[entry].facts.scope_at(offset - index.starts[entry])
            if place in known or not reads_name(node):
                continue
            names = names_read_at(index, offset)
            if names is None or name in names:
                known.add(place)  # what has a value here has it further down, too, unless it is deleted
            else:
                found.append(Undefined(name, offset))
    return found


def new_undefined_names(index: ScopeIndex, start: int, end: int) -> list[Undefined]:
    """Those of `undefined_names` that are not undefined elsewhere in the document already: those are the user's."""
    return [
        each for each in undefined_names(index, start, end) if not _is_undefined_elsewhere(index, each.name, start, end)
    ]


def _is_undefined_elsewhere(index: ScopeIndex, name: str, start: int, end: int) -> bool:
    word = re.compile(rb"(?<![\w.])" + re.escape(name.encode("utf-8", "replace")) + rb"(?!\w)")
    uses = [match.start() for match in word.finditer(index.text) if match.end() <= start or match.start() >= end]
    return any(undefined_names(index, at, at + 1) for at in uses[:_MOST_USES])


def _identifiers(index: ScopeIndex, entry: int, start: int, end: int) -> Iterator[Node]:
    """The identifiers of a piece that overlap the bytes [start, end) of the document, in order."""
    shift = index.entries[entry].parsed.shift - index.starts[entry]
    waiting = [index.entries[entry].parsed.tree.root_node]
    while waiting:
        node = waiting.pop()
        if node.end_byte <= start + shift or node.start_byte >= end + shift:
            continue
        if node.type == "identifier":
            yield node
        waiting += reversed(node.children)


def _offset(index: ScopeIndex, entry: int, node: Node) -> int:
    return index.starts[entry] + node.start_byte - index.entries[entry].parsed.shift
