"""The open documents, and the mapping between positions and UTF-8 byte offsets.

Knows the protocol's positions and change events; nothing of completions. Everything past this module counts in
bytes. A document's `data` is an immutable `bytes`, so holding on to it is a snapshot; what each change replaced is
remembered for a while, so that a reader who knows an older revision can catch up.

Revisions are our own counter, unique over all documents and reopenings: clients skip, repeat or omit theirs.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from urllib.parse import unquote

from lsprotocol import types

from decoding.errors import BadPosition
from decoding.hole import closed_already
from decoding.messages import Edit
from lsp_server.lines import (
    Encoding,
    LineIndex,
    byte_of_column,
    column_of_byte,
    decode,
    encode,
    join_halves,
    without_line_end,
)
from lsp_server.wire import Patch

REMEMBERED_CHANGES = 256


@dataclass(frozen=True, slots=True)
class Change:
    """An edit that made revision `revision`, with the bytes it put in."""

    revision: int
    edit: Edit
    inserted: bytes


class ChangeLog:
    """The latest changes of one document, so that a reader of an older revision can catch up."""

    def __init__(self, revision: int) -> None:
        self._oldest = revision
        self._changes: deque[Change] = deque(maxlen=REMEMBERED_CHANGES)

    def append(self, change: Change) -> None:
        """Remembers a change and, where there are too many, forgets the oldest."""
        if len(self._changes) == REMEMBERED_CHANGES:
            self._oldest = self._changes[0].revision
        self._changes.append(change)

    def between(self, base: int, revision: int) -> tuple[Change, ...] | None:
        """What led from revision `base` to `revision`, oldest first; None where that is not known any more."""
        if not self._oldest <= base <= revision:
            return None
        return tuple(change for change in self._changes if base < change.revision <= revision)


@dataclass(frozen=True, slots=True)
class View:
    """An immutable document at one revision with a cursor at a byte offset, or what would become of it."""

    uri: str
    revision: int
    data: bytes
    offset: int
    language: str
    log: ChangeLog = field(repr=False, compare=False)
    document_data: bytes
    """The document itself at `revision`: `data` is that after `patches`."""
    patches: tuple[Patch, ...] = ()
    hypothetical: bool = False
    """Whether the user has yet to do something for `data` to be there."""

    @property
    def follows(self) -> int:
        """The byte at which goes on what a text for the cursor is to lead to: behind closers that it writes itself."""
        return self.offset + closed_already(self.data, self.offset)

    def behind(self, context: bytes) -> View:
        """The view with text before its document, as earlier cells are to a notebook's cell."""
        if not context:
            return self
        patch = Patch(start=0, old_end=0, text=decode(context))
        return replace(
            self, data=context + self.data, offset=len(context) + self.offset, patches=(patch, *self.patches)
        )

    def what_if(self, start: int, end: int, text: str) -> View:
        """The view after `text` took the place of [start, end), with its cursor behind it."""
        inserted = encode(text)
        data = b"".join((self.data[:start], inserted, self.data[end:]))
        patch = Patch(start=start, old_end=end, text=decode(inserted))
        return replace(self, data=data, offset=start + len(inserted), patches=(*self.patches, patch), hypothetical=True)

    def window(self, before: int, after: int) -> tuple[str, int]:
        """The text from up to `before` bytes before the cursor to `after` bytes after it, and the cursor in it.

        Cut at characters; the offset is in bytes.
        """
        start, end = max(0, self.offset - before), min(len(self.data), self.offset + after)
        while start < self.offset and self.data[start] & 0xC0 == 0x80:
            start += 1
        while self.offset < end < len(self.data) and self.data[end] & 0xC0 == 0x80:
            end -= 1
        return decode(self.data[start:end]), self.offset - start


class Document:
    """One open text."""

    def __init__(self, uri: str, language: str, text: str, revision: int, version: int | None = None) -> None:
        self.uri = uri
        self.language = language
        self.version = version
        """The client's own version number, for its eyes only."""
        self.revision = revision
        self.data = encode(text)
        self.lines = LineIndex(self.data)
        self.log = ChangeLog(revision)

    def view(self, offset: int) -> View:
        """A snapshot with its cursor at `offset` bytes."""
        return View(self.uri, self.revision, self.data, offset, self.language, self.log, self.data)

    def offset_at(self, position: types.Position, encoding: Encoding) -> int:
        """The byte of a position, clamped to its line and to the text."""
        return self._locate(position, encoding)[0]

    def position_at(self, offset: int, encoding: Encoding) -> types.Position:
        """The position of the byte `offset`."""
        number = self.lines.line_at(offset)
        start = self.lines.start(number)
        return types.Position(number, column_of_byte(self._line(number), offset - start, encoding))

    def change(self, event: types.TextDocumentContentChangeEvent, encoding: Encoding, revision: int) -> Change:
        """Applies a change: of a range, or of the whole text, of which only what differs counts as changed."""
        if isinstance(event, types.TextDocumentContentChangePartial):
            return self._replace_range(event.range, event.text, encoding, revision)
        data = encode(event.text)
        start = _common_prefix(self.data, data)
        tail = _common_suffix(self.data[start:], data[start:])
        return self._replace(start, len(self.data) - tail, data[start : len(data) - tail], revision)

    def _replace_range(self, span: types.Range, text: str, encoding: Encoding, revision: int) -> Change:
        start, splits_first = self._locate(span.start, encoding)
        end, splits_last = self._locate(span.end, encoding)
        start, end, splits_first, splits_last = (
            (start, end, splits_first, splits_last) if start <= end else (end, start, splits_last, splits_first)
        )
        if splits_first:
            text = _halves(self.data, start)[0] + text
        if splits_last:
            text, end = text + _halves(self.data, end)[1], end + 4
        if encoding == "utf-16":
            before, after = _half(self.data[max(0, start - 3) : start]), _half(self.data[end : end + 3])
            text = join_halves(before + text + after)
            start, end = start - 3 * len(before), end + 3 * len(after)
        return self._replace(start, end, encode(text), revision)

    def _replace(self, start: int, end: int, inserted: bytes, revision: int) -> Change:
        self.data = b"".join((self.data[:start], inserted, self.data[end:]))
        new_end = start + len(inserted)
        self.lines.replace(start, end, new_end, self.data)
        change = Change(revision, Edit(start=start, old_end=end, new_end=new_end), inserted)
        self.log.append(change)
        self.revision = revision
        return change

    def _locate(self, position: types.Position, encoding: Encoding) -> tuple[int, bool]:
        if position.line >= len(self.lines):
            return len(self.data), False
        byte, splits = byte_of_column(self._line(position.line), position.character, encoding)
        return self.lines.start(position.line) + byte, splits

    def _line(self, number: int) -> bytes:
        last = number + 1 == len(self.lines)
        end = len(self.data) if last else self.lines.start(number + 1)
        return without_line_end(self.data[self.lines.start(number) : end])


