"""Which model can draft for which: their ordinary tokens must be the same.

Knows vocabularies. Must not know models: padded vocabularies differ within a family (Qwen2.5 has 151,936 and 152,064
rows), so sizes say nothing.
"""

from __future__ import annotations

from decoding.errors import TokenizerMismatch
from decoding.models.registry import REGISTRY
from grammars.vocabulary import Vocabulary

_MOST_MISSING = 512
"""Ordinary tokens that only one of the two may have: families add a few marks as ordinary text."""


def check_pair(target: Vocabulary, draft: Vocabulary, target_name: str, draft_name: str) -> frozenset[int]:
    """The ids that must never be drafted: those that are not ordinary text in both.

    Marks may differ (DeepSeek-R1-Distill-Qwen redefines those of Qwen2.5), text may not.

    Raises:
        TokenizerMismatch: where an id is different text in the two, or where many ids are text in one only; names
            pairs that work.
    """
    never: set[int] = set()
    missing = 0
    for token in range(max(target.size, draft.size)):
        ours = target.tokens[token] if token < target.size else b""
        theirs = draft.tokens[token] if token < draft.size else b""
        if ours and theirs and ours != theirs:
            raise TokenizerMismatch(
                _refusal(target_name, draft_name, f"id {token} is {ours!r} in one, {theirs!r} in the other")
            )
        if not (ours and theirs):
            never.add(token)
            missing += bool(ours or theirs)
    if missing > _MOST_MISSING:
        raise TokenizerMismatch(_refusal(target_name, draft_name, f"{missing} tokens exist in one of them only"))
    return frozenset(never)


def _refusal(target: str, draft: str, why: str) -> str:
    pairs = [f"{entry.name} with {entry.draft_model}" for entry in REGISTRY.values() if entry.draft_model]
    return f"{draft} cannot draft for {target}: {why}; pairs that work: {', '.join(pairs)}"
