"""What one piece of Python text binds, in which scopes, and its tree: the data, and when a binding counts.

Knows tree-sitter's parser and Python's scopes. Must not know how a tree is read (`grammars.scope_collector`) nor the
rest of the document: offsets are bytes of the piece, names of other pieces are resolved by `grammars.scope_frames`.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib import resources

import tree_sitter_python
from tree_sitter import Language, Parser, Query, Tree

from grammars.scope_pieces import Piece

_WRAPPER = b"if 1:\n"
NEVER = 1 << 62
"""An offset after everything."""


class ScopeKind(StrEnum):
    """Kinds of scope, in the terms of the `symtable` module, which merges comprehensions and lambdas in functions."""

    MODULE = "module"
    CLASS = "class"
    FUNCTION = "function"
    LAMBDA = "lambda"
    COMPREHENSION = "comprehension"
    GENERATOR = "generator"
    TYPE_PARAMETERS = "type parameters"
    TYPE_ALIAS = "type alias"


class BindingKind(StrEnum):
    """How a name came to be bound."""

    ASSIGNMENT = "assignment"
    DECLARATION = "declaration"  # an annotation without a value: local, not bound
    PARAMETER = "parameter"
    FUNCTION = "function"
    CLASS = "class"
    IMPORT = "import"
    LOOP = "loop"
    EXCEPT = "except"
    CAPTURE = "capture"
    TYPE_PARAMETER = "type parameter"
    DELETE = "delete"  # makes the name local like a binding does, and unbinds it
    WORD = "word"  # of a piece that the grammar cannot read


@dataclass(frozen=True, slots=True)
class Binding:
    """One binding of a name.

    Attributes:
        kind: how it is bound.
        offset: where the name is written.
        effective: from here on the name is bound (a target is bound after its value was computed).
        expires: from here on it no longer is (`except … as name`).
        block: for deletions, the range of the block that the statement stands in directly.
    """

    kind: BindingKind
    offset: int
    effective: int
    expires: int = NEVER
    block: tuple[int, int] = (0, NEVER)

    @property
    def binds(self) -> bool:
        """Whether the name has a value afterwards."""
        return self.kind is not BindingKind.DECLARATION and self.kind is not BindingKind.DELETE


@dataclass(slots=True)
class Scope:
    """One scope of a piece; scope 0 of a piece is what the piece adds to the body that it stands in.

    Attributes:
        parent: index of the enclosing scope in the piece, -1 for scope 0.
        bindings: names that are local here, in order of their offsets.
        globals, nonlocals: names that a statement declares so.
        loops: ranges of the loops of this scope, where later bindings may come first.
    """

    kind: ScopeKind
    name: str
    parent: int
    start: int
    end: int
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    globals: set[str] = field(default_factory=set)
    nonlocals: set[str] = field(default_factory=set)
    loops: list[tuple[int, int]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Hatch:
    """A construct that makes names unknowable: everywhere (`end` is NEVER and `start` 0) or in a range."""

    reason: str
    start: int = 0
    end: int = NEVER


@dataclass(frozen=True, slots=True)
class PieceFacts:
    """Everything that the scope rules need to know of one piece.

    Attributes:
        scopes: parents before children; `scopes[0]` stands for the body around the piece.
        regions: (start, end, scope) in the order of their starts, properly nested: code in the innermost region that
            holds an offset is evaluated in that region's scope.
        module_bindings: names that functions and classes of the piece bind through `global`.
        body: the scope that the pieces of a class header's body belong to.
        future_annotations: it switches evaluation of annotations off.
        bound: names that scope 0 binds somewhere.
        module_bound: names in `module_bindings` that are bound and not just deleted.
        bound_after: names that scope 0 binds and that have a value once the piece was executed.
        deleted_after: names that it certainly deletes.
        attributes: (name of an object, attribute) of every attribute that it assigns to.
    """

    scopes: tuple[Scope, ...]
    regions: tuple[tuple[int, int, int], ...]
    module_bindings: dict[str, list[Binding]]
    hatches: tuple[Hatch, ...]
    body: int
    future_annotations: bool
    bound: frozenset[str]
    module_bound: frozenset[str]
    bound_after: frozenset[str]
    deleted_after: frozenset[str]
    attributes: frozenset[tuple[str, str]] = frozenset()

    def scope_at(self, offset: int) -> int:
        """Index of the scope in which code at `offset` is evaluated."""
        found = 0
        for start, end, scope in self.regions:
            if start > offset:
                break
            if offset < end:
                found = scope
        return found


@dataclass(frozen=True, slots=True)
class ParsedPiece:
    """A piece's tree, together with the bytes it was parsed from and how far they are shifted against the piece."""

    tree: Tree
    source: bytes
    shift: int


