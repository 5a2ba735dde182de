"""What the native runtime costs and how exact it is, beside other runtimes of the same weights.

    python -m tests.benchmarks.native_runtime [--model NAME] [--threads 2] [--repeats 7] [--no-peers] [--quality]
        [--json FILE]

Ours and the peers are interleaved: every repeat measures each of them once, so that a change of the machine's load
or memory speed meets all alike. A figure is the median of the repeats with its 95% bootstrap interval. Streaming
the weights' bytes once is measured by read_bandwidth.cpp in the same loop. Peers are those of `draftwood bench`;
one that is not installed is named with the reason.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from decoding.benchmark.peers import KINDS, Peer, PeerAbsent
from decoding.benchmark.workloads import Case
from decoding.draft_tree import DraftTree
from decoding.models.native_model import NativeModel, physical_cores
from decoding.models.provision import ensure_model, ensure_safetensors
from tests.benchmarks.native_quality import Quality, compare_with_float32, text_ids

NEW_TOKENS = 64
PROMPT, PREFILL, CONTEXT, LONG_CONTEXT = 97, 512, 500, 8000
ROWS = (1, 2, 4, 8, 12, 16, 32)
PLAIN_PEERS = (
    "transformers plain (bf16)",
    "llama.cpp plain (Q4_K_M)",
    "OpenVINO GenAI plain (Q8_0)",
    "CTranslate2 (int8)",
)


@dataclass(frozen=True, slots=True)
class Figure:
    """Median and 95% bootstrap interval of the repeats."""

    median: float
    low: float
    high: float
    repeats: int

    @classmethod
    def of(cls, samples: list[float]) -> Figure:
        chance = random.Random(len(samples))
        medians = sorted(statistics.median(chance.choices(samples, k=len(samples))) for _ in range(1000))
        return cls(statistics.median(samples), medians[25], medians[974], len(samples))

    def __str__(self) -> str:
        return f"{self.median:8.2f}  [{self.low:.2f}, {self.high:.2f}]"


def binary_tree(nodes: int, chance: random.Random) -> DraftTree:
    """A tree of random tokens whose nodes have two children each."""
    tokens = [chance.randrange(100, 20_000) for _ in range(nodes)]
    return DraftTree.from_lists(tokens, [(node + 1) // 2 - 1 for node in range(nodes)], [0.0] * nodes)


def milliseconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return 1e3 * (time.perf_counter() - start)


class Ours:
    """The native runtime, one figure at a time."""

    def __init__(self, model: NativeModel, ids: list[int]) -> None:
        self.model, self.ids = model, ids
        self.chance = random.Random(7)
        self.decoding = model.new_cache(PROMPT + NEW_TOKENS + 1)
        self.short = model.new_cache(PREFILL + 64)
        self.long = model.new_cache(LONG_CONTEXT + 64)
        self._fill(self.long, LONG_CONTEXT)
        self._fill(self.short, CONTEXT)

    def _fill(self, cache: object, count: int) -> None:
        cache.truncate(0)
        self.model.prefill(self.ids[:count], cache, lambda: False)

    def decode(self) -> float:
        """Milliseconds a token, one at a time after a prompt of 97 tokens."""
        self._fill(self.decoding, PROMPT - 1)
        root = self.ids[PROMPT - 1]

        def run() -> None:
            nonlocal root
            for _ in range(NEW_TOKENS):
                root = int(self.model.forward_tree(root, DraftTree.empty(), self.decoding).top_ids[0, 0])
                self.decoding.keep([0])

        return milliseconds(run) / NEW_TOKENS

    def prefill(self) -> float:
        """Milliseconds of 512 tokens and the first token's scores."""
        cache = self.model.new_cache(PREFILL + 1)

        def run() -> None:
            self.model.prefill(self.ids[: PREFILL - 1], cache, lambda: False)
            self.model.forward_tree(self.ids[PREFILL - 1], DraftTree.empty(), cache)

        return milliseconds(run)

    def passes(self, rows: int, long: bool = False) -> float:
        """Milliseconds of one pass over a tree: the median of five in a row."""
        tree, cache = binary_tree(rows - 1, self.chance), self.long if long else self.short
        times = [milliseconds(lambda: self.model.forward_tree(11, tree, cache)) for _ in range(6)]
        return statistics.median(times[1:])


def start_peers(folder: object, threads: int) -> tuple[list[Peer], dict[str, str]]:
    """The plain peers that are installed, and why the others are absent."""
    peers, absent = [], {}
    for kind in KINDS:
        if kind.name not in PLAIN_PEERS:
            continue
        try:
            peers.append(Peer(kind, folder, threads))
        except PeerAbsent as reason:
            absent[kind.name] = str(reason)
    return peers, absent


