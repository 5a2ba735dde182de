"""A long day at the editor: thousands of requests, and what is left of memory, processes and unanswered questions.

    python -m tests.benchmarks.soak [--model NAME] [--requests 20000] [--minutes 25] [--per-document 500]
        [--out FILE.json]

Without a model the stub answers, and what is watched is the server. Requests are spread evenly over the minutes;
documents come and go, a third of the requests are cancelled. Memory is judged by a line through the samples after
minute 10, when every cache is full: what is resident, and what of that is private, without the pages of mapped files
(the embeddings of tokens that were met), which the system takes back when it needs them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from tests.benchmarks.replay import commit
from tests.benchmarks.replay_client import URI, ReplayClient, Reply
from tests.benchmarks.replay_server import COMMAND, ROOT, SETTINGS

WARM_UP_S = 600.0
"""Memory that grows before is caches being filled."""
PATIENCE_S = 60
"""Counted in waits of a second: whoever is stopped together with the server finds hours gone."""
BODY = "def total(values):\n    return sum(values)\n\n" * 50 + "result = "
TYPED = "abcdeilmnorst_.( =+1"


@dataclass
class Memory:
    """Resident bytes of the server and of its worker over time."""

    server: psutil.Process
    samples: list[tuple[float, dict[str, int]]] = field(default_factory=list)
    workers: set[int] = field(default_factory=set)
    """Every worker that was seen: more than one if it had to be started again."""
    began: float = field(default_factory=time.monotonic)

    def sample(self) -> None:
        sizes = resident(self.server, "server")
        for worker in self.server.children():
            self.workers.add(worker.pid)
            sizes |= resident(worker, "worker")
        self.samples.append((time.monotonic() - self.began, sizes))

    def slope(self, name: str) -> float | None:
        """Growth in percent of its size an hour, by least squares; None where it did not run long enough."""
        points = [(at, sizes[name]) for at, sizes in self.samples if at >= WARM_UP_S and name in sizes]
        if len(points) < 10 or points[-1][0] - points[0][0] < 120:
            return None
        middle = sum(at for at, _ in points) / len(points)
        size = sum(rss for _, rss in points) / len(points)
        rise = sum((at - middle) * (rss - size) for at, rss in points) / sum((at - middle) ** 2 for at, _ in points)
        return round(100 * 3600 * rise / size, 3)


def resident(process: psutil.Process, name: str) -> dict[str, int]:
    """Resident bytes, and those of them that are not pages of files, where the system tells them apart."""
    memory = process.memory_info()
    return {name: memory.rss, f"{name}, private": memory.rss - getattr(memory, "shared", 0)}


async def soak(
    client: ReplayClient, requests: int, minutes: float, per_document: int, rng: random.Random, memory: Memory
) -> tuple[int, int]:
    """Types, asks, cancels, opens and closes; how many requests there was time for, and how many had no answer."""
    pause = 60 * minutes / requests
    asked = unanswered = 0
    column = 0
    lines = BODY.count("\n")
    for number in range(requests):
        uri = f"{URI}{number // per_document}"
        if number % per_document == 0:
            client.close(f"{URI}{number // per_document - 1}")
            client.open(BODY, uri)
            column = len("result = ")
        due = memory.began + number * pause
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        if time.monotonic() - memory.began > 60 * minutes:
            break
        line = (lines, column)
        if column > 60:
            client.edit((lines, len("result = ")), line, "", uri)
            column = len("result = ")
        else:
            typed = rng.choice(TYPED)
            client.edit(line, line, typed, uri)
            column += 1
        identity, answer = client.complete((lines, column), uri)
        if rng.random() < 0.3:
            client.cancel(identity)
        asked += 1
        unanswered += not await is_answered(answer)
        if memory.began + 5 * len(memory.samples) <= time.monotonic():
            memory.sample()
    return asked, unanswered


async def is_answered(answer: asyncio.Future[Reply]) -> bool:
    for _ in range(PATIENCE_S):
        if (await asyncio.wait([answer], timeout=1))[0]:
            return True
    return False


async def run(model: str | None, requests: int, minutes: float, per_document: int) -> dict[str, Any]:
    os.environ["PYTHONPATH"] = str(ROOT)
    load = os.getloadavg()
    client = (
        await ReplayClient.start(SETTINGS, COMMAND)
        if model is None
        else await ReplayClient.start({"model": {"name": model}})
    )
    server = psutil.Process(client.process.pid)
    memory = Memory(server)
    asked, unanswered = await soak(client, requests, minutes, per_document, random.Random(1), memory)
    memory.sample()
    seconds = time.monotonic() - memory.began
    statistics = (await client.command("draftwood.stats")).result
    family = [server, *server.children(recursive=True)]
    await client.stop()
    return {
        "model": model or "stub",
        "requests": asked,
        "minutes": round(seconds / 60, 1),
        "unanswered": unanswered,
        "rss_mib": {name: round(size / 2**20, 1) for name, size in memory.samples[-1][1].items()},
        "rss_slope_percent_an_hour": {name: memory.slope(name) for name in memory.samples[-1][1]},
        "restarts": len(memory.workers) - 1,
        "processes": len(family),
        "processes_left": sum(process.is_running() for process in family),
        "server": {name: statistics[name] for name in ("shown", "from_cache", "adopted", "generated", "failed")},
        "load_before": load,
        "samples": [(round(at), *sizes.values()) for at, sizes in memory.samples],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", help="its name; without it the stub answers")
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--minutes", type=float, default=25)
    parser.add_argument("--per-document", type=int, default=500, help="requests until the next one is opened")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    result = asyncio.run(run(arguments.model, arguments.requests, arguments.minutes, arguments.per_document))
    result["commit"] = commit()
    print(json.dumps({name: value for name, value in result.items() if name != "samples"}, indent=1))
    if arguments.out:
        arguments.out.write_text(json.dumps(result))


if __name__ == "__main__":
    main()
