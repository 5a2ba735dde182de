"""The states of a text that is read as Python 3.13.

Knows the lexer's events and the parser's stacks, and joins them: newlines count outside brackets only, and columns
become INDENT and DEDENT. Must not know token ids, vocabularies or documents with a cursor.

A state is immutable. Reading goes through two caches that fill while it runs: what a text does to a mode of the
lexer, and what an event does to a machine.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from grammars.python_lexer import NEWLINE, AfterReturn, Lexer, LineStart, Mode
from grammars.python_parser import Node, Tables, python_tables
from grammars.python_terminals import Event, Line, Terminals

_DEEPEST_INDENT = 100
_DEEPEST_BRACKET = 200
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_NOTHING = 1 << 60
"""Higher than any stack: depends on no node."""
_MOST_MACHINES = 30_000
"""About 2 KB each, stacks included; 100 KB of source text make 8,000."""


class Indents(NamedTuple):
    """The open columns, innermost first: with tabs as 8 columns, and with tabs as one."""

    column: int
    alternate: int
    outer: Indents | None
    depth: int


MODULE = Indents(0, 0, None, 0)


class Language:
    """The grammar's tables, the lexer that goes with them, and the states made so far.

    All texts begin in the same state objects. Stacks hold no names, so that most positions of most files meet a
    stack, and with it answers, that another position has made.

    Attributes:
        machines: how many machines were made since the last fresh start.
        generation: how many fresh starts there were; what was remembered before the last is better let go.
    """

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.terminals = Terminals(tables.terminals)
        self.lexer = Lexer(self.terminals)
        number = tables.terminals
        self.newline, self.indent, self.dedent, self.end = (
            number[name] for name in ("NEWLINE", "INDENT", "DEDENT", "END")
        )
        self.depth_change = {number[name]: 1 for name in ("(", "[", "{", "FIELD_OPEN")}
        self.depth_change |= {number[name]: -1 for name in (")", "]", "}", "FIELD_CLOSE")}
        self.machines = 0
        self.generation = 0
        self._starts: dict[int, State] = {}

    def start(self, context: int = 0) -> State:
        """The empty file; `context` (see python_parser.py) where it is only a part of one. Begins afresh, and lets
        the memory go, once very many states hang on the old beginning."""
        if self.machines > _MOST_MACHINES:
            self._starts.clear()
            self.machines = 0
            self.generation += 1
        state = self._starts.get(context)
        if state is None:
            machine = Machine(self, (Node.root(self.tables, context),), MODULE, 0)
            state = self._starts[context] = machine.state(self.lexer.start())
        return state


@lru_cache(maxsize=1)
def python() -> Language:
    """Python 3.13."""
    return Language(python_tables())


class Machine:
    """Everything that matters outside the lexeme that is being read.

    Attributes:
        stacks: the readings of the text so far; more than one while soft keywords or `with (` leave it open.
        indents: the open columns.
        depth: how many brackets are open.
        acceptable: the set of terminals that may come next.
        acceptable_low: the height of the lowest node of a stack that `acceptable` depends on.
    """

    __slots__ = ("_after", "_states", "acceptable", "acceptable_low", "depth", "indents", "language", "stacks")

    def __init__(self, language: Language, stacks: tuple[Node, ...], indents: Indents, depth: int) -> None:
        self.language = language
        self.stacks = stacks
        self.indents = indents
        self.depth = depth
        self.acceptable, self.acceptable_low = stacks[0].acceptable
        for stack in stacks[1:]:
            acceptable, low = stack.acceptable
            self.acceptable |= acceptable
            self.acceptable_low = min(self.acceptable_low, low)
        self._after: dict[Event, Machine | None] = {}
        self._states: dict[Mode, State] = {}
        language.machines += 1

    def after(self, event: Event) -> Machine | None:
        """The machine after one event, None where it is impossible."""
        try:
            return self._after[event]
        except KeyError:
            machine = self._after[event] = self._read(event)
            return machine

    def low(self, event: Event) -> int:
        """The height of the lowest node of a stack that `after(event)` depends on; -1 for the begin of a line, which
        depends on the open columns as well."""
        if isinstance(event, Line):
            return _NOTHING if self.depth else -1
        if event == self.language.newline and self.depth:
            return _NOTHING
        terminals = (event,) if isinstance(event, int) else event.terminals
        return min(stack.shift(terminal).low for stack in self.stacks for terminal in terminals)

    def state(self, mode: Mode) -> State:
        """The state with this machine and the lexer in `mode`; always the same object."""
        state = self._states.get(mode)
        if state is None:
            state = self._states[mode] = State(self, mode)
        return state

    def _read(self, event: Event) -> Machine | None:
        if isinstance(event, int):
            if event == self.language.newline and self.depth:
                return self
            return self._shift((event,))
        if isinstance(event, Line):
            return self if self.depth else self._begin_line(event)
        return self._shift(event.terminals)

    def _shift(self, terminals: tuple[int, ...]) -> Machine | None:
        stacks = tuple(dict.fromkeys(new for stack in self.stacks for t in terminals for new in stack.shift(t).nodes))
        if not stacks:
            return None
        depth = self.depth + self.language.depth_change.get(terminals[0], 0)
        if depth > _DEEPEST_BRACKET:
            return None
        return Machine(self.language, stacks, self.indents, depth)

    def _begin_line(self, line: Line) -> Machine | None:
        indents = self.indents
        if line.column > indents.column:
            if line.alternate <= indents.alternate or indents.depth + 1 >= _DEEPEST_INDENT:
                return None
            opened = self._shift((self.language.indent,))
            inner = Indents(line.column, line.alternate, indents, indents.depth + 1)
            return opened and Machine(self.language, opened.stacks, inner, 0)
        machine: Machine | None = self
        while machine is not None and line.column < machine.indents.column:
            machine = machine.dedented()
        if machine is None or (machine.indents.column, machine.indents.alternate) != line:
            return None
        return machine

    def dedented(self) -> Machine | None:
        """The machine after the end of the innermost block."""
        closed = self._shift((self.language.dedent,))
        if closed is None or self.indents.outer is None:
            return None
        return Machine(self.language, closed.stacks, self.indents.outer, 0)

    def may_end(self) -> bool:
        """Whether a file may end here, at the beginning of a line."""
        machine: Machine | None = self
        while machine is not None and machine.indents.outer is not None:
            machine = machine.dedented()
        return machine is not None and self.depth == 0 and bool(machine.acceptable >> self.language.end & 1)


class State:
    """One viable text, as far as it matters for what may follow: immutable, shared, compared by identity."""

    __slots__ = ("following", "machine", "mode")

    def __init__(self, machine: Machine, mode: Mode) -> None:
        self.machine = machine
        self.mode = mode
        self.following: dict[bytes, State | None] | None = None

    @classmethod
    def start(cls) -> State:
        """The empty file."""
        return python().start()

    @property
    def viable(self) -> bool:
        """Whether the unfinished lexeme may become one that the grammar accepts. Once false, it stays false."""
        future = self.mode.future
        return not future or bool(future & self.machine.acceptable)

    def step(self, byte: int) -> State | None:
        """The state after one byte; None where it is certainly impossible (the result may not be `viable`)."""
        step = self.mode.step(byte)
        if step is None:
            return None
        machine: Machine | None = self.machine
        for event in step.events:
            machine = machine.after(event)  # type: ignore[union-attr]
            if machine is None:
                return None
        return machine.state(step.mode)  # type: ignore[union-attr]

    def read(self, text: bytes) -> State | None:
        """The state after `text`, None where it is hopeless by then."""
        if self.following is None:
            self.following = {}
        elif text in self.following:
            return self.following[text]
        state = self.following[text] = self._read(text)
        return state

    def _read(self, text: bytes) -> State | None:
        step = self.mode.read(text)
        if step is None:
            return None
        machine: Machine | None = self.machine
        for event in step.events:
            machine = machine.after(event)  # type: ignore[union-attr]
            if machine is None:
                return None
        state = machine.state(step.mode)  # type: ignore[union-attr]
        return state if state.viable else None

    def run(self, text: bytes) -> State | None:
        """`read` for long texts: nothing of the text is remembered."""
        mode: Mode = self.mode
        machine: Machine | None = self.machine
        for byte in text:
            step = mode.step(byte)
            if step is None:
                return None
            mode, events = step
            for event in events:
                machine = machine.after(event)  # type: ignore[union-attr]
                if machine is None:
                    return None
        state = machine.state(mode)  # type: ignore[union-attr]
        return state if state.viable else None

    def may_end(self) -> bool:
        """Whether the text is a valid file as it stands."""
        if not self.mode.may_end:
            return False
        if isinstance(self.mode, LineStart | AfterReturn):
            return self.machine.may_end()
        state = self.step(NEWLINE)
        return state is not None and isinstance(state.mode, LineStart) and state.machine.may_end()


def first_hopeless_byte(state: State, data: bytes) -> tuple[State, int | None]:
    """Read `data` byte by byte: the last viable state, and the offset of the byte that made it hopeless or None."""
    for offset, byte in enumerate(data):
        following = state.step(byte)
        if following is None or not following.viable:
            return state, offset
        state = following
    return state, None


def describe_refusal(state: State, byte: int) -> str:
    """Why `byte` cannot follow, in one line without any of the text."""
    language = state.machine.language
    step = state.mode.step(byte)
    if step is None:
        return f"no Python token goes on with {bytes((byte,))!r} here"
    machine: Machine | None = state.machine
    for event in step.events:
        if isinstance(event, Line):
            following = machine.after(event)  # type: ignore[union-attr]
            if following is None:
                return "the indentation of this line matches no open block"
        elif machine.after(event) is None:  # type: ignore[union-attr]
            terminal = event if isinstance(event, int) else event.terminals[0]
            return f"{language.tables.names[terminal]} cannot stand here"
        machine = machine.after(event)  # type: ignore[union-attr]
    return "no token that begins like this can stand here"
