"""Names that exist, as a constraint over tokens: the scope half of the Python constraint.

A word that is being written where only a name can be read must be the beginning of a name of the scope view, and a
name when it ends; names that the completion binds count from then on. Where a word may also bind (the first word of
a statement, an argument), the byte behind it decides, and an unknown word must then be bound by it. `hard` forbids
the rest, `soft` makes it less probable. In strings, comments, attributes, imports and wherever else no name is read,
everything is allowed; so it is where the view has an escape hatch.

Knows tokens, a scope view and the bytes of the statement before the cursor. Must not know trees or models.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from grammars.builtin_names import BUILTIN_NAMES, MODULE_NAMES
from grammars.constraint import Bitmask, bitmask_of
from grammars.scope_attributes import KnownAttributes
from grammars.scope_index import ScopeIndex
from grammars.scope_lexer import LexicalState, Reading, read
from grammars.scope_modules import FindModule, no_modules
from grammars.scope_names import Names
from grammars.scope_parameters import KnownParameters
from grammars.scope_pieces import logical_line_start
from grammars.scope_state import Node, ScopeState, Setting, encoded, may_become_name
from grammars.scope_tokens import TokenTable
from grammars.scope_words import DEFERRING, KEYWORDS, Word, WordKind
from grammars.scopes import ScopeView, view
from grammars.vocabulary import Vocabulary

ScopeMode = Literal["soft", "hard"]

_ALWAYS = Names(
    [name.encode() for name in BUILTIN_NAMES | MODULE_NAMES] + [*KEYWORDS, b"match", b"case", b"type", b"_"]
)
_MOST_NODES = 4_000


@dataclass(frozen=True, slots=True)
class Penalties:
    """What `soft` adds to the logit of a token with which a word becomes unknown, by what the word may be.

    Of 477 completion points in real files (2025), an unknown word was right at 0 of 397 loads, conditions and chained
    assignments, at 25% of later arguments and 8% of first ones (keyword arguments, variables of comprehensions), and
    at 26% of the first words of statements (new variables): there it costs nothing, but leaving it unbound does.
    Where it is never right, a model may yet be surer of it than of all that exists, by ten logits and more: with -4
    every undefined name that was written without a constraint was written with it.

    Attributes:
        capital: for a capitalised word where an argument or an element is due: no parameter is called so.
        load: also for an argument that the function does not take, where its parameters are known, and for what the
            statement itself binds.
        unbound: for a sign that shows that an unknown word is not bound.
    """

    load: float = -12.0
    condition: float = -10.0
    chain: float = -10.0
    attribute: float = -2.0
    capital: float = -8.0
    unbound: float = -10.0

    def of(self, kind: WordKind, word: bytes) -> float:
        """The penalty of an unknown word; 0 where words are free."""
        if kind in (WordKind.ARGUMENT, WordKind.ELEMENT):
            return self.capital if word[:1].isupper() else 0.0
        by_kind = {
            WordKind.LOAD: self.load,
            WordKind.CONDITION: self.condition,
            WordKind.CHAIN: self.chain,
            WordKind.ATTRIBUTE: self.attribute,
        }
        return by_kind.get(kind, 0.0)

    def of_leaving(self, kind: WordKind, word: bytes) -> float:
        """The penalty of a sign that leaves an unknown word unbound; 0 where the word was paid for."""
        return self.unbound if kind.may_read and self.of(kind, word) == 0.0 else 0.0


class ScopeConstraint:
    """The scope constraint over the tokens of one vocabulary. Make one per tokenizer and share it."""

    def __init__(self, vocabulary: Vocabulary, penalties: Penalties | None = None) -> None:
        self.vocabulary = vocabulary
        self.penalties = penalties or Penalties()
        self.table = TokenTable(vocabulary)
        self._nodes: dict[LexicalState, Node] = {}

    @cached_property
    def ascii(self) -> Bitmask:
        """The tokens with text that has no bytes beyond ASCII."""
        tokens = self.vocabulary.tokens
        return bitmask_of([token for token, text in enumerate(tokens) if text and text.isascii()], self.vocabulary.size)

    def node(self, state: LexicalState) -> Node:
        """The one node of a lexical state."""
        found = self._nodes.get(state)
        if found is None:
            if len(self._nodes) >= _MOST_NODES:
                self._nodes.clear()
            found = self._nodes[state] = Node(self, state)
        return found

    def open(
        self,
        index: ScopeIndex,
        offset: int,
        mode: ScopeMode,
        start: int | None = None,
        find_module: FindModule = no_modules,
        importable: Iterable[str] = (),
    ) -> ScopeState:
        """The state at byte `offset` of an indexed document.

        Args:
            index: the document.
            offset: the cursor, where the names are looked up.
            mode: whether unknown names are forbidden or made less probable.
            start: where the tokens begin that the state is advanced over; before `offset` when tokens were healed.
            find_module: finds modules of the workspace, for their attributes.
            importable: names that count though nothing binds them: their import can be added.
        """
        seen = view(index, offset)
        seen = replace(seen, names=seen.names.union(importable))
        before = statement_before(index, offset if start is None else start)
        if seen.escape_hatch is not None or not seen.frames:
            return self.open_view(seen, before, mode)
        return self.open_view(
            seen, before, mode, KnownAttributes(seen.frames, find_module), KnownParameters(seen.frames)
        )

    def open_view(
        self,
        seen: ScopeView,
        before: bytes,
        mode: ScopeMode,
        attributes: KnownAttributes | None = None,
        parameters: KnownParameters | None = None,
    ) -> ScopeState:
        """The state for a scope view; `before` is the text of the statement up to the first token.

        Never raises: where the view has an escape hatch, the state allows everything and says why in `off_reason`.
        """
        reading = read(LexicalState(), before)
        now, after, defers = _bound_by(reading)
        names = Names(encoded(seen.names) | now | (encoded(seen.later) if defers else frozenset()), _ALWAYS)
        later, enclosing = encoded(seen.later), encoded(seen.enclosing) | after
        setting = Setting(
            self, mode == "hard", later, enclosing, Names(after), attributes, parameters, seen.escape_hatch
        )
        state = reading.state
        if state.word and state.kind.may_read and not may_become_name(names, state.word):
            state = replace(state, kind=WordKind.BINDING)  # the user types a name that is new: theirs to finish
        return ScopeState(setting, self.node(state), names)

    def open_word(self, names: Iterable[str], before: bytes, begun: bool = False) -> ScopeState:
        """The state behind `before` in which the next word, or where that is begun the last one, has to be one of
        `names`, or no name at all; behind that word it says nothing that is worth knowing."""
        setting = Setting(self, True, frozenset(), frozenset(), Names(()), None, None, None)
        state = read(LexicalState(), before).state
        state = replace(state, kind=WordKind.LOAD) if begun and state.kind.may_read else replace(state, must_exist=True)
        return ScopeState(setting, self.node(state), Names(encoded(names), _ALWAYS))


def _bound_by(reading: Reading) -> tuple[frozenset[bytes], frozenset[bytes], bool]:
    """What a statement that is begun binds: names that count at once (the parameters of a `def`), names that count
    behind it (the targets of an assignment), and whether its body runs later."""
    now, after, defers, previous = set(), set(), False, None
    for event in reading.events:
        if isinstance(event, Word):
            defers |= event.kind is WordKind.FREE and event.text in DEFERRING
            now |= {event.text} if event.kind is WordKind.BINDING else set()
            previous = event
        elif previous is not None and event.byte in (previous.kind.legalised_by or b""):
            after.add(previous.text)
    return frozenset(now), frozenset(after), defers


def statement_before(index: ScopeIndex, offset: int) -> bytes:
    """The bytes of the logical line up to `offset`."""
    start = index.starts[index.entry_at(offset)]
    return index.text[logical_line_start(index.text, start, offset) : offset]
