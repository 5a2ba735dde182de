"""The report of a benchmark as one HTML page with plots, which needs nothing else.

Knows the object that `report.summary` makes.
"""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

from decoding.benchmark.contenders import FIXED_SIZES, FULL
from decoding.benchmark.report import STAGES

_STYLE = """
:root{--bg:#fbfaf7;--ink:#22231f;--faint:#85867e;--line:#dddbd3;--a:#2f6fb3;--b:#1f7a4d}
@media(prefers-color-scheme:dark){
:root{--bg:#191a1c;--ink:#e8e6e0;--faint:#909195;--line:#393b3f;--a:#7db4f0;--b:#5fce95}}
body{margin:0 auto;max-width:1000px;padding:24px;background:var(--bg);color:var(--ink);
font:15px/1.5 system-ui,sans-serif}
h1{font-size:22px;margin:0}h2{font-size:17px;margin:28px 0 8px}.faint{color:var(--faint)}
table{border-collapse:collapse;width:100%;font-size:14px}
td,th{padding:4px 8px;border-bottom:1px solid var(--line);text-align:right}
td:first-child,th:first-child{text-align:left}
svg{width:100%;height:auto}svg text{fill:var(--ink);font:12px system-ui,sans-serif}
"""


def page(data: dict[str, Any]) -> str:
    """The report as one HTML page."""
    title = f"{data['model']} on {data['runtime']}"
    facts = f"{data['processor']} · {data['threads']} threads · load {data['load_average']} · {data['date']}"
    body = [
        f"<h1>Benchmark: {html.escape(title)}</h1><p class=faint>{html.escape(facts)}</p>",
        "<h2>Speed-up over our own plain decoding</h2>" + _bars(data),
        *(_table(category, figures) for category, figures in data["categories"].items()),
        "<h2>What a pass costs, T(n)</h2>" + _pass_curve(data),
        "<h2>Tokens a pass against nodes</h2>" + _node_curve(data),
        "<h2>Time budget of a round (all of it drafted)</h2>" + _stages(data),
        _rest(data),
    ]
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{html.escape(title)}</title>"
        f"<style>{_STYLE}</style><body>{''.join(body)}</body></html>"
    )


def _bars(data: dict[str, Any]) -> str:
    rows = [
        (f"{category}: {name}", figures[name]["speed_up"])
        for category, figures in data["categories"].items()
        for name in ("lookup", "recycle", FULL)
        if name in figures
    ]
    most = max((high for _, (_, _, high) in rows), default=1.0)
    width, left, step = 960, 170, 24

    def x(value: float) -> float:
        return left + (width - left - 90) * value / most

    parts = [
        f'<line x1="{x(1)}" x2="{x(1)}" y1="0" y2="{step * len(rows)}" stroke="var(--faint)" stroke-dasharray="3 3"/>'
    ]
    for row, (label, (value, low, high)) in enumerate(rows):
        y = row * step
        colour = "var(--b)" if label.endswith(FULL) else "var(--a)"
        parts.append(
            f'<text x="0" y="{y + 16}">{html.escape(label)}</text>'
            f'<rect x="{left}" y="{y + 4}" width="{x(value) - left}" height="15" fill="{colour}" rx="2"/>'
            f'<line x1="{x(low)}" x2="{x(high)}" y1="{y + 11}" y2="{y + 11}" stroke="var(--ink)" stroke-width="1.5"/>'
            f'<text x="{x(high) + 8}" y="{y + 16}">{value:.2f}x</text>'
        )
    return f'<svg viewBox="0 0 {width} {step * len(rows) + 6}" role="img">{"".join(parts)}</svg>'


def _table(category: str, figures: dict[str, Any]) -> str:
    head = "<tr><th>contender<th>cases<th>tokens/s<th>95%<th>speed-up<th>95%<th>tokens a pass<th>nodes</tr>"
    rows = []
    for name, figure in figures.items():
        speed, up = figure["tokens_per_second"], figure["speed_up"]
        rows.append(
            f"<tr><td>{html.escape(name)}<td>{figure['cases']}<td>{speed[0]:.1f}<td>{speed[1]:.1f} to {speed[2]:.1f}"
            f"<td>{up[0]:.2f}<td>{up[1]:.2f} to {up[2]:.2f}"
            f"<td>{figure['mean_accepted'] or ''}<td>{figure['nodes'] or ''}</tr>"
        )
    return f"<h2>{html.escape(category)}</h2><table>{head}{''.join(rows)}</table>"


