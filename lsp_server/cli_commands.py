"""`draftwood explain | fix | docstring | tests | edit | reason`: one command on a file.

Knows click and files. What a command does is the assistant's business; a file is written only with `--apply`.
"""

from __future__ import annotations

import difflib
import json
import re
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

import click
from click.core import ParameterSource

from decoding.errors import BadInput
from decoding.messages import Chunk, Snapshot
from decoding.reasoning.pieces import applied
from decoding.reasoning.requests import CommandName, CommandRequest, CommandResult
from lsp_server.cli_complete import engine_options, load_assistant, options_from, read_source, snapshot_at
from lsp_server.documents import command_line_position
from lsp_server.lines import LineIndex

F = TypeVar("F", bound=Callable[..., Any])

_ANSWER_TOKENS = 512
_THINKING_TOKENS = 256
_PLACE = re.compile(r"(?P<file>.+?)(?::(?P<first>\d+)(?:-(?P<last>\d+))?)?", re.DOTALL)
_REQUEST_FIELDS = ("thinking_tokens", "thoughts", "style", "tries", "test_command", "text")


def _command_options(command: F) -> F:
    """What all commands share."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print one JSON object."),
        click.option(
            "--thinking-tokens",
            type=click.IntRange(0, 4096),
            default=0,
            show_default=True,
            help="Think before the answer, at most so long.",
        ),
        click.option(
            "--thoughts", type=click.Choice(["folded", "hidden"]), default="folded", help="How thoughts are shown."
        ),
        engine_options,
    ):
        command = option(command)
    return command


def _change_options(command: F) -> F:
    """What the commands share that propose changes."""
    for option in (
        click.option("--apply", "apply_it", is_flag=True, help="Write the proposed change to disk."),
        click.option(
            "--tries",
            type=click.IntRange(1, 16),
            default=3,
            show_default=True,
            help="Candidates until one passes the checks.",
        ),
    ):
        command = option(command)
    return command


@click.command()
@click.argument("place", metavar="FILE[:L1[-L2]]")
@click.option("--message", "text", default="", metavar="TEXT|-", help="An error that the code gives; - reads stdin.")
@_command_options
def explain(place: str, text: str, **values: Any) -> None:
    """Explain lines, the function at a line, or a file."""
    _run("explain", place, text=_given(text), **values)


@click.command()
@click.argument("place", metavar="FILE[:L1[-L2]]")
@click.option("--message", "text", default="", metavar="TEXT|-", help="The error message or traceback; - reads stdin.")
@click.option("--test-command", metavar="COMMAND", help="Run this on a copy of the project to judge each candidate.")
@_change_options
@_command_options
def fix(place: str, text: str, **values: Any) -> None:
    """Fix what an error message says, or what pyflakes finds."""
    _run("fix", place, text=_given(text), **values)


@click.command()
@click.argument("place", metavar="FILE:LINE")
@click.option(
    "--style", type=click.Choice(["auto", "google", "numpy", "sphinx"]), default="auto", help="auto: the file's own."
)
@_change_options
@_command_options
def docstring(place: str, **values: Any) -> None:
    """Write the docstring of the function or class at a line."""
    _run("docstring", place, **values)


@click.command()
@click.argument("place", metavar="FILE:LINE")
@_change_options
@_command_options
def tests(place: str, **values: Any) -> None:
    """Write a pytest file for the function or class at a line."""
    _run("tests", place, **values)


@click.command()
@click.argument("place", metavar="FILE:L1-L2")
@click.argument("text", metavar="INSTRUCTION")
@_change_options
@_command_options
def edit(place: str, text: str, **values: Any) -> None:
    """Change lines, or the function at a line, as an instruction says."""
    _run("edit", place, text=_given(text), **values)


@click.command()
@click.argument("text", metavar="QUESTION")
@click.option("--file", "place", metavar="FILE[:L1[-L2]]", help="The code that the question is about.")
@_command_options
def reason(text: str, place: str | None, **values: Any) -> None:
    """Answer a question after thinking about it."""
    if _is_default("thinking_tokens"):
        values["thinking_tokens"] = _THINKING_TOKENS
    _run("reason", place, text=_given(text), **values)


def _run(name: CommandName, place: str | None, *, as_json: bool, apply_it: bool = False, **values: Any) -> None:
    """Ask, show or print, and write where the user said so."""
    request_values = {field: values.pop(field) for field in _REQUEST_FIELDS if field in values}
    if _is_default("max_tokens"):
        values["max_tokens"] = _ANSWER_TOKENS + request_values.get("thinking_tokens", 0)
    options = options_from(values)
    path, snapshot, end = _selection(place)
    request = CommandRequest(
        command=name, snapshot=snapshot, end=end, max_tokens=options.max_tokens, **_without_none(request_values)
    )
    assistant = load_assistant(options)
    show = (lambda _: None) if as_json else _stream
    with _trial(path, request.test_command) as trial:
        result: CommandResult = assistant.command(request, options, _never, show, trial=trial)
    if as_json:
        print(json.dumps(result_json(request, result), ensure_ascii=False))
    else:
        _show_rest(snapshot, result)
    if apply_it:
        _write(path, snapshot, result)


def _never() -> bool:
    return False


def _is_default(option: str) -> bool:
    return click.get_current_context().get_parameter_source(option) is ParameterSource.DEFAULT


def _without_none(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _given(text: str) -> str:
    """A text of the command line; "-" is standard input."""
    return sys.stdin.read() if text == "-" else text


def _trial(path: Path | None, command: str | None) -> Any:
    if command is None or path is None:
        return nullcontext(None)
    from decoding.reasoning.trial import ProjectTrial

    return ProjectTrial(path, command)


def parse_selection(place: str) -> tuple[Path, int | None, int | None]:
    """FILE, FILE:LINE or FILE:L1-L2, counted from 1."""
    found = _PLACE.fullmatch(place)
    if found is None:
        raise BadInput(f"{place!r} is not FILE, FILE:LINE or FILE:L1-L2")
    first, last = found["first"], found["last"]
    return Path(found["file"]), int(first) if first else None, int(last) if last else None


def _selection(place: str | None) -> tuple[Path | None, Snapshot, int]:
    """The file, its snapshot and where the selection ends. Raises BadInput."""
    if place is None:
        return None, Snapshot(uri="untitled:question", text="", offset=0), 0
    path, first, last = parse_selection(place)
    text = read_source(path)
    start, end = _bytes_of_lines(text, first, last)
    return path, snapshot_at(path, text, start), end


def _bytes_of_lines(text: str, first: int | None, last: int | None) -> tuple[int, int]:
    """Bytes of whole lines; the beginning of a single line's code, nothing selected, where `last` is None."""
    if first is None:
        return 0, 0
    data = text.encode("utf-8")
    lines = LineIndex(data)
    for line in (first, last or first):
        if not 1 <= line <= len(lines):
            raise BadInput(f"line {line} is outside the file, which has {len(lines)} lines")
    start = lines.start(first - 1)
    if last is None:
        while data[start : start + 1] in (b" ", b"\t"):
            start += 1
        return start, start
    if last < first:
        raise BadInput(f"line {last} comes before line {first}")
    return start, lines.start(last) if last < len(lines) else len(data)


