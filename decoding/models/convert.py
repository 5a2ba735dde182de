"""GGUF -> what a hub folder holds: config, tokenizer and, on demand, bfloat16 safetensors.

Knows the GGUF container, numpy and the published file layouts. Must not know torch, transformers, networks or
caches. Two architectures are read: `llama` and `qwen2`; anything else is refused by name rather than guessed.

References: the GGUF specification (ggml repository, docs/gguf.md); the safetensors format description; byte-level
BPE as in GPT-2 (Radford et al. 2019).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from decoding.errors import BadWeights
from decoding.models.folder import CONFIG, GENERATION_CONFIG, TOKENIZER, TOKENIZER_CONFIG

Fraction = Callable[[float], None]

# Packed bytes of the rows that are dequantised at once: at most 8 MB of float32. A whole 1.5B embedding would take
# 0.9 GB, and gguf's kernels several times that for temporaries; smaller chunks also stay in the processor's cache.
_CHUNK_BYTES = 1 << 20

_CONTROL, _USER_DEFINED, _UNUSED = 3, 4, 5  # tokenizer.ggml.token_type

_GPT2_SPLIT = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
_QWEN2_REGEX = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_QWEN2_SPLIT = {
    "type": "Sequence",
    "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": _QWEN2_REGEX}, "behavior": "Isolated", "invert": False},
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False},
    ],
}
_SMOLLM_SPLIT = {
    "type": "Sequence",
    "pretokenizers": [{"type": "Digits", "individual_digits": True}, _GPT2_SPLIT],
}
# tokenizer.ggml.pre -> (normalizer, pre-tokenizer) of tokenizer.json
_PRE_TOKENIZERS: dict[str, tuple[dict[str, Any] | None, dict[str, Any]]] = {
    "qwen2": ({"type": "NFC"}, _QWEN2_SPLIT),
    "smollm": (None, _SMOLLM_SPLIT),
    "gpt-2": (None, _GPT2_SPLIT),
}

_ARCHITECTURES = {"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM"}
_TOP_TENSORS = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
}
_LAYER_TENSORS = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_LAYER_NAME = re.compile(r"blk\.(\d+)\.(\w+)\.(weight|bias)\Z")


class GgufFile:
    """A GGUF file, mapped into memory: metadata by key and tensors in file order."""

    def __init__(self, path: Path) -> None:
        from gguf import GGUFReader

        self.path = path
        try:
            self._reader = GGUFReader(path)
        except (OSError, ValueError, IndexError, KeyError) as error:
            raise BadWeights(
                f"{path} is not a readable GGUF file ({error}): remove the model and pull it again"
            ) from error
        self.architecture = str(self.value("general.architecture"))
        if self.architecture not in _ARCHITECTURES:
            raise BadWeights(
                f"{path.name} holds a {self.architecture} model; GGUF files of {' and '.join(_ARCHITECTURES)} models "
                "can be used, others by their hub id"
            )

    def value(self, key: str, default: Any = None) -> Any:
        """The metadata value of `key`; BadWeights where it is missing and there is no default."""
        field = self._reader.fields.get(key)
        if field is not None:
            return field.contents()
        if default is None:
            raise BadWeights(f"{self.path} lacks {key}: it is not a complete model file")
        return default

    def setting(self, key: str, default: Any = None) -> Any:
        """The metadata value of `key` below the architecture's prefix."""
        return self.value(f"{self.architecture}.{key}", default)

    @property
    def tensors(self) -> Sequence[Any]:
        """gguf.ReaderTensor: name, data (rows of packed blocks), tensor_type, shape (innermost first)."""
        return self._reader.tensors  # type: ignore[no-any-return]

    def has_tensor(self, name: str) -> bool:
        """Whether the file holds a tensor of this name."""
        return any(tensor.name == name for tensor in self.tensors)


def write_folder_files(gguf: GgufFile, folder: Path) -> None:
    """Write config.json, generation_config.json, tokenizer.json and tokenizer_config.json beside the weights."""
    tokens = _Tokens.read(gguf)
    files = {
        CONFIG: _config(gguf, tokens),
        GENERATION_CONFIG: {"eos_token_id": list(tokens.end_ids), "bos_token_id": tokens.begin_id},
        TOKENIZER: _tokenizer(tokens),
        TOKENIZER_CONFIG: _tokenizer_config(gguf, tokens),
    }
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


