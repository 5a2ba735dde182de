"""The quality benchmark: points, scores, the sandbox, the file that is taken up again, the table."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from decoding.assistant import Assistant
from decoding.benchmark.quality import VARIANTS, ResultsFile, complete_point, run_quality, score
from decoding.benchmark.quality_points import SETS, Point
from decoding.benchmark.quality_sandbox import passes, run_program
from decoding.benchmark.quality_summary import quality_summary
from decoding.errors import BadInput
from decoding.messages import Completion, EngineOptions, Stats
from decoding.reasoning.requests import Replacement

FILE = "import math\n\n\ndef area(radius):\n    return math.pi * radius ** 2\n\n\nprint(area(2))\n"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Public data of our own making."""
    monkeypatch.setenv("DRAFTWOOD_DATA", str(tmp_path))
    start = FILE.index("math.pi")
    points = [
        {"id": f"p{number}", "kind": kind, "file": "f", "start": start, "end": end, "target": FILE[start:end]}
        for number, (kind, end) in enumerate(
            [("line", FILE.index("\n\n\nprint")), ("args", start + 7), ("block", start)]
        )
    ]
    item = {
        "task_id": "H/0",
        "entry_point": "double",
        "prompt": "def double(x):\n",
        "suffix": "\n\n",
        "canonical_solution": "    return 2 * x\n",
        "test": "def check(candidate):\n    assert candidate(2) == 4\n",
    }
    write(tmp_path / "fresh_fim" / "files_dev.jsonl.gz", [{"file": "f", "text": FILE}])
    write(tmp_path / "fresh_fim" / "points_dev.jsonl.gz", points)
    write(tmp_path / "humaneval_infilling" / "single_line_dev.jsonl.gz", [item])
    return tmp_path


def write(path: Path, items: list[dict[str, object]]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress("".join(json.dumps(item) + "\n" for item in items).encode()))


def suggested(text: str, start: int, end: int | None = None, stop: str = "line") -> Completion:
    return Completion(
        text=text, start=start, end=start if end is None else end, raw=text, token_ids=(), stop_reason=stop,
        model="m", runtime="r", drafter="none", constraint="off", stats=Stats(),
    )  # fmt: skip


def point(marked: str, truth: str, kind: str = "line", test: str = "") -> Point:
    before, _, after = marked.partition("|")
    return Point("p", kind, before + after, len(before.encode()), truth, test)


def test_points_give_back_the_file_that_they_were_cut_from(data: Path) -> None:
    lines = SETS["lines"](10)
    assert {each.kind for each in lines} == {"line", "args"}
    assert all(each.original == FILE for each in [*lines, *SETS["blocks"](10)])
    [solution] = SETS["humaneval-line"](10)
    assert passes(solution.original + solution.test)
    assert not passes(solution.text + solution.test)


def test_a_score_compares_with_what_stood_there() -> None:
    hole = point("é = 1\nprint(|)\n", "é")
    exact = score(hole, suggested("é)", hole.offset, hole.offset + 1))
    assert (exact.exact, exact.similarity, exact.parses, exact.finished, exact.undefined) == (1, 1, 1, 1, 0)
    assert exact.accepted == 2
    wrong = score(hole, suggested("other", hole.offset))
    assert (wrong.exact, wrong.undefined, wrong.unbound, wrong.passed) == (0, 1, 0, None)


def test_a_name_that_is_missing_elsewhere_is_not_the_suggestions_own() -> None:
    hole = point("|\nprint(radius)\n", "radius = 1")
    named = score(hole, suggested("width = 1", hole.offset))
    assert (named.undefined, named.unbound) == (0, 1)


def test_what_was_cut_by_the_budget_is_not_finished_and_nothing_is_not_a_suggestion() -> None:
    hole = point("print(|)\n", "1")
    cut = score(hole, suggested("(", hole.offset, stop="length"))
    assert (cut.parses, cut.finished, cut.undefined) == (0, None, None)
    nothing = score(hole, suggested("", hole.offset))
    assert (nothing.shown, nothing.parses, nothing.finished) == (0, None, None)


def test_programs_are_judged_by_their_tests() -> None:
    hole = point("def f():\n    return |\n", "1", test="assert f() == 1\n")
    assert score(hole, suggested("1", hole.offset)).passed == 1
    assert score(hole, suggested("2", hole.offset)).passed == 0
    assert score(hole, suggested("exit(0)", hole.offset)).passed == 0


