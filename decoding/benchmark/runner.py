"""The runner: interleaves contenders over cases and repeats, and keeps every result in a file, so that it can resume.

Knows contenders and cases. Every line of the file is one run; a run that is there already is not made again. Before
them stands one line that says what machine, versions and model they belong to: another machine begins a new file.
"""

from __future__ import annotations

import itertools
import json
import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from decoding.assistant import Assistant
from decoding.benchmark.contenders import PLAIN, Contender, Run, SharedEngine, our_contenders
from decoding.benchmark.peers import KINDS, Peer, PeerAbsent
from decoding.benchmark.workloads import Case, cases
from decoding.errors import BadInput
from decoding.pass_cost import PassCost, measure

Progress = Callable[[int, int, str], None]
"""(runs done, runs in all, what runs now)."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is run.

    Attributes:
        categories: names of `workloads.CATEGORIES`.
        cases: of each category; `peer_cases` of them also by the peers, which are slow.
        repeats: of every contender of ours; peers run `peer_repeats` times.
        shortest: tokens that an answer must have to count: there is nothing to speed up in one of two tokens.
        peers: whether to run them at all.
        seconds: stop after this time, whatever is left; the file can be resumed.
    """

    categories: tuple[str, ...]
    cases: int
    peer_cases: int
    repeats: int
    peer_repeats: int
    shortest: int = 8
    peers: bool = True
    seconds: float = float("inf")


@dataclass(frozen=True, slots=True)
class Item:
    """One run to be made."""

    case: Case
    contender: Contender
    repeat: int

    @property
    def key(self) -> str:
        """What identifies it in the file."""
        return f"{self.case.category}|{self.case.id}|{self.contender.name}|{self.repeat}"


class Results:
    """The file of runs, one JSON object a line, appended as they are made."""

    def __init__(self, path: Path, header: dict[str, Any]) -> None:
        """Open or begin the file. Raises BadInput for one that belongs to another machine, model or version."""
        self.path = path
        self.header = header
        self.runs: dict[str, dict[str, Any]] = {}
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        if lines:
            found = json.loads(lines[0])
            for name in ("model", "runtime", "processor", "threads", "version"):
                if found.get(name) != header[name]:
                    raise BadInput(f"{path} was measured with {name} {found.get(name)!r}: remove it or give --output")
            self.header = found
            self.runs = {run["key"]: run for run in map(json.loads, lines[1:])}
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._append(header)

    def add(self, item: Item, run: Run) -> None:
        """Keep one run."""
        data = {
            "key": item.key,
            "category": item.case.category,
            "case": item.case.id,
            "contender": item.contender.name,
            "repeat": item.repeat,
            "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
            **asdict(run),
        }
        self.runs[item.key] = data
        self._append(data)

    def _append(self, data: dict[str, Any]) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(data) + "\n")


def run_benchmark(assistant: Assistant, plan: Plan, path: Path, progress: Progress) -> Results:
    """Run what is missing of a plan. Raises BadFile without data, BadInput for a file of another machine."""
    engine = SharedEngine(assistant)
    results = Results(path, header_of(assistant))
    cost = _cost(assistant, results)
    ours = list(our_contenders(engine, cost))
    chosen = {category: cases(assistant, category, plan.cases) for category in plan.categories}
    deadline = time.monotonic() + plan.seconds
    lengths = _reference(engine, ours[0], chosen, results, progress, deadline)
    peers = list(_started_peers(assistant, plan, results))
    try:
        items = list(_items(plan, chosen, lengths, ours, peers))
        _run_items(items, lengths, results, progress, deadline)
    finally:
        for peer in peers:
            peer.close()
    return results


