"""Quality of suggestions: what a user would have got at real holes, with and without the constraints.

Knows the assistant, the points and the scores. Each point is completed by every variant in turn, so that a difference
is paired. Every result is kept in a file at once, so that a run can be taken up again.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from decoding.assistant import Assistant
from decoding.benchmark.quality_points import SETS, Point
from decoding.benchmark.quality_sandbox import passes
from decoding.benchmark.scores import (
    accepted_characters,
    edit_similarity,
    exact_match,
    identifier_f1,
    parses,
    undefined_names,
)
from decoding.errors import BadInput
from decoding.messages import Completion, EngineOptions, Snapshot
from decoding.reasoning.requests import Replacement

BASELINE = "off"
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    BASELINE: {"constraint": "off", "scope": "off"},
    "syntax": {"constraint": "enforce", "scope": "off"},
    "soft": {"constraint": "enforce", "scope": "soft"},
    "hard": {"constraint": "enforce", "scope": "hard"},
    "signatures": {"constraint": "enforce", "scope": "soft", "signature_tokens": 192},
}
"""`soft` and `hard` are syntax and scope together, `signatures` is `soft` with declarations in the prompt."""

Progress = Callable[[int, int, str], None]
"""(suggestions done, suggestions in all, which set)."""


@dataclass(frozen=True, slots=True)
class Score:
    """One suggestion, scored; None where a question makes no sense for it.

    Attributes:
        exact, similarity, identifiers: 0..1, against the truth (its first line where one line is asked for).
        accepted: leading characters that a user could accept.
        shown: 1 where there was anything to show.
        parses: whether the joined file parses, where the original does and something was shown; `finished` the same
            of suggestions that the budget did not cut.
        undefined: uses of undefined names on the suggestion's lines that the original does not have; None where the
            joined file does not parse. `unbound`: those on other lines, which miss a name that the original binds here.
        passed: whether the joined program passes its tests.
    """

    exact: float
    similarity: float
    identifiers: float
    accepted: float
    shown: float
    parses: float | None
    finished: float | None
    undefined: float | None
    unbound: float | None
    passed: float | None


@dataclass(frozen=True, slots=True)
class Result:
    """What one variant made of one point, and the passes and milliseconds that it took (which mean something on an idle
    machine only). `suggestion` is text about public data."""

    set: str
    point: str
    kind: str
    variant: str
    score: Score
    suggestion: str
    stop_reason: str
    off_reason: str | None
    tokens: int
    steps: int
    decode_ms: float

    @property
    def key(self) -> str:
        """What identifies it in a file."""
        return f"{self.point}|{self.variant}"


def complete_point(assistant: Assistant, point: Point, options: EngineOptions) -> Completion:
    """What the assistant suggests at a point, as an editor would ask for it."""
    wanted = options.model_copy(update={"multiline": "always" if point.several_lines else "never"})
    snapshot = Snapshot(uri=f"file:///{point.id}.py", text=point.text, offset=point.offset)
    return assistant.complete(snapshot, wanted, lambda: False, lambda _: None)[0]


def score(point: Point, completion: Completion, imports: Sequence[Replacement] = ()) -> Score:
    """Score one suggestion, with the imports that accepting it adds; runs its program where the point has a test."""
    joined = point.filled(completion.text, completion.start, completion.end)
    added = 0
    for edit in imports:
        data = joined.encode("utf-8")
        joined = data[: edit.start].decode("utf-8") + edit.text + data[edit.end :].decode("utf-8")
        added += edit.text.count("\n") - data.count(b"\n", edit.start, edit.end)
    original = point.original
    # A suggestion may cover closers behind the hole: the truth is as long as what it replaces.
    covered = point.text.encode("utf-8")[point.offset : completion.end].decode("utf-8")
    suggestion, truth = completion.text, point.truth + covered
    if not point.several_lines:
        suggestion, truth = suggestion.split("\n", 1)[0], truth.split("\n", 1)[0]
    known, now = undefined_names(original), undefined_names(joined)
    new = _new_names(point, completion, known, now, added) if known is not None and now is not None else (None, None)
    shown = bool(completion.text)
    sound = float(now is not None) if known is not None and shown else None
    return Score(
        exact=exact_match(suggestion, truth),
        similarity=edit_similarity(suggestion, truth),
        identifiers=identifier_f1(suggestion, truth),
        accepted=accepted_characters(suggestion, truth),
        shown=float(shown),
        parses=sound,
        finished=None if completion.stop_reason == "length" else sound,
        undefined=new[0],
        unbound=new[1],
        passed=float(parses(joined) and passes(joined + point.test)) if point.test else None,
    )


def _new_names(
    point: Point, completion: Completion, known: Counter[tuple[str, int]], now: Counter[tuple[str, int]], added: int
) -> tuple[float, float]:
    """Uses of undefined names that are new: (on the lines of the suggestion, `added` further down, elsewhere)."""
    first = point.text.encode("utf-8").count(b"\n", 0, completion.start) + 1 + added
    lines = range(first, first + completion.text.count("\n") + 1)
    before = Counter(name for name, _ in known.elements())
    inside = Counter(name for name, line in now.elements() if line in lines)
    every = Counter(name for name, _ in now.elements())
    here = sum((inside - before).values())
    return float(here), float(sum((every - before).values()) - here)


class ResultsFile:
    """Results as JSON lines behind one line that says what they belong to."""

    def __init__(self, path: Path, header: Mapping[str, Any]) -> None:
        """Open or begin the file. Raises BadInput for one that belongs to something else."""
        self.path = path
        self.found: dict[str, Result] = {}
        lines = path.read_text(encoding="utf-8").split("\n") if path.exists() else []
        if not lines:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(dict(header)) + "\n", encoding="utf-8")
            return
        if json.loads(lines[0]) != dict(header):
            raise BadInput(f"{path} holds results of another model, version or options: remove it or give --output")
        for line in lines[1:-1]:  # what an interrupted run left behind the last line end is no result
            data = json.loads(line)
            result = Result(**{**data, "score": Score(**data["score"])})
            self.found[result.key] = result
        if lines[-1]:
            path.write_text("\n".join(lines[:-1]) + "\n", encoding="utf-8")

    def add(self, result: Result) -> None:
        """Keep one result."""
        self.found[result.key] = result
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(result)) + "\n")


def run_quality(
    assistant: Assistant,
    counts: Mapping[str, int],
    variants: Sequence[str],
    file: ResultsFile,
    progress: Progress = lambda done, total, what: None,
    seconds: float = float("inf"),
    skip: int = 0,
) -> list[Result]:
    """The results of so many points of each set, behind the first `skip`, by each variant, in that order; what the
    file has is not run again.

    Stops after `seconds` with what there is then. Only points that every variant completed are returned.
    """
    ends = time.monotonic() + seconds
    for _ in assistant.prepare():  # as a worker does before anybody types
        pass
    points = [(name, point) for name, count in counts.items() for point in SETS[name](skip + count)[skip:]]
    total = len(points) * len(variants)
    whole: list[Result] = []
    for number, (name, point) in enumerate(points):
        of_point = {}
        for place in range(len(variants)):
            # What one variant reads into the caches serves the next: each goes first equally often.
            variant = variants[(number + place) % len(variants)]
            progress(number * len(variants) + place, total, name)
            result = file.found.get(f"{point.id}|{variant}")
            if result is None:
                if time.monotonic() > ends:
                    break
                result = _result(assistant, name, point, variant)
                file.add(result)
            of_point[variant] = result
        if len(of_point) == len(variants):
            whole += [of_point[variant] for variant in variants]
    progress(total, total, "done")
    return whole


def _result(assistant: Assistant, name: str, point: Point, variant: str) -> Result:
    options = assistant.options.model_copy(update=dict(VARIANTS[variant]))
    assistant.writer.drafting.unlearn()  # who writes a text a second time takes half the passes
    completion = complete_point(assistant, point, options)
    imports: tuple[Replacement, ...] = ()
    if options.scope != "off" and options.imports and completion.text:
        joined = point.filled(completion.text, completion.start, completion.end)
        end = completion.start + len(completion.text.encode("utf-8"))
        imports = assistant.imports(Snapshot(uri="file:///joined.py", text=joined, offset=end), completion.start)
    return Result(
        set=name,
        point=point.id,
        kind=point.kind,
        variant=variant,
        score=score(point, completion, imports),
        suggestion=completion.text,
        stop_reason=completion.stop_reason,
        off_reason=completion.stats.constraint_off_reason,
        tokens=completion.stats.tokens,
        steps=completion.stats.steps,
        decode_ms=completion.stats.decode_ms,
    )
