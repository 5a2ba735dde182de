"""Sampling: one token from one row of the target's logits.

Knows logits, masks and a random stream. Must not know trees, caches or drafters: the same call chooses a token
in plain decoding and at a node of a draft tree, which is why the two give the same text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from grammars.constraint import Constraint, bitmask_to_bool

_MORE = 256
"""Best tokens that are asked one by one, 10 µs each, before all of a vocabulary are, which takes 10 to 20 ms."""
_BLOCK = 512
"""Weights that are summed at a time when one is drawn."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a token is chosen from logits.

    Attributes:
        temperature: 0 is greedy.
        top_p, top_k, min_p: applied after the mask and after the temperature, in the order top-k, top-p, min-p;
            1.0, 0 and 0.0 switch them off.
        repetition_penalty: divides positive and multiplies negative logits of tokens that occur in the prompt or
            in what was generated (Keskar et al. 2019); 1.0 switches it off.
        seed, alternative: select the random stream together with the position (`uniform`).
    """

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    seed: int = 0
    alternative: int = 0

    @property
    def greedy(self) -> bool:
        """Whether the most probable token is always taken."""
        return self.temperature == 0.0

    @property
    def reads_context(self) -> bool:
        """Whether the choice depends on the tokens before it, or on how many there are."""
        return self.temperature > 0.0 or self.repetition_penalty != 1.0

    def uniform(self, position: int) -> float:
        """The random number in [0, 1) of the stream (seed, alternative, position).

        Counter-based (Philox), so that a position has the same number whatever was drawn before it.
        """
        key = np.array([self.seed & (2**64 - 1), self.alternative], dtype=np.uint64)
        return float(np.random.Generator(np.random.Philox(key=key, counter=[position, 0, 0, 0])).random())


def choose(
    row: torch.Tensor,
    top_ids: Sequence[int],
    top_logits: Sequence[float],
    state: Constraint | None,
    sampling: Sampling,
    context: Sequence[int],
) -> int | None:
    """The token that the target emits after `context`.

    Args:
        row: float32[V] logits.
        top_ids, top_logits: the row's k best, best first; greedy decoding seldom needs more.
        state: the constraint that renormalises the target, or None.
        sampling: see `Sampling`.
        context: all tokens so far; its length is the position that keys the random stream.

    Returns:
        A token id, or None where the constraint allows nothing at all.
    """
    if not sampling.reads_context:
        if state is None:
            return top_ids[0]
        found = _greedy_among_best(top_ids, top_logits, state)
        if found is None:
            found = _greedy_among_best(*_best(row, _MORE), state)
        if found is not None:
            return found
    scores = _adjusted(row, state, sampling.repetition_penalty, context)
    if sampling.greedy:
        best = int(scores.argmax())
        return best if scores[best] != -np.inf else None
    ids, weights = support(scores, sampling)
    if not len(weights):
        return None
    drawn = draw(weights, sampling.uniform(len(context)))
    return int(ids[drawn]) if ids is not None else drawn


def best_tokens(row: torch.Tensor, state: Constraint | None, count: int) -> list[int]:
    """The `count` most probable tokens that the constraint allows, best first; fewer where it allows fewer."""
    scores = _adjusted(row, state, 1.0, ())
    order = np.argsort(-scores, kind="stable")[:count]
    return [int(token) for token in order if scores[token] != -np.inf]


def _best(row: torch.Tensor, count: int) -> tuple[list[int], list[float]]:
    """The ids and logits of the `count` best tokens of a row, best first; ties go to the lower id."""
    best = row.topk(min(count, len(row)))
    pairs = sorted(zip(best.values.tolist(), best.indices.tolist(), strict=True), key=lambda pair: (-pair[0], pair[1]))
    return [token for _, token in pairs], [logit for logit, _ in pairs]


def _greedy_among_best(top_ids: Sequence[int], top_logits: Sequence[float], state: Constraint) -> int | None:
    """The masked arg-max where the k best decide it, else None. Never builds a mask.

    Penalties are <= 0, so a token outside the k best cannot reach an adjusted score that is above the k-th best logit.
    """
    best: int | None = None
    best_score = -np.inf
    for token, logit in zip(top_ids, top_logits, strict=True):
        if logit < best_score:
            break
        score = logit + state.penalty_of(token)
        better = best is None or score > best_score or (score == best_score and token < best)  # as the arg-max does
        if better and state.permits(token):
            best, best_score = token, score
    return best if best is not None and best_score > top_logits[-1] else None


def _adjusted(
    row: torch.Tensor,
    state: Constraint | None,
    repetition_penalty: float,
    context: Sequence[int],
) -> NDArray[np.float32]:
    """float32[V]: logits after repetition penalty, mask and soft preferences, in that order. Not to be written to:
    it is the row itself where nothing changes it."""
    scores: NDArray[np.float32] = row.detach().to("cpu", torch.float32).numpy()
    mask = state.allowed() if state is not None else None
    penalty = state.penalty() if state is not None else None
    if repetition_penalty != 1.0 or mask is not None or penalty is not None:
        scores = scores.copy()
    if repetition_penalty != 1.0:
        seen = np.unique(np.asarray(context, dtype=np.int64))
        seen = seen[seen < len(scores)]
        scores[seen] = np.where(scores[seen] > 0, scores[seen] / repetition_penalty, scores[seen] * repetition_penalty)
    if mask is not None:
        count = min(len(scores), len(mask) * 32)
        scores[count:] = -np.inf
        scores[:count][~bitmask_to_bool(mask, count)] = -np.inf
    if penalty is not None:
        scores[penalty[0]] += penalty[1]
    return scores


def support(scores: NDArray[np.float32], sampling: Sampling) -> tuple[NDArray[np.int64] | None, NDArray[np.float32]]:
    """What may be drawn from adjusted logits at `sampling.temperature` > 0, after top-k, top-p and min-p.

    Returns:
        The token ids (None: all, in order) and weights that are proportional to their probabilities; no weights
        where every score is -inf.
    """
    highest = scores.max()
    if highest == -np.inf:
        return None, np.empty(0, np.float32)
    weights = np.exp((scores - highest) * np.float32(1.0 / sampling.temperature))
    ids: NDArray[np.int64] | None = None
    if sampling.top_k or sampling.top_p < 1.0:
        ids = _truncated(weights, sampling.top_k or len(weights), sampling.top_p)
        weights = weights[ids]
    if sampling.min_p:
        enough = weights >= np.float32(sampling.min_p)  # the best weight is 1
        ids = np.flatnonzero(enough) if ids is None else ids[enough]
        weights = weights[enough]
    return ids, weights


def _truncated(weights: NDArray[np.float32], top_k: int, top_p: float) -> NDArray[np.int64]:
    """The ids of the `top_k` largest weights, of these the fewest that hold `top_p` of their mass; ties go to the
    lower id. Sorts only what can matter: sorting a whole row takes as long as a pass of a small model."""
    cuts_by_count = top_k < len(weights)
    whole = 0.0 if cuts_by_count else _mass(weights)
    floor = 1e-2
    while True:
        ids = np.flatnonzero(weights > np.float32(floor))
        if floor == 0.0 or (len(ids) >= top_k if cuts_by_count else _mass(weights[ids]) >= top_p * whole):
            break
        floor = floor * 1e-2 if floor > 1e-20 else 0.0
    ids = ids[np.argsort(-weights[ids], kind="stable")][:top_k]
    if top_p < 1.0:
        cumulative = np.cumsum(weights[ids], dtype=np.float64)
        ids = ids[: int(np.searchsorted(cumulative, top_p * (whole or cumulative[-1]))) + 1]
    return ids


def draw(weights: NDArray[np.float32], uniform: float) -> int:
    """The index whose share of the summed weights `uniform` in [0, 1) falls into; never one of weight 0.

    Sums blocks first: a running sum over a whole row would take four times as long.
    """
    blocks = -(-len(weights) // _BLOCK)
    padded = np.zeros(blocks * _BLOCK, dtype=np.float32)
    padded[: len(weights)] = weights
    ends = np.cumsum(padded.reshape(blocks, _BLOCK).sum(axis=1, dtype=np.float64))
    wanted = uniform * ends[-1]
    block = min(int(np.searchsorted(ends, wanted, side="right")), blocks - 1)
    first = block * _BLOCK
    before = ends[block - 1] if block else 0.0
    inside = before + np.cumsum(padded[first : first + _BLOCK], dtype=np.float64)
    found = first + int(np.searchsorted(inside, wanted, side="right"))
    # Rounding may leave `wanted` at the very end of a block: then it is the last weight up to there.
    return (
        found if found < first + _BLOCK and weights[found] > 0 else int(np.flatnonzero(weights[: first + _BLOCK])[-1])
    )


def _mass(weights: NDArray[np.float32]) -> float:
    return float(weights.sum(dtype=np.float64))
