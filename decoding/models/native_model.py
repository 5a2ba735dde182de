"""NativeModel: a LLaMA or Qwen2 target on the CPU whose whole pass is one call into the compiled kernels.

Knows packed weights, the C interface and the TargetModel contract. Must not know drafters, constraints or text.
Each row of a pass is computed from itself, its ancestors and the cache, in one fixed order: its logits have the
same bits whatever other rows are in the pass and however the prompt was cut into chunks.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import psutil
import torch
from numpy.typing import NDArray

from decoding.draft_tree import DraftTree
from decoding.errors import BadWeights, Cancelled, OutOfMemory
from decoding.models.architecture import Architecture, Unsupported
from decoding.models.folder import CONFIG, read_json
from decoding.models.packed_folder import packed_weights
from decoding.models.packing import PackedFile
from decoding.models.target import Cancelled as CancelledCheck
from decoding.models.target import KVCache, TreeLogits
from decoding.models.weights import weight_files
from decoding.native import library as binding

PREFILL_CHUNK = 128
"""Rows of one prefill pass; `cancelled` is asked before every layer of it."""

_MOST_EMBEDDED = 512
"""Rows after which the pages of the embeddings are given back, which takes 0.3 ms."""
_DONE, _CANCELLED, _BAD_ROWS, _NO_ROOM = range(4)


class NativeCache:
    """The KVCache of a NativeModel: keys and values as halves, in memory of the library."""

    def __init__(self, library: ctypes.CDLL, model: int, capacity: int) -> None:
        self.handle: int = library.draftwood_cache_create(model, capacity)
        if not self.handle:
            raise OutOfMemory(f"no memory for a context of {capacity} tokens: choose a shorter context")
        weakref.finalize(self, library.draftwood_cache_destroy, self.handle)
        self._library = library
        self._tokens: list[int] = []
        self._rows: list[int] = []
        self._capacity = capacity

    @property
    def token_ids(self) -> Sequence[int]:
        """The tokens whose keys and values are held."""
        return self._tokens

    @property
    def capacity(self) -> int:
        """Tokens that fit, the rows of a pass included."""
        return self._capacity

    def appended(self, token_ids: Sequence[int]) -> None:
        """Record tokens that a prefill wrote."""
        self._tokens.extend(token_ids)
        self._rows = []

    def wrote_rows(self, row_token_ids: list[int]) -> None:
        """Record the rows that a pass wrote; they count once `keep` names them."""
        self._rows = row_token_ids

    def waiting(self, row_token_ids: Sequence[int]) -> bool:
        """Whether these are the first rows that wait for `keep`."""
        return self._rows[: len(row_token_ids)] == list(row_token_ids)

    def keep(self, path: Sequence[int]) -> None:
        """See `KVCache.keep`. Raises ValueError for rows that the last pass had not, or that do not ascend."""
        if any(not before < row < len(self._rows) for before, row in zip([-1, *path], path, strict=False)):
            raise ValueError(f"path {list(path)} is not an ascending path over {len(self._rows)} rows")
        rows = np.asarray(path, dtype=np.int32)
        self._library.draftwood_cache_keep(self.handle, len(self._tokens), rows.ctypes.data, len(rows))
        self._tokens.extend(self._rows[row] for row in path)
        self._rows = []

    def truncate(self, length: int) -> None:
        """See `KVCache.truncate`."""
        del self._tokens[length:]
        self._rows = []


class NativeModel:
    """int8 weights, mapped from a packed file, behind the TargetModel protocol."""

    def __init__(
        self,
        arch: Architecture,
        packed: PackedFile,
        *,
        tokens: int,
        threads: int = 0,
        isa: str | None = None,
        library: ctypes.CDLL | None = None,
    ) -> None:
        """Run a packed model.

        Args:
            arch: its sizes.
            packed: its weights.
            tokens: ids of the tokenizer; logits of ids from here on are -inf.
            threads: 0 for one per physical core.
            isa: kernels to use instead of the best ones of this machine; for tests.
            library: the compiled kernels, None for the package's own.

        Raises:
            OutOfMemory: no memory for buffers or threads.
        """
        self._library = library or binding.load_library()
        self.architecture, self._packed = arch, packed
        self.tokens = min(tokens, arch.vocab_size)
        weights, self._borrowed = _describe(arch, packed, tokens)
        self.threads = min(threads or physical_cores(), physical_cores())
        name = isa.encode() if isa else None
        self._handle: int = self._library.draftwood_model_create(weights, name, self.threads)
        if not self._handle:
            raise OutOfMemory(f"the native runtime could not start with {self.threads} threads")
        weakref.finalize(self, self._library.draftwood_model_destroy, self._handle)
        self._isa = self._library.draftwood_model_isa(self._handle).decode()
        self._logits = torch.empty((0, arch.padded_vocab), dtype=torch.float32)
        self._embedded = 0  # rows since their pages were given back

    @classmethod
    def supports(cls, folder: Path) -> str | None:
        """Why the model in `folder` cannot be run natively, None where it can."""
        status = binding.native_status()
        if not status.available:
            return status.reason
        try:
            Architecture.from_config(read_json(folder / CONFIG))
        except Unsupported as reason:
            return str(reason)
        except KeyError as missing:
            return f"its configuration lacks {missing}"
        return None if weight_files(folder) else "it has neither GGUF nor safetensors weights"

    @classmethod
    def load(cls, folder: Path, *, threads: int = 0, progress: Callable[[float], None] | None = None) -> NativeModel:
        """Load a model folder; the first time its weights are packed, which `progress` (0..1) follows.

        Raises BadWeights where the weights cannot be used and OutOfMemory where memory ran out.
        """
        try:
            arch = Architecture.from_config(read_json(folder / CONFIG))
        except (Unsupported, KeyError) as reason:
            raise BadWeights(f"the native runtime cannot run {folder.name}: {reason}") from reason
        packed = packed_weights(folder, arch, progress or (lambda _fraction: None))
        return cls(arch, packed, tokens=packed.header["tokens"], threads=threads)

    @property
    def vocab_size(self) -> int:
        """Columns of the logits."""
        return self.architecture.padded_vocab

    @property
    def runtime(self) -> str:
        """For people: "native int8" and the instruction set."""
        return f"native int8 {self._isa}"

    @property
    def max_context(self) -> int:
        """The longest sequence the model was made for."""
        return self.architecture.max_context

    @property
    def most_rows(self) -> int:
        """See `TargetModel.most_rows`."""
        return binding.MAX_ROWS

    def new_cache(self, capacity: int) -> NativeCache:
        """An empty cache for `capacity` tokens; memory is taken as tokens arrive."""
        return NativeCache(self._library, self._handle, capacity)

    def prefill(self, token_ids: Sequence[int], cache: KVCache, cancelled: CancelledCheck) -> None:
        """See `TargetModel.prefill`."""
        own = _own(cache)
        check = binding.CancelCheck(lambda: int(cancelled()))
        for start in range(0, len(token_ids), PREFILL_CHUNK):
            tokens = np.asarray(token_ids[start : start + PREFILL_CHUNK], dtype=np.int32)
            parents = np.arange(-1, len(tokens) - 1, dtype=np.int32)
            self._forward(own, tokens, parents, None, ctypes.cast(check, ctypes.c_void_p))
            own.appended(tokens.tolist())

    def forward_tree(self, root: int, tree: DraftTree, cache: KVCache, top_k: int = 8, ready: int = 0) -> TreeLogits:
        """See `TargetModel.forward_tree`; the logits are overwritten by the next pass."""
        if not 1 <= top_k <= binding.MAX_TOP:
            raise ValueError(f"top_k is 1 to {binding.MAX_TOP}, not {top_k}")
        own = _own(cache)
        tokens = np.concatenate([np.array([root], np.int32), tree.token_ids.astype(np.int32, copy=False)])
        count = len(tokens) - ready
        if ready and not own.waiting(tokens[:ready].tolist()):
            raise ValueError(f"the {ready} rows that are said to be ready are not those of the last pass")
        if len(self._logits) < count:
            self._logits = torch.empty((count, self.vocab_size), dtype=torch.float32)
        top_ids = torch.empty((count, top_k), dtype=torch.int32)
        top_logits = torch.empty((count, top_k), dtype=torch.float32)
        scores = binding.Scores(self._logits.data_ptr(), top_ids.data_ptr(), top_logits.data_ptr(), top_k)
        self._forward(own, tokens, tree.row_parents(), scores, None, ready)
        own.wrote_rows(tokens.tolist())
        return TreeLogits(self._logits[:count], top_ids, top_logits)

    def _forward(
        self,
        cache: NativeCache,
        tokens: NDArray[np.int32],
        parents: NDArray[np.int32],
        scores: binding.Scores | None,
        check: ctypes.c_void_p | None,
        ready: int = 0,
    ) -> None:
        parents = np.ascontiguousarray(parents, dtype=np.int32)
        rows = binding.Rows(tokens.ctypes.data, parents.ctypes.data, len(tokens), ready)
        length = len(cache.token_ids)
        self._embedded += len(tokens)
        if self._embedded > _MOST_EMBEDDED:
            self._packed.let_go()
            self._embedded = 0
        status = self._library.draftwood_forward(self._handle, cache.handle, length, rows, scores, check)
        if status == _CANCELLED:
            raise Cancelled("prefill stopped")
        if status == _NO_ROOM:
            raise ValueError(f"{length} + {len(tokens)} tokens do not fit into a cache of {cache.capacity}")
        if status == _BAD_ROWS:
            raise ValueError(
                f"a pass takes 1 to {binding.MAX_ROWS} rows of known tokens, parents first, not all of them ready"
            )
        if status != _DONE:
            raise OutOfMemory("memory ran out in a pass: choose a shorter context or a smaller model")


def physical_cores() -> int:
    """Physical cores that this process may use."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(psutil.cpu_count(logical=False) or usable, usable))


