"""The loop: propose, prune, verify, keep.

Knows a target, drafters, a constraint and a budget, all by protocol. Must not know text, prompts, files, editors
or which runtime is behind the target. Lossless: whatever the drafters propose, the token ids are those of the
same call with no drafters at all.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from decoding.budget import Budget
from decoding.draft_tree import DraftTree, Pruned, first_nodes, merge, prune
from decoding.drafters.drafter import Drafter, Observation
from decoding.models.target import KVCache, TargetModel
from decoding.sampling import Sampling
from decoding.verify import Verdict, verify
from grammars.constraint import Constraint


class Stopwatch:
    """Milliseconds since the last lap."""

    def __init__(self) -> None:
        self._last = time.perf_counter()

    def lap_ms(self) -> float:
        """The time since the last call, or since the start."""
        now = time.perf_counter()
        lap, self._last = 1e3 * (now - self._last), now
        return lap


@dataclass(frozen=True, slots=True)
class StageTimes:
    """Milliseconds of the stages of one round. `forward` is the target's own time; `propose` holds what a draft
    model takes; `observe` is what drafters learn from the pass."""

    propose: float
    prune: float
    forward: float
    verify: float
    observe: float

    @property
    def total(self) -> float:
        """The whole round."""
        return self.propose + self.prune + self.forward + self.verify + self.observe


@dataclass(frozen=True, slots=True)
class Round:
    """One pass of the loop, as the caller and the traces see it.

    Attributes:
        token_ids: what the pass emitted; the last one is the bonus. Empty only in a last round in which the
            constraint allowed nothing.
        proposed: the drafters' proposals, merged.
        pruned: the tree that was verified and what the constraint refused.
        verdict: the accepted path and the constraint's new state.
        ms: how long the stages took.
    """

    token_ids: tuple[int, ...]
    proposed: DraftTree
    pruned: Pruned
    verdict: Verdict
    ms: StageTimes


@dataclass(slots=True)
class Guide:
    """The constraints of one generation.

    Attributes:
        masks: renormalises the target at every node and at the bonus; None allows everything.
        prunes: cuts drafts before the target sees them. The same state as `masks` where the constraint is enforced;
            in the mode `draft` it knows more than `masks`, which then holds token healing only.
        otherwise: what masks once `masks` allows nothing at all; None stops the text there.
        off_reason: why a constraint was dropped on the way, None while it holds.
    """

    masks: Constraint | None = None
    prunes: Constraint | None = None
    otherwise: Constraint | None = None
    off_reason: str | None = None

    @classmethod
    def enforcing(cls, state: Constraint | None, otherwise: Constraint | None = None) -> Guide:
        """One constraint for both."""
        return cls(state, state, otherwise)

    def follow(self, verdict: Verdict) -> None:
        """Move on over the tokens of a verdict."""
        together = self.prunes is self.masks
        self.masks, self.otherwise = verdict.state, verdict.otherwise
        if verdict.dropped:
            self.off_reason = "nothing was allowed at some point of the text"
        if together or verdict.dropped:
            self.prunes = self.masks
            return
        for token in verdict.token_ids[: -1 if verdict.ended else None]:
            self.prunes = self.prunes.advance(token) if self.prunes is not None else None
            if self.prunes is None:
                self.off_reason = "the model left the constraint, which prunes drafts only"
                self.prunes = self.masks
                return


def generate(
    target: TargetModel,
    cache: KVCache,
    tokens: list[int],
    drafters: Sequence[Drafter],
    guide: Guide,
    sampling: Sampling,
    budget: Budget,
    end_token_ids: frozenset[int],
) -> Iterator[Round]:
    """Rounds of guided speculative decoding, until the text ends, the constraint allows nothing or the cache is full.

    `tokens` is the prompt, whose last token is the first root: the cache must hold everything before it. Emitted
    tokens are appended to it. The caller may stop at any round: the cache then holds `tokens[:-1]`.
    """
    for drafter in drafters:
        drafter.begin(tokens)
    while len(cache.token_ids) + 1 <= cache.capacity:
        clock = Stopwatch()
        room = min(budget.most_nodes(len(tokens)), cache.capacity - len(cache.token_ids) - 1)
        proposals = [drafter.propose(tokens, guide.prunes, room) for drafter in drafters] if room else []
        proposed = merge(proposals)
        propose_ms = clock.lap_ms()
        pruned = prune(proposed, guide.prunes, room, end_token_ids)
        tree = first_nodes(pruned.tree, budget.best_size(pruned.tree, len(tokens)))
        prune_ms = clock.lap_ms()
        scored = target.forward_tree(tokens[-1], tree, cache)
        forward_ms = clock.lap_ms()
        verdict = verify(tree, scored, guide.masks, sampling, tokens, end_token_ids, guide.otherwise)
        cache.keep(verdict.path[: len(verdict.token_ids)])
        guide.follow(verdict)
        verify_ms = clock.lap_ms()
        seen = Observation(tokens[-1], tokens[-2] if len(tokens) > 1 else -1, tree, scored, verdict)
        for drafter in drafters:
            drafter.observe(seen)
        tokens.extend(verdict.token_ids)
        observe_ms = clock.lap_ms()
        budget.observe(tree, verdict, len(tokens), forward_ms, propose_ms + prune_ms + observe_ms)
        times = StageTimes(propose_ms, prune_ms, forward_ms, verify_ms, observe_ms)
        yield Round(verdict.token_ids, proposed, Pruned(tree, pruned.refused), verdict, times)
        if verdict.ended or verdict.exhausted:
            return
