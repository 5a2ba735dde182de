"""Which names a bare load at an offset may refer to: Python 3.13's scope rules, for finished and unfinished code.

`visible_names` is the pure function; `view` asks an index that is kept up to date by edits. To read code that is
being typed, a placeholder name is put where the cursor is (and, if that is not enough to make the statement
readable, what most often is missing behind it), so that the text around the cursor keeps its meaning.

What is not known for certain is visible. The rules are those of the language reference, "Naming and binding"; a name
that is local to a scope hides outer ones even where it has no value yet; code that runs later (the body of a function)
sees everything that is bound around it, code that runs now sees what was bound before it, or around a loop.
Knows pieces and their facts; must not know tokens or models.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from tree_sitter import Node

from grammars.builtin_names import BUILTIN_NAMES, CLASS_BODY_NAMES, MODULE_NAMES
from grammars.scope_facts import NEVER, Binding, BindingKind, Scope, ScopeKind, visible
from grammars.scope_index import ScopeIndex
from grammars.scope_pieces import open_brackets
from grammars.scope_position import PLACEHOLDER, PositionKind, classify, is_word_byte, placeholder_for
from grammars.scope_stand_ins import stand_ins

_EAGER = frozenset({ScopeKind.CLASS, ScopeKind.COMPREHENSION, ScopeKind.MODULE})
_FIRST_WORD = re.compile(rb"[ \t\f]*([a-z]*)")
_WORD = re.compile(rb"[A-Za-z_\x80-\xff][0-9A-Za-z_\x80-\xff]*")
_HEADER_WORDS = frozenset(
    {b"if", b"elif", b"while", b"for", b"with", b"def", b"class", b"except", b"match", b"case", b"async"}
)
_ANNOTATION_SCOPES = frozenset({ScopeKind.TYPE_PARAMETERS, ScopeKind.TYPE_ALIAS})


@dataclass(frozen=True, slots=True)
class NameBinding:
    """Where a visible name is bound: how, in what kind of scope, at which byte offset of the document."""

    kind: BindingKind
    scope: ScopeKind
    offset: int


@dataclass(frozen=True)
class ScopeView:
    """What a bare load at one offset may refer to.

    Attributes:
        names: every name that a load may refer to, builtins included.
        position: what kind of position the offset is.
        escape_hatch: why `names` may be incomplete, or None: then a name outside of `names` does not exist.
        later: names that are bound around the offset but have no value yet; code that runs later sees them.
        enclosing: names of the class bodies around the offset, which a statement after a dedent would see.
        prefix: the part of the identifier before the offset that is already typed.
    """

    names: frozenset[str]
    position: PositionKind
    escape_hatch: str | None
    later: frozenset[str] = frozenset()
    enclosing: frozenset[str] = frozenset()
    prefix: str = ""
    frames: tuple[Frame, ...] = field(default=(), repr=False, compare=False)

    @cached_property
    def bindings(self) -> Mapping[str, NameBinding]:
        """Where each visible name is bound, builtins left out; the innermost scope's last binding counts."""
        found: dict[str, NameBinding] = {}
        for frame in self.frames:
            for name, binding, offset in frame.all_bindings():
                if name in self.names and binding.binds:
                    known = found.get(name)
                    if known is None or known.scope is frame.kind:
                        found[name] = NameBinding(binding.kind, frame.kind, offset)
        return found


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
                names.update(*(entry.facts.module_bound for entry in entries))
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
            names.update(*(entry.facts.module_bound for entry in entries[: self.entry + 1]))
        root = entries[self.entry].facts.scopes[0]
        for name in root.bindings:
            if visible(root, name, self.offset):
                names.add(name)
            elif any(b.kind is BindingKind.DELETE and b.offset < self.offset for b in root.bindings[name]):
                names.discard(name)
        return frozenset(names)

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
            names = (names - declared) | (declared & module_ever)
        later = (later - frame.local_names) | (frame.local_names & frame.visible(True)) - seen
    return frozenset(names), frozenset(later)


