"""How much memory a model takes, from its configuration alone.

Knows sizes and arithmetic. Must not know torch or any runtime: `doctor` asks before anything is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Runtime = Literal["native", "transformers"]

# Bytes a weight takes: int8 with one float32 scale for each group of 64; bfloat16.
_WEIGHT_BYTES: dict[Runtime, float] = {"native": 1 + 4 / 64, "transformers": 2.0}
_CACHE_BYTES = 2  # keys and values are halves in both
# Python, torch, tokenizer and vocabulary tables of the worker: measured, 0.39 GB with the 0.5B, 0.42 with the 135M.
_PROCESS = 420 << 20


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Bytes that a loaded model takes.

    Attributes:
        weights: all parameters in the runtime's format.
        cache: keys and values of one context.
        process: everything else in the worker.
    """

    weights: int
    cache: int
    process: int = _PROCESS

    @property
    def total(self) -> int:
        """All of it."""
        return self.weights + self.cache + self.process


def parameter_count(config: Mapping[str, Any]) -> int:
    """Parameters of a Llama-like model, from the fields of its config.json; norms and biases are left out."""
    hidden, layers = int(config["hidden_size"]), int(config["num_hidden_layers"])
    queries = int(config["num_attention_heads"]) * _head_size(config)
    keys = _kv_heads(config) * _head_size(config)
    layer = hidden * (2 * queries + 2 * keys) + 3 * hidden * int(config["intermediate_size"])
    tables = 1 if config.get("tie_word_embeddings", False) else 2
    return layers * layer + tables * hidden * int(config["vocab_size"])


def plan_memory(config: Mapping[str, Any], context_tokens: int, runtime: Runtime) -> MemoryPlan:
    """What a model needs with a context of `context_tokens`. Raises KeyError where a needed field is missing."""
    per_token = 2 * int(config["num_hidden_layers"]) * _kv_heads(config) * _head_size(config) * _CACHE_BYTES
    return MemoryPlan(weights=int(parameter_count(config) * _WEIGHT_BYTES[runtime]), cache=per_token * context_tokens)


def _kv_heads(config: Mapping[str, Any]) -> int:
    return int(config.get("num_key_value_heads") or config["num_attention_heads"])


def _head_size(config: Mapping[str, Any]) -> int:
    return int(config.get("head_dim") or int(config["hidden_size"]) // int(config["num_attention_heads"]))
