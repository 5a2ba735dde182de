"""The packaged extension in a real VS Code, against the stub server."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator

import pytest
from events import events, stub_command, until

pytestmark = pytest.mark.editor

SLOW = ("--chunk-seconds", "0.15")
MEAN = "def mean(values):\n    return sum(values) / len(values)\n"
GUARDED = "def mean(values):\n    if not values:\n        return 0.0\n    return sum(values) / len(values)\n"


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return tmp_path_factory.mktemp("stub") / "events.jsonl"


@pytest.fixture(scope="module")
def window(code_server, browser_context, log, tmp_path_factory) -> Iterator[object]:
    """One window for all tests of this module: opening one takes seconds."""
    from workbench import Workbench

    code_server.write_settings({"draftwood.command": stub_command(log, *SLOW)})
    window = Workbench(code_server, browser_context, tmp_path_factory.mktemp("project"))
    window.open("warm_up.py", "import os\n")
    window.wait_status("ready")
    yield window
    window.close()


@pytest.fixture(autouse=True)
def _picture_of_failure(request, window):
    failed = request.session.testsfailed
    yield
    if request.session.testsfailed > failed:
        window.picture(f"failed-{request.node.name}")


def test_tab_inserts_the_ghost_text_and_the_file_is_saved(window, log):
    path = window.open("add.py", "import os\n\n\n")
    window.type("def add(")
    window.wait_ghost("return a + b")
    window.picture("ghost-text")
    window.press("Tab")
    window.wait_no_ghost()
    # VS Code had typed the closing bracket itself: it must not stay behind the inserted text.
    window.save(path, "import os\n\n\ndef add(a, b):\n    return a + b")
    until(lambda: events(log, "accepted"), "the server to be told of the acceptance")


def test_a_suggestion_is_accepted_word_by_word_then_line_by_line(window):
    path = window.open("words.py", "")
    window.type("print(")
    window.wait_ghost("message, flush=True")
    window.press("Control+ArrowRight")
    window.wait_ghost(", flush=True")
    window.press("Control+Alt+ArrowRight")
    window.save(path, "print(message, flush=True)")


def test_other_alternatives_are_shown_and_accepted(window):
    path = window.open("alternatives.py", "")
    window.type("def mul(")
    window.wait_ghost("return x * y")
    window.press("Alt+]")
    window.wait_ghost("return left * right")
    window.press("Tab")
    window.save(path, "def mul(left, right):\n    return left * right")


def test_dismissed_and_asked_for_again(window):
    window.open("again.py", "")
    window.type("total = ")
    window.wait_ghost("sum(prices)")
    window.press("Escape")
    window.wait_no_ghost()
    window.press("Alt+\\")
    window.wait_ghost("sum(prices)")


def test_characters_beyond_the_basic_plane_before_the_cursor(window):
    path = window.open("emoji.py", "")
    window.page.keyboard.insert_text('label = "🎉" +')
    window.type(" ")
    window.wait_ghost("name.title() + suffix")
    window.press("Tab")
    window.save(path, 'label = "🎉" + name.title() + suffix')


def test_a_file_with_crlf_keeps_it(window):
    path = window.open("dos.py", "import os\r\n")
    window.type("def add(")
    window.wait_ghost("return a + b")
    window.press("Tab")
    window.save(path, "import os\r\ndef add(a, b):\r\n    return a + b")


def test_a_file_indented_with_tabs_keeps_them(window):
    path = window.open("tabs.py", "if True:\n\tpass\n\n\n")
    window.type("def area(")
    window.wait_ghost("return width * height")
    window.press("Tab")
    window.save(path, "if True:\n\tpass\n\n\ndef area(width, height):\n\treturn width * height")


def test_the_suggest_widget_may_be_open(window):
    path = window.open("widget.py", "import os\n")
    window.type("os.path.")
    widget = window.page.locator(".suggest-widget.visible")
    widget.wait_for(timeout=15_000)
    window.page.locator(".suggest-widget.visible .monaco-list-row", has_text="join").wait_for()
    window.wait_ghost("isdir(base, name)")
    window.press("ArrowDown")
    window.wait_ghost("join(base, name)")
    window.picture("suggest-widget")
    window.press("Escape")
    widget.wait_for(state="hidden")
    window.save(path, "import os\nos.path.")


def test_an_untitled_file(window):
    window.press("Control+Alt+n")
    window.page.wait_for_selector('.tab.active[data-resource-name^="Untitled"]')
    window.palette("Change Language Mode")
    window.type("python")
    window.press("Enter")
    window.page.locator(".statusbar-item", has_text="Python").first.wait_for()
    window.page.locator(".editor-group-container.active .view-lines").first.click()
    window.type("def add(")
    window.wait_ghost("return a + b")
    window.press("Tab")
    window.wait_no_ghost()
    lines = window.page.locator(".editor-group-container.active .view-lines")
    until(lambda: "return a + b" in (lines.text_content() or "").replace("\xa0", " "), "the text to be inserted")


def test_a_notebook_cell(window):
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": ["import os"]}
    notebook = {"cells": [cell], "metadata": {"language_info": {"name": "python"}}, "nbformat": 4, "nbformat_minor": 5}
    path = window.folder / "book.ipynb"
    path.write_text(json.dumps(notebook))
    window.palette(str(path), commands=False)
    editor = window.page.locator(".notebook-editor .cell-editor-container .view-lines").first
    editor.wait_for(timeout=20_000)
    editor.click()
    window.press("Control+End", "Enter")
    window.type("def add(")
    window.wait_ghost("return a + b")
    window.picture("notebook")
    window.press("Tab", "Control+s")
    until(lambda: "return a + b" in path.read_text(), "the notebook to be saved")
    saved = "".join(json.loads(path.read_text())["cells"][0]["source"])
    assert saved == "import os\ndef add(a, b):\n    return a + b"


def test_settings_change_without_a_restart(window, log):
    started = len(events(log, "initialize"))
    window.change_settings({"draftwood.suggest.multiline": "never"})
    until(lambda: [e for e in events(log, "settings") if e["settings"]["suggest"]["multiline"] == "never"], "them")
    window.open("settings.py", "")
    window.type("def add(")
    window.wait_ghost("a, b")
    assert "return" not in window.ghost()
    window.change_settings({})
    until(lambda: events(log, "settings")[-1]["settings"]["suggest"]["multiline"] == "auto", "the old settings")
    assert len(events(log, "initialize")) == started


def test_pausing_here(window):
    window.open("pause.py", "")
    window.palette("Draftwood: Pause or Resume Here")
    window.wait_status("paused")
    window.type("def add(")
    window.page.wait_for_timeout(500)
    assert window.ghost() == ""
    window.palette("Draftwood: Pause or Resume Here")
    window.wait_status("ready")
    window.press("Alt+\\")
    window.wait_ghost("return a + b")


def test_the_status_bar_has_figures_and_a_menu(window):
    window.open("status.py", "import os\n")
    item = window.status_item()
    item.hover()
    hover = window.page.locator(".monaco-hover", has_text="Tokens per second")
    hover.wait_for(timeout=10_000)
    assert "61.50" in (hover.first.text_content() or "")
    window.picture("status-hover")
    window.page.mouse.move(400, 300)
    item.click()
    rows = window.page.locator(".quick-input-list .monaco-list-row")
    rows.filter(has_text="Pause for python").wait_for()
    window.picture("menu")
    for entry in ("Pause here", "Choose model", "Restart server", "Show log", "Run doctor"):
        assert rows.filter(has_text=entry).count() == 1
    window.press("Escape")


def test_explain_streams_into_the_view_and_stops(window, log):
    window.open("stats.py", MEAN)
    window.press("Control+a")
    window.palette("Draftwood: Explain")
    answer = window.answer()
    answer.locator("h3", has_text="What mean does").wait_for()
    assert not events(log, "answered")
    answer.locator("button", has_text="Stop").click()
    answer.locator("#state", has_text="Stopped.").wait_for()
    assert until(lambda: events(log, "stopped"), "the server to be told")
    asked = events(log, "answer")[-1]
    assert asked["range"] == {"start": {"line": 0, "character": 0}, "end": {"line": 2, "character": 0}}
    answer.locator("button", has_text="Ask again").click()
    until(lambda: events(log, "answered"), "the whole answer")
    answer.locator("pre code .hljs-keyword", has_text="return").wait_for()
    window.picture("explain")
    answer.locator(".code-actions button", has_text="Copy").click()
    copied = until(lambda: window.page.evaluate("navigator.clipboard.readText()"), "the clipboard")
    assert copied == MEAN


def test_thoughts_are_folded(window):
    window.open("stats.py", MEAN)
    window.palette("Draftwood: Reason About")
    window.page.locator('.quick-input-widget input[aria-label*="Reason"]').wait_for()
    window.type("How slow is it?")
    window.press("Enter")
    answer = window.answer()
    answer.locator("strong", has_text="linear").wait_for()
    assert not answer.locator("details").get_attribute("open")
    answer.locator("summary").click()
    answer.locator("details", has_text="How slow is it?").wait_for()


def test_a_fix_is_shown_as_a_diff_and_applied_on_yes(window):
    path = window.open("stats.py", MEAN)
    window.palette("Draftwood: Fix")
    window.page.locator(".tab.active", has_text="stats.py (proposed)").wait_for(timeout=20_000)
    window.page.locator(".monaco-diff-editor .view-lines", has_text="if not values").first.wait_for()
    window.picture("fix")
    assert path.read_text() == MEAN
    window.answer().locator("button", has_text="Apply").click()
    window.page.locator('.tab.active[data-resource-name="stats.py"]').wait_for()
    window.page.locator(".tab", has_text="proposed").wait_for(state="detached")
    window.save(path, GUARDED)


def test_a_proposal_can_be_discarded(window):
    path = window.open("stats.py", MEAN)
    window.palette("Draftwood: Fix")
    window.page.locator(".tab.active", has_text="stats.py (proposed)").wait_for(timeout=20_000)
    window.palette("Draftwood: Discard Proposed Change")
    window.page.locator(".tab", has_text="proposed").wait_for(state="detached")
    assert path.read_text() == MEAN


def test_generated_tests_are_a_new_file(window):
    window.open("stats.py", MEAN)
    created = window.folder / "test_generated.py"
    window.palette("Draftwood: Write Tests")
    window.page.locator(".tab.active", has_text="test_generated.py (proposed)").wait_for(timeout=20_000)
    assert not created.exists()
    window.palette("Draftwood: Apply Proposed Change")
    window.page.locator('.tab.active[data-resource-name="test_generated.py"]').wait_for()
    until(lambda: created.exists() and "def test_mean" in created.read_text(), "the new file")


def test_code_lenses_ask_about_their_function(window, log):
    window.open("lens.py", "\n\n" + MEAN)
    lens = window.page.locator(".codelens-decoration a", has_text="Explain")
    lens.first.click(timeout=15_000)
    until(lambda: [e for e in events(log, "answer") if e["uri"].endswith("lens.py")], "the question")
    [asked] = [e for e in events(log, "answer") if e["uri"].endswith("lens.py")]
    assert asked["range"]["start"]["line"] == 2


def test_code_actions_offer_an_explanation(window, log):
    window.open("action.py", MEAN)
    window.press("Control+Home", "Control+.")
    entry = window.page.locator(".action-widget .monaco-list-row", has_text="Explain with Draftwood")
    entry.first.wait_for(timeout=15_000)
    entry.first.click()
    until(lambda: [e for e in events(log, "answer") if e["uri"].endswith("action.py")], "the question")


def test_a_killed_server_is_started_again(window, log):
    window.open("killed.py", "")
    started = events(log, "initialize")
    os.kill(started[-1]["pid"], signal.SIGKILL)
    until(lambda: len(events(log, "initialize")) == len(started) + 1, "another server")
    window.wait_status("ready")
    window.type("def add(")
    window.wait_ghost("return a + b")
