"""How people type: keys with pauses and slips, from a seed; and the recorded keystrokes of public data.

Knows texts and times; no server.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

CHARACTERS_PER_WORD = 5
SLIP = 0.015
"""Share of keys that are wrong and taken back."""


@dataclass(frozen=True, slots=True)
class Key:
    """After `pause` seconds, `text` is typed; "" takes back the character before the cursor."""

    pause: float
    text: str


@dataclass(frozen=True, slots=True)
class Typist:
    """One person."""

    words_per_minute: float
    rng: random.Random

    def pause(self, after: str) -> float:
        """Seconds before the next key: log-normal around the person's speed, and thought at the start of a line."""
        mean = 60 / (self.words_per_minute * CHARACTERS_PER_WORD)
        pause = self.rng.lognormvariate(0, 0.35) * mean
        if after.endswith("\n") and self.rng.random() < 0.5:
            pause += self.rng.uniform(0.6, 2.0)
        return pause

    def keys(self, target: str, after: str) -> Iterator[Key]:
        """Keys that write the beginning of `target`, one unit, with a slip now and then.

        A new line brings its indentation along, as editors do it.
        """
        unit = target[0]
        if unit == "\n":
            unit += target[1 : len(target) - len(target[1:].lstrip(" "))]
        if unit.isalpha() and self.rng.random() < SLIP:
            yield Key(self.pause(after), self.rng.choice("etaoinshrdlu"))
            yield Key(0.25, "")
        yield Key(self.pause(after), unit)


@dataclass(frozen=True, slots=True)
class Region:
    """A part of a file that is written anew: `before` and `after` stand, `target` is typed."""

    before: str
    target: str
    after: str


def regions(texts: list[str], count: int, rng: random.Random, lines: int = 12) -> list[Region]:
    """Regions of `lines` lines each, after the first 20 lines of files of middle length."""
    fitting = [text for text in texts if 60 <= text.count("\n") <= 400]
    found = []
    for text in rng.sample(fitting, min(count, len(fitting))):
        rows = text.splitlines(keepends=True)
        start = rng.randrange(20, len(rows) - lines - 5)
        head, body, tail = rows[:start], rows[start : start + lines], rows[start + lines :]
        found.append(Region("".join(head), "".join(body).rstrip("\n"), "\n" + "".join(tail)))
    return found
