"""Golden prompts: what the model is told, word for word. A change here is a change of every answer."""

from __future__ import annotations

from decoding.reasoning import prompts

CODE = "def f(x):\n    return x"
RELATED = "import os"


def said(messages: prompts.Messages) -> str:
    assert messages[0] == {"role": "system", "content": prompts.SYSTEM}
    return messages[-1]["content"]


def test_fix() -> None:
    assert said(prompts.fix(CODE, RELATED, "NameError: y")) == (
        "Related code:\n\n```python\nimport os\n```\n\n"
        "This Python code has a bug:\n\n```python\ndef f(x):\n    return x\n```\n\n"
        "The problem: NameError: y\n\nWrite the complete corrected code in one ```python block. Change only what "
        "has to be changed."
    )


def test_a_failed_candidate_is_shown_with_its_failure() -> None:
    messages = prompts.again(prompts.fix(CODE, "", "wrong"), "def f(x):\n    return y", "Now undefined name 'y'.")
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user"]
    assert messages[2]["content"] == "```python\ndef f(x):\n    return y\n```\n"
    assert said(messages).startswith("This is still wrong. Now undefined name 'y'.\n\nFind the cause")


def test_edit() -> None:
    assert said(prompts.edit(CODE, "", "add types")) == (
        "Here is Python code:\n\n```python\ndef f(x):\n    return x\n```\n\nRewrite it: add types\n\nWrite the "
        "complete new code in one ```python block, nothing else."
    )


def test_explain_an_error() -> None:
    text = said(prompts.explain(CODE, "a.py", "", "KeyError: 1"))
    assert "This code is from `a.py`:" in text
    assert "```text\nKeyError: 1\n```" in text
    assert text.index("return x") < text.index("KeyError") < text.index("Explain what the error means")


def test_document_lists_every_slot() -> None:
    assert said(prompts.document(CODE, ("summary", "x", "returns"))).endswith("\n\nsummary: ...\nx: ...\nreturns: ...")


def test_tests_name_what_is_tested() -> None:
    assert "pytest test file for `f`" in said(prompts.tests(CODE, "", "f"))


def test_reason_is_the_question_alone_without_code() -> None:
    assert said(prompts.reason("Why?", "a.py", "")) == "Why?"
    assert said(prompts.reason("Why?", "a.py", CODE)).endswith("\nWhy?")


def test_code_with_fences_gets_a_longer_one() -> None:
    text = said(prompts.edit('x = """\n```\n"""', "", "do"))
    assert '````python\nx = """\n```\n"""\n````' in text


def test_a_function_written_afresh_does_not_see_what_was_there() -> None:
    assert said(prompts.afresh("def f(x):\n", "Twice x.", "", "assert 1 == 2")) == (
        "Write this Python function:\n\n```python\ndef f(x):\n    ...\n```\n\nTwice x.\n\nAn earlier version was wrong:"
        "\n\n```text\nassert 1 == 2\n```\n\nWrite the complete function in one ```python block."
    )
