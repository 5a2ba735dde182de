"""Make the public table of successors: `python -m decoding.drafters.build_successors MODEL [--predictions N]`.

Two readings of the standard library (public text) are added up: what follows what, in all of its tokens, and what the
model itself ranks highest at N of them, which is what the source will be asked to foresee. Any runtime does, since
only the TargetModel protocol is used.
"""

from __future__ import annotations

import argparse
import random
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from decoding.draft_tree import DraftTree
from decoding.drafters.successors import FOLDER, Successors
from decoding.messages import EngineOptions
from decoding.models.loading import LoadedModel, load_model

_WINDOW = 512
_CHAIN = 63
_TOP = 8
_SINGLE_WIDTH, _PAIR_WIDTH = 8, 4
_MOST_PAIRS = 24_000
_SEED = 7
_MOST_CHARACTERS = 200_000
_LEAST_SEEN = 2.0

_MODEL_WEIGHT = 3.0
"""A prediction counts as often as the text: the model is what drafts are for, the text is what there is more of."""

Sums = dict[tuple[int, int], dict[int, float]]
"""Context (earlier token, later token; the earlier is -1 for contexts of one token) -> successor -> weight."""


def main() -> None:
    """Read arguments, run, write one file next to this module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", default=EngineOptions().model)
    parser.add_argument("--predictions", type=int, default=60_000, help="positions at which the model is asked")
    parser.add_argument("--runtime", choices=["auto", "native", "transformers"], default="auto")
    arguments = parser.parse_args()
    model = load_model(EngineOptions(model=arguments.model, runtime=arguments.runtime), lambda _: None)
    texts = _texts(model)
    sums: Sums = {}
    count_text(sums, texts)
    add_predictions(sums, model, texts, arguments.predictions)
    table = table_of(sums)
    path = FOLDER / f"successors-{arguments.model}.npz"
    table.save(path, model.vocabulary)
    print(f"{path.name}: {len(table.tokens)} tokens, {len(table.pairs[0])} pairs, {path.stat().st_size} bytes")


def _texts(model: LoadedModel) -> list[list[int]]:
    """The tokens of all modules in random order; tests and generated tables are left out."""
    root = Path(sysconfig.get_paths()["stdlib"])
    left_out = {"test", "tests", "site-packages", "lib2to3", "idlelib", "encodings"}
    files = [path for path in sorted(root.rglob("*.py")) if not left_out & set(path.parts)]
    random.Random(_SEED).shuffle(files)
    return [model.encode(path.read_text(encoding="utf-8", errors="ignore")[:_MOST_CHARACTERS]) for path in files]


def count_text(sums: Sums, texts: list[list[int]]) -> None:
    """Add what follows every token and every pair of tokens in the texts."""
    for tokens in texts:
        for before, token, successor in zip([-1, *tokens], tokens, tokens[1:], strict=False):
            _add(sums, before, token, successor, 1.0)


def add_predictions(sums: Sums, model: LoadedModel, texts: list[list[int]], count: int) -> None:
    """Add what the model ranks highest at `count` positions, in windows from the middle of the texts."""
    done = 0
    for tokens in texts:
        if done >= count:
            break
        middle = max(0, len(tokens) // 2 - _WINDOW // 2)
        for before, token, ids, probabilities in _predictions(model, tokens[middle : middle + _WINDOW]):
            for successor, probability in zip(ids, probabilities, strict=True):
                _add(sums, before, token, successor, _MODEL_WEIGHT * probability)
            done += 1
        print(f"\r{done} of {count} predictions", end="", flush=True)
    print()


def _add(sums: Sums, before: int, token: int, successor: int, weight: float) -> None:
    for context in ((-1, token), (before, token)) if before >= 0 else ((-1, token),):
        into = sums.setdefault(context, {})
        into[successor] = into.get(successor, 0.0) + weight


def _predictions(model: LoadedModel, window: list[int]) -> Iterator[tuple[int, int, list[int], list[float]]]:
    """(token before, token, the best ids after it, their probabilities) along one window, in chains of drafts."""
    cache = model.target.new_cache(_WINDOW + _CHAIN + 1)
    before = -1
    for start in range(0, len(window), _CHAIN + 1):
        root, *chain = window[start : start + _CHAIN + 1]
        tree = DraftTree.from_lists(chain, range(-1, len(chain) - 1), [0.0] * len(chain))
        scored = model.target.forward_tree(root, tree, cache, _TOP)
        cache.keep(range(len(chain) + 1))
        weights = np.exp((scored.top_logits - scored.top_logits[:, :1]).numpy())
        probabilities = weights / weights.sum(axis=1, keepdims=True)
        for token, ids, row in zip([root, *chain], scored.top_ids.tolist(), probabilities.tolist(), strict=True):
            yield before, token, ids, row
            before = token


def table_of(sums: Sums) -> Successors:
    """The table: every token that occurred twice, and the pairs that occurred most."""
    totals = {context: sum(into.values()) for context, into in sums.items()}
    singles = sorted(context for context in sums if context[0] < 0 and totals[context] >= _LEAST_SEEN)
    by_total = sorted((context for context in sums if context[0] >= 0), key=lambda context: (-totals[context], context))
    pairs = sorted(by_total[:_MOST_PAIRS])
    ids, probabilities = _rows([(sums[context], totals[context]) for context in singles], _SINGLE_WIDTH)
    pair_ids, pair_probabilities = _rows([(sums[context], totals[context]) for context in pairs], _PAIR_WIDTH)
    firsts, seconds = (np.asarray(column, dtype=np.int64) for column in zip(*pairs, strict=True))
    tokens = np.asarray([token for _, token in singles], dtype=np.int64)
    return Successors(tokens, ids, probabilities, (firsts, seconds), pair_ids, pair_probabilities)


def _rows(contexts: list[tuple[dict[int, float], float]], width: int) -> tuple[NDArray[np.int32], NDArray[np.float16]]:
    """The `width` heaviest successors of each (weights, their sum) as ids and shares, padded with 0 of 0.0."""
    ids = np.zeros((len(contexts), width), dtype=np.int32)
    probabilities = np.zeros((len(contexts), width), dtype=np.float16)
    for row, (weights, total) in enumerate(contexts):
        best = sorted(weights.items(), key=lambda item: (-item[1], item[0]))[:width]
        for column, (token, weight) in enumerate(best):
            ids[row, column], probabilities[row, column] = token, weight / total
    return ids, probabilities


if __name__ == "__main__":
    main()
