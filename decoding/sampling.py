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
    penalty = state.penalty() if state is not None else None
    if sampling.greedy and sampling.repetition_penalty == 1.0:
        found = _greedy_among_best(top_ids, top_logits, state, penalty)
        if found is not None:
            return found
    scores = _adjusted(row, state, penalty, sampling.repetition_penalty, context)
    if sampling.greedy:
        best = int(scores.argmax())
        return best if scores[best] != -np.inf else None
    probabilities = distribution(scores, sampling)
    if probabilities is None:
        return None
    cumulative = np.cumsum(probabilities)
    drawn = int(np.searchsorted(cumulative, sampling.uniform(len(context)) * cumulative[-1], side="right"))
    return min(drawn, int(np.flatnonzero(probabilities)[-1]))


def best_tokens(row: torch.Tensor, state: Constraint | None, count: int) -> list[int]:
    """The `count` most probable tokens that the constraint allows, best first; fewer where it allows fewer."""
    scores = _adjusted(row, state, state.penalty() if state is not None else None, 1.0, ())
    order = np.argsort(-scores, kind="stable")[:count]
    return [int(token) for token in order if scores[token] != -np.inf]


def _greedy_among_best(
    top_ids: Sequence[int],
    top_logits: Sequence[float],
    state: Constraint | None,
    penalty: tuple[NDArray[np.int32], NDArray[np.float32]] | None,
) -> int | None:
    """The masked arg-max where the k best decide it, else None. Never builds a mask.

    Penalties are <= 0, so a token outside the k best cannot beat an adjusted score that is at least the k-th
    best logit.
    """
    lowered = dict(zip(penalty[0].tolist(), penalty[1].tolist(), strict=True)) if penalty is not None else {}
    best: int | None = None
    best_score = -np.inf
    for token, logit in zip(top_ids, top_logits, strict=True):
        if logit <= best_score:
            break
        score = logit + lowered.get(token, 0.0)
        if score > best_score and (state is None or state.permits(token)):
            best, best_score = token, score
    return best if best is not None and best_score >= top_logits[-1] else None


def _adjusted(
    row: torch.Tensor,
    state: Constraint | None,
    penalty: tuple[NDArray[np.int32], NDArray[np.float32]] | None,
    repetition_penalty: float,
    context: Sequence[int],
) -> NDArray[np.float64]:
    """float64[V]: logits after repetition penalty, mask and soft preferences, in that order."""
    scores = row.detach().to("cpu", torch.float64).numpy().copy()
    if repetition_penalty != 1.0:
        seen = np.unique(np.asarray(context, dtype=np.int64))
        seen = seen[seen < len(scores)]
        scores[seen] = np.where(scores[seen] > 0, scores[seen] / repetition_penalty, scores[seen] * repetition_penalty)
    if state is not None:
        mask = state.allowed()
        if mask is not None:
            allowed = np.zeros(len(scores), dtype=np.bool_)
            count = min(len(scores), len(mask) * 32)
            allowed[:count] = bitmask_to_bool(mask, count)
            scores[~allowed] = -np.inf
    if penalty is not None:
        scores[penalty[0]] += penalty[1]
    return scores


def distribution(scores: NDArray[np.float64], sampling: Sampling) -> NDArray[np.float64] | None:
    """float64[V]: probabilities of adjusted logits at `sampling.temperature` > 0 after top-k, top-p and min-p;
    None where every score is -inf."""
    highest = scores.max()
    if highest == -np.inf:
        return None
    probabilities = np.exp((scores - highest) / sampling.temperature)
    probabilities /= probabilities.sum()
    if sampling.top_k or sampling.top_p < 1.0:
        order = np.argsort(-probabilities, kind="stable")
        keep = len(order) if not sampling.top_k else min(sampling.top_k, len(order))
        if sampling.top_p < 1.0:
            mass = np.cumsum(probabilities[order])
            keep = min(keep, int(np.searchsorted(mass, sampling.top_p * mass[keep - 1])) + 1)
        probabilities[order[keep:]] = 0.0
    if sampling.min_p:
        probabilities[probabilities < sampling.min_p * probabilities.max()] = 0.0
    normalised: NDArray[np.float64] = probabilities / probabilities.sum()
    return normalised
