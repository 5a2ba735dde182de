"""Packing: the weights of a model as one int8 file in the layout of the kernels, made once and mapped ever after.

Knows the layout of `decoding/native/kernels.h` and the file's own header. Must not know threads or passes.

File: 8 bytes of magic, the header's length as uint64, a JSON header, then tensors at multiples of 64 bytes. The
header names the source files by size and time: where they changed, the file is packed again.
"""

from __future__ import annotations

import json
import mmap
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from decoding.errors import BadWeights
from decoding.models.architecture import GROUP, Architecture
from decoding.models.weights import Weights

Progress = Callable[[float], None]

MAGIC = b"DRFTPACK"
FORMAT = 3
"""Raised whenever the layout of the file or of a tensor changes."""
PACKED_NAME = "native-int8.pack"
TILE = 16
_ALIGN = 64
_SLAB = 2048
"""Rows that are converted at a time: 15 MB of float32 for a 1.5B model, 128 MB for its down projections."""


@dataclass(frozen=True, slots=True)
class LinearSpec:
    """One linear layer to be packed.

    Attributes:
        name: its prefix in the packed file.
        parts: hub names without ".weight", stacked along the outputs.
        outputs: rows of each part.
        inputs: columns.
        interleave: take the parts in turns of 64 rows (gate and up) instead of one after the other.
        scale_groups: scales per output: 1, or one for every 64 inputs.
        padded: total outputs, zero rows included.
    """

    name: str
    parts: tuple[str, ...]
    outputs: tuple[int, ...]
    inputs: int
    padded: int
    interleave: bool = False
    scale_groups: int = 1


