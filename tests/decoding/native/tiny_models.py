"""Small random LLaMA and Qwen2 folders, and their forward pass in float64: what native results are compared with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

VOCAB = 150

LLAMA = {"model_type": "llama", "num_key_value_heads": 2, "tie_word_embeddings": True, "rms_norm_eps": 1e-5}
QWEN2 = {"model_type": "qwen2", "num_key_value_heads": 1, "tie_word_embeddings": False, "rms_norm_eps": 1e-6}


def make_config(kind: dict[str, Any], **changes: Any) -> dict[str, Any]:
    sizes = {
        "vocab_size": VOCAB,
        "hidden_size": 256,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 320,
        "hidden_act": "silu",
        "max_position_embeddings": 2048,
        "rope_theta": 10000.0,
    }
    return sizes | kind | changes


def make_tensors(config: dict[str, Any], seed: int = 0) -> dict[str, NDArray[np.float32]]:
    random = np.random.default_rng(seed)
    hidden, feed = config["hidden_size"], config["intermediate_size"]
    dim = hidden // config["num_attention_heads"]
    keys = config["num_key_value_heads"] * dim

    def matrix(rows: int, columns: int) -> NDArray[np.float32]:
        return (random.standard_normal((rows, columns)) / np.sqrt(columns)).astype(np.float32)

    tensors = {"model.embed_tokens.weight": random.standard_normal((config["vocab_size"], hidden)).astype(np.float32)}
    for layer in range(config["num_hidden_layers"]):
        prefix = f"model.layers.{layer}"
        for name, rows, columns in (
            ("self_attn.q_proj", hidden, hidden),
            ("self_attn.k_proj", keys, hidden),
            ("self_attn.v_proj", keys, hidden),
            ("self_attn.o_proj", hidden, hidden),
            ("mlp.gate_proj", feed, hidden),
            ("mlp.up_proj", feed, hidden),
            ("mlp.down_proj", hidden, feed),
        ):
            tensors[f"{prefix}.{name}.weight"] = 1.5 * matrix(rows, columns)
            if config["model_type"] == "qwen2" and name[-6] in "qkv" and "self_attn" in name:
                tensors[f"{prefix}.{name}.bias"] = random.standard_normal(rows).astype(np.float32)
        for name in ("input_layernorm", "post_attention_layernorm"):
            tensors[f"{prefix}.{name}.weight"] = (1 + 0.2 * random.standard_normal(hidden)).astype(np.float32)
    tensors["model.norm.weight"] = (1 + 0.2 * random.standard_normal(hidden)).astype(np.float32)
    if not config["tie_word_embeddings"]:
        tensors["lm_head.weight"] = matrix(config["vocab_size"], hidden)
    return tensors


def make_folder(path: Path, config: dict[str, Any], tensors: dict[str, NDArray[Any]] | None = None) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    (path / "config.json").write_text(json.dumps(config))
    save_file(make_tensors(config) if tensors is None else tensors, path / "model.safetensors")
    return path


def reference_logits(
    config: dict[str, Any], tensors: dict[str, NDArray[np.float32]], tokens: list[int]
) -> NDArray[np.float64]:
    """float64[len(tokens), V] of one sequence, written from the papers: no quantisation, no cache, no tree."""
    heads, shared = config["num_attention_heads"], config["num_attention_heads"] // config["num_key_value_heads"]
    dim, count = config["hidden_size"] // heads, len(tokens)
    weights = {name: tensor.astype(np.float64) for name, tensor in tensors.items()}

    def linear(x: NDArray[np.float64], name: str) -> NDArray[np.float64]:
        return x @ weights[f"{name}.weight"].T + weights.get(f"{name}.bias", 0.0)

    def norm(x: NDArray[np.float64], name: str) -> NDArray[np.float64]:
        return x / np.sqrt((x * x).mean(axis=1, keepdims=True) + config["rms_norm_eps"]) * weights[f"{name}.weight"]

    angles = np.arange(count)[:, None] * config["rope_theta"] ** (-np.arange(0, dim, 2) / dim)[None]

    def rotate(x: NDArray[np.float64]) -> NDArray[np.float64]:
        a, b = x[..., : dim // 2], x[..., dim // 2 :]
        cosine, sine = np.cos(angles)[:, None], np.sin(angles)[:, None]
        return np.concatenate([a * cosine - b * sine, b * cosine + a * sine], axis=-1)

    x = weights["model.embed_tokens.weight"][tokens]
    for layer in range(config["num_hidden_layers"]):
        prefix = f"model.layers.{layer}"
        normed = norm(x, f"{prefix}.input_layernorm")
        parts = [linear(normed, f"{prefix}.self_attn.{part}_proj").reshape(count, -1, dim) for part in "qkv"]
        query, key, value = rotate(parts[0]), np.repeat(rotate(parts[1]), shared, 1), np.repeat(parts[2], shared, 1)
        scores = np.einsum("ihd,jhd->hij", query, key) / np.sqrt(dim)
        scores = np.where(np.tri(count, dtype=bool), scores, -np.inf)
        scores = np.exp(scores - scores.max(axis=2, keepdims=True))
        attended = np.einsum("hij,jhd->ihd", scores / scores.sum(axis=2, keepdims=True), value)
        x = x + linear(attended.reshape(count, -1), f"{prefix}.self_attn.o_proj")
        normed = norm(x, f"{prefix}.post_attention_layernorm")
        gate = linear(normed, f"{prefix}.mlp.gate_proj")
        x = x + linear(gate / (1 + np.exp(-gate)) * linear(normed, f"{prefix}.mlp.up_proj"), f"{prefix}.mlp.down_proj")
    head = "model.embed_tokens" if config["tie_word_embeddings"] else "lm_head"
    return norm(x, "model.norm") @ weights[f"{head}.weight"].T
