"""Drives a real VS Code workbench (code-server in a browser) as a person would: keys, palette, what is on screen."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

from editors import CodeServer
from events import until
from playwright.sync_api import BrowserContext, Frame, Locator, Page
from playwright.sync_api import TimeoutError as NotInTime

QUIET_SETTINGS: dict[str, Any] = {
    "chat.disableAIFeatures": True,
    "editor.minimap.enabled": False,
    "editor.wordBasedSuggestions": "off",
    "extensions.autoCheckUpdates": False,
    "extensions.autoUpdate": False,
    "files.autoSave": "off",
    "git.enabled": False,
    "security.workspace.trust.enabled": False,
    "telemetry.telemetryLevel": "off",
    "update.mode": "none",
    "window.commandCenter": False,
    "workbench.editor.useModal": "off",
    "workbench.colorTheme": "Default Dark Modern",
    "workbench.layoutControl.enabled": False,
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "workbench.startupEditor": "none",
    "workbench.tips.enabled": False,
}
# What a person sees. Monaco keeps hidden copies of ghost text too, so only spans with a box on the screen count.
GHOST = """() => [...document.querySelectorAll(
    '.monaco-editor .ghost-text-decoration, .monaco-editor .ghost-text-decoration-preview, .monaco-editor .ghost-text')]
  .filter((e) => !e.classList.contains('ghost-text-hidden'))
  .map((e) => ({ box: e.getBoundingClientRect(), text: e.textContent }))
  .filter((e) => e.box.width > 0)
  .sort((a, b) => Math.round(a.box.top) - Math.round(b.box.top) || a.box.left - b.box.left)
  .map((e) => e.text).join('').replace(/[\\u00a0\\u00b7]/g, ' ')"""


class CodeServerProcess:
    """A running code-server with its own profile, in its own process group."""

    def __init__(self, installed: CodeServer, home: Path, extension: Path | None, *, trusts_all: bool = True) -> None:
        """With `trusts_all` false it asks whether a folder is to be trusted, as a fresh VS Code does."""
        self.home = home
        for scope in ("User", "Machine"):
            (home / "data" / scope).mkdir(parents=True)
        self.write_settings(QUIET_SETTINGS, "User")
        profile = ["--user-data-dir", str(home / "data"), "--extensions-dir", str(home / "extensions")]
        command = [str(installed.node), str(installed.entry), *profile]
        # Nothing may be written to the user's own configuration, and no gallery asked.
        env = os.environ | {
            "XDG_CONFIG_HOME": str(home / "config"),
            "XDG_DATA_HOME": str(home / "share"),
            "EXTENSIONS_GALLERY": json.dumps({"serviceUrl": ""}),
        }
        if extension is not None:
            subprocess.run([*command, "--install-extension", str(extension)], env=env, check=True, capture_output=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        options = ["--auth", "none", "--bind-addr", f"127.0.0.1:{self.port}", "--disable-telemetry"]
        options += ["--disable-update-check", "--disable-getting-started-override"]
        options += ["--disable-workspace-trust"] if trusts_all else []
        with open(home / "server.log", "w") as log:
            self.process = subprocess.Popen(
                [*command, *options], env=env, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
        until(self._healthy, "code-server to answer")

    def _healthy(self) -> bool:
        try:
            return urllib.request.urlopen(f"http://127.0.0.1:{self.port}/healthz", timeout=2).status == 200
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False

    def write_settings(self, settings: dict[str, Any], scope: str = "Machine") -> None:
        """Replaces the settings that a window finds when it opens. Programs are named in those of the machine."""
        path = self.home / "data" / scope / "settings.json"
        whole = path.with_suffix(".new")  # a window that is open must not read half of them
        whole.write_text(json.dumps(settings, indent=2))
        whole.replace(path)

    def close(self) -> None:
        """Ends the server, its extension hosts and the language servers."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Workbench:
    """One window."""

    def __init__(
        self, server: CodeServerProcess, context: BrowserContext, folder: Path, workspace: Path | None = None
    ) -> None:
        """On a folder, or on a `workspace` file that names several of them."""
        self.server = server
        self.folder = folder
        self.context = context
        self.page: Page = context.new_page()
        query = urllib.parse.urlencode({"workspace": str(workspace)} if workspace else {"folder": str(folder)})
        self.page.goto(f"http://127.0.0.1:{server.port}/?{query}")
        self.page.wait_for_selector(".monaco-workbench .explorer-folders-view", timeout=90_000)

    def open(self, name: str, text: str | None = None) -> Path:
        """Opens a file of the folder, made with `text` first, and puts the cursor at its end."""
        path = self.folder / name
        if text is not None:
            path.write_bytes(text.encode())
        self.palette(str(path), commands=False)
        self.page.wait_for_selector(f'.tab.active[data-resource-name="{path.name}"]', timeout=20_000)
        self.page.wait_for_selector(".editor-group-container.active .view-lines", timeout=20_000)
        self.press("Control+End")
        return path

    def palette(self, text: str, *, commands: bool = True) -> None:
        """Runs a command by its title, or opens a file by its name; asks again where the focus went elsewhere."""
        box = self.page.locator(".quick-input-widget input[type=text]")
        first = self.page.locator(".quick-input-list .monaco-list-row").first
        wanted = text.rsplit("/", 1)[-1].lower()

        def listed() -> bool:
            self.press("F1" if commands else "Control+p")
            try:
                box.fill(f">{text}" if commands else text, timeout=5_000)
                first.filter(has_text=re.compile(re.escape(wanted), re.IGNORECASE)).wait_for(timeout=5_000)
            except NotInTime:
                self.press("Escape")
                return False
            return True

        until(listed, f"{wanted!r} in the palette", seconds=60)
        self.press("Enter")

    def change_settings(self, settings: dict[str, Any]) -> None:
        """Edits the user settings as a person would: in the editor."""
        self.palette("Preferences: Open User Settings (JSON)")
        self.page.wait_for_selector('.tab.active[data-resource-name="settings.json"]')
        self.press("Control+a")
        self.page.keyboard.insert_text(json.dumps(QUIET_SETTINGS | settings))
        self.press("Control+s", "Control+F4")

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def type(self, text: str) -> None:
        """Types as a fast person does, so that the editor's own reactions (closing brackets, widgets) happen."""
        self.page.keyboard.type(text, delay=25)

    def ghost(self) -> str:
        """The ghost text on the screen; several lines are joined."""
        return str(self.page.evaluate(GHOST))

    def wait_ghost(self, wanted: str) -> str:
        def shown() -> str:
            seen = self.ghost()
            return seen if wanted in seen else ""

        return until(shown, f"ghost text with {wanted!r} (now {self.ghost()!r})")

    def wait_no_ghost(self) -> None:
        until(lambda: self.ghost() == "", "the ghost text to go")

    def save(self, path: Path, wanted: str) -> None:
        """Saves and waits until the file is exactly `wanted`."""
        self.press("Control+s")
        read = path.read_bytes
        try:
            until(lambda: read() == wanted.encode(), f"{path.name} to be saved", seconds=10)
        except AssertionError:
            assert read().decode() == wanted

    def status_item(self) -> Locator:
        return self.page.locator('.statusbar-item[id$="draftwood.status"]')

    def status(self) -> str:
        """What a screen reader says of the status bar item."""
        item = self.status_item()
        return item.first.get_attribute("aria-label") or "" if item.count() else ""

    def wait_status(self, wanted: str, seconds: float = 40.0) -> str:
        def said() -> str:
            status = self.status()
            return status if wanted in status else ""

        return until(said, f"status {wanted!r} (now {self.status()!r})", seconds)

    def answer(self) -> Frame:
        """The page inside the answer view."""

        def found() -> Frame | None:
            # Not by its address: that of a page which was just written into a frame is not always known.
            return next((frame for frame in self.page.frames if frame.locator("#answer").count()), None)

        return until(found, "the answer view", seconds=40)

    def notification(self, text: str) -> None:
        """Waits for a message of the workbench."""
        self.page.locator(".notification-toast", has_text=text).first.wait_for(timeout=40_000)

    def messages(self) -> list[str]:
        """The texts of Draftwood's messages that are on the screen; the workbench has messages of its own."""
        texts = self.page.locator(".notification-toast").all_inner_texts()
        return [text for text in texts if "Draftwood" in text]

    def click_notification(self, text: str, button: str) -> None:
        toast = self.page.locator(".notification-toast", has_text=text).first
        toast.wait_for(timeout=40_000)
        toast.locator(".monaco-button", has_text=button).first.click()

    def picture(self, name: str) -> None:
        """A screenshot for a person to judge, where `DRAFTWOOD_PICTURES` names a folder."""
        if folder := os.environ.get("DRAFTWOOD_PICTURES"):
            self.page.screenshot(path=Path(folder) / f"{name}.png")

    def close(self) -> None:
        self.page.close()