def linear_specs(arch: Architecture) -> Iterator[LinearSpec]:
    """Every linear layer of the model, the embedding (unless tied) and the head."""
    queries, keys = arch.heads * arch.head_dim, arch.kv_heads * arch.head_dim
    hidden, feed = arch.hidden_size, arch.feed_size
    vocab = ((arch.vocab_size,), hidden, arch.padded_vocab)
    for layer in range(arch.layers):
        prefix, hub = f"layers.{layer}", f"model.layers.{layer}"
        names = tuple(f"{hub}.self_attn.{part}_proj" for part in "qkv")
        yield LinearSpec(f"{prefix}.qkv", names, (queries, keys, keys), hidden, queries + 2 * keys)
        yield LinearSpec(f"{prefix}.attention_output", (f"{hub}.self_attn.o_proj",), (hidden,), queries, hidden)
        names = (f"{hub}.mlp.gate_proj", f"{hub}.mlp.up_proj")
        yield LinearSpec(f"{prefix}.gate_up", names, (feed, feed), hidden, 2 * feed, interleave=True)
        # The one layer whose outliers lie among its inputs: a scale for every 64 of them takes the divergence from
        # float32 from 0.0021 to 0.0017 for 1.3% more bytes; in all layers it would be 0.0011 for 6%.
        names = (f"{hub}.mlp.down_proj",)
        yield LinearSpec(f"{prefix}.down", names, (hidden,), feed, hidden, scale_groups=feed // GROUP)
    yield LinearSpec("head", ("model.embed_tokens" if arch.tied else "lm_head",), *vocab)
    if not arch.tied:  # last: single rows of it are read, so it stays in the file (see PackedFile)
        yield LinearSpec("embedding", ("model.embed_tokens",), *vocab, scale_groups=hidden // GROUP)


def norm_names(arch: Architecture) -> dict[str, str]:
    """Packed name -> hub name of every normalisation weight."""
    names = {"final_norm": "model.norm.weight"}
    for layer in range(arch.layers):
        names[f"layers.{layer}.attention_norm"] = f"model.layers.{layer}.input_layernorm.weight"
        names[f"layers.{layer}.feed_norm"] = f"model.layers.{layer}.post_attention_layernorm.weight"
    return names


def quantise_tiles(rows: NDArray[np.float32], scale_groups: int) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Round rows to int8 with a scale per output and group, in tiles of 16 outputs.

    Args:
        rows: float32[outputs, inputs], outputs a multiple of 16.
        scale_groups: 1 or inputs / 64.

    Returns:
        uint8[outputs / 16, inputs / 4, 16, 4] (value + 128) and float32[outputs / 16, scale_groups, 16].
    """
    outputs, inputs = rows.shape
    grouped = rows.reshape(outputs, scale_groups, inputs // scale_groups)
    scales = np.abs(grouped).max(axis=2) / np.float32(127)
    inverse = np.divide(np.float32(1), scales, out=np.zeros_like(scales), where=scales > 0)
    values = np.rint(grouped * inverse[:, :, None]).clip(-127, 127) + np.float32(128)
    tiles = values.astype(np.uint8).reshape(outputs // TILE, TILE, inputs // 4, 4).transpose(0, 2, 1, 3)
    return np.ascontiguousarray(tiles), np.ascontiguousarray(
        scales.reshape(outputs // TILE, TILE, scale_groups).transpose(0, 2, 1)
    )


def pack(weights: Weights, arch: Architecture, header: dict[str, Any], target: Path, progress: Progress) -> None:
    """Quantise tensor by tensor into a file that takes its name only when it is complete.

    Raises BadWeights where a tensor is missing, has another shape than the configuration says, or holds values
    that are not finite.
    """
    specs = list(linear_specs(arch))
    tensors = _tensor_table(weights, arch, specs)
    encoded = json.dumps(header | {"format": FORMAT, "tensors": tensors}).encode()
    base = _aligned(len(MAGIC) + 8 + len(encoded))
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=target.name, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(MAGIC + len(encoded).to_bytes(8, "little") + encoded)
            for name, hub in norm_names(arch).items():
                _write(file, base, tensors[name], _vector(weights, hub, arch.hidden_size))
            done, total = 0, sum(spec.padded * spec.inputs for spec in specs)
            for spec in specs:
                _pack_linear(weights, spec, file, base, tensors)
                done += spec.padded * spec.inputs
                progress(done / total)
            file.truncate(base + tensors["end"]["offset"])
        os.chmod(temporary, 0o644)  # mkstemp's 0600 would keep other users of a shared folder out
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def _tensor_table(weights: Weights, arch: Architecture, specs: list[LinearSpec]) -> dict[str, dict[str, Any]]:
    """Name -> offset (from the end of the header), dtype and shape of everything that will be written."""
    table: dict[str, dict[str, Any]] = {}
    end = 0

    def add(name: str, dtype: str, *shape: int) -> None:
        nonlocal end
        table[name] = {"offset": end, "dtype": dtype, "shape": shape}
        end = _aligned(end + int(np.prod(shape)) * np.dtype(dtype).itemsize)

    for name in norm_names(arch):
        add(name, "float32", arch.hidden_size)
    for spec in specs:
        for part, outputs in zip(spec.parts, spec.outputs, strict=True):
            _check_shape(weights, f"{part}.weight", (outputs, spec.inputs))
        add(f"{spec.name}.weights", "uint8", spec.padded // TILE, spec.inputs // 4, TILE, 4)
        add(f"{spec.name}.scales", "float32", spec.padded // TILE, spec.scale_groups, TILE)
        if any(weights.shape(f"{part}.bias") for part in spec.parts):
            add(f"{spec.name}.bias", "float32", spec.padded)
    add("end", "uint8", 0)
    return table


def _pack_linear(
    weights: Weights, spec: LinearSpec, file: BinaryIO, base: int, tensors: dict[str, dict[str, Any]]
) -> None:
    at = 0
    packed, scales = tensors[f"{spec.name}.weights"], tensors[f"{spec.name}.scales"]
    for rows in _row_slabs(weights, spec):
        if not np.isfinite(rows).all():
            raise BadWeights(f"{spec.parts[0]} holds values that are not finite: remove the model and pull it again")
        tiles, tile_scales = quantise_tiles(rows, spec.scale_groups)
        _write(file, base, packed, tiles, at * spec.inputs)
        _write(file, base, scales, tile_scales, at * spec.scale_groups * 4)
        at += len(rows)
    if f"{spec.name}.bias" in tensors:
        parts = [
            _vector(weights, f"{part}.bias", outputs)
            if weights.shape(f"{part}.bias")
            else np.zeros(outputs, np.float32)
            for part, outputs in zip(spec.parts, spec.outputs, strict=True)
        ]
        _write(file, base, tensors[f"{spec.name}.bias"], np.concatenate(parts))


def _row_slabs(weights: Weights, spec: LinearSpec) -> Iterator[NDArray[np.float32]]:
    """The rows of a layer in packed order, a multiple of 16 at a time, zero rows at the end where padded."""
    if spec.interleave:
        for start in range(0, spec.outputs[0], _SLAB // 2):
            stop = min(start + _SLAB // 2, spec.outputs[0])
            parts = [weights.rows(f"{part}.weight", start, stop) for part in spec.parts]
            blocks = [part.reshape(-1, 1, GROUP, spec.inputs) for part in parts]
            yield np.concatenate(blocks, axis=1).reshape(-1, spec.inputs)
        return
    written = 0
    for part, outputs in zip(spec.parts, spec.outputs, strict=True):
        for start in range(0, outputs, _SLAB):
            rows = weights.rows(f"{part}.weight", start, min(start + _SLAB, outputs))
            if len(rows) % TILE:
                rows = np.pad(rows, ((0, TILE - len(rows) % TILE), (0, 0)))
            written += len(rows)
            yield rows
    if written != spec.padded:
        raise BadWeights(f"{spec.name}: {written} rows instead of {spec.padded}")


def _vector(weights: Weights, name: str, size: int) -> NDArray[np.float32]:
    _check_shape(weights, name, (size,))
    values = np.ascontiguousarray(weights.rows(name, 0, 1).reshape(-1))
    if not np.isfinite(values).all():
        raise BadWeights(f"{name} holds values that are not finite: remove the model and pull it again")
    return values


def _check_shape(weights: Weights, name: str, expected: tuple[int, ...]) -> None:
    shape = weights.shape(name)
    if shape is None:
        raise BadWeights(f"the weights lack {name}: remove the model and pull it again")
    if shape != expected:
        raise BadWeights(f"{name} has shape {list(shape)} where the configuration says {list(expected)}")


def _write(file: BinaryIO, base: int, entry: dict[str, Any], values: NDArray[Any], skip: int = 0) -> None:
    file.seek(base + entry["offset"] + skip)
    file.write(values.tobytes())


def _aligned(size: int) -> int:
    return (size + _ALIGN - 1) // _ALIGN * _ALIGN


class PackedFile:
    """A packed file, read-only.

    Where the system has huge pages, what every pass streams is read into them: 62 instead of 34 GB/s on a virtual
    machine with nested page tables, where a 4 KiB page costs a long walk. The rest, and everything elsewhere, is
    mapped: the system loads what is used and may drop it again.
    """

    def __init__(self, path: Path) -> None:
        """Map `path`. Raises BadWeights where it is of another format or cut short."""
        with path.open("rb") as file:
            start = file.read(len(MAGIC) + 8)
            length = int.from_bytes(start[len(MAGIC) :], "little")
            size = os.fstat(file.fileno()).st_size
            if start[: len(MAGIC)] != MAGIC or not 0 < length < size:
                raise BadWeights(f"{path} is not a packed model")
            try:
                self.header: dict[str, Any] = json.loads(file.read(length))
            except ValueError as error:
                raise BadWeights(f"{path} is damaged") from error
            if self.header.get("format") != FORMAT:
                raise BadWeights(f"{path} has format {self.header.get('format')}, not {FORMAT}")
            self._base = _aligned(len(MAGIC) + 8 + length)
            self._tensors: dict[str, dict[str, Any]] = self.header["tensors"]
            if size != self._base + self._tensors["end"]["offset"]:
                raise BadWeights(f"{path} is cut short")
            self._mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            self._bytes = np.frombuffer(self._mapping, dtype=np.uint8)
            mapped = self._tensors.get("embedding.weights", self._tensors["end"])
            self._resident = _read_into_huge_pages(file, self._base + mapped["offset"])

    @property
    def nbytes(self) -> int:
        """Size of the file in bytes."""
        return len(self._bytes)

    def let_go(self) -> None:
        """Give the pages of single rows that were read back to the system, which keeps them in its file cache; else a
        process grows with every token that it meets for the first time, by the 64 KiB around its row."""
        start = -(-len(self._resident) // mmap.PAGESIZE) * mmap.PAGESIZE
        if len(self._resident) and start < self.nbytes and hasattr(mmap, "MADV_DONTNEED"):
            self._mapping.madvise(mmap.MADV_DONTNEED, start, self.nbytes - start)

    def __contains__(self, name: str) -> bool:
        return name in self._tensors

    def tensor(self, name: str) -> NDArray[Any]:
        """A view of one tensor."""
        entry = self._tensors[name]
        dtype, shape = np.dtype(entry["dtype"]), tuple(entry["shape"])
        start = self._base + entry["offset"]
        end = start + int(np.prod(shape)) * dtype.itemsize
        memory = self._resident if end <= len(self._resident) else self._bytes
        view: NDArray[Any] = memory[start:end].view(dtype)
        return view.reshape(shape)


def _read_into_huge_pages(file: BufferedReader, size: int) -> NDArray[np.uint8]:
    """uint8[size]: the beginning of a file in memory of huge pages; empty where the system has none."""
    setting = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if not hasattr(mmap, "MADV_HUGEPAGE") or not setting.is_file() or "[never]" in setting.read_text():
        return np.empty(0, np.uint8)
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE)
    file.seek(0)
    if file.readinto(memory) != size:
        raise BadWeights(f"{file.name} is cut short")
    return np.frombuffer(memory, dtype=np.uint8)