def visible_names(text: str | bytes, offset: int) -> ScopeView:
    """The scope view of `text` at `offset`: code points for `str`, bytes of UTF-8 for `bytes`.

    The text after the offset counts: it may bind names too. A name that is being typed at the offset does not count
    as bound. Raises ValueError where the offset is outside of the text.
    """
    if not 0 <= offset <= len(text):
        raise ValueError(f"offset {offset} outside of a text of length {len(text)}")
    if isinstance(text, str):
        offset = len(text[:offset].encode("utf-8", "surrogatepass"))
        text = text.encode("utf-8", "surrogatepass")
    return view(ScopeIndex.of(text), offset)


def view(index: ScopeIndex, offset: int) -> ScopeView:
    """The scope view of an indexed document at a byte offset."""
    seen = _view(index, offset, _insertions(index, offset))
    deeper = _deeper_indent(index.text, offset)
    if deeper:
        inside = _view(index, offset, [deeper + PLACEHOLDER])
        if inside.position is not PositionKind.UNKNOWN:
            return replace(seen, names=seen.names | inside.names, enclosing=seen.enclosing | inside.enclosing)
    return seen


def _view(index: ScopeIndex, offset: int, insertions: Iterable[bytes]) -> ScopeView:
    """The view where the first of `insertions` stands with which the code around it can be read."""
    prefix = typed_prefix(index.text, offset)
    for insertion in insertions:
        probe = index.edited(offset, offset, insertion) if insertion else index
        at = offset + insertion.find(PLACEHOLDER) if insertion else offset
        entry = probe.entry_at(at)
        if not probe.entries[entry].facts.damaged:
            return _view_in(probe, entry, at, prefix)
    return _view_without_statement(index, offset, prefix) or _view_in(index, index.entry_at(offset), offset, prefix)


def _view_without_statement(index: ScopeIndex, offset: int, prefix: str) -> ScopeView | None:
    """The view where the statement around the cursor cannot be read, but the document can without it.

    What the statement binds, or its parts bind for each other, nobody knows: all its words count as names.
    """
    for start, end, statement in stand_ins(index.text, offset):
        probe = index.edited(start, end, statement)
        at = start + statement.find(PLACEHOLDER)
        entry = probe.entry_at(at)
        if not probe.entries[entry].facts.damaged:
            seen = _view_in(probe, entry, at, prefix)
            left_out = index.text[start : offset - len(prefix.encode())] + b" " + index.text[offset:end]
            words = frozenset(word.decode("utf-8", "replace") for word in _WORD.findall(left_out))
            return replace(seen, names=seen.names | words, position=PositionKind.UNKNOWN)
    return None


def _deeper_indent(text: bytes, offset: int) -> bytes:
    """On an empty line that is indented less than the code before it: what it lacks, for what is typed there may
    begin with more blanks and go on with that code."""
    line_start = max(text.rfind(b"\n", 0, offset), text.rfind(b"\r", 0, offset)) + 1
    if text[line_start:offset].strip() or text[offset : offset + 1] not in (b"", b"\n", b"\r"):
        return b""
    before = text[:line_start].rstrip()
    last = before[max(before.rfind(b"\n"), before.rfind(b"\r")) + 1 :]
    return b" " * (len(last) - len(last.lstrip()) - (offset - line_start))


def word_at(text: bytes, offset: int) -> str:
    """The identifier around `offset`."""
    end = offset
    while end < len(text) and is_word_byte(text[end]):
        end += 1
    return typed_prefix(text, end)


def typed_prefix(text: bytes, offset: int) -> str:
    """The letters of an identifier directly before `offset`."""
    start = offset
    while start and is_word_byte(text[start - 1]):
        start -= 1
    return text[start:offset].decode("utf-8", "replace")


