"""The steps that an explanation quotes: verbatim, in order, whole, valid by themselves."""

from __future__ import annotations

import ast
import random
import sysconfig
import textwrap
from pathlib import Path

from decoding.reasoning.steps import MOST_STEPS, steps_of

FUNCTION = '''\
def total(items):
    """The sum."""
    # prices only
    prices = [item.price for item in items]
    prices.sort()

    for price in prices:
        if price < 0:
            raise ValueError(price)
    return sum(prices); print()
'''


def test_simple_statements_are_together_and_comments_stay() -> None:
    assert steps_of(FUNCTION) == (
        "# prices only\nprices = [item.price for item in items]\nprices.sort()",
        "for price in prices:\n    if price < 0:\n        raise ValueError(price)",
        "return sum(prices); print()",
    )
    assert steps_of("x = 1\n\ny = x\n") == ("x = 1\n\ny = x",)
    assert steps_of("def f(): return 1\n") == ("def f(): return 1",)


def test_what_has_no_steps() -> None:
    for code in ("def f(:\n", "class A:\n    x = 1\n", "", "# nothing\n", 'def f():\n    """Only words."""\n'):
        assert steps_of(code) == ()


def test_functions_of_the_standard_library_have_all_of_their_lines_in_few_valid_steps() -> None:
    paths = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    seen = 0
    for path in random.Random(7).sample(paths, 25):
        text = path.read_text(encoding="utf-8")
        for node in ast.parse(text).body:
            if not isinstance(node, ast.FunctionDef):
                continue
            code = "\n".join(text.split("\n")[node.lineno - 1 : node.end_lineno])
            steps = steps_of(code)
            assert len(steps) <= MOST_STEPS
            for step in steps:
                ast.parse(step)
            if steps:
                seen += 1
                body = node.body[1:] if ast.get_docstring(node) is not None else node.body
                wanted = "".join(ast.get_source_segment(text, each) or "" for each in body)
                quoted = "".join(steps)
                assert len("".join(wanted.split())) <= len("".join(quoted.split()))
                assert (
                    textwrap.dedent(steps[-1]).rstrip().endswith(text.split("\n")[(node.end_lineno or 1) - 1].strip())
                )
    assert seen > 100