def _curve(points: dict[str, list[tuple[float, float]]], x_name: str, y_name: str) -> str:
    """Lines with marks; axes begin at 0."""
    everything = [point for line in points.values() for point in line]
    if not everything:
        return "<p class=faint>not measured</p>"
    most_x, most_y = max(x for x, _ in everything), max(y for _, y in everything)
    width, height, left = 960, 260, 50
    place: Callable[[tuple[float, float]], tuple[float, float]] = lambda point: (  # noqa: E731
        left + (width - left - 130) * point[0] / most_x,
        height - 30 - (height - 50) * point[1] / most_y,
    )
    parts = [
        f'<line x1="{left}" x2="{width - 130}" y1="{height - 30}" y2="{height - 30}" stroke="var(--line)"/>',
        f'<text x="{width - 130}" y="{height - 10}" text-anchor="end">{x_name}: 0 to {most_x:.0f}</text>',
        f'<text x="{left}" y="12">{y_name}: 0 to {most_y:.1f}</text>',
    ]
    for number, (name, line) in enumerate(points.items()):
        colour = f"hsl({(number * 67 + 210) % 360} 55% 50%)"
        spots = [place(point) for point in sorted(line)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in spots]
        x, y = spots[-1]
        parts.append(f'<text x="{x + 8:.1f}" y="{y + 4:.1f}">{html.escape(name)}</text>')
    return f'<svg viewBox="0 0 {width} {height}" role="img">{"".join(parts)}</svg>'


def _pass_curve(data: dict[str, Any]) -> str:
    cost = data["pass_ms"]
    if cost is None:
        return "<p class=faint>not measured</p>"
    lines = {
        "short context": list(zip(cost["sizes"], cost["short_ms"], strict=True)),
        "768 tokens": list(zip(cost["sizes"], cost["long_ms"], strict=True)),
    }
    return _curve(lines, "rows", "milliseconds")


def _node_curve(data: dict[str, Any]) -> str:
    lines = {}
    for category, figures in data["categories"].items():
        points = [
            (float(figures[name]["nodes"]), float(figures[name]["mean_accepted"]))
            for name in (f"fixed {size}" for size in FIXED_SIZES)
            if name in figures and figures[name]["nodes"]
        ]
        if points:
            lines[category] = [(0.0, 1.0), *points]
    return _curve(lines, "nodes verified", "tokens a pass")


def _stages(data: dict[str, Any]) -> str:
    rows = []
    for category, figures in data["categories"].items():
        stages = figures.get(FULL, {}).get("stages_ms")
        if stages:
            total = sum(stages.values())
            cells = "".join(f"<td>{stages[stage]:.2f}" for stage in STAGES)
            rows.append(f"<tr><td>{html.escape(category)}{cells}<td>{1 - stages['forward'] / total:.1%}</tr>")
    head = "<tr><th>ms a round" + "".join(f"<th>{stage}" for stage in STAGES) + "<th>outside the model</tr>"
    return f"<table>{head}{''.join(rows)}</table>"


def _rest(data: dict[str, Any]) -> str:
    fixed = data["dynamic_against_best_fixed"]
    parts = [
        "<h2>Measured budget against fixed sizes</h2>"
        f"<p>{fixed['ratio']}x the best fixed size ({fixed['best_fixed']}), harmonic mean over all categories; "
        + ", ".join(f"{ratio}x {name}" for name, ratio in fixed["of_single_sources"].items())
        + " (the best sizes of one source alone).</p>",
        "<h2>Against the fastest peer</h2><table><tr><th>category<th>peer<th>decoding<th>95%<th>end to end<th>95%</tr>",
    ]
    for category, figure in data["against_best_peer"].items():
        decode, whole = figure["decode"], figure["end_to_end"]
        parts.append(
            f"<tr><td>{html.escape(category)}<td>{html.escape(figure['best_peer'])}<td>{decode[0]:.2f}x"
            f"<td>{decode[1]:.2f} to {decode[2]:.2f}<td>{whole[0]:.2f}x<td>{whole[1]:.2f} to {whole[2]:.2f}</tr>"
        )
    parts.append("</table><h2>Same tokens as plain decoding</h2><ul>")
    parts += [
        f"<li>{html.escape(name)}: {same['equal']} runs equal, {same['different']} different"
        for name, same in data["identical"].items()
    ]
    parts.append("</ul>")
    if data["absent"]:
        parts.append("<h2>Absent</h2><ul>")
        parts += [f"<li>{html.escape(name)}: {html.escape(why)}" for name, why in data["absent"].items()]
        parts.append("</ul>")
    return "".join(parts)
