"""What the names of a document stand for that are imported as whole modules, and what is in a module.

Knows scope indexes. Must not know where modules lie: whoever asks gives a function that finds them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tree_sitter import Node

from grammars.scope_facts import NEVER, identifier
from grammars.scope_index import ScopeIndex, statement_of

_EVERY_MODULE = frozenset({"__name__", "__file__", "__doc__", "__dict__", "__all__", "__path__", "__spec__"})


@dataclass(frozen=True, slots=True)
class Module:
    """A module's source, and the modules in it where it is a package."""

    index: ScopeIndex
    inside: frozenset[str] = frozenset()

    def attributes(self) -> frozenset[str] | None:
        """Its names, None where nobody knows them all: behind a star import, `globals()` or `__getattr__`."""
        entries = self.index.entries
        if any(hatch.end == NEVER for entry in entries for hatch in entry.facts.hatches):
            return None
        names = frozenset[str]().union(*(entry.facts.module_bound for entry in entries))
        names = names.union(*(entries[number].facts.bound for number in self.index.members(None)))
        if "__getattr__" in names or any(entry.damaged for entry in entries):
            return None
        return names | self.inside | _EVERY_MODULE


FindModule = Callable[[str], Module | None]
"""From a module as an import spells it, with leading dots where it is relative, to the module."""


def no_modules(_: str) -> Module | None:
    """Finds nothing."""
    return None


def imported_modules(index: ScopeIndex) -> dict[str, str]:
    """Name -> module that it may stand for, of the imports at the top level; names that are bound twice are left out.

    `from a import b` may import a module or something in one: `a.b` is then a module that exists, or not.
    """
    times: Counter[str] = Counter()
    found: dict[str, str] = {}
    for number in index.members(None):
        entry = index.entries[number]
        times.update(entry.facts.bound)
        node = statement_of(entry) if not entry.damaged else None
        if node is not None and node.type in ("import_statement", "import_from_statement"):
            found.update(_imports(node))
    return {name: module for name, module in found.items() if times[name] == 1}


def _imports(node: Node) -> Iterator[tuple[str, str]]:
    """(name, module) of one statement."""
    source = node.child_by_field_name("module_name")
    package = _text(source) if source is not None else ""
    for imported in node.children_by_field_name("name"):
        alias = imported.child_by_field_name("alias")
        whole = imported.child_by_field_name("name") if alias is not None else imported
        if whole is None:
            continue
        name = _text(alias if alias is not None else whole)
        if "." not in name:
            yield name, f"{package}{'.' if package and not package.endswith('.') else ''}{_text(whole)}"


def _text(node: Node) -> str:
    return "".join(identifier(node.text or b"").split())
