"""The public table that the recycle source starts from.

Knows one file format. Each file was made by `python -m decoding.drafters.build_successors` from a registered model's
own predictions over the standard library (public text), and belongs to one tokenizer, which is compared by hash.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from grammars.vocabulary import Vocabulary

FOLDER = Path(__file__).parent
_PATTERN = "successors-*.npz"


@dataclass(frozen=True, slots=True)
class Successors:
    """What a model predicts after one token and after two.

    Attributes:
        tokens: int64[n] contexts of one token.
        ids, probabilities: int32[n, k], float16[n, k] of their successors, most probable first.
        pairs: two int64[m] arrays, contexts of two tokens (earlier, later).
        pair_ids, pair_probabilities: int32[m, j], float16[m, j].
    """

    tokens: NDArray[np.int64]
    ids: NDArray[np.int32]
    probabilities: NDArray[np.float16]
    pairs: tuple[NDArray[np.int64], NDArray[np.int64]]
    pair_ids: NDArray[np.int32]
    pair_probabilities: NDArray[np.float16]

    def save(self, path: Path, vocabulary: Vocabulary) -> None:
        """Write a compressed file: ids as indices into the list of used ids, probabilities in 256 steps."""
        everything = (self.tokens, self.ids, *self.pairs, self.pair_ids)
        used = np.unique(np.concatenate([ids.ravel() for ids in everything])).astype(np.int32)
        if len(used) > 1 << 16:
            raise ValueError(f"{len(used)} different ids do not fit 16 bits")
        small = [np.searchsorted(used, ids).astype(np.uint16) for ids in everything]
        np.savez_compressed(
            path,
            tokenizer=np.frombuffer(fingerprint(vocabulary), dtype=np.uint8),
            used=used,
            tokens=small[0],
            ids=small[1],
            probabilities=_to_steps(self.probabilities),
            pair_first=small[2],
            pair_second=small[3],
            pair_ids=small[4],
            pair_probabilities=_to_steps(self.pair_probabilities),
        )


def successors_for(vocabulary: Vocabulary, folder: Path = FOLDER) -> Successors | None:
    """The public table of this tokenizer, or None where there is none."""
    wanted = fingerprint(vocabulary)
    for path in sorted(folder.glob(_PATTERN)):
        with np.load(path, allow_pickle=False) as data:
            if data["tokenizer"].tobytes() != wanted:
                continue
            used: NDArray[np.int64] = data["used"].astype(np.int64)
            return Successors(
                tokens=used[data["tokens"]],
                ids=used[data["ids"]].astype(np.int32),
                probabilities=_from_steps(data["probabilities"]),
                pairs=(used[data["pair_first"]], used[data["pair_second"]]),
                pair_ids=used[data["pair_ids"]].astype(np.int32),
                pair_probabilities=_from_steps(data["pair_probabilities"]),
            )
    return None


def fingerprint(vocabulary: Vocabulary) -> bytes:
    """16 bytes that differ between tokenizers: a hash over the text of every ordinary token."""
    digest = hashlib.blake2b(digest_size=16)
    for token in vocabulary.tokens:
        digest.update(len(token).to_bytes(4, "little"))
        digest.update(token)
    return digest.digest()


def _to_steps(probabilities: NDArray[np.float16]) -> NDArray[np.uint8]:
    return np.rint(probabilities.astype(np.float32) * 255).astype(np.uint8)


def _from_steps(steps: NDArray[np.uint8]) -> NDArray[np.float16]:
    return (steps.astype(np.float32) / 255).astype(np.float16)
