"""The syntax constraint in figures: soundness, what it refuses, and what it costs.

    python -m tests.benchmarks.grammar_syntax [--figures prefixes,walk,…] [--scale 1.0] [--json]

Texts are the standard library (of Python 3.13 where there is one) and the public data sets; tokens are those of the
two vocabularies named by `--tokenizers` (folders or files; by default every provisioned model's). `--scale` makes the
samples smaller. A row is printed as soon as it is measured: what, value, and what it should be.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from grammars.python_constraint import PythonConstraint
from grammars.python_states import BYTE_ORDER_MARK, State, first_hopeless_byte
from grammars.python_syntax import check_prefix
from grammars.vocabulary import Vocabulary
from tests.grammars.syntax.corpus import (
    Judge,
    data_folder,
    library_files,
    mutants,
    oracle,
    parses,
    records,
)


@dataclass(frozen=True)
class Figure:
    """One row of the table."""

    name: str
    value: str
    target: str


@dataclass(frozen=True)
class Tokens:
    """A tokenizer and the constraint over its vocabulary."""

    name: str
    tokenizer: Tokenizer
    constraint: PythonConstraint

    @classmethod
    def read(cls, path: Path) -> Tokens:
        """From a `tokenizer.json`; the ids of special tokens end a text."""
        tokenizer = Tokenizer.from_file(str(path))
        vocabulary = Vocabulary.from_file(path)
        ending = Vocabulary(vocabulary.tokens, vocabulary.special, frozenset(sorted(vocabulary.special)[:1]))
        return cls(f"{vocabulary.size:,} tokens", tokenizer, PythonConstraint(ending))

    def ids(self, text: str) -> list[int]:
        """Token ids of `text` as ordinary text."""
        return self.tokenizer.encode(text, add_special_tokens=False).ids


def percentiles(samples: list[float], unit: float) -> str:
    """p50 / p99 of seconds, in `unit` seconds."""
    low, high = np.percentile(np.asarray(samples) / unit, [50, 99])
    return f"{low:.2f} / {high:.2f}"


def library_texts(chance: random.Random) -> Iterator[str]:
    """Valid files in random order, again and again."""
    while True:
        files = library_files()
        for path in chance.sample(files, len(files)):
            text = path.read_bytes().decode("utf-8")
            if len(text) > 200 and not text.startswith("\ufeff"):
                yield text


def unknown_texts(chance: random.Random) -> Iterator[str]:
    """Real files that nothing was made from ahead, in random order, again and again: of the public data set where it
    is, else the library's. (Warming reads modules of the library.)"""
    folder = data_folder("fresh_fim")
    if folder is None:
        yield from library_texts(chance)
        return
    texts = [record["text"] for record in records(folder, "files*")]
    while True:
        yield from chance.sample(texts, len(texts))


def prefixes(scale: float, _: list[Tokens]) -> Iterator[Figure]:
    """Every prefix of valid files."""
    cuts = refused = files = 0
    for path in library_files() if scale >= 1 else random.Random(1).sample(library_files(), int(1700 * scale) + 1):
        data = path.read_bytes().removeprefix(BYTE_ORDER_MARK)
        state, offset = first_hopeless_byte(State.start(), data)
        cuts += len(data)
        files += 1
        refused += offset is not None or not state.may_end()
    yield Figure(f"valid prefixes refused, {cuts:,} byte cuts of {files:,} files", str(refused), "0")
    folder = data_folder("py_syntax")
    if folder:
        valid = [r["source"] for r in records(folder) if r["label"] == "valid"]
        wrong = sum(not check_prefix(source).viable for source in valid)
        yield Figure(f"valid cases of py_syntax refused, of {len(valid)}", str(wrong), "0")


def walk(scale: float, tokens: list[Tokens]) -> Iterator[Figure]:
    """The true next token of valid files, from a state opened at a random cursor and from the begin."""
    for each in tokens:
        chance = random.Random(2)
        walked = forbidden = 0
        for text in library_texts(chance):
            ids = each.ids(text)
            if each.constraint.vocabulary.decode(ids) != text.encode():
                continue  # not the file's text: a normalising tokenizer
            start = chance.randrange(len(ids))
            for first, count in ((0, len(ids)), (start, 64)):
                begin = len(each.constraint.vocabulary.decode(ids[:first]))
                state = each.constraint.open(text.encode(), begin, suffix=False)
                good = state.validate(ids[first : first + count])
                walked += good
                forbidden += good < len(ids[first : first + count]) or state.off_reason is not None
            if walked > 2_000_000 * scale:
                break
        yield Figure(f"true next token forbidden, {each.name}, {walked:,} tokens", str(forbidden), "0")


