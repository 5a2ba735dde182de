"""The vocabulary: bytes of ids, special tokens, slices by prefix."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from grammars.vocabulary import Vocabulary

texts = st.lists(st.binary(min_size=1, max_size=4), min_size=1, max_size=40)


@settings(deadline=None)
@given(texts, st.binary(max_size=3))
def test_with_prefix_finds_exactly_the_tokens_that_begin_so(tokens, prefix) -> None:
    vocabulary = Vocabulary.from_tokens(tokens)
    expected = {token for token, text in enumerate(tokens) if text.startswith(prefix)}
    assert set(vocabulary.with_prefix(prefix).tolist()) == expected


def test_special_tokens_have_no_text() -> None:
    vocabulary = Vocabulary.from_tokens([b"a", b"<|end|>", b"b"], special=[1], end=[1])
    assert vocabulary.tokens == (b"a", b"", b"b")
    assert vocabulary.decode([0, 1, 2]) == b"ab"
    assert 1 not in vocabulary.with_prefix(b"")


def test_a_byte_level_file_gives_back_the_bytes_of_any_text(tiny_folder) -> None:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(tiny_folder / "tokenizer.json"))
    end = tokenizer.token_to_id("<|endoftext|>")
    vocabulary = Vocabulary.from_file(tiny_folder / "tokenizer.json", [end])
    text = "def größe(x):\n\treturn '🦉' + x  # e\u0301\r\n"
    ids = tokenizer.encode(text).ids
    assert vocabulary.decode(ids) == text.encode("utf-8")
    assert vocabulary.end == {end}
    assert tokenizer.token_to_id("<|fim_middle|>") in vocabulary.special
    assert vocabulary.size == tokenizer.get_vocab_size()
