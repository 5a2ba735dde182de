"""Second choices: those of the model, in their order, within the constraint, whatever the size of a pass."""

from __future__ import annotations

from pathlib import Path

import torch

from decoding.assistant import Assistant
from decoding.messages import EngineOptions
from decoding.second_choices import is_greedy, second_choices
from decoding.steering import Steering
from grammars.constraint import FirstToken, Unconstrained
from tests.decoding.fakes import ParityConstraint, tiny_model
from tests.decoding.fakes_text import OnlyTokens

PROMPT, TEXT = (
    [3, 1, 4, 1, 5],
    [9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2, 6, 4, 3, 3, 8, 3, 2, 7, 9, 5, 0, 2, 8],
)


def chosen(constraint=None):
    target = tiny_model()
    cache = target.new_cache(128)
    target.prefill(PROMPT[:-1], cache, lambda: False)
    found = second_choices(target, cache, PROMPT[-1], TEXT, constraint)
    assert list(cache.token_ids) == [*PROMPT, *TEXT[:-1]]
    return target, found


def test_they_are_the_models_own_likeliest_first() -> None:
    target, found = chosen()
    inputs = torch.tensor([[*PROMPT, *TEXT]])
    with torch.no_grad():
        log_probs = torch.log_softmax(target.model(inputs).logits[0, len(PROMPT) - 1 : -1].float(), dim=-1)
    assert [choice.log_prob for choice in found] == sorted((choice.log_prob for choice in found), reverse=True)
    for choice in found:
        assert choice.token_id != TEXT[choice.position]
        assert abs(choice.log_prob - float(log_probs[choice.position, choice.token_id])) < 1e-3
    likeliest = log_probs.clone()
    likeliest[range(len(TEXT)), TEXT] = -torch.inf
    assert abs(found[0].log_prob - float(likeliest.max())) < 1e-3


def test_what_a_constraint_forbids_is_left_out_and_all_behind_it() -> None:
    _, free = chosen()
    start = ParityConstraint(2, low=1, limit=9)
    _, held = chosen(start)
    legal = start.validate(TEXT)
    assert 0 < legal < len(TEXT)
    states = [start]
    for token in TEXT[:legal]:
        after = states[-1].advance(token)
        assert after is not None
        states.append(after)
    permitted = [each for each in free if each.position <= legal and states[each.position].permits(each.token_id)]
    assert held == permitted != free


def greedy_text(length: int, constraint=None) -> list[int]:
    """What the tiny model writes behind the prompt, one token after the other."""
    target = tiny_model()
    text: list[int] = []
    for _ in range(length):
        with torch.no_grad():
            logits = target.model(torch.tensor([[*PROMPT, *text]])).logits[0, -1]
        ranked = logits.argsort(descending=True).tolist()
        token = next(each for each in ranked if constraint is None or constraint.permits(each))
        constraint = constraint.advance(token) if constraint is not None else None
        text.append(token)
    return text


def known(text: list[int], constraint=None) -> bool:
    target = tiny_model()
    cache = target.new_cache(128)
    target.prefill(PROMPT[:-1], cache, lambda: False)
    return is_greedy(target, cache, PROMPT[-1], text, constraint)


def test_a_greedy_text_is_known_and_so_is_any_other() -> None:
    text = greedy_text(60)
    assert known(text)
    for place in (0, 1, 23, 24, 25, 59):
        assert not known([*text[:place], (text[place] + 1) % 10, *text[place + 1 :]])


def test_the_likeliest_permitted_token_counts() -> None:
    other = next(token for token in range(10) if token != greedy_text(1)[0])
    assert not known([other], FirstToken(greedy_text(1)[0], Unconstrained(), 32))
    forced = FirstToken(other, Unconstrained(), 32)
    assert not known(greedy_text(2), forced)


def test_an_assistant_gives_beginnings_of_other_answers(tiny_folder: Path) -> None:
    options = EngineOptions(model=str(tiny_folder), runtime="transformers", dtype="float32", max_tokens=12)
    assistant = Assistant(options)
    messages = [{"role": "user", "content": "What does it do?"}]
    answer = assistant.answer(messages, options, lambda: False, lambda _: None)
    beginnings = assistant.second_choices(messages, answer.text, lambda: False, Steering())
    assert beginnings
    assert not any(answer.text.startswith(each) for each in beginnings)
    only = OnlyTokens(tuple(assistant.model.encode("a b")), assistant.model.vocabulary.size)
    held = assistant.second_choices(messages, "a b", lambda: False, Steering(constraint=only))
    assert all(set(each) <= set("a b") for each in held)
    first = assistant.model.vocabulary.decode(answer.token_ids[:1]).decode()
    assert assistant.would_write(messages, first, lambda: False, Steering())
    assert not assistant.would_write(messages, "a" if first != "a" else "b", lambda: False, Steering())
    assert not assistant.would_write(messages, "a b " * 2000, lambda: False, Steering())  # there is no room for it
