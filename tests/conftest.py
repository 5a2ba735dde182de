"""Fixtures for all tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tiny_folder import make_folder


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A loadable model folder with random weights and infilling marks."""
    return make_folder(tmp_path_factory.mktemp("models") / "tiny")
