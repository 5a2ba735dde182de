"""How the extension starts, and what it says when it cannot: each test has a window of its own."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pytest
from events import STUB, events, stub_command, until

pytestmark = pytest.mark.editor


@pytest.fixture
def log(tmp_path):
    return tmp_path / "events.jsonl"


@pytest.fixture
def start(code_server, browser_context, tmp_path):
    """Opens a window on a Python file with settings of the machine; closed after the test."""
    from workbench import QUIET_SETTINGS, Workbench

    windows = []

    def start(settings):
        code_server.write_settings(settings)
        code_server.write_settings(QUIET_SETTINGS, "User")
        folder = tmp_path / "project"
        folder.mkdir()
        windows.append(Workbench(code_server, browser_context, folder))
        windows[-1].open("main.py", "import os\n")
        return windows[-1]

    yield start
    for window in windows:
        window.close()


def test_a_download_shows_its_progress(start, log):
    window = start({"draftwood.command": stub_command(log, "--start", "download")})
    window.wait_status("downloading the model 4")
    window.picture("downloading")


def test_an_error_says_what_to_do(start, log):
    window = start({"draftwood.command": stub_command(log, "--start", "error")})
    window.wait_status("not running")
    window.status_item().hover()
    window.page.locator(".monaco-hover", has_text="draftwood models pull").first.wait_for()
    window.picture("error")


def test_a_server_that_dies_again_and_again_is_left_alone_with_one_message(start, log):
    window = start({"draftwood.command": stub_command(log, "--start", "die")})
    window.notification("the server does not stay up")
    window.picture("crash-loop")
    assert len(window.messages()) == 1, window.messages()
    window.wait_status("not running")
    deaths = len(events(log, "initialize"))
    window.click_notification("the server does not stay up", "Restart")
    until(lambda: len(events(log, "initialize")) > deaths, "another try")


def test_a_program_that_does_not_exist(start, log):
    window = start({"draftwood.command": ["/does/not/exist"]})
    window.notification("the server does not stay up")
    window.wait_status("not running")


@pytest.fixture
def wheel(tmp_path, log) -> Path:
    """A package with Draftwood's program in it, which is the stub; installing it needs no network."""
    path = tmp_path / "draftwood-0.0.1-py3-none-any.whl"
    command = stub_command(log)
    program = f"import os\nos.execv({sys.executable!r}, {command!r})\n"
    info = "draftwood-0.0.1.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("lsp_server/__init__.py", "")
        archive.writestr("lsp_server/cli.py", program)
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: draftwood\nVersion: 0.0.1\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    assert STUB.exists()
    return path


def test_the_first_run_installs_the_server_when_asked_to(start, wheel, log):
    base = Path(sys.base_prefix) / "bin" / "python3"
    window = start({"draftwood.package": str(wheel), "draftwood.python": str(base)})
    window.notification("needs its server")
    window.wait_status("starting")
    window.picture("first-run")
    assert not events(log, "initialize")
    window.click_notification("needs its server", "Install")
    until(lambda: events(log, "initialize"), "the installed server", seconds=120)
    window.wait_status("ready")
    window.type("def add(")
    window.wait_ghost("return a + b")


def test_the_walkthrough_has_three_steps(start, log):
    window = start({"draftwood.command": stub_command(log)})
    window.wait_status("ready")
    window.status_item().click()
    window.page.locator(".quick-input-list .monaco-list-row", has_text="Getting started").click()
    steps = window.page.locator(".gettingStartedContainer .getting-started-step")
    until(lambda: steps.count() == 3, "the steps of the walkthrough")
    window.picture("walkthrough")
