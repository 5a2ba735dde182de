"""The document store against a shadow that a client would keep, edit by edit, in all three encodings."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types

from decoding.errors import BadPosition
from lsp_server.documents import (
    REMEMBERED_CHANGES,
    Document,
    DocumentStore,
    command_line_offset,
    command_line_position,
    normalise,
)
from lsp_server.lines import Encoding, LineIndex, decode

PIECES = [
    "a", "x = 1", "\n", "\r\n", "\r", "\r\r\n", "\f", "\v", "\u2028", "\u0085", "é", "e\u0301", "ß", "中", "😀", "👩‍💻",
    "\ud83d", "\ude00", "\t", "    ", "", "\n\n", "def f(a):\r\n    return a\r\n",
]  # fmt: skip
EDITS = 7_000
"""For each of three encodings: 21,000 in all."""


class Shadow:
    """The text as the client counts it: a string whose every character is one unit of the encoding."""

    def __init__(self, encoding: Encoding, text: str) -> None:
        self.encoding = encoding
        self.units = self.of(text)

    def of(self, text: str) -> str:
        if self.encoding == "utf-32":
            return text
        if self.encoding == "utf-8":
            return text.encode("utf-8", "surrogatepass").decode("latin-1")
        raw = text.encode("utf-16-le", "surrogatepass")
        return "".join(chr(raw[i] + 256 * raw[i + 1]) for i in range(0, len(raw), 2))

    def text(self) -> str:
        if self.encoding == "utf-32":
            return self.units
        if self.encoding == "utf-8":
            return self.units.encode("latin-1").decode("utf-8", "surrogatepass")
        raw = b"".join(ord(unit).to_bytes(2, "little") for unit in self.units)
        return raw.decode("utf-16-le", "surrogatepass")

    def position(self, index: int) -> types.Position:
        before = re.split(r"\r\n|\n|\r", self.units[:index])
        return types.Position(len(before) - 1, len(before[-1]))

    def places(self) -> list[int]:
        """Indices that a client can address: not between \\r and \\n, in UTF-8 not inside a character."""
        return [
            index
            for index in range(len(self.units) + 1)
            if self.units[index - 1 : index + 1] != "\r\n"
            and not (self.encoding == "utf-8" and index < len(self.units) and ord(self.units[index]) & 0xC0 == 0x80)
        ]


def readable(text: str) -> str:
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_random_edits_against_a_shadow(encoding: Encoding) -> None:
    rng = random.Random(f"documents {encoding}")
    for _ in range(EDITS // 70):
        shadow = Shadow(encoding, "".join(rng.choices(PIECES, k=rng.randrange(12))))
        document = Document("file:///a.py", "python", shadow.text(), 0)
        for revision in range(1, 71):
            places = shadow.places()
            low, high = sorted(rng.choices(places, k=2))
            if rng.random() < 0.5:
                high = min(place for place in places if place >= low)
            text = "".join(rng.choices(PIECES, k=rng.randrange(3)))
            span = types.Range(shadow.position(low), shadow.position(high))
            event: types.TextDocumentContentChangeEvent = types.TextDocumentContentChangePartial(span, text)
            shadow.units = shadow.units[:low] + shadow.of(text) + shadow.units[high:]
            if rng.random() < 0.1:
                event = types.TextDocumentContentChangeWholeDocument(shadow.text())
            document.change(event, encoding, revision)
            assert document.data == shadow.text().encode("utf-8", "surrogatepass")
            assert decode(document.data) == readable(shadow.text())
            if len(shadow.units) > 200:
                shadow = Shadow(encoding, "")
                document.change(types.TextDocumentContentChangeWholeDocument(""), encoding, revision)
            check_positions(document, shadow, encoding, rng)


def check_positions(document: Document, shadow: Shadow, encoding: Encoding, rng: random.Random) -> None:
    fresh = LineIndex(document.data)
    assert [document.lines.start(i) for i in range(len(document.lines))] == [fresh.start(i) for i in range(len(fresh))]
    index = rng.choice(shadow.places())
    if encoding == "utf-16" and index and "\ud800" <= shadow.units[index - 1] < "\udc00":
        return
    position = shadow.position(index)
    offset = document.offset_at(position, encoding)
    assert document.position_at(offset, encoding) == position
    head = Shadow(encoding, "")
    head.units = shadow.units[:index]
    assert offset == len(head.text().encode("utf-8", "surrogatepass"))


@given(st.lists(st.tuples(st.integers(0, 80), st.integers(0, 8), st.sampled_from(PIECES)), max_size=12))
def test_a_reader_catches_up_by_changes(edits: list[tuple[int, int, str]]) -> None:
    document = Document("file:///a.py", "python", "x = 1\n", 0)
    seen, revision = document.data, 0
    for number, (column, length, text) in enumerate(edits, 1):
        span = types.Range(types.Position(0, column), types.Position(0, column + length))
        document.change(types.TextDocumentContentChangePartial(span, text), "utf-16", number)
        if number % 3 == 0:
            seen, revision = caught_up(seen, document, revision), number
    assert caught_up(seen, document, revision) == document.data


def caught_up(data: bytes, document: Document, revision: int) -> bytes:
    changes = document.log.between(revision, document.revision)
    assert changes is not None
    for change in changes:
        data = data[: change.edit.start] + change.inserted + data[change.edit.old_end :]
    return data


def test_changes_too_old_to_remember_are_not_made_up() -> None:
    document = Document("file:///a.py", "python", "", 5)
    for revision in range(6, 7 + REMEMBERED_CHANGES):
        insert(document, 0, 0, "x", revision)
    last = document.revision
    assert document.log.between(4, last) is None
    assert document.log.between(5, last) is None
    assert len(document.log.between(6, last) or ()) == REMEMBERED_CHANGES
    assert [change.revision for change in document.log.between(6, 8) or ()] == [7, 8]
    assert document.log.between(10_000, last) is None


def insert(document: Document, line: int, column: int, text: str, revision: int) -> None:
    place = types.Position(line, column)
    document.change(types.TextDocumentContentChangePartial(types.Range(place, place), text), "utf-16", revision)


def test_a_full_text_counts_as_the_edit_that_it_is() -> None:
    document = Document("file:///a.py", "python", "aé\nb\nc\n", 0)
    whole = types.TextDocumentContentChangeWholeDocument("aè\nb\nc\n")
    change = document.change(whole, "utf-16", 1)
    assert (change.edit.start, change.edit.old_end, change.edit.new_end) == (1, 3, 3)
    assert change.inserted == "è".encode()


def test_positions_outside_are_clamped() -> None:
    document = Document("file:///a.py", "python", "ab\r\ncd", 0)
    assert document.offset_at(types.Position(0, 99), "utf-16") == 2
    assert document.offset_at(types.Position(1, 99), "utf-16") == 6
    assert document.offset_at(types.Position(9, 0), "utf-16") == 6


def test_form_feed_and_line_separator_end_no_line() -> None:
    document = Document("file:///a.py", "python", "a\fb\u2028c\x85d\ve\nf", 0)
    assert len(document.lines) == 2
    assert document.offset_at(types.Position(1, 0), "utf-16") == len("a\fb\u2028c\x85d\ve\n".encode())


def test_a_reversed_range_is_the_range() -> None:
    document = Document("file:///a.py", "python", "abcd", 0)
    span = types.Range(types.Position(0, 3), types.Position(0, 1))
    document.change(types.TextDocumentContentChangePartial(span, ""), "utf-16", 1)
    assert document.data == b"ad"


def test_a_window_is_cut_at_characters() -> None:
    document = Document("file:///a.py", "python", "éé|éé".replace("|", ""), 0)
    text, offset = document.view(4).window(3, 3)
    assert (text, offset) == ("éé", 2)


def test_the_store_knows_a_file_by_either_spelling() -> None:
    store = DocumentStore()
    store.open(types.TextDocumentItem("file:///c%3A/x%20y.py", "python", 1, ""))
    assert store.get("file:///C:/x y.py") is not None
    assert normalise("untitled:Untitled-1") == "untitled:Untitled-1"
    assert normalise("vscode-notebook-cell:/a%20b#W0") == "vscode-notebook-cell:/a%20b#W0"
    assert store.close("file:///c:/x%20y.py") is not None
    assert store.get("file:///C:/x y.py") is None


def test_revisions_grow_over_reopening() -> None:
    store = DocumentStore()
    item = types.TextDocumentItem("file:///a.py", "python", 1, "x")
    first = store.open(item).revision
    assert store.open(item).revision > first


def test_a_change_of_a_closed_document_is_nothing() -> None:
    params = types.DidChangeTextDocumentParams(types.VersionedTextDocumentIdentifier(2, "file:///a.py"), [])
    assert DocumentStore().change(params) is None


@given(st.text(alphabet="aé😀\n\r\f ", max_size=30))
def test_command_line_positions_go_there_and_back(text: str) -> None:
    for index in range(len(text) + 1):
        if text[index - 1 : index + 1] == "\r\n":
            continue
        offset = len(text[:index].encode())
        assert command_line_offset(text, *command_line_position(text, offset)) == offset


@pytest.mark.parametrize(("line", "column"), [(0, 1), (3, 1), (1, 0), (1, 4), (2, 2)])
def test_command_line_positions_outside_are_refused(line: int, column: int) -> None:
    with pytest.raises(BadPosition, match="outside"):
        command_line_offset("ab\r\n", line, column)
