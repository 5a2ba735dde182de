"""Edits, questions and cancels in random order against the real engine: no answer may be for a text that is gone.

    python -m tests.benchmarks.fuzz_engine [--model NAME] [--interleavings 300] [--seconds 300] [--out FILE.json]

The session, the worker process and the model are real; the client is one that never looks at versions, cancels when it
likes and asks anywhere. What an answer is checked against is the document at the very moment it is given, and what the
engine was heard to write for a place that the document still agrees with.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from lsprotocol import types

from decoding.messages import Chunk, Completion, EngineOptions
from lsp_server.counts import Counts
from lsp_server.documents import Document, DocumentStore, View
from lsp_server.lines import Encoding, decode
from lsp_server.session import Session
from lsp_server.settings import Settings
from lsp_server.worker_client import WorkerClient
from tests.benchmarks.replay import commit, texts

URI = "file:///fuzzed.py"
ACTIONS = [
    "along",
    "type",
    "pair",
    "over",
    "delete",
    "elsewhere",
    "ask",
    "ask",
    "ask",
    "cancel",
    "wait",
    "wait",
    "rest",
]
TYPED = ["a", " ", "\n", "\n    ", "self.", "(", "x = ", "é", "😀", "return "]


class Heard(WorkerClient):
    """The worker, with everything it wrote."""

    written: list[tuple[View, dict[int, str]]]

    async def complete(
        self, view: View, options: EngineOptions, on_chunk: Callable[[Chunk], None] | None = None
    ) -> tuple[Completion, ...]:
        raws: dict[int, str] = {}
        self.written.append((view, raws))

        def listen(chunk: Chunk) -> None:
            raws[chunk.alternative] = raws.get(chunk.alternative, "") + chunk.text
            if on_chunk is not None:
                on_chunk(chunk)

        completions = await super().complete(view, options, listen)
        raws.update({rank: completion.raw for rank, completion in enumerate(completions)})
        return completions


@dataclass
class Client:
    """One document, and what became of each question."""

    worker: Heard
    session: Session
    store: DocumentStore
    rng: random.Random
    document: Document
    offset: int
    asked: list[asyncio.Task[None]] = field(default_factory=list)
    shown: str = ""
    answers: int = 0
    checked: int = 0
    stale: list[str] = field(default_factory=list)

    def edit(self, start: int, end: int, text: str) -> None:
        places = [self.document.position_at(place, self.store.encoding) for place in (start, end)]
        change = types.TextDocumentContentChangePartial(types.Range(*places), text)
        identifier = types.VersionedTextDocumentIdentifier(0, URI)
        self.store.change(types.DidChangeTextDocumentParams(identifier, [change]))
        self.session.changed(self.document.uri, self.document.data, self.document.revision)
        here = start <= self.offset <= end
        self.offset = (
            start + len(text.encode())
            if here
            else self.offset + (start < self.offset) * (len(text.encode()) - (end - start))
        )

    async def act(self) -> None:
        rng = self.rng
        match rng.choice(ACTIONS):
            case "along":
                text, self.shown = self.shown[: rng.choice([1, 3, 80])], ""
                self.edit(self.offset, self.offset, text or "q")
            case "type":
                self.edit(self.offset, self.offset, rng.choice(TYPED))
            case "pair":
                self.edit(self.offset, self.offset, rng.choice(["()", "[]", '""']))
                self.offset -= 1
            case "over":
                here = self.document.data[self.offset : self.offset + 1]
                closes = here in (b")", b"]", b'"')
                self.edit(self.offset, self.offset + closes, here.decode() if closes else "q")
            case "delete":
                before = self.document.view(self.offset).window(40, 0)[0][-rng.randrange(1, 4) :]
                self.edit(self.offset - len(before.encode()), self.offset, "")
            case "elsewhere":
                line = rng.randrange(len(self.document.lines))
                self.edit(self.document.lines.start(line), self.document.lines.start(line), rng.choice(TYPED))
            case "ask":
                question = self.ask(self.document.view(self.offset), explicit=rng.random() < 0.1)
                self.asked.append(asyncio.create_task(question))
                if rng.random() < 0.6:
                    await asyncio.wait(self.asked[-1:], timeout=5)
            case "cancel" if self.asked:
                rng.choice(self.asked).cancel()
            case "rest":
                self.session.rest(self.document.view(self.offset))
            case _:
                await asyncio.sleep(rng.choice([0.0, 0.02, 0.1, 0.4]))

    async def ask(self, view: View, *, explicit: bool) -> None:
        suggestions = await self.session.suggest(view, explicit=explicit)
        self.answers += 1
        for suggestion in suggestions.best_first:
            self.checked += 1
            if self.document.data != view.data:
                self.stale.append("for a text that is gone")
            elif not any(_wrote(origin, raws, view, suggestion.text) for origin, raws in self.worker.written):
                self.stale.append("nothing that was written for this place")
            self.shown = suggestion.text


def _wrote(origin: View, raws: dict[int, str], view: View, text: str) -> bool:
    """Whether `text` at `view` goes on with what was written at `origin`, blanks aside: rules may change those."""
    if view.data[: origin.offset] != origin.data[: origin.offset] or view.offset < origin.offset:
        return False
    said = "".join((decode(view.data[origin.offset : view.offset]) + text).split())
    return any("".join(raw.split()).startswith(said) for raw in raws.values())


async def interleaving(
    worker: Heard, settings: Settings, files: list[str], rng: random.Random, total: Counts
) -> Client:
    store = DocumentStore(rng.choice(get_args(Encoding)))
    text = rng.choice(files)[:6000]
    lines = text.split("\n")
    document = store.open(types.TextDocumentItem(URI, "python", 1, "\n".join(lines[:-1])))
    start = rng.randrange(5, len(document.lines))
    session = Session(worker, settings, total)
    worker.written = []
    client = Client(worker, session, store, rng, document, document.lines.start(start) - 1)
    for _ in range(rng.randrange(8, 25)):
        await client.act()
    await asyncio.gather(*client.asked, return_exceptions=True)
    session.closed(document.uri)
    return client


async def run(model: str, interleavings: int, seconds: float, seed: int) -> dict[str, Any]:
    settings = Settings.model_validate(
        {"model": {"name": model}, "suggest": {"debounce_ms": 0, "max_tokens": 16, "prefix_tokens": 256}}
    )
    ready = asyncio.Event()
    worker = Heard(settings.engine_options(), lambda status: ready.set() if status.state == "ready" else None)
    worker.start()
    await ready.wait()
    files, rng, total = texts(), random.Random(seed), Counts()
    until, done = time.monotonic() + seconds, 0
    answers = checked = 0
    stale: list[str] = []
    while done < interleavings and time.monotonic() < until:
        client = await interleaving(worker, settings, files, rng, total)
        unheard = [task for task in client.asked if not task.done()]
        failed = [task for task in client.asked if task.done() and not task.cancelled() and task.exception()]
        done, answers, checked = done + 1, answers + client.answers, checked + client.checked
        stale += client.stale + ["a question without an answer"] * len(unheard) + [repr(t.exception()) for t in failed]
    await worker.stop()
    return {
        "model": model,
        "interleavings": done,
        "answers": answers,
        "items_checked": checked,
        "wrong": len(stale),
        "what": sorted(set(stale)),
        "from_cache": total.from_cache,
        "adopted": total.adopted,
        "generated": total.generated,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--interleavings", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    load = os.getloadavg()
    result = asyncio.run(run(arguments.model, arguments.interleavings, arguments.seconds, arguments.seed))
    text = json.dumps({**result, "load_before": load, "commit": commit()}, indent=1)
    print(text)
    if arguments.out:
        arguments.out.write_text(text)


if __name__ == "__main__":
    main()
