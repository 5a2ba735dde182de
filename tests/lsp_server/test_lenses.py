"""Code lenses: where they are, and what they ask."""

from __future__ import annotations

import ast
import random
import sysconfig
from pathlib import Path

import pytest
from lsprotocol import types

from lsp_server.documents import Document
from lsp_server.lenses import code_lenses
from tests.lsp_server.test_commands import Asking, plain, start

TEXT = '''\
import os
X = """
def not_code(): ...
"""  # def nor_this(): ...
Y = '"' "def" '\\'"""'


@decorated
async def first(é="QUOTES",
):
    def inner():
        ...

class A:
    class B:
\tdef tab(self): ...

    def method(self):
        class Local: ...
if os:
    def given(): ...
def unfinished
'''.replace("QUOTES", "'''")


def lenses(text: str, language: str = "python") -> dict[str, list[str]]:
    """The commands above each line, by the line's text."""
    lines = text.split("\n")
    found: dict[str, list[str]] = {}
    for lens in code_lenses(Document("file:///a.py", language, text, 1), "utf-16"):
        assert lens.command is not None
        found.setdefault(lines[lens.range.start.line].strip(), []).append(lens.command.command.split(".")[1])
    return found


def test_functions_and_classes_that_can_be_reached_have_lenses() -> None:
    some, all_of_them = ["explain", "docstring"], ["explain", "docstring", "tests"]
    assert lenses(TEXT) == {
        "async def first(é=\"'''\",": all_of_them,
        "class A:": all_of_them,
        "class B:": some,
        "def tab(self): ...": some,
        "def method(self):": some,
        "def given(): ...": all_of_them,
        "def unfinished": all_of_them,
    }
    assert lenses(TEXT, "markdown") == {}
    assert lenses("def f(): ...\n" * 50_000) == {}


def expected(text: str) -> set[int]:
    """The lines of headers that are not inside of a function."""
    found: set[int] = set()

    def visit(node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found.add(child.lineno - 1)
            if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                visit(child)

    visit(ast.parse(text))
    return found


def test_the_standard_library_has_them_where_its_syntax_trees_do() -> None:
    """A few headers under an `if` within a class, or in odd literals, may be missed or too many."""
    paths = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    wrong = total = 0
    for path in random.Random(3).sample(paths, 40):
        text = path.read_text(encoding="utf-8").replace("\f", " ")
        here = {lens.range.start.line for lens in code_lenses(Document("file:///a.py", "python", text, 1), "utf-16")}
        if here:
            wrong += len(here ^ expected(text))
            total += len(here)
    assert total > 500
    assert wrong <= total / 200


@pytest.fixture
async def editor():
    running = await start()
    yield running
    await running.stop()


async def test_a_lens_asks_about_its_function(editor: Asking) -> None:
    editor.close()
    editor.open("\n\ndef f(x):\n    return x\n")
    identity = types.TextDocumentIdentifier("file:///a.py")
    found = await editor.client.text_document_code_lens_async(types.CodeLensParams(identity))
    assert found is not None
    command = found[0].command
    assert command is not None
    assert command.title == "Explain"
    [argument] = plain(command.arguments)
    result = plain(await editor.command(command.command, argument))
    assert result["text"].startswith("explain '' b''")
