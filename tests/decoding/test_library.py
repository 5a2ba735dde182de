"""The public Python API on a tiny model folder, and the example that shows it."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from decoding import SpeculativeReasoningEngine
from decoding.draft_tree import DraftTree
from decoding.errors import BadInput, UnknownModel
from tests.decoding.fakes_text import OnlyTokens

PROMPT = "def area(w, h):\n    return w * h\n\n\ndef area2(w, h):\n    return w"
EXAMPLE = Path(__file__).parents[2] / "examples" / "library.py"


@pytest.fixture(scope="module")
def engine(tiny_folder: Path) -> SpeculativeReasoningEngine:
    return SpeculativeReasoningEngine(None, str(tiny_folder), "cpu", runtime="transformers", dtype="float32")


def test_the_continuation_is_that_of_plain_decoding(engine) -> None:
    text = engine.verify_and_generate(PROMPT, max_new_tokens=20)
    plain = engine.generate(PROMPT, max_new_tokens=20, drafter="none")
    assert text == plain.text
    assert plain.stats.mean_accepted == 1.0
    assert not text.startswith("def area(w, h)")
    assert len(plain.token_ids) <= 20


def test_the_draft_tree_goes_on_from_the_input(engine) -> None:
    ids = engine.encode(PROMPT)
    for depth in (1, 3, 6):
        tree = engine.draft_token_tree(ids, depth)
        assert isinstance(tree, DraftTree)
        assert 0 < len(tree) <= 8 * depth
        assert tree.depths().max() <= depth
        assert all(parent < node for node, parent in enumerate(tree.parents))
        assert all(
            tree.log_probs[node] <= (tree.log_probs[parent] if parent >= 0 else 0.0) + 1e-6
            for node, parent in enumerate(tree.parents)
        )
    # "return w" was followed by " *" before.
    assert engine.decode([int(engine.draft_token_tree(torch.tensor([ids]), 1).token_ids[0])]) == " *"
    assert len(engine.draft_token_tree(ids, 0)) == 0


def test_a_constraint_prunes_the_tree_and_holds_the_text(engine) -> None:
    allowed = OnlyTokens(tuple(engine.encode(" * h")), engine.vocabulary.size)
    tree = engine.draft_token_tree(engine.encode(PROMPT), 4, allowed)
    assert set(tree.token_ids.tolist()) <= set(allowed.tokens)
    answer = engine.generate(PROMPT, max_new_tokens=12, constraint=allowed, temperature=1.0, seed=4)
    assert set(answer.token_ids) <= set(allowed.tokens)


def test_streaming_adds_up_and_seeds_repeat(engine) -> None:
    stream = engine.stream(PROMPT, max_new_tokens=16, temperature=0.8, seed=7)
    with pytest.raises(BadInput):
        _ = stream.answer
    pieces = list(stream)
    assert "".join(pieces) == stream.answer.text
    assert stream.answer.stats.tokens == len(stream.answer.token_ids)
    again = engine.generate(PROMPT, max_new_tokens=16, temperature=0.8, seed=7, drafter="none")
    assert again.token_ids == stream.answer.token_ids
    assert list(stream) == []


def test_messages_are_answered(engine) -> None:
    assert engine.generate([{"role": "user", "content": "hi"}], max_new_tokens=4).stats.tokens > 0


def test_leaving_a_stream_early_leaves_the_engine_usable(engine) -> None:
    for _ in engine.stream(PROMPT, max_new_tokens=50):
        break
    assert engine.verify_and_generate(PROMPT, 8) == engine.generate(PROMPT, max_new_tokens=8, drafter="none").text


def test_bad_arguments_are_one_line(engine) -> None:
    for call in (
        lambda: engine.generate(PROMPT, max_new_tokens=0),
        lambda: engine.generate(PROMPT, temperature=-1.0),
        lambda: engine.draft_token_tree([], 2),
        lambda: engine.draft_token_tree(torch.zeros(2, 3), 2),
        lambda: engine.generate(PROMPT, flavour="mint"),
    ):
        with pytest.raises(BadInput) as caught:
            call()
        assert len(str(caught.value).splitlines()) == 1
    with pytest.raises(UnknownModel):
        SpeculativeReasoningEngine(None, "no-such-model")


def test_the_example_runs(tiny_folder: Path, capsys, monkeypatch) -> None:
    monkeypatch.setattr(sys, "argv", ["library.py", str(tiny_folder)])
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    out = capsys.readouterr().out
    assert "drafted tokens" in out
    assert "passes" in out


def test_importing_the_package_is_cheap() -> None:
    code = "import sys, decoding; sys.exit(bool({'torch', 'transformers'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
