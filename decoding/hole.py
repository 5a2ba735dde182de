"""The surroundings of a cursor as the text rules need them: the line it splits, the lines around it, their style.

Pure and torch-free. Knows lines, brackets and quotes, no grammar; looks at a bounded neighbourhood only, so that
a 5 MB file costs no more than a small one.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace

LINE_END = re.compile(r"\r\n|\n|\r")
NEIGHBOURHOOD = 16_384
"""Characters looked at on either side of the cursor."""
STYLE_LINES = 150
"""Lines on either side that say how the file is indented."""

_CLOSER_OF = {"(": ")", "[": "]", "{": "}"}
_IN_CODE = re.compile(r"""#[^\n]*|\"\"\"|'''|["'()\[\]{}]""")
_IN_FIELD = re.compile(r"""\"\"\"|'''|["'()\[\]{}\n]""")
_IN_STRING = {
    "'": re.compile(r"\\.|'|\n", re.DOTALL),
    '"': re.compile(r'\\.|"|\n', re.DOTALL),
    "'''": re.compile(r"\\.|'''", re.DOTALL),
    '"""': re.compile(r'\\.|"""', re.DOTALL),
}
_IN_FORMATTED = {quote: re.compile(r"\{\{|\{|" + inside.pattern, re.DOTALL) for quote, inside in _IN_STRING.items()}
_FORMATTED = re.compile(r"(?:\b|\A)[rR]?[fFtT][rR]?\Z")


@dataclass(frozen=True, slots=True)
class Opened:
    """A bracket, a string or a field of a string that is open."""

    closer: str
    formatted: bool = False
    """Whether it is a string whose braces hold code."""
    at: int = -1
    """Where it was opened; before the piece that is looked at: -1."""

    @property
    def is_string(self) -> bool:
        """Whether what stands in it is text."""
        return self.closer in _IN_STRING


@dataclass(frozen=True, slots=True)
class Scan:
    """What a piece of code opens and closes. Brackets in strings and comments do not count."""

    open: tuple[Opened, ...]
    """What is open at the end, innermost last."""
    unmatched: tuple[tuple[int, str], ...]
    """Closers and quotes, each with its index, that end something opened before the piece."""

    @property
    def balanced(self) -> bool:
        """Whether a statement can end here."""
        return not self.open

    @property
    def quote(self) -> str:
        """The quote of the string whose text the end stands in, "" in code."""
        return self.open[-1].closer if self.open and self.open[-1].is_string else ""

    @property
    def inside(self) -> tuple[Opened, ...]:
        """The outermost string that the end stands in, and everything that is open in it."""
        first = next((number for number, opened in enumerate(self.open) if opened.is_string), len(self.open))
        return tuple(replace(opened, at=-1) for opened in self.open[first:])


def scan(code: str, inside: tuple[Opened, ...] = ()) -> Scan:
    """Brackets and quotes of `code` (lines end in \\n), which starts `inside` of strings and their fields."""
    stack = list(inside)
    strings = [depth for depth, opened in enumerate(stack) if opened.is_string]  # where they are in the stack
    owed = len(stack)  # so many were opened before the piece
    unmatched: list[tuple[int, str]] = []
    position = 0

    def close(depth: int, match: re.Match[str]) -> None:
        """Everything from `depth` on ends."""
        nonlocal owed
        if depth < owed and match[0] != "\n":
            unmatched.append((match.start(), match[0]))
        del stack[depth:]
        while strings and strings[-1] >= depth:
            strings.pop()
        owed = min(owed, depth)

    while match := _pattern(stack, bool(strings)).search(code, position):
        token, position = match[0], match.end()
        if token == "\n":
            close(strings[-1] if len(stack[strings[-1]].closer) == 1 else len(stack), match)
        elif stack and stack[-1].is_string:
            if token == stack[-1].closer:
                close(len(stack) - 1, match)
            elif token == "{":
                stack.append(Opened("}", at=match.start()))
        elif token in _IN_STRING:
            same = [depth for depth in strings if stack[depth].closer == token]
            if same:
                close(same[-1], match)
            else:
                formatted = _FORMATTED.search(code[max(0, match.start() - 3) : match.start()]) is not None
                strings.append(len(stack))
                stack.append(Opened(token, formatted, match.start()))
        elif token in _CLOSER_OF:
            stack.append(Opened(_CLOSER_OF[token], at=match.start()))
        elif stack and stack[-1].closer == token:
            close(len(stack) - 1, match)
        elif token[0] != "#":
            unmatched.append((match.start(), token))
    return Scan(tuple(stack), tuple(unmatched))


def _pattern(stack: list[Opened], in_string: bool) -> re.Pattern[str]:
    """What counts where the last of `stack` is the innermost that is open, anywhere `in_string`."""
    if stack and stack[-1].is_string:
        return (_IN_FORMATTED if stack[-1].formatted else _IN_STRING)[stack[-1].closer]
    return _IN_FIELD if in_string else _IN_CODE


LINE_BYTES = 1_000
"""Of a line, before and after the cursor, that say which brackets are open: one of 60,000 costs no more."""


def closed_already(data: bytes, offset: int) -> int:
    """How many bytes right behind the cursor close what is open in its line: `)` of `print(|)`, `}"` of `f"{|}"`.

    Editors type them together with the opening one. A text for the cursor writes its own, which take their place.
    """
    near = data[max(0, offset - LINE_BYTES) : offset].decode("utf-8", "replace")
    size = 0
    for opened in reversed(scan(LINE_END.split(near)[-1]).open):
        if not data.startswith(opened.closer.encode(), offset + size):
            break
        size += len(opened.closer)
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
    inside: tuple[Opened, ...]
    """The string that is open at the cursor, and what is open in it (judged by its line alone)."""

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
            inside=scan(before).inside,
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
