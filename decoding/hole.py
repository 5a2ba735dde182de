"""The surroundings of a cursor as the text rules need them: the line it splits, the lines around it, their style.

Pure and torch-free. Knows lines, brackets and quotes, no grammar; looks at a bounded neighbourhood only, so that
a 5 MB file costs no more than a small one.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

LINE_END = re.compile(r"\r\n|\n|\r")
NEIGHBOURHOOD = 16_384
"""Characters looked at on either side of the cursor."""
STYLE_LINES = 150
"""Lines on either side that say how the file is indented."""

_CLOSER_OF = {"(": ")", "[": "]", "{": "}"}
_IN_CODE = re.compile(r"""#[^\n]*|\"\"\"|'''|["'()\[\]{}]""")
_IN_STRING = {
    "'": re.compile(r"\\.|'|\n", re.DOTALL),
    '"': re.compile(r'\\.|"|\n', re.DOTALL),
    "'''": re.compile(r"\\.|'''", re.DOTALL),
    '"""': re.compile(r'\\.|"""', re.DOTALL),
}


@dataclass(frozen=True, slots=True)
class Scan:
    """What a piece of code opens and closes. Strings and comments do not count."""

    opened: tuple[str, ...]
    """Closers that are still owed at the end, innermost last."""
    unmatched: tuple[tuple[int, str], ...]
    """Closers and quotes, each with its index, that end something opened before the piece."""
    quote: str
    """The quote of the string that is open at the end, "" outside of strings."""

    @property
    def balanced(self) -> bool:
        """Whether a statement can end here."""
        return not self.opened and not self.quote


def scan(code: str, quote: str = "") -> Scan:
    """Brackets and quotes of `code` (lines end in \\n), which starts inside a string if `quote` is given."""
    opened: list[str] = []
    unmatched: list[tuple[int, str]] = []
    inherited = bool(quote)
    position = 0
    while match := (_IN_STRING[quote] if quote else _IN_CODE).search(code, position):
        token, position = match.group(), match.end()
        if quote:
            if token == quote and inherited:
                unmatched.append((match.start(), token))
            if token in (quote, "\n"):
                quote, inherited = "", False
        elif token in _IN_STRING:
            quote = token
        elif token in _CLOSER_OF:
            opened.append(_CLOSER_OF[token])
        elif opened and opened[-1] == token:
            opened.pop()
        elif token[0] != "#":
            unmatched.append((match.start(), token))
    return Scan(tuple(opened), tuple(unmatched), quote)


LINE_BYTES = 1_000
"""Of a line, before and after the cursor, that say which brackets are open: one of 60,000 costs no more."""


def closed_already(data: bytes, offset: int) -> int:
    """How many bytes right behind the cursor close what is open in its line: `)` of `print(|)`, `"` of `x = "|"`.

    Editors type them together with the opening one. A text for the cursor writes its own, which take their place.
    """
    near = data[max(0, offset - LINE_BYTES) : offset].decode("utf-8", "replace")
    found = scan(LINE_END.split(near)[-1])
    size = 0
    for closer in (found.quote, *reversed(found.opened)):
        if not data.startswith(closer.encode(), offset + size):
            break
        size += len(closer)
    return size


def indentation(line: str) -> str:
    """The blanks that `line` begins with."""
    return line[: len(line) - len(line.lstrip(" \t"))]


def statements(lines: list[str]) -> list[tuple[int, str]]:
    """Logical lines as (index of the first line, text): what brackets, strings or a backslash join is one."""
    found: list[tuple[int, str]] = []
    start = 0
    for end in range(1, len(lines) + 1):
        code = "\n".join(lines[start:end])
        if end < len(lines) and (not scan(code).balanced or code.endswith("\\")):
            continue
        if code.strip():
            found.append((start, code))
        start = end
    return found


def opens_block(statement: str) -> bool:
    """Whether a logical line ends in a colon, so that deeper lines follow."""
    return statement.rpartition("\n")[2].split("#")[0].rstrip().endswith(":")


@dataclass(frozen=True, slots=True)
class Hole:
    """A cursor between `before` and `after` on one line; `above` and `below` are whole lines without their ends."""

    before: str
    after: str
    above: tuple[str, ...]
    below: tuple[str, ...]
    newline: str
    indent: str
    """One level of indentation in this file: a tab or some spaces."""
    quote: str
    """The quote of a string that is open at the cursor (judged by its line alone)."""

    @classmethod
    def at(cls, text: str, offset: int) -> Hole:
        """The hole at `offset` UTF-8 bytes; one inside a character or past the end is clamped."""
        cursor = offset if text.isascii() else _characters(text, offset)
        head = text[max(0, cursor - NEIGHBOURHOOD) : cursor]
        tail = text[cursor : cursor + NEIGHBOURHOOD]
        *above, before = LINE_END.split(head)
        after, *below = LINE_END.split(tail)
        if cursor > NEIGHBOURHOOD and above:
            above = above[1:]
        ends = Counter(LINE_END.findall(head + tail))
        return cls(
            before=before,
            after=after,
            above=tuple(above),
            below=tuple(below),
            newline=max(ends, key=ends.__getitem__, default="\n"),
            indent=_indent_unit([*above[-STYLE_LINES:], *below[:STYLE_LINES]]),
            quote=scan(before).quote,
        )

    @property
    def previous(self) -> str | None:
        """The nearest line above that is not blank, None where there is none."""
        return next((line for line in reversed(self.above) if line.strip()), None)

    @property
    def following(self) -> list[str]:
        """The lines below that are not blank, without trailing blanks."""
        return [line.rstrip() for line in self.below if line.strip()]


def _characters(text: str, offset: int) -> int:
    return len(text.encode("utf-8", "surrogatepass")[:offset].decode("utf-8", "ignore"))


def _indent_unit(lines: list[str]) -> str:
    """A tab, or the commonest step in spaces from a line that opens a block to the next; 4 spaces if unknown."""
    steps: Counter[str] = Counter()
    previous, outer = "", ""
    for line in lines:
        text = line.lstrip(" \t")
        if not text.strip():
            continue
        lead = line[: len(line) - len(text)]
        # Asked last: it takes longest, and few lines are deeper than the one before. Ten calls belong to a keystroke.
        if len(lead) > len(outer) and lead.startswith(outer) and opens_block(previous):
            steps[lead[len(outer) :]] += 1
        previous, outer = line, lead
    if not steps:
        return "\t" if any(line.startswith("\t") for line in lines) else "    "
    return max(steps, key=steps.__getitem__)
