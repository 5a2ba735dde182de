"""Which tokens of a vocabulary may follow a state of the syntax: bitmasks, computed once per distinct situation.

Knows the modes of the lexer and the tokens' bytes. Must not know documents, cursors or what lies beyond syntax.

Reading 152,000 tokens one by one would take a quarter of a second. But what a token does to the lexer does not
depend on the parser, so the tokens of a mode are filed once under the events that they complete and the terminals
that their unfinished end may become; a mask is then a walk over the few events that the parser accepts. And most
modes differ from plain code for few tokens only: the others are delegated to the table of plain code.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property, singledispatchmethod

import numpy as np
from numpy.typing import NDArray

from grammars.constraint import Bitmask, bitmask_of, empty_bitmask
from grammars.python_lexer import (
    AfterReturn,
    Comment,
    Continuation,
    LineStart,
    Mode,
    Number,
    Operator,
    Space,
    Utf8,
    WideCharacter,
    Word,
)
from grammars.python_numbers import number_kind, number_step
from grammars.python_strings import (
    CharacterName,
    Conversion,
    Escape,
    HexDigits,
    Literal,
    Opening,
    String,
)
from grammars.python_syntax import Machine, State, python
from grammars.python_terminals import AFTER_NUMBER, SOFT_KEYWORDS, Alternatives, Event, Line
from grammars.vocabulary import Vocabulary

_DENSE = 2000
"""From so many ids on a whole row is or-ed (6 µs) instead of written id by id."""
_MOST_MASKS = 1024
_MOST_BRACKETS = 16
"""No token closes more."""
_WIDEST_LEAD = 40
_PLAIN = re.compile(rb"[^'\"\\{}\n\r\0]+\Z")
_NAME_CHARACTERS = re.compile(rb"[-A-Za-z0-9 ()]+\Z")
_CODE_LEAD = re.compile(rb"( *)[^ \t\f\n\r\\#]")
_FIELD_BYTES = re.compile(rb"[{}()\[\]:!'\"\n\r]")
_IDENTIFIER = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") | frozenset(
    range(0x80, 0x100)
)
_LETTERS = _IDENTIFIER - frozenset(b"0123456789") - frozenset(range(0x80, 0x100))
_ALL_BYTES = frozenset(range(256))

Ids = NDArray[np.int32]
Flags = NDArray[np.uint8]


@dataclass(slots=True)
class EventTrie:
    """Tokens filed under what they do: `children` by the next event they complete, then by how they end.

    Attributes:
        free: tokens after which anything may follow.
        unfinished: terminal -> the tokens whose last lexeme may become it.
    """

    children: dict[Event, EventTrie] = field(default_factory=dict)
    free: list[int] = field(default_factory=list)
    unfinished: dict[int, list[int]] = field(default_factory=dict)

    def add(self, token: int, events: tuple[Event, ...], future: int) -> None:
        """File a token."""
        node = self
        for event in events:
            node = node.children.setdefault(event, EventTrie())
        if not future:
            node.free.append(token)
        terminal = 0
        while future:
            if future & 1:
                node.unfinished.setdefault(terminal, []).append(token)
            future >>= 1
            terminal += 1


class Filed:
    """An EventTrie in the shape that masks are read from."""

    __slots__ = ("children", "free", "leaf", "unfinished")

    def __init__(self, trie: EventTrie, width: int) -> None:
        self.leaf = not trie.children and not trie.unfinished
        self.children = [(event, _terminals(event), Filed(child, width)) for event, child in trie.children.items()]
        self.free = _marker(trie.free, width) if trie.free else None
        self.unfinished = [(1 << terminal, _marker(ids, width)) for terminal, ids in trie.unfinished.items()]

    def mark(self, machine: Machine, flags: Flags) -> int:
        """Set the flag of every token that `machine` lets pass. Returns the height of the lowest node of its stack
        that this depends on."""
        if self.free:
            self.free(flags)
        if self.leaf:
            return machine.stacks[0].height
        acceptable, low = machine.acceptable, machine.acceptable_low
        for terminal, marker in self.unfinished:
            if acceptable & terminal:
                marker(flags)
        for event, terminals, child in self.children:
            if acceptable & terminals and child.leaf:
                child.mark(machine, flags)
            elif acceptable & terminals or not terminals or machine.depth:
                after = machine.after(event)
                if after is not None:
                    low = min(low, machine.low(event), child.mark(after, flags))
        return low


def _terminals(event: Event) -> int:
    """The terminals that an event needs one of, as a set; 0 for the begin of a line."""
    if isinstance(event, int):
        return 1 << event
    return sum(1 << t for t in event.terminals) if isinstance(event, Alternatives) else 0


def _marker(ids: list[int], width: int) -> Callable[[Flags], None]:
    """What sets the flags of `ids`."""
    array = np.asarray(ids, dtype=np.int32)
    if len(ids) < _DENSE:

        def mark(flags: Flags) -> None:
            flags[array] = 1

        return mark
    dense = np.zeros(width, dtype=np.uint8)
    dense[array] = 1

    def mark_dense(flags: Flags) -> None:
        np.bitwise_or(flags, dense, out=flags)

    return mark_dense


@dataclass(frozen=True, slots=True)
class Delegate:
    """The tokens `subset` do what they would do in `mode` after `events`."""

    events: tuple[Event, ...]
    mode: Mode
    subset: Bitmask


@dataclass(slots=True)
class Plan:
    """How the mask of a mode is put together.

    Attributes:
        always: tokens that may follow whatever the parser says.
        read: tokens whose reading is filed one by one.
        pure_names: tokens that go on with an identifier.
        delegates: tokens that do what they do in another mode.
    """

    always: Bitmask | None = None
    read: Iterable[int] = ()
    pure_names: bool = False
    delegates: list[Delegate] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Table:
    """A plan that has been carried out.

    Attributes:
        filed: the tokens that complete no line, whose masks depend on the top of a stack only.
        lines: the tokens that begin a line as well, which depend on the open columns.
        depths: how many nodes from the top masks of `filed` were found to depend on, by the topmost.
    """

    always: Bitmask | None
    filed: Filed | None
    lines: Filed | None
    delegates: list[Delegate]
    depths: dict[tuple[int, int], list[int]] = field(default_factory=dict)


class TokenSets:
    """Sets of tokens of one vocabulary, by their bytes."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.size = vocabulary.size
        self.ordinary = [token for token, text in enumerate(vocabulary.tokens) if text]
        self._first: dict[int, list[int]] = {}
        for token in self.ordinary:
            self._first.setdefault(vocabulary.tokens[token][0], []).append(token)
        self._masks: dict[frozenset[int], Bitmask] = {}

    def beginning(self, first_bytes: Iterable[int]) -> list[int]:
        """The tokens whose first byte is one of `first_bytes`."""
        return [token for byte in first_bytes for token in self._first.get(byte, ())]

    def mask_beginning(self, first_bytes: frozenset[int]) -> Bitmask:
        """`beginning` as a bitmask."""
        if first_bytes not in self._masks:
            self._masks[first_bytes] = bitmask_of(self.beginning(first_bytes), self.size)
        return self._masks[first_bytes]

    def where(self, test: Callable[[bytes], object]) -> list[int]:
        """The tokens whose bytes pass `test`."""
        return [token for token in self.ordinary if test(self.vocabulary.tokens[token])]

    def mask(self, tokens: Iterable[int]) -> Bitmask:
        """A bitmask of `tokens`."""
        return bitmask_of(np.fromiter(tokens, dtype=np.int32), self.size)

    @cached_property
    def everything(self) -> Bitmask:
        """Every ordinary token."""
        return self.mask(self.ordinary)

    @cached_property
    def plain(self) -> list[int]:
        """Whole characters without quotes, braces, backslashes and newlines: they change nothing in a string."""
        return self.where(lambda text: _PLAIN.match(text) and _is_utf8(text))

    @cached_property
    def not_plain(self) -> list[int]:
        """All others."""
        plain = set(self.plain)
        return [token for token in self.ordinary if token not in plain]

    @cached_property
    def by_bytes(self) -> dict[bytes, list[int]]:
        """Token bytes -> the ids that have them."""
        found: dict[bytes, list[int]] = {}
        for token in self.ordinary:
            found.setdefault(self.vocabulary.tokens[token], []).append(token)
        return found

    @cached_property
    def field_bytes(self) -> list[int]:
        """Tokens that may mean something else inside the replacement field of an f-string."""
        return self.where(_FIELD_BYTES.search)

    @cached_property
    def leads(self) -> list[tuple[int, Bitmask]]:
        """(n, the tokens of n spaces and then code) for every n up to the widest."""
        found: dict[int, list[int]] = {}
        for token in self.ordinary:
            match = _CODE_LEAD.match(self.vocabulary.tokens[token])
            if match and len(match[1]) <= _WIDEST_LEAD:
                found.setdefault(len(match[1]), []).append(token)
        return [(lead, self.mask(tokens)) for lead, tokens in sorted(found.items())]

    @cached_property
    def names(self) -> tuple[list[int], list[int]]:
        """Of the tokens that begin with a character of identifiers: those that consist of such, and the others."""
        word = python().lexer.get(Word, (), "")
        pure: list[int] = []
        mixed: list[int] = []
        for token in self.beginning(_IDENTIFIER):
            step = word.try_read(self.vocabulary.tokens[token])
            (pure if step and step.mode is word and not step.events else mixed).append(token)
        return pure, mixed


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


