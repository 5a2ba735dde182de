"""What every token of a vocabulary would do in a state of the scope constraint.

The answer is that of reading each token by itself (`ScopeState.effect`), found for whole groups at once; only tokens
whose meaning no group decides are read one by one. Knows states and the token table; must not know scopes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from grammars.scope_lexer import LexicalState
from grammars.scope_names import Names
from grammars.scope_tokens import WordTokens
from grammars.scope_words import STRING_PREFIX_BEGINNINGS, WordKind

if TYPE_CHECKING:
    from grammars.scope_state import ScopeState

_VERIFIED_SIGNS = frozenset(b"'\"\\")  # whose meaning the bytes behind them decide


@dataclass(frozen=True, slots=True)
class Survey:
    """Per token of the vocabulary: bool[V], whether names refuse it; float32[V], what `soft` adds to its logit."""

    refused: NDArray[np.bool_]
    penalties: NDArray[np.float32]


def survey(state: ScopeState) -> Survey:
    """The effects of all tokens in `state`."""
    return _Surveyor(state).run()


class _Surveyor:
    """Flags tokens by their effects."""

    def __init__(self, state: ScopeState) -> None:
        self._state = state
        self._table = state.constraint.table
        self._refused = np.zeros(self._table.size, dtype=np.bool_)
        self._penalties = np.zeros(self._table.size, dtype=np.float32)
        self._flags = np.zeros(self._table.size, dtype=np.bool_)  # all False between two uses

    def run(self) -> Survey:
        lexical = self._state.lexical
        if lexical.partial and lexical.in_code:
            self._undecided(lexical.partial)
        else:
            self._decided(lexical)
        return Survey(self._refused, self._penalties)

    def _undecided(self, partial: bytes) -> None:
        """Where the next byte says what a quote or a backslash means: only one that goes on with it makes it special,
        before all others it has the meaning that it has before a blank."""
        settled = self._state.read(b" ")
        found = survey(settled.state)
        self._refused = found.refused | settled.refused
        self._penalties = np.minimum(found.penalties, np.float32(settled.penalty))
        special = self._table.by_first_byte(b"\r\n" if partial == b"\\" else partial[:1])
        self._refused[special], self._penalties[special] = False, 0.0
        self._one_by_one(special)

    def _decided(self, lexical: LexicalState) -> None:
        state, table = self._state, self._table
        names = state.names_for(lexical.kind, lexical.name, state.names) if lexical.word else None
        if state.pending is not None or (names is not None and lexical.word not in names):
            # A quote may open a string with the word as its prefix; a backslash may join lines or not.
            special = lexical.word in STRING_PREFIX_BEGINNINGS
            for sign, ids in table.by_sign.items():
                if sign == 0x5C or (special and sign in _VERIFIED_SIGNS):
                    self._one_by_one(ids)
                else:
                    self._note(ids, bytes([sign, *b"x"] if sign in _VERIFIED_SIGNS else [sign or 0x20]))
        for group in table.groups.values():
            self._group(group)
        self._one_by_one(table.irregular)

    def _note(self, ids: NDArray[np.int32], text: bytes) -> None:
        """All of `ids` do what `text` does."""
        effect = self._state.read(text)
        if effect.refused:
            self._refused[ids] = True
        self._lower(ids, effect.penalty)

    def _lower(self, ids: NDArray[np.int32], penalty: float) -> None:
        if penalty:
            self._penalties[ids] = np.minimum(self._penalties[ids], np.float32(penalty))

    def _one_by_one(self, ids: Iterable[int] | NDArray[np.int32]) -> None:
        for token in ids.tolist() if isinstance(ids, np.ndarray) else ids:
            effect = self._state.effect(token)
            if effect is not None:
                self._refused[token], self._penalties[token] = effect.refused, effect.penalty

    def _group(self, group: WordTokens) -> None:
        """Tokens that share what stands before their word: that is read once, with a word that stands for all."""
        probe = group.prefix + b"x"
        lexical = self._state.read(probe).state.lexical
        before = self._state.read(group.prefix)
        names = self._state.names_for(lexical.kind, lexical.name, before.state.names)
        if names is None or not lexical.in_code or not lexical.word:
            self._note(group.ids, probe)  # no word here reads a name
            return
        if any(sign in _VERIFIED_SIGNS for sign in group.prefix):
            self._one_by_one(group.ids)
            return
        pending = before.state.pending if not before.state.lexical.word else None
        if before.refused or pending is not None:
            self._refused[group.ids] = True  # a word cannot bind the unknown one before it
        if pending is not None:
            self._lower(group.ids, self._state.constraint.penalties.of_leaving(pending[1], pending[0]))
        self._lower(group.ids, before.penalty)
        written, kind = lexical.word[:-1], lexical.kind
        wrong = self._unknown_words(group, written, names)
        if not before.state.writes_unknown:
            self._lower_unknown(group, wrong, written, lexical, names)
        if kind is WordKind.LOAD:
            self._refused[wrong] = True
        elif kind.legalised_by is not None:
            self._one_by_one(_closing_among(group, wrong))  # the sign behind the word decides

    def _lower_unknown(
        self, group: WordTokens, wrong: NDArray[np.int32], written: bytes, lexical: LexicalState, names: Names
    ) -> None:
        """Penalties for words that become unknown; a capital letter may count, and what is known of the function that
        is called."""
        penalties, kind = self._state.constraint.penalties, lexical.kind
        self._lower(wrong, penalties.of(kind, written or b"a"))
        capital = penalties.of(kind, b"A")
        if not written and capital:
            self._lower(wrong[self._table.capital[wrong]], capital)
        taken = self._state.taken_by(kind, lexical.owner, names)
        if taken is not None:
            self._lower(self._unknown_words(group, written, taken), penalties.load)
        if kind in (WordKind.ARGUMENT, WordKind.ELEMENT) and self._state.targets.own:
            others = self._unknown_words(group, written, self._state.targets)
            self._lower(self._without(wrong, others), penalties.load)

    def _unknown_words(self, group: WordTokens, written: bytes, names: Names) -> NDArray[np.int32]:
        """The tokens of a group whose word, behind what is `written` of it, is no name."""
        if not written.isascii():
            return np.empty(0, dtype=np.int32)
        wrong: NDArray[np.int32] | None = names.memo.get((group.prefix, written))
        if wrong is None:
            asked = group.asked_inside if written else group.asked_first
            wrong = self._without(asked, np.asarray(_known_words(group, written, names), dtype=np.int32))
            names.memo[group.prefix, written] = wrong
        return wrong

    def _without(self, ids: NDArray[np.int32], others: NDArray[np.int32]) -> NDArray[np.int32]:
        """Those of `ids` that are not among `others`."""
        flags = self._flags
        flags[others] = True
        left = ids[~flags[ids]]
        flags[others] = False
        return left


def _known_words(group: WordTokens, written: bytes, names: Names) -> list[int]:
    """The tokens of a group that go on with a name, or end one."""
    known: list[int] = []
    if written:
        size = len(written)
        whole = [name[size:] for name in names.beginning_with(written)]
        prefixes = (prefix[size:] for prefix in STRING_PREFIX_BEGINNINGS if prefix.startswith(written))
        endings = frozenset(rest[:length] for rest in whole for length in range(1, len(rest) + 1)).union(prefixes)
        closings = frozenset(whole)
    else:
        endings, closings = names.beginnings, names.all
        for prefix in STRING_PREFIX_BEGINNINGS:
            known += group.ending.get(prefix, ())
    for words, wanted in ((group.ending, endings), (group.closing, closings)):
        for word in wanted if len(wanted) < len(words) else words:
            if word in words and word in wanted:
                known += words[word]
    return known


def _closing_among(group: WordTokens, ids: NDArray[np.int32]) -> Iterable[int]:
    wanted = set(ids.tolist())
    return [token for tokens in group.closing.values() for token in tokens if token in wanted]
