"""Workloads: what every contender is asked to continue, as token ids.

Knows the public data sets (read in place, see `data_folder`), prompt layouts and stop rules. Must not know who runs
a case or how fast. A case is token ids, so that every contender starts from exactly the same prompt.
"""

from __future__ import annotations

import gzip
import json
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from decoding.assistant import Assistant
from decoding.errors import BadFile
from decoding.hole import Hole
from decoding.messages import StopReason
from decoding.stopping import StopRule, wants_lines

DATA_VARIABLE = "DRAFTWOOD_DATA"
CATEGORIES = ("infill", "humaneval", "edit", "questions", "creative")
_SEED = 20250101
_PREFIX_TOKENS, _SUFFIX_TOKENS = 768, 192
_EDIT_LINES = 60
"""Lines of a file that one edit case shows and has rewritten."""

_CREATIVE = (
    "Write the opening of a ghost story set in a lighthouse.",
    "Describe a city that only exists at low tide.",
    "Write a letter from a retired robot to its first owner.",
    "Tell the story of a thief who steals only sounds.",
    "Write a short dialogue between the moon and a street lamp.",
    "Describe the taste of a colour that nobody has seen.",
    "Write the first page of a diary found inside a violin.",
    "Tell how a cartographer fell in love with a blank spot on her map.",
    "Write a monologue of the last library card.",
    "Describe a market where people trade in forgotten dreams.",
    "Tell a fable about a river that wanted to climb a mountain.",
    "Write the closing speech of a chess piece that was never moved.",
    "Invent a holiday, its food and the argument it always causes.",
    "Write a weather forecast for a planet made of glass.",
    "Tell the story of two clocks that disagree.",
    "Describe a kitchen at four in the morning from the point of view of the kettle.",
)


@dataclass(frozen=True, slots=True)
class Case:
    """One thing to continue.

    Attributes:
        id: unique within the category.
        category: one of CATEGORIES.
        prompt_ids: the whole prompt.
        max_tokens: where every contender stops at the latest.
        temperature: 0 greedy; the seed is the same for all.
        over: asked with the text after every token of the reference run; where it gives a reason, the case ends
            for every contender.
    """

    id: str
    category: str
    prompt_ids: tuple[int, ...]
    max_tokens: int
    temperature: float = 0.0
    over: Callable[[str], StopReason | None] = field(default=lambda _: None, compare=False)


def data_folder() -> Path:
    """$DRAFTWOOD_DATA, else `../shared/data` beside the repository. Raises BadFile where there is none."""
    chosen = os.environ.get(DATA_VARIABLE)
    folder = Path(chosen) if chosen else Path(__file__).resolve().parents[3] / "shared" / "data"
    if not folder.is_dir():
        raise BadFile(f"the benchmark's data is not at {folder}: set {DATA_VARIABLE} to the folder that holds it")
    return folder


def cases(assistant: Assistant, category: str, count: int) -> list[Case]:
    """`count` cases of a category (fewer where the data has fewer), always the same ones for the same count."""
    make = {
        "infill": _infill,
        "humaneval": _humaneval,
        "edit": _edits,
        "questions": _questions,
        "creative": _creative,
    }[category]
    return list(make(assistant, count))


def read_json_lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a JSON-lines file, gzipped or not."""
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8")
    return [json.loads(line) for line in text.split("\n") if line]


def sampled(items: list[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """`count` items in an order that does not depend on `count`."""
    order = list(items)
    random.Random(_SEED).shuffle(order)
    return order[:count]


def _chat_ids(assistant: Assistant, request: str) -> list[int]:
    return assistant.model.encode_marked(assistant.chat.render([{"role": "user", "content": request}]))


def _hole_case(assistant: Assistant, name: str, category: str, text: str, offset: int) -> Case:
    prompt = assistant.infilling.layout.infill(text.encode("utf-8"), offset, _PREFIX_TOKENS, _SUFFIX_TOKENS)
    hole = Hole.at(text, offset)
    rule = StopRule(hole, wants_lines(hole, "always"))
    healed = prompt.healed.decode("utf-8", "ignore")
    return Case(name, category, prompt.token_ids, 64, over=lambda said: rule.reason(said[len(healed) :]))


def _infill(assistant: Assistant, count: int) -> Iterator[Case]:
    folder = data_folder() / "fresh_fim"
    files = {item["file"]: item["text"] for item in read_json_lines(folder / "files_dev.jsonl.gz")}
    points = [p for p in read_json_lines(folder / "points_dev.jsonl.gz") if p["kind"] in ("block", "function")]
    for point in sampled(points, count):
        text = files[point["file"]]
        holed = text[: point["start"]] + text[point["end"] :]
        yield _hole_case(assistant, point["id"], "infill", holed, len(text[: point["start"]].encode("utf-8")))


def _humaneval(assistant: Assistant, count: int) -> Iterator[Case]:
    points = read_json_lines(data_folder() / "humaneval_infilling" / "multi_line_dev.jsonl.gz")
    long = [point for point in points if point["canonical_solution"].count("\n") >= 3]
    for point in sampled(long, count):
        text = point["prompt"] + point["suffix"]
        yield _hole_case(assistant, point["task_id"], "humaneval", text, len(point["prompt"].encode("utf-8")))


def _edits(assistant: Assistant, count: int) -> Iterator[Case]:
    commits = read_json_lines(data_folder() / "git_edits" / "dev.jsonl.gz")
    for commit in sampled(commits, count):
        lines = commit["before"].split("\n")
        first = max(0, commit["hunks"][0][0] - _EDIT_LINES // 3)
        code = "\n".join(lines[first : first + _EDIT_LINES])
        request = (
            f"Rewrite this Python code for the change: {commit['subject']}\n\n```python\n{code}\n```\n\n"
            "Answer with the complete new code only."
        )
        ids = _chat_ids(assistant, request)
        if len(ids) <= 1400:
            yield Case(f"{commit['commit'][:12]} {commit['path']}", "edit", tuple(ids), 256)


def _questions(assistant: Assistant, count: int) -> Iterator[Case]:
    for item in sampled(read_json_lines(data_folder() / "spec_bench" / "dev.jsonl"), count):
        ids = _chat_ids(assistant, item["turns"][0])
        yield Case(str(item["question_id"]), "questions", tuple(ids), 128)


def _creative(assistant: Assistant, count: int) -> Iterator[Case]:
    """At temperature 1, which is where drafting pays least. No prompt twice: sources would know the answer."""
    for index, text in enumerate(_CREATIVE[:count]):
        ids = _chat_ids(assistant, text)
        yield Case(f"{index}", "creative", tuple(ids), 128, temperature=1.0)
