"""A model folder as a hub would serve it, made on the spot: random weights, a byte-level tokenizer with merges,
infilling and chat marks. Real files, a fake model."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoModelForCausalLM, Qwen2Config

from lsp_server.cli_demo import SAMPLE

MARKS = [
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|fim_prefix|>",
    "<|fim_middle|>",
    "<|fim_suffix|>",
    "<|fim_pad|>",
    "<|repo_name|>",
    "<|file_sep|>",
]
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_TRAINING_TEXT = [
    SAMPLE,
    "for index, value in enumerate(values):\n    if value is not None:\n        return self.name[index]\n" * 3,
    "class Reader:\n    def __init__(self, path: str) -> None:\n        self.path = path\n\n    def read(self):\n" * 3,
    "try:\n    result = function(*args, **kwargs)\nexcept ValueError as error:\n    raise KeyError from error\n" * 3,
    "import json\nimport sys\nfrom typing import Any\n\nprint(f'{total:.2f}', end='')\nassert x == 1\n" * 3,
]


def make_tokenizer(size: int = 512) -> Tokenizer:
    """Byte-level BPE with a few hundred merges, learned from a fixed text."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size - len(MARKS), initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator(_TRAINING_TEXT, trainer)
    tokenizer.add_special_tokens(MARKS)
    return tokenizer


def make_folder(folder: Path, *, seed: int = 0, infilling: bool = True) -> Path:
    """Write a loadable model folder; returns it."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = make_tokenizer()
    if not infilling:
        data = json.loads(tokenizer.to_str())
        data["added_tokens"] = [token for token in data["added_tokens"] if "fim" not in token["content"]]
        tokenizer = Tokenizer.from_str(json.dumps(data))
    tokenizer.save(str(folder / "tokenizer.json"))
    end = tokenizer.token_to_id("<|endoftext|>")
    config = Qwen2Config(
        vocab_size=576,  # padded past the tokenizer, as real models are
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        tie_word_embeddings=False,
        initializer_range=0.25,
        eos_token_id=end,
        bos_token_id=None,
    )
    state = torch.random.get_rng_state()
    torch.manual_seed(seed)
    AutoModelForCausalLM.from_config(config, dtype=torch.float32).save_pretrained(folder)
    torch.random.set_rng_state(state)
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": end}), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"eos_token": "<|endoftext|>", "chat_template": CHAT_TEMPLATE}), encoding="utf-8"
    )
    return folder
