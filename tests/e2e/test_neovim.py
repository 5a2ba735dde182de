"""The plugin in real Neovims, against the stub server: 0.11 with ghost text of our own, 0.12 with the editor's."""

from __future__ import annotations

import os
import re
import shlex
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from events import events, stub_command, until

pytestmark = pytest.mark.editor


@pytest.fixture
def log(tmp_path):
    return tmp_path / "events.jsonl"


@pytest.fixture
def start(nvim, tmp_path, log) -> Iterator[object]:
    """Starts an editor; closed after the test."""
    pytest.importorskip("pynvim", reason="the `editor` extra is not installed")
    from neovim import Neovim

    opened = []

    def start(*server_options: str, **options: object) -> Neovim:
        opened.append(Neovim(nvim, tmp_path, stub_command(log, *server_options), options))
        return opened[-1]

    yield start
    for editor in opened:
        editor.close()


@pytest.fixture(scope="module")
def shared(nvim, tmp_path_factory) -> Iterator[object]:
    """An editor for many tests: what takes time is starting its server."""
    pytest.importorskip("pynvim", reason="the `editor` extra is not installed")
    from neovim import Neovim

    home = tmp_path_factory.mktemp("shared")
    editor = Neovim(nvim, home, stub_command(home / "events.jsonl"))
    yield editor
    editor.close()


@pytest.fixture
def editor(shared, log, tmp_path):
    """The shared editor, forgetful, in a Python file whose one line is an import."""
    shared.forget()
    log.symlink_to(shared.home / "events.jsonl")
    shared.open(tmp_path / "main.py", "import os\n")
    return shared


def test_tab_inserts_the_ghost_text_and_the_file_is_saved(editor, tmp_path, log):
    editor.keys("Godef mul(")
    editor.wait_screen("def mul(x, y):", "    return x * y")
    editor.keys("<Tab>")
    editor.wait_text("import os\ndef mul(x, y):\n    return x * y")
    assert editor.cursor() == (3, len("    return x * y"))
    until(lambda: events(log, "accepted"), "the server to be told of the acceptance")
    editor.keys("<Esc>:w<CR>")
    until(lambda: "return x * y\n" in (tmp_path / "main.py").read_text(), "the file to be saved")


def test_a_suggestion_is_accepted_word_by_word_then_line_by_line(editor, log):
    editor.keys("Godef mul(")
    editor.wait_screen("return x * y")
    editor.keys("<M-w>")
    editor.wait_text("import os\ndef mul(x")
    editor.wait_screen("def mul(x, y):")
    editor.keys("<M-l>")
    editor.wait_text("import os\ndef mul(x, y):")
    editor.wait_screen("return x * y")
    assert not events(log, "accepted")
    editor.keys("<M-l>")
    editor.wait_text("import os\ndef mul(x, y):\n    return x * y")
    until(lambda: events(log, "accepted"), "the server to be told once all of it is there")


def test_other_alternatives_are_shown_and_accepted(editor):
    editor.keys("Godef mul(")
    editor.wait_screen("return x * y")
    editor.keys("<M-]>")
    editor.wait_screen("return left * right")
    editor.keys("<M-[>")
    editor.wait_screen("return x * y")
    editor.keys("<M-]>")
    editor.wait_screen("return left * right")
    editor.keys("<Tab>")
    editor.wait_text("import os\ndef mul(left, right):\n    return left * right")


def test_one_undo_takes_back_what_was_accepted_and_nothing_else(editor):
    editor.keys("Godef mul(")
    editor.wait_screen("return x * y")
    editor.keys("<Tab>")
    editor.wait_text("import os\ndef mul(x, y):\n    return x * y")
    editor.keys("  # typed later<Esc>")
    editor.keys("u")
    editor.wait_text("import os\ndef mul(x, y):\n    return x * y")
    editor.keys("u")
    editor.wait_text("import os\ndef mul(")


def test_a_bracket_that_the_editor_closed_is_replaced(editor):
    editor.nvim.command("inoremap <buffer> ( ()<Left>")
    editor.keys("Godef mul(")
    editor.wait_screen("return x * y")
    editor.keys("<Tab>")
    editor.wait_text("import os\ndef mul(x, y):\n    return x * y")


def test_a_bracket_that_the_editor_closed_survives_accepting_a_word(editor):
    editor.nvim.command("inoremap <buffer> ( ()<Left>")
    editor.keys("Godef mul(")
    editor.wait_screen("return x * y")
    editor.keys("<M-w>")
    editor.wait_text("import os\ndef mul(x)")
    editor.wait_screen("return x * y")
    editor.keys("<M-w><M-w>")
    editor.wait_screen("return x * y")
    editor.keys("<Tab>")
    editor.wait_text("import os\ndef mul(x, y):\n    return x * y")


