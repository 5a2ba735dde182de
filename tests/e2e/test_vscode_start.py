"""How the extension starts, and what it says when it cannot: each test has a window of its own."""

from __future__ import annotations

import json
import shutil
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


def evil(folder: Path) -> Path:
    """A folder whose own settings name a program; the file that it would make."""
    made = folder / "made"
    (folder / ".vscode").mkdir(parents=True)
    code = f"open({str(made)!r}, 'w')"
    settings = {"draftwood.command": [sys.executable, "-c", code], "draftwood.python": str(folder / "python")}
    (folder / ".vscode" / "settings.json").write_text(json.dumps(settings))
    return made


def test_a_folder_cannot_name_programs(code_server, browser_context, log, tmp_path):
    from workbench import QUIET_SETTINGS, Workbench

    made = evil(tmp_path / "project")
    code_server.write_settings({"draftwood.command": stub_command(log)})
    code_server.write_settings(QUIET_SETTINGS, "User")
    window = Workbench(code_server, browser_context, tmp_path / "project")
    window.open("main.py", "import os\n")
    window.wait_status("ready")
    window.type("def add(")
    window.wait_ghost("return a + b")
    window.close()
    assert not made.exists()


def test_a_folder_that_is_not_trusted(browser_context, log, tmp_path):
    """Suggestions come from the user's own server; nothing of the folder's is run."""
    import editors
    from conftest import brought
    from workbench import QUIET_SETTINGS, CodeServerProcess, Workbench

    made = evil(tmp_path / "project")
    home = tmp_path / "code-server"
    server = CodeServerProcess(brought(editors.code_server), home, brought(editors.vsix), trusts_all=False)
    try:
        server.write_settings({"draftwood.command": stub_command(log)})
        asked = {"security.workspace.trust.enabled": True, "security.workspace.trust.startupPrompt": "never"}
        server.write_settings(QUIET_SETTINGS | asked, "User")
        window = Workbench(server, browser_context, tmp_path / "project")
        window.page.locator(".statusbar-item", has_text="Restricted Mode").wait_for()
        window.open("main.py", "import os\n")
        window.wait_status("ready")
        window.type("def add(")
        window.wait_ghost("return a + b")
        window.picture("restricted")
        window.close()
    finally:
        server.close()
    assert not made.exists()


def test_a_workspace_of_several_folders_has_one_server(code_server, browser_context, log, tmp_path):
    from workbench import QUIET_SETTINGS, Workbench

    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
    workspace = tmp_path / "both.code-workspace"
    workspace.write_text(json.dumps({"folders": [{"path": str(folder)} for folder in folders]}))
    code_server.write_settings({"draftwood.command": stub_command(log)})
    code_server.write_settings(QUIET_SETTINGS, "User")
    window = Workbench(code_server, browser_context, folders[0], workspace)
    for folder in folders:
        window.folder = folder
        path = window.open(f"{folder.name}.py", "import os\n")
        window.wait_status("ready")
        window.type("def add(")
        window.wait_ghost("return a + b")
        window.press("Tab")
        window.save(path, "import os\ndef add(a, b):\n    return a + b")
    assert len(events(log, "initialize")) == 1
    window.close()


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


@pytest.fixture
def python_without_venv(tmp_path) -> Path:
    """A Python as Debian installs it without the package python3.11-venv."""
    path = tmp_path / "python3"
    path.write_text(
        f"#!{sys.executable}\n"
        "import json, sys\n"
        "if 'venv' in sys.argv:\n"
        "    print('The virtual environment was not created successfully because ensurepip is not\\n'\n"
        "          'available.  On Debian/Ubuntu systems, you need to install the python3-venv\\n'\n"
        "          'package using the following command.\\n\\n    apt install python3.11-venv\\n')\n"
        "    sys.exit(1)\n"
        "print(json.dumps({'version': [3, 11], 'installed': False}))\n"
    )
    path.chmod(0o755)
    return path


def test_a_python_without_venv_says_which_package_is_missing(start, code_server, python_without_venv, log):
    # An environment that an earlier test had made would be found and used.
    for made in (code_server.home / "data" / "User" / "globalStorage").glob("*draftwood*/python"):
        shutil.rmtree(made)
    window = start({"draftwood.python": str(python_without_venv)})
    window.click_notification("needs its server", "Install")
    window.notification('Run "sudo apt install python3.11-venv" in a terminal')
    window.picture("no-venv")
    until(lambda: len(window.messages()) == 1, "the progress to go away: one message stays")


def test_the_walkthrough_has_three_steps(start, log):
    window = start({"draftwood.command": stub_command(log)})
    window.wait_status("ready")
    window.status_item().click()
    window.page.locator(".quick-input-list .monaco-list-row", has_text="Getting started").click()
    steps = window.page.locator(".gettingStartedContainer .getting-started-step")
    until(lambda: steps.count() == 3, "the steps of the walkthrough")
    window.picture("walkthrough")
