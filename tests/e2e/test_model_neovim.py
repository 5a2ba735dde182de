"""The real server with its default model, in real Neovims: that they fit together, not what the model says."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator

import pytest
from events import until

pytestmark = [pytest.mark.editor, pytest.mark.model]

SERVER = [sys.executable, "-m", "lsp_server.cli", "serve"]
# A function without its body: whatever is suggested has to make the file whole.
BEGUN = '''\
def mean(values: list[float]) -> float:
    """The arithmetic mean."""
    return sum(values) / len(values)


def variance(values: list[float]) -> float:
    """The mean squared distance from the mean."""
'''
AREA = "def area(width, height):\n    return width * height\n"
BUFFER = "return table.concat(vim.api.nvim_buf_get_lines(vim.fn.bufnr('{}'), 0, -1, false), '\\n')"


@pytest.fixture(scope="module")
def editor(nvim, tmp_path_factory) -> Iterator[object]:
    """One editor for all tests of a version: its server loads the model once."""
    pytest.importorskip("pynvim", reason="the `editor` extra is not installed")
    from neovim import Neovim

    home = tmp_path_factory.mktemp("work")
    editor = Neovim(nvim, home, SERVER)
    editor.open(home / "statistics.py", BEGUN, seconds=300)
    yield editor
    editor.close()


def opened(editor, name: str, text: str) -> None:
    """A file of this test alone, on an empty screen."""
    editor.forget()
    editor.open(editor.home / name, text, seconds=120)


def proposed(editor) -> None:
    """Waits for the proposal of the command that was given, and accepts it."""
    editor.wait_screen("a: apply", seconds=240)
    editor.keys("a")


def test_a_suggestion_of_the_model_is_accepted(editor):
    editor.keys("Goreturn ")  # indented by the editor
    until(lambda: editor.text().endswith("return "), "the typing to be done")
    until(editor.ghost_is_shown, "a suggestion", seconds=60)
    editor.keys("<Tab>")
    until(lambda: not editor.text().endswith("return "), "the suggestion in the text")
    [_, variance] = ast.parse(editor.text()).body
    assert isinstance(variance.body[-1], ast.Return)


def test_a_lens_of_the_server_asks_for_a_docstring(editor):
    opened(editor, "lens.py", AREA)
    editor.lua("vim.lsp.codelens.refresh({ bufnr = 0 })")
    until(lambda: editor.lua("return #vim.lsp.codelens.get(0) == 3"), "the lenses")
    editor.keys("gg")
    editor.lua("""
        vim.ui.select = function(items, options, on_choice)
          for index, item in ipairs(items) do
            if options.format_item(item):match('Docstring') then on_choice(item, index) end
          end
        end
        vim.schedule(vim.lsp.codelens.run)""")
    proposed(editor)
    until(lambda: '"""' in editor.lua(BUFFER.format("lens.py")), "the docstring in the file", seconds=20)
    [area] = ast.parse(editor.lua(BUFFER.format("lens.py"))).body
    said = ast.get_docstring(area) or ""
    assert "width:" in said
    assert "height:" in said
    assert area.body[1:] == [area.body[-1]]


def test_an_edit_of_lines_leaves_a_file_that_parses(editor):
    opened(editor, "edit.py", AREA)
    editor.keys(":1,2Draftwood edit add type annotations, all are float<CR>")
    proposed(editor)
    until(lambda: editor.lua(BUFFER.format("edit.py")) != AREA.rstrip("\n"), "the change", seconds=20)
    [area] = ast.parse(editor.lua(BUFFER.format("edit.py"))).body
    assert area.name == "area"


def test_a_fix_takes_the_diagnostics_of_others(editor):
    opened(editor, "fix.py", "def area(width, height):\n    return width * heigth\n")
    editor.lua("""
        local namespace = vim.api.nvim_create_namespace('checker')
        vim.diagnostic.set(namespace, 0, {
          { lnum = 1, col = 19, end_col = 25, message = "undefined name 'heigth'", severity = 1, source = 'checker' },
        })""")
    editor.keys(":2Draftwood fix<CR>")
    editor.wait_screen("gone: undefined name", "a: apply", seconds=240)
    editor.keys("a")
    until(lambda: "heigth" not in editor.lua(BUFFER.format("fix.py")), "the change", seconds=20)
    ast.parse(editor.lua(BUFFER.format("fix.py")))


def test_tests_become_a_new_file(editor):
    opened(editor, "area.py", AREA)
    editor.keys(":1Draftwood tests<CR>")
    proposed(editor)
    until(lambda: "from area import area" in editor.lua(BUFFER.format("test_area_area.py")), "the tests", seconds=20)
    assert "def test_" in editor.lua(BUFFER.format("test_area_area.py"))


def test_a_question_is_thought_about(editor):
    opened(editor, "area.py", AREA)
    editor.lua("require('draftwood').configure({ answer = { thinkingTokens = 24, maxTokens = 48 } })")
    editor.keys(":Draftwood reason Can the result be negative?<CR>")
    editor.wait_screen("reason · area.py", "<think>", seconds=240)
    editor.wait_screen("</think>", seconds=240)
