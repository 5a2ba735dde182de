"""From raw model output to what an editor inserts: the text, and the bytes that it replaces.

Pure and torch-free: knows no model and no protocol. The assistant calls `trim` last; the language server calls it
again for every answer that it makes from a cache, because caches hold raw text. The rules are in `text_rules`.
"""

from __future__ import annotations

from dataclasses import dataclass

from decoding.hole import LINE_END, Hole, scan
from decoding.text_rules import BLOCK_RULES, LINE_RULES, TEXT_RULES, cut_half_line, first_line


@dataclass(frozen=True, slots=True)
class Trimmed:
    """`text` replaces the UTF-8 bytes [start, end) of the document, all on the cursor's line."""

    text: str
    start: int
    end: int


def trim(
    raw: str, *, text: str, offset: int, finished: bool, multiline: bool, language: str = "python"
) -> Trimmed | None:
    """The suggestion for the cursor at `offset` bytes into `text`, None where nothing worth showing is left.

    `raw` is what the model wrote after the cursor. `finished`: it stopped by itself, not by budget or cancellation.
    Without `multiline` only the rest of the line is kept. Rules about blocks apply to Python only.
    """
    hole = Hole.at(text, offset)
    return trim_at(raw, hole, offset, finished=finished, multiline=multiline, language=language)


def trim_at(
    raw: str, hole: Hole, offset: int, *, finished: bool, multiline: bool, language: str = "python"
) -> Trimmed | None:
    """`trim` for who has looked at the hole already; `offset` is its cursor, in bytes of the document."""
    kept = LINE_END.sub("\n", raw)
    length = len(kept)
    for rule in TEXT_RULES if multiline else (*TEXT_RULES, first_line):
        kept = rule(kept, hole)
    if not finished and len(kept) == length:
        kept = cut_half_line(kept, hole)
    for rule in (*LINE_RULES, *BLOCK_RULES) if language == "python" else LINE_RULES:
        kept = rule(kept, hole)
    kept, replaced = cover(kept, hole)
    if not kept.strip() or kept == hole.after[:replaced]:
        return None
    end = offset + len(hole.after[:replaced].encode("utf-8", "surrogatepass"))
    return Trimmed(kept.replace("\n", hole.newline), offset, end)


def cover(text: str, hole: Hole) -> tuple[str, int]:
    """The text, and how many characters after the cursor it replaces.

    Closers and quotes that the text writes itself replace those that the editor already typed. Text that ends as
    the line goes on loses that overlap. Several lines that cannot be joined with what stays behind become one.
    """
    after = hole.after.rstrip()
    if not after:
        return text, 0
    replaced, written = _closers(text, hole)
    rest = after[replaced:]
    if replaced and rest and text[written:].startswith(rest.lstrip()):
        return text, len(after)
    if "\n" in text and rest:
        head = text.split("\n", 1)[0]
        if head.rstrip().endswith(after):
            return text, len(after)
        owed_by_text = not replaced and not rest.strip(")]}\"'") and not scan(text, hole.inside).unmatched
        if not owed_by_text:
            text = head.rstrip()
            replaced, _ = _closers(text, hole)
    if not replaced:
        # With the cursor inside a word (`retu|rn x`) any overlap is the rest of that word; elsewhere two characters may
        # stand there twice for a reason.
        inside = _word(hole.before[-1:]) and _word(after[:1])
        text = text[: len(text) - _overlap(text, after, 1 if inside else 3)]
    return text, replaced


def _closers(text: str, hole: Hole) -> tuple[int, int]:
    """How many characters after the cursor are closers that `text` writes too, and where its last one ends."""
    replaced = written = 0
    for index, token in scan(text, hole.inside).unmatched:
        ahead = hole.after[replaced:]
        start = replaced + len(ahead) - len(ahead.lstrip(" \t"))
        if not hole.after.startswith(token, start):
            break
        replaced, written = start + len(token), index + len(token)
    return replaced, written


def _overlap(text: str, after: str, least: int) -> int:
    """Length of the longest end of `text` that `after` begins with, whole words: all of it, or `least` and more."""
    for size in range(min(len(text), len(after)), 0, -1):
        if not text.endswith(after[:size]) or (size < least and size < len(after)):
            continue
        splits_word = size < len(after) and _word(after[size - 1]) and _word(after[size])
        if not splits_word:
            return size
    return 0


def _word(character: str) -> bool:
    return bool(character) and (character.isalnum() or character == "_")
