"""Measures the time from a keystroke to ghost text on the screen, in the real editors.

`python tests/e2e/latency.py vscode|nvim-0.11|nvim-0.12 stub|model [--samples N]` prints one JSON object. A sample types
the beginning of a line and waits: the clock starts at the last keystroke, inside the editor, and stops when the ghost
text is there (VS Code: the frame in which it has a box on the screen; Neovim: its mark, looked for every 2 ms). Each
figure contains the time that the editor itself waits before it asks, which is given beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import editors
from events import stub_command

DEBOUNCE_MS = {"vscode": 50, "nvim-0.11": 75, "nvim-0.12": 200}
WAIT_SECONDS = 4.0
HEADER = '''"""Orders of a small shop."""

from dataclasses import dataclass, field


@dataclass
class Item:
    name: str
    price: float
    quantity: int = 1


@dataclass
class Order:
    number: int
    items: list[Item] = field(default_factory=list)

    def total(self) -> float:
        return sum(item.price * item.quantity for item in self.items)


'''
# Beginnings of lines that a person would write next; each is typed into the same file, below the last.
BEGINNINGS = (
    "def find_item(order: Order, name: str) -> Item | None:",
    "def cheapest(order: Order) -> Item:",
    "def count_items(order: Order) -> int:",
    "orders = [Order(",
    "first = orders",
    "names = [item.name for",
    "prices = {item.name:",
    "for order in orders:",
    "largest = max(",
    "def apply_discount(order: Order, percent: float) -> None:",
    "assert orders[0].number",
    "by_number = {order.number: order for",
    "def is_empty(order: Order) -> bool:",
    "print(f'{order.number}:",
    "import json",
    "text = json.dumps(",
    "class Shop:",
    "shop = Sho",
    "total = sum(",
    "if not orders",
)
STUB_BEGINNINGS = ("total = ",) * len(BEGINNINGS)
# The clock of the page: started by a key, stopped by the first frame that shows ghost text.
CLOCK = """(ghost) => {
  const seen = eval(ghost);
  window.clock = { key: 0, shown: null };
  document.addEventListener('keydown', () => { window.clock = { key: performance.now(), shown: null }; }, true);
  const look = () => {
    if (window.clock.shown === null && window.clock.key && seen() !== '')
      window.clock.shown = performance.now() - window.clock.key;
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}"""
NVIM_CLOCK = """
_G.clock = { key = 0 }
vim.api.nvim_create_autocmd('InsertCharPre', { callback = function()
  _G.clock = { key = vim.uv.hrtime() }
end })
vim.uv.new_timer():start(0, 2, vim.schedule_wrap(function()
  if _G.clock.shown or _G.clock.key == 0 then return end
  for _, name in ipairs({ 'draftwood.ghost', 'nvim.lsp.inline_completion' }) do
    local namespace = vim.api.nvim_get_namespaces()[name]
    if namespace and #vim.api.nvim_buf_get_extmarks(0, namespace, 0, -1, { limit = 1 }) > 0 then
      _G.clock.shown = (vim.uv.hrtime() - _G.clock.key) / 1e6
    end
  end
end))
"""


def main() -> None:
    """One editor, one server."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("editor", choices=sorted(DEBOUNCE_MS))
    parser.add_argument("server", choices=("stub", "model"))
    parser.add_argument("--samples", type=int, default=len(BEGINNINGS))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        stub = options.server == "stub"
        server = stub_command(home / "events.jsonl") if stub else [sys.executable, "-m", "lsp_server.cli"]
        beginnings = (STUB_BEGINNINGS if stub else BEGINNINGS)[: options.samples]
        measure = vscode if options.editor == "vscode" else neovim
        samples = measure(options.editor, home, server, beginnings)
    print(json.dumps(summary(options.editor, options.server, samples)))


def summary(editor: str, server: str, samples: list[float | None]) -> dict[str, object]:
    """Percentiles over the samples in which something was suggested at all."""
    shown = sorted(sample for sample in samples if sample is not None)
    debounce = DEBOUNCE_MS[editor]
    result: dict[str, object] = {"editor": editor, "server": server, "samples": len(samples), "shown": len(shown)}
    if shown:
        p50, p95 = statistics.median(shown), shown[min(len(shown) - 1, round(0.95 * len(shown)))]
        result |= {"p50_ms": round(p50), "p95_ms": round(p95), "editor_debounce_ms": debounce}
        result |= {"p50_without_debounce_ms": round(p50 - debounce)}
    return result | {"load": round(os.getloadavg()[0], 1)}


def vscode(_: str, home: Path, server: list[str], beginnings: tuple[str, ...]) -> list[float | None]:
    """Types into a VS Code window."""
    from playwright.sync_api import sync_playwright
    from workbench import GHOST, CodeServerProcess, Workbench

    code = CodeServerProcess(editors.code_server(), home / "code-server", editors.vsix())
    code.write_settings({"draftwood.command": server})
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=editors.browser(), args=["--no-sandbox"])
            (home / "project").mkdir()
            window = Workbench(code, browser.new_context(viewport={"width": 1200, "height": 720}), home / "project")
            window.open("shop.py", HEADER)
            window.wait_status("ready")
            window.page.evaluate(CLOCK, GHOST)

            def sample(beginning: str) -> float | None:
                window.press("Escape", "Control+End", "Enter", "Home", "Shift+End", "Delete")
                window.type(beginning)
                return _wait(lambda: window.page.evaluate("window.clock.shown"), window.page.wait_for_timeout)

            return [sample(beginning) for beginning in beginnings]
    finally:
        code.close()


def neovim(version: str, home: Path, server: list[str], beginnings: tuple[str, ...]) -> list[float | None]:
    """Types into a Neovim."""
    import time

    from neovim import Neovim

    editor = Neovim(editors.neovim(version.removeprefix("nvim-")), home, [*server, "serve"])
    try:
        editor.open(home / "shop.py", HEADER)
        editor.lua(NVIM_CLOCK)

        def sample(beginning: str) -> float | None:
            editor.keys("<Esc>Go<C-u>")
            for character in beginning:
                editor.keys("<lt>" if character == "<" else character)
                time.sleep(0.025)
            return _wait(lambda: editor.lua("return _G.clock.shown"), lambda ms: time.sleep(ms / 1000))

        return [sample(beginning) for beginning in beginnings]
    finally:
        editor.close()


def _wait(shown: Callable[[], float | None], sleep: Callable[[float], None]) -> float | None:
    """What the clock says once it has stopped, None where nothing was suggested."""
    for _ in range(int(WAIT_SECONDS / 0.05)):
        sleep(50)
        if (milliseconds := shown()) is not None:
            return float(milliseconds)
    return None


if __name__ == "__main__":
    main()
