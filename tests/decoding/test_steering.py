"""Steered answers on a tiny model: openings, constraints, marks, and pauses in which something else is served."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from decoding.assistant import Assistant
from decoding.messages import Chunk, EngineOptions, Snapshot
from decoding.steering import Steering
from tests.decoding.fakes_text import OnlyTokens

MESSAGES = [{"role": "user", "content": "What does it do?"}]


def never() -> bool:
    return False


@pytest.fixture(scope="module")
def options(tiny_folder: Path) -> EngineOptions:
    return EngineOptions(model=str(tiny_folder), runtime="transformers", dtype="float32", max_tokens=24)


@pytest.fixture(scope="module")
def assistant(options: EngineOptions) -> Assistant:
    return Assistant(options)


def test_an_opening_is_part_of_the_prompt_and_not_of_the_text(assistant, options) -> None:
    steered = assistant.answer(MESSAGES, options, never, lambda _: None, steering=Steering(opening="def f("))
    laid_out = assistant._chat_prompt(MESSAGES).token_ids
    assert steered.stats.prompt_tokens == len(laid_out) + len(assistant.model.encode("def f("))
    assert not steered.text.startswith("def f(")


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_pause_changes_nothing(assistant, options, temperature: float) -> None:
    options = options.model_copy(update={"temperature": temperature, "seed": 5})
    plain = assistant.answer(MESSAGES, options, never, lambda _: None)
    other = Snapshot(uri="file:///b.py", text="import json\nx = ", offset=16)
    served = 0

    def pause() -> bool:
        nonlocal served
        served += 1
        if served % 2:
            assistant.complete(other, options, never, lambda _: None)
        return bool(served % 2)

    chunks: list[Chunk] = []
    paused = assistant.answer(MESSAGES, options, never, chunks.append, steering=Steering(pause=pause))
    assert served > 2
    assert (paused.token_ids, paused.text, paused.stop_reason) == (plain.token_ids, plain.text, plain.stop_reason)
    assert "".join(chunk.text for chunk in chunks) == plain.text
    assert paused.stats.prompt_tokens == plain.stats.prompt_tokens


def test_what_ends_it_is_asked_after_every_token(assistant, options) -> None:
    plain = assistant.answer(MESSAGES, options, never, lambda _: None)
    middle = plain.text[: len(plain.text) // 2]
    steering = Steering(over=lambda text: "stop_text" if len(text) >= len(middle) else None)
    cut = assistant.answer(MESSAGES, options, never, lambda _: None, steering=steering)
    assert cut.stop_reason == "stop_text"
    assert plain.token_ids[: len(cut.token_ids)] == cut.token_ids


def test_constraints_hold_and_marks_are_shown(assistant, options) -> None:
    mark = assistant.model.tokenizer.token_to_id("<|fim_middle|>")
    letter = assistant.model.vocabulary.ids_by_bytes[b"a"]
    steering = Steering(
        constraint=OnlyTokens((mark, letter), assistant.model.vocabulary.size), marks={mark: b"<middle>"}
    )
    answer = assistant.answer(MESSAGES, options, never, lambda _: None, steering=steering)
    assert set(answer.token_ids) <= {mark, letter}
    assert answer.text.replace("<middle>", "").strip("a") == ""
    assert answer.text.count("<middle>") == answer.token_ids.count(mark)


def test_a_special_token_that_is_told_to_stops_the_text(assistant, options) -> None:
    mark = assistant.model.tokenizer.token_to_id("<|fim_prefix|>")
    only = Steering(constraint=OnlyTokens([mark], assistant.model.vocabulary.size))
    assert len(assistant.answer("x = ", options, never, lambda _: None, steering=only).token_ids) == options.max_tokens
    stopped = assistant.answer(
        "x = ", options, never, lambda _: None, steering=replace(only, stops=assistant.model.vocabulary.special)
    )
    assert (stopped.text, stopped.token_ids, stopped.stop_reason) == ("", (), "end")
