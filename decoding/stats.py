"""Statistics of one generation, from its rounds.

Knows rounds. Must not know text.
"""

from __future__ import annotations

from dataclasses import dataclass

from decoding.engine import Round
from decoding.messages import Stats


@dataclass(slots=True)
class Tally:
    """Sums over the rounds of one request.

    Attributes:
        prompt_tokens, reused_tokens: length of the prompt and how much of it was in a cache already.
        prefill_ms, scope_ms, open_ms: time before the first round; scope index and constraint opening are apart.
        steps: target passes.
        drafted, accepted: nodes verified and nodes on accepted paths.
        emitted: tokens of all rounds, before the text was cut where it was over.
        decode_ms, prune_ms: wall time of the rounds; the part of it spent in the constraint and the walk.
    """

    prompt_tokens: int = 0
    reused_tokens: int = 0
    prefill_ms: float = 0.0
    scope_ms: float = 0.0
    steps: int = 0
    drafted: int = 0
    accepted: int = 0
    emitted: int = 0
    decode_ms: float = 0.0
    prune_ms: float = 0.0

    def add(self, round_: Round) -> None:
        """Count one round."""
        self.steps += 1
        self.drafted += len(round_.pruned.tree)
        self.accepted += len(round_.verdict.path) - 1
        self.emitted += len(round_.token_ids)
        self.decode_ms += round_.ms.total
        self.prune_ms += round_.ms.prune + round_.ms.verify

    def result(self, tokens: int, constraint_off_reason: str | None) -> Stats:
        """The statistics of a text of `tokens` tokens."""
        return Stats(
            prompt_tokens=self.prompt_tokens,
            reused_tokens=self.reused_tokens,
            prefill_ms=round(self.prefill_ms, 3),
            steps=self.steps,
            drafted=self.drafted,
            accepted=self.accepted,
            tokens=tokens,
            mean_accepted=round(self.emitted / self.steps, 4) if self.steps else 0.0,
            decode_ms=round(self.decode_ms, 3),
            tokens_per_second=round(1e3 * self.emitted / self.decode_ms, 2) if self.decode_ms else 0.0,
            mask_ms=round(self.prune_ms, 3),
            scope_ms=round(self.scope_ms, 3),
            constraint_off_reason=constraint_off_reason,
        )
