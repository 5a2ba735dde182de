"""A language server that keeps Draftwood's contract with canned answers and no model: what the editor tests talk to.

Every event that a test may want to see is one JSON line in the file named by `--log`. It uses pygls and nothing of
Draftwood, so that an editor test can fail only because of the editor's side.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import time
from dataclasses import dataclass
from typing import Any

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer

ANSWERS = ("explain", "fix", "docstring", "tests", "edit", "reason")
CLOSERS = ")]}\"':"

# What the line must hold before the cursor -> the alternatives; what has been typed of one already is left out.
SUGGESTIONS: dict[str, tuple[str, ...]] = {
    "def add(": ("a, b):\n    return a + b",),
    "def mul(": ("x, y):\n    return x * y", "left, right):\n    return left * right"),
    "def area(": ("width, height):\n\treturn width * height",),
    'label = "🎉" + ': ("name.title() + suffix",),
    "print(": ("message, flush=True)",),
    "os.pa": ("th.join(base, name)",),
    "total = ": ("sum(prices)",),
}

EXPLANATION = """\
### What `mean` does

It adds up the **values** and divides by how many there are:

```python
def mean(values):
    return sum(values) / len(values)
```

- An empty list raises `ZeroDivisionError`.
- The result is a `float`, whatever the values are.
"""


@dataclass(frozen=True)
class Behaviour:
    """What a test may choose on the command line; the words that the real program takes are accepted and ignored."""

    log: str | None
    chunk_seconds: float
    start: str

    @classmethod
    def from_command_line(cls) -> Behaviour:
        parser = argparse.ArgumentParser()
        parser.add_argument("--log")
        parser.add_argument("--chunk-seconds", type=float, default=0.02)
        parser.add_argument("--start", choices=("ready", "download", "error", "die"), default="ready")
        return cls(**vars(parser.parse_known_args()[0]))


class StubServer(LanguageServer):
    """The server and the little it remembers."""

    def __init__(self, behaviour: Behaviour) -> None:
        super().__init__(
            "draftwood-stub",
            "0.1.0",
            text_document_sync_kind=lsp.TextDocumentSyncKind.Incremental,
            notebook_document_sync=lsp.NotebookDocumentSyncOptions(
                notebook_selector=[
                    lsp.NotebookDocumentFilterWithNotebook(
                        notebook="*", cells=[lsp.NotebookCellLanguage(language="python")]
                    )
                ]
            ),
        )
        self.behaviour = behaviour
        self.settings: dict[str, Any] = {}
        self.accepted = 0

    def note(self, event: str, **details: Any) -> None:
        if self.behaviour.log:
            with open(self.behaviour.log, "a", encoding="utf-8") as log:
                log.write(json.dumps({"event": event, "at": time.time(), **details}) + "\n")

    def status(self, state: str, **details: Any) -> None:
        self.protocol.notify("draftwood/status", {"state": state, "model": "stub-0.5b", **details})

    def line_at(self, uri: str, line: int) -> str:
        lines = self.workspace.get_text_document(uri).source.split("\n")
        return lines[line].rstrip("\r") if line < len(lines) else ""


server = StubServer(Behaviour.from_command_line())


@server.feature(lsp.INITIALIZE)
def initialize(params: lsp.InitializeParams) -> None:
    server.settings = dict(params.initialization_options or {})
    info = params.client_info
    text_document = params.capabilities.text_document
    server.note(
        "initialize",
        client=info.name if info else None,
        settings=server.settings,
        pid=os.getpid(),
        ghost_text=bool(text_document and text_document.inline_completion),
    )
    if server.behaviour.start == "die":
        os._exit(1)


@server.feature(lsp.INITIALIZED)
async def initialized(_: lsp.InitializedParams) -> None:
    match server.behaviour.start:
        case "download":
            for step in range(100):
                server.status("downloading", progress=min(step, 42) / 100, message="fetching stub-0.5b")
                await asyncio.sleep(0.1)
        case "error":
            server.status("error", message="The model file is damaged: run `draftwood models pull stub-0.5b`.")
            return
        case _:
            server.status("loading", message="loading stub-0.5b")
    server.status("ready")


@server.feature(lsp.WORKSPACE_DID_CHANGE_CONFIGURATION)
async def configuration_changed(_: lsp.DidChangeConfigurationParams) -> None:
    found = await server.workspace_configuration_async(
        lsp.ConfigurationParams(items=[lsp.ConfigurationItem(section="draftwood")])
    )
    server.settings = dict(found[0] or {}) if found else {}
    server.note("settings", settings=server.settings)


@server.feature(lsp.TEXT_DOCUMENT_INLINE_COMPLETION, lsp.InlineCompletionOptions())
async def inline_completion(params: lsp.InlineCompletionParams) -> lsp.InlineCompletionList:
    uri, position = params.text_document.uri, params.position
    line = server.line_at(uri, position.line)
    codec = server.workspace.position_codec
    column = codec.position_from_client_units([line], lsp.Position(0, position.character)).character
    before, after = line[:column], line[column:]
    start, texts = _suggestions(before, params.context.selected_completion_info)
    server.note(
        "inline",
        uri=uri,
        before=before,
        selected=params.context.selected_completion_info and params.context.selected_completion_info.text,
        shown=bool(texts),
        version=server.workspace.get_text_document(uri).version,
    )
    first = position if start is None else start
    # Closing brackets that the editor typed by itself are replaced, or they stay behind the suggestion.
    closers = len(after) if all(c in CLOSERS for c in after.strip()) else 0
    tail = lsp.Position(0, column + closers)
    end = codec.position_to_client_units([line], tail).character
    return lsp.InlineCompletionList(
        items=[_item(uri, text, lsp.Range(first, lsp.Position(position.line, end))) for text in texts]
    )


def _suggestions(
    before: str, selected: lsp.SelectedCompletionInfo | None
) -> tuple[lsp.Position | None, tuple[str, ...]]:
    """What fits, and where its range starts if that is not the cursor."""
    if selected is not None:  # the suggestion has to go on from the entry that the suggest widget shows
        return selected.range.start, (f"{selected.text}(base, name)",)
    for trigger, texts in SUGGESTIONS.items():
        _, found, typed = before.rpartition(trigger)
        rests = tuple(text[len(typed) :] for text in texts if text.startswith(typed) and len(text) > len(typed))
        if found and rests:
            if server.settings.get("suggest", {}).get("multiline") == "never":
                rests = tuple(rest.split("\n")[0] for rest in rests)
            return None, rests
    return None, ()


def _item(uri: str, text: str, where: lsp.Range) -> lsp.InlineCompletionItem:
    if "\r\n" in server.workspace.get_text_document(uri).source:
        text = text.replace("\n", "\r\n")
    accepted = {"textDocument": {"uri": uri}, "length": len(text)}
    return lsp.InlineCompletionItem(
        insert_text=text,
        range=where,
        command=lsp.Command(title="accepted", command="draftwood.accepted", arguments=[accepted]),
    )


@server.feature(lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions(trigger_characters=["."]))
def completion(params: lsp.CompletionParams) -> list[lsp.CompletionItem]:
    """Two entries after `os.path.`, so that the suggest widget has something to show."""
    line = server.line_at(params.text_document.uri, params.position.line)
    if "os.path." not in line[: params.position.character]:
        return []
    return [lsp.CompletionItem(label=name, kind=lsp.CompletionItemKind.Function) for name in ("join", "isdir")]


@server.feature("draftwood/answer")
async def answer(params: Any) -> dict[str, Any]:
    """Streams the canned Markdown in small pieces, then returns the whole of it and the edit, if it makes one."""
    name = params.command.removeprefix("draftwood.")
    uri = params.textDocument.uri
    server.note("answer", command=params.command, uri=uri, range=_plain(getattr(params, "range", None)))
    server.status("busy")
    text = _text_of(name, getattr(params.arguments, "question", ""))
    sent = ""
    try:
        for start in range(0, len(text), 12):
            sent += text[start : start + 12]
            progress = lsp.ProgressParams(token=params.token, value={"text": text[start : start + 12]})
            server.protocol.notify("$/progress", progress)
            await asyncio.sleep(server.behaviour.chunk_seconds)
    except asyncio.CancelledError:
        server.note("stopped", command=params.command, characters=len(sent))
        raise
    finally:
        server.status("ready")
    server.note("answered", command=params.command)
    return {"text": text, "edit": _edit_of(name, uri)}


def _plain(value: Any) -> Any:
    """Plain dicts of what pygls made of untyped JSON (named tuples) or of the protocol's types."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: _plain(part) for name, part in value._asdict().items()}
    return server.protocol._converter.unstructure(value)


