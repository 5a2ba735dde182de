"""The recycle source: what the target itself ranked highest the last time it was here.

Knows token ids and the top-k of every verified row. No model, no training: Token Recycling (arXiv 2408.08696), with
probabilities, and with a second table for the last two tokens, which knows better where it knows anything. Both start
from a small public table (`successors.py`) and learn from every pass; what they learn stays in memory.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from decoding.drafters.drafter import Observation
from decoding.drafters.successors import Successors

_SLOTS = 1 << 17
"""Contexts of the table: with 8 successors of 6 bytes, 7 MB. An older context in the same slot is forgotten."""
_WIDTH = 8
_LEAST = 0.004
"""Successors below this joint with nothing are not worth the time to look at."""
_TRUST_ONE = 0.4
_TRUST_TWO, _TRUST_BOTH = 0.6, 0.15
"""How far a ranking is believed: of the single token where the pair is unknown, of the pair, and of the single token
beside it. Chosen on recorded infilling, editing and chat."""
_PAIR_HASH, _TOKEN_HASH = 0x9E3779B1, 0x85EBCA6B
"""Odd constants of 32 bits: no product of one with a token id leaves 63 bits."""
_ALONE = -2
"""Stands in a context for the earlier token where only the last one counts; -1 is the beginning of a text."""


class _Table:
    """Successors by context: int64 key -> int32[8] ids and float16[8] probabilities, in a fixed number of slots."""

    def __init__(self) -> None:
        self.keys: NDArray[np.int64] = np.full(_SLOTS, -1, dtype=np.int64)
        self.ids: NDArray[np.int32] = np.zeros((_SLOTS, _WIDTH), dtype=np.int32)
        self.probabilities: NDArray[np.float16] = np.zeros((_SLOTS, _WIDTH), dtype=np.float16)

    def find(self, before: int, token: int) -> list[tuple[int, float]]:
        """(token, probability), most probable first; empty for a context never seen."""
        key = before + 2 << 32 | token
        slot = ((before + 2) * _PAIR_HASH + token * _TOKEN_HASH >> 13) & (_SLOTS - 1)
        if self.keys[slot] != key:
            return []
        return list(zip(self.ids[slot].tolist(), self.probabilities[slot].tolist(), strict=True))

    def store(
        self,
        before: NDArray[np.int64],
        tokens: NDArray[np.int64],
        ids: NDArray[np.int32],
        probabilities: NDArray[np.float16],
    ) -> None:
        """Remember ids [n, <= 8] and probabilities of n contexts; a context that occurs twice keeps the last."""
        slots = ((before + 2) * _PAIR_HASH + tokens * _TOKEN_HASH >> 13) & (_SLOTS - 1)
        width = ids.shape[1]
        self.keys[slots] = before + 2 << 32 | tokens
        self.ids[slots, :width] = ids
        self.probabilities[slots, :width] = probabilities
        if width < _WIDTH:
            self.probabilities[slots, width:] = 0.0


Context = tuple[int, int]


class RecycleSource:
    """Successors of the last one or two tokens, as the target last ranked them."""

    name = "recycle"

    def __init__(self, start: Successors | None = None) -> None:
        """`start` is a public table of the same tokenizer, or None to begin with nothing."""
        self._table = _Table()
        if start is not None:
            alone = np.full_like(start.tokens, _ALONE)
            self._table.store(alone, start.tokens, start.ids, start.probabilities)
            self._table.store(*start.pairs, start.pair_ids, start.pair_probabilities)

    def begin(self, tokens: Sequence[int]) -> None:
        """See `Source.begin`: nothing is forgotten between requests."""

    def root(self, tokens: Sequence[int]) -> Context:
        """See `Source.root`."""
        return (tokens[-2] if len(tokens) > 1 else -1, tokens[-1])

    def after(self, place: Context, token: int) -> Context:
        """See `Source.after`."""
        return (place[1], token)

    def successors(self, place: Context) -> list[tuple[int, float]]:
        """See `Source.successors`: what followed the pair and what followed the single token, both taken with the
        doubt that they deserve."""
        after_one = self._table.find(_ALONE, place[1])
        after_two = self._table.find(*place)
        if not after_two:
            return [(token, _TRUST_ONE * p) for token, p in after_one if p > _LEAST]
        mixed = {token: _TRUST_TWO * p for token, p in after_two}
        for token, p in after_one:
            mixed[token] = mixed.get(token, 0.0) + _TRUST_BOTH * p
        return [entry for entry in mixed.items() if entry[1] > _LEAST]

    def observe(self, seen: Observation, places: Sequence[Context]) -> None:
        """See `Source.observe`: every row that the target scored says what follows its token, rejected or not."""
        logits = seen.scored.top_logits.numpy()[:, :_WIDTH]
        ids = seen.scored.top_ids.numpy()[:, :_WIDTH]
        rows = np.array([seen.root, *seen.tree.token_ids.tolist()], dtype=np.int64)
        above = np.array([seen.before, *rows[seen.tree.parents + 1].tolist()], dtype=np.int64)
        sound = np.isfinite(logits[:, 0])
        if not sound.all():
            ids, logits, rows, above = ids[sound], logits[sound], rows[sound], above[sound]
        weights = np.exp(logits - logits[:, :1])
        # The k best hold nearly all of the mass in code; the calibration learns by how much this is too sure.
        probabilities = (weights / weights.sum(axis=1, keepdims=True)).astype(np.float16)
        # One write for both kinds of context: each numpy call takes a microsecond or two, and a pass has few rows.
        before = np.concatenate([np.full_like(above, _ALONE), above])
        self._table.store(
            before,
            np.concatenate([rows, rows]),
            np.concatenate([ids, ids]),
            np.concatenate([probabilities, probabilities]),
        )