def test_characters_beyond_ascii_before_the_cursor(editor):
    editor.keys('Golabel = "🎉" + ')
    editor.wait_screen("name.title() + suffix")
    editor.keys("<Tab>")
    editor.wait_text('import os\nlabel = "🎉" + name.title() + suffix')


def test_a_file_with_crlf_keeps_it(editor, tmp_path):
    path = tmp_path / "dos.py"
    editor.open(path, "import os\r\n")
    editor.keys("Godef mul(")
    editor.wait_screen("return x * y")
    editor.keys("<Tab>")
    editor.wait_text("import os\ndef mul(x, y):\n    return x * y")
    editor.keys("<Esc>:w<CR>")
    wanted = b"import os\r\ndef mul(x, y):\r\n    return x * y\r\n"
    until(lambda: path.read_bytes() == wanted, "the file to be saved")


def test_a_file_indented_with_tabs_keeps_them(editor, tmp_path):
    editor.open(tmp_path / "tabs.py", "if True:\n\tpass\n")
    editor.keys("Godef area(")
    editor.wait_screen("return width * height")
    editor.keys("<Tab>")
    editor.wait_text("if True:\n\tpass\ndef area(width, height):\n\treturn width * height")


def test_a_buffer_without_a_file(editor):
    editor.nvim.command("enew | set filetype=python")
    editor.wait_ready()
    editor.keys("idef mul(")
    editor.wait_screen("return x * y")
    editor.keys("<Tab>")
    editor.wait_text("def mul(x, y):\n    return x * y")


def test_keys_with_nothing_to_accept_do_what_they_did(start, tmp_path):
    editor = start()
    editor.nvim.command("inoremap <M-w> mapped")
    editor.nvim.command("inoremap <expr> <M-l> 'expr' .. 'ession'")
    editor.open(tmp_path / "main.py", "")
    editor.keys("i<Tab>a<M-w><M-l>")
    editor.wait_text("    amappedexpression")


def test_escape_hides_and_so_does_text_that_contradicts(editor):
    editor.keys("Godef mul(")
    editor.wait_screen("return x * y")
    editor.keys("<Esc>")
    editor.wait_screen_without("return x * y")
    editor.keys("A")
    editor.wait_screen("return x * y")
    editor.keys("q")
    editor.wait_screen_without("return x * y")
    editor.keys("<Tab>.")
    editor.wait_text("import os\ndef mul(q   .")


def test_dismissing_keeps_the_mode(editor):
    editor.keys("Godef mul(")
    editor.wait_screen("return x * y")
    editor.keys("<C-]>")
    editor.wait_screen_without("return x * y")
    editor.keys("x")
    editor.wait_screen("def mul(x, y):")


def test_a_menu_of_completions_may_be_open(editor):
    editor.nvim.command("set completeopt=menuone,noinsert")
    editor.keys("Godef mul(<C-x><C-n>")
    editor.wait_screen("def mul(x, y):", "Keyword Local completion")


def test_pausing_and_the_status_line(editor):
    editor.wait_screen("main.py Draftwood")
    editor.nvim.command("Draftwood pause")
    editor.wait_screen("Draftwood: paused")
    editor.keys("Godef mul(")
    editor.wait_screen_without("return x * y")
    editor.keys("<Esc>")
    editor.nvim.command("Draftwood pause")
    editor.keys("A")
    editor.wait_screen("return x * y")


def test_settings_change_without_a_restart(editor, log):
    editor.lua("require('draftwood').configure({ suggest = { multiline = 'never' } })")
    until(lambda: events(log, "settings"), "the settings")
    editor.keys("Godef mul(")
    editor.wait_screen("def mul(x, y):")
    assert "return x * y" not in editor.screen()
    assert not events(log, "initialize")
    editor.lua("require('draftwood').configure({ suggest = { multiline = 'auto' } })")


def test_explain_streams_into_a_window_and_stops(start, tmp_path, log):
    editor = start("--chunk-seconds", "0.1")
    editor.open(tmp_path / "stats.py", "def mean(values):\n    return sum(values) / len(values)\n")
    editor.keys(":1,2Draftwood explain<CR>")
    editor.wait_screen("explain · stats.py:1–2", "It adds up")
    assert not events(log, "answered")
    asked = events(log, "answer")[0]
    assert asked["range"]["start"] == {"line": 0, "character": 0}
    assert asked["range"]["end"] == {"line": 1, "character": len("    return sum(values) / len(values)")}
    editor.lua("require('draftwood.answer').stop()")
    editor.wait_screen("Stopped.")
    until(lambda: events(log, "stopped"), "the server to be told")


