"""Tokens filed under what they do to the lexer, so that a mask is a walk over what the parser accepts.

Knows events, terminals and token ids. Must not know how a token is read.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from grammars.constraint import Bitmask, bitmask_of, empty_bitmask
from grammars.python_states import Machine, Turn
from grammars.python_terminals import Alternatives, Event
from grammars.token_reading import TokenIds

_DENSE = 1000
"""From so many ids on a bitmask is or-ed (2 µs for 150,000 tokens) instead of written id by id."""
_NO_TOKENS: TokenIds = np.zeros(0, dtype=np.int32)


class Tokens:
    """A set of tokens, as ids or as a bitmask: whichever takes less time."""

    __slots__ = ("ids", "mask")

    def __init__(self, ids: TokenIds, size: int) -> None:
        self.ids = ids if len(ids) < _DENSE else _NO_TOKENS
        self.mask = bitmask_of(ids, size) if len(ids) >= _DENSE else None


class Collected:
    """A set of tokens that grows."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._mask = empty_bitmask(size)
        self._ids = [_NO_TOKENS]

    def add(self, tokens: Tokens) -> None:
        """Add a set."""
        if tokens.mask is None:
            self._ids.append(tokens.ids)
        else:
            self._mask |= tokens.mask

    def mask(self) -> Bitmask:
        """The bitmask of the set."""
        return self._mask | bitmask_of(np.concatenate(self._ids), self._size)


@dataclass(slots=True)
class EventTrie:
    """Tokens filed under what they do: `children` by the next event they complete, then by how they end.

    Attributes:
        endings: the set of terminals that the last lexeme of tokens may become -> those tokens; 0: anything may
            follow them.
    """

    children: dict[Event, EventTrie] = field(default_factory=dict)
    endings: dict[int, list[TokenIds]] = field(default_factory=dict)

    def add(self, tokens: TokenIds, events: tuple[Event, ...], future: int) -> None:
        """File tokens."""
        node = self
        for event in events:
            node = node.children.setdefault(event, EventTrie())
        node.endings.setdefault(future, []).append(tokens)


class Filed:
    """An EventTrie in the shape that masks are read from."""

    __slots__ = ("_chosen", "_relevant", "_unfinished", "children", "free", "leaf", "size")

    def __init__(self, trie: EventTrie, size: int) -> None:
        endings = {future: np.concatenate(tokens) for future, tokens in trie.endings.items()}
        free = endings.pop(0, None)
        self.size = size
        self.free = None if free is None else Tokens(free, size)
        self.leaf = not trie.children and not endings
        self.children = [(event, _terminals(event), Filed(child, size)) for event, child in trie.children.items()]
        self._unfinished = list(endings.items())
        self._relevant = 0
        for future in endings:
            self._relevant |= future
        self._chosen: dict[int, Tokens] = {}

    def unfinished(self, acceptable: int) -> Tokens:
        """The tokens that end in a lexeme which may become one of the `acceptable` terminals."""
        wanted = acceptable & self._relevant
        chosen = self._chosen.get(wanted)
        if chosen is None:
            found = [tokens for future, tokens in self._unfinished if future & wanted]
            chosen = self._chosen[wanted] = Tokens(np.concatenate(found or [_NO_TOKENS]), self.size)
        return chosen

    def collect(self, machine: Machine, found: Collected) -> int:
        """Collect every token that `machine` lets pass. Returns how many segments around the innermost one this
        depends on."""
        if self.free is not None:
            found.add(self.free)
        if self.leaf:
            return 0
        acceptable, around = machine.acceptable, int(machine.top.unknown)
        if acceptable & self._relevant:
            found.add(self.unfinished(acceptable))
        for event, terminals, child in self.children:
            if acceptable & terminals and child.leaf:
                child.collect(machine, found)
            elif acceptable & terminals or not terminals or machine.depth:
                after = machine.after(event)
                if after is not None:
                    around = max(around, machine.frame.level - after.frame.level + child.collect(after, found))
                elif isinstance(machine.top.after(event), Turn):
                    around = machine.frame.level
        return around


def _terminals(event: Event) -> int:
    """The terminals that an event needs one of, as a set; 0 for the begin of a line."""
    if isinstance(event, int):
        return 1 << event
    return sum(1 << t for t in event.terminals) if isinstance(event, Alternatives) else 0
