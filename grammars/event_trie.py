"""Tokens filed under what they do to the lexer, so that a mask is a walk over what the parser accepts.

Knows events, terminals and token ids. Must not know how a token is read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from grammars.python_states import Machine, Turn
from grammars.python_terminals import Alternatives, Event

_DENSE = 2000
"""From so many ids on a whole row is or-ed (6 µs) instead of written id by id."""

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
        """Set the flag of every token that `machine` lets pass. Returns how many segments around the innermost one
        this depends on."""
        if self.free:
            self.free(flags)
        if self.leaf:
            return 0
        acceptable, around = machine.acceptable, int(machine.top.unknown)
        for terminal, marker in self.unfinished:
            if acceptable & terminal:
                marker(flags)
        for event, terminals, child in self.children:
            if acceptable & terminals and child.leaf:
                child.mark(machine, flags)
            elif acceptable & terminals or not terminals or machine.depth:
                after = machine.after(event)
                if after is not None:
                    around = max(around, machine.frame.level - after.frame.level + child.mark(after, flags))
                elif isinstance(machine.top.after(event), Turn):
                    around = machine.frame.level
        return around


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
