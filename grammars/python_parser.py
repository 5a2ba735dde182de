"""The tables of the Python parser: what it may do, in which context, and what an expression may be used as.

Knows the grammar of python313.gram. Must not know bytes, columns or token ids, nor how stacks are kept
(python_stacks.py).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING

from grammars.lalr import Grammar, Row, build_tables, read_grammar

if TYPE_CHECKING:
    from grammars.python_stacks import Node

# What an expression may be used as. A name or attribute is all of these; `(a, *b)` may only be assigned to.
TARGET = 1  # the left side of "="
DELETABLE = 2  # after `del`
SINGLE = 4  # the left side of ":" or "+="
ELEMENT = 8  # an element of a target: like TARGET, or starred
STARRED = 16  # `*x`, which may not stand alone
_ALL_USES = TARGET | DELETABLE | SINGLE | ELEMENT
_REQUIRED = {"!target": TARGET, "!single": SINGLE, "!del": DELETABLE}

# Where a piece of code stands.
IN_FUNCTION = 1
IN_COROUTINE = 2
IN_LOOP = 4
IN_PARENTHESES = 8  # perhaps a generator expression, which may await anywhere
IN_EXCEPT_STAR = 16
BELOW_MODULE = 32
ANYWHERE = IN_FUNCTION | IN_COROUTINE | IN_LOOP | BELOW_MODULE
"""The context to assume where the surroundings are unknown: it forbids nothing but `import *`."""


_ENTERED = {
    "function": IN_FUNCTION | BELOW_MODULE,
    "coroutine": IN_FUNCTION | IN_COROUTINE | BELOW_MODULE,
    "class": BELOW_MODULE,
}
_NEEDED = {
    "return": IN_FUNCTION,
    "yield": IN_FUNCTION,
    "break": IN_LOOP,
    "async": IN_COROUTINE,
    "await": IN_COROUTINE | IN_PARENTHESES,
    "async_generator": IN_COROUTINE | IN_PARENTHESES,
    "nonlocal": BELOW_MODULE,
}
_REFUSED = {"return": IN_EXCEPT_STAR, "star_import": BELOW_MODULE}


def enter(mark: str, context: int) -> int | None:
    """The context after a mark of the grammar, or None where the construct may not stand in `context`."""
    if mark in _ENTERED:
        return _ENTERED[mark]
    match mark:
        case "loop":
            return context | IN_LOOP
        case "paren":
            return context | IN_PARENTHESES
        case "except_star":
            return context & ~IN_LOOP | IN_EXCEPT_STAR
    if mark in _NEEDED and not context & _NEEDED[mark]:
        return None
    return None if context & _REFUSED.get(mark, 0) else context


@dataclass(frozen=True, slots=True)
class Reduction:
    """One production as the parser uses it.

    Attributes:
        left: the nonterminal.
        length: how many states it pops.
        action: "", "pass" or one of the grammar's actions.
        operands: how far below the top the nonterminals of the right side lie, for actions that look at them.
    """

    left: int
    length: int
    action: str
    operands: tuple[int, ...]

    def use(self, top_use: int, below: Node | None) -> int | None:
        """What the reduced expression may be used as, or None where the reduction is forbidden, for a stack whose
        top carries `top_use` and lies on `below`."""
        match self.action:
            case "":
                return 0
            case "pass":
                return top_use
            case "alone":
                return None if top_use & STARRED else top_use
            case "single":
                return _ALL_USES
            case "empty":
                return TARGET | DELETABLE | ELEMENT
        uses = _ALL_USES
        for distance in self.operands:
            uses &= below.ancestor(distance - 1).use if distance and below else top_use
        match self.action:
            case "group":
                return uses
            case "starred":
                return STARRED | ELEMENT if uses & TARGET else STARRED
            case "seq":
                return (TARGET | ELEMENT if uses & ELEMENT else 0) | uses & DELETABLE
        return _ALL_USES if uses & _REQUIRED[self.action] else None


@dataclass(slots=True)
class Moves:
    """What a stack can do whose two top states are known: the reductions of one symbol, which only rename the top
    state, are done already. An operator after a name costs a dozen of them.

    Attributes:
        shifts: terminal -> (top state, its use, next state) for every way to shift it.
        reductions: (top state, its use, production, set of the terminals it may be followed by).
        shift_set: the keys of `shifts` as a set.
        guarded: terminal -> the marks of the next states, where all of them carry one.
        by_context: the terminals that can be shifted in each context met so far.
        only: (use of the top state, production) of the reduction that comes next whatever follows, or None.
    """

    shifts: dict[int, tuple[tuple[int, int, int], ...]]
    reductions: tuple[tuple[int, int, int, int], ...]
    shift_set: int
    guarded: dict[int, tuple[str, ...]]
    by_context: dict[int, int]
    only: tuple[int, int] | None

    def shiftable(self, context: int) -> int:
        """The set of terminals that can be shifted in `context` without any reduction of several symbols."""
        found = self.by_context.get(context)
        if found is None:
            found = self.shift_set
            for terminal, marks in self.guarded.items():
                if all(enter(mark, context) is None for mark in marks):
                    found &= ~(1 << terminal)
            self.by_context[context] = found
        return found


class Tables:
    """The tables of one grammar in the shape that nodes read."""

    def __init__(self, grammar: Grammar, rows: list[Row]) -> None:
        self.terminals = {grammar.symbols[t]: t for t in range(grammar.terminal_count)}
        self.names = grammar.symbols[: grammar.terminal_count]
        self.everything = (1 << grammar.terminal_count) - 1
        self.below = self.everything + 1  # no terminal: the answer is that of the stack below
        self.rows = rows
        self.reductions = tuple(
            Reduction(p.left, len(p.right), self._action(p.action, p.right), self._operands(p.right))
            for p in grammar.productions
        )
        self._moves: dict[tuple[int, int, int], Moves] = {}

    def _action(self, action: str, right: tuple[int, ...]) -> str:
        return action or ("pass" if len(right) == 1 and right[0] >= len(self.names) else "")

    def _operands(self, right: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(len(right) - 1 - i for i, symbol in enumerate(right) if symbol >= len(self.names))

    def moves(self, below: int, state: int, use: int) -> Moves:
        """The moves of a stack with `state`, which carries `use`, on top of the state `below` (-1: of nothing)."""
        found = self._moves.get((below, state, use))
        if found is None:
            found = self._moves[below, state, use] = self._find_moves(below, state, use)
        return found

    def _find_moves(self, below: int, state: int, use: int) -> Moves:
        shifts: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
        reductions: list[tuple[int, int, int, int]] = []
        todo = [(state, use, self.everything)]
        while todo:
            top, top_use, wanted = todo.pop()
            row = self.rows[top]
            for terminal, target in row.shifts.items():
                if wanted >> terminal & 1:
                    shifts[terminal].append((top, top_use, target))
            for number, lookahead in row.reductions:
                narrowed, reduction = lookahead & wanted, self.reductions[number]
                if narrowed and reduction.length == 1 and below >= 0:
                    renamed_use = reduction.use(top_use, None)
                    if renamed_use is not None:
                        todo.append((self.rows[below].gotos[reduction.left], renamed_use, narrowed))
                elif narrowed:
                    reductions.append((top, top_use, number, narrowed))
        marks = {t: tuple(self.rows[target].mark for _, _, target in ways) for t, ways in shifts.items()}
        guarded = {terminal: found for terminal, found in marks.items() if all(found)}
        shift_set = sum(1 << terminal for terminal in shifts)
        only = reductions[0][1:3] if len(reductions) == 1 and not shifts else None
        return Moves({t: tuple(ways) for t, ways in shifts.items()}, tuple(reductions), shift_set, guarded, {}, only)


@lru_cache(maxsize=1)
def python_tables() -> Tables:
    """The tables of Python 3.13, built on first use."""
    text = files("grammars").joinpath("python313.gram").read_text(encoding="utf-8")
    grammar = read_grammar(text)
    return Tables(grammar, build_tables(grammar))
