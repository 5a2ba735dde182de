"""The tokens of real files under a real tokenizer file: none may be forbidden, and gaps may end where they end."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from grammars.constraint import bit_is_set
from grammars.python_constraint import PythonConstraint
from grammars.vocabulary import Vocabulary
from tests.grammars.syntax.corpus import NO_DATA, data_folder, library_files, parses, records
from tests.tiny_folder import make_tokenizer


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tokenizer, PythonConstraint]:
    path: Path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    tokenizer = make_tokenizer()
    tokenizer.save(str(path))
    return tokenizer, PythonConstraint(Vocabulary.from_file(path, end=[tokenizer.token_to_id("<|endoftext|>")]))


def test_no_true_token_is_forbidden(tokens: tuple[Tokenizer, PythonConstraint]) -> None:
    tokenizer, constraint = tokens
    chance = random.Random(21)
    for path in chance.sample(library_files(), 40):
        text = path.read_text(encoding="utf-8")[:20_000]
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        for start in (0, chance.randrange(len(ids) + 1)):
            begin = len(constraint.vocabulary.decode(ids[:start]))
            state = constraint.open(text.encode(), begin, suffix=False)
            assert state.off_reason is None, path
            good = state.validate(ids[start : start + 3000])
            assert good == len(ids[start : start + 3000]), (path, start + good)


def test_masks_hold_the_true_token(tokens: tuple[Tokenizer, PythonConstraint]) -> None:
    tokenizer, constraint = tokens
    chance = random.Random(22)
    for path in chance.sample(library_files(), 15):
        text = path.read_text(encoding="utf-8")[:5_000]
        state = constraint.open(b"", 0)
        for token in tokenizer.encode(text, add_special_tokens=False).ids[:150]:
            mask = state.allowed()
            assert mask is not None
            assert bit_is_set(mask, token)
            following = state.advance(token)
            assert following is not None
            state = following


def test_real_gaps_may_be_filled_as_they_were_and_nowhere_end_broken(
    tokens: tuple[Tokenizer, PythonConstraint],
) -> None:
    folder = data_folder("fresh_fim")
    if folder is None:
        pytest.skip(NO_DATA)
    tokenizer, constraint = tokens
    end = min(constraint.vocabulary.end)
    files = {record["file"]: record["text"] for record in records(folder, "files*")}
    for point in random.Random(23).sample(list(records(folder, "points*")), 25):
        text = files[point["file"]]
        before, gap, after = text[: point["start"]], text[point["start"] : point["end"]], text[point["end"] :]
        if not parses(text) or "<|" in gap:
            continue
        state = constraint.open((before + after).encode(), len(before.encode()))
        written = b""
        for token in tokenizer.encode(gap, add_special_tokens=False).ids:
            if state.permits(end):
                assert parses(before + written.decode("utf-8", "replace") + after), (point["id"], written)
            following = state.advance(token)
            assert following is not None, (point["id"], written)
            state, written = following, written + constraint.vocabulary.tokens[token]
        assert state.permits(end), point["id"]
