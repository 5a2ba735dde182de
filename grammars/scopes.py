"""Which names a bare load at an offset may refer to: Python 3.13's scope rules, for finished and unfinished code.

`visible_names` is the pure function; `view` asks an index that is kept up to date by edits. To read code that is
being typed, a placeholder name is put where the cursor is (and, if that is not enough to make the statement
readable, what most often is missing behind it), so that the text around the cursor keeps its meaning.

What is not known for certain is visible. The rules themselves are in `grammars.scope_frames`. Knows indexed documents
and cursors in them; must not know tokens or models.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from tree_sitter import Node

from grammars.scope_facts import NEVER, BindingKind, ScopeKind
from grammars.scope_frames import Frame, frames_of, names_of
from grammars.scope_index import ScopeIndex
from grammars.scope_pieces import open_brackets
from grammars.scope_position import PLACEHOLDER, PositionKind, classify, is_word_byte, placeholder_for
from grammars.scope_stand_ins import stand_ins

_MOST_READ = 80_000
"""Bytes of statements that are read to find one that makes sense at the cursor; 3 MB are read in a second. A literal of
a thousand lines, or a quote that opens a text to the end of the file, is left alone until it is whole."""
_FIRST_WORD = re.compile(rb"[ \t\f]*([a-z]*)")
_WORD = re.compile(rb"[A-Za-z_\x80-\xff][0-9A-Za-z_\x80-\xff]*")
_HEADER_WORDS = frozenset(
    {b"if", b"elif", b"while", b"for", b"with", b"def", b"class", b"except", b"match", b"case", b"async"}
)


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
    seen, room = _view_with(index, offset, _insertions(index, offset))
    if seen is None:
        seen = _view_without_statement(index, offset, room)
    if seen is None:
        seen = _view_in(index, index.entry_at(offset), offset, typed_prefix(index.text, offset))
    deeper = _deeper_indent(index.text, offset)
    inside, _ = _view_with(index, offset, [deeper + PLACEHOLDER] if deeper else [])
    if inside is not None:
        return replace(seen, names=seen.names | inside.names, enclosing=seen.enclosing | inside.enclosing)
    return seen


def _view_with(index: ScopeIndex, offset: int, insertions: Iterable[bytes]) -> tuple[ScopeView | None, int]:
    """The view where the first of `insertions` stands with which the code around it can be read, None where there is
    none; and how many bytes of attempts are left."""
    room = _MOST_READ
    for insertion in insertions:
        probe = index.edited(offset, offset, insertion) if insertion else index
        at = offset + insertion.find(PLACEHOLDER) if insertion else offset
        entry = probe.entry_at(at)
        if not probe.entries[entry].damaged:
            return _view_in(probe, entry, at, typed_prefix(index.text, offset)), room
        room -= len(probe.entries[entry].piece.text)
        if room < 0:
            break
    return None, room


def _view_without_statement(index: ScopeIndex, offset: int, room: int) -> ScopeView | None:
    """The view where the statement around the cursor cannot be read, but the document can without it; looked for in
    `room` bytes of attempts.

    What the statement binds, or its parts bind for each other, nobody knows: all its words count as names.
    """
    prefix = typed_prefix(index.text, offset)
    for start, end, statement in stand_ins(index.text, offset):
        if room < 0:
            return None
        probe = index.edited(start, end, statement)
        at = start + statement.find(PLACEHOLDER)
        entry = probe.entry_at(at)
        if not probe.entries[entry].damaged:
            seen = _view_in(probe, entry, at, prefix)
            left_out = index.text[start : offset - len(prefix.encode())] + b" " + index.text[offset:end]
            words = frozenset(word.decode("utf-8", "replace") for word in _WORD.findall(left_out))
            return replace(seen, names=seen.names | words, position=PositionKind.UNKNOWN)
        room -= len(probe.entries[entry].piece.text)
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
    hatch = "syntax error" if found.damaged else _hatch(index, entry, local)
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
    if index.entries[entry].damaged or _hatch(index, entry, local) is not None:
        return None
    frames = frames_of(index, entry, index.entries[entry].facts.scope_at(local), local)
    return names_of(frames, _runs_later(index, entry, local, _position(index, entry, local), frames))[0]


def _leaf(index: ScopeIndex, entry: int, local: int) -> Node | None:
    parsed = index.entries[entry].parsed
    at = local + parsed.shift
    return parsed.tree.root_node.descendant_for_byte_range(at, at + 1)


def _position(index: ScopeIndex, entry: int, local: int) -> PositionKind:
    found = index.entries[entry]
    if found.damaged:
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
