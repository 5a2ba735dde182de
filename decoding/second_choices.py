"""Second choices: whether a text is what greedy decoding would write, and where it could have gone on otherwise.

A model that repairs code copies most of it, and where it is least sure it still takes the likeliest token: sampling
again finds mostly the same text. The second choice at exactly those places gives texts that all differ, in the order
of their probability (the first step of a best-first search over deviations from the greedy text).

Knows the target, a cache and a constraint. Must not know what the text is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    for begin, chunk, logits in _scored(target, cache, root, text):
        log_probs = torch.log_softmax(logits, dim=-1)
        likeliest = log_probs.topk(_CHOICES, dim=-1)
        for row, token in enumerate(chunk):
            pairs = zip(likeliest.indices[row].tolist(), likeliest.values[row].tolist(), strict=True)
            found += [
                SecondChoice(begin + row, other, log_prob)
                for other, log_prob in pairs
                if other != token and (constraint is None or (state is not None and state.permits(other)))
            ]
            state = state.advance(token) if state is not None else None
    return sorted(found, key=lambda choice: -choice.log_prob)


def is_greedy(
    target: TargetModel, cache: KVCache, root: int, text: Sequence[int], constraint: Constraint | None
) -> bool:
    """Whether the model, always taking the likeliest token, would write `text`. Known much sooner than it is written.

    Where a constraint would forbid the likeliest token, the likeliest of the permitted ones counts among the first
    few. The arguments are those of `second_choices`; a pass for every few tokens, up to the first that differs.
    """
    state = constraint
    for _, chunk, logits in _scored(target, cache, root, text):
        for token, likeliest in zip(chunk, logits.topk(_CHOICES, dim=-1).indices.tolist(), strict=True):
            permitted = (each for each in likeliest if state is None or state.permits(each))
            if next(permitted, None) != token:
                return False
            state = state.advance(token) if state is not None else None
    return True


def _scored(
    target: TargetModel, cache: KVCache, root: int, text: Sequence[int]
) -> Iterator[tuple[int, list[int], torch.Tensor]]:
    """(begin, tokens, float32 logits [n, V] of the rows before them) of every few tokens of `text`."""
    for begin in range(0, len(text), _ROWS):
        chunk = list(text[begin : begin + _ROWS])
        drafted = chunk[:-1]
        tree = DraftTree.from_lists(drafted, list(range(-1, len(drafted) - 1)), [0.0] * len(drafted))
        scored = target.forward_tree(root, tree, cache)
        yield begin, chunk, scored.logits[: len(chunk)].float()
        cache.keep(range(len(chunk)))
        root = chunk[-1]
