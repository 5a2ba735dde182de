"""The incremental index of one document: its pieces, each with its tree and its facts.

An index is immutable: an edit gives a new index that shares every piece the edit did not touch, so that a snapshot
of a document can be asked while newer ones are made. It equals the index that `ScopeIndex.of` makes of the same
text, because facts are a function of a piece's bytes alone. Knows bytes and offsets; must not know names.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from tree_sitter import Node

from grammars.scope_collector import facts_of, is_damaged
from grammars.scope_facts import ParsedPiece, PieceFacts, parse
from grammars.scope_pieces import Piece, Stack, cut

# Below this many bytes a fresh parse costs less than finding the difference and editing the old tree (measured:
# 3 MB/s, so 4 KB take 1.3 ms).
_REPARSE_FROM = 4096

# An open string with fields or continued lines was looked for beyond the piece that it was given up in.
_LOOKS_AHEAD = re.compile(rb"[fFtT][rR]?['\"]|\\[\r\n]")


@dataclass(frozen=True)
class Reading:
    """What the text of a piece says, wherever it stands; its facts are read from the tree when first asked for."""

    piece: Piece
    parsed: ParsedPiece

    @cached_property
    def damaged(self) -> bool:
        """Whether the grammar cannot read the piece."""
        return is_damaged(self.piece, self.parsed)

    @cached_property
    def facts(self) -> PieceFacts:
        """What the piece binds."""
        return facts_of(self.piece, self.parsed)


@dataclass(frozen=True, slots=True)
class Entry:
    """A piece where it stands, and the reading of it or of an equal one."""

    piece: Piece
    reading: Reading

    @classmethod
    def of(cls, piece: Piece, previous: ParsedPiece | None = None) -> Entry:
        """A new piece; `previous`, the tree of an earlier text of it, makes parsing incremental."""
        return cls(piece, Reading(piece, parse(piece, previous)))

    @property
    def parsed(self) -> ParsedPiece:
        """Its tree."""
        return self.reading.parsed

    @property
    def damaged(self) -> bool:
        """Whether the grammar cannot read it."""
        return self.reading.damaged

    @property
    def facts(self) -> PieceFacts:
        """What it binds."""
        return self.reading.facts


@dataclass(frozen=True)
class ScopeIndex:
    """All pieces of a document.

    Attributes:
        text: the document, UTF-8.
        entries: its pieces in order; they partition the text.
        starts: the offset of each piece.
    """

    text: bytes
    entries: tuple[Entry, ...]
    starts: tuple[int, ...]

    @classmethod
    def of(cls, text: bytes) -> ScopeIndex:
        """The index of a text, from nothing."""
        starts, entries = [], []
        for start, piece in cut(text):
            starts.append(start)
            entries.append(Entry.of(piece))
        return cls(text, tuple(entries), tuple(starts))

    def edited(self, start: int, old_end: int, replacement: bytes) -> ScopeIndex:
        """The index after the bytes [start, old_end) became `replacement`.

        Raises ValueError where the range is not within the text.
        """
        if not 0 <= start <= old_end <= len(self.text):
            raise ValueError(f"edit [{start}, {old_end}) outside of a text of {len(self.text)} bytes")
        text = self.text[:start] + replacement + self.text[old_end:]
        delta = len(replacement) - (old_end - start)
        touched = self.entry_at(start)
        first = self._first_affected(touched, start)
        after = bisect_left(self.starts, old_end)
        old = {begin + delta: after + i for i, begin in enumerate(self.starts[after:])}
        rest = len(self.entries)

        def known(begin: int, stack: Stack) -> bool:
            nonlocal rest
            met = old.get(begin)
            if met is None or self.entries[met].piece.stack != stack:
                return False
            rest = met
            return True

        starts: list[int] = []
        pieces: list[Piece] = []
        for begin, piece in cut(text, self.starts[first], self.entries[first].piece.stack, known):
            starts.append(begin)
            pieces.append(piece)
        entries = self._entries_for(pieces, first, rest, touched)
        return ScopeIndex(
            text,
            self.entries[:first] + entries + self.entries[rest:],
            self.starts[:first] + tuple(starts) + tuple(begin + delta for begin in self.starts[rest:]),
        )

    def _first_affected(self, touched: int, edit: int) -> int:
        """Number of the first piece that may end elsewhere after an edit at `edit` in piece `touched`."""
        for i in range(touched):
            if self.entries[i].damaged and _LOOKS_AHEAD.search(self.entries[i].piece.text):
                return i
        # The piece before may swallow a new first line (`else`, a deeper indentation), but nothing else.
        keeps_first_line = self.text.find(b"\n", self.starts[touched], edit) >= 0
        return touched if keeps_first_line else max(0, touched - 1)

    def _entries_for(self, pieces: list[Piece], first: int, rest: int, touched: int) -> tuple[Entry, ...]:
        """Entries of new pieces, made from the old ones in [first, rest) where those are equal or nearly so."""
        same = {_key(entry.piece): entry for entry in self.entries[first:rest]}
        entries = []
        for piece in pieces:
            old = same.get(_key(piece))
            if old is not None:
                entries.append(old if old.piece == piece else Entry(piece, old.reading))
                continue
            previous = self.entries[touched].parsed if len(piece.text) >= _REPARSE_FROM else None
            entries.append(Entry.of(piece, previous))
        return tuple(entries)

    def entry_at(self, offset: int) -> int:
        """Number of the piece that holds `offset` (the last one for the end of the text)."""
        return max(0, bisect_right(self.starts, offset) - 1)

    def body_of(self, entry: int) -> range:
        """Numbers of the entries in the body of the class whose header `entry` is, nested bodies included."""
        depth = len(self.entries[entry].piece.parents)
        end = entry + 1
        while end < len(self.entries) and len(self.entries[end].piece.parents) > depth:
            end += 1
        return range(entry + 1, end)

    def headers_of(self, entry: int) -> list[int]:
        """Numbers of the class headers around a piece, outermost first."""
        headers: list[int] = []
        depth = len(self.entries[entry].piece.parents)
        at = entry
        while depth:
            at -= 1
            piece = self.entries[at].piece
            if len(piece.parents) < depth:
                headers.append(at)
                depth = len(piece.parents)
        return headers[::-1]

    def members(self, header: int | None) -> Iterator[int]:
        """Numbers of the entries directly in the body of a class header, or in the module's body."""
        entries = self.entries
        if header is None:
            yield from (i for i, entry in enumerate(entries) if not entry.piece.parents)
            return
        depth = len(entries[header].piece.parents) + 1
        yield from (i for i in self.body_of(header) if len(entries[i].piece.parents) == depth)

    @cached_property
    def future_annotations(self) -> bool:
        """Whether the document says `from __future__ import annotations`."""
        return any(entry.facts.future_annotations for entry in self.entries)


def statement_of(entry: Entry) -> Node | None:
    """The node of the first statement of a piece, None where it has none."""
    node = entry.parsed.tree.root_node
    if entry.parsed.shift:
        wrapper = node.named_children[0] if node.named_children else None
        body = wrapper.child_by_field_name("consequence") if wrapper is not None else None
        if body is None:
            return None
        node = body
    return next((child for child in node.named_children if child.type != "comment"), None)


def _key(piece: Piece) -> tuple[bytes, int, bool, bool, bool]:
    """What the facts of a piece are a function of."""
    return piece.text, piece.column, piece.opens_class, bool(piece.parents), piece.misindented
