"""Make the public table of successors: `python -m decoding.drafters.build_successors MODEL [--tokens N]`.

Runs a registered model over modules of the standard library (public text) and keeps, for every token and for the most
frequent pairs, what the model ranked highest on average. Any runtime does, since it uses the TargetModel protocol only.
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

Counts = dict[int, dict[int, float]]
Pairs = dict[tuple[int, int], dict[int, float]]


def main() -> None:
    """Read arguments, run, write one file next to this module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", default=EngineOptions().model)
    parser.add_argument("--tokens", type=int, default=120_000, help="how many tokens of the standard library to read")
    parser.add_argument("--runtime", choices=["auto", "native", "transformers"], default="auto")
    arguments = parser.parse_args()
    model = load_model(EngineOptions(model=arguments.model, runtime=arguments.runtime), lambda _: None)
    table = build(model, arguments.tokens)
    path = FOLDER / f"successors-{arguments.model}.npz"
    table.save(path, model.vocabulary)
    print(f"{path.name}: {len(table.tokens)} tokens, {len(table.pairs[0])} pairs, {path.stat().st_size} bytes")


def build(model: LoadedModel, count: int) -> Successors:
    """The table from the model's predictions at `count` positions."""
    singles: Counts = {}
    pairs: Pairs = {}
    seen: dict[tuple[int, int], int] = {}
    done = 0
    for window in _windows(model):
        for before, token, ids, probabilities in _predictions(model, window):
            into, pair_into = singles.setdefault(token, {}), pairs.setdefault((before, token), {})
            for successor, probability in zip(ids, probabilities, strict=True):
                into[successor] = into.get(successor, 0.0) + probability
                pair_into[successor] = pair_into.get(successor, 0.0) + probability
            seen[before, token] = seen.get((before, token), 0) + 1
        done += len(window)
        print(f"\r{done} of {count} tokens", end="", flush=True)
        if done >= count:
            break
    print()
    totals: dict[int, int] = {}
    for (_, token), times in seen.items():
        totals[token] = totals.get(token, 0) + times
    chosen = sorted(pairs, key=lambda pair: (-seen[pair], pair))[:_MOST_PAIRS]
    return _table(singles, totals, {pair: pairs[pair] for pair in chosen}, seen)


def _windows(model: LoadedModel) -> Iterator[list[int]]:
    """Token windows of modules in random order; tests and generated tables are left out."""
    root = Path(sysconfig.get_paths()["stdlib"])
    files = [
        path
        for path in sorted(root.rglob("*.py"))
        if not {"test", "tests", "site-packages", "lib2to3", "idlelib", "encodings"} & set(path.parts)
    ]
    random.Random(_SEED).shuffle(files)
    for path in files:
        ids = model.encode(path.read_text(encoding="utf-8", errors="ignore")[: 40 * _WINDOW])
        middle = max(0, len(ids) // 2 - _WINDOW)
        for start in range(middle, min(len(ids), middle + 2 * _WINDOW), _WINDOW):
            window = ids[start : start + _WINDOW]
            if len(window) > 64:
                yield window


def _predictions(model: LoadedModel, window: list[int]) -> Iterator[tuple[int, int, list[int], list[float]]]:
    """(token before, token, the best ids after it, their probabilities) along one window, in chains of drafts."""
    cache = model.target.new_cache(_WINDOW + _CHAIN + 1)
    before = 0
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


def _table(singles: Counts, totals: dict[int, int], pairs: Pairs, seen: dict[tuple[int, int], int]) -> Successors:
    tokens = sorted(singles)
    ids, probabilities = _rows([(singles[token], totals[token]) for token in tokens], _SINGLE_WIDTH)
    keys = sorted(pairs)
    pair_ids, pair_probabilities = _rows([(pairs[key], seen[key]) for key in keys], _PAIR_WIDTH)
    firsts = np.asarray([first for first, _ in keys], dtype=np.int64)
    seconds = np.asarray([second for _, second in keys], dtype=np.int64)
    return Successors(
        np.asarray(tokens, dtype=np.int64), ids, probabilities, (firsts, seconds), pair_ids, pair_probabilities
    )


def _rows(contexts: list[tuple[dict[int, float], int]], width: int) -> tuple[NDArray[np.int32], NDArray[np.float16]]:
    """The `width` most probable successors of each (sums of probabilities, times seen), padded with 0 of 0.0."""
    ids = np.zeros((len(contexts), width), dtype=np.int32)
    probabilities = np.zeros((len(contexts), width), dtype=np.float16)
    for row, (sums, times) in enumerate(contexts):
        best = sorted(sums.items(), key=lambda item: (-item[1], item[0]))[:width]
        for column, (token, total) in enumerate(best):
            ids[row, column], probabilities[row, column] = token, total / times
    return ids, probabilities


if __name__ == "__main__":
    main()
