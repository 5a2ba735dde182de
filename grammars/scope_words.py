"""Words of Python code by what they may be: a name that is read or bound, a keyword, the prefix of a string.

Data of the lexer and of those who ask it. Knows bytes of words; must not know where in a line they stand.
"""

from __future__ import annotations

import keyword
from dataclasses import dataclass
from enum import StrEnum

STRING_PREFIXES = frozenset(
    a + b for a in (b"", b"b", b"B", b"f", b"F", b"u", b"U", b"t", b"T") for b in (b"", b"r", b"R")
) | frozenset(a + b for a in (b"r", b"R") for b in (b"b", b"B", b"f", b"F", b"t", b"T"))
STRING_PREFIX_BEGINNINGS = STRING_PREFIXES - {b""}
KEYWORDS = frozenset(word.encode() for word in keyword.kwlist)
DEFERRING = frozenset({b"def", b"lambda", b"class", b"for", b"while"})
"""Words after which names count that are bound only later: the code behind them may run later, or again."""


class WordKind(StrEnum):
    """What a word may be. `legalised_by` says which byte behind an unknown word shows that it binds a name."""

    LOAD = "load"
    CONDITION = "condition"  # a load, or the target of a walrus
    ARGUMENT = "argument"  # a load, a keyword argument, or the target of a walrus
    CHAIN = "chain"  # a load, or one more target of an assignment
    STATEMENT = "statement"  # the first word of a statement: a load, or a target
    ELEMENT = "element"  # a load, or a variable of a comprehension whose `for` is still to come
    ATTRIBUTE = "attribute"  # of the object that a name stands for
    BINDING = "binding"
    FREE = "free"  # a keyword, an attribute of anything else, whatever reads no name

    @property
    def legalised_by(self) -> bytes | None:
        """Bytes of which one must follow an unknown word; empty: no byte helps; None: the word is free anyway."""
        return _LEGALISED_BY.get(self)

    @property
    def may_read(self) -> bool:
        """Whether such a word may read a name of the scope."""
        return self.legalised_by is not None or self is WordKind.ELEMENT


_LEGALISED_BY = {
    WordKind.LOAD: b"",
    WordKind.CONDITION: b":",
    WordKind.ARGUMENT: b"=:",
    WordKind.CHAIN: b"=,",
    WordKind.STATEMENT: b"=,:",
}


@dataclass(frozen=True, slots=True)
class Word:
    """A finished word; for an attribute, the name of its object; for an argument, that of the function."""

    text: bytes
    kind: WordKind
    object: bytes = b""


@dataclass(frozen=True, slots=True)
class Follow:
    """The first byte other than a blank behind the last word."""

    byte: int
