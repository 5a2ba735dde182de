"""The terminals of the Python grammar as the lexer writes them: keywords, operators, and the events it reports.

Knows spellings. Must not know how they are recognised or what the grammar does with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

_CONSTANTS = frozenset({"None", "True", "False"})
SOFT_KEYWORDS = {"match": "MATCH", "case": "CASE", "type": "TYPE"}
_STRING_KINDS = {"": "STRING", "r": "STRING", "u": "STRING", "b": "BYTES", "br": "BYTES", "f": "FSTRING_START"}
AFTER_NUMBER = frozenset({"and", "else", "for", "if", "in", "is", "or", "not"})
"""The keywords that may touch the number before them: `1if x else 2`."""


class Line(NamedTuple):
    """A line begins: the column of its first character with tabs as 8 columns, and with tabs as one."""

    column: int
    alternate: int


class Alternatives(NamedTuple):
    """A lexeme that may be any of several terminals: a soft keyword is a name as well."""

    terminals: tuple[int, ...]


Event = int | Line | Alternatives
"""What the lexer reports: a terminal, a choice of terminals, or the begin of a line."""


def string_prefixes() -> dict[str, str]:
    """Every spelling of a string prefix (and of its beginnings) -> its letters, lower-case and sorted."""
    spellings: dict[str, str] = {}
    for letters in ("r", "u", "b", "f", "br", "rb", "fr", "rf"):
        for bits in range(1 << len(letters)):
            spelled = "".join(c.upper() if bits >> i & 1 else c for i, c in enumerate(letters))
            spellings[spelled] = "".join(sorted(letters))
    return spellings


@dataclass(frozen=True)
class Terminals:
    """The grammar's terminals by name, and what the lexer needs to know about their spelling."""

    numbers: Mapping[str, int]

    def __getitem__(self, name: str) -> int:
        return self.numbers[name]

    def set_of(self, names: Iterable[str]) -> int:
        """The terminals as a set: bit t for terminal t."""
        return sum(1 << self.numbers[name] for name in set(names))

    @cached_property
    def keywords(self) -> frozenset[str]:
        """Every hard keyword."""
        return frozenset(name for name in self.numbers if name.isalpha() and (name.islower() or name in _CONSTANTS))

    @cached_property
    def operators(self) -> frozenset[str]:
        """Every operator and delimiter."""
        return frozenset(name for name in self.numbers if not name[0].isalpha())

    @cached_property
    def prefixes(self) -> dict[str, str]:
        """See `string_prefixes`."""
        return string_prefixes()

    def word_event(self, word: str) -> Event:
        """What a complete word is reported as."""
        if word in self.keywords:
            return self.numbers[word]
        if word in SOFT_KEYWORDS:
            return Alternatives((self.numbers["NAME"], self.numbers[SOFT_KEYWORDS[word]]))
        return self.numbers["NAME"]

    def string_kind(self, prefix: str) -> int:
        """The terminal of a string whose prefix has the letters `prefix` (see `string_prefixes`)."""
        return self.numbers["FSTRING_START" if "f" in prefix else _STRING_KINDS[prefix]]

    def word_future(self, word: str) -> int:
        """The set of terminals that a word which begins with `word` may become."""
        names = {"NAME"} | {keyword for keyword in self.keywords if keyword.startswith(word)}
        names |= {kind for keyword, kind in SOFT_KEYWORDS.items() if keyword.startswith(word)}
        found = self.set_of(names)
        for spelling, letters in self.prefixes.items():
            if spelling.startswith(word):
                found |= 1 << self.string_kind(letters)
        return found
