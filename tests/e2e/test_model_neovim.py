"""The real server with its default model, in real Neovims: that they fit together, not what the model says."""

from __future__ import annotations

import ast
import sys

import pytest
from events import until

pytestmark = [pytest.mark.editor, pytest.mark.model]

SERVER = [sys.executable, "-m", "lsp_server.cli"]
# A function without its body: whatever is suggested has to make the file whole.
BEGUN = '''\
def mean(values: list[float]) -> float:
    """The arithmetic mean."""
    return sum(values) / len(values)


def variance(values: list[float]) -> float:
    """The mean squared distance from the mean."""
'''


def test_a_suggestion_of_the_model_is_accepted(nvim, tmp_path):
    pytest.importorskip("pynvim", reason="the `editor` extra is not installed")
    from neovim import Neovim

    editor = Neovim(nvim, tmp_path, [*SERVER, "serve"])
    editor.open(tmp_path / "statistics.py", BEGUN, seconds=300)
    editor.keys("Goreturn ")  # indented by the editor
    until(lambda: editor.text().endswith("return "), "the typing to be done")
    until(editor.ghost_is_shown, "a suggestion", seconds=60)
    editor.keys("<Tab>")
    until(lambda: not editor.text().endswith("return "), "the suggestion in the text")
    [_, variance] = ast.parse(editor.text()).body
    assert isinstance(variance.body[-1], ast.Return)
    editor.close()
