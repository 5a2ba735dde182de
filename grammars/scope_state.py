"""One state of the scope constraint: what a token does to it, what it forbids, what it makes less probable.

Knows lexical states and sets of names. How a state is opened at a cursor is the business of
`grammars.scope_constraint`. Must not know trees or models.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from grammars.constraint import Bitmask
from grammars.scope_attributes import KnownAttributes
from grammars.scope_lexer import LexicalState, Reading, read
from grammars.scope_names import Names
from grammars.scope_parameters import KnownParameters
from grammars.scope_survey import survey
from grammars.scope_words import DEFERRING, STRING_PREFIX_BEGINNINGS, Follow, Word, WordKind
from grammars.vocabulary import Vocabulary

if TYPE_CHECKING:
    from grammars.scope_constraint import ScopeConstraint


class Node:
    """A lexical state that remembers where bytes lead from it: states are few, tokens are read again and again."""

    __slots__ = ("_constraint", "_next", "state")

    def __init__(self, constraint: ScopeConstraint, state: LexicalState) -> None:
        self._constraint = constraint
        self._next: dict[bytes, tuple[Node, Reading]] = {}
        self.state = state

    def read(self, text: bytes) -> tuple[Node, Reading]:
        """The node after `text` and what was read on the way."""
        found = self._next.get(text)
        if found is None:
            reading = read(self.state, text)
            found = self._next[text] = (self._constraint.node(reading.state), reading)
        return found


def encoded(names: Iterable[str]) -> frozenset[bytes]:
    """Names as bytes of UTF-8."""
    return frozenset(name.encode("utf-8", "replace") for name in names)


@dataclass(frozen=True, slots=True)
class Setting:
    """What all states of one completion share."""

    constraint: ScopeConstraint
    hard: bool
    later: frozenset[bytes]
    enclosing: frozenset[bytes]
    targets: Names  # what the statement of the cursor will have bound
    attributes: KnownAttributes | None
    parameters: KnownParameters | None
    off_reason: str | None
    objects: dict[bytes, Names | None] = field(default_factory=dict, compare=False)
    functions: dict[bytes, frozenset[bytes] | None] = field(default_factory=dict, compare=False)

    def attributes_of(self, owner: bytes) -> Names | None:
        """The attributes of an object that stands in source as `owner`, None where any may exist."""
        if self.attributes is None:
            return None
        if owner not in self.objects:
            found = self.attributes.of(owner.decode("utf-8", "replace"))
            self.objects[owner] = Names(encoded(found)) if found is not None else None
        return self.objects[owner]

    def parameters_of(self, callee: bytes) -> frozenset[bytes] | None:
        """The keyword arguments of a function, None where it may take any."""
        if self.parameters is None or not callee:
            return None
        if callee not in self.functions:
            found = self.parameters.of(callee.decode("utf-8", "replace"))
            self.functions[callee] = encoded(found) if found is not None else None
        return self.functions[callee]


@dataclass(frozen=True, slots=True)
class Effect:
    """What reading some bytes does: the state, whether names forbid it, and what `soft` adds to a logit, <= 0."""

    state: ScopeState
    refused: bool
    penalty: float


class ScopeState:
    """One immutable state: see `grammars.constraint.Constraint`."""

    __slots__ = ("_effects", "_names", "_node", "_pending", "_setting", "_unknown")

    def __init__(
        self,
        setting: Setting,
        node: Node,
        names: Names,
        pending: tuple[bytes, WordKind] | None = None,
        unknown: bool = False,
    ) -> None:
        self._setting = setting
        self._node = node
        self._names = names
        self._pending = pending  # an unknown word that was finished: the next sign must bind it
        self._unknown = unknown  # the word that is being written begins no name
        self._effects: dict[int, Effect] = {}

    @property
    def off_reason(self) -> str | None:
        """Why everything is allowed, or None where names count."""
        return self._setting.off_reason

    @property
    def lexical(self) -> LexicalState:
        """Where in the statement the next byte stands."""
        return self._node.state

    @property
    def constraint(self) -> ScopeConstraint:
        """Whose vocabulary the tokens are of."""
        return self._setting.constraint

    @property
    def names(self) -> Names:
        """The names that count here."""
        return self._names

    @property
    def pending(self) -> tuple[bytes, WordKind] | None:
        """An unknown word that was finished, and what it may be: the next sign has to bind it."""
        return self._pending

    @property
    def writes_unknown(self) -> bool:
        """Whether the word that is being written begins no name."""
        return self._unknown

    def advance(self, token: int) -> ScopeState | None:
        """The state after `token`, or None where it is forbidden."""
        if self._setting.off_reason is not None:
            return self
        effect = self.effect(token)
        if effect is None:  # a token without text
            return None if self._setting.hard else self
        return None if effect.refused and self._setting.hard else effect.state

    def permits(self, token: int) -> bool:
        """Whether `token` may come next; the end of text always may."""
        return token in self._setting.constraint.vocabulary.end or self.advance(token) is not None

    def validate(self, tokens: Sequence[int]) -> int:
        """How many of `tokens`, read from here, are allowed. An end of text is the last that can be."""
        state = self
        for count, token in enumerate(tokens):
            following = state.advance(token)
            if following is None:
                return count + (token in self._setting.constraint.vocabulary.end)
            state = following
        return len(tokens)

    def penalty_of(self, token: int) -> float:
        """What `penalty` adds to the logit of one token: cheap, for the few best tokens that greedy decoding asks."""
        if self._setting.hard or self._setting.off_reason is not None:
            return 0.0
        effect = self.effect(token)
        return effect.penalty if effect is not None else 0.0

    def effect(self, token: int) -> Effect | None:
        """None for tokens without text."""
        found = self._effects.get(token)
        if found is None:
            vocabulary = self._setting.constraint.vocabulary
            text = vocabulary.tokens[token] if 0 <= token < vocabulary.size else b""
            if not text:
                return None
            found = self._effects[token] = self.read(text)
        return found

    def read(self, text: bytes) -> Effect:
        """The effect of bytes, which need not be a token."""
        node, reading = self._node.read(text)
        names, pending, paid = self._names, self._pending, self._unknown
        penalties, refused, penalty = self._setting.constraint.penalties, False, 0.0
        for event in reading.events:
            if isinstance(event, Follow):
                if pending is not None:
                    word, kind = pending
                    if event.byte not in (kind.legalised_by or b""):
                        refused = True
                        penalty = min(penalty, penalties.of_leaving(kind, word))
                    # Behind `=` an argument names a parameter; everything else that binds makes a name.
                    if kind is not WordKind.ARGUMENT or event.byte != 0x3D:
                        names = names.joined(frozenset({word}))
                    pending = None
                continue
            names = self._with_word(names, event)
            known = self.names_for(event.kind, event.object, names)
            if known is not None and not is_name(known, event.text):
                penalty = (
                    penalty if paid else min(penalty, self.penalty_for(event.kind, event.text, event.object, names))
                )
                refused |= event.kind.legalised_by == b""
                pending = (event.text, event.kind) if event.kind.legalised_by is not None else None
            paid = False
        if reading.newline and self._setting.enclosing:
            names = names.joined(self._setting.enclosing)
        state, unknown = node.state, False
        known = self.names_for(state.kind, state.name, names) if state.word else None
        if known is not None and not may_become_name(known, state.word):
            unknown = True
            penalty = penalty if paid else min(penalty, self.penalty_for(state.kind, state.word, state.owner, names))
            refused |= state.kind.legalised_by == b""
        return Effect(ScopeState(self._setting, node, names, pending, unknown), refused, penalty)

    def names_for(self, kind: WordKind, owner: bytes, names: Names) -> Names | None:
        """The names that a word of a kind can be, None where it can be any; `owner`: the object of an attribute."""
        if kind is WordKind.ATTRIBUTE:
            return self._setting.attributes_of(owner)
        return names if kind.may_read else None

    def penalty_for(self, kind: WordKind, word: bytes, owner: bytes, names: Names) -> float:
        """The penalty of a word that begins none of `names`."""
        penalties = self._setting.constraint.penalties
        if kind in (WordKind.ARGUMENT, WordKind.ELEMENT) and self._setting.targets.any_begins_with(word):
            return penalties.load
        taken = self.taken_by(kind, owner, names)
        return penalties.of(kind, word) if taken is None or may_become_name(taken, word) else penalties.load

    def taken_by(self, kind: WordKind, owner: bytes, names: Names) -> Names | None:
        """What can stand as an argument of a function whose parameters are known; None of any other."""
        parameters = self._setting.parameters_of(owner) if kind is WordKind.ARGUMENT else None
        return names.joined(parameters) if parameters is not None else None

    @property
    def targets(self) -> Names:
        """What the statement of the cursor will have bound."""
        return self._setting.targets

    def _with_word(self, names: Names, word: Word) -> Names:
        """The names after a finished word: it may bind, or make count what is bound later."""
        if word.kind is WordKind.BINDING:
            return names.joined(frozenset({word.text}))
        if word.kind is WordKind.FREE and word.text in DEFERRING and self._setting.later:
            return names.joined(self._setting.later)
        return names

    def allowed(self) -> Bitmask | None:
        """int32[ceil(V / 32)], or None where everything is allowed. Shared: do not write into it."""
        if not self._setting.hard or self._setting.off_reason is not None:
            return None
        key = ("allowed", self._node.state, self._pending, self._unknown)
        if key not in self._names.memo:
            refused = survey(self).refused
            vocabulary = self._setting.constraint.vocabulary
            self._names.memo[key] = _without(vocabulary, refused) if refused.any() else None
        mask: Bitmask | None = self._names.memo[key]
        return mask

    def penalty(self) -> tuple[NDArray[np.int32], NDArray[np.float32]] | None:
        """Token ids and what is added to their logits, or None. Shared: do not write into them."""
        if self._setting.hard or self._setting.off_reason is not None:
            return None
        key = ("penalty", self._node.state, self._pending, self._unknown)
        if key not in self._names.memo:
            found = survey(self).penalties
            ids = np.flatnonzero(found).astype(np.int32)
            self._names.memo[key] = (ids, found[ids]) if len(ids) else None
        answer: tuple[NDArray[np.int32], NDArray[np.float32]] | None = self._names.memo[key]
        return answer


def is_name(names: Names, word: bytes) -> bool:
    """Whether a finished word is a name; words beyond ASCII always count, Python compares them in form NFKC."""
    return word in names or not word.isascii()


def may_become_name(names: Names, word: bytes) -> bool:
    """Whether a name, or the prefix of a string, begins with a word."""
    return not word.isascii() or word in STRING_PREFIX_BEGINNINGS or names.any_begins_with(word)


def _without(vocabulary: Vocabulary, refused: NDArray[np.bool_]) -> Bitmask:
    """Everything but what is refused and what has no text, the ends of a text excepted."""
    flags = np.zeros((vocabulary.size + 31) // 32 * 32, dtype=np.uint8)
    flags[: vocabulary.size] = vocabulary.token_bytes_lengths > 0
    flags[: vocabulary.size][refused] = 0
    flags[list(vocabulary.end)] = 1
    return np.packbits(flags, bitorder="little").view(np.int32)
