"""Stacks of the Python parser: persistent, shared, and only as far as a text is viable.

Knows tables and stacks. Must not know bytes, columns or token ids.

A stack is kept in segments: one ends at every bracket and block that is open. What the parser does inside a segment
does not depend on what lies below it, so segments are shared by all places of all documents: an argument is read
the same way in whichever call it stands. A segment is a linked list of immutable nodes which remember their
continuations, so equal segments are identical and every answer is computed once.
"""

from __future__ import annotations

from typing import NamedTuple

from grammars.python_parser import Tables, enter


class Exit(NamedTuple):
    """A reduction that takes the whole segment and `pops` nodes of the stack below it.

    Attributes:
        pops: how many nodes below the segment go as well.
        left: the nonterminal that is pushed then, with its `use`.
    """

    pops: int
    left: int
    use: int


BELOW = Exit(-1, -1, -1)
"""Stands among the stacks after a terminal where there may be more, depending on what lies below the segment."""


class Node:
    """The top of a segment: a parser state over `parent`. Make nodes with `Node.root` and `push` only.

    Attributes:
        height: how many nodes of the segment lie below.
        context: where the code stands, see python_parser.py.
    """

    __slots__ = (
        "_acceptable",
        "_children",
        "_entered",
        "_moves",
        "_shifted",
        "context",
        "height",
        "parent",
        "state",
        "tables",
        "use",
    )

    def __init__(self, tables: Tables, parent: Node | None, state: int, use: int, context: int) -> None:
        self.tables = tables
        self.parent = parent
        self.height: int = parent.height + 1 if parent else 0
        self.state = state
        self.use = use
        self.context = context
        self._moves = tables.moves(parent.state if parent else -1, state, use)
        self._children: dict[int, Node | None] | None = None
        self._entered: dict[Exit, Node | Exit | None] | None = None
        self._shifted: dict[int, tuple[Node | Exit, ...]] | None = None
        self._acceptable: int | None = None

    @classmethod
    def root(cls, tables: Tables, state: int = 0, context: int = 0) -> Node:
        """A segment that begins: the empty file, or the state after an opening bracket or an INDENT."""
        return cls(tables, None, state, 0, context)

    def ancestor(self, distance: int) -> Node:
        """The node `distance` below this one."""
        node = self
        for _ in range(distance):
            node = node.parent  # type: ignore[assignment]
        return node

    def push(self, state: int, use: int) -> Node | None:
        """The stack with one more state, or None where its mark forbids it here."""
        key = state << 5 | use
        if self._children is None:
            self._children = {}
        elif key in self._children:
            return self._children[key]
        context = enter(self.tables.rows[state].mark, self.context)
        child = None if context is None else Node(self.tables, self, state, use, context)
        self._children[key] = child
        return child

    def onto(self, below: Node) -> Node:
        """This segment as a part of the one that ends with `below`."""
        outer = self.parent.onto(below) if self.parent else below
        pushed = outer.push(self.state, self.use)
        assert pushed is not None, "the context is that of the segment's own begin"
        return pushed

    def enter(self, reduction: Exit) -> Node | Exit | None:
        """This stack after a reduction that leaves the segment above it; None where that is forbidden."""
        if self._entered is None:
            self._entered = {}
        elif reduction in self._entered:
            return self._entered[reduction]
        found = self._entered[reduction] = self._goto(*reduction)
        return found

    def _goto(self, pops: int, left: int, use: int) -> Node | Exit | None:
        """Pop some nodes, push the state of a nonterminal, and do what then is the only thing to do."""
        if pops > self.height:
            return Exit(pops - self.height - 1, left, use)
        base = self.ancestor(pops)
        pushed = base.push(self.tables.rows[base.state].gotos[left], use)
        return pushed and pushed.settled()

    def settled(self) -> Node | Exit | None:
        """The stack after the reductions that come next whatever follows; None where one of them is forbidden.

        An LALR parser that does them early refuses the same texts at the same tokens: it only looks later.
        """
        only = self._moves.only
        return self if only is None else self._reduce(*only)

    def _reduce(self, use: int, production: int) -> Node | Exit | None:
        """The stack after a reduction, where the top carries `use`."""
        reduction = self.tables.reductions[production]
        reduced_use = reduction.use(use, self.parent)
        return None if reduced_use is None else self._goto(reduction.length, reduction.left, reduced_use)

    def _top(self, state: int, use: int) -> Node:
        """This stack with its top renamed."""
        if state == self.state and use == self.use:
            return self
        renamed = self.parent and self.parent.push(state, use)
        assert renamed is not None, "only a terminal is marked"
        return renamed

    def shift(self, terminal: int) -> tuple[Node | Exit, ...]:
        """Every stack after `terminal`, none where it may not come next; `BELOW` where the segment does not say."""
        if self._shifted is None:
            self._shifted = {}
        elif terminal in self._shifted:
            return self._shifted[terminal]
        found = self._shifted[terminal] = self._shift(terminal)
        return found

    def _shift(self, terminal: int) -> tuple[Node | Exit, ...]:
        found: tuple[Node | Exit, ...] = ()
        for state, use, target in self._moves.shifts.get(terminal, ()):
            child = self._top(state, use).push(target, 0)
            settled = child and child.settled()
            if settled is not None:
                found += (settled,)
        for _, use, production, lookahead in self._moves.reductions:
            if lookahead >> terminal & 1:
                reduced = self._reduce(use, production)
                if isinstance(reduced, Exit):
                    found += (BELOW,)
                elif reduced is not None:
                    found += reduced.shift(terminal)
        return found

    @property
    def acceptable(self) -> int:
        """The set of terminals that `shift` accepts; `tables.below` is in it where the segment does not say all."""
        if self._acceptable is None:
            self._acceptable = self._accept(self.tables.everything)
        return self._acceptable

    def _accept(self, wanted: int) -> int:
        moves = self._moves
        accepted = moves.shiftable(self.context) & wanted
        for _, use, production, lookahead in moves.reductions:
            narrowed = lookahead & wanted
            reduced = self._reduce(use, production) if narrowed else None
            if isinstance(reduced, Exit):
                accepted |= self.tables.below
            elif reduced is not None:
                accepted |= reduced._accept(narrowed)
        return accepted
