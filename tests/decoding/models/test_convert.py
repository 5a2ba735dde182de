"""GGUF files become hub folders: same ids, same text, same logits as transformers' own (slow) reader gives."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from decoding.errors import BadWeights
from decoding.models.convert import GgufFile, _to_bfloat16, write_folder_files, write_safetensors
from decoding.models.folder import open_folder
from tests.decoding.models.gguf_files import FIM, MARKS, write_gguf


def converted(path: Path) -> Path:
    """Convert a GGUF file beside itself."""
    gguf = GgufFile(path)
    write_folder_files(gguf, path.parent)
    write_safetensors(gguf, path.parent / "model.safetensors", lambda _fraction: None)
    return path.parent


@pytest.mark.parametrize("marks_first", [True, False])
@pytest.mark.parametrize("pre", ["qwen2", "smollm", "gpt-2"])
def test_token_ids_are_the_positions_in_the_gguf_list(tmp_path: Path, pre: str, marks_first: bool) -> None:
    path = write_gguf(tmp_path / "model.gguf", pre=pre, marks_first=marks_first)
    gguf = GgufFile(path)
    write_folder_files(gguf, tmp_path)
    tokenizer = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    texts = gguf.value("tokenizer.ggml.tokens")
    known = [(text, token) for token, text in enumerate(texts) if not text.startswith("[PAD")]
    assert [tokenizer.token_to_id(text) for text, _ in known] == [token for _, token in known]
    assert tokenizer.get_vocab_size() == len(known)
    assert tokenizer.encode("<|im_start|>in in<|im_end|>").ids == [
        texts.index(text) for text in ("<|im_start|>", "in", "Ġin", "<|im_end|>")
    ]


@given(st.text(alphabet=st.characters(codec="utf-8")))
def test_smollm_text_survives_the_tokenizer(smollm_tokenizer: Tokenizer, text: str) -> None:
    ids = smollm_tokenizer.encode(text).ids
    marks = [*MARKS, *FIM]
    if not any(mark in text for mark in marks):
        assert smollm_tokenizer.decode(ids) == text


@pytest.fixture(scope="module")
def smollm_tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    folder = tmp_path_factory.mktemp("smollm")
    write_folder_files(GgufFile(write_gguf(folder / "model.gguf", pre="smollm")), folder)
    return Tokenizer.from_file(str(folder / "tokenizer.json"))


def test_the_qwen2_pattern_is_the_one_that_transformers_uses(tmp_path: Path) -> None:
    module = pytest.importorskip("transformers.models.qwen2.tokenization_qwen2")
    write_folder_files(GgufFile(write_gguf(tmp_path / "model.gguf")), tmp_path)
    written = json.loads((tmp_path / "tokenizer.json").read_text())
    assert written["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] == module.PRETOKENIZE_REGEX
    assert written["normalizer"] == {"type": "NFC"}


@pytest.mark.parametrize(("pre", "pieces"), [
    ("qwen2", ["if", " x", " ==", " ", "1", "2", ":\n", "   ", " return", " it", "'s", "\n\n"]),
    ("smollm", ["if", " x", " ==", " ", "1", "2", ":", "\n   ", " return", " it", "'s", "\n\n"]),
    ("gpt-2", ["if", " x", " ==", " 12", ":", "\n   ", " return", " it", "'s", "\n\n"]),
])  # fmt: skip
def test_text_is_split_as_the_model_was_trained(tmp_path: Path, pre: str, pieces: list[str]) -> None:
    write_folder_files(GgufFile(write_gguf(tmp_path / "model.gguf", pre=pre)), tmp_path)
    text = "if x == 12:\n    return it's\n\n"
    tokenizer = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    split = tokenizer.pre_tokenizer.pre_tokenize_str(text)
    assert [text[start:end] for _, (start, end) in split] == pieces


@pytest.mark.parametrize("kind", [GGMLQuantizationType.Q8_0, GGMLQuantizationType.Q4_1, GGMLQuantizationType.F16])
@pytest.mark.parametrize(("architecture", "pre", "head"), [("qwen2", "qwen2", True), ("llama", "smollm", False)])
def test_weights_are_those_that_transformers_reads(
    tmp_path: Path, architecture: str, pre: str, head: bool, kind: GGMLQuantizationType
) -> None:
    from transformers import AutoModelForCausalLM

    path = write_gguf(tmp_path / "model.gguf", architecture=architecture, pre=pre, head=head, kind=kind)
    folder = converted(path)
    ours = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    theirs = AutoModelForCausalLM.from_pretrained(folder, gguf_file="model.gguf", dtype=torch.float32)
    for parameter in theirs.parameters():
        parameter.data = parameter.data.to(torch.bfloat16).to(torch.float32)
    expected = theirs.state_dict()
    assert ours.state_dict().keys() == expected.keys()
    for name, weight in ours.state_dict().items():
        assert torch.equal(weight, expected[name]), name
    assert ours.config.tie_word_embeddings is not head
    # Equal weights are not enough: rotary order and head counts show only in what the model says.
    ids = torch.tensor([[5, 9, 2, 77, 31]])
    assert torch.allclose(ours(ids).logits, theirs(ids).logits, atol=1e-4)


def test_folder_facts(tmp_path: Path) -> None:
    folder = open_folder(converted(write_gguf(tmp_path / "model.gguf")), "tiny", "local")
    tokenizer = Tokenizer.from_file(str(folder.tokenizer_file))
    assert folder.context_length == 256
    assert folder.has_chat_template
    assert folder.end_token_ids == (tokenizer.token_to_id("<|im_end|>"), tokenizer.token_to_id("<|endoftext|>"))
    assert folder.fim is not None
    assert folder.fim.middle == tokenizer.token_to_id("<|fim_middle|>")
    assert open_folder(folder.path, "tiny", "local", infilling=False).fim is None


def test_other_architectures_tokenizers_and_tensors_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(BadWeights, match="mamba"):
        GgufFile(write_gguf(tmp_path / "a.gguf", architecture="mamba"))
    with pytest.raises(BadWeights, match="deepseek-llm"):
        write_folder_files(GgufFile(write_gguf(tmp_path / "b.gguf", pre="deepseek-llm")), tmp_path)
    odd = GgufFile(write_gguf(tmp_path / "c.gguf", extra_tensors=["rope_freqs.weight"]))
    with pytest.raises(BadWeights, match="rope_freqs"):
        write_safetensors(odd, tmp_path / "c.safetensors", lambda _fraction: None)


@pytest.mark.parametrize("content", [b"", b"GGUF", b"not a model at all, whatever its name says"])
def test_a_file_that_is_no_gguf_is_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    with pytest.raises(BadWeights) as refusal:
        GgufFile(path)
    assert "\n" not in str(refusal.value)


def test_a_truncated_gguf_is_refused(tmp_path: Path) -> None:
    whole = write_gguf(tmp_path / "whole.gguf").read_bytes()
    cut = tmp_path / "cut.gguf"
    for size in (40, 2000, len(whole) - 5000):
        cut.write_bytes(whole[:size])
        with pytest.raises(BadWeights):
            converted(cut)


@given(
    st.lists(
        st.floats(width=32, allow_nan=False, allow_infinity=False, max_value=2.0**126, min_value=-(2.0**126)),
        min_size=1,
    )
)
def test_bfloat16_rounding_is_torchs(values: list[float]) -> None:
    array = np.array(values, dtype=np.float32)
    expected = torch.from_numpy(array).to(torch.bfloat16).view(torch.int16).numpy().view(np.uint16)
    assert np.array_equal(_to_bfloat16(array), expected)
