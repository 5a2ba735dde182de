"""The points of the quality benchmark: holes in public code, what stood in them, and how a filling is judged.

Knows the public data sets, read in place. Must not know models or scores. The points of a set are always the same ones,
in an order that does not depend on how many are asked for.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from decoding.benchmark.quality_holes import more_holes
from decoding.benchmark.workloads import data_folder, read_json_lines

_SEED = 7


@dataclass(frozen=True, slots=True)
class Point:
    """A hole in a file.

    Attributes:
        id: unique among all sets.
        kind: "line", "args", "block", "function" (real files), "single-line" or "multi-line" (HumanEval).
        text: the file without what stood in the hole.
        offset: of the hole, in UTF-8 bytes.
        truth: what stood there.
        test: statements that raise where the filled file is wrong, "" where nothing tells.
    """

    id: str
    kind: str
    text: str
    offset: int
    truth: str
    test: str = ""

    @property
    def several_lines(self) -> bool:
        """Whether several lines are asked for."""
        return self.kind in ("block", "function", "multi-line")

    def filled(self, text: str, start: int, end: int) -> str:
        """The file with `text` in the place of its bytes [start, end)."""
        data = self.text.encode("utf-8")
        return data[:start].decode("utf-8") + text + data[end:].decode("utf-8")

    @property
    def original(self) -> str:
        """The file as it was."""
        return self.filled(self.truth, self.offset, self.offset)


def _real_files(kinds: tuple[str, ...], count: int) -> list[Point]:
    """Points in real files, first committed after the models' training data was collected."""
    folder = data_folder() / "fresh_fim"
    files = {item["file"]: item["text"] for item in read_json_lines(folder / "files_dev.jsonl.gz")}
    points = [point for point in read_json_lines(folder / "points_dev.jsonl.gz") if point["kind"] in kinds]
    random.Random(_SEED).shuffle(points)
    return [_real_file(point, files[point["file"]]) for point in points[:count]]


def _real_file(point: dict[str, Any], text: str) -> Point:
    before, after = text[: point["start"]], text[point["end"] :]
    return Point(point["id"], point["kind"], before + after, len(before.encode("utf-8")), point["target"])


def _more_of_real_files(kind: str, count: int) -> list[Point]:
    """Further holes in the same files, where names are read: to test on what was not tuned on."""
    folder = data_folder() / "fresh_fim"
    files = {item["file"]: item["text"] for item in read_json_lines(folder / "files_dev.jsonl.gz")}
    taken: dict[str, list[tuple[int, int]]] = {}
    for point in read_json_lines(folder / "points_dev.jsonl.gz"):
        first = files[point["file"]].count("\n", 0, point["start"]) + 1
        taken.setdefault(point["file"], []).append((first, first + point["target"].count("\n")))
    return [
        _real_file(
            {
                "id": f"more-{kind}-{hole.file}:{hole.start}",
                "kind": kind,
                "start": hole.start,
                "end": hole.end,
                "target": files[hole.file][hole.start : hole.end],
            },
            files[hole.file],
        )
        for hole in more_holes(kind, files, taken)[:count]
    ]


def _humaneval(kind: str, count: int) -> list[Point]:
    """HumanEval-infilling (Bavarian et al. 2022): whole lines of a solution are missing, tests judge the filling.

    An editor's cursor stands on a line of its own there, so the line end that ends the removed lines stays.
    """
    file = data_folder() / "humaneval_infilling" / f"{kind.replace('-', '_')}_dev.jsonl.gz"
    items = [item for item in read_json_lines(file) if item["canonical_solution"].endswith("\n")]
    random.Random(_SEED).shuffle(items)
    return [
        Point(
            id=item["task_id"],
            kind=kind,
            text=item["prompt"] + "\n" + item["suffix"],
            offset=len(item["prompt"].encode("utf-8")),
            truth=item["canonical_solution"][:-1],
            test=f"{item['test']}\ncheck({item['entry_point']})\n",
        )
        for item in items[:count]
    ]


SETS: Mapping[str, Callable[[int], list[Point]]] = {
    "lines": lambda count: _real_files(("line", "args"), count),
    "blocks": lambda count: _real_files(("block", "function"), count),
    "more-lines": lambda count: _more_of_real_files("line", count),
    "more-blocks": lambda count: _more_of_real_files("block", count),
    "humaneval-line": lambda count: _humaneval("single-line", count),
    "humaneval-lines": lambda count: _humaneval("multi-line", count),
}
"""Name of a set -> its first points. Raises BadFile where the data is absent."""
