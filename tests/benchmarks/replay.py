"""Types regions of real files into the real server as a person would, and says how fast and how thrifty it was.

    python -m tests.benchmarks.replay --model NAME --seconds 100 [--no-prefetch] [--no-adopt] [--no-closers] \\
        [--out FILE.json] [--plot FILE.html]

Files come from the fresh_fim data set. Brackets and quotes are closed as VS Code does it. Each request's latency is
from sending it (50 ms after the key, as VS Code does) to its answer; a request that a later key cancels has none.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from tests.benchmarks.replay_client import URI, ReplayClient, Reply
from tests.benchmarks.replay_plot import add_arguments, keep
from tests.benchmarks.replay_typing import Region, Typist, regions

DEBOUNCE = 0.05
CLOSERS = {"(": ")", "[": "]", "{": "}", '"': '"', "'": "'"}
BEFORE_CLOSERS = " \n\t)]}:;,.=>"
"""What may stand behind the cursor where VS Code adds a closer."""
WITHOUT_ADOPTION = (
    "import functools, sys, lsp_server.writing as w, lsp_server.session as s, lsp_server.server as r; "
    "s.Linger = functools.partial(w.Linger, cancelled=0.0, agreed=0.0); sys.exit(r.serve_stdio())"
)
"""A server in which a cancel and an edit end whatever is being written."""
ROOT = Path(__file__).parents[2]
SPEEDS = (40, 60, 75, 90)


@dataclass(slots=True)
class Sample:
    """One request."""

    kind: str
    """"first" in its document, "accepted" right after accepting, else "typing"."""
    source: str | None
    latency_ms: float | None
    prefilled: int
    shown: int
    lines: int = 0
    """Of what was shown."""


@dataclass
class Replay:
    """One person at one editor."""

    client: ReplayClient
    typist: Typist
    text: str = ""
    cursor: int = 0
    samples: list[Sample] = field(default_factory=list)
    pings: list[float] = field(default_factory=list)
    accepted: int = 0
    keys: int = 0
    closers: bool = True

    def place(self, offset: int) -> tuple[int, int]:
        line = self.text.count("\n", 0, offset)
        return line, offset - (self.text.rfind("\n", 0, offset) + 1)

    def put(self, start: int, end: int, text: str) -> None:
        self.client.edit(self.place(start), self.place(end), text)
        self.text = self.text[:start] + text + self.text[end:]
        self.cursor = start + len(text)

    def key(self, text: str) -> None:
        """A key is pressed: "" takes back the character before the cursor."""
        self.keys += 1
        before, after = self.text[self.cursor - 1 : self.cursor], self.text[self.cursor : self.cursor + 1]
        if not text:
            self.put(self.cursor - 1, self.cursor, "")
        elif not self.closers:
            self.put(self.cursor, self.cursor, text)
        elif text in CLOSERS.values() and text == after:
            self.put(self.cursor, self.cursor + 1, text)
        elif text in CLOSERS and (not after or after in BEFORE_CLOSERS) and not (text in "\"'" and before.isalnum()):
            self.put(self.cursor, self.cursor, text + CLOSERS[text])
            self.cursor -= 1
        else:
            self.put(self.cursor, self.cursor, text)

    async def region(self, region: Region, until: float) -> None:
        """Types a region; accepts what is suggested if it is what was to be typed."""
        self.text, self.cursor = region.before + region.after, len(region.before)
        self.client.open(self.text)
        item = await self.ask("first", 5.0)
        left = region.target
        while left and time.monotonic() < until:
            if item and (taken := self.fits(item, left)) and self.typist.rng.random() < 0.7:
                await asyncio.sleep(self.typist.rng.uniform(0.25, 0.6))
                left = left[taken:]
                await self.accept(item)
                item = await self.ask("accepted", 0.6)
                continue
            for key in self.typist.keys(left, self.text[: self.cursor]):
                await asyncio.sleep(max(0.0, key.pause - DEBOUNCE))
                self.key(key.text)
                await asyncio.sleep(DEBOUNCE)
                item = await self.ask("typing", self.typist.pause(self.text[: self.cursor]))
            left = left[1:] if not left.startswith("\n") else left[1 + len(left[1:]) - len(left[1:].lstrip(" ")) :]
        self.client.close()

    async def ask(self, kind: str, patience: float) -> dict[str, Any] | None:
        """A request, cancelled by the next key if that comes first."""
        sent = time.perf_counter()
        number, answer = self.client.complete(self.place(self.cursor))
        done, _ = await asyncio.wait([answer], timeout=patience)
        if not done:
            self.client.cancel(number)
            self.samples.append(Sample(kind, None, None, 0, 0))
            return None
        reply: Reply = answer.result()
        items = reply.result or []
        argument = items[0]["command"]["arguments"][0] if items else {}
        latency = 1000 * (reply.at - sent)
        shown = len(items[0]["insertText"]) if items else 0
        source = argument.get("source")
        lines = items[0]["insertText"].count("\n") + 1 if items else 0
        self.samples.append(Sample(kind, source, latency, argument.get("prefilled", 0), shown, lines))
        return items[0] if items else None

    def fits(self, item: dict[str, Any], left: str) -> int:
        """How many characters of what is to be typed the suggestion has; 0 if it is too little or wrong."""
        text = item["insertText"]
        return len(text) if len(text) >= 4 and left.startswith(text) else 0

    async def accept(self, item: dict[str, Any]) -> None:
        end = item["range"]["end"]["character"] - item["range"]["start"]["character"]
        self.put(self.cursor, self.cursor + end, item["insertText"])
        self.accepted += 1
        await self.client.command(item["command"]["command"], item["command"]["arguments"][0])

    async def ping(self) -> None:
        """How long the event loop takes for a question that needs no model, all the time."""
        while True:
            sent = time.perf_counter()
            reply = await self.client.command("draftwood.stats", {"brief": True})
            self.pings.append(1000 * (reply.at - sent))
            await asyncio.sleep(0.037)


async def cpu_when_unwanted(client: ReplayClient, rounds: int = 8) -> dict[str, float]:
    """Share of one core that server and worker use from 100 to 600 ms after a contradiction, and after a close."""
    server = psutil.Process(client.process.pid)
    processes = [server, *server.children(recursive=True)]
    shares: dict[str, list[float]] = {"contradicted": [], "closed": []}
    text = "import math\n\n\n" + "def area(r):\n    return math.pi * r\n\n\n" * 60 + "def volume(r):\n    "
    for index in range(rounds):
        uri = f"{URI}{index}"
        client.open(text, uri)
        line = text.count("\n")
        client.complete((line, 4), uri, kind=1)
        await asyncio.sleep(0.05 + 0.05 * (index % 4))
        what = "contradicted" if index % 2 else "closed"
        if what == "closed":
            client.close(uri)
        else:
            client.edit((0, 0), (0, 6), "export", uri)
        await asyncio.sleep(0.1)
        before = sum(sum(process.cpu_times()[:2]) for process in processes)
        await asyncio.sleep(0.5)
        shares[what].append((sum(sum(process.cpu_times()[:2]) for process in processes) - before) / 0.5)
        client.close(uri)
    return {what: round(100 * statistics.mean(values), 2) for what, values in shares.items()}


def quantile(values: Iterable[float], share: float) -> float | None:
    ordered = sorted(values)
    return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 2) if ordered else None


def summary(replay: Replay) -> dict[str, Any]:
    """The figures of a run."""
    answered = [sample for sample in replay.samples if sample.latency_ms is not None]
    rows: dict[str, Any] = {}
    groups = {
        "hits (kept)": [s for s in answered if s.source == "kept"],
        "adopted": [s for s in answered if s.source == "adopted" and s.kind == "typing"],
        "after accepting": [s for s in answered if s.kind == "accepted"],
        "warm, new, one line": [s for s in answered if s.kind == "typing" and s.source == "new" and s.lines == 1],
        "warm, new, several lines": [s for s in answered if s.kind == "typing" and s.source == "new" and s.lines > 1],
        "first in a document": [s for s in answered if s.kind == "first" and s.shown],
        "typing, all answered": [s for s in answered if s.kind == "typing"],
    }
    for name, samples in groups.items():
        times = [sample.latency_ms or 0.0 for sample in samples]
        rows[name] = {"n": len(times), "p50_ms": quantile(times, 0.5), "p95_ms": quantile(times, 0.95)}
    return {
        "latency": rows,
        "keys": replay.keys,
        "requests": len(replay.samples),
        "answered": len(answered),
        "accepted": replay.accepted,
        "ping_p50_ms": quantile(replay.pings, 0.5),
        "ping_p99_ms": quantile(replay.pings, 0.99),
    }


def commit() -> str:
    """Which commit of the project this is."""
    asked = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()


def texts() -> list[str]:
    folder = Path(os.environ.get("DRAFTWOOD_DATA", ROOT.parent / "shared" / "data")) / "fresh_fim"
    file = folder / "files_dev.jsonl.gz"
    if not file.is_file():
        sys.exit("fresh_fim is not there: set DRAFTWOOD_DATA to the folder of the data sets")
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        return [json.loads(line)["text"] for line in lines]


async def run(
    model: str, seconds: float, seed: int, *, prefetch: bool, adopt: bool, closers: bool
) -> tuple[dict[str, Any], list[Sample]]:
    rng = random.Random(seed)
    command = None if adopt else [sys.executable, "-c", WITHOUT_ADOPTION]
    client = await ReplayClient.start({"model": {"name": model}, "suggest": {"prefetch": prefetch}}, command)
    until = time.monotonic() + seconds
    replay = Replay(client, Typist(SPEEDS[0], rng), closers=closers)
    pinging = asyncio.create_task(replay.ping())
    chosen = regions(texts(), 40, rng)
    for index, region in enumerate(chosen):
        if time.monotonic() >= until:
            break
        replay.typist = Typist(SPEEDS[index % len(SPEEDS)], rng)
        await replay.region(region, min(until, time.monotonic() + seconds / 8))
    pinging.cancel()
    result = summary(replay)
    result["cpu_percent_after_100_ms"] = await cpu_when_unwanted(client)
    result["server"] = server = (await client.command("draftwood.stats")).result
    result["share_without_prefill_beyond_16"] = round(server["answered_unread"] / max(1, server["answered"]), 3)
    await client.stop()
    return result, replay.samples


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add_arguments(parser, seconds=100)
    parser.add_argument("--no-prefetch", action="store_true", help="A/B: nothing is computed ahead")
    parser.add_argument("--no-adopt", action="store_true", help="A/B: each edit ends what is being written")
    parser.add_argument("--no-closers", action="store_true", help="the editor closes no brackets")
    arguments = parser.parse_args()
    load = os.getloadavg()
    how = {
        "prefetch": not arguments.no_prefetch,
        "adopt": not arguments.no_adopt,
        "closers": not arguments.no_closers,
    }
    result, samples = asyncio.run(run(arguments.model, arguments.seconds, arguments.seed, **how))
    about = {"model": arguments.model, "seed": arguments.seed, **how, "load_before": load}
    keep({**about, "commit": commit(), **result}, samples, arguments)


if __name__ == "__main__":
    main()
