"""Second choices: where a text could have gone on otherwise, the likeliest places first.

A model that repairs code copies most of it, and where it is least sure it still takes the likeliest token: sampling
again finds mostly the same text. The second choice at exactly those places gives texts that all differ, in the order
of their probability (the first step of a best-first search over deviations from the greedy text).

Knows the target, a cache and a constraint. Must not know what the text is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from decoding.draft_tree import DraftTree
from decoding.models.target import KVCache, TargetModel
from grammars.constraint import Constraint

_ROWS = 24
"""Tokens of the text that are scored in one pass."""
_CHOICES = 4
"""Likeliest tokens that are looked at in each place."""


@dataclass(frozen=True, slots=True)
class SecondChoice:
    """`token_id` instead of the text's own token `position`; `log_prob` is that of the token there."""

    position: int
    token_id: int
    log_prob: float


def second_choices(
    target: TargetModel, cache: KVCache, root: int, text: Sequence[int], constraint: Constraint | None
) -> list[SecondChoice]:
    """What could have stood in place of each token of `text`, the likeliest first.

    Args:
        target: the model; a pass for every few tokens.
        cache: holds everything before `root`, the last token before the text; holds the text afterwards.
        root: see there.
        text: token ids.
        constraint: the state before the text: what it does not permit is left out, and all that comes behind it.
    """
    found: list[SecondChoice] = []
    state = constraint
    for begin in range(0, len(text), _ROWS):
        chunk = list(text[begin : begin + _ROWS])
        drafted = chunk[:-1]
        tree = DraftTree.from_lists(drafted, list(range(-1, len(drafted) - 1)), [0.0] * len(drafted))
        scored = target.forward_tree(root, tree, cache)
        log_probs = torch.log_softmax(scored.logits[: len(chunk)].float(), dim=-1)
        likeliest = log_probs.topk(_CHOICES, dim=-1)
        for row, token in enumerate(chunk):
            pairs = zip(likeliest.indices[row].tolist(), likeliest.values[row].tolist(), strict=True)
            found += [
                SecondChoice(begin + row, other, log_prob)
                for other, log_prob in pairs
                if other != token and (constraint is None or (state is not None and state.permits(other)))
            ]
            state = state.advance(token) if state is not None else None
        cache.keep(range(len(chunk)))
        root = chunk[-1]
    return sorted(found, key=lambda choice: -choice.log_prob)
