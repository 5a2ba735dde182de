"""What a replay found, printed and kept: as JSON, and as one page without scripts with the latencies by kind.

Knows numbers, files and SVG.
"""

from __future__ import annotations

import argparse
import html
import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

WIDTH, HEIGHT, LEFT, TOP = 760, 360, 50, 20
FASTEST, SLOWEST = 0.3, 10_000.0
COLOURS = {"kept": "#1a7f37", "adopted": "#0969da", "new": "#bc4c00"}


class Sampled(Protocol):
    source: str | None
    latency_ms: float | None


def add_arguments(parser: argparse.ArgumentParser, seconds: float) -> None:
    """What every replay can be told."""
    parser.add_argument("--model", default="qwen2.5-coder-0.5b")
    parser.add_argument("--seconds", type=float, default=seconds)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--plot", type=Path)


def keep(result: dict[str, Any], samples: Sequence[Any], arguments: argparse.Namespace) -> None:
    """Prints the result, and writes it and its samples where the arguments say; samples are dataclasses."""
    print(json.dumps(result, indent=1))
    if arguments.out:
        arguments.out.write_text(json.dumps({**result, "samples": [asdict(sample) for sample in samples]}))
    if arguments.plot:
        arguments.plot.write_text(page(result, samples))


def page(result: dict[str, Any], samples: Sequence[Sampled]) -> str:
    """The page."""
    curves = []
    for source, colour in COLOURS.items():
        times = sorted(s.latency_ms for s in samples if s.source == source and s.latency_ms is not None)
        if times:
            points = " ".join(f"{_x(time):.1f},{_y((rank + 1) / len(times)):.1f}" for rank, time in enumerate(times))
            curves.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
            place = TOP + 18 * len(curves)
            curves.append(f'<text x="{LEFT + 10}" y="{place}" fill="{colour}">{source} ({len(times)})</text>')
    ticks = "".join(
        f'<line x1="{_x(t):.0f}" x2="{_x(t):.0f}" y1="{TOP}" y2="{TOP + HEIGHT}" stroke="#ddd"/>'
        f'<text x="{_x(t):.0f}" y="{TOP + HEIGHT + 16}" text-anchor="middle">{t:g} ms</text>'
        for t in (1, 10, 100, 1000, 10_000)
    )
    figures = html.escape(json.dumps({k: v for k, v in result.items() if k != "samples"}, indent=1))
    size = f'width="{LEFT + WIDTH + 40}" height="{TOP + HEIGHT + 30}"'
    return (
        '<!doctype html><meta charset="utf-8"><title>Latency from request to answer</title>'
        "<style>body{font:14px sans-serif;margin:2em}</style><h1>Latency from request to answer</h1>"
        f"<p>Share of requests answered within a time, by where the answer came from.</p><svg {size}>{ticks}"
        f"{''.join(curves)}</svg><pre>{figures}</pre>"
    )


def _x(milliseconds: float) -> float:
    share = math.log(max(FASTEST, milliseconds) / FASTEST) / math.log(SLOWEST / FASTEST)
    return LEFT + WIDTH * min(1.0, share)


def _y(share: float) -> float:
    return TOP + HEIGHT * (1 - share)
