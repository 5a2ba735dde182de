"""Which attributes an object has, where the document says it: of `self`, of classes, of modules of the workspace.

Only complete answers are given: a class with a base that is not in the document, or with anything dynamic in sight,
has attributes that nobody can list. Knows the scope index; must not know tokens.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from itertools import pairwise

from tree_sitter import Node

from grammars.scope_facts import BindingKind, ScopeKind
from grammars.scope_frames import Frame
from grammars.scope_index import ScopeIndex, statement_of
from grammars.scope_modules import FindModule, imported_modules, no_modules

OBJECT_ATTRIBUTES = frozenset(dir(object)) | frozenset(
    ["__dict__", "__module__", "__slots__", "__weakref__", "__annotations__", "__name__", "__qualname__", "__mro__"]
)
_ENUM_BASES = frozenset({"Enum", "IntEnum", "StrEnum", "Flag", "IntFlag"})
_ENUM_ATTRIBUTES = frozenset({"name", "value", "__members__"})
_PLAIN_BASES = frozenset({"object", "ABC", "Generic", "Protocol", "NamedTuple"})
_NAMED_TUPLE_ATTRIBUTES = frozenset({"_asdict", "_replace", "_fields", "_make", "_field_defaults", "count", "index"})
_DYNAMIC = re.compile(rb"\b(?:__getattr__|__getattribute__|setattr|__dict__|vars)\b")


class KnownAttributes:
    """The attributes of the objects around a position, looked up when they are asked for.

    Args:
        frames: the scopes around the position, innermost first (`ScopeView.frames`).
        find_module: finds the modules of the workspace.
    """

    def __init__(self, frames: tuple[Frame, ...], find_module: FindModule = no_modules) -> None:
        self._frames = frames
        self._find_module = find_module
        self._known: dict[str, frozenset[str] | None] = {}

    def of(self, name: str) -> frozenset[str] | None:
        """All attributes of the object that `name` stands for, None where they cannot be known."""
        if name not in self._known:
            self._known[name] = self._find(name)
        return self._known[name]

    def _find(self, name: str) -> frozenset[str] | None:
        index = self._frames[0].index
        receiver, own = _receiver(index, self._frames)
        if name == receiver:
            return _class_attributes(index, own, self._classes, set()) if own is not None else None
        if any(name in frame.local_names for frame in self._frames[:-1]):
            return None  # a local name is not the module's class of that name
        if name in self._classes:
            return _class_attributes(index, self._classes[name], self._classes, set())
        module = self._find_module(self._modules[name]) if name in self._modules else None
        return module.attributes() if module is not None else None

    @cached_property
    def _modules(self) -> dict[str, str]:
        return imported_modules(self._frames[0].index)

    @cached_property
    def _classes(self) -> dict[str, int]:
        return _classes(self._frames[0].index)


def _classes(index: ScopeIndex) -> dict[str, int]:
    """Name -> entry of the header of each class that the module's body defines, once."""
    found: dict[str, int] = {}
    twice: set[str] = set()
    for number in index.members(None):
        entry = index.entries[number]
        for name in entry.facts.bound:
            if name in found:
                twice.add(name)
            if entry.piece.opens_class and not entry.damaged:
                found[name] = number
    return {name: number for name, number in found.items() if name not in twice}


def _class_attributes(
    index: ScopeIndex, header: int, classes: Mapping[str, int], seen: set[int]
) -> frozenset[str] | None:
    """Everything that a class and its bases bind, None where that cannot be known."""
    node = statement_of(index.entries[header])
    definition = (
        node.child_by_field_name("definition") if node is not None and node.type == "decorated_definition" else node
    )
    if definition is None or header in seen:
        return None
    bases = _bases(definition)
    if bases is None:
        return None
    seen.add(header)
    names = set(OBJECT_ATTRIBUTES)
    for base in bases:
        short = base.rpartition(".")[2]
        if short in _ENUM_BASES:
            names |= _ENUM_ATTRIBUTES
        elif short in _PLAIN_BASES:
            names |= _NAMED_TUPLE_ATTRIBUTES if short == "NamedTuple" else frozenset()
        elif base in classes:
            inherited = _class_attributes(index, classes[base], classes, seen)
            if inherited is None:
                return None
            names |= inherited
        else:
            return None
    for number in index.members(header):
        entry = index.entries[number]
        if entry.damaged or _DYNAMIC.search(entry.piece.text):
            return None
        names |= entry.facts.scopes[0].bindings.keys()
        names.update(attribute for _, attribute in entry.facts.attributes)
    return frozenset(names)


def _bases(definition: Node) -> list[str] | None:
    """The bases of a class as they are written, None where one is no name or there is a metaclass."""
    arguments = definition.child_by_field_name("superclasses")
    found: list[str] = []
    for argument in arguments.named_children if arguments is not None else ():
        base = argument.child_by_field_name("value") if argument.type == "subscript" else argument
        if base is None or base.type not in ("identifier", "attribute"):
            return None
        found.append((base.text or b"").decode("utf-8", "replace"))
    return found


def _receiver(index: ScopeIndex, frames: tuple[Frame, ...]) -> tuple[str, int | None]:
    """The first parameter of the method around a position, and the header of the method's class."""
    for inner, outer in pairwise(frames):
        if outer.kind is not ScopeKind.CLASS or inner.kind is not ScopeKind.FUNCTION or inner.scope is None:
            continue
        parameters = [
            (binding.offset, name)
            for name, found in inner.scope.bindings.items()
            for binding in found
            if binding.kind is BindingKind.PARAMETER
        ]
        headers = index.headers_of(inner.entry)
        return (min(parameters)[1] if parameters else ""), (headers[-1] if headers else None)
    return "", None
