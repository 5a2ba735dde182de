"""The real server with its default model, in a real VS Code: that they fit together, not what the model says."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator

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


@pytest.fixture(scope="module")
def window(code_server, browser_context, tmp_path_factory) -> Iterator[object]:
    """A window whose server has its model; a first run downloads it."""
    from workbench import Workbench

    code_server.write_settings({"draftwood.command": SERVER})
    window = Workbench(code_server, browser_context, tmp_path_factory.mktemp("statistics", numbered=False))
    window.open("warm_up.py", "import os\n")
    window.wait_status("ready", seconds=400)
    yield window
    window.close()


def test_a_suggestion_of_the_model_is_accepted(window):
    path = window.open("spread.py", BEGUN)
    window.type("    return ")
    until(window.ghost, "a suggestion", seconds=60)
    window.picture("model-ghost-text")
    window.press("Tab")
    window.wait_no_ghost()
    window.press("Escape", "Control+s")
    until(lambda: path.read_text() != BEGUN, "the file to be saved")
    [_, variance] = ast.parse(path.read_text()).body
    assert isinstance(variance.body[-1], ast.Return)


def test_the_model_explains_in_the_view(window):
    window.open(
        "explained.py", BEGUN + "    return sum((value - mean(values)) ** 2 for value in values) / len(values)\n"
    )
    window.press("Control+a")
    window.palette("Draftwood: Explain")
    answer = window.answer()
    answer.locator("#answer section").first.wait_for(timeout=120_000)
    answer.locator("button", has_text="Ask again").wait_for(timeout=240_000)
    assert (answer.locator("#state").text_content() or "") == ""
    assert len(answer.locator("#answer").inner_text()) > 40
    window.picture("model-explain")


AREA = "def area(width, height):\n    return width * height\n"


def applied(window, path, seconds: float = 240.0) -> ast.Module:
    """Waits for the proposal of the command that was given, accepts and saves it; the file's syntax tree."""
    before = path.read_text()
    window.page.locator(".tab.active", has_text="(proposed)").wait_for(timeout=1000 * seconds)
    window.palette("Draftwood: Apply Proposed Change")
    window.page.locator(f'.tab.active[data-resource-name="{path.name}"]').wait_for()

    def saved() -> bool:
        window.press("Control+s")  # again and again: the change arrives when it does
        return path.read_text() != before

    until(saved, "the change to be saved")
    return ast.parse(path.read_text())


def test_a_lens_of_the_server_asks_for_a_docstring(window):
    path = window.open("lens.py", AREA)
    window.page.locator(".codelens-decoration a", has_text="Docstring").first.click(timeout=20_000)
    [area] = applied(window, path).body
    said = ast.get_docstring(area) or ""
    assert "width:" in said
    assert "height:" in said


def test_an_edit_of_a_selection(window):
    path = window.open("edit.py", AREA)
    window.press("Control+a")
    window.palette("Draftwood: Edit")
    window.page.locator('.quick-input-widget input[aria-label*="Edit"]').wait_for()
    window.type("add type annotations, all are float")
    window.press("Enter")
    [area] = applied(window, path).body
    assert area.name == "area"


def test_a_question_is_thought_about_and_the_thought_is_folded(window):
    window.open("area.py", AREA)
    window.palette("Draftwood: Reason About")
    window.page.locator('.quick-input-widget input[aria-label*="Reason"]').wait_for()
    window.type("Can the result be negative?")
    window.press("Enter")
    answer = window.answer()
    answer.locator("summary").wait_for(timeout=240_000)
    answer.locator("button", has_text="Stop").click()
    assert not answer.locator("details").get_attribute("open")
