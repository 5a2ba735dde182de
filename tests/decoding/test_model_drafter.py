"""The model drafter: exact whatever it drafts, in step with the text, and only for pairs that share their tokens."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import Qwen2Config

from decoding.budget import FixedBudget
from decoding.draft_tree import DraftTree
from decoding.drafters.drafter import Drafter, Observation
from decoding.drafters.growing import GrowingDrafter
from decoding.drafters.lookup import LookupSource
from decoding.drafters.model import ModelDrafter
from decoding.drafters.pairs import check_pair
from decoding.drafters.paying import PayingDrafter
from decoding.drafters.recycle import RecycleSource
from decoding.engine import Guide, Round, generate
from decoding.errors import TokenizerMismatch
from decoding.models.target import TreeLogits
from decoding.models.transformers_model import TransformersModel
from decoding.sampling import Sampling
from decoding.verify import Verdict
from grammars.vocabulary import Vocabulary
from tests.decoding.fakes import END, VOCAB, ParityConstraint, tiny_model

ENDS = frozenset({END})
CAPACITY = 160


def run(
    prompt: list[int], drafters: list[Drafter], sampling: Sampling, kind: type[ParityConstraint] | None, nodes: int
) -> tuple[list[int], list[Round]]:
    model = tiny_model()
    cache = model.new_cache(CAPACITY)
    model.prefill(prompt[:-1], cache, lambda: False)
    tokens = list(prompt)
    rounds = []
    guide = Guide.enforcing(kind(prompt[-1]) if kind else None)
    for round_ in generate(model, cache, tokens, drafters, guide, sampling, FixedBudget(nodes), ENDS):
        rounds.append(round_)
        if len(tokens) - len(prompt) >= 20:
            break
    return tokens[len(prompt) :][:20], rounds


def drafter(seed: int) -> ModelDrafter:
    """Seed 0 is the target itself: everything it drafts greedily is right."""
    return ModelDrafter(tiny_model(seed), frozenset({END}), CAPACITY)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(1, VOCAB - 1), min_size=1, max_size=60),
    st.sampled_from([Sampling(), Sampling(temperature=1.0, seed=3), Sampling(repetition_penalty=1.2)]),
    st.sampled_from([None, ParityConstraint]),
    st.sampled_from([1, 4, 12]),
    st.integers(0, 2),
)
def test_text_is_that_of_plain_decoding(prompt, sampling, kind, nodes, seed) -> None:
    plain, _ = run(prompt, [], sampling, kind, nodes)
    model = drafter(seed)
    mixture = GrowingDrafter([LookupSource(), RecycleSource()])
    for drafters in ([model], [mixture, PayingDrafter(model)], [PayingDrafter(model), mixture]):
        assert run(prompt, drafters, sampling, kind, nodes)[0] == plain


def test_a_bonus_that_was_drafted_but_not_verified_is_scored_next() -> None:
    tokens = [3, 1, 4, 1, 5]
    model = drafter(0)
    model.begin(tokens)
    for _ in range(4):
        tree = model.propose(tokens, None, 12)
        bonus = int(tree.token_ids[0])
        unverified = TreeLogits(torch.zeros((1, VOCAB)), torch.zeros((1, 8), dtype=torch.int32), torch.zeros((1, 8)))
        verdict = Verdict((0,), (bonus,), None)
        model.observe(Observation(tokens[-1], tokens[-2], DraftTree.empty(), unverified, verdict))
        tokens.append(bonus)


def test_the_target_drafting_for_itself_is_always_right() -> None:
    prompt = [3, 1, 4, 1, 5]
    model = drafter(0)
    run(prompt, [model], Sampling(), None, 12)  # it knows from then on what its claims are worth
    text, rounds = run(prompt, [model], Sampling(), None, 12)
    assert all(len(round_.token_ids) > 1 for round_ in rounds[:-1])
    # The cache of the draft model holds a beginning of the text after every round, the last accepted token included
    # only where it was scored.
    known = [*prompt, *text]
    held = list(model._cache.token_ids)
    assert held == known[: len(held)]
    assert len(held) >= len(prompt)


def test_a_long_prompt_is_read_over_several_rounds() -> None:
    prompt = [1 + i % 40 for i in range(400)]
    model = ModelDrafter(tiny_model(), frozenset(), 500)
    model.begin(prompt)
    sizes = [len(model.propose(prompt, None, 4)) for _ in range(4)]
    assert sizes[:2] == [0, 0]
    assert sizes[-1] > 0
    model.begin([*prompt[:350], 7, 8])
    assert len(model._cache.token_ids) == 350, "what is shared stays"


def test_nothing_is_proposed_where_the_draft_model_has_no_room() -> None:
    prompt = [1 + i % 40 for i in range(150)]
    model = ModelDrafter(tiny_model(), frozenset(), 150)
    model.begin(prompt)
    assert len(model.propose(prompt, None, 4)) == 0


# Pairs ----------------------------------------------------------------------------------------------------------

TEXT = tuple(bytes([i]) for i in range(40))


def test_padded_sizes_may_differ_and_marks_too() -> None:
    target = Vocabulary.from_tokens([*TEXT, b"<a>", b"<b>", b"<c>"], special=[40, 41, 42], end=[42])
    draft = Vocabulary.from_tokens([*TEXT, b"<x>"], special=[40], end=[40])
    assert check_pair(target, draft, "t", "d") == frozenset({40, 41, 42})


def test_different_text_is_refused_and_pairs_that_work_are_named() -> None:
    other = Vocabulary.from_tokens([*TEXT[:5], b"zz", *TEXT[6:]])
    with pytest.raises(TokenizerMismatch, match=r"id 5 .*qwen2.5-coder-1.5b with qwen2.5-coder-0.5b") as refusal:
        check_pair(Vocabulary.from_tokens(TEXT), other, "t", "d")
    assert "\n" not in str(refusal.value)


def test_a_vocabulary_that_only_begins_alike_is_refused() -> None:
    longer = [*(b"%d" % number for number in range(2000))]
    with pytest.raises(TokenizerMismatch, match="1000 tokens"):
        check_pair(Vocabulary.from_tokens(longer), Vocabulary.from_tokens(longer[:1000]), "t", "d")


def config(vocab_size: int) -> Qwen2Config:
    return Qwen2Config(
        vocab_size=vocab_size,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=512,
        initializer_range=0.5,
    )


def test_the_reasoning_pair_is_drafted_for() -> None:
    """DeepSeek-R1-Distill-Qwen-7B (152,064 rows) drafted by Qwen2.5-1.5B (151,936), whose marks from 151,643 up mean
    other things: random weights of the same shape of vocabulary, <think> in the prompt."""
    text = [b"%d" % number for number in range(151_643)]
    r1 = Vocabulary.from_tokens([*text, *[b"<r1>"] * 22], special=range(151_643, 151_665), end=[151_643])
    qwen = Vocabulary.from_tokens([*text, *[b"<q>"] * 22], special=range(151_643, 151_665), end=[151_645])
    never = check_pair(r1, qwen, "r1-distill-qwen-7b", "qwen2.5-1.5b")
    assert never == frozenset(range(151_643, 151_665))

    target = TransformersModel.from_config(config(152_064), seed=1, dtype=torch.float64)
    target = TransformersModel(target.model, tokenizer_size=r1.size)
    draft = TransformersModel.from_config(config(151_936), seed=2, dtype=torch.float64)
    think, beyond = 151_648, 152_000
    texts = []
    for drafters in ([], [ModelDrafter(draft, never, 64)]):
        prompt = [10, 20, beyond, think, 30]
        cache = target.new_cache(64)
        target.prefill(prompt[:-1], cache, lambda: False)
        tokens = list(prompt)
        for round_ in generate(target, cache, tokens, drafters, Guide(), Sampling(), FixedBudget(6), frozenset()):
            assert not never & set(round_.pruned.tree.token_ids.tolist())
            if len(tokens) > 20:
                break
        texts.append(tokens[:20])
    assert texts[0] == texts[1]