def test_a_fix_is_shown_as_a_diff_and_applied_on_yes(editor, tmp_path, log):
    code = "def mean(values):\n    return sum(values) / len(values)"
    editor.open(tmp_path / "stats.py", code + "\n")
    editor.keys(":1Draftwood fix ZeroDivisionError<CR>")
    editor.wait_screen("+    if not values:", "a: apply")
    assert (tmp_path / "stats.py").read_text() == code + "\n"
    editor.keys("a")
    wanted = "def mean(values):\n    if not values:\n        return 0.0\n    return sum(values) / len(values)"
    read = "return table.concat(vim.api.nvim_buf_get_lines(vim.fn.bufnr('stats.py'), 0, -1, false), '\\n')"
    until(lambda: editor.lua(read) == wanted, "the change to be applied")


def test_a_fix_of_a_text_that_has_changed_is_refused(editor, tmp_path):
    code = "def mean(values):\n    return sum(values) / len(values)"
    editor.open(tmp_path / "stats.py", code + "\n")
    editor.keys(":Draftwood fix<CR>")
    editor.wait_screen("a: apply")
    editor.lua("vim.api.nvim_buf_set_lines(vim.fn.bufnr('stats.py'), 0, 0, false, { '# new' })")
    editor.keys("a")
    editor.wait_screen("changed since this was proposed")


def test_edit_asks_for_the_instruction(editor, tmp_path, log):
    editor.open(tmp_path / "stats.py", "def mean(values):\n    return sum(values)\n")
    editor.keys(":Draftwood edit<CR>")
    editor.wait_screen("What should change?")
    editor.keys("guard it<CR>")
    editor.wait_screen("+    if not values:")


def test_code_actions_stream_into_a_window_too(editor, tmp_path, log):
    editor.open(tmp_path / "stats.py", "def mean(values):\n    return sum(values) / len(values)\n")
    editor.lua("vim.lsp.buf.code_action({ apply = true, filter = function(a) return a.title:match('Explain') end })")
    editor.wait_screen("explain · stats.py:1", "It adds up")
    [asked] = events(log, "answer")
    assert asked["uri"].endswith("stats.py")


def test_the_server_is_told_where_the_cursor_rests(editor, log):
    editor.keys("ox = 1<Esc>")
    editor.lua("vim.o.updatetime = 50")
    editor.keys("gg0")
    until(lambda: [e["argument"] for e in events(log, "rest")][-1:] == [{"line": 0, "character": 0}], "the rest")
    editor.keys("G0")
    until(lambda: [e["argument"] for e in events(log, "rest")][-1:] == [{"line": 1, "character": 0}], "the next rest")
    editor.lua("vim.o.updatetime = 4000")


def test_code_lenses_ask_about_their_function(editor, tmp_path, log):
    editor.open(tmp_path / "stats.py", "import os\n\ndef mean(values):\n    return sum(values) / len(values)\n")
    editor.lua("vim.lsp.codelens.refresh({ bufnr = 0 })")
    found = "return #vim.lsp.codelens.get(0) > 0 and #vim.api.nvim_buf_get_extmarks(0, -1, 0, -1, {}) > 0"
    until(lambda: editor.lua(found), "the code lenses")
    editor.keys("3G")
    editor.lua("vim.ui.select = function(items, _, on_choice) on_choice(items[1], 1) end; vim.lsp.codelens.run()")
    editor.wait_screen("explain · stats.py:3", "It adds up")
    [asked] = events(log, "answer")
    assert asked["range"]["start"]["line"] == 2


@pytest.mark.parametrize("ghost_text", ["auto", False])
def test_the_server_is_told_whether_ghost_text_is_shown(start, tmp_path, log, ghost_text):
    editor = start(ghost_text=ghost_text)
    editor.open(tmp_path / "main.py", "import os\n")
    [asked] = events(log, "initialize")
    assert asked["ghost_text"] is (ghost_text == "auto")


def test_a_killed_server_is_started_again(editor, log):
    before = len(events(log, "initialize"))
    for pid in editor.server_pids():
        os.kill(pid, signal.SIGKILL)
    until(lambda: len(events(log, "initialize")) > before, "another server")
    editor.wait_ready()
    editor.keys("Godef mul(")
    editor.wait_screen("return x * y")


def test_a_server_that_dies_again_and_again_is_left_alone_with_one_message(start, tmp_path, log):
    editor = start("--start", "die")
    (tmp_path / "main.py").write_text("import os\n")
    editor.nvim.command(f"edit {tmp_path / 'main.py'}")
    editor.wait_screen("does not stay up", seconds=40)
    deaths = len(events(log, "initialize"))
    assert deaths == 4
    assert editor.messages().count("does not stay up") == 1


