"""Calibration: what a source's probabilities have been worth.

Knows (source, claimed probability, was it right). Must not know tokens or trees. Sources estimate in different ways,
some too sure and some too shy; only after this correction can a node of one be weighed against a node of another, and
against what verifying it costs.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

_EDGES = (0.005, 0.01, 0.02, 0.04, 0.08, 0.15, 0.25, 0.4, 0.55, 0.7, 0.8, 0.88, 0.94, 0.98)
"""Bins of claimed probability: fine where claims are frequent, at both ends."""
_PRIOR_HITS = 4.0
"""Weight of "the claims are right", in hits: about a second of decoding outweighs it."""
_MEMORY = 400.0
"""Claimed hits after which older ones have lost half of their weight, so that a change of file shows."""
_MOST = 0.995


@dataclass(slots=True)
class _Bins:
    """Sums by bin of claimed probability; `factors` is what a claim of the bin is multiplied with."""

    claimed: list[float] = field(default_factory=lambda: [0.0] * (len(_EDGES) + 1))
    hits: list[float] = field(default_factory=lambda: [0.0] * (len(_EDGES) + 1))
    factors: list[float] = field(default_factory=lambda: [1.0] * (len(_EDGES) + 1))


class Calibration:
    """Corrects claimed probabilities source by source, online. A source that was never heard of is believed."""

    def __init__(self) -> None:
        self._sources: dict[str, _Bins] = {}

    def corrected(self, source: str, claimed: float) -> float:
        """The probability that a claim of this source is worth."""
        bins = self._sources.get(source)
        if bins is None:
            return min(claimed, _MOST)
        return min(claimed * bins.factors[bisect_right(_EDGES, claimed)], _MOST)

    def observe(self, source: str, claimed: float, hit: bool) -> None:
        """A claim that was decided: whether the target chose that token."""
        bins = self._sources.get(source)
        if bins is None:
            bins = self._sources[source] = _Bins()
        index = bisect_right(_EDGES, claimed)
        if bins.claimed[index] > _MEMORY:
            bins.claimed[index] *= 0.5
            bins.hits[index] *= 0.5
        bins.claimed[index] += claimed
        if hit:
            bins.hits[index] += 1.0
        bins.factors[index] = (bins.hits[index] + _PRIOR_HITS) / (bins.claimed[index] + _PRIOR_HITS)
