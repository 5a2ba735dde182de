"""`draftwood explain` and the others as scripts call them, on a tiny model folder; and applied changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from decoding.errors import BadInput
from decoding.reasoning.requests import CommandResult, NewFile, Replacement
from lsp_server import cli_commands
from lsp_server.cli import run
from lsp_server.cli_commands import parse_selection

SOURCE = "def area(w, h):\n    return w * h\n\n\nclass Größe:\n    def f(self):\n        return 1\n"
KEYS = {
    "command", "text", "thought", "edits", "new_file", "checks", "tries", "stop_reason", "model", "runtime", "drafter",
    "stats",
}  # fmt: skip


@pytest.fixture
def common(tiny_folder: Path) -> list[str]:
    return ["--model", str(tiny_folder), "--runtime", "transformers", "--threads", "1", "--max-tokens", "40", "--json"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "shop.py"
    path.write_text(SOURCE, encoding="utf-8")
    return path


def call(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    status = run([str(argument) for argument in arguments])
    output = capsys.readouterr()
    return status, output.out, output.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["explain", "{file}"],
        ["explain", "{file}:2", "--message", "TypeError: x"],
        ["explain", "{file}:1-2", "--thinking-tokens", "5"],
        ["fix", "{file}:2", "--message", "TypeError: x", "--tries", "2"],
        ["docstring", "{file}:6", "--style", "numpy"],
        ["tests", "{file}:1", "--tries", "1"],
        ["edit", "{file}:1-2", "add types", "--tries", "1"],
        ["reason", "Why?", "--thinking-tokens", "6"],
        ["reason", "Why?", "--file", "{file}:1-2", "--thoughts", "hidden"],
    ],
)
def test_each_command_prints_one_object(file: Path, common, capsys, arguments: list[str]) -> None:
    status, out, err = call(capsys, *[argument.replace("{file}", str(file)) for argument in arguments], *common)
    assert status == 0, err
    data = json.loads(out)
    assert set(data) == KEYS
    assert data["command"] == arguments[0]
    assert data["stats"]["tokens"] > 0
    assert file.read_text(encoding="utf-8") == SOURCE
    for edit in data["edits"]:
        assert set(edit) == {"path", "range", "text"}


def test_a_docstring_is_applied_only_on_request(file: Path, common, capsys) -> None:
    status, out, _ = call(capsys, "docstring", f"{file}:1", *common, "--apply")
    assert status == 0
    [edit] = json.loads(out)["edits"]
    assert edit["range"]["start"] == {"line": 1, "column": 16}
    assert file.read_text(encoding="utf-8").startswith("def area(w, h):\n" + edit["text"].lstrip("\n"))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["explain", "{file}:99"], "outside the file"),
        (["explain", "{file}:2-1"], "comes before"),
        (["explain", "missing.py"], "does not exist"),
        (["docstring", "{file}:4"], "cursor into a function"),
        (["edit", "{file}:1-2", "  "], "how the code"),
        (["fix", "{file}:1"], "what is wrong"),
        (["reason", " "], "question"),
        (["tests", "{file}:1", "--tries", "0"], "tries"),
        (["explain", "{file}", "--thinking-tokens", "9999"], "thinking-tokens"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(file: Path, common, capsys, arguments, says: str) -> None:
    status, out, err = call(capsys, *[argument.replace("{file}", str(file)) for argument in arguments], *common)
    assert status == 2
    assert out == ""
    assert says in err.strip().splitlines()[-1]  # what comes before is about loading the model


@pytest.mark.parametrize(
    ("place", "parsed"),
    [
        ("a.py", (Path("a.py"), None, None)),
        ("a.py:3", (Path("a.py"), 3, None)),
        ("a.py:3-5", (Path("a.py"), 3, 5)),
        ("C:/x/a.py:3", (Path("C:/x/a.py"), 3, None)),
        ("a:b.py", (Path("a:b.py"), None, None)),
    ],
)
def test_places(place: str, parsed: tuple[Path, int | None, int | None]) -> None:
    assert parse_selection(place) == parsed


class _Answers:
    """An assistant with one answer."""

    def __init__(self, result: CommandResult) -> None:
        self.result = result

    def command(self, *_: object, **__: object) -> CommandResult:
        return self.result


def test_people_see_the_change_and_what_it_cost(file: Path, monkeypatch) -> None:
    result = CommandResult(text="Done.", replacements=(Replacement(start=27, end=32, text="h * w"),), model="m")
    monkeypatch.setattr(cli_commands, "load_assistant", lambda _: _Answers(result))
    shown = CliRunner().invoke(cli_commands.edit, [f"{file}:1-2", "turn round", "--apply"])
    assert "-    return w * h\n+    return h * w\n" in shown.output
    assert "tokens/s" in shown.output
    assert "return h * w" in file.read_text(encoding="utf-8")


@pytest.mark.parametrize("code", ["x: dict[str, list[float]] = {}", "y = a[bold]", f"long = {list(range(60))}"])
def test_a_change_is_shown_letter_by_letter(tmp_path: Path, monkeypatch, code: str) -> None:
    source = tmp_path / "a.py"
    source.write_text("old\n", encoding="utf-8")
    result = CommandResult(text="Done.", replacements=(Replacement(start=0, end=3, text=code),), model="m")
    monkeypatch.setattr(cli_commands, "load_assistant", lambda _: _Answers(result))
    shown = CliRunner().invoke(cli_commands.edit, [f"{source}:1", "write it"])
    assert f"-old\n+{code}\n" in shown.output


def test_a_new_file_is_written_once(file: Path, monkeypatch) -> None:
    new = file.parent / "test_shop.py"
    result = CommandResult(text="Tests.", new_file=NewFile(uri=new.as_uri(), text="x = 1\n"))
    monkeypatch.setattr(cli_commands, "load_assistant", lambda _: _Answers(result))
    arguments = [f"{file}:1", "--apply", "--json"]
    assert CliRunner().invoke(cli_commands.tests, arguments).exit_code == 0
    assert new.read_text(encoding="utf-8") == "x = 1\n"
    again = CliRunner().invoke(cli_commands.tests, arguments)
    assert isinstance(again.exception, BadInput)
    assert "exists already" in str(again.exception)
