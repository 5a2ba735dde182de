"""The code around a selection: what a prompt needs of a file, within a number of tokens.

Knows outlines. Must not know commands or models beyond a way to count tokens.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from decoding.messages import Snapshot
from decoding.reasoning.pieces import Piece
from grammars.definitions import Definition, Outline, outline, statements_around

Count = Callable[[str], int]

_FIELD = re.compile(rb"^[ \t]+[A-Za-z_]\w*[ \t]*:[^\r\n]*", re.MULTILINE)
_TEXT = re.compile(r"""^("{3}|'{3})(.*?)\1""", re.MULTILINE | re.DOTALL)
_MOST_MEMBERS = 12
_CUT = "# … (lines left out)"


@dataclass(frozen=True)
class Source:
    """A document and the bytes [start, end) that are selected in it."""

    data: bytes
    start: int
    end: int
    uri: str

    @classmethod
    def of(cls, snapshot: Snapshot, end: int) -> Source:
        """The selection from the snapshot's offset to `end`, brought inside of the text."""
        data = snapshot.text.encode("utf-8", "surrogatepass")
        start = min(snapshot.offset, len(data))
        return cls(data, start, max(start, min(end, len(data))), snapshot.uri)

    @property
    def name(self) -> str:
        """The file's name."""
        return PurePosixPath(unquote(urlsplit(self.uri).path)).name or "untitled.py"

    @property
    def text(self) -> str:
        """The whole text."""
        return self.data.decode("utf-8", "surrogatepass")

    @cached_property
    def outline(self) -> Outline:
        """Definitions and imports."""
        return outline(self.data)

    @property
    def selected(self) -> bool:
        """Whether anything but white space is selected."""
        return bool(self.data[self.start : self.end].strip())

    @cached_property
    def definition(self) -> Definition | None:
        """The definition at the selection: the innermost around it, or, for a cursor before it on its first line, the
        one that begins there."""
        line_end = self.data.find(b"\n", self.start)
        line = self.data[self.start : line_end if line_end >= 0 else len(self.data)]
        shifted = self.start + len(line) - len(line.lstrip()) if line.strip() else self.start
        return self.outline.around(min(shifted, self.end) if self.selected else shifted, max(self.end, shifted))

    def piece(self, start: int, end: int) -> Piece:
        """The bytes [start, end) as a piece."""
        return Piece(self.data, start, end)

    def piece_of(self, definition: Definition) -> Piece:
        """A whole definition."""
        return self.piece(definition.start, definition.end)

    def everything(self) -> Piece:
        """The whole text, white space around it left out."""
        stripped = self.data.strip()
        start = self.data.find(stripped)
        return self.piece(start, start + len(stripped))

    def whole_lines(self) -> Piece:
        """The lines that the selection touches."""
        end = self.data.find(b"\n", max(self.start, self.end - 1))
        return self.piece(self.data.rfind(b"\n", 0, self.start) + 1, end if end >= 0 else len(self.data))

    def whole_statements(self) -> Piece:
        """The statements that the selection touches."""
        return self.piece(*statements_around(self.data, self.start, self.end))

    def signature(self, definition: Definition) -> str:
        """Header and first docstring line of a definition, at column 0."""
        doc = self._first_words(definition)
        rest = f'    """{doc}"""' if doc else "    ..."
        return f"{self._header(definition)}\n{rest}"

    def interface(self, definition: Definition) -> str:
        """The signature; of a class also its annotated fields and the headers of its methods: how it is used."""
        if definition.kind != "class":
            return self.signature(definition)
        members = [
            (definition.start + found.start(), found[0].strip().decode("utf-8", "replace"))
            for found in _FIELD.finditer(self.data[definition.start : definition.end])
        ]
        for each in self.outline.definitions:
            inside = definition.start < each.start and each.end <= definition.end
            if inside and each.in_class and each.depth == definition.depth + 1:
                members = [member for member in members if not each.start <= member[0] < each.end]
                if each.kind == "function":
                    members.append((each.start, f"{self._header(each)} ..."))
        lines = [line for _, text in sorted(members)[:_MOST_MEMBERS] for line in text.split("\n")]
        if not lines:
            return self.signature(definition)
        return "\n".join([self._header(definition), *(f"    {line}" for line in lines)])

    def _header(self, definition: Definition) -> str:
        lines = self.piece(definition.start, definition.header_end).code.split("\n")
        return "\n".join(line for line in lines if not line.startswith("@"))

    def _first_words(self, definition: Definition) -> str:
        body = self.data[definition.body_start : definition.end].decode("utf-8", "replace")
        doc = re.match(r"""[rR]?("{3}|'{3}|"|')\s*([^\n"']+)""", body)
        return doc[2].strip() if doc else ""

    def words_about(self, piece: Piece) -> str:
        """What is said of a piece outside of it: the comment right above, else the text of a file that defines
        nothing else."""
        above = self.data[: piece.start].decode("utf-8", "replace").split("\n")[:-1]
        comment: list[str] = []
        while above and above[-1].lstrip().startswith("#"):
            comment.insert(0, above.pop().strip().lstrip("# "))
        if comment:
            return "\n".join(comment)
        if any(not piece.start <= each.start < piece.end for each in self.outline.definitions):
            return ""
        found = _TEXT.search(self.data[: piece.start].decode("utf-8", "replace")) or _TEXT.search(
            self.data[piece.end :].decode("utf-8", "replace")
        )
        return found[2].strip() if found else ""

    def skeleton(self, room: int, count: Count) -> str:
        """The file in `room` tokens: all of it where it fits, else imports and signatures."""
        if count(self.text) <= room:
            return self.text.strip("\n")
        parts = [self.data[start:end].decode("utf-8", "replace") for start, end in self.outline.imports]
        for each in self.outline.definitions:
            indentation = "    " * each.depth
            parts.append("\n".join(indentation + line for line in self.signature(each).split("\n")))
        return shortened("\n".join(parts) if parts else self.text, room, count)


def shortened(code: str, room: int, count: Count) -> str:
    """`code` in about `room` tokens: whole lines from its beginning and its end, with a comment between."""
    if count(code) <= room:
        return code
    lines = code.split("\n")
    kept = len(lines)
    while kept > 2:
        kept = min(kept - 1, max(2, kept * 7 // 8))
        head = (2 * kept + 2) // 3
        short = "\n".join([*lines[:head], _CUT, *lines[len(lines) - (kept - head) :]])
        if count(short) <= room:
            return short
    return code[: room * 3]
