"""Quality of suggestions on real holes: what a user would have got, with and without the constraints.

Knows the assistant and the public hole data. Each point is completed by every variant in turn, so that a difference
is paired; nothing here depends on time.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from decoding.assistant import Assistant
from decoding.benchmark.scores import (
    accepted_characters,
    edit_similarity,
    exact_match,
    identifier_f1,
    mean_interval,
    parses,
    undefined_names,
)
from decoding.benchmark.workloads import data_folder, read_json_lines
from decoding.messages import Completion, EngineOptions, Snapshot

VARIANTS: Mapping[str, dict[str, Any]] = {
    "off": {"constraint": "off", "scope": "off"},
    "syntax": {"constraint": "enforce", "scope": "off"},
    "syntax+scope": {"constraint": "enforce", "scope": "soft"},
}
_SEED = 7


@dataclass(frozen=True, slots=True)
class Hole:
    """A hole in a real file: the text without it, its byte offset, what stood there."""

    id: str
    kind: str
    text: str
    offset: int
    truth: str

    @property
    def several_lines(self) -> bool:
        """Whether the truth is a block."""
        return self.kind in ("block", "function")


@dataclass(frozen=True, slots=True)
class Score:
    """One suggestion, scored. Rates are 0..1; None where the question makes no sense for this hole."""

    exact: float
    similarity: float
    identifiers: float
    accepted: float
    parses: float | None
    undefined: float | None
    finished_parses: float | None
    passes: float
    tokens: float
    decode_ms: float


def holes(kinds: tuple[str, ...], count: int) -> list[Hole]:
    """`count` real-file points of the given kinds, always the same ones."""
    folder = data_folder() / "fresh_fim"
    files = {item["file"]: item["text"] for item in read_json_lines(folder / "files_dev.jsonl.gz")}
    points = [point for point in read_json_lines(folder / "points_dev.jsonl.gz") if point["kind"] in kinds]
    random.Random(_SEED).shuffle(points)
    return [
        Hole(
            id=point["id"],
            kind=point["kind"],
            text=files[point["file"]][: point["start"]] + files[point["file"]][point["end"] :],
            offset=len(files[point["file"]][: point["start"]].encode("utf-8")),
            truth=point["target"],
        )
        for point in points[:count]
    ]


def complete_hole(assistant: Assistant, hole: Hole, options: EngineOptions) -> Completion:
    """What the assistant suggests for a hole, as an editor would ask for it."""
    wanted = options.model_copy(update={"multiline": "always" if hole.several_lines else "never"})
    snapshot = Snapshot(uri=f"file:///{hole.id}.py", text=hole.text, offset=hole.offset)
    return assistant.complete(snapshot, wanted, lambda: False, lambda _: None)[0]


def score(hole: Hole, completion: Completion) -> Score:
    """Score one suggestion."""
    data = hole.text.encode("utf-8")
    before, after = data[: completion.start].decode("utf-8"), data[completion.end :].decode("utf-8")
    joined = before + completion.text + after
    whole = data[: hole.offset].decode("utf-8") + hole.truth + data[hole.offset :].decode("utf-8")
    # The truth ends at the hole; a suggestion may cover closers that follow it.
    covered = data[hole.offset : completion.end].decode("utf-8")
    truth = hole.truth + covered
    suggestion = completion.text
    if not hole.several_lines:
        suggestion, truth = suggestion.split("\n", 1)[0], truth.split("\n", 1)[0]
    sound = parses(whole)
    known, now = undefined_names(whole), undefined_names(joined)
    ok = parses(joined) if sound else None
    return Score(
        exact=exact_match(suggestion, truth),
        similarity=edit_similarity(suggestion, truth),
        identifiers=identifier_f1(suggestion, truth),
        accepted=accepted_characters(suggestion, truth),
        parses=None if ok is None else float(ok),
        undefined=None if known is None or now is None else float(sum((now - known).values())),
        finished_parses=None if ok is None or completion.stop_reason == "length" else float(ok),
        passes=completion.stats.steps,
        tokens=completion.stats.tokens,
        decode_ms=completion.stats.decode_ms,
    )


def run(
    assistant: Assistant,
    points: list[Hole],
    options: EngineOptions,
    variants: Mapping[str, dict[str, Any]] = VARIANTS,
    tell: Callable[[int], None] = lambda _: None,
) -> dict[str, list[Score]]:
    """Scores per variant, in the order of `points`."""
    found: dict[str, list[Score]] = {name: [] for name in variants}
    for done, hole in enumerate(points):
        for name, changes in variants.items():
            completion = complete_hole(assistant, hole, options.model_copy(update=changes))
            found[name].append(score(hole, completion))
        tell(done + 1)
    return found


def summary(found: dict[str, list[Score]], baseline: str = "off") -> dict[str, dict[str, tuple[float, float, float]]]:
    """Per variant and score: (mean, low, high); and, under "VARIANT - baseline", the paired difference."""
    table: dict[str, dict[str, tuple[float, float, float]]] = {}
    for name, scores in found.items():
        table[name] = {key: mean_interval(values) for key, values in _columns(scores)}
        if name != baseline and baseline in found:
            pairs = zip(_columns(scores, keep=True), _columns(found[baseline], keep=True), strict=True)
            table[f"{name} - {baseline}"] = {
                key: mean_interval(
                    [a - b for a, b in zip(mine, theirs, strict=True) if a is not None and b is not None]
                )
                for (key, mine), (_, theirs) in pairs
            }
    return table


def _columns(scores: list[Score], keep: bool = False) -> Iterator[tuple[str, list[Any]]]:
    rows = [asdict(score) for score in scores]
    for key in rows[0] if rows else ():
        yield key, [row[key] for row in rows if keep or row[key] is not None]