@cache
def language() -> Language:
    """The tree-sitter grammar of Python."""
    return Language(tree_sitter_python.language())


@cache
def load_query(name: str) -> Query:
    """The query in `queries/NAME.scm`."""
    return Query(language(), (resources.files("grammars") / "queries" / f"{name}.scm").read_text("utf-8"))


def source_of(piece: Piece) -> tuple[bytes, int]:
    """What is parsed for a piece: the body of a class gets a header, a class header gets a body.

    Returns the bytes and the offset of the piece in them.
    """
    text, shift = piece.text, 0
    if piece.column:
        text, shift = _WRAPPER + text, len(_WRAPPER)
    if piece.opens_class:
        newline = b"" if text.endswith((b"\n", b"\r")) else b"\n"
        text = text + newline + b" " * (piece.column + 1) + b"pass\n"
    return text, shift


def parse(piece: Piece, previous: ParsedPiece | None = None) -> ParsedPiece:
    """The tree of a piece; `previous`, the tree of an earlier text of it, makes that incremental."""
    source, shift = source_of(piece)
    parser = Parser(language())
    if previous is None:
        return ParsedPiece(parser.parse(source), source, shift)
    old = previous.tree.copy()
    start, old_end, new_end = difference(previous.source, source)
    old.edit(
        start_byte=start,
        old_end_byte=old_end,
        new_end_byte=new_end,
        start_point=_point(previous.source, start),
        old_end_point=_point(previous.source, old_end),
        new_end_point=_point(source, new_end),
    )
    return ParsedPiece(parser.parse(source, old), source, shift)


def difference(old: bytes, new: bytes) -> tuple[int, int, int]:
    """(start, old end, new end) of the smallest single replacement that turns `old` into `new`."""
    limit = min(len(old), len(new))
    start = _common(old, new, limit)
    tail = _common(old[start:][::-1], new[start:][::-1], limit - start)
    return start, len(old) - tail, len(new) - tail


def _common(left: bytes, right: bytes, limit: int) -> int:
    """Length of the common beginning, at most `limit`: by halving, since comparing slices is done in C."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _point(source: bytes, offset: int) -> tuple[int, int]:
    return source.count(b"\n", 0, offset), offset - (source.rfind(b"\n", 0, offset) + 1)


def identifier(text: bytes) -> str:
    """The name that an identifier in source means: Python compares identifiers in form NFKC."""
    name = text.decode("utf-8", "replace")
    return name if name.isascii() else unicodedata.normalize("NFKC", name)


def mangled(name: str, owner: str) -> str:
    """What a name in a class `owner` is called outside of it: only private ones change."""
    private = name.startswith("__") and not name.endswith("__")
    owner = owner.lstrip("_")
    return f"_{owner}{name}" if private and owner else name


def visible(scope: Scope, name: str, offset: int) -> bool:
    """Whether `name`, local to `scope`, may be bound when code at `offset` of that same scope runs.

    Without jumps, a binding that stands later in the text comes first only through a loop around both.
    """
    bindings = scope.bindings[name]
    if len(bindings) == 1 and bindings[0].effective <= offset < bindings[0].expires:
        return bindings[0].binds
    deleted = [
        b.offset
        for b in bindings
        if b.kind is BindingKind.DELETE and b.offset < offset and b.block[0] <= offset < b.block[1]
    ]
    return any(b.binds and _reaches(b, offset, deleted, scope.loops) for b in bindings)


def _reaches(binding: Binding, offset: int, deleted: list[int], loops: list[tuple[int, int]]) -> bool:
    """Whether control can pass from `binding` to `offset` past none of the deletions on its way."""
    at = binding.offset
    if binding.effective <= offset < binding.expires and not any(at <= d for d in deleted):
        return True
    if binding.expires != NEVER:
        return False
    for start, end in loops:
        if start <= offset < end and start <= at < end:
            on_the_way = (d for d in deleted if start <= d)
            if not any(at <= d if at < offset else True for d in on_the_way):
                return True
    return False
