"""Trees: merging joins equal paths, pruning keeps the best that is allowed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decoding.draft_tree import DraftTree, first_nodes, merge, prune
from tests.decoding.fakes import END, VOCAB, ParityConstraint

ENDS = frozenset({END})


@st.composite
def trees(draw: st.DrawFn) -> DraftTree:
    """Any sound tree of up to 14 nodes."""
    ids: list[int] = []
    parents: list[int] = []
    joint: list[float] = []
    for node in range(draw(st.integers(0, 14))):
        parent, token = draw(st.integers(-1, node - 1)), draw(st.integers(0, VOCAB - 1))
        if (parent, token) in set(zip(parents, ids, strict=True)):
            break
        ids.append(token)
        parents.append(parent)
        # Siblings share at most their parent's probability in sum only by luck: merge must cope with any claims.
        joint.append((joint[parent] if parent >= 0 else 0.0) - draw(st.floats(0, 3)))
    return DraftTree.from_lists(ids, parents, joint, ["one"] * len(ids))


def paths(tree: DraftTree) -> dict[tuple[int, ...], float]:
    """Path of tokens -> joint log probability."""
    found: dict[int, tuple[int, ...]] = {-1: ()}
    for node, (token, parent) in enumerate(zip(tree.token_ids.tolist(), tree.parents.tolist(), strict=True)):
        found[node] = (*found[parent], token)
    return {found[node]: float(tree.log_probs[node]) for node in range(len(tree))}


def assert_sound(tree: DraftTree) -> None:
    assert len(paths(tree)) == len(tree), "a path occurs twice"
    for node, parent in enumerate(tree.parents.tolist()):
        assert -1 <= parent < node
        if parent >= 0:
            assert tree.log_probs[node] <= tree.log_probs[parent] + 1e-5
    assert len(tree.sources) in (0, len(tree))


@given(st.lists(trees(), max_size=4))
def test_a_merged_tree_has_every_path_once_and_no_less_probable(parts: list[DraftTree]) -> None:
    whole = merge(parts)
    assert_sound(whole)
    merged = paths(whole)
    assert set(merged) == {path for part in parts for path in paths(part)}
    for part in parts:
        for path, log_prob in paths(part).items():
            assert merged[path] >= log_prob - 1e-4


def test_two_proposers_of_one_token_are_surer_than_each() -> None:
    one = DraftTree.from_lists([5], [-1], [math.log(0.5)], ["a"])
    other = DraftTree.from_lists([6, 5], [-1, -1], [math.log(0.3), math.log(0.5)], ["b", "b"])
    whole = merge([one, other])
    assert whole.token_ids.tolist() == [5, 6]
    assert np.exp(whole.log_probs).tolist() == pytest.approx([0.75, 0.3])
    assert whole.sources == ("a+b", "b")


@given(trees(), st.integers(0, 16), st.sampled_from([None, 4, 5]))
def test_pruning_keeps_the_best_that_is_allowed(tree: DraftTree, nodes: int, last: int | None) -> None:
    state = ParityConstraint(last) if last is not None else None
    pruned = prune(tree, state, nodes, ENDS)
    assert_sound(pruned.tree)
    assert len(pruned.tree) <= nodes
    assert np.all(np.diff(pruned.tree.log_probs) <= 1e-6), "the order is from the best to the worst"

    def allowed(path: tuple[int, ...]) -> bool:
        if END in path[:-1]:
            return False
        here = state
        for token in path:
            if here is None:
                return True
            if not here.permits(token):
                return False
            here = here.advance(token) if token != END else here
        return True

    kept, before = paths(pruned.tree), paths(tree)
    assert all(allowed(path) for path in kept)
    possible = sorted((log_prob for path, log_prob in before.items() if allowed(path)), reverse=True)
    assert sorted(kept.values(), reverse=True) == pytest.approx(possible[:nodes], abs=1e-5)


def test_a_certain_child_never_displaces_its_parent() -> None:
    # Forced tokens have log p = 0: ties go to the shallower node.
    tree = DraftTree.from_lists([1, 2, 3], [-1, 0, 1], [0.0, 0.0, 0.0])
    for nodes in range(4):
        assert prune(tree, None, nodes, ENDS).tree.token_ids.tolist() == [1, 2, 3][:nodes]


def test_first_nodes_of_a_pruned_tree_are_a_tree() -> None:
    tree = DraftTree.from_lists([1, 2, 3, 4], [-1, 0, -1, 1], [-0.1, -0.2, -0.3, -0.4], ["s"] * 4)
    for count in range(5):
        assert_sound(first_nodes(tree, count))


def test_wrong_trees_are_refused() -> None:
    with pytest.raises(ValueError, match="differ in length"):
        DraftTree.from_lists([1], [], [0.0])
    with pytest.raises(ValueError, match="earlier node"):
        DraftTree.from_lists([1, 2], [1, -1], [0.0, 0.0])


def test_depths_and_rows() -> None:
    tree = DraftTree.from_lists([1, 2, 3, 4], [-1, 0, -1, 1], [0.0] * 4)
    assert tree.depths().tolist() == [1, 2, 1, 3]
    assert tree.row_parents().tolist() == [-1, 0, 1, 0, 2]
    assert DraftTree.empty().depths().tolist() == []