def _own(cache: KVCache) -> NativeCache:
    if not isinstance(cache, NativeCache):
        raise TypeError(f"a {type(cache).__name__} belongs to another runtime")
    return cache


def _describe(
    arch: Architecture, packed: PackedFile, tokens: int
) -> tuple[binding.ModelWeights, tuple[NDArray[np.float32], ctypes.Array[binding.LayerWeights]]]:
    """The C description of the weights, and what has to stay alive beside the packed file while it is used."""

    def address(name: str) -> int:
        return int(packed.tensor(name).ctypes.data)

    def matrix(name: str) -> binding.Matrix:
        tiles, steps = packed.tensor(f"{name}.weights").shape[:2]
        bias = address(f"{name}.bias") if f"{name}.bias" in packed else None
        groups = packed.tensor(f"{name}.scales").shape[1]
        return binding.Matrix(
            address(f"{name}.weights"), address(f"{name}.scales"), bias, steps * 4, tiles * 16, groups
        )

    layers = (binding.LayerWeights * arch.layers)()
    for index in range(arch.layers):
        prefix = f"layers.{index}"
        layers[index] = binding.LayerWeights(
            address(f"{prefix}.attention_norm"),
            address(f"{prefix}.feed_norm"),
            *(matrix(f"{prefix}.{name}") for name in ("qkv", "attention_output", "gate_up", "down")),
        )
    rotary = np.asarray(arch.rotary, dtype=np.float32)
    weights = binding.ModelWeights(
        arch.padded_vocab,
        min(tokens, arch.vocab_size),
        arch.hidden_size,
        arch.layers,
        arch.heads,
        arch.kv_heads,
        arch.head_dim,
        arch.feed_size,
        arch.norm_eps,
        rotary.ctypes.data,
        address("final_norm"),
        layers,
        matrix("head" if arch.tied else "embedding"),
        matrix("head"),
    )
    return weights, (rotary, layers)