def holes(scale: float, tokens: list[Tokens]) -> Iterator[Figure]:
    """The text of holes in valid files, to the end of a line; all other text stands before and behind."""
    for each in tokens[:1]:
        chance = random.Random(5)
        count = forbidden = unfit = 0
        for text in library_texts(chance):
            data = text.encode()
            for _ in range(4):
                begin = boundary(each, text, chance)
                rest = data[begin:].decode()
                truth = "\n".join(rest.split("\n")[: chance.choice([1, 1, 2, 5])])
                ids = each.ids(truth)
                if each.constraint.vocabulary.decode(ids) != truth.encode():
                    continue
                around = data[:begin] + data[begin + len(truth.encode()) :]
                state = each.constraint.open(around, begin)
                count += 1
                if state.validate(ids) < len(ids):
                    forbidden += 1
                    print(f"forbidden at byte {begin}: {truth[:80]!r}", file=sys.stderr)
                elif not each.constraint.gap(around, begin).fits(truth.encode()):
                    unfit += 1
                    print(f"does not fit at byte {begin}: {truth[:80]!r}", file=sys.stderr)
            if count > 4_000 * scale:
                break
        yield Figure(f"holes whose text is forbidden, {each.name}, {count:,}", str(forbidden), "0")
        yield Figure(f"holes whose text does not fit, {each.name}, {count:,}", str(unfit), "0")


def refusals(scale: float, _: list[Tokens]) -> Iterator[Figure]:
    """Invalid text: the py_syntax cases, mutants, and where CPython's parser proved that nothing can follow."""
    folder = data_folder("py_syntax")
    if folder:
        cases = [r["source"].encode("utf-8", "surrogatepass") for r in records(folder) if r["label"] == "syntax"]
        caught = sum(not is_valid(case) for case in cases)
        yield Figure(f"invalid cases of py_syntax refused, of {len(cases)}", f"{caught / len(cases):.2%}", "98%")
    if not oracle():
        return
    invalid = caught = proven = in_time = wrong = 0
    with Judge() as judge:
        for mutant in mutants(int(20_000 * scale), seed=3):
            verdict, data = judge.verdict(mutant.text), mutant.text.encode()
            state, offset = first_hopeless_byte(State.start(), data)
            ours = offset is None and state.may_end()
            if verdict["valid"]:
                wrong += not ours
                continue
            invalid += 1
            caught += not ours
            if verdict.get("message") == "invalid syntax" and not verdict["parses"]:
                lines = mutant.text.splitlines(keepends=True)
                end = sum(map(len, lines[: verdict["end_line"] - 1])) + verdict["end_column"] - 1
                proven += 1
                in_time += offset is not None and offset <= len(mutant.text[:end].encode())
    yield Figure(f"mutants refused by their end, of {invalid:,}", f"{caught / invalid:.2%}", "98%")
    yield Figure(f"refused at the token where CPython gave up, of {proven:,}", f"{in_time / proven:.2%}", "99.5%")
    yield Figure("valid mutants refused", str(wrong), "0")


def is_valid(data: bytes) -> bool:
    """Whether we take `data` for a whole file."""
    state, offset = first_hopeless_byte(State.start(), data)
    return offset is None and state.may_end()


def masks(scale: float, tokens: list[Tokens]) -> Iterator[Figure]:
    """One mask at random cursors of real files, each in a state that was not asked before."""
    for each in tokens:
        chance = random.Random(4)
        samples: list[float] = []
        for text in unknown_texts(chance):
            data = text.encode()
            for _ in range(4):
                state = each.constraint.open(data, boundary(each, text, chance), suffix=False)
                begin = time.perf_counter()
                state.allowed()
                samples.append(time.perf_counter() - begin)
            if len(samples) >= 4000 * scale:
                break
        name = f"mask, {each.name}, first of {len(samples):,} states, ms p50 / p99"
        yield Figure(name, percentiles(samples, 1e-3), "0.3 / 5")


def boundary(each: Tokens, text: str, chance: random.Random) -> int:
    """A byte offset where a token ends."""
    start = chance.randrange(max(len(text) - 400, 1))
    ids = each.ids(text[start : start + 200])
    inner = len(each.constraint.vocabulary.decode(ids[: chance.randrange(len(ids) + 1)]))
    return len(text[:start].encode()) + inner


def cold(scale: float, tokens: list[Tokens]) -> Iterator[Figure]:
    """`branches` before anything was made ahead, of the largest vocabulary."""
    yield validated(scale, tokens[-1], "cold", window=0)


def branches(scale: float, tokens: list[Tokens]) -> Iterator[Figure]:
    """The next eight tokens of real files, each branch validated once, from a fresh state: where there
    was no time to read ahead, and as the worker does it, which has read the tokens before the cursor."""
    for each in tokens:
        yield validated(scale, each, "window not read", window=0)
        yield validated(scale, each, "window read ahead", _WINDOW)


_WINDOW = 768
"""Tokens before the cursor that are in the prompt, and so are read ahead."""


