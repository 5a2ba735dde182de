"""How far int8 is from float32: divergence of the next-token distribution and agreement on the best token.

The reference is transformers in float32 on the same dequantised weights. Texts are files of the running
interpreter's standard library that no layout or scale was chosen by.
"""

from __future__ import annotations

import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer

from decoding.draft_tree import DraftTree
from decoding.models.native_model import NativeModel
from decoding.models.weights import open_weights

TEXTS = ("ast.py", "tarfile.py", "statistics.py", "mailbox.py")
TOKENS = 384
"""Of each text, from its middle."""


@dataclass(frozen=True, slots=True)
class Quality:
    """Means over all positions: KL(float32 || int8) in nats, and how often the best token is the same."""

    divergence: float
    agreement: float
    tokens: int


def text_ids(tokenizer_file: Path, count: int) -> list[int]:
    """The first `count` token ids of a long standard-library file."""
    text = (Path(sysconfig.get_path("stdlib")) / "argparse.py").read_text(encoding="utf-8")
    ids: list[int] = Tokenizer.from_file(str(tokenizer_file)).encode(text + text).ids
    return ids[:count]


def float32_model(folder: Path) -> Any:
    """transformers in float32 with the folder's weights, read tensor by tensor."""
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.from_pretrained(folder)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    weights = open_weights(folder)
    state = {}
    for name, tensor in model.state_dict().items():
        if weights.shape(name) is not None:
            rows = weights.rows(name, 0, tensor.shape[0] if tensor.dim() > 1 else 1)
            state[name] = torch.from_numpy(rows.reshape(tuple(tensor.shape)).copy())
    model.load_state_dict(state, strict=False, assign=True)
    model.tie_weights()
    model.model.rotary_emb = type(model.model.rotary_emb)(config=config)  # its buffer has no weights to load
    return model.eval()


@torch.inference_mode()
def compare_with_float32(model: NativeModel, folder: Path) -> Quality:
    """Score the texts with both; a pass of ours takes 64 tokens of the text as a chain."""
    reference, tokenizer = float32_model(folder), Tokenizer.from_file(str(folder / "tokenizer.json"))
    known = model.tokens
    divergences, agreements = [], []
    for name in TEXTS:
        text = (Path(sysconfig.get_path("stdlib")) / name).read_text(encoding="utf-8")
        ids = tokenizer.encode(text[len(text) // 2 :][: TOKENS * 8]).ids[:TOKENS]
        exact = torch.log_softmax(reference(torch.tensor([ids])).logits[0, :, :known].float(), dim=-1)
        cache = model.new_cache(TOKENS)
        for start in range(0, len(ids), 64):
            part = ids[start : start + 64]
            chain = DraftTree.from_lists(part[1:], list(range(-1, len(part) - 2)), [0.0] * (len(part) - 1))
            found = torch.log_softmax(model.forward_tree(part[0], chain, cache).logits[:, :known], dim=-1)
            cache.keep(list(range(len(part))))
            right = exact[start : start + len(part)]
            divergences.append((right.exp() * (right - found)).sum(-1))
            agreements.append((right.argmax(-1) == found.argmax(-1)).float())
    return Quality(
        float(torch.cat(divergences).mean()), float(torch.cat(agreements).mean()), sum(map(len, divergences))
    )
