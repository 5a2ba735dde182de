"""Payoff: whether something optional has been worth its time, and when to try it again.

Knows milliseconds saved by round. Must not know what is judged.
"""

from __future__ import annotations

_PATIENCE = 24
"""Rounds over which the gain is averaged before it is judged."""
_PROBE = 6
"""Rounds of a probe."""
_PAUSES = (16, 32, 64, 128)
"""Rounds of rest before each next probe; the last goes on."""


class Payoff:
    """Averages what a round saved; where that is a loss, rests for a while and probes again, ever more seldom."""

    def __init__(self) -> None:
        self._gain_ms = 0.0
        self._judged = 0
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
            self._gain_ms, self._judged = 0.0, _PATIENCE - _PROBE

    def saved(self, milliseconds: float) -> None:
        """What a round saved (negative: lost)."""
        self._judged += 1
        self._gain_ms += (milliseconds - self._gain_ms) / min(self._judged, _PATIENCE)
        if self._judged < _PATIENCE:
            return
        if self._gain_ms <= 0.0:
            self._rest = _PAUSES[min(self._pauses, len(_PAUSES) - 1)]
            self._pauses += 1
        elif self._judged > 2 * _PATIENCE:
            self._pauses = 0
