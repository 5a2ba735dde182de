"""Memory: what a model will take before it is loaded, and what to give up where that does not fit.

Knows sizes. Must not load anything. All figures are bytes of the worker process.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import psutil

from decoding.errors import OutOfMemory
from decoding.models.architecture import GROUP, Architecture

Runtime = Literal["native", "bfloat16", "float32"]

PROCESS_BYTES = 300 << 20
"""Python, torch and the other libraries: 221 MB measured on Linux before a model is loaded, and room for requests."""
MARGIN_BYTES = 256 << 20
"""Left to the rest of the machine: an editor that has to swap costs more than a shorter context."""
MIN_CONTEXT = 512
"""Shorter prompts than this make poor completions: a draft model is given up first."""

_TREE_ROWS, _PREFILL_ROWS = 64, 256


@dataclass(frozen=True, slots=True)
class Need:
    """What one model takes.

    Attributes:
        weights: in the runtime's number format.
        cache: keys and values of a full context.
        buffers: activations and logits of the largest pass.
    """

    weights: int
    cache: int
    buffers: int

    @property
    def total(self) -> int:
        """All of it."""
        return self.weights + self.cache + self.buffers


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """What will be loaded and what it takes.

    Attributes:
        target: the model whose output the user gets.
        draft: its draft model, None without one.
        context_tokens: prompt and answer together, perhaps less than was asked for.
        free: bytes that were free when the plan was made.
        given_up: what was asked for and does not fit, in words; empty where everything fits.
    """

    target: Need
    draft: Need | None
    context_tokens: int
    free: int
    given_up: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """The whole worker process at its largest."""
        return PROCESS_BYTES + self.target.total + (self.draft.total if self.draft else 0)

    @property
    def fits(self) -> bool:
        """Whether the margin stays free."""
        return self.total + MARGIN_BYTES <= self.free

    def __str__(self) -> str:
        parts = [f"target {gigabytes(self.target.weights)}"]
        if self.draft:
            parts.append(f"draft model {gigabytes(self.draft.weights)}")
        cache = self.target.cache + (self.draft.cache if self.draft else 0)
        buffers = PROCESS_BYTES + self.target.buffers + (self.draft.buffers if self.draft else 0)
        parts += [f"{self.context_tokens} tokens of context {gigabytes(cache)}", f"the rest {gigabytes(buffers)}"]
        return f"{' + '.join(parts)} = {gigabytes(self.total)} of {gigabytes(self.free)} free"


def need_of(arch: Architecture, context_tokens: int, runtime: Runtime = "native") -> Need:
    """Estimate one model. Native: int8 weights and scales, keys and values as halves; else 2 or 4 bytes a value."""
    embedding = 0 if arch.tied else arch.padded_vocab * arch.hidden_size
    count = arch.linear_weights + embedding
    if runtime == "native":
        by_group = embedding + arch.layers * arch.hidden_size * arch.feed_size  # the down projections
        scales = 4 * (count // arch.hidden_size + by_group // GROUP)
        weights, cache = count + scales, arch.kv_bytes_per_token * context_tokens
    else:
        width = 2 if runtime == "bfloat16" else 4
        weights, cache = count * width, arch.kv_bytes_per_token * context_tokens * width // 2
    per_row = 4 * (arch.hidden_size + (arch.heads + 2 * arch.kv_heads) * arch.head_dim) + 2 * arch.feed_size
    return Need(weights, cache, 4 * _TREE_ROWS * arch.padded_vocab + _PREFILL_ROWS * per_row)


def plan_memory(
    target: Architecture,
    context_tokens: int,
    *,
    draft: Architecture | None = None,
    runtime: Runtime = "native",
    free: int | None = None,
) -> MemoryPlan:
    """Fit models and context into free memory.

    What does not fit is given up in this order: context down to half of what was asked for, the draft model, then
    context down to 512 tokens. Raises OutOfMemory, with the numbers, where even that does not fit.
    """
    available = free_memory() if free is None else free
    full = MemoryPlan(
        need_of(target, context_tokens, runtime),
        need_of(draft, context_tokens, runtime) if draft else None,
        context_tokens,
        available,
    )
    attempts = [full, _shortened(full, max(MIN_CONTEXT, context_tokens // 2))]
    if draft:
        alone = replace(full, draft=None, given_up=("the draft model",))
        attempts += [alone, _shortened(alone, MIN_CONTEXT)]
    attempts.append(_shortened(attempts[-1], MIN_CONTEXT))
    for attempt in attempts:
        if attempt.fits:
            return attempt
    raise OutOfMemory(
        f"the model does not fit: {attempts[-1]}, and {gigabytes(MARGIN_BYTES)} should stay free; "
        "close other programs or choose a smaller model"
    )


def _shortened(plan: MemoryPlan, least: int) -> MemoryPlan:
    """The plan with as much context as fits, `least` tokens at the least; itself where it fits."""
    if plan.fits or plan.context_tokens <= least:
        return plan
    per_token = (plan.target.cache + (plan.draft.cache if plan.draft else 0)) // plan.context_tokens
    missing = plan.total + MARGIN_BYTES - plan.free
    tokens = max(least, plan.context_tokens - -(-missing // per_token))

    def cut(need: Need) -> Need:
        return replace(need, cache=need.cache // plan.context_tokens * tokens)

    return replace(
        plan,
        target=cut(plan.target),
        draft=cut(plan.draft) if plan.draft else None,
        context_tokens=tokens,
        given_up=(*plan.given_up, f"{plan.context_tokens - tokens} tokens of context"),
    )


def free_memory(cgroup: Path = Path("/sys/fs/cgroup")) -> int:
    """Bytes that can be taken without swapping: of the machine, or of the container where that has less."""
    free = int(psutil.virtual_memory().available)
    try:
        limit = (cgroup / "memory.max").read_text().strip()
        used = int((cgroup / "memory.current").read_text())
    except OSError:
        return free
    return free if limit == "max" else min(free, max(0, int(limit) - used))


def gigabytes(size: int) -> str:
    """For people: 1.2 GB (10^9 bytes)."""
    return f"{size / 1e9:.1f} GB"
