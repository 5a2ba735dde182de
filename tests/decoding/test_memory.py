"""Memory plans: what fits is kept, what does not is given up in order, and refusals carry the numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decoding.errors import OutOfMemory
from decoding.memory import MARGIN_BYTES, MIN_CONTEXT, PROCESS_BYTES, free_memory, need_of, plan_memory
from decoding.models.architecture import Architecture

QWEN_05B: dict[str, Any] = {
    "model_type": "qwen2",
    "vocab_size": 151936,
    "hidden_size": 896,
    "num_hidden_layers": 24,
    "num_attention_heads": 14,
    "num_key_value_heads": 2,
    "intermediate_size": 4864,
    "rms_norm_eps": 1e-6,
}
SMALL = Architecture.from_config(QWEN_05B)
LARGE = Architecture.from_config(
    QWEN_05B | {"hidden_size": 1536, "num_hidden_layers": 28, "num_attention_heads": 12, "intermediate_size": 8960}
)


def test_the_published_sizes() -> None:
    need = need_of(SMALL, 2048)
    assert 0.63e9 < need.weights < 0.66e9  # 494 MB that are streamed, 136 MB of embedding, scales
    assert need.cache == 2048 * 24 * 2 * 128 * 2
    assert need_of(SMALL, 2048, "bfloat16").weights == pytest.approx(2 * need.weights, rel=0.03)


def test_everything_fits_into_plenty() -> None:
    plan = plan_memory(LARGE, 8192, draft=SMALL, free=64 << 30)
    assert (plan.context_tokens, plan.given_up) == (8192, ())
    assert plan.draft is not None


def test_context_is_shortened_before_the_draft_model_goes() -> None:
    whole = plan_memory(LARGE, 32768, draft=SMALL, free=64 << 30).total
    plan = plan_memory(LARGE, 32768, draft=SMALL, free=whole + MARGIN_BYTES - (100 << 20))
    assert plan.draft is not None
    assert 16384 <= plan.context_tokens < 32768
    assert "context" in plan.given_up[0]


def test_the_draft_model_goes_before_the_context_becomes_poor() -> None:
    alone = plan_memory(LARGE, 4096, free=64 << 30).total
    plan = plan_memory(LARGE, 4096, draft=SMALL, free=alone + MARGIN_BYTES + (50 << 20))
    assert plan.draft is None
    assert plan.context_tokens == 4096
    assert plan.given_up == ("the draft model",)


def test_a_refusal_carries_the_numbers() -> None:
    with pytest.raises(OutOfMemory, match=r"1\.0 GB free.*smaller model") as caught:
        plan_memory(LARGE, 2048, free=10**9)
    assert "\n" not in str(caught.value)


@given(st.integers(0, 12 << 30), st.integers(512, 32768), st.booleans())
def test_a_plan_always_leaves_the_margin(free: int, context: int, with_draft: bool) -> None:
    try:
        plan = plan_memory(LARGE, context, draft=SMALL if with_draft else None, free=free)
    except OutOfMemory:
        assert PROCESS_BYTES + need_of(LARGE, MIN_CONTEXT).total + MARGIN_BYTES > free
        return
    assert plan.total + MARGIN_BYTES <= free
    assert MIN_CONTEXT <= plan.context_tokens <= context
    assert (plan.given_up == ()) == (plan.context_tokens == context and (plan.draft is not None) == with_draft)


def test_a_container_with_less_memory_than_the_machine(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text(f"{1 << 30}\n")
    (tmp_path / "memory.current").write_text(f"{1 << 29}\n")
    assert free_memory(tmp_path) == 1 << 29
    (tmp_path / "memory.max").write_text("max\n")
    assert free_memory(tmp_path) > 1 << 29
    assert free_memory(tmp_path / "absent") > 1 << 29
