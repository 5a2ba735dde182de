"""ModelFolder: a provisioned model on disk, in the layout of the model hub.

Knows file names and the small JSON files of a model. Must not know how the folder came to be, nor any runtime;
imports neither torch nor transformers, so that the command line may list models without paying for them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from decoding.errors import BadWeights

WEIGHTS_GGUF = "model.gguf"
WEIGHTS_SAFETENSORS = "model.safetensors"
WEIGHTS_INDEX = "model.safetensors.index.json"
CONFIG = "config.json"
GENERATION_CONFIG = "generation_config.json"
TOKENIZER = "tokenizer.json"
TOKENIZER_CONFIG = "tokenizer_config.json"
CHAT_TEMPLATE = "chat_template.jinja"

# Names of the infilling marks in published tokenizers: prefix, suffix, middle.
_INFILLING_MARKS = (
    ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"),
    ("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),
    ("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),
)
# A model that writes one of these is done with the file that it was asked about.
_END_OF_FILE_MARKS = ("<|fim_pad|>", "<|file_sep|>", "<|repo_name|>", "<file_sep>", "<fim_pad>")


@dataclass(frozen=True, slots=True)
class InfillingTokens:
    """Token ids of the marks of a model that can fill in the middle; the last two are None where it has none."""

    prefix: int
    suffix: int
    middle: int
    repository_name: int | None
    file_separator: int | None


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A model that is ready to be loaded.

    Attributes:
        path: the folder: config.json, generation_config.json, tokenizer.json, tokenizer_config.json and weights.
        name: what the user calls it: a registry name, a hub id, or the path.
        source: where the weights came from, for people: "hub OWNER/NAME", "package index", "local".
        context_length: the longest sequence the model was made for, in tokens.
        end_token_ids: every id that ends a text, the end-of-file marks of code models included.
        fim: the infilling marks, or None for a model that cannot fill in the middle.
        has_chat_template: whether messages can be laid out for it.
    """

    path: Path
    name: str
    source: str
    context_length: int
    end_token_ids: tuple[int, ...]
    fim: InfillingTokens | None
    has_chat_template: bool

    @property
    def tokenizer_file(self) -> Path:
        """The `tokenizer.json`, for `tokenizers.Tokenizer.from_file` and `Vocabulary.from_file`."""
        return self.path / TOKENIZER

    @property
    def gguf_file(self) -> Path | None:
        """The GGUF weights, or None where the model came as safetensors."""
        path = self.path / WEIGHTS_GGUF
        return path if path.is_file() else None

    @property
    def has_safetensors(self) -> bool:
        """Whether the transformers runtime can load the folder as it is."""
        return (self.path / WEIGHTS_SAFETENSORS).is_file() or (self.path / WEIGHTS_INDEX).is_file()

    def config(self) -> dict[str, Any]:
        """The parsed `config.json`."""
        return read_json(self.path / CONFIG)


def open_folder(path: Path, name: str, source: str, infilling: bool | None = None) -> ModelFolder:
    """Read the small files of a model folder.

    `infilling=False` says that the model cannot fill in the middle although its tokenizer has the marks; None
    trusts the tokenizer. Raises BadWeights where a file is missing or is not what it should be.
    """
    config = read_json(path / CONFIG)
    tokenizer = read_json(path / TOKENIZER)
    ids = {entry["content"]: int(entry["id"]) for entry in tokenizer.get("added_tokens", [])}
    return ModelFolder(
        path=path,
        name=name,
        source=source,
        context_length=int(config.get("max_position_embeddings", 2048)),
        end_token_ids=_end_token_ids(path, config, ids),
        fim=None if infilling is False else _infilling_tokens(ids),
        has_chat_template=_has_chat_template(path),
    )


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file; BadWeights says which file of a model folder is missing or damaged."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadWeights(f"{path.parent} is not a model folder: {path.name} is missing") from None
    except (OSError, ValueError) as error:
        raise BadWeights(f"{path} cannot be read ({error}): remove the model and pull it again") from error
    if not isinstance(data, dict):
        raise BadWeights(f"{path} does not hold a JSON object: remove the model and pull it again")
    return data


def _end_token_ids(path: Path, config: dict[str, Any], ids: dict[str, int]) -> tuple[int, ...]:
    generation = read_json(path / GENERATION_CONFIG) if (path / GENERATION_CONFIG).is_file() else {}
    ends: list[int] = []
    for settings in (generation, config):
        value = settings.get("eos_token_id")
        if value is not None:
            ends += value if isinstance(value, list) else [value]
    ends += [ids[mark] for mark in _END_OF_FILE_MARKS if mark in ids]
    return tuple(dict.fromkeys(ends))


def _infilling_tokens(ids: dict[str, int]) -> InfillingTokens | None:
    for prefix, suffix, middle in _INFILLING_MARKS:
        if prefix in ids and suffix in ids and middle in ids:
            return InfillingTokens(
                prefix=ids[prefix],
                suffix=ids[suffix],
                middle=ids[middle],
                repository_name=ids.get("<|repo_name|>", ids.get("<repo_name>")),
                file_separator=ids.get("<|file_sep|>", ids.get("<file_sep>")),
            )
    return None


def _has_chat_template(path: Path) -> bool:
    if (path / CHAT_TEMPLATE).is_file():
        return True
    settings = path / TOKENIZER_CONFIG
    return settings.is_file() and bool(read_json(settings).get("chat_template"))
