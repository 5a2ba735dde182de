"""The states of a text that is read as Python 3.13.

Knows the lexer's events and the parser's stacks, and joins them: newlines count outside brackets only, and columns
become INDENT and DEDENT. Must not know token ids, vocabularies or documents with a cursor.

A state is immutable and has two halves. The `Spot` is where the text stands in the innermost bracket or block: all
texts share the spots, and with them nearly every answer. The `Frame` is what lies around, which matters only where
a bracket or block begins or ends; such an event is a `Turn`, which the frame is asked about.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import NamedTuple, cast

from grammars.python_lexer import NEWLINE, AfterReturn, Lexer, LineStart, Mode, Step
from grammars.python_parser import Tables, python_tables
from grammars.python_stacks import BELOW, Exit, Node
from grammars.python_terminals import Event, Line, Terminals

_DEEPEST_INDENT = 100
DEEPEST_BRACKET = 200
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_MOST_TOPS = 100_000
"""About 1 KB each, stacks included."""
_OPENERS = ("(", "[", "{", "FIELD_OPEN")
_CLOSERS = (")", "]", "}", "FIELD_CLOSE")


class Indents(NamedTuple):
    """The open columns, innermost first: with tabs as 8 columns, and with tabs as one."""

    column: int
    alternate: int
    outer: Indents | None
    depth: int


MODULE = Indents(0, 0, None, 0)


class Frame:
    """What lies around the segment that is being read.

    Attributes:
        base: the stack below the segment; None around the outermost.
        outer: what lies around that; None around the outermost.
        indents: the open columns.
        depth: how many brackets are open.
        level: how many frames lie around this one.
    """

    __slots__ = ("_inner", "_siblings", "base", "depth", "indents", "level", "outer")

    def __init__(self, base: Node | None, outer: Frame | None, indents: Indents, depth: int) -> None:
        self.base = base
        self.outer = outer
        self.indents = indents
        self.depth = depth
        self.level: int = outer.level + 1 if outer else 0
        self._inner: dict[tuple[Node, Indents, int], Frame] = {}
        self._siblings: dict[tuple[Indents, int], Frame] = {(indents, depth): self}

    def around(self, base: Node, indents: Indents, depth: int) -> Frame:
        """What lies around a segment that begins above `base`, a stack in this frame."""
        key = (base, indents, depth)
        try:
            return self._inner[key]
        except KeyError:
            frame = self._inner[key] = Frame(base, self, indents, depth)
            return frame

    def changed(self, indents: Indents, depth: int) -> Frame:
        """The same frame where the segment itself holds what opened or closed."""
        key = (indents, depth)
        frame = self._siblings.get(key)
        if frame is None:
            frame = self._siblings[key] = Frame(self.base, self.outer, indents, depth)
            frame._siblings = self._siblings
        return frame

    def surroundings(self, count: int) -> tuple[tuple[Node | None, bool], ...]:
        """For each of the `count` nearest segments around: its stack, and whether it is inside brackets."""
        found: list[tuple[Node | None, bool]] = []
        frame: Frame | None = self
        while frame is not None and len(found) < count:
            found.append((frame.base, frame.outer is not None and frame.outer.depth > 0))
            frame = frame.outer
        return tuple(found)


class Language:
    """The grammar's tables, the lexer that goes with them, and what was read so far.

    Attributes:
        tops: how many were made since the last fresh start.
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
        self.depth_change = {number[name]: 1 for name in _OPENERS} | {number[name]: -1 for name in _CLOSERS}
        self.begins_segment = frozenset((self.indent, *(number[name] for name in _OPENERS)))
        self.tops = 0
        self.generation = 0
        self._starts: dict[int, State] = {}
        self._roots: dict[tuple[int, int], Node] = {}
        self._tops: dict[bool, dict[Node | tuple[Node, ...], Top]] = {False: {}, True: {}}

    def start(self, context: int = 0) -> State:
        """The empty file; `context` (see python_parser.py) where it is only a part of one. Begins afresh, and lets
        the memory go, once very many stacks were met."""
        if self.tops > _MOST_TOPS or self.lexer.is_full:
            self._starts.clear()
            self._roots.clear()
            self._tops = {False: {}, True: {}}
            self.lexer.forget()
            self.tops = 0
            self.generation += 1
        state = self._starts.get(context)
        if state is None:
            top = self.top((self.root(0, context),), False)
            state = self._starts[context] = State(top.spot(self.lexer.start()), Frame(None, None, MODULE, 0))
        return state

    def root(self, state: int, context: int) -> Node:
        """The one segment that begins with a parser's state."""
        root = self._roots.get((state, context))
        if root is None:
            root = self._roots[state, context] = Node.root(self.tables, state, context)
        return root

    def top(self, nodes: tuple[Node, ...], inside: bool) -> Top:
        """The one `Top` of some stacks."""
        tops, key = self._tops[inside], nodes if len(nodes) > 1 else nodes[0]
        top = tops.get(key)
        if top is None:
            top = tops[key] = Top(self, nodes, inside)
            self.tops += 1
        return top