def _stream(chunk: Chunk) -> None:
    sys.stdout.write(chunk.text)
    sys.stdout.flush()


def _show_rest(snapshot: Snapshot, result: CommandResult) -> None:
    """The change as a diff, a new file's name, and the statistics."""
    from rich.console import Console
    from rich.syntax import Syntax
    from rich.text import Text

    from lsp_server.show import statistics_line

    print(flush=True)
    if result.replacements:
        console = Console(highlight=False)
        diff = "".join(_diff(snapshot, result))
        # As plain text: `dict[str, float]` is code here, not markup, and lines are not to be broken.
        shown = Syntax(diff, "diff", background_color="default") if console.is_terminal else Text(diff)
        console.print(shown, end="", soft_wrap=True)
    if result.new_file is not None:
        print(f"New file: {_path_of(result.new_file.uri)}")
    click.echo(statistics_line(result), err=True)


def _diff(snapshot: Snapshot, result: CommandResult) -> list[str]:
    before = snapshot.text.splitlines(keepends=True)
    after = applied(snapshot.text.encode("utf-8"), result.replacements).splitlines(keepends=True)
    name = _path_of(snapshot.uri).name
    return [
        line if line.endswith("\n") else f"{line}\n" for line in difflib.unified_diff(before, after, name, name, n=2)
    ]


def result_json(request: CommandRequest, result: CommandResult) -> dict[str, Any]:
    """The object that the command line promises."""
    text = request.snapshot.text
    edits = []
    for each in result.replacements:
        start, end = command_line_position(text, each.start), command_line_position(text, each.end)
        edits.append(
            {
                "path": str(_path_of(request.snapshot.uri)),
                "range": {
                    "start": {"line": start[0], "column": start[1]},
                    "end": {"line": end[0], "column": end[1]},
                },
                "text": each.text,
            }
        )
    new = result.new_file
    return {
        "command": request.command,
        **result.model_dump(include={"text", "thought"}),
        "edits": edits,
        "new_file": {"path": str(_path_of(new.uri)), "text": new.text} if new is not None else None,
        **result.model_dump(include={"checks", "tries", "stop_reason", "model", "runtime", "drafter", "stats"}),
    }


def _path_of(uri: str) -> Path:
    return Path(unquote(urlsplit(uri).path))


def _write(path: Path | None, snapshot: Snapshot, result: CommandResult) -> None:
    """Write what was proposed. Raises BadInput where the file has changed meanwhile, or a new one exists."""
    if result.replacements and path is not None:
        if read_source(path) != snapshot.text:
            raise BadInput(f"{path} has changed meanwhile: nothing was written")
        path.write_bytes(applied(snapshot.text.encode("utf-8"), result.replacements).encode("utf-8"))
        click.echo(f"wrote {path}", err=True)
    elif result.new_file is not None:
        new = _path_of(result.new_file.uri)
        if new.exists():
            raise BadInput(f"{new} exists already: nothing was written")
        new.write_text(result.new_file.text, encoding="utf-8")
        click.echo(f"wrote {new}", err=True)
    else:
        click.echo("there is nothing to write", err=True)
