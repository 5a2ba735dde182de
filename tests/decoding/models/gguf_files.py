"""Tiny GGUF files with random weights, written with the reference library."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter, TokenType
from gguf.quants import quantize

HIDDEN, HEADS, KV_HEADS, LAYERS, FEED_FORWARD = 128, 2, 1, 2, 128  # multiples of 64, as the native runtime asks
MARKS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
FIM = ("<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>")


def byte_alphabet() -> list[str]:
    """The 256 stand-ins of byte-level BPE, in the order of their bytes."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    spare = iter(range(0x100, 0x200))
    return [chr(byte) if byte in printable else chr(next(spare)) for byte in range(256)]


def write_gguf(
    path: Path,
    architecture: str = "qwen2",
    pre: str = "qwen2",
    marks_first: bool = False,
    padding: int = 3,
    head: bool = True,
    kind: GGMLQuantizationType = GGMLQuantizationType.Q8_0,
    extra_tensors: Sequence[str] = (),
) -> Path:
    """Write a model with a byte-level vocabulary and two merges; marks come first (SmolLM2) or last (Qwen)."""
    writer = GGUFWriter(path, architecture)
    ordinary = [*byte_alphabet(), "in", "Ġin"]
    marks = [*MARKS, *FIM]
    texts = [*marks, *ordinary] if marks_first else [*ordinary, *marks]
    types = [TokenType.CONTROL if text in marks else TokenType.NORMAL for text in texts]
    texts += [f"[PAD{i}]" for i in range(padding)]
    types += [TokenType.UNUSED] * padding
    _add_metadata(writer, texts, types, pre)
    random = np.random.default_rng(0)
    for name, shape in _tensor_shapes(architecture, len(texts), head, extra_tensors).items():
        values = (random.standard_normal(shape) * 0.2).astype(np.float32)
        if len(shape) == 1 or "norm" in name:
            writer.add_tensor(name, values + 1 if "norm" in name else values)
        else:
            writer.add_tensor(name, quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_metadata(writer: GGUFWriter, texts: list[str], types: list[TokenType], pre: str) -> None:
    writer.add_context_length(256)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(texts)
    writer.add_token_types(types)
    writer.add_token_merges(["i n", "Ġ in"])
    writer.add_eos_token_id(texts.index("<|im_end|>"))
    writer.add_bos_token_id(texts.index("<|endoftext|>"))
    writer.add_chat_template("{% for m in messages %}<|im_start|>{{ m.content }}<|im_end|>{% endfor %}")


def _tensor_shapes(architecture: str, vocabulary: int, head: bool, extra: Sequence[str]) -> dict[str, tuple[int, ...]]:
    kv = HIDDEN // HEADS * KV_HEADS
    shapes: dict[str, tuple[int, ...]] = {"token_embd.weight": (vocabulary, HIDDEN), "output_norm.weight": (HIDDEN,)}
    if head:
        shapes["output.weight"] = (vocabulary, HIDDEN)
    for layer in range(LAYERS):
        prefix = f"blk.{layer}."
        shapes |= {
            prefix + "attn_norm.weight": (HIDDEN,),
            prefix + "ffn_norm.weight": (HIDDEN,),
            prefix + "attn_q.weight": (HIDDEN, HIDDEN),
            prefix + "attn_k.weight": (kv, HIDDEN),
            prefix + "attn_v.weight": (kv, HIDDEN),
            prefix + "attn_output.weight": (HIDDEN, HIDDEN),
            prefix + "ffn_gate.weight": (FEED_FORWARD, HIDDEN),
            prefix + "ffn_up.weight": (FEED_FORWARD, HIDDEN),
            prefix + "ffn_down.weight": (HIDDEN, FEED_FORWARD),
        }
        if architecture == "qwen2":
            shapes |= {prefix + f"attn_{which}.bias": (size,) for which, size in (("q", HIDDEN), ("k", kv), ("v", kv))}
    return shapes | dict.fromkeys(extra, (HIDDEN,))