@lru_cache(maxsize=1)
def python() -> Language:
    """Python 3.13."""
    return Language(python_tables())


class Top:
    """What has been parsed of the innermost bracket or block. One object for each distinct one: `Language.top`.

    Attributes:
        nodes: the readings of the text so far; more than one while soft keywords or `with (` leave it open.
        inside: whether any bracket is open: newlines and columns count for nothing.
        acceptable: the set of terminals that may come next.
        unknown: whether more may, depending on the frame.
    """

    __slots__ = ("_after", "_spots", "acceptable", "inside", "language", "nodes", "unknown")

    def __init__(self, language: Language, nodes: tuple[Node, ...], inside: bool) -> None:
        self.language = language
        self.nodes = nodes
        self.inside = inside
        self.acceptable = nodes[0].acceptable
        for node in nodes[1:]:
            self.acceptable |= node.acceptable
        self.unknown = self.acceptable > language.tables.everything
        self._after: dict[Event, Top | Turn | None] | None = None
        self._spots: dict[Mode, Spot] | None = None

    def spot(self, mode: Mode) -> Spot:
        """This place with the lexer in `mode`; always the same object."""
        if self._spots is None:
            self._spots = {}
        elif mode in self._spots:
            return self._spots[mode]
        spot = self._spots[mode] = Spot(self, mode)
        return spot

    def after(self, event: Event) -> Top | Turn | None:
        """What one event leads to: where the frame has no say, the place after it; None where it is impossible."""
        if self._after is None:
            self._after = {}
        elif event in self._after:
            return self._after[event]
        found = self._after[event] = self._read(event)
        return found

    def _read(self, event: Event) -> Top | Turn | None:
        if isinstance(event, Line):
            return self if self.inside else _Line(self, event)
        if event == self.language.newline and self.inside:
            return self
        terminals = (event,) if isinstance(event, int) else event.terminals
        shifted = [node.shift(terminal) for node in self.nodes for terminal in terminals]
        tops = shifted[0] if len(shifted) == 1 else tuple(dict.fromkeys(chain.from_iterable(shifted)))
        nodes = tuple([top for top in tops if isinstance(top, Node)])
        if len(tops) > max(len(nodes), 1) or BELOW in tops:
            return _Merge(self, event)
        if not tops:
            return None
        if not nodes:
            return _Leave(self.language, cast(Exit, tops[0]))
        change = self.language.depth_change.get(terminals[0], 0)
        if len(nodes) == 1 and terminals[0] in self.language.begins_segment:
            return self._segment(nodes[0], change)
        return _Stay(self.language, nodes, change) if change else self.language.top(nodes, self.inside)

    def _segment(self, opened: Node, change: int) -> Turn:
        root = self.language.root(opened.state, opened.context)
        return _Enter(self.language.top((root,), change > 0), cast(Node, opened.parent), change)


class Spot:
    """A place and the lexer's mode there: all that most tokens depend on. Make it with `Top.spot`.

    Attributes:
        viable: whether the unfinished lexeme may become one that the grammar accepts, so far as the frame has no say.
        after: what each step of the lexer leads to; filled by `State.read`. A Turn where the frame has a say.
    """

    __slots__ = ("after", "mode", "top", "viable")

    def __init__(self, top: Top, mode: Mode) -> None:
        self.top = top
        self.mode = mode
        self.viable = not mode.future or bool(mode.future & top.acceptable)
        self.after: dict[Step | None, Spot | Turn | None] = {}