def _insertions(index: ScopeIndex, offset: int) -> Iterator[bytes]:
    """What to try at the cursor, in turn: a name, nothing, a name with what may be missing behind it."""
    text = index.text
    name = placeholder_for(text, offset)
    if not name:
        yield b""
        return
    line_start = max(text.rfind(b"\n", 0, offset), text.rfind(b"\r", 0, offset)) + 1
    if not text[line_start:offset].strip():
        yield _missing_indent(text, line_start, offset) + name
        yield b""
        return
    closers = open_brackets(text, index.starts[index.entry_at(offset)], offset)
    word = _FIRST_WORD.match(text, line_start)
    header = (b": pass", b":") if word is not None and word[1] in _HEADER_WORDS else ()
    completed = [name + closers + end for end in (*header, b"", b" else 0")]
    ends_line = text[offset : offset + 1] in (b"", b"\n", b"\r")
    yield from [*completed, name, b""] if ends_line and (closers or header) else [name, b"", *completed]


def _missing_indent(text: bytes, line_start: int, offset: int) -> bytes:
    """Spaces that an otherwise empty line lacks to stand in the body that the header before it opens."""
    before = text[:line_start].rstrip()
    if not before.endswith(b":"):
        return b""
    header = before[max(before.rfind(b"\n"), before.rfind(b"\r")) + 1 :]
    indent = len(header) - len(header.lstrip())
    return b" " * (indent + 4 - (offset - line_start)) if offset - line_start <= indent else b""


def _view_in(index: ScopeIndex, entry: int, offset: int, prefix: str) -> ScopeView:
    """The view at a document offset that lies in piece `entry`."""
    found = index.entries[entry]
    local = offset - index.starts[entry]
    position = _position(index, entry, local)
    frames = frames_of(index, entry, found.facts.scope_at(local), local)
    names, later = names_of(frames, _runs_later(index, entry, local, position, frames))
    hatch = "syntax error" if found.facts.damaged else _hatch(index, entry, local)
    enclosing = frozenset().union(*(f.visible(False) for f in frames[1:] if f.kind is ScopeKind.CLASS))
    typed = frozenset({word_at(index.text, offset)})  # what is being typed at the cursor is not bound by that
    return ScopeView(
        names=names - typed,
        position=position,
        escape_hatch=hatch,
        later=later - names - typed,
        enclosing=enclosing,
        prefix=prefix,
        frames=frames,
    )


def _runs_later(index: ScopeIndex, entry: int, local: int, position: PositionKind, frames: tuple[Frame, ...]) -> bool:
    """Whether code in the innermost frame runs at some later time: an annotation that is a string, or like one."""
    return position is PositionKind.ANNOTATION and (
        index.future_annotations or frames[0].kind is ScopeKind.FUNCTION or _in_string(index, entry, local)
    )


def names_read_at(index: ScopeIndex, offset: int) -> frozenset[str] | None:
    """The names that the identifier at byte `offset` may refer to, where it is finished; None where nobody knows."""
    entry = index.entry_at(offset)
    local = offset - index.starts[entry]
    if index.entries[entry].facts.damaged or _hatch(index, entry, local) is not None:
        return None
    frames = frames_of(index, entry, index.entries[entry].facts.scope_at(local), local)
    return names_of(frames, _runs_later(index, entry, local, _position(index, entry, local), frames))[0]


def _leaf(index: ScopeIndex, entry: int, local: int) -> Node | None:
    parsed = index.entries[entry].parsed
    at = local + parsed.shift
    return parsed.tree.root_node.descendant_for_byte_range(at, at + 1)


def _position(index: ScopeIndex, entry: int, local: int) -> PositionKind:
    found = index.entries[entry]
    if found.facts.damaged:
        return PositionKind.UNKNOWN
    line_start = found.piece.text.rfind(b"\n", 0, local) + 1
    leaf = _leaf(index, entry, local)
    kind = classify(leaf) if leaf is not None else PositionKind.OTHER
    if kind is PositionKind.OTHER and not found.piece.text[line_start:local].strip():
        return PositionKind.STATEMENT
    return kind


def _in_string(index: ScopeIndex, entry: int, local: int) -> bool:
    leaf = _leaf(index, entry, local)
    return leaf is not None and leaf.type.startswith("string")


def _hatch(index: ScopeIndex, entry: int, local: int) -> str | None:
    for i, other in enumerate(index.entries):
        for hatch in other.facts.hatches:
            if hatch.end == NEVER or (i == entry and hatch.start <= local < hatch.end):
                return hatch.reason
    return None


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
