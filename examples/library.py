"""Speculative generation from a program: look at the draft tree, generate, stream with a constraint.

    python examples/library.py [MODEL [DRAFT_MODEL]]

MODEL is a registry name (`draftwood models list`), a hub id or a folder.
"""

from __future__ import annotations

import sys

from decoding import SpeculativeReasoningEngine

PROMPT = "def area(width, height):\n    return width * height\n\n\ndef volume(width, height"


def main(target: str = "qwen2.5-coder-0.5b", draft: str | None = None) -> None:
    """Show the parts of the engine one after the other."""
    engine = SpeculativeReasoningEngine(draft, target)

    # What is proposed before the target has seen it: token, the text it stands for, joint probability.
    tree = engine.draft_token_tree(engine.encode(PROMPT), depth=4)
    print(f"{len(tree)} drafted tokens, for example:")
    for token, depth, log_prob in list(zip(tree.token_ids, tree.depths(), tree.log_probs, strict=True))[:5]:
        print(f"  depth {depth}: {engine.decode([int(token)])!r} (log p {log_prob:.2f})")

    # The continuation. Drafts make it fast; they cannot change it.
    print(engine.verify_and_generate(PROMPT, max_new_tokens=24))

    # Piece by piece, sampled with a seed; afterwards the statistics.
    stream = engine.stream(PROMPT, max_new_tokens=24, temperature=0.7, seed=1)
    for text in stream:
        print(text, end="", flush=True)
    stats = stream.answer.stats
    print(f"\n{stats.tokens} tokens in {stats.steps} passes, {stats.tokens_per_second:.0f} tokens/s")


if __name__ == "__main__":
    main(*sys.argv[1:])
