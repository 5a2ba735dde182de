"""The budget on simulated machines: it never loses by drafting, and finds the size that pays."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decoding.budget import MeasuredBudget
from decoding.draft_tree import DraftTree
from decoding.pass_cost import SIZES, CostFile, PassCost, known_cost, measure
from decoding.payoff import Payoff
from decoding.verify import Verdict
from tests.decoding.fakes import tiny_model


def chain(*probabilities: float) -> DraftTree:
    """A path whose nodes have these joint probabilities."""
    count = len(probabilities)
    return DraftTree.from_lists(range(1, count + 1), range(-1, count - 1), [math.log(p) for p in probabilities])


def cost_of(row_ms: float, plain_ms: float = 20.0) -> PassCost:
    costs = [plain_ms + row_ms * (size - 1) for size in SIZES]
    return PassCost(list(SIZES), costs, costs)


def emitted(count: int) -> Verdict:
    return Verdict(tuple(range(count)), tuple(range(count)), None)


def test_free_rows_take_every_node_and_dear_rows_only_sure_ones() -> None:
    tree = chain(0.9, 0.5, 0.2, 0.1)
    assert MeasuredBudget(cost_of(0.0)).best_size(tree, 100) == 4
    assert MeasuredBudget(cost_of(5.0)).best_size(tree, 100) == 2  # 5 ms are worth a quarter of a token
    assert MeasuredBudget(cost_of(19.9)).best_size(tree, 100) == 0


def test_a_cliff_is_jumped_where_what_lies_behind_it_pays() -> None:
    # Rows 2..4 are dear, rows 5..8 free: like kernels that work in steps.
    costs = [20.0, 30.0, 30.0, 30.0, 30.0] + [60.0] * (len(SIZES) - 5)
    budget = MeasuredBudget(PassCost(list(SIZES), costs, costs))
    assert budget.best_size(chain(0.4), 100) == 0
    assert budget.best_size(chain(0.45, 0.4, 0.4, 0.35), 100) == 4


@given(st.lists(st.floats(0.001, 0.99), max_size=20), st.floats(0.0, 30.0))
def test_the_size_found_is_the_best_of_all(probabilities: list[float], row_ms: float) -> None:
    joint = sorted(probabilities, reverse=True)
    size = MeasuredBudget(cost_of(row_ms)).best_size(chain(*joint), 100)
    worths = [sum(joint[:n]) - row_ms * n / 20.0 for n in range(len(joint) + 1)]
    assert worths[size] == pytest.approx(max(worths), abs=1e-5)


def simulate(budget: MeasuredBudget, cost: PassCost, chance: float, claimed: float, drafting_ms: float) -> float:
    """Speed against plain decoding over 2000 rounds with one draft a round, right with `chance`."""
    random_ = random.Random(1)
    tokens, spent = 0, 0.0
    table = cost.table(100)
    for _ in range(2000):
        drafts = budget.most_nodes(100) > 0
        tree = chain(claimed) if drafts else DraftTree.empty()
        size = budget.best_size(tree, 100)
        got = 1 + (size > 0 and random_.random() < chance)
        took = drafting_ms if drafts else 0.0
        budget.observe(chain(*[claimed] * size), emitted(got), 100, table[size + 1], took)
        tokens += got
        spent += table[size + 1] + took
    return tokens * table[1] / spent


@pytest.mark.parametrize("drafting_ms", [0.1, 0.5, 2.0])
@pytest.mark.parametrize("row_ms", [0.0, 1.0, 4.0])
def test_drafts_that_are_never_right_cost_next_to_nothing(row_ms: float, drafting_ms: float) -> None:
    cost = cost_of(row_ms)
    assert simulate(MeasuredBudget(cost), cost, chance=0.0, claimed=0.5, drafting_ms=drafting_ms) > 0.97


def test_good_drafts_are_used_and_found_again_after_bad_ones() -> None:
    cost = cost_of(1.0)
    budget = MeasuredBudget(cost)
    assert simulate(budget, cost, chance=0.0, claimed=0.5, drafting_ms=0.3) > 0.97
    assert simulate(budget, cost, chance=0.7, claimed=0.5, drafting_ms=0.3) > 1.5


def test_no_tree_is_asked_for_that_would_cost_many_plain_passes() -> None:
    assert MeasuredBudget(cost_of(0.1)).most_nodes(100) == 8
    assert MeasuredBudget(cost_of(10.0)).most_nodes(100) == 3
    assert MeasuredBudget(cost_of(100.0)).most_nodes(100) == 0


def test_trees_grow_while_all_of_them_is_used_and_shrink_again() -> None:
    budget = MeasuredBudget(cost_of(0.01))
    for _ in range(8):
        budget.best_size(chain(*[0.99] * budget.most_nodes(100)), 100)
    assert budget.most_nodes(100) == 24
    for _ in range(30):
        budget.best_size(chain(0.9), 100)
    assert budget.most_nodes(100) == 4


def test_a_loss_rests_and_a_gain_does_not() -> None:
    payoff = Payoff()
    for _ in range(16):
        payoff.saved(-1.0)
    assert payoff.resting
    rests = 0
    while payoff.resting:
        payoff.rested()
        rests += 1
    assert rests == 16
    for _ in range(8):
        payoff.saved(-1.0)
    assert payoff.resting, "a probe is short"
    gain = Payoff()
    for _ in range(500):
        gain.saved(0.1)
    assert not gain.resting


def rests_of(chance: float, rounds: int = 4000) -> float:
    """The share of rounds that rest where a token is right with `chance`: it saves 14 ms, and trying takes 2."""
    random_ = random.Random(3)
    payoff = Payoff()
    rests = 0
    for _ in range(rounds):
        if payoff.resting:
            payoff.rested()
            rests += 1
        else:
            payoff.saved(14.0 * (random_.random() < chance) - 2.0)
    return rests / rounds


def test_what_pays_seldom_but_pays_is_not_rested() -> None:
    assert rests_of(0.3) < 0.02
    assert rests_of(0.2) < 0.15, "a fifth of the gain is scatter"
    assert rests_of(0.02) > 0.8


@given(st.floats(0.3, 4.0))
def test_a_busy_machine_changes_nothing(load: float) -> None:
    cost = cost_of(1.0)
    before = list(cost.table(100))
    for _ in range(300):
        for size in SIZES:
            cost.observe(size, 100, before[size] * load)
    assert cost.table(100) == pytest.approx(before, rel=0.25)


def test_a_size_that_was_measured_wrongly_is_corrected() -> None:
    costs = [20.0 + size for size in SIZES]
    wrong = [*costs]
    wrong[4] *= 3.0  # 8 rows
    cost = PassCost(list(SIZES), wrong, list(wrong))
    for _ in range(400):
        for size, true in zip(SIZES, costs, strict=True):
            cost.observe(size, 100, true)
    assert cost.table(100)[8] / cost.table(100)[1] == pytest.approx(costs[4] / costs[0], rel=0.3)


def test_bursts_of_load_are_not_drift() -> None:
    """Whatever happens to single passes, a size that is fast now and then is as fast as it was measured."""
    cost = cost_of(1.0)
    before = list(cost.table(100))
    chance = random.Random(5)
    for _ in range(400):
        for size in SIZES:
            burst = chance.choice([1.0, 1.0, 3.0, 8.0 if size > 6 else 1.0])
            cost.observe(size, 100, before[size] * burst)
    assert cost.table(100) == pytest.approx(before, rel=0.25)


def test_more_rows_never_cost_less() -> None:
    costs = [20.0 + size for size in SIZES]
    cost = PassCost(list(SIZES), list(costs), list(costs))
    for _ in range(100):
        for size, true in zip(SIZES, costs, strict=True):
            cost.observe(size, 100, true * (2.5 if size in (4, 16) else 1.0))
    table = cost.table(100)
    assert table[1:] == sorted(table[1:])


def test_longer_contexts_cost_more() -> None:
    cost = PassCost([1, 2], [10.0, 11.0], [14.0, 16.0])
    assert cost.table(0)[2] < cost.table(500)[2] < cost.table(2000)[2]


def test_a_measurement_is_kept_and_rubbish_is_not_believed(tmp_path) -> None:
    model = tiny_model()
    cost, file = known_cost(model, "tiny", 1, tmp_path)
    assert cost.sizes == list(SIZES)
    assert min(cost.short_ms) > 0
    again, _ = known_cost(model, "tiny", 1, tmp_path)
    assert again.short_ms == cost.short_ms
    assert CostFile.of(tmp_path, "tiny", model.runtime, 2).path != file.path
    for rubbish in ("", "{}", '{"sizes": [1], "short_ms": [1], "long_ms": []}', "[1, 2]"):
        file.path.write_text(rubbish)
        assert file.read() is None


def test_a_cache_folder_that_cannot_be_written_is_no_error(tmp_path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    cost, _ = known_cost(tiny_model(), "tiny", 1, blocked)
    assert cost.table(10)[1] > 0


def test_progress_ends_at_one() -> None:
    seen: list[float] = []
    measure(tiny_model(), seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


def _of_the_moment(**milliseconds_by_size: float) -> PassCost:
    """A cost of 10, 12 and 20 ms at 1, 4 and 8 rows, after ten passes of each size given as `rows_N`."""
    cost = PassCost([1, 4, 8], [10.0, 12.0, 20.0], [10.0, 12.0, 20.0])
    for _ in range(10):
        for name, milliseconds in milliseconds_by_size.items():
            cost.observe(int(name.removeprefix("rows_")), 100, milliseconds)
    return cost


def test_what_passes_take_now_counts_for_a_moment_only() -> None:
    cost = _of_the_moment(rows_1=15.0, rows_8=20.0)
    assert cost.now(100)[1] == pytest.approx(15.0)
    assert cost.now(100)[8] == pytest.approx(20.0)
    assert cost.now(100)[4] == pytest.approx(12.0 * 1.25)  # disturbed as its neighbours are
    assert cost.table(100)[1] == 10.0
    for _ in range(200):
        cost.observe(8, 100, 20.0)
    assert cost.now(100)[1] == pytest.approx(10.0)


def test_one_disturbed_pass_changes_nothing() -> None:
    cost = _of_the_moment(rows_1=10.0, rows_4=12.0)
    cost.observe(4, 100, 500.0)
    assert cost.now(100) == pytest.approx(cost.table(100))


def test_larger_sizes_than_were_tried_add_what_they_add_on_the_idle_machine() -> None:
    cost = _of_the_moment(rows_1=20.0, rows_4=22.0)
    assert cost.now(100)[8] == pytest.approx(22.0 + 8.0)


@given(st.lists(st.tuples(st.integers(1, 8), st.floats(0.1, 1e4)), max_size=60))
def test_no_size_is_ever_dearer_than_a_larger_one(passes: list[tuple[int, float]]) -> None:
    cost = PassCost([1, 4, 8], [10.0, 12.0, 20.0], [10.0, 12.0, 20.0])
    for rows, milliseconds in passes:
        cost.observe(rows, 100, milliseconds)
    now = cost.now(100)[1:]
    assert now == sorted(now)
    assert min(now) > 0.0


def test_slow_memory_makes_larger_trees_worth_while() -> None:
    """One row waits for memory, eight rows compute meanwhile: then eight cost what one costs."""
    tree = DraftTree.from_lists(range(7), range(-1, 6), [-0.6 * (node + 1) for node in range(7)])
    sizes = []
    for cost in (_of_the_moment(rows_1=10.0, rows_8=20.0), _of_the_moment(rows_1=19.0, rows_8=20.0)):
        sizes.append(MeasuredBudget(cost).best_size(tree, 100))
    assert sizes[0] < sizes[1]
