"""The recycle source, the public table it starts from, and calibration."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from decoding.draft_tree import DraftTree
from decoding.drafters.calibration import Calibration
from decoding.drafters.drafter import Observation
from decoding.drafters.growing import GrowingDrafter
from decoding.drafters.recycle import RecycleSource
from decoding.drafters.successors import Successors, fingerprint, successors_for
from decoding.models.target import TreeLogits
from decoding.verify import Verdict
from grammars.vocabulary import Vocabulary
from tests.decoding.fakes import no_logits


def seen(root: int, tree: DraftTree, rows: list[list[int]], before: int = 90) -> Observation:
    """A pass whose rows rank these tokens, each a quarter as probable as the one before it."""
    ids = torch.tensor(rows, dtype=torch.int32)
    logits = torch.arange(0, -ids.shape[1], -1, dtype=torch.float32).expand(ids.shape) * np.log(4)
    return Observation(root, before, tree, TreeLogits(logits, ids, logits), Verdict((0,), (rows[0][0],), None))


def test_what_the_target_ranked_is_proposed_again_rejected_rows_too() -> None:
    source = RecycleSource()
    assert source.successors(source.root([90, 1])) == []
    tree = DraftTree.from_lists([2], [-1], [-1.0])
    source.observe(seen(1, tree, [[5, 6], [7, 8]]), [])
    found = dict(source.successors(source.root([90, 1])))
    assert found[5] == pytest.approx(4 * found[6], rel=0.01)
    assert 0.3 < sum(found.values()) < 1.0, "a ranking is not the truth"
    assert set(dict(source.successors(source.root([1, 2])))) == {7, 8}


def test_the_last_two_tokens_know_better_than_the_last_one() -> None:
    source = RecycleSource()
    source.observe(seen(1, DraftTree.empty(), [[5, 6]], before=10), [])
    source.observe(seen(1, DraftTree.empty(), [[7, 8]], before=11), [])
    first, second = dict(source.successors((10, 1))), dict(source.successors((11, 1)))
    assert first[5] > 2 * first[7] > 0
    assert set(second) == {7, 8}
    assert set(dict(source.successors((12, 1)))) == {7, 8}, "an unknown pair: as last ranked after the token"
    assert source.after((10, 1), 3) == (1, 3)


def test_rows_without_numbers_are_not_learned() -> None:
    source = RecycleSource()
    source.observe(Observation(1, 2, DraftTree.empty(), no_logits(1), Verdict((0,), (3,), None)), [])
    assert source.successors((2, 1)) == []


def test_the_very_first_token_and_large_ids_have_slots() -> None:
    source = RecycleSource()
    for before, token in ((-1, 0), (151_000, 151_935), (65_536, 65_536 * 2)):
        source.observe(seen(token, DraftTree.empty(), [[5, 6]], before=before), [])
        assert set(dict(source.successors((before, token)))) == {5, 6}


def vocabulary(*tokens: bytes) -> Vocabulary:
    return Vocabulary.from_tokens(tokens)


def table() -> Successors:
    return Successors(
        tokens=np.array([1, 200_000]),
        ids=np.array([[5, 6], [7, 0]], dtype=np.int32),
        probabilities=np.array([[0.75, 0.2], [0.5, 0.0]], dtype=np.float16),
        pairs=(np.array([3]), np.array([1])),
        pair_ids=np.array([[9]], dtype=np.int32),
        pair_probabilities=np.array([[1.0]], dtype=np.float16),
    )


def test_a_public_table_is_found_by_its_tokenizer_only(tmp_path) -> None:
    ours, theirs = vocabulary(b"a", b"bc"), vocabulary(b"ab", b"c")
    assert fingerprint(ours) != fingerprint(theirs)
    table().save(tmp_path / "successors-x.npz", ours)
    assert successors_for(theirs, tmp_path) is None
    read = successors_for(ours, tmp_path)
    assert read is not None
    assert read.tokens.tolist() == [1, 200_000]
    assert read.ids.tolist() == [[5, 6], [7, 0]]
    assert read.probabilities == pytest.approx(table().probabilities, abs=0.003)
    source = RecycleSource(read)
    found = dict(source.successors((8, 1)))
    assert found[5] / found[6] == pytest.approx(0.75 / 0.2, rel=0.02)
    assert max(dict(source.successors((3, 1))).items(), key=lambda item: item[1])[0] == 9
    assert set(dict(source.successors((8, 200_000)))) == {7}, "padding is not a successor"


def test_sources_share_what_the_first_leaves_open() -> None:
    source = RecycleSource(table())
    drafter = GrowingDrafter([source])
    drafter.begin([1])
    tree = drafter.propose([8, 1], None, 2)
    assert tree.token_ids.tolist() == [5, 6]
    assert np.exp(tree.log_probs).tolist() == pytest.approx([p for _, p in source.successors((8, 1))], rel=0.01)


@pytest.mark.parametrize(("claimed", "true"), [(0.9, 0.5), (0.3, 0.6), (0.05, 0.01), (0.99, 0.99)])
def test_a_source_that_is_wrong_about_itself_is_corrected(claimed: float, true: float) -> None:
    random_ = random.Random(4)
    calibration = Calibration()
    assert calibration.corrected("a", claimed) == pytest.approx(claimed, abs=0.01)
    for _ in range(3000):
        calibration.observe("a", claimed, random_.random() < true)
    assert calibration.corrected("a", claimed) == pytest.approx(true, rel=0.35, abs=0.01)
    assert calibration.corrected("b", claimed) == pytest.approx(claimed, abs=0.01), "each source by itself"


def test_a_correction_is_still_a_probability_and_follows_a_change() -> None:
    calibration = Calibration()
    for _ in range(500):
        calibration.observe("a", 0.5, True)
    assert 0.9 < calibration.corrected("a", 0.5) < 1.0
    for _ in range(3000):
        calibration.observe("a", 0.5, False)
    assert calibration.corrected("a", 0.5) < 0.1
