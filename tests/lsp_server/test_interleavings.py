"""No stale answer, whatever a client does in whatever order: by Hypothesis, and by 10,000 seeded interleavings."""

from __future__ import annotations

import random

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from lsp_server.lines import Encoding
from tests.lsp_server.interleavings import PAIRS, TYPED, Client

INTERLEAVINGS = 3_334
"""For each of three encodings."""
fractions = st.floats(0, 1)


class NeverStale(RuleBasedStateMachine):
    client: Client

    @initialize(
        encoding=st.sampled_from(["utf-8", "utf-16", "utf-32"]), text=st.lists(st.sampled_from(TYPED), max_size=4)
    )
    def start(self, encoding: Encoding, text: list[str]) -> None:
        self.client = Client(encoding, "".join(text))

    @rule(text=st.sampled_from(TYPED), whole=st.booleans())
    def type(self, text: str, whole: bool) -> None:
        self.client.type(text, whole=whole)

    @rule(pair=st.sampled_from(PAIRS))
    def type_pair(self, pair: str) -> None:
        self.client.type_pair(pair)

    @rule()
    def type_over(self) -> None:
        self.client.type_over()

    @rule(count=st.integers(1, 30))
    def type_along(self, count: int) -> None:
        self.client.type_along(count)

    @rule(count=st.integers(1, 4))
    def delete(self, count: int) -> None:
        self.client.delete(count)

    @rule(fraction=fractions, text=st.sampled_from(TYPED))
    def edit_elsewhere(self, fraction: float, text: str) -> None:
        self.client.edit_at(fraction, text)

    @rule(fraction=fractions)
    def move(self, fraction: float) -> None:
        self.client.move(fraction)

    @rule()
    def rest(self) -> None:
        self.client.rest()

    @rule(explicit=st.booleans())
    def request(self, explicit: bool) -> None:
        self.client.request(explicit=explicit)

    @rule(chosen=st.sampled_from(["é", "path"]))
    def request_with_a_list(self, chosen: str) -> None:
        self.client.request(chosen=chosen)

    @rule(index=st.integers(0, 5))
    def cancel(self, index: int) -> None:
        self.client.cancel(index)

    @rule(count=st.integers(1, 20))
    def engine_steps(self, count: int) -> None:
        self.client.worker.step(count)

    @rule()
    def engine_ends(self) -> None:
        self.client.worker.finish()

    @rule()
    def worker_dies(self) -> None:
        self.client.worker.die()

    @rule(seconds=st.sampled_from([0.0, 0.05, 0.1, 1.0]))
    def time_passes(self, seconds: float) -> None:
        self.client.settle(seconds)

    def teardown(self) -> None:
        if hasattr(self, "client"):
            self.client.close()


NeverStale.TestCase.settings = hypothesis_settings(max_examples=60, stateful_step_count=40, deadline=None)
TestNeverStale = NeverStale.TestCase


def one_step(client: Client, rng: random.Random) -> None:
    """What fast typists do often, and what should never happen seldom."""
    kind = rng.choices(
        [
            "along",
            "type",
            "ask",
            "request",
            "steps",
            "end",
            "time",
            "cancel",
            "delete",
            "elsewhere",
            "move",
            "list",
            "die",
            "rest",
            "pair",
            "over",
        ],
        [16, 10, 14, 16, 12, 10, 10, 5, 3, 3, 2, 1, 1, 2, 5, 4],
    )[0]
    match kind:
        case "along":
            client.type_along(rng.choice([1, 1, 1, 2, 5, 40]))
        case "type":
            client.type(rng.choice(TYPED), whole=rng.random() < 0.2)
        case "ask":
            client.request()
            client.settle()
            client.worker.finish()
            client.settle()
        case "request":
            client.request(explicit=rng.random() < 0.1)
        case "steps":
            client.worker.step(rng.randrange(1, 12))
        case "end":
            client.worker.finish()
        case "time":
            client.settle(rng.choice([0.0, 0.0, 0.05, 0.1, 1.0]))
        case "cancel":
            client.cancel(rng.randrange(4))
        case "delete":
            client.delete(rng.randrange(1, 4))
        case "elsewhere":
            client.edit_at(rng.random(), rng.choice(TYPED))
        case "move":
            client.move(rng.random())
        case "list":
            client.request(chosen="path")
        case "die":
            client.worker.die()
        case "rest":
            client.rest()
        case "pair":
            client.type_pair(rng.choice(PAIRS))
        case "over":
            client.type_over()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_ten_thousand_interleavings(encoding: Encoding) -> None:
    rng = random.Random(f"interleavings {encoding}")
    checked = cached = adopted = 0
    for _ in range(INTERLEAVINGS):
        client = Client(encoding, "".join(rng.choices(TYPED, k=rng.randrange(4))))
        for _ in range(rng.randrange(5, 25)):
            one_step(client, rng)
        client.close()
        checked += client.checked
        cached += client.counts.from_cache
        adopted += client.counts.adopted
    assert checked > INTERLEAVINGS, "too few answers to prove anything"
    assert cached > INTERLEAVINGS / 20
    assert adopted > INTERLEAVINGS / 20