class Turn(ABC):
    """An event that the frame has a say in."""

    @abstractmethod
    def follow(self, frame: Frame) -> Machine | None:
        """The machine after the event in `frame`, None where it is impossible."""


@dataclass(frozen=True, slots=True)
class _Enter(Turn):
    """A bracket or a block begins a segment above `base`."""

    top: Top
    base: Node
    change: int

    def follow(self, frame: Frame) -> Machine | None:
        depth = frame.depth + self.change
        if depth > DEEPEST_BRACKET:
            return None
        return Machine(self.top, frame.around(self.base, frame.indents, depth))


@dataclass(frozen=True, slots=True)
class _Leave(Turn):
    """A segment is complete."""

    language: Language
    leaving: Exit

    def follow(self, frame: Frame) -> Machine | None:
        reached: Node | Exit | None = self.leaving
        while isinstance(reached, Exit):
            base, frame = frame.base, cast(Frame, frame.outer)
            reached = cast(Node, base).enter(reached)
        return None if reached is None else Machine(self.language.top((reached,), frame.depth > 0), frame)


@dataclass(frozen=True, slots=True)
class _Stay(Turn):
    """A bracket opens or closes in the middle of a segment."""

    language: Language
    nodes: tuple[Node, ...]
    change: int

    def follow(self, frame: Frame) -> Machine | None:
        depth = frame.depth + self.change
        if depth > DEEPEST_BRACKET:
            return None
        return Machine(self.language.top(self.nodes, depth > 0), frame.changed(frame.indents, depth))


@dataclass(frozen=True, slots=True)
class _Merge(Turn):
    """Of several readings some leave the segment and some do not: it becomes a part of the one around it."""

    top: Top
    event: Event

    def follow(self, frame: Frame) -> Machine | None:
        return Machine(self.top, frame).merged().after(self.event)


@dataclass(frozen=True, slots=True)
class _Line(Turn):
    """A line begins."""

    top: Top
    line: Line

    def follow(self, frame: Frame) -> Machine | None:
        column, alternate, _, depth = frame.indents
        if self.line.column <= column:
            return Machine(self.top, frame) if self.line == (column, alternate) else self._return(frame)
        if self.line.alternate <= alternate or depth + 1 >= _DEEPEST_INDENT:
            return None
        opened = Machine(self.top, frame).after(self.top.language.indent)
        inner = Indents(*self.line, frame.indents, depth + 1)
        return opened and Machine(opened.top, opened.frame.changed(inner, 0))

    def _return(self, frame: Frame) -> Machine | None:
        machine: Machine | None = Machine(self.top, frame)
        while machine is not None and self.line.column < machine.frame.indents.column:
            machine = machine.dedented()
        return machine if machine is not None and machine.frame.indents[:2] == self.line else None


class Machine(NamedTuple):
    """Everything that matters outside the lexeme that is being read."""

    top: Top
    frame: Frame

    @property
    def language(self) -> Language:
        """What is being read."""
        return self.top.language

    @property
    def indents(self) -> Indents:
        """The open columns."""
        return self.frame.indents

    @property
    def depth(self) -> int:
        """How many brackets are open."""
        return self.frame.depth

    @property
    def acceptable(self) -> int:
        """The set of terminals that may come next."""
        return self.merged().acceptable if self.top.unknown else self.top.acceptable

    def after(self, event: Event) -> Machine | None:
        """The machine after one event, None where it is impossible."""
        found = self.top.after(event)
        if isinstance(found, Top):
            return Machine(found, self.frame)
        return None if found is None else found.follow(self.frame)

    def merged(self) -> Machine:
        """The same with the segment as a part of the one around it."""
        base, outer = self.frame.base, self.frame.outer
        assert base is not None, "nothing leaves the outermost segment"
        assert outer is not None
        nodes = tuple(node.onto(base) for node in self.top.nodes)
        return Machine(self.language.top(nodes, self.top.inside), outer.changed(self.indents, self.depth))

    def state(self, mode: Mode) -> State:
        """The state with this machine and the lexer in `mode`."""
        return State(self.top.spot(mode), self.frame)

    def dedented(self) -> Machine | None:
        """The machine after the end of the innermost block."""
        outer = self.indents.outer
        closed = self.after(self.language.dedent)
        return None if closed is None or outer is None else Machine(closed.top, closed.frame.changed(outer, 0))

    def may_end(self) -> bool:
        """Whether a file may end here, at the beginning of a line."""
        machine: Machine | None = self
        while machine is not None and machine.indents.outer is not None:
            machine = machine.dedented()
        return machine is not None and self.depth == 0 and bool(machine.acceptable >> self.language.end & 1)


