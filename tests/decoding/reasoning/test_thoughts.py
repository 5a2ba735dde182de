"""Thoughts through the whole engine: one closed block and an answer, for three kinds of model, whatever drafts."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from decoding.assistant import Assistant
from decoding.draft_tree import DraftTree
from decoding.messages import Answer, Chunk, EngineOptions, Snapshot
from decoding.reasoning.requests import CommandRequest
from decoding.reasoning.thoughts import ThoughtView, shown, split_thought
from decoding.steering import Steering
from grammars.constraint import Unconstrained
from grammars.reasoning import PLAN_MARKS, TEXT_MARKS, ThoughtMarks
from tests.decoding.fakes import ScriptedDrafter
from tests.tiny_folder import CHAT_TEMPLATE, make_folder

MESSAGES = [{"role": "user", "content": "Why?"}]
KINDS = ("tokens", "text", "plan")


def never() -> bool:
    return False


def thinking_folder(folder: Path, kind: str, *, opened: bool = False) -> Path:
    """A tiny model that knows thoughts as tokens, as text, or not at all; `opened`: its template opens one."""
    make_folder(folder)
    if kind == "tokens":
        file = folder / "tokenizer.json"
        data = json.loads(file.read_text(encoding="utf-8"))
        known = max(entry["id"] for entry in data["added_tokens"])
        for number, mark in enumerate(("<think>", "</think>"), known + 1):
            entry = {"id": number, "content": mark, "special": False, "single_word": False, "lstrip": False}
            data["added_tokens"].append({**entry, "rstrip": False, "normalized": False})
        file.write_text(json.dumps(data), encoding="utf-8")
    template = CHAT_TEMPLATE
    if kind == "text":
        template += "{# thoughts end with </think> #}"
    if opened:
        template += "{% if add_generation_prompt %}<think>\n{% endif %}"
    config = {"eos_token": "<|endoftext|>", "chat_template": template}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def options_for(folder: Path) -> EngineOptions:
    return EngineOptions(model=str(folder), runtime="transformers", dtype="float32")


@pytest.fixture(scope="module", params=KINDS)
def assistant(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Assistant:
    folder = thinking_folder(tmp_path_factory.mktemp(request.param) / request.param, request.param)
    return Assistant(options_for(folder))


def think(assistant: Assistant, budget: int, **changes: object) -> Answer:
    options = assistant.options.model_copy(update=changes)
    marks = assistant.thoughts.marks
    steering = Steering(
        constraint=assistant.thoughts.start(budget, options.max_tokens, Unconstrained()), marks=marks.shown_tokens
    )
    return assistant.answer(MESSAGES, options, never, lambda _: None, None, steering)


def assert_well_formed(text: str, marks: ThoughtMarks) -> None:
    opening, close = marks.open.decode().strip(), marks.close.decode()
    assert text.startswith(opening)
    lines = "\n" + text
    if close.startswith("\n"):
        assert lines.count("\n" + opening + "\n") == 1
    else:
        assert text.count(opening) == 1
    assert text.count(close) == 1
    assert text.index(close) > 0
    thought, answer = split_thought(text, marks, False)
    assert opening not in thought + answer
    assert close.strip() not in thought


def test_the_kind_is_read_from_the_folder(assistant: Assistant) -> None:
    name = assistant.model.folder.path.name
    marks = assistant.thoughts.marks
    if name == "tokens":
        assert marks.open_token is not None
        assert marks.close_token is not None
    else:
        assert marks == {"text": TEXT_MARKS, "plan": PLAN_MARKS}[name]


def test_blocks_are_well_formed_at_any_budget_and_temperature(assistant: Assistant) -> None:
    choose = random.Random(5)
    # A quarter is kept for the answer.
    least = 4 * (assistant.thoughts.opening_cost + assistant.thoughts.closing_cost + 2) // 3 + 1
    for budget in (1, 3, 8, 40):
        temperature = choose.choice([0.0, 0.3, 0.8, 1.2])
        # Now and then the limit on everything comes first.
        max_tokens = least + (choose.randint(0, budget) if budget % 2 else budget + 40)
        answer = think(assistant, budget, max_tokens=max_tokens, temperature=temperature, seed=budget)
        assert_well_formed(answer.text, assistant.thoughts.marks)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_drafts_that_cross_every_boundary_change_nothing(assistant: Assistant, monkeypatch, temperature: float) -> None:
    """The true text as one long chain with wrong siblings, so that passes begin and end anywhere in it."""
    settings = {"max_tokens": 60, "temperature": temperature, "seed": 3, "tree_nodes": 12}
    plain = think(assistant, 9, drafter="none", **settings)
    assert_well_formed(plain.text, assistant.thoughts.marks)
    for depth in (1, 3, 11):
        drafter = _Knowing(plain.token_ids, depth)
        monkeypatch.setattr(assistant.writer, "drafters", lambda options, drafter=drafter: [drafter])
        drafted = think(assistant, 9, **settings)
        assert drafted.token_ids == plain.token_ids
        assert drafted.stats.steps < plain.stats.steps


class _Knowing(ScriptedDrafter):
    """Proposes the next `depth` tokens of a known text, each with a wrong sibling."""

    def __init__(self, text: tuple[int, ...], depth: int) -> None:
        super().__init__([])
        self.text, self.depth, self.prompt = text, depth, 0

    def begin(self, tokens) -> None:
        self.prompt = len(tokens)

    def propose(self, tokens, state, budget: int) -> DraftTree:
        done = len(tokens) - self.prompt
        ids, parents, parent = [], [], -1
        for token in self.text[done : done + self.depth]:
            ids += [(token + 7) % 300, token]
            parents += [parent, parent]
            parent = len(ids) - 1
        return DraftTree.from_lists(ids, parents, [-0.01 * (parents[i] + 2) for i in range(len(ids))])


@pytest.mark.parametrize("how", ["folded", "hidden"])
def test_a_command_shows_or_hides_the_thought(assistant: Assistant, how) -> None:
    request = CommandRequest(
        command="reason",
        snapshot=Snapshot(uri="untitled:q", text="", offset=0),
        end=0,
        text="Why?",
        thinking_tokens=6,
        thoughts=how,
        max_tokens=60,
    )
    chunks: list[Chunk] = []
    result = assistant.command(request, assistant.options, never, chunks.append)
    assert "".join(chunk.text for chunk in chunks) == result.text
    assert result.thought
    assert result.text.startswith("<think>\n") == (how == "folded")
    assert ("</think>" in result.text) == (how == "folded")
    assert "### Answer" not in result.text


def test_a_template_that_opens_the_thought_is_gone_along_with(tmp_path: Path) -> None:
    assistant = Assistant(options_for(thinking_folder(tmp_path / "opened", "tokens", opened=True)))
    request = CommandRequest(
        command="reason",
        snapshot=Snapshot(uri="untitled:q", text="", offset=0),
        end=0,
        text="Why?",
        thinking_tokens=6,
        max_tokens=60,
    )
    result = assistant.command(request, assistant.options, never, lambda _: None)
    assert result.text.startswith("<think>\n")
    assert result.text.count("<think>") == result.text.count("</think>") == 1
    close = assistant.thoughts.marks.close_token
    assert assistant._chat_prompt(MESSAGES, think=False).token_ids.count(close) == 1  # not wanted: closed at once
    assert assistant._chat_prompt(MESSAGES).token_ids.count(close) == 0


@pytest.mark.parametrize("marks", [TEXT_MARKS, PLAN_MARKS], ids=["text", "plan"])
@pytest.mark.parametrize("how", ["folded", "hidden"])
def test_what_is_shown_only_grows(marks: ThoughtMarks, how) -> None:
    raw = f"{marks.open.decode()}a < b, </ so\n### A\n{marks.close.decode()}\n\nThe answer.\n"
    for text, opened in ((raw, False), (raw.removeprefix(marks.open.decode()), True), ("No thought.", False)):
        said: list[str] = []
        view = ThoughtView(marks, how, opened, said.append)
        for character in text:
            view.add(character)
            assert view.visible == "".join(said)
        view.finish()
        assert view.visible == shown(text, marks, how, opened, finished=True)
        assert view.visible.endswith("The answer.\n") or text == "No thought."
        assert ("a < b" in view.visible) == (how == "folded" and text != "No thought.")
