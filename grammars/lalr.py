"""LALR(1) tables of a context-free grammar, conflicts kept.

Knows the notation of `.gram` files and nothing of the language that one describes. The method is that of DeRemer
and Pennello (1982); grammars here derive no empty text, which leaves only their `includes` and `lookback`
relations. Where a yacc would report a conflict, every action is kept: the parser follows all of them.

Sets of terminals are Python integers, bit t for terminal t: whole rows are tested at once.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product

_SYMBOL = re.compile(r"(?:'([^']+)'|(\w+))(\?)?\Z")


@dataclass(frozen=True, slots=True)
class Production:
    """`left` -> `right`. Symbols are indices into `Grammar.symbols`.

    Attributes:
        marks: (position, name) of each `@name`: it stands after `position` symbols of `right`.
        action: the word after `=>`, or "".
    """

    left: int
    right: tuple[int, ...]
    marks: tuple[tuple[int, str], ...]
    action: str


@dataclass(frozen=True)
class Grammar:
    """Symbols (terminals first) and productions; production 0 belongs to the start symbol."""

    symbols: tuple[str, ...]
    terminal_count: int
    productions: tuple[Production, ...]


@dataclass(slots=True)
class Row:
    """What a parser may do in one state.

    Attributes:
        shifts: terminal -> next state.
        gotos: nonterminal -> next state.
        reductions: (production, set of the terminals it may be followed by).
        mark: the `@name` that stands before the rest of this state's items, or "".
    """

    shifts: dict[int, int] = field(default_factory=dict)
    gotos: dict[int, int] = field(default_factory=dict)
    reductions: tuple[tuple[int, int], ...] = ()
    mark: str = ""


def read_grammar(text: str) -> Grammar:
    """Parse the notation that `python313.gram` explains. Raises ValueError for a symbol without a rule."""
    rules = list(_alternatives(text))
    lefts = dict.fromkeys(left for left, *_ in rules)
    terminals: dict[str, None] = {}
    for _, right, _, _ in rules:
        terminals.update(dict.fromkeys(symbol for symbol in right if symbol not in lefts))
    lower = [name for name in terminals if re.fullmatch(r"[a-z_]\w*", name)]
    if lower:
        raise ValueError(f"no rule for {', '.join(lower)}")
    symbols = (*terminals, *lefts)
    index = {name: i for i, name in enumerate(symbols)}
    productions = tuple(
        Production(index[left], tuple(index[symbol] for symbol in right), marks, action)
        for left, right, marks, action in rules
    )
    return Grammar(tuple(name.strip("'") for name in symbols), len(terminals), productions)


_Alternative = tuple[str, tuple[str, ...], tuple[tuple[int, str], ...], str]


def _alternatives(text: str) -> Iterator[_Alternative]:
    """Every alternative of every rule, optional symbols multiplied out. Quoted terminals keep their quotes."""
    lines = (line for line in text.splitlines() if line.strip() and not line.startswith("#"))
    left = ""
    for line in lines:
        if not line.startswith(" "):
            left, _, line = line.partition(": ")
        for alternative in re.split(r"(?:^|\s)\|(?=\s)", line):
            if alternative.strip():
                yield from _expand(left, alternative)


def _expand(left: str, alternative: str) -> Iterator[_Alternative]:
    body, _, action = alternative.partition("=>")
    words = body.split()
    options: list[tuple[str, ...]] = []
    for word in words:
        match = _SYMBOL.match(word)
        if word.startswith("@"):
            options.append((word,))
        elif match is None:
            raise ValueError(f"cannot read {word!r} in a rule for {left}")
        else:
            name = f"'{match[1]}'" if match[1] else match[2]
            options.append((name, "") if match[3] else (name,))
    for chosen in product(*options):
        right: list[str] = []
        marks: list[tuple[int, str]] = []
        for name in chosen:
            if name.startswith("@"):
                marks.append((len(right), name[1:]))
            elif name:
                right.append(name)
        yield left, tuple(right), tuple(marks), action.strip()


_Item = tuple[int, int]
_Transition = tuple[int, int]


class _Builder:
    """The LR(0) automaton, then the lookahead sets."""

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self.by_left: dict[int, list[int]] = defaultdict(list)
        for number, production in enumerate(grammar.productions):
            self.by_left[production.left].append(number)
        self.rows: list[Row] = []
        self.kernels: list[frozenset[_Item]] = []
        self._first_items: dict[int, tuple[_Item, ...]] = {}

    def build(self) -> list[Row]:
        """Every row, lookaheads included."""
        start = self.grammar.productions[0].left
        self._automaton(frozenset((number, 0) for number in self.by_left[start]))
        self._lookaheads(self._follow_sets())
        for row, kernel in zip(self.rows, self.kernels, strict=True):
            row.mark = self._mark(kernel)
        return self.rows

    def _closure(self, kernel: Iterable[_Item]) -> set[_Item]:
        items = set(kernel)
        for number, dot in kernel:
            right = self.grammar.productions[number].right
            if dot < len(right):
                items.update(self._started_by(right[dot]))
        return items

    def _started_by(self, symbol: int) -> tuple[_Item, ...]:
        """The items with the dot in front that a dot before `symbol` brings in."""
        if symbol not in self._first_items:
            seen: dict[int, None] = {symbol: None}
            todo = [symbol]
            while todo:
                for number in self.by_left.get(todo.pop(), ()):
                    first = self.grammar.productions[number].right[0]
                    if first not in seen:
                        seen[first] = None
                        todo.append(first)
            self._first_items[symbol] = tuple((n, 0) for name in seen for n in self.by_left.get(name, ()))
        return self._first_items[symbol]

    def _automaton(self, start: frozenset[_Item]) -> None:
        numbers = {start: 0}
        self.kernels.append(start)
        self.rows.append(Row())
        for kernel in self.kernels:  # grows while it is read
            row = self.rows[numbers[kernel]]
            moves: dict[int, set[_Item]] = defaultdict(set)
            for number, dot in self._closure(kernel):
                right = self.grammar.productions[number].right
                if dot < len(right):
                    moves[right[dot]].add((number, dot + 1))
            for symbol in sorted(moves):
                target = frozenset(moves[symbol])
                if target not in numbers:
                    numbers[target] = len(self.kernels)
                    self.kernels.append(target)
                    self.rows.append(Row())
                table = row.shifts if symbol < self.grammar.terminal_count else row.gotos
                table[symbol] = numbers[target]

    def _walk(self, state: int, symbols: Iterable[int]) -> int:
        for symbol in symbols:
            row = self.rows[state]
            state = row.shifts[symbol] if symbol < self.grammar.terminal_count else row.gotos[symbol]
        return state

    def _follow_sets(self) -> dict[_Transition, int]:
        """What may follow each (state, nonterminal): DR, closed over `includes`."""
        follow: dict[_Transition, int] = {}
        included_by: dict[_Transition, list[_Transition]] = defaultdict(list)
        for state, row in enumerate(self.rows):
            for symbol, target in row.gotos.items():
                follow[state, symbol] = sum(1 << terminal for terminal in self.rows[target].shifts)
                for number in self.by_left[symbol]:
                    right = self.grammar.productions[number].right
                    if right[-1] >= self.grammar.terminal_count:
                        inner = (self._walk(state, right[:-1]), right[-1])
                        included_by[state, symbol].append(inner)
        todo = list(follow)
        while todo:
            outer = todo.pop()
            for inner in included_by[outer]:
                merged = follow[inner] | follow[outer]
                if merged != follow[inner]:
                    follow[inner] = merged
                    todo.append(inner)
        return follow

    def _lookaheads(self, follow: dict[_Transition, int]) -> None:
        found: dict[_Transition, int] = defaultdict(int)
        for (state, symbol), terminals in follow.items():
            for number in self.by_left[symbol]:
                end = self._walk(state, self.grammar.productions[number].right)
                found[end, number] |= terminals
        reductions: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for (state, number), terminals in found.items():
            reductions[state].append((number, terminals))
        for state, actions in reductions.items():
            self.rows[state].reductions = tuple(actions)

    def _mark(self, kernel: frozenset[_Item]) -> str:
        marks = {
            name
            for number, dot in kernel
            for position, name in self.grammar.productions[number].marks
            if position == dot
        }
        if len(marks) > 1:
            raise ValueError(f"one state, several marks: {sorted(marks)}")
        return marks.pop() if marks else ""


def build_tables(grammar: Grammar) -> list[Row]:
    """The LALR(1) rows of `grammar`; row 0 is the start. Takes about a quarter of a second for Python."""
    return _Builder(grammar).build()
