"""Which tokens of a vocabulary may follow a state of the syntax: bitmasks, computed once per distinct situation.

Knows tables of tokens and machines. Must not know documents, cursors or what lies beyond syntax.

Reading 152,000 tokens one by one would take a quarter of a second. But what a token does to the lexer does not
depend on the parser, so the tokens of a mode are filed once (mask_plans.py, event_trie.py); and what the parser
accepts next depends on the innermost bracket or block, so that most masks were made before for another text.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from grammars.constraint import Bitmask, empty_bitmask
from grammars.event_trie import EventTrie, Filed
from grammars.mask_plans import Delegate, Planner
from grammars.python_lexer import LineStart, Mode, Space, Step
from grammars.python_states import DEEPEST_BRACKET, Machine, State, after_events, python
from grammars.python_terminals import Line
from grammars.token_sets import TokenSets
from grammars.vocabulary import Vocabulary

_MOST_MASKS = 1024
_MOST_BRACKETS = 16
"""No token closes more."""


@dataclass(frozen=True, slots=True)
class Table:
    """A plan that has been carried out.

    Attributes:
        filed: the tokens that complete no line, whose masks depend on the top of a stack only.
        lines: the tokens that begin a line as well, which depend on the open columns.
        around: how many segments around the innermost one masks of `filed` were found to depend on.
    """

    always: Bitmask | None
    filed: Filed | None
    lines: Filed | None
    delegates: list[Delegate]
    around: set[int] = field(default_factory=set)


class SyntaxMasks:
    """The masks of one vocabulary. Shared by all requests; remembers the masks used last."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.sets = TokenSets(vocabulary)
        self._planner = Planner(self.sets)
        self._code = python().lexer.get(Space, ())
        self._generation = python().generation
        self._width = (vocabulary.size + 31) // 32 * 32
        self._tables: dict[Mode, Table] = {}
        self._masks: OrderedDict[State, Bitmask] = OrderedDict()
        self._local: OrderedDict[object, Bitmask] = OrderedDict()

    def mask(self, state: State) -> Bitmask:
        """int32[ceil(V / 32)]: the ordinary tokens that may follow `state`. Shared: do not write into it."""
        if self._generation != python().generation:
            self._generation = python().generation
            self._masks.clear()
        mask = self._masks.get(state)
        if mask is None:
            mask = self._masks[state] = self._compute(state)
            if len(self._masks) > _MOST_MASKS:
                self._masks.popitem(last=False)
        else:
            self._masks.move_to_end(state)
        return mask

    def prepare(self, mode: Mode) -> None:
        """Make the table of a mode ahead of the first mask."""
        self._table(mode)

    def _compute(self, state: State) -> Bitmask:
        if isinstance(state.mode, LineStart) and state.machine.depth:
            return self.mask(state.machine.state(self._code))  # columns count for nothing inside brackets
        table = self._table(state.mode)
        mask = empty_bitmask(self.vocabulary.size) if table.always is None else table.always.copy()
        if table.filed is not None:
            mask |= self._from_top(table, table.filed, state.machine)
        if table.lines is not None:
            mask |= self._marked(table.lines, state.machine)[0]
        for delegate in table.delegates:
            machine = after_events(state.machine, delegate.events)
            if machine is not None:
                mask |= self.mask(machine.state(delegate.mode)) & delegate.subset
        return mask

    def _from_top(self, table: Table, filed: Filed, machine: Machine) -> Bitmask:
        """The mask of `filed`: one that was made in the same place of another text, or a new one."""
        top, frame = machine
        if machine.depth > DEEPEST_BRACKET - _MOST_BRACKETS:
            return self._marked(filed, machine)[0]
        for count in table.around:
            key = (filed, top, frame.surroundings(count))
            found = self._local.get(key)
            if found is not None:
                self._local.move_to_end(key)
                return found
        mask, around = self._marked(filed, machine)
        table.around.add(around)
        self._local[filed, top, frame.surroundings(around)] = mask
        if len(self._local) > _MOST_MASKS:
            self._local.popitem(last=False)
        return mask

    def _marked(self, filed: Filed, machine: Machine) -> tuple[Bitmask, int]:
        flags = np.zeros(self._width, dtype=np.uint8)
        around = filed.mark(machine, flags)
        return np.packbits(flags, bitorder="little").view(np.int32), around

    def _table(self, mode: Mode) -> Table:
        table = self._tables.get(mode)
        if table is None:
            table = self._tables[mode] = self._build(mode)
        return table

    def _build(self, mode: Mode) -> Table:
        plan = self._planner.plan(mode)
        trie, lines = EventTrie(), EventTrie()
        for token, step in self._read_all(mode, plan.read):
            begins = any(isinstance(event, Line) for event in step.events)
            (lines if begins else trie).add(token, step.events, step.mode.future)
        if plan.pure_names:
            name = mode.lexer.terminals["NAME"]
            trie.unfinished[name] = trie.unfinished.get(name, []) + self.sets.names[0]
        return Table(plan.always, self._filed(trie), self._filed(lines), plan.delegates)

    def _read_all(self, mode: Mode, tokens: Iterable[int]) -> Iterator[tuple[int, Step]]:
        """(token, what it does) for every one of `tokens` that can be read. In the order of their bytes, so that a
        beginning that several share is read once."""
        texts = self.vocabulary.tokens
        path = [Step(mode)]  # after 0, 1, 2 … bytes of `previous`, as far as it can be read
        previous = b""
        for text, token in sorted((texts[token], token) for token in tokens):
            shared, most = 0, min(len(previous), len(text), len(path))
            while shared < most and previous[shared] == text[shared]:
                shared += 1
            if shared == len(path):  # begins like one that cannot be read
                continue
            previous = text
            del path[shared + 1 :]
            for byte in text[shared:]:
                step = path[-1].mode.step(byte)
                if step is None:
                    break
                path.append(Step(step.mode, path[-1].events + step.events))
            if len(path) == len(text) + 1:
                yield token, path[-1]

    def _filed(self, trie: EventTrie) -> Filed | None:
        return Filed(trie, self._width) if trie.children or trie.free or trie.unfinished else None
