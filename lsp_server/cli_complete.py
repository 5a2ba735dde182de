"""`draftwood complete` and `draftwood generate`: one request, or a batch of them with the model loaded once.

Knows click, files and JSON. What a completion is made of is the assistant's business.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, TypeVar
from urllib.parse import urlsplit

import click
from pydantic import BaseModel, ConfigDict, ValidationError
from rich.console import Console

from decoding.errors import BadFile, BadInput, DraftwoodError
from decoding.messages import Answer, Completion, EngineOptions, Snapshot
from lsp_server.documents import command_line_offset, command_line_position
from lsp_server.progress import ProgressBar
from lsp_server.trace import Trace
from lsp_server.trace_page import write_page

_TERMINAL = "-"

F = TypeVar("F", bound=Callable[..., Any])


def _never() -> bool:
    return False


def engine_options(command: F) -> F:
    """The options that all commands share, handed on as one EngineOptions `options`."""
    defaults = EngineOptions()
    for option in reversed(
        [
            click.option("--model", default=defaults.model, show_default=True, help="Registry name, folder or hub id."),
            click.option("--draft-model", help="A smaller model with the same tokenizer."),
            click.option("--runtime", type=click.Choice(["auto", "native", "transformers"]), default="auto"),
            click.option("--device", default=defaults.device, help="auto, cpu, cuda, mps."),
            click.option("--dtype", type=click.Choice(["auto", "float32", "bfloat16", "float16"]), default="auto"),
            click.option("--threads", type=int, default=0, help="0: one per physical core."),
            click.option(
                "--drafter", type=click.Choice(["auto", "none", "lookup", "recycle", "model"]), default="auto"
            ),
            click.option("--tree-nodes", type=int, default=0, help="Nodes of a draft tree; 0: decided each round."),
            click.option("--constraint", type=click.Choice(["enforce", "draft", "off"]), default=defaults.constraint),
            click.option("--scope", type=click.Choice(["soft", "hard", "off"]), default=defaults.scope),
            click.option("--max-tokens", type=int, default=defaults.max_tokens, show_default=True),
            click.option("--multiline", type=click.Choice(["auto", "always", "never"]), default="auto"),
            click.option("--temperature", type=float, default=0.0, show_default=True, help="0: greedy."),
            click.option("--top-p", type=float, default=1.0),
            click.option("--top-k", type=int, default=0),
            click.option("--min-p", type=float, default=0.0),
            click.option("--repetition-penalty", type=float, default=1.0),
            click.option("--seed", type=int, default=0, show_default=True),
            click.option("--context-tokens", type=int, default=defaults.context_tokens, show_default=True),
            click.option("--prefix-tokens", type=int, default=defaults.prefix_tokens, show_default=True),
            click.option("--suffix-tokens", type=int, default=defaults.suffix_tokens, show_default=True),
            click.option("--remote-url", default="", help="An OpenAI-compatible server, with /v1."),
            click.option("--remote-model", default="", help="The model's name there."),
            click.option("--remote-key-env", default="", help="The environment variable that holds the key."),
        ]
    ):
        command = option(command)
    return command


def options_from(values: dict[str, Any]) -> EngineOptions:
    """EngineOptions of the command line's values. Raises BadInput, in one line, for one out of its range."""
    if values.get("remote_url") and not _is_address(values["remote_url"]):
        raise BadInput(f"--remote-url {values['remote_url']!r} is no address: give one like http://127.0.0.1:8080/v1")
    try:
        return EngineOptions(**values)
    except ValidationError as error:
        first = error.errors()[0]
        name = "--" + str(first["loc"][0]).replace("_", "-")
        raise BadInput(f"{name} {first['input']!r}: {first['msg'][0].lower()}{first['msg'][1:]}") from error


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:  # a bracket that is not closed
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


def read_source(path: Path) -> str:
    """The text of a source file. Raises BadFile."""
    if path.is_dir():
        raise BadFile(f"{path} is a directory: give a file")
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise BadFile(f"{path} does not exist") from None
    except UnicodeDecodeError as error:
        raise BadFile(f"{path} is not UTF-8 text (byte {error.start}): save it as UTF-8") from None
    except OSError as error:
        raise BadFile(f"{path} cannot be read: {error.strerror}") from error


