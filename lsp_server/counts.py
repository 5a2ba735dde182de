"""How suggestions fare, counted and told to nobody but the user.

Knows numbers only: no texts, no file names, nothing of where they are kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(slots=True)
class Counts:
    """Since the server was started."""

    requests: int = 0
    answered: int = 0
    """Requests for which there was a text, even if nothing of it was worth showing."""
    answered_unread: int = 0
    """Those for which the model had no more than a few tokens of the prompt to read."""
    shown: int = 0
    accepted: int = 0
    accepted_characters: int = 0
    partly_accepted: int = 0
    """Edits that took several characters of a suggestion at once, but not all (inferred)."""
    dismissed: int = 0
    """Suggestions that were shown and then contradicted (inferred)."""
    from_cache: int = 0
    adopted: int = 0
    generated: int = 0
    prefetched: int = 0
    failed: int = 0
    tokens: int = 0
    """That the model wrote, for whatever reason."""
    tokens_shown: int = 0
    """Those of texts of which something was shown."""

    def accept(self, argument: Any) -> None:
        """The editor says that a suggestion was accepted."""
        self.accepted += 1
        characters = argument.get("characters") if isinstance(argument, Mapping) else None
        if isinstance(characters, int):
            self.accepted_characters += characters

    @property
    def acceptance_rate(self) -> float:
        """The share of shown suggestions that were accepted."""
        return self.accepted / self.shown if self.shown else 0.0

    def table(self) -> dict[str, float]:
        """The numbers, and the acceptance rate."""
        return {**asdict(self), "acceptance_rate": self.acceptance_rate}

    def plus(self, other: Counts, sign: int = 1) -> Counts:
        """Both together."""
        mine, theirs = asdict(self), asdict(other)
        return Counts(**{name: number + sign * theirs[name] for name, number in mine.items()})

    def since(self, before: Counts) -> Counts:
        """What was added to an earlier state."""
        return self.plus(before, -1)
