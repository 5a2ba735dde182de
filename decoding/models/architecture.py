"""Architecture: the numbers that shape a LLaMA or Qwen2 decoder, read from `config.json`.

Knows the published configuration fields. Must not know weights, kernels or threads.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

GROUP = 64
"""Inner dimensions are quantised in groups of this many values."""


class Unsupported(ValueError):
    """The native runtime has no kernels for this model; the message says what it lacks."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """Sizes of a decoder; see the LLaMA paper (arXiv 2302.13971) and Qwen2.5 report (arXiv 2412.15115)."""

    vocab_size: int
    hidden_size: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    feed_size: int
    norm_eps: float
    max_context: int
    tied: bool
    rotary: tuple[float, ...]

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Architecture:
        """Read a hub configuration. Raises Unsupported with the first thing that the kernels lack."""
        kind = config.get("model_type")
        if kind not in {"llama", "qwen2"}:
            raise Unsupported(f"{kind} models are not known to it, only llama and qwen2")
        heads = int(config["num_attention_heads"])
        hidden = int(config["hidden_size"])
        head_dim = int(config.get("head_dim") or hidden // heads)
        result = cls(
            vocab_size=int(config["vocab_size"]),
            hidden_size=hidden,
            layers=int(config["num_hidden_layers"]),
            heads=heads,
            kv_heads=int(config.get("num_key_value_heads") or heads),
            head_dim=head_dim,
            feed_size=int(config["intermediate_size"]),
            norm_eps=float(config["rms_norm_eps"]),
            max_context=int(config.get("max_position_embeddings", 2048)),
            tied=bool(config.get("tie_word_embeddings", False)),
            rotary=tuple(_rotary_frequencies(config, head_dim).tolist()),
        )
        result._check(config)
        return result

    def _check(self, config: Mapping[str, Any]) -> None:
        if config.get("hidden_act", "silu") != "silu":
            raise Unsupported(f"its activation is {config['hidden_act']}, not silu")
        if config.get("mlp_bias"):
            raise Unsupported("its feed-forward layers have biases")
        if config.get("use_sliding_window"):
            raise Unsupported("it uses sliding-window attention")
        if config.get("quantization_config"):
            raise Unsupported("its weights are stored in a quantised format")
        if self.heads % self.kv_heads:
            raise Unsupported(f"{self.heads} heads do not share {self.kv_heads} key-value heads evenly")
        for name, size in (("hidden", self.hidden_size), ("feed-forward", self.feed_size), ("head", self.head_dim)):
            if size % GROUP:
                raise Unsupported(f"its {name} size {size} is not a multiple of {GROUP}")

    @property
    def padded_vocab(self) -> int:
        """Rows of the embedding and the head: whole tiles of 16."""
        return (self.vocab_size + 15) // 16 * 16

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes of keys and values of one token: halves, all layers."""
        return self.layers * 2 * self.kv_heads * self.head_dim * 2

    @property
    def linear_weights(self) -> int:
        """Weights of all linear layers and the head: what one token has to stream, in int8 bytes."""
        attention = self.hidden_size * self.head_dim * 2 * (self.heads + self.kv_heads)
        return self.layers * (attention + 3 * self.hidden_size * self.feed_size) + self.hidden_size * self.padded_vocab


def _rotary_frequencies(config: Mapping[str, Any], head_dim: int) -> NDArray[np.float32]:
    """float32[head_dim / 2]: radians per position of each rotary pair (RoFormer, arXiv 2104.09864)."""
    parameters: Mapping[str, Any] = config.get("rope_parameters") or config.get("rope_scaling") or {}
    theta = float(parameters.get("rope_theta") or config.get("rope_theta") or 10000.0)
    frequencies = (theta ** (-np.arange(0, head_dim, 2, dtype=np.float64) / head_dim)).astype(np.float32)
    kind = parameters.get("rope_type", parameters.get("type", "default"))
    if kind == "default":
        return frequencies
    if kind == "linear":
        return (frequencies / float(parameters["factor"])).astype(np.float32)
    if kind == "llama3":
        return _llama3_frequencies(frequencies, parameters)
    raise Unsupported(f"its rotary positions are scaled by {kind}")


def _llama3_frequencies(frequencies: NDArray[np.float32], parameters: Mapping[str, Any]) -> NDArray[np.float32]:
    """Long wavelengths are divided by `factor`, short ones kept, those between blended (Llama 3.1)."""
    factor, low = float(parameters["factor"]), float(parameters["low_freq_factor"])
    high, context = float(parameters["high_freq_factor"]), float(parameters["original_max_position_embeddings"])
    turns = context * frequencies / (2 * math.pi)
    kept = np.clip((turns - low) / (high - low), 0.0, 1.0)
    scaled: NDArray[np.float32] = (frequencies * (kept + (1 - kept) / factor)).astype(np.float32)
    return scaled
