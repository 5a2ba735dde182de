"""SpeculativeReasoningEngine: guided speculative decoding for programs, without an editor.

Knows the assistant and hands its parts on; adds no loop of its own. Must not know files, editors or commands.

    from decoding import SpeculativeReasoningEngine

    engine = SpeculativeReasoningEngine(None, "qwen2.5-coder-0.5b")
    print(engine.verify_and_generate("def fibonacci(n):\\n", max_new_tokens=64))
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from pydantic import ValidationError

from decoding.assistant import Assistant
from decoding.draft_tree import DraftTree, merge, prune
from decoding.errors import BadInput
from decoding.messages import Answer, Chunk, EngineOptions
from decoding.steering import Steering
from grammars.constraint import Constraint
from grammars.vocabulary import Vocabulary

Messages = Sequence[dict[str, str]]

_NODES_PER_LEVEL = 8


class SpeculativeReasoningEngine:
    """A target model with its drafters, ready to generate.

    Whatever drafts, the text is the one that the target alone would have written with the same seed.
    """

    def __init__(self, draft_model_id: str | None, target_model_id: str, device: str = "auto", **settings: Any) -> None:
        """Provision and load the models.

        Args:
            draft_model_id: a smaller model with the target's tokenizer, named like the target; None drafts from the
                text itself (lookup and recycling), which costs no second model.
            target_model_id: a registry name, a hub id or a local folder.
            device: "auto", "cpu", "cuda" or "mps".
            settings: further fields of `decoding.messages.EngineOptions`, as `dtype`, `threads`, `context_tokens`,
                `drafter` or `tree_nodes`.

        Raises UnknownModel, TokenizerMismatch or another ModelError; BadInput for a setting out of its range.
        """
        self.options = _options(
            EngineOptions(), model=target_model_id, draft_model=draft_model_id, device=device, **settings
        )
        self.assistant = Assistant(self.options)

    @property
    def vocabulary(self) -> Vocabulary:
        """Token id -> bytes: what constraints are made with."""
        return self.assistant.model.vocabulary

    def encode(self, text: str) -> list[int]:
        """Token ids of `text`; text that looks like a special token is ordinary text."""
        return self.assistant.model.encode(text)

    def decode(self, token_ids: Sequence[int]) -> str:
        """The text of token ids; special tokens have none, half characters become U+FFFD."""
        return self.vocabulary.decode(token_ids).decode("utf-8", "replace")

    def draft_token_tree(
        self, input_ids: Sequence[int] | torch.Tensor, depth: int, constraint: Constraint | None = None
    ) -> DraftTree:
        """What the drafters propose after `input_ids`, before the target has seen it.

        Args:
            input_ids: int[n] or int[1, n], at least one token; the last one is the tree's root.
            depth: the longest path, in tokens.
            constraint: branches that it forbids are cut, and their place goes to the next best ones.

        Returns:
            A tree of nodes with their joint log probabilities, at most 8 for every level, most probable first.
        """
        ids = _as_list(input_ids)
        drafters = self.assistant.writer.drafters(self.options)
        for drafter in drafters:
            drafter.begin(ids)
        most = _NODES_PER_LEVEL * max(0, depth)
        merged = merge([drafter.propose(ids, constraint, most) for drafter in drafters] if most else [])
        pruned = prune(merged, constraint, most, self.vocabulary.end)
        return _not_deeper(pruned.tree, depth)

    def verify_and_generate(self, prompt: str, max_new_tokens: int) -> str:
        """The greedy continuation of `prompt`, without the prompt, of at most `max_new_tokens` tokens."""
        return self.generate(prompt, max_new_tokens=max_new_tokens).text

    def generate(
        self,
        prompt: str | Messages,
        *,
        max_new_tokens: int = 256,
        constraint: Constraint | None = None,
        temperature: float = 0.0,
        seed: int = 0,
        **sampling: Any,
    ) -> Answer:
        """The whole continuation with its token ids, stop reason and statistics; see `stream` for the arguments."""
        stream = self.stream(
            prompt,
            max_new_tokens=max_new_tokens,
            constraint=constraint,
            temperature=temperature,
            seed=seed,
            **sampling,
        )
        for _ in stream:
            pass
        return stream.answer

    def stream(
        self,
        prompt: str | Messages,
        *,
        max_new_tokens: int = 256,
        constraint: Constraint | None = None,
        temperature: float = 0.0,
        seed: int = 0,
        **sampling: Any,
    ) -> Stream:
        """Generate piece by piece: iterate for texts; afterwards `.answer` has the whole.

        Args:
            prompt: text to continue, or messages ({"role", "content"}) for the model's chat template.
            max_new_tokens: the most tokens to generate.
            constraint: what may be said (see `grammars.constraint.Constraint`), made with `vocabulary`.
            temperature: 0 is greedy.
            seed: same seed, same text, whatever drafts.
            sampling: `top_p`, `top_k`, `min_p`, `repetition_penalty`, `drafter` or `tree_nodes`.

        Leaving the iteration early stops the engine at once. One stream runs at a time. Raises BadInput.
        """
        options = _options(self.options, max_tokens=max_new_tokens, temperature=temperature, seed=seed, **sampling)
        return Stream(self.assistant.stream(prompt, options, _never, steering=Steering(constraint=constraint)))


class Stream:
    """The pieces of one generation, each the text that one pass of the target added."""

    def __init__(self, chunks: Generator[Chunk, None, Answer]) -> None:
        self._chunks = chunks
        self._answer: Answer | None = None

    def __iter__(self) -> Iterator[str]:
        while self._answer is None:
            try:
                chunk = next(self._chunks)
            except StopIteration as end:
                self._answer = end.value
                return
            if chunk.text:
                yield chunk.text

    @property
    def answer(self) -> Answer:
        """Text, token ids, stop reason and statistics. Raises BadInput before the last piece was taken."""
        if self._answer is None:
            raise BadInput("the answer is complete once the stream has been read to its end")
        return self._answer


def _never() -> bool:
    return False


def _options(base: EngineOptions, **changes: Any) -> EngineOptions:
    """`base` with changes, checked. Raises BadInput, in one line."""
    try:
        return EngineOptions.model_validate({**base.model_dump(), **changes})
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        raise BadInput(f"{name} = {first['input']!r}: {first['msg'][0].lower()}{first['msg'][1:]}") from error


def _as_list(input_ids: Sequence[int] | torch.Tensor) -> list[int]:
    """The ids of one text. Raises BadInput for a batch and for no token at all."""
    ids = torch.as_tensor(input_ids, dtype=torch.int64)
    if ids.ndim == 2 and ids.shape[0] == 1:
        ids = ids[0]
    if ids.ndim != 1 or not len(ids):
        raise BadInput(f"input_ids must be int[n] or int[1, n] with n > 0, not of shape {tuple(ids.shape)}")
    return [int(token) for token in ids.tolist()]


def _not_deeper(tree: DraftTree, depth: int) -> DraftTree:
    """The nodes of `tree` down to `depth`."""
    kept = np.flatnonzero(tree.depths() <= depth)
    index = np.full(len(tree) + 1, -1, dtype=np.int32)  # its last entry stands for the root, whose number is -1
    index[kept] = np.arange(len(kept), dtype=np.int32)
    return DraftTree(
        tree.token_ids[kept],
        index[tree.parents[kept]],
        tree.log_probs[kept],
        tuple(tree.sources[node] for node in kept) if tree.sources else (),
    )
