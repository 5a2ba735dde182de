"""A mask says for every token what reading the token says."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from grammars.constraint import bitmask_to_bool
from grammars.python_masks import SyntaxMasks
from grammars.python_states import State
from grammars.vocabulary import Vocabulary
from tests.grammars.syntax.corpus import library_files
from tests.grammars.syntax.test_cuts import HOPELESS, VALID, cases

PIECES = (Path(__file__).parent / "pieces.txt").read_text(encoding="utf-8").split()
LINES = [
    "-" * 40,
    "~~",
    "--",
    "-~-",
    "=----",
    ") ---",
    "):\n",
    "):\n\n",
    ")\n",
    ",\n",
    '"""\n',
    "\\\n",
    "} \n",
    "# \n\n",
    "\n\n x",
]
BLANKS = [
    " ",
    "  ",
    "    ",
    "        ",
    "\n",
    "\n\n",
    "\n    ",
    "\n        ",
    "\t",
    "\t\t",
    "\r\n",
    "\r",
    " \n",
    "\f",
    "\n  x",
]


@pytest.fixture(scope="module")
def masks() -> SyntaxMasks:
    tokens = [bytes((byte,)) for byte in range(256)]
    tokens += [text.encode() for text in [*PIECES, *LINES, *BLANKS, *(f" {piece}" for piece in PIECES)]]
    tokens += ["é".encode()[1:] + b"a", "€".encode()[:2], "\N{GRINNING FACE}".encode()[1:3], b"<end>", b"<pad>"]
    return SyntaxMasks(Vocabulary.from_tokens(tokens, special=[len(tokens) - 1], end=[len(tokens) - 2]))


def check(masks: SyntaxMasks, state: State) -> None:
    vocabulary = masks.vocabulary
    mask = bitmask_to_bool(masks.mask(state), vocabulary.size)
    read = np.array([bool(text) and state.read(text) is not None for text in vocabulary.tokens])
    wrong = [vocabulary.tokens[token] for token in np.flatnonzero(mask != read)]
    assert not wrong, type(state.mode).__name__
    assert mask.any()


@pytest.mark.parametrize(("name", "text"), cases(), ids=[name for name, _ in cases()])
def test_masks_at_hard_cuts(masks: SyntaxMasks, name: str, text: str) -> None:
    data = text.partition(HOPELESS)[0].removesuffix(VALID).encode()
    chance = random.Random(name)
    for cut in {len(data), *(chance.randrange(len(data) + 1) for _ in range(4))}:
        state = State.start().run(data[:cut])
        assert state is not None
        check(masks, state)


def test_masks_at_random_cuts_of_real_files(masks: SyntaxMasks) -> None:
    chance = random.Random(13)
    for path in chance.sample(library_files(), 60):
        data = path.read_bytes()
        state = State.start().run(data[: chance.randrange(min(len(data), 20_000) + 1)])
        if state is not None:  # a byte order mark
            check(masks, state)


def test_masks_inside_replacement_fields(masks: SyntaxMasks) -> None:
    for text in (
        *("f'{", "f'{a", "f'{a!", "f'{a!r", "f'{a:", "f'{a:{", "f'{a[", "f'{a}", "f'}", "f'''{a:'", "f'{a\n", "rf'\\"),
        *(
            "f'\\",
            "f'\\N",
            "f'\\N{",
            "f'\\N{A",
            "f'\\x",
            "f'\\x4",
            "f'{f\"{",
            "f'{{",
            "f'{a=",
            "f'{a:{b}",
            "f'{x.",
            "f'{1",
        ),
    ):
        state = State.start().run(text.encode())
        assert state is not None
        check(masks, state)


def test_masks_are_shared_between_stacks_with_the_same_top(masks: SyntaxMasks) -> None:
    one = State.start().run(b"x = f(a, b")
    other = State.start().run(b"class A:\n    def g(self):\n        y = [h(c, d")
    assert one is not None
    assert other is not None
    for state in (one, other):
        check(masks, state)
