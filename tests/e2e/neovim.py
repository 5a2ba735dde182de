"""Drives a real Neovim over its RPC: keys go in as a person types them, the drawn screen comes out."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import psutil
import pynvim
from events import until

PLUGIN = Path(__file__).parents[2] / "editor-client" / "nvim"
ROWS, COLUMNS = 24, 100
SCREEN = """
vim.cmd.redraw()
local rows = {}
for row = 1, vim.o.lines do
  local cells = {}
  for column = 1, vim.o.columns do cells[column] = vim.fn.screenstring(row, column) end
  rows[row] = (table.concat(cells):gsub('%s+$', ''))
end
return table.concat(rows, '\\n')
"""
GHOST_IS_SHOWN = """
for _, name in ipairs({ 'draftwood.ghost', 'nvim.lsp.inline_completion' }) do
  local namespace = vim.api.nvim_get_namespaces()[name]
  if namespace and #vim.api.nvim_buf_get_extmarks(0, namespace, 0, -1, { limit = 1 }) > 0 then return true end
end
return false
"""
START = """
local plugin, cmd, options = ...
vim.o.swapfile = false
vim.o.cmdheight = 3 -- long messages would end in a prompt
vim.o.statusline = '%f %{v:lua.require("draftwood").status()}'
vim.o.laststatus = 2
vim.opt.runtimepath:append(plugin)
vim.cmd.source(plugin .. '/plugin/draftwood.lua')
require('draftwood').setup(options)
vim.lsp.config('draftwood', { cmd = cmd })
vim.lsp.enable('draftwood')
"""


class Neovim:
    """One editor with the plugin on its runtimepath and nothing of the user's."""

    plugin = PLUGIN

    def __init__(
        self,
        binary: Path,
        home: Path,
        server: list[str],
        options: dict[str, Any] | None = None,
        start: str = START,
    ) -> None:
        """`start` is the Lua that joins the plugin's folder, the server's command line and the options."""
        # Even with --clean it would write its logs to the user's folders. The cache is the server's: models are there.
        env = {f"XDG_{name}_HOME": str(home / name.lower()) for name in ("STATE", "DATA", "CONFIG")}
        os.environ.update(env)  # pynvim starts the child with our own environment
        self.nvim = pynvim.attach("child", argv=[str(binary), "--clean", "--embed", "--headless"])
        self.nvim.ui_attach(COLUMNS, ROWS, rgb=True)  # an embedded Neovim waits for a screen before it reads keys
        self.home = home
        self.pid: int = self.nvim.funcs.getpid()
        self.lua(start, str(PLUGIN), server, options or {})

    def lua(self, code: str, *arguments: Any) -> Any:
        """Runs Lua in the editor. Fails at once where an error has left a prompt that would block every call."""
        if self.nvim.api.get_mode()["blocking"]:
            self.nvim.input("<CR>")
            time.sleep(0.2)
            raise AssertionError("Neovim waits at a prompt: " + self.nvim.command_output("messages"))
        return self.nvim.exec_lua(code, *arguments)

    def open(self, path: Path, text: str | None = None, seconds: float = 60.0) -> None:
        """Opens a file, made with `text` first, and waits for the server."""
        if text is not None:
            path.write_bytes(text.encode())
        self.nvim.command(f"edit {path}")
        self.wait_ready(seconds)

    def forget(self) -> None:
        """Closes everything that a test has opened, and empties the server's log."""
        self.lua("vim.cmd.stopinsert(); vim.cmd('silent! tabonly! | silent! only!')")
        self.nvim.command("set completeopt& | messages clear | enew!")
        self.lua("""
            for _, bufnr in ipairs(vim.api.nvim_list_bufs()) do
              if bufnr ~= vim.api.nvim_get_current_buf() then vim.api.nvim_buf_delete(bufnr, { force = true }) end
            end""")
        (self.home / "events.jsonl").write_text("")

    def server_pids(self) -> list[int]:
        """The processes of its servers: one for each root folder, as in any Neovim."""
        children = psutil.Process(self.pid).children()
        return [child.pid for child in children if any("stub_server" in word for word in child.cmdline())]

    def wait_ready(self, seconds: float = 60.0) -> None:
        said = "return require('draftwood').status()"
        until(lambda: self.lua(said) == "Draftwood", "the server to be ready", seconds)

    def ghost_is_shown(self) -> bool:
        return bool(self.lua(GHOST_IS_SHOWN))

    def keys(self, keys: str) -> None:
        self.nvim.input(keys)

    def screen(self) -> str:
        return str(self.lua(SCREEN))

    def wait_screen(self, *wanted: str, seconds: float = 10.0) -> str:
        """Waits until every one of `wanted` is on the screen."""

        def shown() -> str:
            screen = self.screen()
            return screen if all(part in screen for part in wanted) else ""

        try:
            return until(shown, f"{wanted} on the screen", seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.screen()}\n{self.messages()}") from None

    def wait_screen_without(self, unwanted: str) -> None:
        until(lambda: unwanted not in self.screen(), f"{unwanted!r} to leave the screen", seconds=10)

    def text(self) -> str:
        return "\n".join(self.nvim.current.buffer[:])

    def wait_text(self, wanted: str) -> None:
        try:
            until(lambda: self.text() == wanted, "the text", seconds=10)
        except AssertionError:
            assert self.text() == wanted

    def cursor(self) -> tuple[int, int]:
        row, column = self.nvim.current.window.cursor
        return row, column

    def messages(self) -> str:
        return str(self.nvim.command_output("messages"))

    def close(self) -> None:
        """Ends the editor, whatever it is waiting for; its server ends with its input."""
        os.kill(self.pid, signal.SIGKILL)
        self.nvim.close()
