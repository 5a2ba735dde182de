"""What is loaded fits: context and draft model are given up before memory is."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from decoding.errors import BadWeights, OutOfMemory, ProvisionError, UnknownModel
from decoding.memory import MARGIN_BYTES, PROCESS_BYTES, need_of
from decoding.messages import EngineOptions
from decoding.models.architecture import Architecture
from decoding.models.folder import open_folder
from decoding.models.loading import fitted, load_model
from decoding.models.store import ModelStore


@pytest.fixture(scope="module")
def folder(tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a model whose sizes the plan knows."""
    folder = tmp_path_factory.mktemp("plan") / "tiny"
    shutil.copytree(tiny_folder, folder)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config |= {"hidden_size": 256, "intermediate_size": 512, "num_attention_heads": 4, "num_key_value_heads": 2}
    config["head_dim"] = 64
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


@pytest.fixture
def options(folder: Path) -> EngineOptions:
    return EngineOptions(model=str(folder), draft_model=str(folder), context_tokens=4096, device="cpu")


@pytest.fixture
def enough(folder: Path) -> int:
    """Bytes that two of these models with all of the context need."""
    arch = Architecture.from_config(open_folder(folder, "tiny", "local").config())
    return PROCESS_BYTES + MARGIN_BYTES + 2 * need_of(arch, 4096).total


def with_free(monkeypatch: pytest.MonkeyPatch, free: int) -> None:
    monkeypatch.setattr("decoding.memory.free_memory", lambda: free)


def test_what_fits_is_left_alone(options: EngineOptions, enough: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with_free(monkeypatch, enough)
    assert fitted(options, lambda _: None) == options


def test_less_memory_gives_up_context_or_the_draft_model(options, enough, monkeypatch, caplog) -> None:
    with_free(monkeypatch, enough - 1)
    less = fitted(options, lambda _: None)
    assert less.context_tokens < options.context_tokens or less.draft_model is None
    assert "runs without" in caplog.text


def test_what_cannot_fit_is_refused_with_numbers(options, monkeypatch) -> None:
    with_free(monkeypatch, PROCESS_BYTES)
    with pytest.raises(OutOfMemory, match="GB"):
        fitted(options, lambda _: None)


def test_an_unknown_model_is_said_to_be_unknown(options) -> None:
    with pytest.raises(UnknownModel):
        fitted(options.model_copy(update={"model": "no-such-model"}), lambda _: None)


@pytest.mark.parametrize("content", ["{}", "not json", ""])
def test_a_damaged_tokenizer_is_one_line(tiny_folder: Path, tmp_path: Path, content: str) -> None:
    damaged = tmp_path / "damaged"
    shutil.copytree(tiny_folder, damaged)
    (damaged / "tokenizer.json").write_text(content, encoding="utf-8")
    with pytest.raises(BadWeights) as refused:
        load_model(EngineOptions(model=str(damaged), runtime="transformers", device="cpu"), lambda _: None)
    assert len(str(refused.value).splitlines()) == 1


def test_a_store_that_cannot_be_made_names_its_folder(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("", encoding="utf-8")
    with (
        pytest.raises(ProvisionError, match="DRAFTWOOD_CACHE"),
        ModelStore(blocked / "cache").locked("some-model", lambda: None),
    ):
        pass
