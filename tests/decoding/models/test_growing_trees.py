"""A tree that grows from pass to pass: the rows of the passes before count as they would in one pass."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from decoding.draft_tree import DraftTree
from decoding.models.native_model import NativeModel
from decoding.models.target import TargetModel
from decoding.native.library import native_status
from tests.decoding.fakes import VOCAB, tiny_model
from tests.decoding.native.tiny_models import QWEN2, make_config, make_folder

tokens = st.integers(0, VOCAB - 1)
_CLOSE = 1e-4
"""Attention weights are float32 in transformers, whatever the model is."""


@pytest.fixture(scope="module", params=["native", "transformers"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> TargetModel:
    if request.param == "transformers":
        return tiny_model()
    if not native_status().available:
        pytest.skip(native_status().reason)
    folder = make_folder(tmp_path_factory.mktemp("growing") / "qwen2", make_config(QWEN2))
    return NativeModel.load(folder, threads=2)


@st.composite
def trees(draw: st.DrawFn) -> DraftTree:
    size = draw(st.integers(1, 30))
    parents = [draw(st.integers(-1, node - 1)) for node in range(size)]
    return DraftTree.from_lists(draw(st.lists(tokens, min_size=size, max_size=size)), parents, [0.0] * size)


def first(tree: DraftTree, count: int) -> DraftTree:
    return DraftTree(tree.token_ids[:count], tree.parents[:count], tree.log_probs[:count])


def prefilled(model: TargetModel, prompt: list[int]) -> Any:
    cache = model.new_cache(len(prompt) + 40)
    model.prefill(prompt, cache, lambda: False)
    return cache


def path_to(tree: DraftTree, row: int) -> list[int]:
    parents, path = tree.row_parents().tolist(), []
    while row >= 0:
        path.insert(0, row)
        row = parents[row]
    return path


@settings(max_examples=30, deadline=None)
@given(prompt=st.lists(tokens, min_size=1, max_size=40), tree=trees(), data=st.data())
def test_passes_that_go_on_give_what_one_pass_gives(
    model: TargetModel, prompt: list[int], tree: DraftTree, data: st.DataObject
) -> None:
    at_once, step_by_step = prefilled(model, prompt), prefilled(model, prompt)
    whole = model.forward_tree(3, tree, at_once).logits.clone()
    cuts = sorted(data.draw(st.sets(st.integers(1, len(tree)), max_size=4), "cuts"))
    found: list[torch.Tensor] = []
    for begin, end in zip([0, *cuts], [*cuts, len(tree) + 1], strict=True):
        scored = model.forward_tree(3, first(tree, end - 1), step_by_step, ready=begin)
        assert len(scored.logits) == len(scored.top_ids) == end - begin
        found.append(scored.logits.clone())
    assert torch.allclose(torch.cat(found), whole, atol=_CLOSE)
    if isinstance(model, NativeModel):
        assert torch.equal(torch.cat(found), whole), "to the bit"
    kept = path_to(tree, data.draw(st.integers(0, len(tree)), "row"))
    for cache in (at_once, step_by_step):
        cache.keep(kept)
    after = [model.forward_tree(5, DraftTree.empty(), cache).logits.clone() for cache in (at_once, step_by_step)]
    assert torch.allclose(*after, atol=_CLOSE)


def test_rows_that_are_not_there_cannot_be_ready(model: TargetModel) -> None:
    tree = DraftTree.from_lists([1, 2], [-1, 0], [0.0, 0.0])
    cache = prefilled(model, [4, 5])
    with pytest.raises(ValueError, match="ready"):
        model.forward_tree(3, tree, cache, ready=1)
    model.forward_tree(3, first(tree, 1), cache)
    with pytest.raises(ValueError, match="ready"):
        model.forward_tree(6, tree, cache, ready=2)
    assert len(model.forward_tree(3, tree, cache, ready=2).logits) == 1
    cache.keep([0, 1, 2])
    assert list(cache.token_ids) == [4, 5, 3, 1, 2]
    with pytest.raises(ValueError, match="ready"):
        model.forward_tree(3, tree, cache, ready=2)


def test_a_pass_begins_anew_where_nothing_was_kept(model: TargetModel) -> None:
    tree = DraftTree.from_lists([1, 2], [-1, 0], [0.0, 0.0])
    cache = prefilled(model, [4, 5])
    once = model.forward_tree(3, tree, cache).logits.clone()
    assert torch.allclose(model.forward_tree(3, tree, cache).logits, once, atol=_CLOSE)