def _half(data: bytes) -> str:
    """The lone surrogate that `data` is, "" if it is none. An edit may complete it to a pair."""
    is_half = len(data) == 3 and data[0] == 0xED and data[1] >= 0xA0
    return data.decode("utf-8", "surrogatepass") if is_half else ""


def _halves(data: bytes, offset: int) -> tuple[str, str]:
    """The two surrogates of the four-byte character at `offset`."""
    high, low = divmod(ord(data[offset : offset + 4].decode()) - 0x10000, 0x400)
    return chr(0xD800 + high), chr(0xDC00 + low)


def _common_prefix(one: bytes, other: bytes) -> int:
    """Length of the longest common beginning that ends between characters."""
    size = _matching(min(len(one), len(other)), lambda low, high: one[low:high] == other[low:high])
    while size and any(size < len(text) and text[size] & 0xC0 == 0x80 for text in (one, other)):
        size -= 1
    return size


def _common_suffix(one: bytes, other: bytes) -> int:
    """Length of the longest common end that begins at a character."""
    size = _matching(
        min(len(one), len(other)),
        lambda low, high: one[len(one) - high : len(one) - low] == other[len(other) - high : len(other) - low],
    )
    while size and one[len(one) - size] & 0xC0 == 0x80:
        size -= 1
    return size


def _matching(limit: int, same: Callable[[int, int], bool]) -> int:
    """The largest n <= limit for which [0, n) is the same, by halving; every byte is compared about once."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        if same(low, middle):
            low = middle
        else:
            high = middle - 1
    return low


class DocumentStore:
    """The open documents by URI, in one position encoding."""

    def __init__(self, encoding: Encoding = "utf-16") -> None:
        self.encoding: Encoding = encoding
        self._documents: dict[str, Document] = {}
        self.newest = 0
        """The latest revision of any document."""

    def __iter__(self) -> Iterator[Document]:
        return iter(self._documents.values())

    def get(self, uri: str) -> Document | None:
        """The open document, None where it is not open."""
        return self._documents.get(normalise(uri))

    def _next(self) -> int:
        self.newest += 1
        return self.newest

    def open(self, item: types.TextDocumentItem) -> Document:
        """Opens a document, or replaces one that the client opens again."""
        document = Document(item.uri, item.language_id, item.text, self._next(), item.version)
        self._documents[normalise(item.uri)] = document
        return document

    def change(self, params: types.DidChangeTextDocumentParams) -> Document | None:
        """Applies the changes of a notification in their order; None where the document is not open."""
        document = self.get(params.text_document.uri)
        if document is None:
            return None
        for event in params.content_changes:
            document.change(event, self.encoding, self._next())
        document.version = params.text_document.version
        return document

    def close(self, uri: str) -> Document | None:
        """Forgets a document."""
        return self._documents.pop(normalise(uri), None)


def normalise(uri: str) -> str:
    """One spelling for a URI: clients mix `c%3A` and `C:`, escaped and plain characters."""
    scheme, colon, rest = uri.partition(":")
    if scheme != "file" or not colon:
        return uri
    return "file:" + re.sub(r"^(//[^/]*/)([A-Za-z]):", lambda m: m[1] + m[2].lower() + ":", unquote(rest))


def command_line_offset(text: str, line: int, column: int) -> int:
    """The byte offset of a 1-based line and column in characters; one past the end of a line is a position.

    Raises BadPosition where the text has no such place.
    """
    data = text.encode("utf-8", "surrogatepass")
    lines = LineIndex(data)
    if not 1 <= line <= len(lines):
        raise BadPosition(f"line {line} is outside the file, which has {len(lines)} lines")
    start = lines.start(line - 1)
    end = lines.start(line) if line < len(lines) else len(data)
    content = without_line_end(data[start:end])
    length = column_of_byte(content, len(content), "utf-32")
    if not 1 <= column <= length + 1:
        raise BadPosition(f"column {column} is outside line {line}, which has {length} characters")
    return start + byte_of_column(content, column - 1, "utf-32")[0]


def command_line_position(text: str, offset: int) -> tuple[int, int]:
    """The 1-based line and column in characters of a byte offset."""
    data = text.encode("utf-8", "surrogatepass")
    lines = LineIndex(data)
    number = lines.line_at(offset)
    return number + 1, column_of_byte(data[lines.start(number) :], offset - lines.start(number), "utf-32") + 1
