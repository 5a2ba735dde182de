"""The scopes around a position and the names that they make visible: Python 3.13's scope rules.

The rules are those of the language reference, "Naming and binding": a name that is local to a scope hides outer ones
even where it has no value yet; code that runs later (the body of a function) sees everything that is bound around it,
code that runs now sees what was bound before it, or around a loop. Knows pieces and their facts; must not know cursors
or unfinished code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from grammars.builtin_names import BUILTIN_NAMES, CLASS_BODY_NAMES, MODULE_NAMES
from grammars.scope_facts import Binding, BindingKind, Scope, ScopeKind, mangled, visible
from grammars.scope_index import ScopeIndex

_EAGER = frozenset({ScopeKind.CLASS, ScopeKind.COMPREHENSION, ScopeKind.MODULE})
_ANNOTATION_SCOPES = frozenset({ScopeKind.TYPE_PARAMETERS, ScopeKind.TYPE_ALIAS})


@dataclass(frozen=True)
class Frame:
    """One scope around a position, with everything the document binds in it.

    A function's scope lies in one piece. The body of a class or module is spread over pieces: `members` are their
    entry numbers and `current` is the one that holds the position.
    """

    kind: ScopeKind
    name: str
    index: ScopeIndex = field(repr=False)
    entry: int
    offset: int
    scope: Scope | None = None
    members: tuple[int, ...] = ()

    @property
    def is_body(self) -> bool:
        """Whether this is the body of a module or of a class that is cut into pieces."""
        return self.scope is None

    @cached_property
    def local_names(self) -> frozenset[str]:
        """Names that are local to this scope, with or without a value."""
        if self.scope is not None:
            return frozenset(self.scope.bindings)
        return frozenset().union(*(self.index.entries[i].facts.scopes[0].bindings for i in self.members))

    @cached_property
    def global_names(self) -> frozenset[str]:
        """Names that a `global` statement declares here."""
        if self.scope is not None:
            return frozenset(self.scope.globals)
        if self.kind is ScopeKind.MODULE:
            return frozenset()
        return frozenset().union(*(self.index.entries[i].facts.scopes[0].globals for i in self.members))

    def visible(self, deferred: bool) -> frozenset[str]:
        """Names of this scope that may have a value: at any time (`deferred`), or when the position runs."""
        if self.scope is not None:
            scope = self.scope
            if deferred or scope.kind not in (ScopeKind.FUNCTION, ScopeKind.LAMBDA, ScopeKind.CLASS):
                return frozenset(name for name, found in scope.bindings.items() if any(b.binds for b in found))
            return frozenset(name for name in scope.bindings if visible(scope, name, self.offset))
        return self._visible_in_body(deferred)

    def _visible_in_body(self, deferred: bool) -> frozenset[str]:
        entries = self.index.entries
        module = self.kind is ScopeKind.MODULE
        if deferred:
            names = set().union(*(entries[i].facts.bound for i in self.members))
            if module:
                names.update(*(self._module_bound(i) for i in range(len(entries))))
            return frozenset(names)
        names = set()
        for i in self.members:
            if i >= self.entry:
                break
            facts = entries[i].facts
            if facts.deleted_after:
                names -= facts.deleted_after
            names |= facts.bound_after
        if module:
            names.update(*(self._module_bound(i) for i in range(self.entry + 1)))
        root = entries[self.entry].facts.scopes[0]
        for name in root.bindings:
            if visible(root, name, self.offset):
                names.add(name)
            elif any(b.kind is BindingKind.DELETE and b.offset < self.offset for b in root.bindings[name]):
                names.discard(name)
        return frozenset(names)

    def _module_bound(self, i: int) -> frozenset[str]:
        """The names that entry `i` binds in the module from inside of functions and classes."""
        names = self.index.entries[i].facts.module_bound
        if not any(name.startswith("__") for name in names):
            return names
        headers = self.index.headers_of(i)
        facts = self.index.entries[headers[-1]].facts if headers else None
        owner = facts.scopes[facts.body].name if facts is not None else ""
        return names.union(mangled(name, owner) for name in names)

    def all_bindings(self) -> Iterator[tuple[str, Binding, int]]:
        """Every binding of this scope: name, binding, byte offset in the document."""
        if self.scope is not None:
            yield from self._offsets(self.scope.bindings, self.entry)
            return
        for i in self.members:
            yield from self._offsets(self.index.entries[i].facts.scopes[0].bindings, i)
        if self.kind is ScopeKind.MODULE:
            for i, entry in enumerate(self.index.entries):
                yield from self._offsets(entry.facts.module_bindings, i)

    def _offsets(self, bindings: Mapping[str, list[Binding]], entry: int) -> Iterator[tuple[str, Binding, int]]:
        base = self.index.starts[entry]
        for name, found in bindings.items():
            for binding in found:
                yield name, binding, base + binding.offset


def frames_of(index: ScopeIndex, entry: int, scope: int, offset: int) -> tuple[Frame, ...]:
    """The scopes around scope number `scope` of piece `entry`, innermost first, the module last.

    `offset` is the position in the piece from which the frames are looked at.
    """
    frames: list[Frame] = []

    def add_scopes_of(piece: int, number: int, at: int) -> None:
        scopes = index.entries[piece].facts.scopes
        while number > 0:
            found = scopes[number]
            frames.append(Frame(found.kind, found.name, index, piece, at, scope=found))
            number = found.parent

    add_scopes_of(entry, scope, offset)
    current, at = entry, offset
    for header in reversed(index.headers_of(entry)):
        facts = index.entries[header].facts
        name = facts.scopes[facts.body].name
        members = tuple(index.members(header))
        frames.append(Frame(ScopeKind.CLASS, name, index, current, at, members=members))
        current, at = header, len(index.entries[header].piece.text)
        add_scopes_of(header, facts.scopes[facts.body].parent, at)
    members = tuple(index.members(None))
    frames.append(Frame(ScopeKind.MODULE, "", index, current, at, members=members))
    return tuple(frames)


def names_of(frames: tuple[Frame, ...], deferred: bool = False) -> tuple[frozenset[str], frozenset[str]]:
    """(names that a load in the innermost of `frames` may refer to, names that are bound there later).

    `deferred`: the code runs at some later time even in the innermost frame (an annotation that is a string).
    """
    runs_later = [deferred]
    for i, frame in enumerate(frames):
        lazy = frame.kind not in _EAGER and (frame.kind not in _ANNOTATION_SCOPES or i == 0)
        runs_later.append(runs_later[-1] or lazy)
    module = frames[-1]
    everywhere = BUILTIN_NAMES | MODULE_NAMES
    module_now = everywhere | module.visible(runs_later[len(frames) - 1])
    module_ever = everywhere | module.visible(True)
    names, later = set(module_now), set(module_ever - module_now)
    for i in range(len(frames) - 2, -1, -1):
        frame = frames[i]
        seen = frame.visible(runs_later[i])
        if frame.kind is ScopeKind.CLASS:
            if any(inner.kind not in _ANNOTATION_SCOPES for inner in frames[:i]):
                names.add("__class__")
                continue
            # A class body that does not have the name yet looks for a global (LOAD_NAME).
            names = (names - frame.local_names) | (frame.local_names & module_now) | seen | CLASS_BODY_NAMES
        else:
            names = (names - frame.local_names) | seen
        declared = frame.global_names
        if declared:
            names |= declared  # who declares a name global says that there is one
        later = (later - frame.local_names) | (frame.local_names & frame.visible(True)) - seen
    return frozenset(names), frozenset(later)


def scope_of(frames: tuple[Frame, ...], name: str) -> str:
    """How the innermost of `frames` refers to `name`: "local", "declared" (`global`), "free" or "global".

    As in `symtable`, a name of a class body that an annotation scope reads counts as global: it is looked up in the
    class namespace, then among the globals.
    """
    innermost = frames[0]
    if name in innermost.global_names:
        return "declared"
    if name in innermost.local_names:
        return "local"
    for frame in frames[1:-1]:
        if frame.kind is ScopeKind.CLASS:
            continue
        if name in frame.global_names:
            return "global"
        if name in frame.local_names:
            return "free"
    return "global"
