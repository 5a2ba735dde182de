"""How fast somebody types and how fast the model answers, and so how long to wait before asking it.

Knows times only. Each method takes the time, so that tests need no clock.
"""

from __future__ import annotations

from dataclasses import dataclass

_FAST = 0.3
"""Keys that follow each other within so many seconds are one burst."""
_LONGEST = 0.15
_WORTH = 0.3
"""A model that answers within so many seconds is asked earlier, in proportion."""
_NEW = 0.3
"""Share of the newest value in a running mean."""


@dataclass(slots=True)
class Pace:
    """Running means of one person and one machine, in seconds."""

    interval: float = 0.2
    latency: float = 0.3
    burst: int = 0
    last_key: float = float("-inf")

    def key(self, now: float) -> None:
        """A document was edited."""
        since = now - self.last_key
        if since < _FAST:
            self.interval += _NEW * (since - self.interval)
            self.burst += 1
        else:
            self.burst = 0
        self.last_key = now

    def answered(self, seconds: float) -> None:
        """The model took so long for a suggestion."""
        self.latency += _NEW * (seconds - self.latency)

    def delay(self, now: float) -> float:
        """How long to wait for another key before the model is asked: nothing outside of a burst."""
        if self.burst < 2:
            return 0.0
        quiet = min(self.interval, _LONGEST) * min(1.0, self.latency / _WORTH)
        return max(0.0, self.last_key + quiet - now)
