"""The import that an accepted suggestion lacks, in real editors: the server asks for it, the editor does as told."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from events import until

pytestmark = pytest.mark.editor

ROOT = str(Path(__file__).parents[2])
# Workers start with a safe path: they find the stub through the environment.
PATHS = f"import os, sys; os.environ['PYTHONPATH'] = {ROOT!r}; sys.path.insert(0, {ROOT!r})"
SERVE = "import lsp_server.server as s; sys.exit(s.serve_stdio('tests.lsp_server.stub:StubAssistant'))"
SERVER = [sys.executable, "-c", f"{PATHS}; {SERVE}"]
HEAD = "import os\n\nimport numpy as np"


def test_neovim_adds_the_import_and_one_undo_takes_it_back(nvim, tmp_path):
    pytest.importorskip("pynvim", reason="the `editor` extra is not installed")
    from neovim import Neovim

    editor = Neovim(nvim, tmp_path, SERVER)
    try:
        editor.open(tmp_path / "main.py", "import os\n", seconds=60)
        editor.keys("Gox = np.")
        until(editor.ghost_is_shown, "a suggestion", seconds=30)
        editor.keys("<Tab>")
        until(lambda: "import numpy as np" in editor.text(), "the import", seconds=30)
        head, _, line = editor.text().rpartition("\n")
        assert head == HEAD
        assert len(line) > len("x = np.")
        assert editor.cursor()[0] == len(editor.text().split("\n"))
        editor.keys("<Esc>u")
        until(lambda: editor.text() == f"import os\n{line}", "the import to be taken back alone")
    finally:
        editor.close()


def test_vscode_adds_the_import(code_server, browser_context, tmp_path):
    from workbench import Workbench

    code_server.write_settings({"draftwood.command": SERVER})
    window = Workbench(code_server, browser_context, tmp_path)
    try:
        path = window.open("main.py", "import os\n")
        window.wait_status("ready", seconds=120)
        window.type("x = np.")
        until(window.ghost, "a suggestion", seconds=60)
        window.press("Tab")
        window.wait_no_ghost()
        window.press("Escape")

        def saved() -> str:
            window.press("Control+s")
            return path.read_text()

        until(lambda: saved().startswith(HEAD), "the import in the file", seconds=60)
    finally:
        window.close()
