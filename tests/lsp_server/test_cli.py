"""The command line as people and scripts call it: in a process of its own, on a tiny model folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lsp_server.cli import run


def draftwood(*arguments: str | Path, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "lsp_server.cli", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture
def common(tiny_folder: Path) -> list[str]:
    return ["--model", str(tiny_folder), "--runtime", "transformers", "--max-tokens", "12"]


def call(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    status = run([str(argument) for argument in arguments])
    output = capsys.readouterr()
    return status, output.out, output.err


def test_complete_prints_exactly_one_object(tmp_path: Path, common: list[str]) -> None:
    file = tmp_path / "größe.py"
    file.write_text("näme = foo()\n", encoding="utf-8")
    done = draftwood("complete", f"{file}:1:12", "--json", *common)
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert set(data) == {
        "text", "range", "stop_reason", "token_ids", "model", "runtime", "drafter", "constraint", "stats",
    }  # fmt: skip
    assert data["range"]["start"] == {"line": 1, "column": 12}
    assert data["stats"]["tokens"] == len(data["token_ids"])
    assert set(data["stats"]) >= {
        "prompt_tokens", "reused_tokens", "prefill_ms", "steps", "drafted", "accepted", "tokens", "mean_accepted",
        "decode_ms", "tokens_per_second", "mask_ms", "scope_ms", "constraint_off_reason",
    }  # fmt: skip


def test_complete_for_people(tmp_path: Path, common: list[str], capsys) -> None:
    file = tmp_path / "a.py"
    file.write_text("x = 1\ny = \nz = 3\n", encoding="utf-8")
    status, out, _ = call(capsys, "complete", f"{file}:2:5", *common)
    assert status == 0
    assert "x = 1" in out
    assert "z = 3" in out
    assert "passes" in out


def test_a_batch_answers_every_line_and_survives_bad_ones(tmp_path: Path, common: list[str], capsys) -> None:
    lines = [
        json.dumps({"id": "a", "prefix": "x = ", "suffix": "\ny = 2\n"}),
        "not json",
        json.dumps({"id": "c", "suffix": "no prefix"}),
        json.dumps([1]),
        json.dumps({"id": 5, "prefix": "half \ud83d", "path": "b.py"}),
        "",
        json.dumps({"id": 7, "prefix": "x = ", "path": "half \ud83d.py"}),
        '{"id": NaN, "prefix": "x = "}',
    ]
    batch = tmp_path / "batch.jsonl"
    batch.write_text("\n".join(lines), encoding="utf-8")
    status, out, _ = call(capsys, "complete", "--batch", batch, *common)
    assert status == 0
    answers = [json.loads(line) for line in out.splitlines()]
    assert [answer["id"] for answer in answers] == ["a", 2, "c", 4, 5, 7, "nan"]
    assert ["error" in answer for answer in answers] == [False, True, True, True, False, False, False]


def test_generate_takes_prompts_and_messages(tmp_path: Path, common: list[str], capsys) -> None:
    batch = tmp_path / "batch.jsonl"
    batch.write_text(
        json.dumps({"id": 1, "prompt": "def f"})
        + "\n"
        + json.dumps({"id": 2, "messages": [{"role": "user", "content": "hi"}]})
        + "\n"
        + json.dumps({"id": 3})
        + "\n"
        + json.dumps({"id": 4, "messages": [{"role": "user"}]})
        + "\n",
        encoding="utf-8",
    )
    status, out, _ = call(capsys, "generate", "--batch", batch, *common)
    assert status == 0
    answers = {answer["id"]: answer for answer in map(json.loads, out.splitlines())}
    assert answers[1]["stats"]["tokens"] > 0
    assert answers[2]["stats"]["tokens"] > 0
    assert "error" in answers[3]
    assert "error" in answers[4]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["complete", "{dir}/missing.py:1:1"], "does not exist"),
        (["complete", "{dir}:1:1"], "directory"),
        (["complete", "{dir}/ok.py:9:1"], "outside the file"),
        (["complete", "{dir}/ok.py:1:99"], "outside line 1"),
        (["complete", "{dir}/ok.py:0:1"], "outside"),
        (["complete", "{dir}/ok.py"], "FILE:LINE:COLUMN"),
        (["complete", "{dir}/latin.py:1:1"], "not UTF-8"),
        (["complete"], "either"),
        (["complete", "{dir}/ok.py:1:1", "--model", "nobody-knows-this"], "nobody-knows-this"),
        (["complete", "{dir}/ok.py:1:1", "--temperature", "-1"], "--temperature"),
        (["complete", "{dir}/ok.py:1:1", "--drafter", "magic"], "magic"),
        (["complete", "{dir}/ok.py:1:1", "--max-tokens", "many"], "many"),
        (["complete", "--batch", "{dir}/none.jsonl"], "does not exist"),
        (["generate"], "--batch"),
        (["serve", "--tcp", "nonsense"], "HOST:PORT"),
        (["models", "remove", ".."], "no model name"),
        (["models", "remove", ""], "no model name"),
        (["complete", "{dir}/ok.py:1:1", "--device", "tpu"], "tpu"),
        (["frobnicate"], "frobnicate"),
        (["--nonsense"], "nonsense"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(tmp_path: Path, capsys, arguments: list[str], says: str) -> None:
    (tmp_path / "ok.py").write_text("x = 1\n", encoding="utf-8")
    (tmp_path / "latin.py").write_bytes(b"x = '\xe9'\n")
    status, out, err = call(capsys, *[argument.replace("{dir}", str(tmp_path)) for argument in arguments])
    assert status == 2
    assert out == ""
    assert says in err
    assert len(err.strip().splitlines()) == 1


def test_empty_and_large_files_work(tmp_path: Path, common: list[str], capsys) -> None:
    empty, large = tmp_path / "empty.py", tmp_path / "large.py"
    empty.write_text("", encoding="utf-8")
    line = "some_variable_name = another_function(1, 2, 3)\n"
    large.write_text(line * (5_000_000 // len(line)), encoding="utf-8")
    for file, place in ((empty, "1:1"), (large, "50000:5")):
        status, out, err = call(capsys, "complete", f"{file}:{place}", "--json", *common)
        assert status == 0, err
        assert json.loads(out)["stats"]["tokens"] > 0


def test_the_version_needs_no_model_library() -> None:
    code = (
        "import sys; from lsp_server.cli import run; run(['--version']); "
        "sys.exit(bool({'torch', 'transformers', 'pygls'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, capture_output=True).returncode == 0


def test_bench_quality_prints_one_object_and_goes_on_where_it_was(tmp_path: Path, common: list[str], capsys) -> None:
    if not (Path(__file__).absolute().parents[3] / "shared" / "data").is_dir() and "DRAFTWOOD_DATA" not in os.environ:
        pytest.skip("the public data is not here")
    file = tmp_path / "quality.jsonl"
    arguments = ("bench", "quality", "--points", "1", "--set", "lines", "--variant", "soft", "--output", file, *common)
    status, out, err = call(capsys, *arguments, "--json")
    assert status == 0, err
    assert set(json.loads(out)["sets"]["lines"]) == {"off", "soft"}
    written = file.read_text()
    status, out, _ = call(capsys, *arguments)
    assert status == 0
    assert "similarity" in out
    assert file.read_text() == written


@pytest.mark.parametrize("command", [["models", "list"], ["models", "list", "--json"], ["stats", "--json"]])
def test_a_full_disk_is_one_line(command: list[str]) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    program = [sys.executable, "-m", "lsp_server.cli", *command]
    with open("/dev/full", "w") as full:
        done = subprocess.run(program, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "No space left" in done.stderr


@pytest.mark.parametrize("url", ["notaurl", "ftp://a/v1", "http://", "http://[::1/v1"])
def test_a_remote_address_that_is_none(tmp_path: Path, url: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.py"
    file.write_text("x = \n")
    status, _, err = call(capsys, "complete", f"{file}:1:5", "--remote-url", url)
    assert (status, err.count("\n")) == (2, 1)
    assert "http://127.0.0.1" in err


@pytest.mark.parametrize("trace", ["missing/trace.html", "folder.html"])
def test_a_trace_that_cannot_be_written_is_refused_before_a_model_is_loaded(
    tmp_path: Path, trace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.py"
    file.write_text("x = \n")
    (tmp_path / "folder.html").mkdir()
    model = str(tmp_path / "no model")  # asking for it would be an error of another kind
    status, _, err = call(capsys, "complete", f"{file}:1:5", "--trace", tmp_path / trace, "--model", model)
    assert (status, err.count("\n")) == (2, 1)
    assert trace in err


INTERRUPTED_IMPORT = """
import sys
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "click":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupt())
from lsp_server.cli import main
main(["--version"])
"""


def test_an_interrupt_while_modules_are_imported_is_one_line() -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED_IMPORT], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "draftwood: interrupted\n")
