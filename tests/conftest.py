"""Fixtures for all tests."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings

from decoding.models.provision import ensure_model
from decoding.models.registry import DEFAULT_MODEL
from tests.tiny_folder import make_folder

settings.register_profile("draftwood", deadline=None)  # tests never assert time: a busy machine is no failure
settings.load_profile("draftwood")


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A loadable model folder with random weights and infilling marks."""
    return make_folder(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(autouse=True)
def real_models(request: pytest.FixtureRequest) -> None:
    """Brings the weights before the first test that is marked `model`: no test's patience includes a download."""
    if request.node.get_closest_marker("model"):
        bring_real_models()


@cache
def bring_real_models() -> None:
    for name in ("smollm2-135m", DEFAULT_MODEL):
        ensure_model(name)
