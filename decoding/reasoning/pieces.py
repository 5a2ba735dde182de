"""A piece of a file: whole statements, taken out of their indentation for the model and put back afterwards.

Knows text and byte ranges. Must not know what is changed, or by whom.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from decoding.reasoning.checks import lines_inside_strings
from decoding.reasoning.requests import Replacement

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[^\n`]*\n", re.MULTILINE)
_FOUR_SPACES = re.compile(r"^(?: {4})+")


@dataclass(frozen=True, slots=True)
class Piece:
    """The statements in the bytes [start, end) of `data`."""

    data: bytes
    start: int
    end: int

    @property
    def indentation(self) -> str:
        """What stands before the piece on its first line, where that is white space."""
        before = self.data[self.data.rfind(b"\n", 0, self.start) + 1 : self.start].decode("utf-8", "replace")
        return before if not before.strip() else ""

    @property
    def newline(self) -> str:
        """The file's kind of line end."""
        return "\r\n" if b"\r\n" in self.data else "\n"

    @property
    def source(self) -> str:
        """The piece as it stands in the file, with plain line ends."""
        return _text(self.data[self.start : self.end])

    @property
    def code(self) -> str:
        """The piece at column 0."""
        first, *others = self.source.split("\n")
        return "\n".join([first, *(line.removeprefix(self.indentation) for line in others)])

    def replacement(self, code: str) -> Replacement:
        """The change that puts `code`, written at column 0, in place of the piece."""
        return Replacement(start=self.start, end=self.end, text=self._indented(code.strip("\n").rstrip()))

    def replaced(self, code: str) -> str:
        """The whole text with `code` in place of the piece."""
        return applied(self.data, (self.replacement(code),))

    def _indented(self, code: str) -> str:
        """`code` in the indentation of the piece. Lines that begin inside a string get back what they had in the
        file, since white space counts there."""
        inside = lines_inside_strings(code + "\n")
        tabs = "\t" in self.indentation or "\n\t" in self.source
        had = dict(zip(self.code.split("\n")[1:], self.source.split("\n")[1:], strict=True))
        lines = code.split("\n")
        for number, line in enumerate(lines):
            if number in inside and line in had:
                lines[number] = had[line]
            elif line.strip() or number in inside:
                if tabs and number not in inside:
                    line = _FOUR_SPACES.sub(lambda found: "\t" * (len(found[0]) // 4), line)
                lines[number] = (self.indentation if number and line.strip() else "") + line
        return self.newline.join(lines)


def applied(data: bytes, replacements: tuple[Replacement, ...]) -> str:
    """The text after replacements, which are in ascending order and do not overlap."""
    for each in reversed(replacements):
        data = b"".join((data[: each.start], each.text.encode("utf-8", "surrogatepass"), data[each.end :]))
    return data.decode("utf-8", "surrogatepass")


def code_of(answer: str, *, opened: bool) -> str:
    """The code in a Markdown answer: its first fence, closed or not; `opened`: the answer begins inside of one."""
    if not opened:
        fence = _FENCE.search(answer)
        answer = answer[fence.end() :] if fence else answer
    close = re.search(r"^ {0,3}(?:`{3,}|~{3,})\s*$", answer, re.MULTILINE)
    return (answer[: close.start()] if close else answer).strip("\n")


def fence_is_closed(answer: str) -> bool:
    """Whether a fence that was open where `answer` begins is closed in it."""
    return re.search(r"^```", answer, re.MULTILINE) is not None


def fenced(code: str, language: str = "python") -> str:
    """`code` as a Markdown block, in a fence longer than any in it."""
    longest = max((len(run) for run in re.findall(r"`{3,}", code)), default=2)
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}{language}\n{code}\n{ticks}\n"


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
