"""Payoff: whether something optional has been worth its time, and when to try it again.

Knows milliseconds saved by round. Must not know what is judged.
"""

from __future__ import annotations

import math

_MEMORY = 64
"""Rounds over which gains are averaged."""
_FIRST, _PROBE = 16, 8
"""Rounds before the first judgement, and of a probe after a rest."""
_PAUSES = (16, 32, 64, 128)
"""Rounds of rest before each next probe; the last goes on."""


class Payoff:
    """Averages what a round saved; where that is a loss, rests for a while and probes again, ever more seldom.

    A loss has to show above the scatter: by more than the mean's standard error. An accepted token saves a whole pass
    or nothing, so that the mean of 16 rounds lies up to 2 ms beside the truth; judged by its sign alone, drafts that
    made creative writing 1.15 times as fast rested half of the time, and it was 1.01 times.
    """

    def __init__(self) -> None:
        self._mean_ms = 0.0
        self._variance = 0.0
        self._judged = 0
        self._enough = _FIRST
        self._rest = 0
        self._pauses = 0

    @property
    def resting(self) -> bool:
        """Whether the next round should go without."""
        return self._rest > 0

    def rested(self) -> None:
        """A round went without."""
        self._rest -= 1
        if self._rest == 0:
            self._mean_ms, self._variance, self._judged, self._enough = 0.0, 0.0, 0, _PROBE

    def saved(self, milliseconds: float) -> None:
        """What a round saved (negative: lost)."""
        self._judged += 1
        weight = 1.0 / min(self._judged, _MEMORY)
        apart = milliseconds - self._mean_ms
        self._mean_ms += weight * apart
        self._variance += weight * (apart * (milliseconds - self._mean_ms) - self._variance)
        if self._judged < self._enough:
            return
        if self._mean_ms + math.sqrt(weight * self._variance) <= 0.0:
            self._rest = _PAUSES[min(self._pauses, len(_PAUSES) - 1)]
            self._pauses += 1
        elif self._judged > 2 * _MEMORY:
            self._pauses = 0
