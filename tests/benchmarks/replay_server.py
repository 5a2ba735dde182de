"""What the server costs without a model: overhead, a soak of 20,000 requests, and leaks. The stub answers at once.

python -m tests.benchmarks.replay_server [--requests 20000] [--out FILE.json]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import sys
import time
from pathlib import Path
from typing import Any

import psutil

from tests.benchmarks.replay import quantile
from tests.benchmarks.replay_client import URI, ReplayClient

ROOT = Path(__file__).parents[2]
STUB = "tests.lsp_server.stub:StubAssistant"
COMMAND = [sys.executable, "-c", f"import sys, lsp_server.server as s; sys.exit(s.serve_stdio({STUB!r}))"]
SETTINGS = {"model": {"name": "stub"}, "suggest": {"prefetch": False, "debounceMs": 0, "maxTokens": 4}}


async def overhead(client: ReplayClient, lines: int, rounds: int = 300) -> dict[str, float | None]:
    """Key to answer, the key never what was suggested: the whole way through document, session, worker and back."""
    body = "    value = compute(alpha, beta)  # a line of ordinary length\n" * lines
    uri = f"{URI}{lines}"
    client.open(body + "x = ", uri)
    column, times = 4, []
    for _ in range(rounds):
        sent = time.perf_counter()
        client.edit((lines, column), (lines, column), "Q", uri)
        column += 1
        _, answer = client.complete((lines, column), uri)
        times.append(1000 * ((await answer).at - sent))
    client.close(uri)
    return {"p50_ms": quantile(times, 0.5), "p95_ms": quantile(times, 0.95)}


async def soak(client: ReplayClient, requests: int, rng: random.Random) -> dict[str, Any]:
    """Edits, questions and cancels as fast as they are answered, over documents that come and go."""
    server = psutil.Process(client.process.pid)
    memory: list[tuple[float, int]] = []
    began = time.monotonic()
    unanswered = 0
    for number in range(requests):
        uri = f"{URI}{number // 500}"
        if number % 500 == 0:
            client.close(f"{URI}{number // 500 - 1}")
            client.open("def f(a):\n    return a\n\n" * 50 + "x = ", uri)
        line, column = 150, 4 + number % 500
        client.edit((line, column), (line, column), rng.choice("QZ"), uri)
        identity, answer = client.complete((line, column + 1), uri)
        if rng.random() < 0.3:
            client.cancel(identity)
        done, _ = await asyncio.wait([answer], timeout=10)
        unanswered += not done
        if number % 1000 == 0:
            memory.append((time.monotonic() - began, server.memory_info().rss))
    grown = memory[-1][1] - memory[len(memory) // 2][1]
    return {
        "requests": requests,
        "seconds": round(time.monotonic() - began, 1),
        "unanswered": unanswered,
        "rss_mib": round(memory[-1][1] / 2**20, 1),
        "rss_growth_in_second_half_percent": round(100 * grown / memory[len(memory) // 2][1], 2),
        "processes": 1 + len(server.children(recursive=True)),
    }


async def run(requests: int) -> dict[str, Any]:
    os.environ["PYTHONPATH"] = str(ROOT)
    client = await ReplayClient.start(SETTINGS, COMMAND)
    result: dict[str, Any] = {"load_before": os.getloadavg()}
    result["small file"] = await overhead(client, 20)
    result["20,000 lines"] = await overhead(client, 20_000)
    result["soak"] = await soak(client, requests, random.Random(1))
    worker = psutil.Process(client.process.pid).children()
    await client.stop()
    result["processes_left"] = sum(process.is_running() for process in worker)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    text = json.dumps(asyncio.run(run(arguments.requests)), indent=1)
    print(text)
    if arguments.out:
        arguments.out.write_text(text)


if __name__ == "__main__":
    main()
