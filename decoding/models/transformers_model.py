"""TransformersModel: any causal LM of transformers as a target, on CPU, CUDA or MPS.

Knows torch and transformers. Must not know constraints, drafters or prompts. Keys and values live in buffers that
are allocated once; a pass over a tree writes its rows behind the prefix and `keep` moves the accepted ones
together.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM
from transformers.cache_utils import Cache, DynamicLayer

from decoding.draft_tree import DraftTree
from decoding.errors import BadInput, BadWeights, Cancelled
from decoding.models.target import Cancelled as CancelledCheck
from decoding.models.target import KVCache, TreeLogits

PREFILL_CHUNK = 128
"""Tokens between two looks at `cancelled`: 0.3-0.4 s of a 0.5B model in bf16 on two cores."""


_MOST_ROWS = 512
"""A mask is made for every row of a pass; trees are smaller by far."""


class _BufferLayer(DynamicLayer):  # type: ignore[misc]
    """Keys and values of one layer, [1, kv_heads, capacity, head_dim], of which `length` are filled."""

    def __init__(self, capacity: int) -> None:
        super().__init__()
        self.capacity = capacity
        self.length = 0

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        self.dtype, self.device = key_states.dtype, key_states.device
        heads, width, value_width = key_states.shape[1], key_states.shape[3], value_states.shape[3]
        self.keys = torch.zeros((1, heads, self.capacity, width), dtype=self.dtype, device=self.device)
        self.values = torch.zeros((1, heads, self.capacity, value_width), dtype=self.dtype, device=self.device)
        self.is_initialized = True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_args: Any, **_kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        end = self.length + key_states.shape[2]
        self.keys[:, :, self.length : end] = key_states
        self.values[:, :, self.length : end] = value_states
        self.length = end
        return self.keys[:, :, :end], self.values[:, :, :end]

    def get_seq_length(self) -> int:
        return self.length

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.length + query_length, 0


class TensorCache:
    """The KVCache of a TransformersModel."""

    def __init__(self, layers: int, capacity: int) -> None:
        self.cache = Cache(layers=[_BufferLayer(capacity) for _ in range(layers)])
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
        """Record the rows that a pass over a tree wrote; they count once `keep` names them."""
        self._rows = row_token_ids

    def go_on_after(self, row_token_ids: Sequence[int]) -> None:
        """Let the next rows come behind these, which wait for `keep`. Raises ValueError where others do."""
        if self._rows[: len(row_token_ids)] != list(row_token_ids):
            raise ValueError(f"the {len(row_token_ids)} rows that are said to be ready are not those of the last pass")
        self._set_length(len(self._tokens) + len(row_token_ids))

    @torch.inference_mode()
    def keep(self, path: Sequence[int]) -> None:
        """See `KVCache.keep`."""
        start, end = len(self._tokens), len(self._tokens) + len(path)
        if list(path) != list(range(len(path))):
            source = torch.tensor(path) + start
            for layer in self.cache.layers:
                index = source.to(layer.keys.device)
                layer.keys[:, :, start:end] = layer.keys.index_select(2, index)
                layer.values[:, :, start:end] = layer.values.index_select(2, index)
        self._tokens.extend(self._rows[row] for row in path)
        self._rows = []
        self._set_length(end)

    def truncate(self, length: int) -> None:
        """See `KVCache.truncate`."""
        del self._tokens[length:]
        self._rows = []
        self._set_length(len(self._tokens))

    def _set_length(self, length: int) -> None:
        for layer in self.cache.layers:
            layer.length = length


class TransformersModel:
    """A causal LM of transformers behind the TargetModel protocol."""

    def __init__(self, model: Any, *, tokenizer_size: int | None = None) -> None:
        """Wrap a loaded `PreTrainedModel`; logits of ids from `tokenizer_size` on are -inf."""
        self.model = model.eval()
        config = model.config.get_text_config()
        self._layers = int(config.num_hidden_layers)
        self._vocab_size = int(config.vocab_size)
        self._tokenizer_size = min(tokenizer_size or self._vocab_size, self._vocab_size)
        self._max_context = int(getattr(config, "max_position_embeddings", 1 << 20))
        parameters = inspect.signature(model.forward).parameters
        self._cache_argument = "cache" if "cache" in parameters else "past_key_values"

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *,
        device: str = "auto",
        dtype: str = "auto",
        tokenizer_size: int | None = None,
        threads: int = 0,
    ) -> TransformersModel:
        """Load a model folder (or a hub id that is already in the hub's cache).

        bfloat16 is the default on CPU and CUDA, float16 on MPS. Raises BadWeights where transformers cannot use
        the files.
        """
        if threads:
            torch.set_num_threads(threads)
        chosen = pick_device(device)
        if dtype == "auto":
            dtype = "float16" if chosen == "mps" else "bfloat16"
        try:
            model = AutoModelForCausalLM.from_pretrained(str(folder), dtype=getattr(torch, dtype))
        except (OSError, ValueError, KeyError, RuntimeError, ImportError) as error:
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise BadWeights(f"transformers cannot load {folder}: {reason}") from error
        return cls(model.to(chosen), tokenizer_size=tokenizer_size)

    @classmethod
    def from_config(cls, config: Any, *, seed: int = 0, dtype: torch.dtype = torch.float32) -> TransformersModel:
        """A model with random weights: for tests and measurements."""
        generator_state = torch.random.get_rng_state()
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_config(config, dtype=dtype)
        torch.random.set_rng_state(generator_state)
        return cls(model)

    @property
    def vocab_size(self) -> int:
        """V: columns of the logits."""
        return self._vocab_size

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        device: torch.device = next(self.model.parameters()).device
        return device

    @property
    def dtype(self) -> torch.dtype:
        """The floating-point type of the weights."""
        dtype: torch.dtype = next(self.model.parameters()).dtype
        return dtype

    @property
    def runtime(self) -> str:
        """For people."""
        return f"transformers {str(self.dtype).removeprefix('torch.')} {self.device.type}"

    @property
    def max_context(self) -> int:
        """The longest sequence the model was made for."""
        return self._max_context

    @property
    def most_rows(self) -> int:
        """See `TargetModel.most_rows`."""
        return _MOST_ROWS

    def memory_bytes(self) -> int:
        """Bytes of the weights."""
        return sum(parameter.numel() * parameter.element_size() for parameter in self.model.parameters())

    def new_cache(self, capacity: int) -> TensorCache:
        """See `TargetModel.new_cache`."""
        return TensorCache(self._layers, capacity)

    @torch.inference_mode()
    def prefill(self, token_ids: Sequence[int], cache: KVCache, cancelled: CancelledCheck) -> None:
        """See `TargetModel.prefill`."""
        assert isinstance(cache, TensorCache)
        for start in range(0, len(token_ids), PREFILL_CHUNK):
            if cancelled():
                raise Cancelled("prefill became useless")
            chunk = list(token_ids[start : start + PREFILL_CHUNK])
            past, rows = len(cache.token_ids), len(chunk)
            visible = torch.ones((rows, past + rows), dtype=torch.bool).tril(past)
            self._forward(chunk, range(past, past + rows), visible, cache, logits_to_keep=1)
            cache.appended(chunk)

    @torch.inference_mode()
    def forward_tree(self, root: int, tree: DraftTree, cache: KVCache, top_k: int = 8, ready: int = 0) -> TreeLogits:
        """See `TargetModel.forward_tree`."""
        assert isinstance(cache, TensorCache)
        past = len(cache.token_ids)
        tokens = [root, *tree.token_ids.tolist()]
        positions = [past, *(tree.depths() + past).tolist()]
        visible = torch.zeros((len(tokens), past + len(tokens)), dtype=torch.bool)
        visible[:, :past] = True
        for row, parent in enumerate(tree.row_parents().tolist()):
            if parent >= 0:
                visible[row, past:] = visible[parent, past:]
            visible[row, past + row] = True
        cache.go_on_after(tokens[:ready])
        logits = self._forward(tokens[ready:], positions[ready:], visible[ready:], cache, logits_to_keep=0).float()
        logits[:, self._tokenizer_size :] = -torch.inf
        cache.wrote_rows(tokens)
        best = _top(logits, top_k)
        return TreeLogits(logits, *best)

    def _forward(
        self,
        tokens: Sequence[int],
        positions: Sequence[int],
        visible: torch.Tensor,
        cache: TensorCache,
        logits_to_keep: int,
    ) -> torch.Tensor:
        """logits [rows or logits_to_keep, V] of rows that see what `visible` [rows, past + rows] says."""
        mask = torch.zeros(visible.shape, dtype=self.dtype).masked_fill_(~visible, -torch.inf)
        device = self.device
        output = self.model(
            input_ids=torch.tensor([list(tokens)], device=device),
            position_ids=torch.tensor([list(positions)], device=device),
            attention_mask=mask[None, None].to(device),
            use_cache=True,
            logits_to_keep=logits_to_keep,
            **{self._cache_argument: cache.cache},
        )
        logits: torch.Tensor = output.logits[0]
        return logits


def _top(logits: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The k best ids and logits of each row, ties among them to the lower id (torch.topk leaves that open)."""
    values, ids = logits.topk(min(k, logits.shape[1]), dim=1)
    by_id = ids.argsort(dim=1)
    ids, values = ids.gather(1, by_id), values.gather(1, by_id)
    order = values.argsort(dim=1, descending=True, stable=True)
    return ids.gather(1, order).to(torch.int32).cpu(), values.gather(1, order).cpu()


def pick_device(device: str) -> str:
    """`auto` becomes cuda, mps or cpu, whichever is there first. Raises BadInput for a device that is not there."""
    if device != "auto":
        kind = device.partition(":")[0]
        there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
        if not there.get(kind, False):
            usable = ", ".join(name for name, usable in there.items() if usable)
            raise BadInput(f"there is no device {device!r} here: choose auto or one of {usable}")
        return device
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"
