"""The packaged extension in a real VS Code, against the stub server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from events import events, stub_command, until

pytestmark = pytest.mark.editor


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return tmp_path_factory.mktemp("stub") / "events.jsonl"


@pytest.fixture(scope="module")
def window(code_server, browser_context, log, tmp_path_factory) -> Iterator[object]:
    """One window for all tests of this module: opening one takes seconds."""
    from workbench import Workbench

    code_server.write_settings({"draftwood.command": stub_command(log)})
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
