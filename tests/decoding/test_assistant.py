"""The assistant on a tiny model folder: whatever drafts, the answer is that of plain decoding."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from decoding.assistant import Assistant
from decoding.errors import BadInput, BadPosition, Cancelled, UnknownModel
from decoding.messages import Chunk, Completion, EngineOptions, Snapshot
from grammars.scope_index import ScopeIndex
from grammars.undefined_names import undefined_names


def never() -> bool:
    return False


@pytest.fixture(scope="module")
def options(tiny_folder: Path) -> EngineOptions:
    return EngineOptions(model=str(tiny_folder), runtime="transformers", dtype="float32", max_tokens=24)


@pytest.fixture(scope="module")
def assistant(options: EngineOptions) -> Assistant:
    return Assistant(options)


def snapshot(marked: str) -> Snapshot:
    head, _, tail = marked.partition("|")
    return Snapshot(uri="file:///a.py", text=head + tail, offset=len(head.encode()))


def complete(assistant: Assistant, marked: str, options: EngineOptions, **changes) -> Completion:
    return assistant.complete(snapshot(marked), options.model_copy(update=changes), never, lambda _: None)[0]


SOURCES = [
    "def area(w, h):\n    return w * h\n\n\ndef area2(w, h):\n    |\n",
    "x = fo|o(1)\n",
    "print(|)\n",
    "|",
    "# größer als 🦉\nnäme = 'é|'\n",
    "a\r\nb = |\r\nc\r\n",
]


@pytest.mark.parametrize("marked", SOURCES)
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_drafts_change_nothing(assistant, options, marked: str, temperature: float) -> None:
    plain = complete(assistant, marked, options, drafter="none", temperature=temperature, seed=3)
    drafted = complete(assistant, marked, options, drafter="lookup", temperature=temperature, seed=3)
    assert drafted.token_ids == plain.token_ids
    assert (drafted.text, drafted.raw, drafted.stop_reason) == (plain.text, plain.raw, plain.stop_reason)
    assert plain.stats.mean_accepted in (0.0, 1.0)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=60), st.text(max_size=30))
def test_any_text_gets_an_answer_whose_range_stays_on_the_line(assistant, options, head: str, tail: str) -> None:
    text = head + tail
    offset = len(head.encode("utf-8", "surrogatepass"))
    found = assistant.complete(
        Snapshot(uri="file:///a.py", text=text, offset=offset), options.model_copy(update={"max_tokens": 8}), never,
        lambda _: None,
    )  # fmt: skip
    data = text.encode("utf-8", "surrogatepass")
    for completion in found:
        assert completion.start == offset
        assert b"\n" not in data[completion.start : completion.end]
        data[completion.start : completion.end].decode("utf-8", "surrogatepass")


def test_chunks_add_up_to_the_raw_text(assistant, options) -> None:
    chunks: list[Chunk] = []
    free = options.model_copy(update={"constraint": "off"})  # else the raw text ends where it may
    completion = assistant.complete(snapshot(SOURCES[0]), free, never, chunks.append)[0]
    assert "".join(chunk.text for chunk in chunks) == completion.raw
    assert tuple(token for chunk in chunks for token in chunk.token_ids) == completion.token_ids


def test_healed_text_is_spelt_but_not_repeated(assistant, options) -> None:
    completion = complete(assistant, "def function():\n    retu|\n", options, constraint="off")
    spoken = assistant.model.vocabulary.decode(completion.token_ids)
    prompt = assistant.infilling.layout.infill(b"def function():\n    retu", 24, 768, 192)
    assert spoken.startswith(prompt.healed)
    # A half character at the end is held back.
    assert spoken[len(prompt.healed) :].decode("utf-8", "replace").rstrip("\ufffd") == completion.raw.rstrip("\ufffd")


def test_a_second_request_reuses_the_first(assistant, options) -> None:
    text = "".join(f"value_{n} = compute({n})\n" for n in range(30))
    complete(assistant, text + "resul|", options)
    again = complete(assistant, text + "result|", options)
    assert again.stats.reused_tokens >= again.stats.prompt_tokens - 8


def test_warming_makes_the_request_free(assistant, options) -> None:
    marked = "import json\n\n\ndef load_everything(path):\n    |"
    assistant.warm(snapshot(marked), options, never)
    stats = complete(assistant, marked, options).stats
    assert stats.reused_tokens == stats.prompt_tokens - 1


def test_cancelled_before_and_between(assistant, options) -> None:
    with pytest.raises(Cancelled):
        assistant.complete(snapshot("x = |"), options, lambda: True, lambda _: None)
    chunks: list[Chunk] = []
    completion = assistant.complete(snapshot(SOURCES[0]), options, lambda: bool(chunks), chunks.append)[0]
    assert completion.stop_reason == "cancelled"
    assert len(chunks) == 1


def test_alternatives_are_distinct_and_the_first_is_the_usual_one(assistant, options) -> None:
    several = options.model_copy(update={"alternatives": 4})
    alternatives = 0
    for marked in SOURCES:
        found = assistant.complete(snapshot(marked), several, never, lambda _: None)
        assert found[0].token_ids == complete(assistant, marked, options).token_ids
        texts = [completion.text for completion in found]
        assert len(set(texts)) == len(texts)
        firsts = [completion.token_ids[0] for completion in found if completion.token_ids]
        assert len(set(firsts)) == len(firsts)
        alternatives += len(found) - 1
    assert alternatives >= 3


@pytest.mark.parametrize("temperature", [0.0, 0.9])
def test_alternatives_written_together_are_those_written_one_by_one(
    assistant: Assistant, options, monkeypatch, temperature: float
) -> None:
    several = options.model_copy(update={"alternatives": 3, "temperature": temperature, "seed": 4, "scope": "off"})
    passes: list[int] = []
    forward = assistant.model.target.forward_tree
    monkeypatch.setattr(assistant.model.target, "forward_tree", lambda *a, **k: (passes.append(1), forward(*a, **k))[1])
    for marked in ("def f(a, b):\n    return |\n", "import os\nx = |", "class A:\n    |"):
        passes.clear()
        together = assistant.complete(snapshot(marked), several, never, lambda _: None)
        in_one = len(passes)
        with monkeypatch.context() as patched:
            patched.setattr(type(assistant.model.target), "most_rows", 2)
            alone = assistant.complete(snapshot(marked), several, never, lambda _: None)
        assert [(one.raw, one.token_ids, one.stop_reason) for one in together] == [
            (one.raw, one.token_ids, one.stop_reason) for one in alone
        ]
        assert in_one <= several.max_tokens + 1, "one pass serves all, after one that ranks the first tokens"


def test_the_budget_is_kept(assistant, options) -> None:
    completion = complete(assistant, SOURCES[0], options, max_tokens=5, multiline="always")
    assert len(completion.token_ids) <= 5


def test_a_long_file_fits_the_context(assistant, options) -> None:
    text = "".join(f"variable_{n} = {n}\n" for n in range(20_000))
    completion = complete(assistant, text + "x = |" + text, options)
    assert completion.stats.prompt_tokens < options.context_tokens


def test_messages_and_prompts_are_answered_alike_with_and_without_drafts(assistant, options) -> None:
    messages = [{"role": "user", "content": "Say <|im_end|> twice"}]
    plain = assistant.answer(messages, options.model_copy(update={"drafter": "none"}), never, lambda _: None)
    drafted = assistant.answer(messages, options, never, lambda _: None)
    assert drafted.token_ids == plain.token_ids
    ids = assistant._chat_prompt(messages).token_ids
    mark = assistant.model.tokenizer.token_to_id("<|im_end|>")
    assert ids.count(mark) == 1  # the template's own; the user's stays text
    assert assistant.answer("a = ", options, never, lambda _: None).stats.tokens > 0


def test_bad_requests(assistant, options, tmp_path) -> None:
    with pytest.raises(BadPosition):
        assistant.complete(Snapshot(uri="file:///a.py", text="x", offset=9), options, never, lambda _: None)
    with pytest.raises(UnknownModel):
        Assistant(EngineOptions(model="no-such-model"))
    with pytest.raises(BadInput):
        assistant.answer("x " * 5000, options, never, lambda _: None)


@pytest.mark.parametrize("seed", range(6))
def test_no_name_is_shown_that_does_not_exist(assistant, options, seed: int) -> None:
    marked = "def area(width, height):\n    size = |\n    return size\n"
    free = complete(assistant, marked, options, temperature=1.0, seed=seed, constraint="off", scope="off")
    checked = complete(assistant, marked, options, temperature=1.0, seed=seed, drafter="none")
    index = ScopeIndex.of(marked.replace("|", checked.text).encode())
    assert not undefined_names(index, 0, len(index.text))
    assert checked.token_ids != free.token_ids
    drafted = complete(assistant, marked, options, temperature=1.0, seed=seed, drafter="lookup")
    assert (drafted.token_ids, drafted.text) == (checked.token_ids, checked.text)


def test_a_suggestion_ends_at_any_special_token(assistant, options) -> None:
    ended = 0
    for seed in range(60):
        found = complete(assistant, "x = |", options, constraint="off", multiline="always", temperature=5.0, seed=seed)
        assert not set(found.token_ids) & assistant.model.vocabulary.special
        ended += found.stop_reason == "end"
    assert ended


def test_declarations_out_of_the_window_are_read_where_that_is_wanted(assistant, options) -> None:
    lines = "".join(f"value_{number} = {number}\n" for number in range(300))
    marked = f"def far_away(argument):\n    return argument\n\n{lines}print(|)\n"
    usual = complete(assistant, marked, options, prefix_tokens=200)
    more = complete(assistant, marked, options, prefix_tokens=200, signature_tokens=60)
    read = assistant.model.vocabulary.decode(assistant.infilling.prompt(snapshot(marked), options).token_ids)
    assert b"far_away" not in read
    with_more = options.model_copy(update={"prefix_tokens": 200, "signature_tokens": 60})
    assert b"def far_away(argument): ...\n" in assistant.model.vocabulary.decode(
        assistant.infilling.prompt(snapshot(marked), with_more).token_ids
    )
    assert max(usual.stats.prompt_tokens, more.stats.prompt_tokens) <= 210