def _text_of(name: str, question: str) -> str:
    match name:
        case "explain":
            return EXPLANATION
        case "reason":
            return f"<think>\nThe question is: {question}\nTwo cases.\n</think>\n\nIt is **linear** in the length.\n"
        case _:
            return f"The change for *{name}*:\n\n```python\nif not values:\n    return 0.0\n```\n"


def _edit_of(name: str, uri: str) -> dict[str, Any] | None:
    """A guard inserted as the first statement of the first function, or a new test file."""
    if name in ("explain", "reason"):
        return None
    if name == "tests":
        created = uri.rsplit("/", 1)[0] + "/test_generated.py"
        text = "from stats import mean\n\n\ndef test_mean():\n    assert mean([1, 3]) == 2\n"
        zero = {"line": 0, "character": 0}
        return {
            "documentChanges": [
                {"kind": "create", "uri": created},
                {
                    "textDocument": {"uri": created, "version": None},
                    "edits": [{"range": {"start": zero, "end": zero}, "newText": text}],
                },
            ]
        }
    lines = server.workspace.get_text_document(uri).source.split("\n")
    line = 1 + next((number for number, text in enumerate(lines) if text.startswith("def ")), -1)
    where = {"line": line, "character": 0}
    text = "    if not values:\n        return 0.0\n"
    return {"changes": {uri: [{"range": {"start": where, "end": where}, "newText": text}]}}


