"""NativeModel on small random models: right against float64, and the same bits however a pass is made up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file
from safetensors.torch import save_file as save_torch_file

from decoding.draft_tree import DraftTree
from decoding.errors import BadWeights, Cancelled
from decoding.models.native_model import NativeModel
from decoding.models.packed_folder import packed_path, packed_weights
from decoding.native.library import load_library, native_status
from tests.decoding.native.tiny_models import (
    LLAMA,
    QWEN2,
    VOCAB,
    make_config,
    make_folder,
    make_tensors,
    reference_logits,
)

pytestmark = pytest.mark.skipif(not native_status().available, reason=native_status().reason)

KINDS = {"llama": LLAMA, "qwen2": QWEN2}


def never() -> bool:
    return False


@pytest.fixture(scope="module", params=list(KINDS))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def folder(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_folder(tmp_path_factory.mktemp("native") / kind, make_config(KINDS[kind]))


@pytest.fixture(scope="module")
def model(folder: Path) -> NativeModel:
    return NativeModel.load(folder, threads=2)


def chain(tokens: list[int]) -> DraftTree:
    return DraftTree.from_lists(tokens, list(range(-1, len(tokens) - 1)), [0.0] * len(tokens))


@st.composite
def trees(draw: st.DrawFn) -> DraftTree:
    size = draw(st.integers(0, 63))
    reach = draw(st.integers(1, 8))
    parents = [draw(st.integers(max(-1, node - reach), node - 1)) for node in range(size)]
    tokens = draw(st.lists(st.integers(0, VOCAB - 1), min_size=size, max_size=size))
    return DraftTree.from_lists(tokens, parents, [0.0] * size)


def one_at_a_time(model: NativeModel, prompt: list[int], path: list[int], chunk: int) -> torch.Tensor:
    """Logits after the last token of `path`, decoded plainly after a prompt that was prefilled in chunks."""
    cache = model.new_cache(len(prompt) + len(path) + 1)
    for start in range(0, len(prompt), chunk):
        model.prefill(prompt[start : start + chunk], cache, never)
    for token in path:
        logits = model.forward_tree(token, DraftTree.empty(), cache).logits
        cache.keep([0])
    return logits[0].clone()


def test_agrees_with_float64(kind: str, folder: Path, model: NativeModel) -> None:
    config = make_config(KINDS[kind])
    tokens = np.random.default_rng(1).integers(0, VOCAB, 200).tolist()
    exact = reference_logits(config, make_tensors(config), tokens)[-40:]
    cache = model.new_cache(256)
    model.prefill(tokens[:160], cache, never)
    found = model.forward_tree(tokens[160], chain(tokens[161:]), cache).logits[:, :VOCAB].numpy()
    error = np.abs(found - exact).max(axis=1) / exact.std(axis=1)
    assert error.max() < 0.5  # int8 noise; a wrong rotation, bias or head assignment gives several
    assert np.mean((found - exact) ** 2) < 0.01 * exact.var()


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_a_row_has_the_bits_of_plain_decoding(model: NativeModel, data: st.DataObject) -> None:
    prompt = data.draw(st.lists(st.integers(0, VOCAB - 1), max_size=300), "prompt")
    tree = data.draw(trees(), "tree")
    cache = model.new_cache(len(prompt) + 65)
    model.prefill(prompt, cache, never)
    found = model.forward_tree(3, tree, cache).logits.clone()
    row = data.draw(st.integers(0, len(tree)), "row")
    parents, path = tree.row_parents().tolist(), []
    while row >= 0:
        path.insert(0, row)
        row = parents[row]
    tokens = [3, *tree.token_ids.tolist()]
    plain = one_at_a_time(model, prompt, [tokens[at] for at in path], data.draw(st.integers(1, 130), "chunk"))
    assert torch.equal(plain, found[path[-1]])
    cache.keep(path)
    after = model.forward_tree(5, DraftTree.empty(), cache).logits[0]
    assert torch.equal(after, one_at_a_time(model, prompt, [*(tokens[at] for at in path), 5], 64))


@pytest.mark.parametrize("rows", range(1, 65))
def test_every_row_count_gives_the_same_bits(model: NativeModel, rows: int) -> None:
    tokens = np.random.default_rng(rows).integers(0, VOCAB, 64).tolist()
    cache = model.new_cache(200)
    model.prefill(list(range(100)), cache, never)
    whole = model.forward_tree(tokens[0], chain(tokens[1:]), cache).logits.clone()
    assert torch.equal(model.forward_tree(tokens[0], chain(tokens[1:rows]), cache).logits, whole[:rows])


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_and_caches_do_not_change_results(folder: Path, model: NativeModel, threads: int) -> None:
    other = NativeModel.load(folder, threads=threads)
    prompt = list(range(140))
    first, second = other.new_cache(300), other.new_cache(200)
    other.prefill(prompt, first, never)
    other.prefill(prompt[::-1], second, never)
    found = other.forward_tree(9, chain([8, 7]), first).logits.clone()
    cache = model.new_cache(150)
    model.prefill(prompt, cache, never)
    assert torch.equal(found, model.forward_tree(9, chain([8, 7]), cache).logits)


def test_top_ids_are_the_best_logits(model: NativeModel) -> None:
    cache = model.new_cache(64)
    result = model.forward_tree(1, chain([4, 5, 6]), cache, top_k=9)
    expected = torch.topk(result.logits, 9, dim=1)
    assert torch.equal(result.top_logits, expected.values)
    assert torch.equal(result.top_ids.long(), expected.indices)


def test_truncating_is_as_if_never_seen(model: NativeModel) -> None:
    cache = model.new_cache(300)
    model.prefill([*range(100), *[7] * 60], cache, never)
    cache.truncate(100)
    assert list(cache.token_ids) == list(range(100))
    fresh = model.new_cache(300)
    model.prefill(list(range(100)), fresh, never)
    again = model.forward_tree(2, chain([3]), cache).logits.clone()
    assert torch.equal(again, model.forward_tree(2, chain([3]), fresh).logits)


def test_prefill_stops_when_it_became_useless(model: NativeModel) -> None:
    calls = 0

    def cancelled() -> bool:
        nonlocal calls
        calls += 1
        return calls > 3  # two layers of the first chunk, one of the second

    cache = model.new_cache(512)
    with pytest.raises(Cancelled):
        model.prefill([1] * 400, cache, cancelled)
    assert 0 < len(cache.token_ids) < 400
    kept = len(cache.token_ids)
    fresh = model.new_cache(512)
    model.prefill([1] * kept, fresh, never)
    found = model.forward_tree(2, DraftTree.empty(), cache).logits.clone()
    assert torch.equal(found, model.forward_tree(2, DraftTree.empty(), fresh).logits)


def test_a_full_cache_and_unknown_tokens_are_refused(model: NativeModel) -> None:
    cache = model.new_cache(16)
    with pytest.raises(ValueError, match="do not fit"):
        model.prefill(list(range(17)), cache, never)
    with pytest.raises(ValueError, match="known tokens"):
        model.forward_tree(100_000, DraftTree.empty(), cache)
    model.forward_tree(1, chain([2]), cache)
    with pytest.raises(ValueError, match="ascending path"):
        cache.keep([1, 0])


def test_ids_beyond_the_tokenizer_are_never_best(tmp_path: Path) -> None:
    folder = make_folder(tmp_path, make_config(LLAMA))
    vocab = {f"t{i}": i for i in range(100)}
    (folder / "tokenizer.json").write_text(json.dumps({"model": {"vocab": vocab}, "added_tokens": [{"id": 119}]}))
    model = NativeModel.load(folder)
    logits = model.forward_tree(1, DraftTree.empty(), model.new_cache(8)).logits[0]
    assert torch.isfinite(logits[:120]).all()
    assert torch.isneginf(logits[120:]).all()


def test_weights_in_bfloat16_are_read(tmp_path: Path) -> None:
    config = make_config(QWEN2)
    tensors = {name: torch.from_numpy(tensor).bfloat16() for name, tensor in make_tensors(config).items()}
    (tmp_path / "config.json").write_text(json.dumps(config))
    save_torch_file(tensors, tmp_path / "model.safetensors")
    rounded = {name: tensor.float().numpy() for name, tensor in tensors.items()}
    exact = reference_logits(config, rounded, [5, 6, 7])[-1]
    model = NativeModel.load(tmp_path)
    found = one_at_a_time(model, [], [5, 6, 7], 1)[:VOCAB].numpy()
    assert np.abs(found - exact).max() < 0.5 * exact.std()


class TestBadWeights:
    """What cannot be used is refused in one line, and never left behind as a packed file."""

    def refused(self, folder: Path, words: str) -> None:
        with pytest.raises(BadWeights, match=words) as caught:
            NativeModel.load(folder)
        assert "\n" not in str(caught.value)
        assert not list(folder.glob("*pack*"))

    def test_a_value_that_is_not_finite(self, tmp_path: Path) -> None:
        config = make_config(LLAMA)
        tensors = make_tensors(config)
        tensors["model.layers.1.mlp.down_proj.weight"][3, 5] = np.nan
        self.refused(make_folder(tmp_path, config, tensors), "not finite")

    def test_a_wrong_shape(self, tmp_path: Path) -> None:
        config = make_config(LLAMA)
        tensors = make_tensors(config)
        tensors["model.layers.0.self_attn.k_proj.weight"] = np.zeros((64, 256), np.float32)
        self.refused(make_folder(tmp_path, config, tensors), "shape")

    def test_a_missing_tensor(self, tmp_path: Path) -> None:
        config = make_config(QWEN2)
        tensors = make_tensors(config)
        del tensors["lm_head.weight"]
        self.refused(make_folder(tmp_path, config, tensors), "lack lm_head.weight")

    def test_a_truncated_file(self, tmp_path: Path) -> None:
        folder = make_folder(tmp_path, make_config(LLAMA))
        whole = (folder / "model.safetensors").read_bytes()
        (folder / "model.safetensors").write_bytes(whole[: len(whole) // 2])
        self.refused(folder, "damaged")

    def test_an_unknown_architecture(self, tmp_path: Path) -> None:
        folder = make_folder(tmp_path, make_config(LLAMA, model_type="mamba"))
        assert "mamba" in str(NativeModel.supports(folder))
        self.refused(folder, "mamba")

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"hidden_act": "gelu"}, "gelu"),
            ({"use_sliding_window": True}, "sliding"),
            ({"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}, "yarn"),
            ({"intermediate_size": 300}, "multiple of 64"),
        ],
    )
    def test_what_the_kernels_lack(self, tmp_path: Path, change: dict[str, Any], words: str) -> None:
        folder = make_folder(tmp_path, make_config(LLAMA))
        (folder / "config.json").write_text(json.dumps(make_config(LLAMA) | change))
        assert words in str(NativeModel.supports(folder))

    def test_a_folder_without_weights(self, tmp_path: Path) -> None:
        folder = make_folder(tmp_path, make_config(LLAMA))
        (folder / "model.safetensors").unlink()
        assert NativeModel.supports(folder) is not None
        self.refused(folder, "neither")


class TestPackedFile:
    """Made once, used ever after, made again when it is not right any more."""

    def test_a_second_load_packs_nothing(self, folder: Path, model: NativeModel) -> None:
        fractions: list[float] = []
        NativeModel.load(folder, progress=fractions.append)
        assert fractions == []

    def test_changed_weights_are_packed_again(self, tmp_path: Path) -> None:
        config = make_config(LLAMA)
        before = one_at_a_time(NativeModel.load(make_folder(tmp_path, config)), [], [1], 1)
        save_file(make_tensors(config, seed=9), tmp_path / "model.safetensors")
        fractions: list[float] = []
        after = one_at_a_time(NativeModel.load(tmp_path, progress=fractions.append), [], [1], 1)
        assert fractions[-1] == 1.0
        assert not torch.equal(before, after)

    @pytest.mark.parametrize("damage", ["cut", "header", "other"])
    def test_a_damaged_packed_file_is_made_again(self, tmp_path: Path, damage: str) -> None:
        folder = make_folder(tmp_path, make_config(QWEN2))
        before = one_at_a_time(NativeModel.load(folder), [], [1], 1)
        path = packed_path(folder)
        whole = path.read_bytes()
        path.write_bytes({"cut": whole[:-100], "header": whole[:40], "other": b"x" * 500}[damage])
        assert torch.equal(before, one_at_a_time(NativeModel.load(folder), [], [1], 1))

    def test_a_folder_that_cannot_be_written_to(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        folder = make_folder(tmp_path / "model", make_config(LLAMA))
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        monkeypatch.setattr(os, "access", lambda *_args: False)
        NativeModel.load(folder)
        assert [path.name for path in (tmp_path / "cache").rglob("*.pack")] == [packed_path(folder).name]
        assert not list(folder.glob("*.pack"))


def test_kernels_of_every_instruction_set_agree(folder: Path, model: NativeModel) -> None:
    packed = packed_weights(folder, model.architecture, lambda _fraction: None)
    names = [model.runtime.split()[-1], "portable"]
    tokens = list(range(1, 60))
    found = []
    for name in names:
        other = NativeModel(model.architecture, packed, tokens=VOCAB, threads=2, isa=name)
        assert other.runtime.endswith(name)
        found.append(one_at_a_time(other, tokens, [3], 16)[:VOCAB].numpy())
    assert np.abs(found[0] - found[1]).max() < 0.05 * found[0].std()  # rounding of a few activations


def test_a_missing_library_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"absent\.so") as caught:
        load_library(tmp_path / "absent.so")
    assert "\n" not in str(caught.value)


def test_no_processor_time_is_used_between_requests(folder: Path) -> None:
    script = (
        "import sys, time\nfrom pathlib import Path\nfrom decoding.draft_tree import DraftTree\n"
        "from decoding.models.native_model import NativeModel\n"
        "model = NativeModel.load(Path(sys.argv[1]), threads=2)\ncache = model.new_cache(64)\n"
        "model.forward_tree(1, DraftTree.empty(), cache)\n"
        "before = time.process_time()\ntime.sleep(1.0)\nprint(time.process_time() - before)\n"
    )
    result = subprocess.run([sys.executable, "-c", script, str(folder)], capture_output=True, text=True, check=True)
    assert float(result.stdout) < 0.005  # seconds of all threads in one second


def test_memory_stays_flat(model: NativeModel) -> None:
    import psutil

    def some_requests() -> int:
        for _ in range(50):
            cache = model.new_cache(400)
            model.prefill([1] * 200, cache, never)
            model.forward_tree(1, chain([2] * 20), cache)
        return int(psutil.Process().memory_info().rss)

    some_requests()
    before = some_requests()
    assert some_requests() - before < 4 << 20

    def test_rows_that_were_let_go_are_read_again(self, folder: Path, model: NativeModel) -> None:
        packed = packed_weights(folder, model.architecture, lambda _fraction: None)
        before = {name: packed.tensor(name).copy() for name in packed.header["tensors"] if name != "end"}
        packed.let_go()
        assert before
        assert all((packed.tensor(name) == values).all() for name, values in before.items())
