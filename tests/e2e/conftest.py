"""Fixtures that bring the real editors; where one cannot be had, its tests are skipped and say why."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

# The helpers beside this file are modules of the tests, not of the package.
sys.path.insert(0, str(Path(__file__).parent))

pytest.register_assert_rewrite("events", "neovim", "workbench")

import editors  # noqa: E402

T = TypeVar("T")


def brought(bring: Callable[[], T]) -> T:
    """What `bring` brings, or a skip with its reason."""
    try:
        return bring()
    except editors.Unavailable as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def code_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """A code-server with the packaged extension installed."""
    pytest.importorskip("playwright.sync_api", reason="the `editor` extra is not installed")
    from workbench import CodeServerProcess

    installed = brought(editors.code_server)
    package = brought(editors.vsix)
    server = CodeServerProcess(installed, tmp_path_factory.mktemp("code-server"), package)
    yield server
    server.close()


@pytest.fixture(scope="module")
def browser_context() -> Iterator[object]:
    """A browser window. Of each module: Playwright's event loop must not stay open around other tests."""
    api = pytest.importorskip("playwright.sync_api", reason="the `editor` extra is not installed")
    chromium = brought(editors.browser)
    with api.sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
        browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
        context = browser.new_context(viewport={"width": 1200, "height": 720})
        context.set_default_navigation_timeout(120_000)  # a busy machine loads the workbench in half a minute
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        yield context
        context.close()
        browser.close()


@pytest.fixture(scope="session", params=sorted(editors.NEOVIM))
def nvim(request: pytest.FixtureRequest) -> Path:
    """The binary of each supported Neovim."""
    return brought(lambda: editors.neovim(request.param))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A real editor on a busy machine now and then loses the focus or is late; a fault of ours fails every time."""
    for item in items:
        if item.get_closest_marker("editor"):
            item.add_marker(pytest.mark.flaky(reruns=2, reruns_delay=2))