class SyntaxMasks:
    """The masks of one vocabulary. Shared by all requests; remembers the masks used last."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.sets = TokenSets(vocabulary)
        self._width = (vocabulary.size + 31) // 32 * 32
        self._tables: dict[Mode, Table] = {}
        self._masks: OrderedDict[State, Bitmask] = OrderedDict()
        self._local: OrderedDict[object, Bitmask] = OrderedDict()
        self._code = python().lexer.get(Space, ())

    def mask(self, state: State) -> Bitmask:
        """int32[ceil(V / 32)]: the ordinary tokens that may follow `state`. Shared: do not write into it."""
        mask = self._masks.get(state)
        if mask is None:
            mask = self._masks[state] = self._compute(state)
            if len(self._masks) > _MOST_MASKS:
                self._masks.popitem(last=False)
        else:
            self._masks.move_to_end(state)
        return mask

    def _compute(self, state: State) -> Bitmask:
        table = self._table(state.mode)
        mask = empty_bitmask(self.vocabulary.size) if table.always is None else table.always.copy()
        if table.filed is not None:
            mask |= self._from_top(table, table.filed, state.machine)
        if table.lines is not None:
            mask |= self._marked(table.lines, state.machine)[0]
        for delegate in table.delegates:
            machine: Machine | None = state.machine
            for event in delegate.events:
                machine = machine and machine.after(event)
            if machine is not None:
                mask |= self.mask(machine.state(delegate.mode)) & delegate.subset
        return mask

    def _from_top(self, table: Table, filed: Filed, machine: Machine) -> Bitmask:
        """The mask of `filed`: one that was made for the same top of another stack, or a new one."""
        stack = machine.stacks[0]
        if len(machine.stacks) > 1:
            return self._marked(filed, machine)[0]
        depths = table.depths.setdefault((stack.state, stack.use), [])
        brackets = min(machine.depth, _MOST_BRACKETS)
        for count in depths:
            key = (id(filed), brackets, stack.top_states(count))
            found = self._local.get(key)
            if found is not None:
                self._local.move_to_end(key)
                return found
        mask, low = self._marked(filed, machine)
        count = stack.height - low + 1
        if count not in depths:
            depths.append(count)
            depths.sort()
        self._local[id(filed), brackets, stack.top_states(count)] = mask
        if len(self._local) > _MOST_MASKS:
            self._local.popitem(last=False)
        return mask

    def _marked(self, filed: Filed, machine: Machine) -> tuple[Bitmask, int]:
        flags = np.zeros(self._width, dtype=np.uint8)
        low = filed.mark(machine, flags)
        return np.packbits(flags, bitorder="little").view(np.int32), low

    def _table(self, mode: Mode) -> Table:
        table = self._tables.get(mode)
        if table is None:
            table = self._tables[mode] = self._build(mode)
        return table

    def _build(self, mode: Mode) -> Table:
        plan = self._plan(mode)
        trie, lines = EventTrie(), EventTrie()
        tokens = self.vocabulary.tokens
        for token in plan.read:
            step = mode.try_read(tokens[token])
            if step is not None:
                begins = any(isinstance(event, Line) for event in step.events)
                (lines if begins else trie).add(token, step.events, step.mode.future)
        if plan.pure_names:
            name = python().terminals["NAME"]
            trie.unfinished[name] = trie.unfinished.get(name, []) + self.sets.names[0]
        return Table(plan.always, self._filed(trie), self._filed(lines), plan.delegates)

    def _filed(self, trie: EventTrie) -> Filed | None:
        return Filed(trie, self._width) if trie.children or trie.free or trie.unfinished else None

    @singledispatchmethod
    def _plan(self, mode: Mode) -> Plan:
        """Read every token: right for every mode, and slow. The others say how they are like plain code."""
        return Plan(read=self.sets.ordinary)

    @_plan.register
    def _(self, mode: Space) -> Plan:
        sets = self.sets
        if mode is self._code:
            return Plan(read=sets.ordinary)
        if not mode.frames or mode.continued:
            same = mode.lexer.get(Space, mode.frames)
            return Plan(delegates=[Delegate((), same, sets.everything)])
        others = sets.everything & ~sets.mask(sets.field_bytes)
        return Plan(read=sets.field_bytes, delegates=[Delegate((), self._code, others)])

    @_plan.register
    def _(self, mode: LineStart) -> Plan:
        sets, fixed = self.sets, mode.continued
        delegates = [
            Delegate((Line(fixed or mode.column + n, fixed or mode.alternate + n),), self._code, subset)
            for n, subset in sets.leads
        ]
        return Plan(read=self._no_code, delegates=delegates)

    @cached_property
    def _no_code(self) -> list[int]:
        """Tokens that do not begin with at most some spaces and then code."""

        def test(text: bytes) -> bool:
            match = _CODE_LEAD.match(text)
            return match is None or len(match[1]) > _WIDEST_LEAD

        return self.sets.where(test)

    @_plan.register
    def _(self, mode: AfterReturn) -> Plan:
        rest = self.sets.mask_beginning(_ALL_BYTES - {0x0A})
        return Plan(read=self.sets.beginning(b"\n"), delegates=[Delegate((), mode.mode, rest)])

    @_plan.register
    def _(self, mode: Continuation) -> Plan:
        return Plan(read=self.sets.beginning(b"\r\n"))

    @_plan.register(Utf8)
    @_plan.register(WideCharacter)
    def _(self, mode: Mode) -> Plan:
        return Plan(read=self.sets.beginning(range(0x80, 0xC0)))

    @_plan.register
    def _(self, mode: Word) -> Plan:
        sets, terminals = self.sets, mode.lexer.terminals
        read = set(sets.names[1])
        words = AFTER_NUMBER if mode.after_number else {*terminals.keywords, *SOFT_KEYWORDS, *mode.lexer.prefixes}
        for word in words:
            if mode.text and word.startswith(mode.text):
                rest = word[len(mode.text) :].encode()
                for end in range(1, len(rest) + 1):
                    read.update(sets.by_bytes.get(rest[:end], ()))
        plan = Plan(read=(), pure_names=not mode.after_number)
        others = _ALL_BYTES - _IDENTIFIER
        if mode.text in mode.lexer.prefixes and not mode.after_number:
            read.update(sets.beginning(b"'\""))
            others -= frozenset(b"'\"")
        plan.read = read
        if not mode.after_number or mode.text in AFTER_NUMBER:
            event = terminals.word_event(mode.text) if mode.text else terminals["NAME"]
            code = mode.lexer.get(Space, mode.frames)
            plan.delegates.append(Delegate((event,), code, sets.mask_beginning(others)))
        return plan

    @_plan.register
    def _(self, mode: Number) -> Plan:
        goes_on = frozenset(b for b in range(128) if b in _LETTERS or number_step(mode.state, chr(b)))
        goes_on |= frozenset(b"0123456789")
        plan = Plan(read=self.sets.beginning(goes_on))
        kind = number_kind(mode.state)
        if kind is not None:
            others = self.sets.mask_beginning(_ALL_BYTES - goes_on)
            code = mode.lexer.get(Space, mode.frames)
            plan.delegates.append(Delegate((mode.lexer.terminals[kind],), code, others))
        return plan

    @_plan.register
    def _(self, mode: Operator) -> Plan:
        lexer = mode.lexer
        goes_on = frozenset(b for b in range(128) if mode.text + chr(b) in lexer.operator_beginnings)
        if mode.text[0] == ".":
            goes_on |= frozenset(b"0123456789")
        plan = Plan(read=self.sets.beginning(goes_on))
        if mode.text != "!":
            point = lexer.terminals["."]
            events = (point, point) if mode.text == ".." else (lexer.terminals[mode.text],)
            others = self.sets.mask_beginning(_ALL_BYTES - goes_on)
            plan.delegates.append(Delegate(events, lexer.get(Space, mode.frames), others))
        return plan

    @_plan.register(Comment)
    @_plan.register(String)
    @_plan.register(Opening)
    @_plan.register(Escape)
    @_plan.register(Literal)
    def _(self, mode: Comment | String | Opening | Escape | Literal) -> Plan:
        sets = self.sets
        if isinstance(mode, Literal) and mode.seen in ("{", "}"):
            return self._after_brace(mode)
        if isinstance(mode, Opening) and mode.quotes == 2:
            return self._after_empty(mode)
        read = sets.not_plain
        always = sets.mask(sets.plain)
        if isinstance(mode, Escape) or not _is_any_text(mode):
            always = self._plain_escape
            read = [*read, *self._special_escape]
        return Plan(always=always, read=read)

    @cached_property
    def _plain_escape(self) -> Bitmask:
        """Plain ASCII tokens that are harmless after a backslash too."""
        return self.sets.mask(self.sets.plain) & ~self.sets.mask(self._special_escape)

    @cached_property
    def _special_escape(self) -> list[int]:
        tokens = self.vocabulary.tokens
        return [t for t in self.sets.plain if tokens[t][0] in b"xuUN" or not tokens[t].isascii()]

    def _after_brace(self, mode: Literal) -> Plan:
        sets = self.sets
        if mode.seen == "}":
            return Plan(read=sets.beginning(b"}"))
        opened = mode.step(0x20)
        assert opened is not None, "white space may begin a replacement field"
        others = sets.mask_beginning(_ALL_BYTES - {0x7B})
        return Plan(read=sets.beginning(b"{"), delegates=[Delegate(opened.events, opened.mode, others)])

    def _after_empty(self, mode: Opening) -> Plan:
        sets, quote = self.sets, mode.style.quote
        closed = mode.step(0x20)
        assert closed is not None, "white space may follow a string"
        others = sets.mask_beginning(_ALL_BYTES - {quote})
        return Plan(read=sets.beginning((quote,)), delegates=[Delegate(closed.events, closed.mode, others)])

    @_plan.register
    def _(self, mode: HexDigits) -> Plan:
        return Plan(read=self.sets.beginning(b"0123456789abcdefABCDEF"))

    @_plan.register
    def _(self, mode: CharacterName) -> Plan:
        if mode.length == 0:
            return Plan(read=self.sets.beginning(b"{"))
        names = self._character_names
        return Plan(always=self.sets.mask(names), read=set(self.sets.ordinary) - set(names))

    @cached_property
    def _character_names(self) -> list[int]:
        return self.sets.where(_NAME_CHARACTERS.match)

    @_plan.register
    def _(self, mode: Conversion) -> Plan:
        sets = self.sets
        if not mode.letter:
            return Plan(read=sets.beginning(b"sra="))
        closed = mode.step(0x20)
        assert closed is not None, "white space may follow a conversion"
        others = sets.mask_beginning(_ALL_BYTES - _IDENTIFIER)
        return Plan(delegates=[Delegate(closed.events, closed.mode, others)])


def _is_any_text(mode: Mode) -> bool:
    """Whether characters beyond ASCII are text in `mode`."""
    return not (isinstance(mode, String | Opening) and "b" in mode.style.letters)
