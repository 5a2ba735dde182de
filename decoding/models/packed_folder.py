"""Where the packed file of a model folder lies, whether it is still right, and making it where it is not.

Knows folders, file times and the user's cache. Must not know layouts or kernels.
"""

from __future__ import annotations

import hashlib
import logging
import os
from pathlib import Path

import platformdirs

from decoding.errors import BadWeights
from decoding.models.architecture import Architecture
from decoding.models.folder import CONFIG, TOKENIZER, read_json
from decoding.models.packing import PACKED_NAME, PackedFile, Progress, pack
from decoding.models.weights import open_weights, weight_files

_log = logging.getLogger(__name__)


def packed_weights(folder: Path, arch: Architecture, progress: Progress) -> PackedFile:
    """The packed file of `folder`, made first where it is missing, damaged or older than its sources.

    Raises BadWeights where the weights cannot be used.
    """
    path = packed_path(folder)
    sources = _fingerprint(folder)
    if path.is_file():
        try:
            packed = PackedFile(path)
            if packed.header.get("sources") == sources:
                return packed
        except BadWeights as error:
            _log.warning("packing the weights again: %s", error)
    header = {"sources": sources, "tokens": _tokenizer_size(folder, arch)}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        pack(open_weights(folder), arch, header, path, progress)
    except OSError as error:
        raise BadWeights(f"the packed weights cannot be written to {path.parent} ({error}): free some space") from error
    return PackedFile(path)


def packed_path(folder: Path) -> Path:
    """Beside the weights, or in the user's cache where that folder is not ours to write to."""
    if os.access(folder, os.W_OK):
        return folder / PACKED_NAME
    name = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:16]
    return Path(platformdirs.user_cache_dir("draftwood")) / "packed" / name / PACKED_NAME


def _fingerprint(folder: Path) -> list[list[str | int]]:
    """Name, size and time of every file that the packed one depends on."""
    files = [*weight_files(folder), folder / CONFIG, folder / TOKENIZER]
    stats = [(file.name, file.stat()) for file in files if file.is_file()]
    return [[name, stat.st_size, stat.st_mtime_ns] for name, stat in stats]


def _tokenizer_size(folder: Path, arch: Architecture) -> int:
    """One more than the highest id of the tokenizer; all rows of the embedding where there is no tokenizer."""
    path = folder / TOKENIZER
    if not path.is_file():
        return arch.vocab_size
    data = read_json(path)
    vocab = data.get("model", {}).get("vocab", {})
    ids = list(vocab.values()) if isinstance(vocab, dict) else [len(vocab) - 1]
    ids += [int(entry["id"]) for entry in data.get("added_tokens", [])]
    return min(max(ids, default=arch.vocab_size - 1) + 1, arch.vocab_size)
