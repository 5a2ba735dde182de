"""Commands over stdio with a real model: what is streamed is what is answered, and proposed edits parse."""

from __future__ import annotations

import ast
from collections.abc import AsyncIterator
from typing import Any

import pytest

from decoding.reasoning.docstrings import parameters_in
from lsp_server.worker_client import ASSISTANT
from tests.lsp_server.editor import serving
from tests.lsp_server.test_commands import Asking, capable, span

pytestmark = pytest.mark.model

TEXT = """\
import json


def load(path, default=None):
    with open(path) as file:
        data = json.load(file)
    return data or default
"""


@pytest.fixture
async def editor() -> AsyncIterator[Asking]:
    running = Asking()
    settings = {"model": {"name": "smollm2-135m"}, "answer": {"maxTokens": 48, "tries": 2}}
    await running.start(settings, command=serving(ASSISTANT), capable=capable(), ready_s=500)
    running.open(TEXT)
    yield running
    await running.stop()


def applied(edit: dict[str, Any]) -> str:
    lines = TEXT.split("\n")
    [change] = edit["documentChanges"]
    [replacement] = change["edits"]
    start, end = replacement["range"]["start"], replacement["range"]["end"]
    head = "\n".join([*lines[: start["line"]], lines[start["line"]][: start["character"]]])
    tail = "\n".join([lines[end["line"]][end["character"] :], *lines[end["line"] + 1 :]])
    return head + replacement["newText"] + tail


async def test_an_explanation_streams(editor: Asking) -> None:
    result = await editor.answer("explain", span=span(5, 0, 5, 0))
    assert result["text"].strip()
    assert "".join(editor.pieces["t"]) == result["text"]
    assert len(editor.pieces["t"]) > 1


async def test_a_docstring_has_the_parameters(editor: Asking) -> None:
    result = await editor.answer("docstring", span=span(3, 0, 3, 0))
    docstring = ast.get_docstring(ast.parse(applied(result["edit"])).body[1])
    assert docstring is not None
    assert parameters_in(docstring, "google") == ("path", "default")


async def test_an_edit_parses_or_is_not_proposed(editor: Asking) -> None:
    result = await editor.answer("edit", span=span(3, 0, 6, 26), instruction="add type annotations")
    if result["edit"] is None:
        assert "no change is proposed" in result["text"]
    else:
        ast.parse(applied(result["edit"]))


async def test_a_question_is_thought_about(editor: Asking) -> None:
    result = await editor.answer("reason", question="Is 7 prime?", thinkingTokens=8)
    assert result["text"].startswith("<think>\n")
    assert result["text"].count("</think>") == 1
    assert result["text"].partition("</think>")[2].strip()
