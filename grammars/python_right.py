"""The text after the cursor: when a completion may stop, and which brackets it must leave open.

Knows a suffix and syntax states. Must not know tokens or the text before the cursor.

Stopping is right where the text after the gap can be read on without a mistake, as far as the gap matters for it:
to the end of its logical line, and then the first line of every block that it returns to. A suffix that is broken
by itself can never be read so; then stopping is right where reading gets as far as it can at best.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count

from grammars.python_lexer import LineStart, Mode, Space, Word
from grammars.python_lines import logical_lines
from grammars.python_states import Indents, Machine, State
from grammars.python_strings import OpenString
from grammars.python_terminals import Line

_FAR = 8192
"""A logical line that goes on for so many bytes is taken to be sound."""
_MANY_LINES = 400
_FIRST_LEXEME = re.compile(rb"[A-Za-z_][A-Za-z_0-9]*[^A-Za-z_0-9]?|[^\n]", re.DOTALL)
_READ = 1 << 60
"""The whole suffix was read: farther than any mistake."""
_FILLERS = tuple(b"x| x|,| in x|:|()|=x|pass| as x| import x| else x| def x():|\n|'|\"".split(b"|"))
_STATEMENTS = (b"pass", b"if x:", b"except x: pass", b"def x(): pass")
_CLOSERS = (b")", b"]", b"}")
_OPENERS = {b"(": 3, b"[": 3, b"{": 3}
"""Brackets that the gap has to open for the suffix to close are rare: they are tried as late as three other lexemes."""
_MOST_TRIES = 600


@dataclass(frozen=True, slots=True)
class Best:
    """How well the gap can be filled at best.

    Attributes:
        reach: how far the suffix can be read, `_READ` where wholly.
        depth: how many of the brackets that are open at the cursor the suffix closes, 0 where it cannot be told.
    """

    reach: int
    depth: int


@dataclass(slots=True)
class RightContext:
    """What stands after the gap that begins in the state `cursor`."""

    suffix: bytes
    cursor: State
    _reached: dict[State, int] = field(default_factory=dict)
    _returns: dict[int, list[tuple[Line, bytes]]] = field(default_factory=dict)
    _best: Best | None = None
    _behind: dict[tuple[int, State], RightContext] = field(default_factory=dict)

    def behind(self, count: int, state: State) -> RightContext:
        """What stands after the first `count` bytes, for a gap that goes on in `state`."""
        found = self._behind.get((count, state))
        if found is None:
            found = self._behind[count, state] = RightContext(self.suffix[count:], state)
        return found

    def may_end(self, state: State) -> bool:
        """Whether the gap may end in `state`."""
        reach = self.reach(state)
        return reach == _READ or reach >= self.best.reach

    def fits(self, state: State) -> bool:
        """Whether the suffix can be read on from `state` without a mistake."""
        return self.reach(state) == _READ

    @property
    def best(self) -> Best:
        """Found on first use by trying fillings, the shortest and those that close the fewest brackets first."""
        if self._best is None:
            self._best = self._find_best() if self.suffix.strip() else Best(_READ, 0)
        return self._best

    def _find_best(self) -> Best:
        reach = -1
        order = count()
        todo = [(0, next(order), self.cursor)]
        seen = {self.cursor}
        while todo:
            cost, _, state = heappop(todo)
            reached = self.reach(state)
            if reached == _READ:
                return Best(_READ, min(state.machine.depth, self.cursor.machine.depth))
            reach = max(reach, reached)
            for filler in _fillers(state) if len(seen) < _MOST_TRIES else ():
                following = state.run(filler)
                if following is not None and following not in seen:
                    seen.add(following)
                    heappush(todo, (cost + _OPENERS.get(filler, 1), next(order), following))
        return self._best_of_closing() or Best(reach, 0)

    def _best_of_closing(self) -> Best | None:
        """What closing one bracket after the other gives: more of them than any search among all fillers gets to."""
        for operand in (b"", b"x"):
            state = self.cursor.run(operand)
            while state is not None:
                if self.reach(state) == _READ:
                    return Best(_READ, min(state.machine.depth, self.cursor.machine.depth))
                state = _closed(state)
        return None

    def reach(self, state: State) -> int:
        """How many bytes of the suffix can be read from `state` before a mistake; `_READ` where none is met."""
        found = self._reached.get(state)
        if found is None:
            found = self._reached[state] = self._read(state)
        return found

    def _read(self, state: State) -> int:
        mode: Mode = state.mode
        machine: Machine | None = state.machine
        for offset, byte in enumerate(self.suffix[:_FAR]):
            step = mode.step(byte)
            if step is None:
                return offset
            mode = step.mode
            for event in step.events:
                machine = machine.after(event)  # type: ignore[union-attr]
                if machine is None:
                    return offset
            if step.events and isinstance(mode, LineStart) and machine.depth == 0:  # type: ignore[union-attr]
                return self._read_returns(machine, offset + 1)  # type: ignore[arg-type]
        # A string or bracket that swallows the rest is the worst way to read it. How long one goes on that was open at
        # the cursor is not looked into.
        if len(self.suffix) > _FAR:
            opened = OpenString.of(state.mode) if OpenString.of(self.cursor.mode) is None else None
            return 0 if opened is not None and not opened.is_left(mode) else _READ
        return _READ if machine.state(mode).may_end() else 0  # type: ignore[union-attr]

    def _read_returns(self, machine: Machine, position: int) -> int:
        """Read the first lexeme of every line after `position` that is indented less than all before it."""
        column = -1
        code = machine.language.lexer.get(Space, ())
        for line, lexeme in self._returns_from(position):
            begun = machine.after(line)
            if begun is None or begun.state(code).run(lexeme) is None:
                return position
            following = begun.state(code).run(b"pass\n")
            if following is None:  # a `case`
                return _READ
            machine, column = following.machine, line.column
        if column != 0 and self.suffix.count(b"\n", position) <= _MANY_LINES and not self._may_be_last(machine):
            return position
        return _READ

    def _may_be_last(self, machine: Machine) -> bool:
        """Whether the file may end at the begin of a line: it leaves the blocks that the gap opened, and a header has a
        body, a `try` its `except` by then. Blocks that were open at the cursor may lack something all the while."""
        column, alternate, *_ = machine.indents
        same = machine.after(Line(column, alternate))
        code = machine.language.lexer.get(Space, ())
        if same is None or same.state(code).run(b"pass") is None:
            return False
        left: Machine | None = machine
        while left is not None and left.indents.depth > self.cursor.machine.indents.depth:
            left = left.dedented()
        return left is not None

    def _returns_from(self, position: int) -> list[tuple[Line, bytes]]:
        found = self._returns.get(position)
        if found is None:
            found = self._returns[position] = []
            column: int | None = None
            for number, line in enumerate(logical_lines(self.suffix, position)):
                if column is None or line.column < column:
                    column = line.column
                    alternate = len(self.suffix[line.begin : line.content].rpartition(b"\f")[2])
                    lexeme = _FIRST_LEXEME.match(self.suffix, line.content)
                    found.append((Line(column, alternate), lexeme[0] if lexeme else b""))
                if column == 0 or number > _MANY_LINES:
                    break
        return found


def _closed(state: State) -> State | None:
    """The state behind the closer of the innermost bracket; None where there is none, or the cursor is in a string."""
    closed = (state.run(closer) for closer in _CLOSERS)
    return next((after for after in closed if after is not None and after.machine.depth < state.machine.depth), None)


def _fillers(state: State) -> Iterator[bytes]:
    """What to try next: at the begin of a line every open block and a new one, elsewhere some lexemes."""
    mode = state.mode
    if isinstance(mode, LineStart):
        indents: Indents | None = state.machine.indents
        yield b" " * max(state.machine.indents.column + 4 - mode.column, 0) + b"pass"
        while indents is not None:
            if indents.column >= mode.column:
                yield from (b" " * (indents.column - mode.column) + statement for statement in _STATEMENTS)
            indents = indents.outer
    else:
        if isinstance(mode, Word) and mode.text:
            words = state.machine.language.terminals.keywords
            yield from (word[len(mode.text) :].encode() for word in sorted(words) if word.startswith(mode.text))
        yield from _FILLERS
        yield from _OPENERS
        if state.machine.depth:
            yield from _CLOSERS
