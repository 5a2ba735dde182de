"""The benchmark's own parts: figures, the resumable file, the report, peers that are absent."""

from __future__ import annotations

import json

import pytest

from decoding.benchmark.contenders import Run
from decoding.benchmark.figures import bootstrap, ratio_of_sums, speed_up, tokens_per_second
from decoding.benchmark.peers import PeerAbsent, PeerKind
from decoding.benchmark.report import summary
from decoding.benchmark.report_page import page
from decoding.benchmark.runner import Item, Plan, Results, _items
from decoding.benchmark.workloads import Case, data_folder
from decoding.errors import BadFile, BadInput

HEADER = {
    "model": "m</script>",
    "runtime": "r",
    "processor": "p",
    "threads": 2,
    "version": "1",
    "versions": {},
    "date": "2026-01-01",
    "absent": {"some peer": "not <installed>"},
}


class Named:
    def __init__(self, name: str) -> None:
        self.name = name


def filled(tmp_path) -> Results:
    """Two cases in one category: full takes half of plain's time, a peer four times as long."""
    results = Results(tmp_path / "runs.jsonl", json.loads(json.dumps(HEADER)))
    for name, ms, passes in (
        ("plain", 100.0, 10),
        ("full", 50.0, 4),
        ("fixed 7", 60.0, 4),
        ("slow peer", 400.0, 0),
        ("fixed lookup 4", 75.0, 4),
    ):
        for number in range(2):
            case = Case(str(number), "infill", (1, 2), 64)
            stages = {"propose": 1.0, "prune": 0.0, "forward": ms - 2, "verify": 1.0, "observe": 0.0} if passes else {}
            tokens = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
            run = Run(tokens, ms, 100.0, passes, 3 * passes, stages, (3,) * passes)
            results.add(Item(case, Named(name), 0), run)  # type: ignore[arg-type]
    return results


def test_ratios_are_of_sums_and_intervals_hold_them() -> None:
    assert ratio_of_sums([(10.0, 5.0), (90.0, 15.0)]) == 5.0
    figure = bootstrap([(10.0, 5.0), (90.0, 15.0), (30.0, 10.0)], ratio_of_sums)
    assert figure.low <= figure.value <= figure.high
    assert bootstrap([], ratio_of_sums).value == 0.0


def test_only_cases_that_both_ran_are_compared_by_the_median_of_repeats() -> None:
    plain = {"a": [(100.0, 10)], "b": [(500.0, 10)]}
    ours = {"a": [(50.0, 10), (1000.0, 10), (50.0, 10)]}
    assert speed_up(plain, ours).value == pytest.approx(2.0)
    assert tokens_per_second({"a": [(100.0, 10)]}).value == pytest.approx(100.0)


def test_results_are_resumed_and_another_machine_is_refused(tmp_path) -> None:
    filled(tmp_path)
    again = Results(tmp_path / "runs.jsonl", dict(HEADER))
    assert len(again.runs) == 10
    with pytest.raises(BadInput, match="processor"):
        Results(tmp_path / "runs.jsonl", {**HEADER, "processor": "another"})


def test_the_report_says_what_was_measured_and_what_is_absent(tmp_path) -> None:
    data = summary(filled(tmp_path))
    full = data["categories"]["infill"]["full"]
    assert full["speed_up"] == [2.0, 2.0, 2.0]
    assert full["mean_accepted"] == 2.5
    assert full["nodes"] == 3.0
    assert data["against_best_peer"]["infill"]["best_peer"] == "slow peer"
    assert data["against_best_peer"]["infill"]["decode"][0] == pytest.approx(8.0)
    assert data["against_best_peer"]["infill"]["end_to_end"][0] == pytest.approx(500 / 150, rel=0.01)
    assert data["dynamic_against_best_fixed"]["ratio"] == pytest.approx(1.2)
    assert data["dynamic_against_best_fixed"]["of_single_sources"]["fixed lookup 4"] == pytest.approx(1.5, abs=0.01)
    assert data["identical"]["full"] == {"equal": 2, "different": 0}
    assert 0.0 < data["outside_the_model"]["full"] < 0.1
    text = page(data)
    assert "not &lt;installed&gt;" in text
    assert "m&lt;/script&gt;" in text
    assert text.count("<svg") >= 2


def test_a_peer_that_cannot_run_says_why(tmp_path) -> None:
    from decoding.benchmark.peers import Peer
    from decoding.models.folder import ModelFolder

    folder = ModelFolder.__new__(ModelFolder)
    object.__setattr__(folder, "path", tmp_path)
    object.__setattr__(folder, "name", "nothing")
    with pytest.raises(PeerAbsent, match=r"needs model.gguf"):
        Peer(PeerKind("p", "llama", "model.gguf"), folder, 1)
    (tmp_path / "model.gguf").write_text("")
    with pytest.raises(PeerAbsent):
        Peer(PeerKind("p", "no such kind", "model.gguf"), folder, 1)


def test_missing_data_is_one_line_that_says_what_to_set(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("DRAFTWOOD_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(BadFile, match="DRAFTWOOD_DATA"):
        data_folder()


def test_a_run_that_is_stopped_early_has_seen_every_category() -> None:
    def case(category: str, number: int) -> Case:
        return Case(f"{number}", category, (1, 2), 64)

    chosen = {name: [case(name, number) for number in range(count)] for name, count in (("infill", 3), ("edit", 2))}
    plan = Plan(categories=("infill", "edit"), cases=3, peer_cases=1, repeats=2, peer_repeats=1)
    lengths = {f"{name} {number}": 20 for name in chosen for number in range(3)} | {"infill 1": 3}
    ours, peers = [Named("plain"), Named("full")], [Named("slow peer")]
    items = list(_items(plan, chosen, lengths, ours, peers))  # type: ignore[arg-type]
    assert [item.key for item in items[:6]] == [
        *(f"infill|0|{name}|0" for name in ("plain", "full", "slow peer")),
        *(f"edit|0|{name}|0" for name in ("plain", "full", "slow peer")),
    ]
    assert len({item.key for item in items}) == len(items) == 2 * (2 * 4) + 2, "answers of three tokens do not count"