@dataclass(frozen=True, slots=True)
class _Tokens:
    """The tokenizer metadata of a GGUF file."""

    texts: tuple[str, ...]
    types: tuple[int, ...]
    merges: tuple[str, ...]
    pre: str
    begin_id: int | None
    pad_id: int | None
    end_ids: tuple[int, ...]
    add_begin: bool

    @classmethod
    def read(cls, gguf: GgufFile) -> _Tokens:
        kind, pre = gguf.value("tokenizer.ggml.model"), gguf.value("tokenizer.ggml.pre", "gpt-2")
        if kind != "gpt2" or pre not in _PRE_TOKENIZERS:
            raise BadWeights(
                f"{gguf.path.name} has a {kind}/{pre} tokenizer, which is not known here: use the model by its hub id"
            )
        texts = tuple(gguf.value("tokenizer.ggml.tokens"))
        ends = [gguf.value("tokenizer.ggml.eos_token_id")]
        ends += [token for token, text in enumerate(texts) if text in {"<|endoftext|>", "<|im_end|>"}]
        begin, pad = gguf.value("tokenizer.ggml.bos_token_id", -1), gguf.value("tokenizer.ggml.padding_token_id", -1)
        return cls(
            texts=texts,
            types=tuple(gguf.value("tokenizer.ggml.token_type")),
            merges=tuple(gguf.value("tokenizer.ggml.merges")),
            pre=pre,
            begin_id=begin if begin >= 0 else None,
            pad_id=pad if pad >= 0 else None,
            end_ids=tuple(dict.fromkeys(ends)),
            add_begin=bool(gguf.value("tokenizer.ggml.add_bos_token", False)),
        )


def _config(gguf: GgufFile, tokens: _Tokens) -> dict[str, Any]:
    heads = gguf.setting("attention.head_count")
    hidden = gguf.setting("embedding_length")
    layers = gguf.setting("block_count")
    config: dict[str, Any] = {
        "architectures": [_ARCHITECTURES[gguf.architecture]],
        "model_type": gguf.architecture,
        "vocab_size": len(tokens.texts),
        "hidden_size": hidden,
        "intermediate_size": gguf.setting("feed_forward_length"),
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": gguf.setting("attention.head_count_kv", heads),
        "hidden_act": "silu",
        "max_position_embeddings": gguf.setting("context_length"),
        "rms_norm_eps": round(gguf.setting("attention.layer_norm_rms_epsilon"), 12),
        "rope_theta": gguf.setting("rope.freq_base", 10000.0),
        # The 0.5B file stores a head that differs from its embedding (other quantisation): such a head is untied.
        "tie_word_embeddings": not gguf.has_tensor("output.weight"),
        "bos_token_id": tokens.begin_id,
        "eos_token_id": tokens.end_ids[0],
        "torch_dtype": "bfloat16",
        "use_cache": True,
    }
    if gguf.architecture == "llama":
        config |= {"head_dim": hidden // heads, "attention_bias": False, "mlp_bias": False}
    else:
        config |= {"use_sliding_window": False}
    return config


def _tokenizer(tokens: _Tokens) -> dict[str, Any]:
    """A `tokenizer.json` whose ids are the positions in the GGUF token list; padding rows are left out."""
    normalizer, pre_tokenizer = _PRE_TOKENIZERS[tokens.pre]
    kinds = dict(enumerate(tokens.types))
    added = [token for token, kind in kinds.items() if kind in {_CONTROL, _USER_DEFINED}]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": token,
                "content": tokens.texts[token],
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": kinds[token] == _CONTROL,
            }
            for token in added
        ],
        "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False},
        "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": "",
            "end_of_word_suffix": "",
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            # Marks too: SmolLM2's have the lowest ids, and an added token outside the vocabulary would be renumbered.
            "vocab": {tokens.texts[token]: token for token, kind in kinds.items() if kind != _UNUSED},
            "merges": [merge.split(" ", 1) for merge in tokens.merges],
        },
    }


def _tokenizer_config(gguf: GgufFile, tokens: _Tokens) -> dict[str, Any]:
    text = tokens.texts
    config: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": gguf.setting("context_length"),
        "clean_up_tokenization_spaces": False,
        "add_bos_token": tokens.add_begin,
        "add_prefix_space": False,
        "bos_token": text[tokens.begin_id] if tokens.begin_id is not None else None,
        "eos_token": text[tokens.end_ids[0]],
        "pad_token": text[tokens.pad_id] if tokens.pad_id is not None else None,
    }
    if template := gguf.value("tokenizer.chat_template", ""):
        config["chat_template"] = template
    return config


