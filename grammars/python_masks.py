"""Which tokens of a vocabulary may follow a state of the syntax: bitmasks, computed once per distinct situation.

Knows tables of tokens and machines. Must not know documents, cursors or what lies beyond syntax.

Reading 152,000 tokens one by one would take a quarter of a second. But what a token does to the lexer does not
depend on the parser, so the tokens of a mode are filed once (mask_plans.py, event_trie.py); and what the parser
accepts next depends on the innermost bracket or block, so that most masks were made before for another text.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

import numpy as np

from grammars.constraint import Bitmask, empty_bitmask
from grammars.event_trie import Collected, EventTrie, Filed
from grammars.mask_plans import Delegate, Planner
from grammars.python_lexer import LineStart, Mode, Space, Step, Word
from grammars.python_states import DEEPEST_BRACKET, Indents, Machine, State, after_events, python
from grammars.python_terminals import Event, Line
from grammars.token_reading import TokenReader
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
        self._reader = TokenReader(vocabulary)
        self._code = python().lexer.get(Space, ())
        self._often = {self._code, python().lexer.get(Word, (), "")}  # most tokens are read in these modes
        self._signs = frozenset(python().terminals[sign] for sign in "+-~")
        self._generation = python().generation
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
            mask |= self._from_top(table, table.filed, state.machine, None)
        if table.lines is not None:
            mask |= self._from_top(table, table.lines, state.machine, state.machine.indents)
        for delegate in table.delegates:
            machine = after_events(state.machine, delegate.events)
            if machine is not None:
                mask |= self.mask(machine.state(delegate.mode)) & delegate.subset
        return mask

    def _from_top(self, table: Table, filed: Filed, machine: Machine, indents: Indents | None) -> Bitmask:
        """The mask of `filed`: one that was made in the same place of another text, or a new one. `indents`: the
        open columns where it depends on them."""
        top, frame = machine
        if machine.depth > DEEPEST_BRACKET - _MOST_BRACKETS:
            return self._collected(filed, machine)[0]
        for count in table.around:
            key = (filed, top, indents, frame.surroundings(count))
            found = self._local.get(key)
            if found is not None:
                self._local.move_to_end(key)
                return found
        mask, around = self._collected(filed, machine)
        table.around.add(around)
        self._local[filed, top, indents, frame.surroundings(around)] = mask
        if len(self._local) > _MOST_MASKS:
            self._local.popitem(last=False)
        return mask

    def _collected(self, filed: Filed, machine: Machine) -> tuple[Bitmask, int]:
        found = Collected(self.vocabulary.size)
        around = filed.collect(machine, found)
        return found.mask(), around

    def _table(self, mode: Mode) -> Table:
        table = self._tables.get(mode)
        if table is None:
            table = self._tables[mode] = self._build(mode)
        return table

    def _build(self, mode: Mode) -> Table:
        plan = self._planner.plan(mode)
        trie, lines = EventTrie(), EventTrie()
        for step, tokens in self._reader.read(mode, np.fromiter(plan.read, dtype=np.int32)):
            if mode in self._often:
                mode.remember(step, (self.vocabulary.tokens[token] for token in tokens.tolist()))
            begins = any(isinstance(event, Line) for event in step.events)
            (lines if begins else trie).add(tokens, self._shortened(step.events), step.mode.future)
        if plan.pure_names:
            names = np.asarray(self.sets.names[0], dtype=np.int32)
            mode.remember(Step(mode), (self.vocabulary.tokens[token] for token in self.sets.names[0]))
            trie.add(names, (), 1 << mode.lexer.terminals["NAME"])
        return Table(plan.always, self._filed(trie), self._filed(lines), plan.delegates)

    def _shortened(self, events: tuple[Event, ...]) -> tuple[Event, ...]:
        """Events that are possible in the same places: of a run of signs only two are kept. The second is a sign
        before a number already, and so are all that follow it; vocabularies hold lines of a hundred dashes."""
        kept: list[Event] = []
        for event in events:
            if event not in self._signs or kept[-2:] != [event, event]:
                kept.append(event)
        return tuple(kept)

    def _filed(self, trie: EventTrie) -> Filed | None:
        return Filed(trie, self.vocabulary.size) if trie.children or trie.endings else None
