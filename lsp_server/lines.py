"""Where lines begin and what a column means, over UTF-8 bytes.

Knows bytes and the three position encodings of the protocol; no documents, no messages. Lines end at \\n, \\r\\n
and \\r only: \\f, \\v, U+0085 and U+2028 are ordinary characters to an editor. Half a surrogate pair, which
JavaScript clients can send, is kept as its three-byte form, so that every offset stays exact.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Literal

Encoding = Literal["utf-8", "utf-16", "utf-32"]

_LINE_END = re.compile(rb"\r\n|\n|\r")
_CODEC = {"utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}


class LineIndex:
    """Byte offsets at which the lines of a text begin, kept up to date edit by edit.

    Starts behind the latest edit are stored without its shift (`_shift` from `_seam` on), so that typing in one place
    of a long file moves no numbers; an edit elsewhere settles only the lines between the two places.
    """

    def __init__(self, data: bytes) -> None:
        self._starts = [0, *(match.end() for match in _LINE_END.finditer(data))]
        self._seam = len(self._starts)
        self._shift = 0

    def __len__(self) -> int:
        return len(self._starts)

    def start(self, line: int) -> int:
        """The byte at which `line` begins."""
        return self._starts[line] + (self._shift if line >= self._seam else 0)

    def line_at(self, offset: int) -> int:
        """The line that the byte `offset` is on."""
        if self._seam < len(self._starts) and offset >= self._starts[self._seam] + self._shift:
            return bisect_right(self._starts, offset - self._shift, lo=self._seam) - 1
        return bisect_right(self._starts, offset, hi=self._seam) - 1

    def replace(self, start: int, old_end: int, new_end: int, data: bytes) -> None:
        """Follows an edit: the bytes [start, old_end) became [start, new_end) of `data`, the new text.

        Only what was put in is looked at, and a character on either side, where \\r and \\n may have met or parted: a
        line of megabytes costs no more than a short one.
        """
        first = self.line_at(max(0, start - 1))
        last = self.line_at(old_end)
        delta = new_end - old_end
        is_last = last + 1 == len(self)
        end = len(data) if is_last else self.start(last + 1) + delta
        self._settle(last + 1)
        found = _LINE_END.finditer(data, max(self.start(first), start - 1), min(end, new_end + 3))
        fresh = [match.end() for match in found if match.start() <= new_end and (is_last or match.end() < end)]
        self._starts[first + 1 : last + 1] = fresh
        self._seam = first + 1 + len(fresh)
        self._shift += delta

    def _settle(self, seam: int) -> None:
        """Moves the seam, shifting the starts that it passes."""
        if seam > self._seam:
            self._starts[self._seam : seam] = [start + self._shift for start in self._starts[self._seam : seam]]
        else:
            self._starts[seam : self._seam] = [start - self._shift for start in self._starts[seam : self._seam]]
        self._seam = seam


def without_line_end(line: bytes) -> bytes:
    """`line` without the \\n, \\r\\n or \\r at its end."""
    if line.endswith(b"\r\n"):
        return line[:-2]
    return line[:-1] if line.endswith((b"\n", b"\r")) else line


def byte_of_column(line: bytes, column: int, encoding: Encoding) -> tuple[int, bool]:
    """The byte of `column`, clamped to the line and rounded down to a character; whether that split a pair."""
    if encoding == "utf-8" or line.isascii():
        offset = min(column, len(line))
        while 0 < offset < len(line) and line[offset] & 0xC0 == 0x80:
            offset -= 1
        return offset, False
    codec, width = _CODEC[encoding]
    units = line.decode("utf-8", "surrogatepass").encode(codec, "surrogatepass")
    head = units[: column * width]
    splits = encoding == "utf-16" and len(head) < len(units) and _is_pair(units[len(head) - 2 : len(head) + 2])
    whole = head[:-2] if splits else head
    return len(whole.decode(codec, "surrogatepass").encode("utf-8", "surrogatepass")), splits


def column_of_byte(line: bytes, offset: int, encoding: Encoding) -> int:
    """The column of the character at byte `offset` of `line`."""
    head = line[:offset]
    if encoding == "utf-8" or head.isascii():
        return len(head)
    codec, width = _CODEC[encoding]
    return len(head.decode("utf-8", "surrogatepass").encode(codec, "surrogatepass")) // width


def _is_pair(units: bytes) -> bool:
    return len(units) == 4 and units[1] & 0xFC == 0xD8 and units[3] & 0xFC == 0xDC


_HALVES = re.compile("[\ud800-\udfff]")


def encode(text: str) -> bytes:
    """UTF-8 in which half a surrogate pair is its three-byte form."""
    return text.encode("utf-8", "surrogatepass")


def join_halves(text: str) -> str:
    """`text` in which a high and a low half that have met are one character, as they are to UTF-16 clients."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def decode(data: bytes) -> str:
    """The text of `encode`d bytes; half a pair becomes U+FFFD, which has as many bytes and columns."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return _HALVES.sub("\ufffd", data.decode("utf-8", "surrogatepass"))
