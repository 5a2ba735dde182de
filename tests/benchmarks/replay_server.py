"""What the server costs without a model: the stub answers at once, and what is left is the way there and back.

python -m tests.benchmarks.replay_server [--rounds 500] [--repeats 5] [--out FILE.json]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from tests.benchmarks.replay import commit, quantile
from tests.benchmarks.replay_client import URI, ReplayClient

ROOT = Path(__file__).parents[2]
STUB = "tests.lsp_server.stub:StubAssistant"
COMMAND = [sys.executable, "-c", f"import sys, lsp_server.server as s; sys.exit(s.serve_stdio({STUB!r}))"]
SIZES = {"small file": 20, "20,000 lines": 20_000}
SETTINGS = {"model": {"name": "stub"}, "suggest": {"prefetch": False, "debounceMs": 0, "maxTokens": 4}}


async def overhead(client: ReplayClient, lines: int, rounds: int) -> dict[str, float | None]:
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


async def run(rounds: int, repeats: int) -> dict[str, Any]:
    os.environ["PYTHONPATH"] = str(ROOT)
    found: dict[str, list[dict[str, float | None]]] = {name: [] for name in SIZES}
    result: dict[str, Any] = {"load_before": os.getloadavg(), "commit": commit(), "rounds": rounds, "repeats": repeats}
    for _ in range(repeats):
        client = await ReplayClient.start(SETTINGS, COMMAND)
        for name, lines in SIZES.items():
            found[name].append(await overhead(client, lines, rounds))
        await client.stop()
    for name, rows in found.items():
        result[name] = {key: statistics.median(row[key] or 0.0 for row in rows) for key in rows[0]}
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    text = json.dumps(asyncio.run(run(arguments.rounds, arguments.repeats)), indent=1)
    print(text)
    if arguments.out:
        arguments.out.write_text(text)


if __name__ == "__main__":
    main()
