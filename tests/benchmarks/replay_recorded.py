"""Replays what people really typed, as it was recorded, through the real server, and says how fast it kept up.

    python -m tests.benchmarks.replay_recorded [--model NAME] [--seconds 60] [--out FILE.json] [--plot FILE.html]

The recordings are those of the data sets editing_traces (code points, to the second) and vscode_edit_recordings
(UTF-16, to the millisecond, with selections). Edits are sent when they were made, pauses longer than a second cut
short; a suggestion is asked for 50 ms after an edit and cancelled by the next, as VS Code does. First the whole trace
is sent as fast as the server takes it.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import os
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from tests.benchmarks.replay import DEBOUNCE, ROOT, Sample, commit, quantile
from tests.benchmarks.replay_client import ReplayClient, position
from tests.benchmarks.replay_plot import add_arguments, keep

LONGEST_PAUSE = 1.0
DATA = Path(os.environ.get("DRAFTWOOD_DATA", ROOT.parent / "shared" / "data"))
LANGUAGES = {".ts": "typescript", ".java": "java", ".h": "cpp", ".cpp": "cpp", ".ipynb": "python", ".svelte": "svelte"}
Encoding = Literal["utf-16", "utf-32"]


@dataclass(frozen=True, slots=True)
class Step:
    """After `pause` seconds, in document `uri`: it is opened with `text`, edits are made, or the cursor is put."""

    pause: float
    uri: str
    text: str | None = None
    edits: tuple[tuple[int, int, str], ...] = ()
    cursor: int | None = None


class Text:
    """A text in the units of an encoding, and where its lines begin."""

    def __init__(self, text: str, encoding: Encoding) -> None:
        self._codec, self._width = ("utf-16-le", 2) if encoding == "utf-16" else ("utf-32-le", 4)
        self.units = text.encode(self._codec, "surrogatepass")

    def place(self, offset: int) -> tuple[int, int]:
        head = self.units[: offset * self._width].decode(self._codec, "surrogatepass")
        lines = head.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        return len(lines) - 1, len(lines[-1].encode(self._codec, "surrogatepass")) // self._width

    def replace(self, start: int, end: int, text: str) -> None:
        inserted = text.encode(self._codec, "surrogatepass")
        self.units = self.units[: start * self._width] + inserted + self.units[end * self._width :]

    def length(self, text: str) -> int:
        return len(text.encode(self._codec, "surrogatepass")) // self._width


@dataclass
class Recorded:
    """One editor that does what was recorded."""

    client: ReplayClient
    encoding: Encoding
    texts: dict[str, Text] = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)
    edits: list[float] = field(default_factory=list)
    stale: int = 0
    asked: asyncio.Task[None] | None = None

    async def follow(self, steps: Iterator[Step], until: float) -> None:
        for step in steps:
            if time.monotonic() >= until:
                break
            await asyncio.sleep(step.pause)
            if step.text is not None:
                self.texts[step.uri] = Text(step.text, self.encoding)
                self.client.open(step.text, step.uri, LANGUAGES.get(Path(step.uri).suffix, "plaintext"))
            elif step.edits:
                self.edit(step)
            elif step.cursor is not None:
                self.client.rest(self.texts[step.uri].place(step.cursor), step.uri)

    def edit(self, step: Step) -> None:
        text, cursor = self.texts[step.uri], 0
        for start, end, inserted in step.edits:
            self.client.edit(text.place(start), text.place(end), inserted, step.uri)
            text.replace(start, end, inserted)
            cursor = start + text.length(inserted)
        if self.asked is not None:
            self.asked.cancel()
        self.asked = asyncio.create_task(self.ask(step.uri, cursor))

    async def ask(self, uri: str, cursor: int) -> None:
        """A request, unless the next edit comes first."""
        sent = time.perf_counter()
        reply = await self.client.command("draftwood.stats", {"brief": True})  # answered after the edit was taken
        self.edits.append(1000 * (reply.at - sent))
        await asyncio.sleep(max(0.0, DEBOUNCE - reply.at + sent))
        sent, at = time.perf_counter(), self.texts[uri].place(cursor)
        number, answer = self.client.complete(at, uri)
        try:
            answered = await asyncio.shield(answer)
        except asyncio.CancelledError:
            self.client.cancel(number)
            self.samples.append(Sample("typing", None, None, 0, 0))
            raise
        items = answered.result or []
        argument = items[0]["command"]["arguments"][0] if items else {}
        self.stale += any(item["range"]["start"] != position(at) for item in items)
        shown = len(items[0]["insertText"]) if items else 0
        latency = 1000 * (answered.at - sent)
        self.samples.append(Sample("typing", argument.get("source"), latency, argument.get("prefilled", 0), shown))


def trace() -> dict[str, Any]:
    with gzip.open(DATA / "editing_traces" / "dev_sveltecomponent.json.gz", "rt", encoding="utf-8") as file:
        data: dict[str, Any] = json.load(file)
    return data


def traced(data: dict[str, Any], first: int, count: int) -> Iterator[Step]:
    """`count` transactions from the `first`; those of one second are spread over it."""
    uri = "file:///App.svelte"
    text = Text(data["startContent"], "utf-32")
    for transaction in data["txns"][:first]:
        for start, deleted, inserted in transaction["patches"]:
            text.replace(start, start + deleted, inserted)
    yield Step(0.0, uri, text.units.decode("utf-32-le"))
    chosen = data["txns"][first : first + count]
    times = [datetime.fromisoformat(transaction["time"].replace("Z", "+00:00")).timestamp() for transaction in chosen]
    before = times[0]
    for transaction, at in zip(chosen, times, strict=True):
        pause = at - before if at > before else 1 / times.count(at)
        before = at
        edits = tuple((start, start + deleted, inserted) for start, deleted, inserted in transaction["patches"])
        yield Step(min(LONGEST_PAUSE, pause), uri, edits=edits)


def recordings() -> Iterator[Iterator[Step]]:
    with gzip.open(DATA / "vscode_edit_recordings" / "dev.jsonl.gz", "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            yield recorded(json.loads(line)["recording"]["log"], f"file:///{number}/")


def recorded(log: list[dict[str, Any]], root: str) -> Iterator[Step]:
    names: dict[int, str] = {}
    before: float | None = None
    for entry in log:
        identity, at = entry.get("id"), entry.get("time")
        if entry["kind"] == "documentEncountered":
            names[entry["id"]] = root + entry["relativePath"].replace("\\", "/")
        if identity is None or at is None or entry["kind"] not in ("setContent", "changed", "selectionChanged"):
            continue
        pause = min(LONGEST_PAUSE, max(0.0, (at - before) / 1000)) if before is not None else 0.0
        before = at
        if entry["kind"] == "setContent":
            yield Step(pause, names[identity], entry["content"])
        elif entry["kind"] == "changed":
            # Offsets are those before the event: the last edit first keeps them right.
            yield Step(pause, names[identity], edits=tuple((a, b, text) for a, b, text in sorted(entry["edit"])[::-1]))
        elif entry["selection"]:
            yield Step(pause, names[identity], cursor=entry["selection"][0][0])


async def flood(client: ReplayClient, data: dict[str, Any]) -> dict[str, float]:
    """Every transaction of the trace, as fast as the server takes them."""
    text, uri = Text(data["startContent"], "utf-32"), "file:///flood.svelte"
    client.open(data["startContent"], uri, "svelte")
    places = []
    for transaction in data["txns"]:
        for start, deleted, inserted in transaction["patches"]:
            places.append((text.place(start), text.place(start + deleted), inserted))
            text.replace(start, start + deleted, inserted)
    began = time.perf_counter()
    for start_, end_, inserted in places:
        client.edit(start_, end_, inserted, uri)
        await client.process.stdin.drain()  # type: ignore[union-attr]
    await client.command("draftwood.stats", {"brief": True})
    seconds = time.perf_counter() - began
    client.close(uri)
    return {"edits": len(places), "seconds": round(seconds, 2), "microseconds_each": round(1e6 * seconds / len(places))}


async def run(model: str, seconds: float, seed: int) -> tuple[dict[str, Any], list[Sample]]:
    settings = {"model": {"name": model}}
    data, rng = trace(), random.Random(seed)
    client = await ReplayClient.start(settings)
    flooded = await flood(client, data)
    person = Recorded(client, "utf-32")
    for _ in range(3):
        first = rng.randrange(200, len(data["txns"]) - 400)
        await person.follow(traced(data, first, 400), time.monotonic() + seconds / 6)
    await client.stop()
    client = await ReplayClient.start(settings, encoding="utf-16")
    other = Recorded(client, "utf-16")
    until = time.monotonic() + seconds / 2
    for steps in recordings():
        await other.follow(steps, until)
        await asyncio.sleep(0.5)
    await client.stop()
    rows = {name: row(each) for name, each in (("editing_traces", person), ("vscode_edit_recordings", other))}
    return {"all edits at once": flooded, **rows}, person.samples + other.samples


def row(person: Recorded) -> dict[str, Any]:
    times = [sample.latency_ms for sample in person.samples if sample.latency_ms is not None]
    kept = [s.latency_ms for s in person.samples if s.latency_ms is not None and s.source == "kept"]
    return {
        "edits": len(person.edits),
        "edit_p50_ms": quantile(person.edits, 0.5),
        "edit_p99_ms": quantile(person.edits, 0.99),
        "answered": len(times),
        "answer_p50_ms": quantile(times, 0.5),
        "answer_p95_ms": quantile(times, 0.95),
        "from_memory_p95_ms": quantile(kept, 0.95),
        "shown": sum(sample.shown > 0 for sample in person.samples),
        "stale": person.stale,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add_arguments(parser, seconds=60)
    arguments = parser.parse_args()
    load = os.getloadavg()
    result, samples = asyncio.run(run(arguments.model, arguments.seconds, arguments.seed))
    about = {"model": arguments.model, "commit": commit(), "load_before": load}
    keep({**about, **result}, samples, arguments)


if __name__ == "__main__":
    main()
