"""explain, reason, docstring and tests with scripted texts; prompts as golden texts."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from decoding.errors import BadInput
from decoding.reasoning.docstrings import parameters_in
from decoding.reasoning.sentences import ends_sentence
from decoding.reasoning.test_writing import collectable, module_name
from tests.decoding.reasoning.fakes import ScriptedBackend, after, ask, user_text

SHOP = '''\
"""Orders."""
import json
import os
from decimal import Decimal


class Order:
    """One order."""

    def __init__(self, price):
        self.price = price

    def total(self, count):
        """Price times count."""
        return Decimal(self.price) * count


def load(path):
    ⟦⟧order = Order(json.loads(path))
    return order.total(1)
'''


def test_an_explanation_quotes_every_step() -> None:
    backend = ScriptedBackend(" loads.\n\nmore", " build an order.", " takes a path.\n")
    result, streamed = ask(backend, "explain", SHOP)
    assert (
        result.text
        == streamed
        == """\
`load` loads.

```python
order = Order(json.loads(path))
return order.total(1)
```

These lines build an order.

**Callers should know:** takes a path.
"""
    )
    assert [turn.opening for turn in backend.turns] == [
        "`load`",
        streamed[: streamed.index(" build")],
        streamed[: streamed.index(" takes")],
    ]
    assert {turn.code for turn in backend.turns} == {"line"}
    short, _ = ask(ScriptedBackend(" does it"), "explain", SHOP, max_tokens=9)
    assert short.stop_reason == "length"


@pytest.mark.parametrize(
    ("step", "beginning"),
    [
        ("def g(x):\n    return x", "This function"),
        ("for a in b:\n    c(a)", "This loop"),
        ("x = 1\ny = 2", "These lines"),
        ("if x:\n    y()", "These lines"),
        ("x = 1", "This"),
    ],
)
def test_a_sentence_begins_with_what_is_quoted(step: str, beginning: str) -> None:
    backend = ScriptedBackend(" does it.\n")
    ask(backend, "explain", f"⟦{step}\nfor last in of_all:\n    pass⟧\n")
    assert backend.turns[1].opening.endswith(f"{step}\n```\n\n{beginning}")


def test_what_is_said_about_a_step_ends_with_a_sentence_not_with_a_limit() -> None:
    rambling = " does one thing after the other, which takes a while to tell, with `a. b` and 2.5 of it." * 9
    result, _ = ask(ScriptedBackend(rambling), "explain", SHOP)
    said = [part for part in result.text.split("\n\n") if "does one thing" in part]
    assert len(said) == 3
    assert all(part.endswith("2.5 of it.") and len(part) < 320 for part in said)


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("It is so.", True),
        ("It is so (`x`).", True),
        ("Is it?", True),
        ("It is `self.", False),
        ("It is 2.", False),
        ("It is e.g.", False),
        ("It is", False),
        ("", False),
    ],
)
def test_ends_of_sentences(text: str, ends: bool) -> None:
    assert ends_sentence(text) is ends


def test_the_prompt_of_explain_has_the_code_and_what_it_uses() -> None:
    backend = ScriptedBackend("It loads.")
    ask(backend, "explain", SHOP)
    assert (
        user_text(backend.turns[0])
        == """\
Related code:

```python
import json
class Order:
    def __init__(self, price): ...
    def total(self, count): ...
```

This code is from `shop.py`:

```python
def load(path):
    order = Order(json.loads(path))
    return order.total(1)
```