def build_reader(folder: Path) -> Path | None:
    """The compiled memory reader; None without a compiler."""
    source, target = Path(__file__).with_name("read_bandwidth.cpp"), folder / "read_bandwidth"
    command = ["g++", "-O3", "-march=native", "-pthread", str(source), "-o", str(target)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return target


def measure(ours: Ours, peers: list[Peer], reader: Path | None, threads: int, repeats: int) -> dict[str, list[float]]:
    """Every sample of every figure, in milliseconds (memory: GB/s)."""
    samples: dict[str, list[float]] = {}

    def add(name: str, value: float) -> None:
        samples.setdefault(name, []).append(value)

    decode_case = Case("decode", "native", tuple(ours.ids[:PROMPT]), NEW_TOKENS)
    prefill_case = Case("prefill", "native", tuple(ours.ids[:PREFILL]), 2)
    for _ in range(repeats):
        add("decode ms/token", ours.decode())
        for rows in ROWS:
            add(f"T({rows})", ours.passes(rows))
        add("T(1) at 8000", ours.passes(1, long=True))
        add("T(8) at 8000", ours.passes(8, long=True))
        add("prefill 512", ours.prefill())
        if reader:
            out = subprocess.run([str(reader), str(threads), "400"], capture_output=True, text=True, check=True)
            add("memory GB/s", max(float(line) for line in out.stdout.split()))
        for peer in peers:
            run = peer.run(decode_case, NEW_TOKENS)
            add(f"decode ms/token: {peer.name}", run.decode_ms / max(1, len(run.token_ids)))
            add(f"prefill 512: {peer.name}", peer.run(prefill_case, 2).prefill_ms)
    return samples


def ratios(samples: dict[str, list[float]], weight_bytes: int) -> dict[str, Figure]:
    """The figures that have a bar; each is made of samples of the same repeat."""

    def ratio(above: str, below: str) -> Figure:
        return Figure.of([a / b for a, b in zip(samples[above], samples[below], strict=True)])

    found = {
        "R(8) at 500": ratio("T(8)", "T(1)"),
        "R(16) at 500": ratio("T(16)", "T(1)"),
        "ms a token at 8000 over at 500": ratio("T(1) at 8000", "T(1)"),
    }
    if "memory GB/s" in samples:
        streamed = [weight_bytes / speed / 1e6 for speed in samples["memory GB/s"]]
        found["T(1) over streaming the weights once"] = Figure.of(
            [whole / once for whole, once in zip(samples["T(1)"], streamed, strict=True)]
        )
    for name in samples:
        if ": " in name:
            figure, peer = name.split(": ")
            found[f"{figure.split(' ms')[0]} vs {peer}"] = ratio(name, figure)
    return found


def print_table(figures: dict[str, Figure], absent: dict[str, str], quality: Quality | None) -> None:
    for name, figure in figures.items():
        print(f"{name:48} {figure}")
    for name, reason in absent.items():
        print(f"{name:48} absent: {reason}")
    if quality:
        print(f"KL to float32 {quality.divergence:.5f} nats over {quality.tokens} tokens")
        print(f"top-1 agreement {quality.agreement:.4f}")


def commit() -> str:
    command = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="qwen2.5-coder-0.5b")
    parser.add_argument("--threads", type=int, default=physical_cores())
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--quality", action="store_true", help="also compare with float32 (minutes, 3 GB)")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    folder = ensure_model(options.model)
    model = NativeModel.load(folder.path, threads=options.threads)
    peers: list[Peer] = []
    absent: dict[str, str] = {}
    if not options.no_peers:
        ensure_safetensors(folder)
        peers, absent = start_peers(folder, options.threads)
    load_before = os.getloadavg()[0]
    ids = text_ids(folder.tokenizer_file, LONG_CONTEXT + 64)
    with tempfile.TemporaryDirectory() as scratch:
        reader = build_reader(Path(scratch))
        samples = measure(Ours(model, ids), peers, reader, options.threads, options.repeats)
    for peer in peers:
        peer.close()
    figures = {name: Figure.of(values) for name, values in samples.items()}
    figures |= ratios(samples, model.architecture.linear_weights)
    quality = compare_with_float32(model, folder.path) if options.quality else None
    print(f"{options.model}, {model.runtime}, {options.threads} threads, load {load_before:.1f}")
    print_table(figures, absent, quality)
    if options.json:
        report = {
            "model": options.model,
            "runtime": model.runtime,
            "threads": options.threads,
            "processor": platform.processor() or platform.machine(),
            "load": load_before,
            "commit": commit(),
            "peers": {peer.name: peer.version for peer in peers},
            "absent": absent,
            "figures": {name: asdict(figure) for name, figure in figures.items()},
            "quality": asdict(quality) if quality else None,
        }
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
