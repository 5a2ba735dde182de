"""What is kept of a failed test run, with the programs' own outputs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decoding.reasoning.failures import essence
from decoding.reasoning.trial import ProjectTrial

MODULE = "def double(x):\n    return x + 2\n"
TEST = "from m import double\n\n\ndef test_double():\n    assert double(3) == 6\n"
PYTEST = f"{sys.executable} -m pytest -q -p no:cacheprovider"


@pytest.mark.parametrize("style", ["auto", "short", "native", "line"])
def test_pytest_says_the_statement_and_the_values(tmp_path: Path, style: str) -> None:
    (tmp_path / "m.py").write_text(MODULE)
    (tmp_path / "test_m.py").write_text(TEST)
    with ProjectTrial(tmp_path / "m.py", f"{PYTEST} --tb={style}") as trial:
        said = trial(MODULE)
        assert trial(MODULE.replace("+", "*")) is None
    assert said is not None
    assert "assert 5 == 6" in said
    if style != "line":
        assert "assert double(3) == 6" in said
    assert len(said.split("\n")) < 10


def test_an_error_while_tests_are_collected(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(MODULE)
    (tmp_path / "test_m.py").write_text("from m import triple\n")
    with ProjectTrial(tmp_path / "m.py", PYTEST) as trial:
        said = trial(MODULE)
    assert said is not None
    assert "cannot import name 'triple'" in said


def test_unittest_and_plain_programs() -> None:
    code = "import unittest\nclass T(unittest.TestCase):\n def test(self): self.assertEqual(1, 2)\nunittest.main()"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "AssertionError: 1 != 2" in essence(run.stderr)
    run = subprocess.run([sys.executable, "-c", "[][0]"], capture_output=True, text=True, check=False)
    assert essence(run.stderr).endswith("IndexError: list index out of range")


def test_what_is_not_known_keeps_its_end() -> None:
    assert essence("one\n" * 50 + "FAILED 3 of 9\n").endswith("FAILED 3 of 9")
    assert essence("") == ""


@given(st.text(st.sampled_from("E> \nTraceback (most recent call last):ab"), max_size=400))
def test_any_output_is_cut_short(output: str) -> None:
    assert len(essence(output)) <= 600
    assert len(essence(output).split("\n")) <= 8