def write_safetensors(gguf: GgufFile, target: Path, progress: Fraction) -> None:
    """Write all weights as one bfloat16 safetensors file, a few rows at a time.

    Beyond the mapped file and its metadata this takes some ten megabytes, whatever the model's size. `target` is
    written in place: the caller renames it.
    """
    tensors = [(_hub_name(tensor.name), tensor) for tensor in gguf.tensors]
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for name, tensor in tensors:
        size = 2 * int(np.prod(tensor.shape))
        header[name] = {"dtype": "BF16", "shape": _shape(tensor), "data_offsets": [offset, offset + size]}
        offset += size
    encoded = json.dumps(header).encode()
    encoded += b" " * (-len(encoded) % 8)  # the data begins at a multiple of 8
    with target.open("wb") as file:
        file.write(len(encoded).to_bytes(8, "little") + encoded)
        for name, tensor in tensors:
            _write_tensor(gguf, name, tensor, file)
            progress(header[name]["data_offsets"][1] / offset)


def _write_tensor(gguf: GgufFile, name: str, tensor: Any, file: BinaryIO) -> None:
    for rows in _float32_chunks(_hub_order(gguf, name, tensor.data), tensor.tensor_type):
        if not np.isfinite(rows).all():
            raise BadWeights(f"{gguf.path.name}: {name} holds values that are not finite: pull the model again")
        file.write(_to_bfloat16(rows).tobytes())


def _float32_chunks(data: NDArray[Any], kind: Any) -> Iterator[NDArray[np.float32]]:
    from gguf.quants import dequantize

    rows = np.atleast_2d(data)
    step = max(1, _CHUNK_BYTES // max(1, rows[0].nbytes))
    for start in range(0, len(rows), step):
        yield np.asarray(dequantize(rows[start : start + step], kind), dtype=np.float32)


def _hub_order(gguf: GgufFile, name: str, rows: NDArray[Any]) -> NDArray[Any]:
    """Undo the row order that GGUF gives to query and key projections of `llama` models.

    GGUF interleaves the two halves of each head (rotary pairs side by side); the hub keeps the halves apart.
    Whole rows move, so packed blocks can be moved as they are.
    """
    if gguf.architecture != "llama" or not re.search(r"\.(q|k)_proj\.", name):
        return rows
    key = "attention.head_count" if ".q_proj." in name else "attention.head_count_kv"
    heads = int(gguf.setting(key, gguf.setting("attention.head_count")))
    half = len(rows) // heads // 2
    return rows.reshape(heads, half, 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def _to_bfloat16(values: NDArray[np.float32]) -> NDArray[np.uint16]:
    """The bits of `values` rounded to nearest even, as uint16 (numpy has no bfloat16)."""
    bits = np.ascontiguousarray(values).view(np.uint32)
    rounding = ((bits >> 16) & 1) + np.uint32(0x7FFF)
    return ((bits + rounding) >> 16).astype(np.uint16)


def _shape(tensor: Any) -> list[int]:
    return [int(size) for size in reversed(tensor.shape)]


def _hub_name(name: str) -> str:
    stem, _, kind = name.rpartition(".")
    if stem in _TOP_TENSORS:
        return f"{_TOP_TENSORS[stem]}.{kind}"
    match = _LAYER_NAME.match(name)
    if match is None or match[2] not in _LAYER_TENSORS:
        raise BadWeights(f"the GGUF file holds a tensor {name} that is not known here: use the model by its hub id")
    return f"model.layers.{match[1]}.{_LAYER_TENSORS[match[2]]}.{match[3]}"


@dataclass(frozen=True, slots=True)
class HubTensor:
    """A GGUF tensor as the hub would hold it: hub name, hub row order, dequantised on demand."""

    shape: tuple[int, ...]
    _data: NDArray[Any]
    _kind: Any

    def rows(self, start: int, stop: int) -> NDArray[np.float32]:
        """float32[stop - start, ...]: rows [start, stop) of a matrix; a vector is one row."""
        from gguf.quants import dequantize

        return np.asarray(dequantize(np.atleast_2d(self._data)[start:stop], self._kind), dtype=np.float32)


def hub_tensors(gguf: GgufFile) -> dict[str, HubTensor]:
    """Every tensor of the file by its hub name."""
    return {
        name: HubTensor(tuple(_shape(tensor)), _hub_order(gguf, name, tensor.data), tensor.tensor_type)
        for tensor in gguf.tensors
        for name in [_hub_name(tensor.name)]
    }
