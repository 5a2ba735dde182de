"""Whether a document agrees with a text that is being written, closers included that an editor types by itself."""

from __future__ import annotations

import pytest

from decoding.messages import EngineOptions
from lsp_server.documents import Document
from lsp_server.generation import Generation
from lsp_server.warming import Warming

OPTIONS = EngineOptions()


def document(text: str) -> tuple[Document, int]:
    before, _, after = text.partition("|")
    return Document("file:///a.py", "python", before + after, 1), len(before.encode())


def generation(text: str, raw: str) -> Generation:
    made, offset = document(text)
    found = Generation.at(made.view(offset), OPTIONS)
    found.raws, found.finished, found.whole = {0: raw}, True, True
    return found


def accepted(found: Generation, text: str) -> str | None:
    """The document once what is left for it is accepted, None where it is another place."""
    made, offset = document(text)
    view = made.view(offset)
    typed = found.typed(view)
    assert found.agrees(view.data) or typed is None
    if typed is None:
        return None
    answer = found.answer(view, typed, "never")
    return (
        text.replace("|", "") if answer is None else view.what_if(answer.start, answer.end, answer.text).data.decode()
    )


TAIL = "\nprint(x)\n"


@pytest.mark.parametrize(
    ("place", "raw", "later"),
    [
        pytest.param("x = f|", "(a, b)\n", "x = f(|)", id="typed with its closer"),
        pytest.param("x = f|", "(a, b)\n", "x = f(a, |)", id="and typed on"),
        pytest.param("x = f(|)", "a, b)\n", "x = f(a|)", id="closed before"),
        pytest.param("x = f(|)", "a, b)\n", "x = f(a, b)|", id="typed over"),
        pytest.param("x = f(|)", "a, b)\n", "x = f(|", id="taken away"),
        pytest.param("x = f(|", "a, b)\n", "x = f(|)", id="put there"),
        pytest.param("x = f([|])", "a], b)\n", "x = f([a]|)", id="the inner one typed over"),
        pytest.param("x = |", '"name", b\n', 'x = "na|"', id="a quote with its closer"),
        pytest.param('x = "|"', 'name", b\n', 'x = "name"|', id="a quote typed over"),
    ],
)
def test_closers_come_and_go(place: str, raw: str, later: str) -> None:
    whole = place.split("|")[0] + raw.rstrip("\n")
    assert accepted(generation(place + TAIL, raw), later + TAIL) == whole + TAIL


@pytest.mark.parametrize(
    ("place", "later"),
    [
        pytest.param("x = f(|)", "x = f(|y)", id="something else in the brackets"),
        pytest.param("x = f|", "x = f|)", id="a closer of nothing in the line"),
        pytest.param("x = f(|)", "x = f(|]", id="another closer"),
        pytest.param("x = f(|)", "x = f(q|)", id="something else typed"),
        pytest.param("x = f(|)", "x = f(a|])", id="a closer of nothing behind what was typed"),
    ],
)
def test_anything_else_is_another_place(place: str, later: str) -> None:
    assert accepted(generation(place + TAIL, "a, b)\n"), later + TAIL) is None


async def test_a_place_stays_read_when_a_bracket_brings_its_closer_along() -> None:
    warming = Warming(None)  # type: ignore[arg-type]
    opened, before = document("x = f|\nprint(x)\n")
    typed, after = document("x = f(|)\nprint(x)\n")
    warming.note(opened.view(before))
    assert warming.is_read(typed.view(after))