@server.feature(lsp.TEXT_DOCUMENT_CODE_ACTION, lsp.CodeActionOptions(code_action_kinds=[lsp.CodeActionKind.QuickFix]))
def code_actions(params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
    target = {"textDocument": {"uri": params.text_document.uri}, "range": _plain(params.range)}
    if params.range.start == params.range.end and params.context.trigger_kind == lsp.CodeActionTriggerKind.Automatic:
        server.note("rest", argument=_plain(params.range.start))
    actions = [("explain", "Explain with Draftwood", lsp.CodeActionKind.Empty)]
    if params.context.diagnostics:
        actions.insert(0, ("fix", "Fix with Draftwood", lsp.CodeActionKind.QuickFix))
    return [
        lsp.CodeAction(title=title, kind=kind, command=lsp.Command(title, f"draftwood.{name}", arguments=[target]))
        for name, title, kind in actions
    ]


@server.feature(lsp.TEXT_DOCUMENT_CODE_LENS, lsp.CodeLensOptions())
def code_lenses(params: lsp.CodeLensParams) -> list[lsp.CodeLens]:
    uri = params.text_document.uri
    lenses = []
    for number, line in enumerate(server.workspace.get_text_document(uri).source.split("\n")):
        if line.startswith("def "):
            where = lsp.Range(lsp.Position(number, 0), lsp.Position(number, len(line)))
            target = {"textDocument": {"uri": uri}, "range": _plain(where)}
            lenses += [
                lsp.CodeLens(where, lsp.Command(name.title(), f"draftwood.{name}", arguments=[target]))
                for name in ("explain", "docstring", "tests")
            ]
    return lenses


@server.command("draftwood.accepted")
def accepted(argument: Any = None) -> None:
    server.accepted += 1
    server.note("accepted", argument=_plain(argument))


@server.command("draftwood.stats")
def stats(_: Any = None) -> dict[str, Any]:
    return {
        "model": "stub-0.5b",
        "runtime": "stub",
        "tokens_per_second": 61.5,
        "mean_accepted": 2.41,
        "accepted": server.accepted,
        "shown": server.accepted + 1,
        "memory_mb": 812,
    }


def _offer(name: str) -> None:
    @server.command(f"draftwood.{name}")
    async def run(argument: Any = None) -> dict[str, Any]:
        """For clients without the custom request: the whole answer at once."""
        uri = argument.textDocument.uri
        server.note("command", command=f"draftwood.{name}")
        return {"text": _text_of(name, getattr(argument, "question", "")), "edit": _edit_of(name, uri)}


for _name in ANSWERS:
    _offer(_name)


if __name__ == "__main__":
    server.start_io()