def test_an_error_state_is_told_once(start, tmp_path):
    editor = start("--start", "error")
    (tmp_path / "main.py").write_text("import os\n")
    editor.nvim.command(f"edit {tmp_path / 'main.py'}")
    editor.wait_screen("The model file is damaged", "Draftwood: error")


def test_progress_of_a_download_is_in_the_status_line(start, tmp_path):
    editor = start("--start", "download")
    (tmp_path / "main.py").write_text("import os\n")
    editor.nvim.command(f"edit {tmp_path / 'main.py'}")
    assert "%%" not in editor.wait_screen("Draftwood: downloading 42%")


def test_the_command_completes_what_the_server_offers(editor):
    names = editor.nvim.funcs.getcompletion("Draftwood ", "cmdline")
    assert {"explain", "fix", "docstring", "tests", "edit", "reason", "restart", "doctor", "log"} <= set(names)
    assert editor.nvim.funcs.getcompletion("Draftwood ex", "cmdline") == ["explain"]


def test_stop_start_and_status(editor, log):
    editor.nvim.command("Draftwood stop")
    until(lambda: not editor.lua("return #vim.lsp.get_clients({ name = 'draftwood' }) > 0"), "the server to stop")
    editor.nvim.command("Draftwood restart")
    editor.wait_ready()
    assert len(events(log, "initialize")) == 1
    editor.keys(":Draftwood status<CR>")
    editor.wait_screen("mean accepted: 2.41")


def test_checkhealth(editor):
    editor.nvim.command("checkhealth draftwood")
    report = editor.text()
    assert "ready, model stub-0.5b" in report
    assert "ERROR" not in report


def test_help_is_found(editor):
    editor.nvim.command(f"helptags {editor.plugin / 'doc'}")
    editor.nvim.command("help draftwood-options")
    assert "draftwood" in editor.nvim.current.buffer.name


# What lazy.nvim does with a spec that has `dir`, `ft` and `config`: at the first such file it puts the folder on the
# runtime path, sources its plugin files, runs `config`, and lets what was set up meanwhile see the event as well.
LAZY = """
local plugin, cmd, options, spec = ...
vim.o.swapfile = false
vim.o.statusline = '%f %{exists(":Draftwood") ? v:lua.require("draftwood").status() : ""}'
vim.o.laststatus = 2
spec = assert(load('return ' .. spec))()
vim.api.nvim_create_autocmd('FileType', { pattern = spec.ft, once = true, nested = true, callback = function(event)
  vim.opt.runtimepath:prepend(vim.fn.expand(spec.dir))
  for _, file in ipairs(vim.fn.glob(vim.fn.expand(spec.dir) .. '/plugin/**/*.lua', false, true)) do
    vim.cmd.source(file)
  end
  spec.config()
  vim.api.nvim_exec_autocmds('FileType', { buffer = event.buf, modeline = false })
end })
"""
README = Path(__file__).parents[2] / "README.md"


def test_the_readmes_lines_for_lazy_nvim_and_by_hand_serve(nvim, tmp_path, log):
    pytest.importorskip("pynvim", reason="the `editor` extra is not installed")
    from neovim import PLUGIN, Neovim

    lazy, by_hand = re.findall(r"```lua\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)[:2]
    program = tmp_path / "bin" / "draftwood"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\nexec {shlex.join(stub_command(log))}\n")
    program.chmod(0o755)
    lsp_lines = "\n".join(line for line in lazy.splitlines() if "vim.lsp." in line)

    def real(lua: str) -> str:
        """The README's folders are where they are here."""
        lua = lua.replace("~/src/draftwood/editor-client/nvim", str(PLUGIN))
        return lua.replace("~/src/draftwood/.venv/bin/draftwood", str(program))

    # Neovim sources the plugin files of the runtime path after `init.lua`.
    written = f"{by_hand}\n{lsp_lines}\nvim.cmd.runtime({{ 'plugin/draftwood.lua', bang = true }})"
    for number, start in enumerate([f"local spec = [==[{real(lazy)}]==]\n" + LAZY, real(written)]):
        start = start.replace("local plugin, cmd, options, spec = ...\n", "")
        editor = Neovim(nvim, tmp_path, [], start=start)
        try:
            editor.nvim.command(f"edit {tmp_path / f'main{number}.py'}")
            until(lambda: editor.nvim.funcs.exists(":Draftwood") == 2, f"the plugin to be loaded ({number})")  # noqa: B023
            editor.wait_ready()
            editor.keys("idef mul(")
            editor.wait_screen("return x * y")
            editor.keys("<Tab>")
            editor.wait_text("def mul(x, y):\n    return x * y")
        finally:
            editor.close()
