"""Lets worker processes import the stub: they start with a safe path, which the tests' folder is not on.

And keeps servers from adding to the user's own counts.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STUB = "tests.lsp_server.stub:StubAssistant"


@pytest.fixture(autouse=True)
def _importable_stub(monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))


@pytest.fixture(autouse=True)
def _counts_of_their_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