def validated(scale: float, each: Tokens, name: str, window: int) -> Figure:
    """What branches cost that were never read before; `window` tokens before them were."""
    chance = random.Random(name)
    samples: list[float] = []
    for text in unknown_texts(chance):
        data = text.encode()
        offset = boundary(each, text, chance)
        branch = each.ids(data[offset:].decode("utf-8", "ignore")[:200])[:8]
        if window:
            each.constraint.study(each.ids(data[:offset].decode("utf-8", "ignore"))[-window:])
        state = each.constraint.open(data, offset, suffix=False)
        begin = time.perf_counter()
        state.validate(branch)
        samples.append(time.perf_counter() - begin)
        if len(samples) >= 4000 * scale:
            break
    row = f"branch of 8 tokens, {each.name}, {name}, {len(samples):,} branches, µs p50 / p99"
    return Figure(row, percentiles(samples, 1e-6), "20 / 200")


def opening(scale: float, tokens: list[Tokens]) -> Iterator[Figure]:
    """A state at a cursor: of a document seen for the first time, and after one more keystroke there."""
    constraint = tokens[0].constraint
    for lines, target in ((100, 2), (500, 5), (3000, 15)):
        sized = sorted((abs(path.read_bytes().count(b"\n") - lines), path) for path in library_files())
        chance = random.Random(lines)
        fresh: list[float] = []
        typed: list[float] = []
        for _, path in sized[:10]:
            data = path.read_bytes()
            for _ in range(int(30 * scale) + 3):
                offset = chance.randrange(len(data))
                constraint.open(b"", 0)
                begin = time.perf_counter()
                constraint.open(data, offset)
                middle = time.perf_counter()
                constraint.open(data[:offset] + data[offset : offset + 1] + data[offset:], offset + 1)
                fresh.append(middle - begin)
                typed.append(time.perf_counter() - middle)
        yield Figure(f"open at a cursor, {lines} lines, ms p50 / p99", percentiles(fresh, 1e-3), f"{target} (p50)")
        yield Figure(f"… after one more keystroke, {lines} lines, ms p50 / p99", percentiles(typed, 1e-3), "")


def stopping(scale: float, tokens: list[Tokens]) -> Iterator[Figure]:
    """Where the constraint lets a completion of a real gap stop, and whether the joined file parses there."""
    folder = data_folder("fresh_fim")
    if not folder:
        return
    each = tokens[0]
    end = min(each.constraint.vocabulary.end)
    files = {record["file"]: record["text"] for record in records(folder, "files*")}
    stops = sound = reached = points = 0
    for point in list(records(folder, "points*"))[: int(10_000 * scale) + 20]:
        text = files[point["file"]]
        before, gap, after = text[: point["start"]], text[point["start"] : point["end"]], text[point["end"] :]
        if not parses(text) or "<|" in gap:
            continue
        points += 1
        state = each.constraint.open((before + after).encode(), len(before.encode()))
        ids = each.ids(gap)
        for count in range(len(ids) + 1):
            if state.permits(end):
                stops += 1
                written = each.constraint.vocabulary.decode(ids[:count]).decode("utf-8", "replace")
                sound += parses(before + written + after)
            if count < len(ids):
                following = state.advance(ids[count])
                if following is None:
                    break
                state = following
        else:
            reached += state.permits(end)
    yield Figure(f"stops allowed where the joined file parses, of {stops:,}", f"{sound / stops:.2%}", "99.5%")
    yield Figure(f"true completion allowed and may stop, of {points}", f"{reached / points:.2%}", "100%")


FIGURES: dict[str, Callable[[float, list[Tokens]], Iterator[Figure]]] = {
    "cold": cold,
    "prefixes": prefixes,
    "walk": walk,
    "holes": holes,
    "refusals": refusals,
    "masks": masks,
    "branches": branches,
    "opening": opening,
    "stopping": stopping,
}


def provisioned_tokenizers() -> list[Path]:
    """The tokenizers of the models in the user's cache, smallest vocabulary first."""
    from platformdirs import user_cache_path

    found = sorted((user_cache_path("draftwood") / "models").glob("*/tokenizer.json"))
    return sorted(found, key=lambda path: path.stat().st_size)


def warm(tokens: list[Tokens]) -> None:
    """What the worker does once its models are loaded; a second time it costs little."""
    for each in tokens:
        each.constraint.warm()
    gc.collect()
    gc.freeze()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--figures", default=",".join(FIGURES))
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--tokenizers", type=Path, nargs="*", default=None)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    tokens = [Tokens.read(path) for path in options.tokenizers or provisioned_tokenizers()]
    if not tokens:
        sys.exit("no tokenizer: pull a model first (draftwood models pull smollm2-135m), or name one")
    rows: list[Figure] = []
    for name in options.figures.split(","):
        if name != "cold":
            warm(tokens)
        for figure in FIGURES[name](options.scale, tokens):
            rows.append(figure)
            if not options.json:
                print(f"{figure.name:70} {figure.value:>16}   {figure.target}", flush=True)
    if options.json:
        print(json.dumps({"load": os.getloadavg(), "figures": [asdict(row) for row in rows]}))


if __name__ == "__main__":
    main()
