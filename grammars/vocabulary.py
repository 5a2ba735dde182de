"""Vocabulary: token id -> bytes, built once per tokenizer.

Knows `tokenizers` files. Must not know models, prompts or Python.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_BYTE_FALLBACK = re.compile(r"<0x([0-9A-F]{2})>\Z")
_METASPACE = "\u2581"


def _byte_level_alphabet() -> dict[str, int]:
    """The printable stand-ins that byte-level BPE uses for the 256 bytes (GPT-2, Radford et al. 2019)."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(0x100 + i): byte for i, byte in enumerate(rest)}


@dataclass(frozen=True)
class Vocabulary:
    """What each token id stands for.

    Attributes:
        tokens: the bytes of every id below `size`; b"" for special tokens and for unused ids.
        special: ids that stand for no text (end of text, infilling and chat marks).
        end: the ids among `special` that end a text.
        size: ids of the tokenizer; a model's logits may have more columns, which are never allowed.
    """

    tokens: tuple[bytes, ...]
    special: frozenset[int]
    end: frozenset[int]

    @property
    def size(self) -> int:
        """How many ids the tokenizer has."""
        return len(self.tokens)

    @cached_property
    def token_bytes_lengths(self) -> NDArray[np.int32]:
        """int32[size]: bytes of each token."""
        return np.fromiter((len(token) for token in self.tokens), dtype=np.int32, count=self.size)

    @cached_property
    def sorted_ids(self) -> NDArray[np.int32]:
        """int32: the ids of ordinary tokens in the order of their bytes, so that the tokens that begin with a
        given text are one slice (see `with_prefix`)."""
        ordinary = [token for token in range(self.size) if self.tokens[token]]
        ordinary.sort(key=self.tokens.__getitem__)
        return np.asarray(ordinary, dtype=np.int32)

    @cached_property
    def ids_by_bytes(self) -> dict[bytes, int]:
        """The (lowest) id of each token text."""
        found: dict[bytes, int] = {}
        for token, text in enumerate(self.tokens):
            if text:
                found.setdefault(text, token)
        return found

    def with_prefix(self, prefix: bytes) -> NDArray[np.int32]:
        """The ids of all ordinary tokens whose bytes begin with `prefix`."""
        order = self.sorted_ids
        first = self._bisect(prefix)
        last = first
        high = len(order)
        while last < high:  # gallop to the end of the run: matches are contiguous
            middle = (last + high) // 2
            if self.tokens[order[middle]].startswith(prefix):
                last = middle + 1
            else:
                high = middle
        return order[first:last]

    def _bisect(self, text: bytes) -> int:
        low, high = 0, len(self.sorted_ids)
        while low < high:
            middle = (low + high) // 2
            if self.tokens[self.sorted_ids[middle]] < text:
                low = middle + 1
            else:
                high = middle
        return low

    def decode(self, token_ids: Iterable[int]) -> bytes:
        """The bytes of a token sequence; special tokens are left out."""
        return b"".join(self.tokens[token] if token < self.size else b"" for token in token_ids)

    @classmethod
    def from_tokens(cls, tokens: Sequence[bytes], special: Iterable[int] = (), end: Iterable[int] = ()) -> Vocabulary:
        """A vocabulary given directly: for tests and toy models."""
        marks = frozenset(special) | frozenset(end)
        return cls(tuple(b"" if i in marks else token for i, token in enumerate(tokens)), marks, frozenset(end))

    @classmethod
    def from_file(cls, tokenizer_json: Path, end: Iterable[int] = ()) -> Vocabulary:
        """Read a `tokenizer.json`: byte-level BPE, or metaspace BPE with byte fallback.

        `end` names the ids that end a text for this model (from its generation config).
        """
        data = json.loads(tokenizer_json.read_text(encoding="utf-8"))
        model = data["model"]
        vocab: dict[str, int] = (
            dict(model["vocab"])
            if isinstance(model["vocab"], dict)
            else {entry[0]: token for token, entry in enumerate(model["vocab"])}
        )
        added = {entry["id"]: entry for entry in data.get("added_tokens", [])}
        byte_level = "ByteLevel" in json.dumps([data.get("pre_tokenizer"), data.get("decoder")])
        alphabet = _byte_level_alphabet()
        size = max([*vocab.values(), *added]) + 1
        tokens = [b""] * size
        for text, token in vocab.items():
            if byte_level:
                tokens[token] = (
                    bytes(alphabet[char] for char in text) if all(c in alphabet for c in text) else text.encode()
                )
            elif match := _BYTE_FALLBACK.match(text):
                tokens[token] = bytes([int(match[1], 16)])
            else:
                tokens[token] = text.replace(_METASPACE, " ").encode("utf-8")
        special = {token for token, entry in added.items() if entry["special"]}
        # Added tokens that are not marked special (<tool_call>, <fim_...> in some files) still never belong in
        # code: their ids are reached by no ordinary text.
        special |= {token for token, entry in added.items() if entry["content"].startswith("<")}
        for token, entry in added.items():
            tokens[token] = b"" if token in special else entry["content"].encode("utf-8")
        for token in special:
            tokens[token] = b""
        return cls(tuple(tokens), frozenset(special), frozenset(end))