def parse_place(place: str) -> tuple[Path, int, int]:
    """FILE:LINE:COLUMN, both 1-based. Raises BadInput."""
    file, *numbers = place.rsplit(":", 2)
    if len(numbers) != 2 or not all(number.isdecimal() for number in numbers) or not file:
        raise BadInput(f"{place!r} is not FILE:LINE:COLUMN (both counted from 1)")
    return Path(file), int(numbers[0]), int(numbers[1])


@click.command()
@click.argument("place", metavar="FILE:LINE:COLUMN", required=False)
@click.option("--batch", metavar="FILE.jsonl", help='Lines of {"id", "prefix", "suffix", "path"?}; "-" is stdin.')
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option(
    "--trace",
    metavar="[FILE.html]",
    is_flag=False,
    flag_value=_TERMINAL,
    help="Draw each round's draft tree on stderr, or write a page to step through.",
)
@engine_options
def complete(place: str | None, batch: str | None, as_json: bool, trace: str | None, **values: Any) -> None:
    """Complete at a cursor. Lines and columns count from 1, columns in characters."""
    options = options_from(values)
    if trace not in (None, _TERMINAL) and place is None and not trace.endswith(".html"):
        place, trace = trace, _TERMINAL  # `--trace FILE:LINE:COLUMN`: the option took the place for its value
    if (place is None) == (batch is None):
        raise click.UsageError("give either FILE:LINE:COLUMN or --batch FILE.jsonl")
    if batch is not None:
        if trace is not None:
            raise click.UsageError("--trace is for one completion, not for --batch")
        _complete_batch(batch, options)
        return
    assert place is not None
    path, line, column = parse_place(place)
    text = read_source(path)
    snapshot = snapshot_at(path, text, command_line_offset(text, line, column))
    if trace is not None and options.remote_url:
        raise click.UsageError("--trace needs a model on this machine")
    if trace not in (None, _TERMINAL):
        _check_writable(Path(trace))
    assistant = load_assistant(options)
    recorded = Trace(assistant.model.vocabulary) if trace is not None else None
    completion = _complete_one(assistant, snapshot, options, recorded.add if recorded is not None else None)
    if recorded is not None and trace is not None:
        _show_trace(recorded, completion, trace)
    if as_json:
        print(json.dumps(completion_json(completion, text), ensure_ascii=False))
    else:
        from lsp_server.show import show_completion

        show_completion(completion, snapshot)


@click.command()
@click.option(
    "--batch", required=True, metavar="FILE.jsonl", help='Lines of {"id", "prompt" or "messages"}; "-" is stdin.'
)
@engine_options
def generate(batch: str, **values: Any) -> None:
    """Continue prompts or answer messages: one JSON object a line."""
    options = options_from(values)
    _run_batch(batch, options, _GenerateLine, lambda assistant, line: _generate_one(assistant, line, options))


def _check_writable(file: Path) -> None:
    """Raises BadFile where `file` cannot be written: before a model is loaded, not after an answer was computed."""
    if file.is_dir():
        raise BadFile(f"{file} is a directory: give a file for the trace")
    if not os.access(file if file.exists() else file.parent, os.W_OK):
        raise BadFile(f"{file} cannot be written: give a file in a folder that exists and is yours")


def _show_trace(trace: Trace, completion: Completion, where: str) -> None:
    if where == _TERMINAL:
        trace.show(Console(stderr=True, highlight=False))
        return
    try:
        write_page(trace, completion, Path(where))
    except OSError as error:
        raise BadFile(f"{where} cannot be written: {error.strerror}") from error
    print(f"trace of {len(trace.steps)} rounds: {where}", file=sys.stderr)


def load_assistant(options: EngineOptions) -> Any:
    """The assistant, with a progress bar while it loads."""
    from decoding.remote import make_assistant

    with ProgressBar() as progress:
        return make_assistant(options, progress)


def snapshot_at(path: Path, text: str, offset: int) -> Snapshot:
    """A snapshot of a file on disk."""
    language = "python" if path.suffix in ("", ".py", ".pyi", ".pyw") else path.suffix[1:]
    return Snapshot(uri=path.absolute().as_uri(), text=text, offset=offset, language=language)