Explain `load` to a colleague: first one sentence that says what it does; then, below the quote of each step, one \
sentence that says what these lines do and why; at the end one sentence about what its callers should know. Plain \
sentences, no lists."""
    )


def test_explain_takes_a_selection_a_file_or_an_error() -> None:
    backend = ScriptedBackend("x")
    ask(backend, "explain", SHOP.replace("⟦⟧order = Order(json.loads(path))", "⟦order = Order⟧(json.loads(path))"))
    assert "```python\norder = Order(json.loads(path))\n```" in user_text(backend.turns[-1])
    ask(backend, "explain", "⟦⟧" + SHOP.replace("⟦⟧", ""))
    assert "import json" in user_text(backend.turns[-1])
    assert "class Order" in user_text(backend.turns[-1])
    ask(backend, "explain", SHOP, text="KeyError: 'x'")
    assert "KeyError: 'x'" in user_text(backend.turns[-1])
    with pytest.raises(BadInput):
        ask(backend, "explain", "⟦⟧\n")


def test_other_languages_are_explained_as_they_are_and_not_changed() -> None:
    backend = ScriptedBackend("It is a page.")
    page = "# Title\n\nSome ⟦text⟧.\n"
    result, _ = ask(backend, "explain", page, uri="file:///project/page.md", language="md")
    assert result.text == "It is a page."
    assert "```md\nSome text.\n```" in user_text(backend.turns[0])
    for command in ("fix", "docstring", "tests", "edit"):
        with pytest.raises(BadInput, match="Python only"):
            ask(backend, command, page, text="do it", language="md")


def test_prompts_stay_below_their_limit_whatever_the_file() -> None:
    backend = ScriptedBackend("x")
    long_function = "def f(x):\n" + "".join(f"    value_{n} = helper_{n}(x, {n})\n" for n in range(500))
    helpers = "".join(f"def helper_{n}(x, y):\n    return x + y\n\n\n" for n in range(500))
    for marked in ("⟦⟧" + long_function + helpers, helpers + long_function + "    ⟦⟧return x\n", "x = '" + "a" * 9000):
        ask(backend, "explain", marked, text="error " * 2000)
        ask(backend, "explain", marked)
        assert all(backend.count(user_text(turn)) < 800 for turn in backend.turns)


def test_reason_asks_the_question_with_thinking() -> None:
    backend = ScriptedBackend("Because.")
    ask(backend, "reason", "⟦⟧", text="Why?", thinking_tokens=99)
    assert user_text(backend.turns[0]) == "Why?"
    assert backend.turns[0].thinking_tokens == 99
    ask(backend, "reason", SHOP, text="Why?")
    assert "class Order" in user_text(backend.turns[1])
    with pytest.raises(BadInput):
        ask(backend, "reason", SHOP, text=" ")


def test_a_docstring_has_the_parameters_of_the_signature() -> None:
    marked = "def area(w: int, *hs, unit='m'):\n    ⟦⟧if not hs:\n        raise ValueError\n    return w * hs[0]\n"
    backend = ScriptedBackend(
        " compute the area\nw: no", " the width\n", "", " heights \n", " the unit\n", " area\n", " no\n"
    )
    result, streamed = ask(backend, "docstring", marked)
    assert result.text == streamed
    docstring = ast.get_docstring(ast.parse(after(marked, result)).body[0])
    assert docstring.startswith("Compute the area.\n")
    assert parameters_in(docstring, "google") == ("w", "*hs", "unit")
    assert "*hs: Heights." in docstring
    assert "ValueError:" in docstring
    # Each slot is asked behind those before it, so that their keys are used again.
    assert backend.turns[1].opening == "summary: compute the area\nw:"
    numpy, _ = ask(ScriptedBackend(" text\n"), "docstring", marked, style="numpy")
    assert "----------" in numpy.replacements[0].text


def test_a_docstring_needs_a_definition_that_parses() -> None:
    for marked in ("x = 1⟦⟧\n", "def f(x:\n    ⟦⟧return x\n"):
        with pytest.raises(BadInput):
            ask(ScriptedBackend("x"), "docstring", marked)


TESTS = """\
plain():
    assert load("x") == 1

@pytest.mark.parametrize("a, b", [(1, 2), (3, 4)])
def test_cases(a, b):
    assert load(a) == b

@pytest.mark.parametrize("a, b", [(1, 2, 3)])
def test_bad_cases(a, b):
    assert load(a)

def test_unknown(client):
    assert client

def test_undefined():
    assert missing(1)

def load(path):
    return 1

import nowhere_to_be_found
from shop import load, Order
import math

result = load("at import time")

def test_files(tmp_path):
    assert load(str(tmp_path)) == math.pi

def test_cut(
"""


def test_of_the_tests_only_what_pytest_can_collect_is_kept() -> None:
    backend = ScriptedBackend(TESTS + "```")
    result, _ = ask(backend, "tests", SHOP)
    assert result.new_file is not None
    text = result.new_file.text
    assert result.new_file.uri == "file:///project/test_shop_load.py"
    names = [node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    assert names == ["test_plain", "test_cases", "test_files"]
    assert text.startswith("import pytest\nfrom shop import load\nimport math\n\n\ndef test_plain")
    assert "nowhere" not in text
    assert "at import time" not in text
    assert any("test_bad_cases" in check for check in result.checks)


def test_what_is_kept_is_collected_by_pytest(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP.replace("⟦⟧", ""), encoding="utf-8")
    text, _ = collectable("def test_" + TESTS, "import pytest\nfrom shop import load\n\n", "load", "shop")
    (tmp_path / "test_shop.py").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", "test_shop.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "4 tests collected" in done.stdout


def test_nothing_is_proposed_where_no_test_is_left() -> None:
    result, _ = ask(ScriptedBackend("x(fixture):\n    pass\n```"), "tests", SHOP)
    assert result.new_file is None
    assert result.tries == 3
    assert "no test file" in result.text


def test_modules_are_named_from_the_folder_above_their_package(tmp_path: Path) -> None:
    package = tmp_path / "shop" / "orders"
    package.mkdir(parents=True)
    for folder in (package, package.parent):
        (folder / "__init__.py").touch()
    assert module_name(package / "load.py") == "shop.orders.load"
    assert module_name(package / "__init__.py") == "shop.orders"
    assert module_name(tmp_path / "single.py") == "single"


def test_a_backend_that_cannot_go_on_behind_an_opening_is_asked_without_one() -> None:
    backend = ScriptedBackend("Sure:\n- summary: compute it\n- `w`: the width\n")
    backend.continues = False
    marked = "def area(w):\n    ⟦⟧return w\n"
    result, _ = ask(backend, "docstring", marked)
    assert "w: The width." in after(marked, result)
    assert len(backend.turns) == 1
    backend = ScriptedBackend("Here:\n```python\ndef area(w):\n    return w * w\n```\nDone.")
    backend.continues = False
    result, streamed = ask(backend, "edit", marked, text="square")
    assert after(marked, result) == "def area(w):\n    return w * w\n"
    assert result.text == streamed
    backend = ScriptedBackend("```python\ndef test_load():\n    assert load(1)\n```")
    backend.continues = False
    assert "def test_load" in ask(backend, "tests", SHOP)[0].new_file.text
    assert all(turn.opening == "" for turn in backend.turns)