@pytest.mark.parametrize(
    "program",
    [
        "import socket; socket.create_connection(('localhost', 80))",
        "import socket; socket.socket()",
        "open('../outside', 'w')",
        "import os; os.open('../outside', os.O_CREAT)",
        "import os; os.rename('program.py', '../outside')",
        "import subprocess; subprocess.run(['true'])",
        "import os; os.system('true')",
        "import os; os.fork()",
        "import ctypes; ctypes.CDLL(None)",
        "import os; os.kill(1, 0)",
    ],
)
def test_a_program_reaches_nothing_outside(program: str) -> None:
    assert "PermissionError" in run_program(program).output


def test_a_program_may_use_its_own_folder_and_has_limits() -> None:
    assert passes("open('a', 'w').write('x')\nassert open('a').read() == 'x'")
    assert not passes("x = [0] * 10**10")
    assert not passes("while True: pass", seconds=1.0)
    assert not passes("import sys; sys.exit(0)")


@pytest.fixture(scope="module")
def assistant(tiny_folder: Path) -> Assistant:
    return Assistant(EngineOptions(model=str(tiny_folder), runtime="transformers", dtype="float32", max_tokens=6))


def test_a_run_is_taken_up_where_it_was_left(data: Path, assistant: Assistant, tmp_path: Path) -> None:
    counts, path = {"lines": 2, "humaneval-line": 1}, tmp_path / "out" / "quality.jsonl"
    whole = run_quality(assistant, counts, ["off", "soft"], ResultsFile(path, {"model": "m"}))
    assert [result.variant for result in whole] == ["off", "soft"] * 3
    lines = path.read_text().split("\n")
    path.write_text("\n".join(lines[:3]) + "\n" + lines[3][:20])  # interrupted while writing
    done: list[int] = []
    file = ResultsFile(path, {"model": "m"})
    assert list(file.found.values()) == [whole[0], whole[1]]
    again = run_quality(assistant, counts, ["off", "soft"], file, lambda number, *_: done.append(number))
    assert [result.suggestion for result in again] == [result.suggestion for result in whole]
    assert done[-1] == 6
    assert sorted(ResultsFile(path, {"model": "m"}).found.values(), key=str) == sorted(again, key=str)
    stopped = run_quality(assistant, {"lines": 2}, list(VARIANTS), ResultsFile(path, {"model": "m"}), seconds=-1)
    assert stopped == []
    with pytest.raises(BadInput, match="--output"):
        ResultsFile(path, {"model": "another"})


def test_one_line_or_several_are_asked_for_by_the_kind_of_point(assistant: Assistant) -> None:
    options = assistant.options.model_copy(update={"max_tokens": 40})
    assert "\n" not in complete_point(assistant, point("x = |\n", "1"), options).text


def test_the_table_compares_pairs(data: Path, assistant: Assistant, tmp_path: Path) -> None:
    results = run_quality(assistant, {"lines": 2}, ["off", "syntax"], ResultsFile(tmp_path / "q.jsonl", {}))
    table = quality_summary(results)
    off, syntax = table["lines"]["off"]["exact"], table["lines"]["syntax"]["exact"]
    assert off["n"] == 2
    assert "difference" not in off
    assert syntax["pairs"] == 2
    assert syntax["difference_low"] <= syntax["difference"] <= syntax["difference_high"]
    assert "passed" not in table["lines"]["off"]


def test_more_holes_are_on_other_lines_and_read_names(data: Path) -> None:
    text = FILE + "\n\ndef twice(radius):\n    large = area(radius)  # ä\n    return large + large\n"
    write(data / "fresh_fim" / "files_dev.jsonl.gz", [{"file": "f", "text": text}])
    lines, blocks = SETS["more-lines"](100), SETS["more-blocks"](100)
    assert {each.truth for each in blocks} == {"large = area(radius)  # ä\n    return large + large"}
    assert "(2))" not in {each.truth for each in lines}  # reads no name
    assert all(each.original == text for each in [*lines, *blocks])
    assert not any("math.pi" in each.truth for each in lines)
    assert lines[:2] == SETS["more-lines"](2)


def test_points_that_were_tuned_on_can_be_left_out(data: Path, assistant: Assistant, tmp_path: Path) -> None:
    results = run_quality(assistant, {"lines": 1}, ["off"], ResultsFile(tmp_path / "q.jsonl", {}), skip=1)
    assert [result.point for result in results] == [SETS["lines"](2)[1].id]


def test_an_import_that_accepting_adds_counts() -> None:
    hole = point("import abc\n\nx = abc.ABC\nprint(|)\n", "1")
    used = suggested("json.dumps(y)", hole.offset)
    assert score(hole, used).undefined == 2
    added = Replacement(start=11, end=11, text="import json\n")
    assert score(hole, used, [added]).undefined == 1