def _complete_one(
    assistant: Any, snapshot: Snapshot, options: EngineOptions, watch: Callable[[Any], None] | None = None
) -> Completion:
    completions: list[Completion] = assistant.complete(snapshot, options, _never, lambda _: None, watch)
    return completions[0]


def completion_json(completion: Completion, text: str) -> dict[str, Any]:
    """The object that the command line promises."""
    start, end = command_line_position(text, completion.start), command_line_position(text, completion.end)
    data = completion.model_dump(exclude={"start", "end", "raw"})
    return {
        "text": data.pop("text"),
        "range": {
            "start": {"line": start[0], "column": start[1]},
            "end": {"line": end[0], "column": end[1]},
        },
        **data,
    }


class _Line(BaseModel):
    model_config = ConfigDict(extra="ignore")

    id: Any = None


class _CompleteLine(_Line):
    prefix: str
    suffix: str = ""
    path: str | None = None


class _GenerateLine(_Line):
    prompt: str | None = None
    messages: list[dict[str, str]] | None = None


def _complete_batch(batch: str, options: EngineOptions) -> None:
    def answer(assistant: Any, line: _CompleteLine) -> dict[str, Any]:
        prefix, suffix = _whole_characters(line.prefix), _whole_characters(line.suffix)
        path = Path(_whole_characters(line.path)) if line.path else Path("untitled.py")
        snapshot = snapshot_at(path, prefix + suffix, len(prefix.encode("utf-8")))
        return completion_json(_complete_one(assistant, snapshot, options), snapshot.text)

    _run_batch(batch, options, _CompleteLine, answer)


def _whole_characters(text: str) -> str:
    """`text` without lone surrogates, which JSON can carry and UTF-8 cannot."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _generate_one(assistant: Any, line: _GenerateLine, options: EngineOptions) -> dict[str, Any]:
    if (line.prompt is None) == (line.messages is None):
        raise BadInput('give either "prompt" or "messages"')
    if line.messages is not None and not all({"role", "content"} <= set(message) for message in line.messages):
        raise BadInput('each message needs "role" and "content"')
    prompt = _whole_characters(line.prompt) if line.prompt is not None else line.messages
    result: Answer = assistant.answer(prompt, options, _never, lambda _: None)
    return result.model_dump()


L = TypeVar("L", bound=_Line)


def _run_batch(batch: str, options: EngineOptions, kind: type[L], answer: Callable[[Any, L], dict[str, Any]]) -> None:
    """One object a line; a bad line yields {"id", "error"} and the next one goes on."""
    with _opened(batch) as lines:
        assistant = load_assistant(options)
        for number, raw in enumerate(lines, 1):
            if not raw.strip():
                continue
            identity: Any = number
            try:
                data = _object(raw)
                identity = data.get("id", number)
                result = {"id": identity, **answer(assistant, kind.model_validate(data))}
            except ValidationError as error:
                first = error.errors()[0]
                result = {"id": identity, "error": f"{'.'.join(map(str, first['loc']))}: {first['msg']}"}
            except DraftwoodError as error:
                result = {"id": identity, "error": str(error)}
            print(_one_line(result), flush=True)


def _one_line(result: dict[str, Any]) -> str:
    """JSON of a result; an `id` that JSON has no way to write (NaN, half a character) is written as text."""
    try:
        line = json.dumps(result, ensure_ascii=False, allow_nan=False)
        line.encode("utf-8")
    except ValueError:  # UnicodeEncodeError is one
        return json.dumps({**result, "id": repr(result["id"])}, ensure_ascii=True)
    return line


def _object(raw: str) -> dict[str, Any]:
    try:
        data = json.loads(raw)
    except ValueError as error:
        raise BadInput(f"not JSON: {error}") from None
    if not isinstance(data, dict):
        raise BadInput("not a JSON object")
    return data


class _opened:
    """The lines of a batch file, or of standard input."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._file: IO[str] | None = None

    def __enter__(self) -> Iterator[str]:
        if self._name == "-":
            return iter(sys.stdin)
        path = Path(self._name)
        if path.is_dir() or not path.exists():
            raise BadFile(f"{path} {'is a directory' if path.is_dir() else 'does not exist'}: give a JSON-lines file")
        self._file = path.open(encoding="utf-8", errors="replace")
        return self._file

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()
