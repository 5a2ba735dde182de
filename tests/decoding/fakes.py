"""Fakes for the engine's tests: a tiny model with random weights, toy constraints, good and bad drafters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from transformers import Qwen2Config

from decoding.draft_tree import DraftTree
from decoding.drafters.drafter import Observation
from decoding.models.target import TreeLogits
from decoding.models.transformers_model import TransformersModel
from grammars.constraint import Bitmask, bitmask_of

VOCAB = 48
END = 0


@cache
def tiny_model(seed: int = 0) -> TransformersModel:
    """Two layers, 48 tokens, float64: its logits do not depend on how many rows a pass has."""
    config = Qwen2Config(
        vocab_size=VOCAB,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        tie_word_embeddings=False,
        initializer_range=0.5,
        attn_implementation="eager",
    )
    return TransformersModel.from_config(config, seed=seed, dtype=torch.float64)


def no_logits(rows: int) -> TreeLogits:
    """A pass of which nothing is known."""
    nothing = torch.full((rows, 2), -torch.inf)
    return TreeLogits(nothing, torch.zeros((rows, 2), dtype=torch.int32), nothing)


@dataclass(frozen=True)
class ParityConstraint:
    """After an odd token only tokens below `limit`, after an even one only those from `low` on; may end when even."""

    last: int
    low: int = 10
    limit: int = 30

    def permits(self, token: int) -> bool:
        if token == END:
            return self.last % 2 == 0
        return token < self.limit if self.last % 2 else token >= self.low

    def advance(self, token: int) -> ParityConstraint | None:
        return ParityConstraint(token, self.low, self.limit) if self.permits(token) and token != END else None

    def validate(self, tokens: Sequence[int]) -> int:
        state: ParityConstraint | None = self
        for count, token in enumerate(tokens):
            if state is None or not state.permits(token):
                return count
            state = state.advance(token)
        return len(tokens)

    def allowed(self) -> Bitmask:
        return bitmask_of([token for token in range(VOCAB) if self.permits(token)], VOCAB)

    def penalty(self) -> tuple[np.ndarray, np.ndarray] | None:
        return None

    def penalty_of(self, token: int) -> float:
        return 0.0


@dataclass(frozen=True)
class DislikeConstraint(ParityConstraint):
    """Like ParityConstraint, and dislikes multiples of 3."""

    def advance(self, token: int) -> DislikeConstraint | None:
        return DislikeConstraint(token, self.low, self.limit) if self.permits(token) and token != END else None

    def penalty(self) -> tuple[np.ndarray, np.ndarray]:
        ids = np.arange(0, VOCAB, 3, dtype=np.int32)
        return ids, np.full(len(ids), -1.5, dtype=np.float32)

    def penalty_of(self, token: int) -> float:
        return 0.0 if token % 3 else -1.5


class ScriptedDrafter:
    """Proposes the trees it was given, one a round, whatever the context is."""

    name = "scripted"

    def __init__(self, trees: Sequence[DraftTree]) -> None:
        self.trees = list(trees)
        self.round = 0
        self.seen: list[Observation] = []

    def begin(self, tokens: Sequence[int]) -> None:
        self.round = 0

    def propose(self, tokens: Sequence[int], state: object, budget: int) -> DraftTree:
        if not self.trees:
            return DraftTree.empty()
        tree = self.trees[self.round % len(self.trees)]
        self.round += 1
        return tree

    def observe(self, seen: Observation) -> None:
        self.seen.append(seen)


class OracleDrafter:
    """Knows the answer: proposes the true continuation, with wrong siblings at every step."""

    name = "oracle"

    def __init__(self, answer: Sequence[int], prompt_length: int, depth: int, siblings: int = 0) -> None:
        self.answer, self.prompt_length, self.depth, self.siblings = list(answer), prompt_length, depth, siblings

    def begin(self, tokens: Sequence[int]) -> None:
        return None

    def propose(self, tokens: Sequence[int], state: object, budget: int) -> DraftTree:
        done = len(tokens) - self.prompt_length
        ids: list[int] = []
        parents: list[int] = []
        parent = -1
        for step, token in enumerate(self.answer[done : done + self.depth]):
            for k in range(self.siblings):
                ids.append((token + 1 + k) % VOCAB)
                parents.append(parent)
            ids.append(token)
            parents.append(parent)
            parent = len(ids) - 1
            del step
        return DraftTree.from_lists(ids, parents, [-0.01 * (i + 1) for i in range(len(ids))])

    def observe(self, seen: Observation) -> None:
        return None


class RaisingDrafter:
    """Fails in every way a drafter can."""

    name = "raising"

    def __init__(self, how: str) -> None:
        self.how = how

    def begin(self, tokens: Sequence[int]) -> None:
        if self.how == "begin":
            raise RuntimeError("begin")

    def propose(self, tokens: Sequence[int], state: object, budget: int) -> DraftTree:
        if self.how == "propose":
            raise ValueError("propose")
        if self.how == "rubbish ids":
            return DraftTree.from_lists([VOCAB + 5], [-1], [-1.0])
        if self.how == "rubbish parents":
            return DraftTree(np.array([1], np.int32), np.array([7], np.int32), np.array([-1.0], np.float32))
        if self.how == "twins":
            return DraftTree.from_lists([1, 1], [-1, -1], [-1.0, -1.0])
        if self.how == "nan":
            return DraftTree.from_lists([1], [-1], [float("nan")])
        if self.how == "nothing":
            return None  # type: ignore[return-value]
        return DraftTree.empty()

    def observe(self, seen: Observation) -> None:
        if self.how == "observe":
            raise KeyError("observe")