class State(NamedTuple):
    """One viable text, as far as it matters for what may follow. Immutable and cheap to make."""

    spot: Spot
    frame: Frame

    @classmethod
    def start(cls) -> State:
        """The empty file."""
        return python().start()

    @property
    def mode(self) -> Mode:
        """What the lexer is in."""
        return self.spot.mode

    @property
    def machine(self) -> Machine:
        """What the parser and the columns are."""
        return Machine(self.spot.top, self.frame)

    @property
    def viable(self) -> bool:
        """Whether the unfinished lexeme may become one that the grammar accepts. Once false, it stays false."""
        spot = self.spot
        return spot.viable or (spot.top.unknown and bool(spot.mode.future & self.machine.acceptable))

    def step(self, byte: int) -> State | None:
        """The state after one byte; None where it is certainly impossible (the result may not be `viable`)."""
        step = self.spot.mode.step(byte)
        if step is None:
            return None
        if not step.events:
            return State(self.spot.top.spot(step.mode), self.frame)
        machine = after_events(self.machine, step.events)
        return machine and machine.state(step.mode)

    def read(self, text: bytes) -> State | None:
        """The state after `text`, None where it is hopeless by then. Remembers what `text` does."""
        spot, frame = self
        step = spot.mode.read(text)
        if step is None:
            return None
        try:
            found = spot.after[step]
        except KeyError:
            found = spot.after[step] = _after_step(spot, step)
        if isinstance(found, Spot):
            return State(found, frame)
        machine = None if found is None else found.follow(frame)
        if machine is None:
            return None
        state = State(machine.top.spot(step.mode), machine.frame)
        return state if state.viable else None

    def run(self, text: bytes) -> State | None:
        """`read` for long texts: nothing of the text is remembered."""
        mode: Mode = self.spot.mode
        machine: Machine | None = self.machine
        for byte in text:
            step = mode.step(byte)
            if step is None:
                return None
            mode = step.mode
            if step.events:
                machine = after_events(machine, step.events)
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


@dataclass(frozen=True, slots=True)
class _Events(Turn):
    """Several events, at least one of which the frame has a say in."""

    top: Top
    events: tuple[Event, ...]

    def follow(self, frame: Frame) -> Machine | None:
        return after_events(Machine(self.top, frame), self.events)


def after_events(machine: Machine | None, events: tuple[Event, ...]) -> Machine | None:
    """The machine after several events, None where they are impossible."""
    for event in events:
        machine = machine and machine.after(event)
    return machine


def _after_step(spot: Spot, step: Step) -> Spot | Turn | None:
    """The spot after a step of the lexer; a Turn where the frame has a say in it."""
    top = spot.top
    for number, event in enumerate(step.events):
        found = top.after(event)
        if found is None:
            return None
        if not isinstance(found, Top):
            return found if number == len(step.events) - 1 else _Events(top, step.events[number:])
        top = found
    following = top.spot(step.mode)
    if not following.viable and top.unknown:
        return _Events(top, ())
    return following if following.viable else None


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
    machine = state.machine
    for event in step.events:
        following = machine.after(event)
        if following is None:
            if isinstance(event, Line):
                return "the indentation of this line matches no open block"
            terminal = event if isinstance(event, int) else event.terminals[0]
            return f"{language.tables.names[terminal]} cannot stand here"
        machine = following
    return "no token that begins like this can stand here"
