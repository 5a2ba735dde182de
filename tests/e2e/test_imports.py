"""The import that an accepted suggestion lacks, in real Neovims: the server asks for it, the editor does as told."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from events import until

pytestmark = pytest.mark.editor

ROOT = Path(__file__).parents[2]
STUB = "tests.lsp_server.stub:StubAssistant"
SERVER = [sys.executable, "-c", f"import sys, lsp_server.server as s; sys.exit(s.serve_stdio({STUB!r}))"]


def test_accepting_adds_the_import_and_undo_takes_it_back_first(nvim, tmp_path, monkeypatch):
    pytest.importorskip("pynvim", reason="the `editor` extra is not installed")
    from neovim import Neovim

    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]))
    editor = Neovim(nvim, tmp_path, SERVER)
    try:
        editor.open(tmp_path / "main.py", "import os\n", seconds=60)
        editor.keys("Gox = np.")
        until(editor.ghost_is_shown, "a suggestion", seconds=30)
        editor.keys("<Tab>")
        until(lambda: "import numpy as np" in editor.text(), "the import", seconds=30)
        head, _, line = editor.text().rpartition("\n")
        assert head == "import os\n\nimport numpy as np"
        assert len(line) > len("x = np.")
        assert editor.cursor()[0] == len(editor.text().split("\n"))
        editor.keys("<Esc>u")
        until(lambda: editor.text() == f"import os\n{line}", "the import to be taken back alone")
    finally:
        editor.close()
