"""Which documents drafts come from."""

from __future__ import annotations

from pathlib import Path

import pytest

from decoding.assistant import Assistant
from decoding.messages import EngineOptions, Snapshot

ONE = "def greet(name):\n    return 'hello ' + name\n"


@pytest.fixture(scope="module")
def options(tiny_folder: Path) -> EngineOptions:
    return EngineOptions(model=str(tiny_folder), runtime="transformers", dtype="float32", max_tokens=24)


@pytest.fixture
def assistant(options: EngineOptions) -> Assistant:
    return Assistant(options)


def sources(assistant: Assistant) -> set[str]:
    return set(assistant.writer.drafting.lookup._documents)


def visit(assistant: Assistant, options: EngineOptions, uri: str, text: str) -> None:
    snapshot = Snapshot(
        uri=uri, version=1, text=text, offset=len(text.encode("utf-8", "surrogatepass")), language="python"
    )
    assistant.warm(snapshot, options, lambda: False)


def test_the_document_that_was_left_is_a_source_and_the_one_written_in_is_not(
    assistant: Assistant, options: EngineOptions
) -> None:
    visit(assistant, options, "file:///one.py", ONE)
    assert "file:///one.py" not in sources(assistant)
    visit(assistant, options, "file:///two.py", "def gr")
    assert "file:///one.py" in sources(assistant)
    visit(assistant, options, "file:///two.py", "def gree")
    tokens = assistant.model.encode(ONE)
    lookup = assistant.writer.drafting.lookup
    lookup.begin(tokens[:4])
    assert tokens[4] in dict(lookup.successors(lookup.root(tokens[:4])))
    visit(assistant, options, "file:///one.py", ONE)
    assert "file:///one.py" not in sources(assistant)
    assert "file:///two.py" in sources(assistant)


def test_a_closed_document_is_no_source(assistant: Assistant, options: EngineOptions) -> None:
    visit(assistant, options, "file:///closed.py", ONE)
    assistant.forget("file:///closed.py")
    visit(assistant, options, "file:///other.py", ONE)
    assert "file:///closed.py" not in sources(assistant)
    visit(assistant, options, "file:///third.py", "x")
    assistant.forget("file:///other.py")
    assert "file:///other.py" not in sources(assistant)


def test_a_huge_document_is_read_in_part(assistant: Assistant, options: EngineOptions) -> None:
    visit(assistant, options, "file:///huge.py", "x = 1\n" * 40_000)
    visit(assistant, options, "file:///small.py", "x")
    assert 0 < len(assistant.writer.drafting.lookup._documents["file:///huge.py"].tokens) <= 100_000


def test_half_a_pair_of_surrogates_is_no_obstacle(assistant: Assistant, options: EngineOptions) -> None:
    visit(assistant, options, "file:///odd.py", "x = '\ud83d'\n")
    visit(assistant, options, "file:///other.py", "x")
    assert "file:///odd.py" in sources(assistant)
