"""Several continuations in one pass each: every one says what it would say alone."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from decoding.engine import Guide, Round
from decoding.sampling import Sampling
from decoding.together import Branch, Forest
from grammars.constraint import Constraint, FirstToken, Unconstrained
from tests.decoding.fakes import VOCAB, ParityConstraint, tiny_model
from tests.decoding.test_engine import ENDS, constraints, prompts, run, samplings


def begun(state: Constraint | None, first: int | None) -> Constraint | None:
    return state if first is None else FirstToken(first, state or Unconstrained(), VOCAB)


def together(
    prompt: list[int], guides: list[Guide], sampled: list[Sampling], counts: list[int], capacity: int = 256
) -> tuple[list[list[int]], int, list[int]]:
    """The texts of all branches, asked for in turns until each has `counts` tokens or it is left alone; the passes and
    what was kept."""
    model = tiny_model()
    cache = model.new_cache(capacity)
    model.prefill(prompt[:-1], cache, lambda: False)
    branches = [Branch(list(prompt), guide, sampling) for guide, sampling in zip(guides, sampled, strict=True)]
    passes: list[int] = []
    forward = model.forward_tree
    model.forward_tree = lambda *a, **k: (passes.append(1), forward(*a, **k))[1]  # type: ignore[method-assign]
    forest = Forest(model, cache, branches, ENDS)
    open_rounds = {number: forest.rounds(number) for number in range(len(branches))}
    while open_rounds:
        for number, rounds in list(open_rounds.items()):
            found: Round | None = next(rounds, None)
            if found is None or len(branches[number].tokens) - len(prompt) >= counts[number]:
                rounds.close()
                del open_rounds[number]
    forest.close()
    texts = [branch.tokens[len(prompt) :][:count] for branch, count in zip(branches, counts, strict=True)]
    return texts, len(passes), list(cache.token_ids)


@settings(max_examples=40, deadline=None)
@given(
    prompts,
    samplings,
    constraints,
    st.lists(st.one_of(st.none(), st.integers(1, VOCAB - 1)), min_size=1, max_size=5),
    st.data(),
)
def test_each_says_what_it_would_say_alone(prompt, sampling, kind, firsts, data) -> None:
    counts = [data.draw(st.integers(1, 12)) for _ in firsts]
    sampled = [replace(sampling, alternative=number) for number in range(len(firsts))]
    states = [begun(kind(prompt[-1]) if kind else None, first) for first in firsts]
    texts, passes, kept = together(prompt, [Guide.enforcing(state) for state in states], sampled, counts)
    cut = []
    for number, (state, each, count) in enumerate(zip(states, sampled, counts, strict=True)):
        alone, _ = run(prompt, [], sampling=each, state=state, count=count)
        assert texts[number] == alone[: len(texts[number])]
        if len(texts[number]) < len(alone):
            cut.append(number)
    assert passes <= max(counts), "one pass serves all"
    assert len(cut) <= 1, "only the last one is left to go on alone"
    whole = [*prompt, *texts[cut[0] if cut else 0]]
    assert kept == whole[: len(kept)]
    assert not cut or len(kept) == len(whole) - 1, "it goes on where it was left"


def test_a_text_ends_where_there_is_no_more_room() -> None:
    texts, passes, kept = together([1, 2, 3], [Guide(), Guide()], [Sampling(), Sampling(temperature=1.0)], [50, 50], 11)
    assert 2 <= passes < 50
    assert all(0 < len(text) < 50 for text in texts)
    assert len(kept) <= 11


def test_a_constraint_that_allows_nothing_ends_one_branch_only() -> None:
    class Nothing(Unconstrained):
        def permits(self, token: int) -> bool:
            return False

        def allowed(self):
            return ParityConstraint(0).allowed() * 0

    sampled = [Sampling(), Sampling(), Sampling(temperature=1.0)]
    texts, _, _ = together([1, 2, 3], [Guide.enforcing(Nothing()), Guide(), Guide()], sampled, [5, 5, 5])
    assert texts[0] == []
    assert len(texts[1]) == len(texts[2]) == 5
