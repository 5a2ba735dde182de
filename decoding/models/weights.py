"""Weights: the tensors of a model folder under their hub names, a few rows at a time.

Knows safetensors and GGUF files. Must not know architectures or kernels. Nothing is held: the files are mapped,
and what is asked for is converted to float32.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from decoding.errors import BadWeights
from decoding.models.folder import WEIGHTS_GGUF, WEIGHTS_INDEX, read_json


class Weights(Protocol):
    """Tensors by hub name."""

    def shape(self, name: str) -> tuple[int, ...] | None:
        """The shape of a tensor, None where the model has none of this name."""

    def rows(self, name: str, start: int, stop: int) -> NDArray[np.float32]:
        """float32[stop - start, columns]; a vector is one row."""


def weight_files(folder: Path) -> list[Path]:
    """The files that hold the weights: the safetensors of a folder, or its GGUF file; empty where it has none."""
    safetensors = sorted(folder.glob("*.safetensors"))
    gguf = folder / WEIGHTS_GGUF
    return [gguf] if gguf.is_file() else safetensors


def open_weights(folder: Path) -> Weights:
    """Map the weights of a folder. Raises BadWeights where there are none or they cannot be read."""
    files = weight_files(folder)
    if not files:
        raise BadWeights(f"{folder} holds neither {WEIGHTS_GGUF} nor safetensors: pull the model again")
    return GgufWeights(files[0]) if files[0].name == WEIGHTS_GGUF else SafetensorsWeights(folder, files)


class GgufWeights:
    """The tensors of a GGUF file."""

    def __init__(self, path: Path) -> None:
        from decoding.models.convert import GgufFile, hub_tensors

        self._tensors = hub_tensors(GgufFile(path))

    def shape(self, name: str) -> tuple[int, ...] | None:
        """See `Weights.shape`."""
        tensor = self._tensors.get(name)
        return None if tensor is None else tensor.shape

    def rows(self, name: str, start: int, stop: int) -> NDArray[np.float32]:
        """See `Weights.rows`."""
        return self._tensors[name].rows(start, stop)


class SafetensorsWeights:
    """The tensors of one or several safetensors files; float32, float16 and bfloat16 are read."""

    def __init__(self, folder: Path, files: list[Path]) -> None:
        from safetensors import SafetensorError, safe_open

        index = folder / WEIGHTS_INDEX
        if index.is_file():
            named = {folder / name for name in read_json(index).get("weight_map", {}).values()}
            missing = sorted(path.name for path in named if not path.is_file())
            if missing:
                raise BadWeights(f"{folder} lacks {missing[0]}: pull the model again")
            files = sorted(named)
        self._slices: dict[str, Any] = {}
        for path in files:
            try:
                handle: Any = safe_open(str(path), framework="pt")
            except (SafetensorError, OSError) as error:
                raise BadWeights(f"{path} is damaged ({error}): pull the model again") from error
            self._slices |= {name: handle.get_slice(name) for name in handle.keys()}  # noqa: SIM118

    def shape(self, name: str) -> tuple[int, ...] | None:
        """See `Weights.shape`."""
        part = self._slices.get(name)
        return None if part is None else tuple(part.get_shape())

    def rows(self, name: str, start: int, stop: int) -> NDArray[np.float32]:
        """See `Weights.rows`."""
        part = self._slices[name]
        values: NDArray[np.float32] = (part[:] if len(part.get_shape()) == 1 else part[start:stop]).float().numpy()
        return np.atleast_2d(values)
