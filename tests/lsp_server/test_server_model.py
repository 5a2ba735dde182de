"""The whole server over stdio with real models: open, edit, complete, cancel, kill the worker, shut down."""

from __future__ import annotations

import ast
import asyncio
import contextlib
from collections.abc import AsyncIterator

import psutil
import pytest
from pygls.exceptions import JsonRpcException

from lsp_server.worker_client import ASSISTANT
from tests.lsp_server.editor import Editor, serving
from tests.lsp_server.test_server import cancel_all, describe, worker_of

pytestmark = pytest.mark.model

SOURCE = '''\
import math


def circle_area(radius: float) -> float:
    """Area of a circle."""
    return math.pi * radius ** 2


def circle_perimeter(radius: float) -> float:
    """Perimeter of a circle."""
    return {}
'''.format("")
LINE, COLUMN = 10, 11


@pytest.fixture(params=["smollm2-135m", "qwen2.5-coder-0.5b"])
async def editor(request: pytest.FixtureRequest) -> AsyncIterator[Editor]:
    running = Editor()
    # The first run downloads the model and packs its weights.
    await running.start({"model": {"name": request.param}}, command=serving(ASSISTANT), ready_s=500)
    yield running
    await running.stop()


def with_item(source: str, line: int, column: int, text: str) -> str:
    lines = source.split("\n")
    lines[line] = lines[line][:column] + text + lines[line][column:]
    return "\n".join(lines)


async def test_a_day_in_an_editor(editor: Editor) -> None:
    editor.open(SOURCE)
    [item] = await editor.items(LINE, COLUMN)
    text = str(item.insert_text)
    assert "radius" in text
    assert "\n" not in text
    ast.parse(with_item(SOURCE, LINE, COLUMN, text))

    editor.edit(LINE, COLUMN, text[0])
    assert await editor.text(LINE, COLUMN + 1) == text[1:]
    assert (await describe(editor))["from_cache"] == 1

    editor.edit(LINE, COLUMN + 1, "\n\n\ndef sphere_volume(radius: float) -> float:\n    ", until=(LINE, COLUMN + 1))
    request = asyncio.create_task(editor.items(LINE + 4, 4))
    await asyncio.sleep(0.02)
    cancel_all(editor)
    with contextlib.suppress(JsonRpcException):
        await asyncio.wait_for(request, 5)

    worker_of(editor).kill()
    several = await editor.text(LINE + 4, 4)
    assert several
    assert psutil.pid_exists(worker_of(editor).pid)
    stats = await describe(editor)
    assert stats["runtime"]
    assert editor.client.messages == []
