"""The real server with its default model, in a real VS Code: that they fit together, not what the model says."""

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


def test_a_suggestion_of_the_model_is_accepted(code_server, browser_context, tmp_path):
    from workbench import Workbench

    code_server.write_settings({"draftwood.command": SERVER})
    window = Workbench(code_server, browser_context, tmp_path)
    path = window.open("statistics.py", BEGUN)
    window.wait_status("ready", seconds=300)
    window.type("    return ")
    until(window.ghost, "a suggestion", seconds=60)
    window.picture("model-ghost-text")
    window.press("Tab")
    window.wait_no_ghost()
    window.press("Escape", "Control+s")
    until(lambda: path.read_text() != BEGUN, "the file to be saved")
    [_, variance] = ast.parse(path.read_text()).body
    assert isinstance(variance.body[-1], ast.Return)
    window.close()