def _reference(
    engine: SharedEngine,
    plain: Contender,
    chosen: dict[str, list[Case]],
    results: Results,
    progress: Progress,
    deadline: float,
) -> dict[str, int]:
    """How many tokens the answer of each case has: from a first run of the plain contender, which is not timed."""
    lengths: dict[str, int] = results.header.setdefault("lengths", {})
    everything = [case for of_category in chosen.values() for case in of_category]
    for done, case in enumerate(everything):
        if _name(case) not in lengths and time.monotonic() < deadline:
            progress(done, len(everything), f"reference {case.category}")
            key = f"reference|{_name(case)}"
            if key in results.runs:
                lengths[_name(case)] = results.runs[key]["length"]
                continue
            length = engine.length_of(case, plain.run(case, case.max_tokens))
            lengths[_name(case)] = length
            results.runs[key] = {"key": key, "length": length}
            results._append(results.runs[key])
    return lengths


def _items(
    plan: Plan,
    chosen: dict[str, list[Case]],
    lengths: dict[str, int],
    ours: Sequence[Contender],
    peers: Sequence[Contender],
) -> Iterator[Item]:
    """All runs, interleaved: repeat by repeat, then one case of every category after the other, so that a run that is
    stopped has seen all of them, and contender by contender."""
    counted = [[case for case in cases if lengths.get(_name(case), 0) >= plan.shortest] for cases in chosen.values()]
    for repeat in range(plan.repeats):
        for index, of_index in enumerate(itertools.zip_longest(*counted)):
            rival = index < plan.peer_cases and repeat < plan.peer_repeats
            for case in filter(None, of_index):
                for contender in [*ours, *(peers if rival else [])]:
                    yield Item(case, contender, repeat)


def _run_items(
    items: Sequence[Item], lengths: dict[str, int], results: Results, progress: Progress, deadline: float
) -> None:
    begun: set[tuple[str, int]] = set()
    for done, item in enumerate(items):
        if time.monotonic() > deadline:
            return
        if item.key in results.runs or item.contender.name in results.header["absent"]:
            continue
        if (item.contender.name, item.repeat) not in begun:
            begun.add((item.contender.name, item.repeat))
            item.contender.begin()
        progress(done, len(items), f"{item.case.category}: {item.contender.name}")
        try:
            results.add(item, item.contender.run(item.case, lengths[_name(item.case)]))
        except PeerAbsent as absent:
            results.header["absent"][item.contender.name] = str(absent)


def _started_peers(assistant: Assistant, plan: Plan, results: Results) -> Iterator[Peer]:
    if not plan.peers:
        results.header["absent"]["all peers"] = "not asked for"
        return
    for kind in KINDS:
        try:
            peer = Peer(kind, assistant.model.folder, results.header["threads"])
        except PeerAbsent as absent:
            results.header["absent"][kind.name] = str(absent)
            continue
        results.header["versions"][kind.name] = peer.version
        yield peer


def _cost(assistant: Assistant, results: Results) -> PassCost:
    """T(n), measured once at the start of the file's life."""
    if (known := results.runs.get("cost")) is None:
        cost = measure(assistant.model.target)
        known = {"key": "cost", "sizes": cost.sizes, "short_ms": cost.short_ms, "long_ms": cost.long_ms}
        results.runs["cost"] = known
        results._append(known)
    return PassCost(list(known["sizes"]), list(known["short_ms"]), list(known["long_ms"]))


def header_of(assistant: Assistant) -> dict[str, Any]:
    """What the figures depend on."""
    import torch

    return {
        "model": assistant.model.folder.name,
        "runtime": assistant.model.target.runtime,
        "processor": _processor(),
        "threads": assistant.options.threads or torch.get_num_threads(),
        "version": version("draftwood"),
        "versions": {name: version(name) for name in ("torch", "transformers", "numpy")},
        "python": platform.python_version(),
        "date": time.strftime("%Y-%m-%d"),
        "absent": {},
    }


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    if not path.exists():
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in path.read_text().splitlines() if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _name(case: Case) -> str:
    return f"{case.category} {case.id}"


__all__ = ["PLAIN", "Plan", "Results", "run_benchmark"]
