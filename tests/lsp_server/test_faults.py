"""What may break around the server, broken on purpose: it answers, or says honestly why not, and pops nothing up."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from lsp_server.worker_client import ASSISTANT
from tests.lsp_server.conftest import STUB
from tests.lsp_server.editor import Editor, serving
from tests.lsp_server.test_server import says

KEYS = 8
NO_ROOM = ["sh", "-c", 'ulimit -f 0; exec "$@"', "sh"]
"""A command prefix: no file can grow, as on a full disk."""


@pytest.fixture
async def editor() -> AsyncIterator[Editor]:
    new = await Editor().start()
    new.open("x = ")
    yield new
    assert new.client.messages == []
    await new.stop()


def worker(editor: Editor) -> psutil.Process:
    [process] = psutil.Process(editor.server.pid).children()
    return process


async def type_on(editor: Editor, first: int = 4) -> list[str | None]:
    """Keys one after the other, a question at each; what was shown."""
    shown = []
    for column in range(first, first + KEYS):
        editor.edit(0, column, "Q")
        shown.append(await editor.text(0, column + 1))
    return shown


async def test_a_worker_killed_at_every_other_key(editor: Editor) -> None:
    for column in range(4, 8):
        editor.edit(0, column, "Q")
        if column % 2:
            worker(editor).kill()
        await editor.text(0, column + 1)
    editor.edit(0, 8, "Q")

    async def until_answered() -> str | None:
        for _ in range(200):
            if text := await editor.text(0, 9):
                return text
        return None

    assert await until_answered() == says("x = QQQQQ")


@pytest.mark.parametrize("word", ["EXHAUST_NOW", "RAISE_NOW", "REFUSE_NOW"])
async def test_an_engine_that_fails_at_every_key(editor: Editor, word: str) -> None:
    """Out of memory is real: the worker may take no more than it has, and wants a gigabyte."""
    first = worker(editor).pid
    editor.edit(0, 0, f"# {word}\n")
    for column in range(4, 4 + KEYS):
        editor.edit(1, column, "Q")
        assert await editor.text(1, column + 1) is None
    editor.edit(0, 0, "", until=(1, 0))
    editor.edit(0, 4 + KEYS, "Z")
    assert await editor.text(0, 5 + KEYS) == says(f"x = {'Q' * KEYS}Z")
    assert worker(editor).pid == first
    assert not any(status["state"] == "error" for status in editor.statuses)


@pytest.mark.parametrize(
    ("factory", "model"), [(STUB, "stub"), pytest.param(ASSISTANT, "smollm2-135m", marks=pytest.mark.model)]
)
async def test_a_full_disk(factory: str, model: str) -> None:
    """Neither counts nor what a pass costs can be written down."""
    editor = await Editor().start({"model": {"name": model}}, command=[*NO_ROOM, *serving(factory)], ready_s=600)
    editor.open("import os\n\n\ndef join(first, second):\n    return os.path.")
    [item, *_] = await editor.items(4, 19, explicit=True)
    assert item.command is not None
    await editor.command(item.command.command, item.command.arguments[0])
    assert editor.client.messages == []
    assert await editor.stop() == 0


async def test_a_model_that_is_deleted_while_it_runs(tiny_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(tiny_folder, folder)
    settings = {"model": {"name": str(folder), "runtime": "transformers"}, "suggest": {"maxTokens": 4}}
    editor = await Editor().start(settings, command=serving(ASSISTANT), ready_s=200)
    editor.open("x = ")
    shutil.rmtree(folder)
    await type_on(editor)  # what runs needs no file
    assert not any(status["state"] == "error" for status in editor.statuses)
    os.kill(worker(editor).pid, signal.SIGKILL)
    status = await editor.until(lambda status: status["state"] == "error", 200)
    assert str(folder) in status["message"]
    assert "\n" not in status["message"]
    assert await type_on(editor, 4 + KEYS) == [None] * KEYS
    assert editor.client.messages == []
    await editor.stop()
