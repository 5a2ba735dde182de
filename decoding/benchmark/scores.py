"""Scores of a suggestion against what was really written.

Pure functions of text. Must not know models or where the text comes from.
"""

from __future__ import annotations

import ast
import difflib
import re
import warnings
from collections import Counter

from pyflakes import checker, messages

_IDENTIFIER = re.compile(r"[^\W\d]\w*")


def exact_match(suggestion: str, truth: str) -> float:
    """1.0 where both are the same but for blanks at the ends."""
    return float(suggestion.strip() == truth.strip())


def edit_similarity(suggestion: str, truth: str) -> float:
    """0..1, Ratcliff-Obershelp over characters; 1.0 for two empty texts."""
    return difflib.SequenceMatcher(None, suggestion.strip(), truth.strip(), autojunk=False).ratio()


def identifier_f1(suggestion: str, truth: str) -> float:
    """F1 of the multisets of identifiers; 1.0 where neither has any."""
    mine, theirs = Counter(_IDENTIFIER.findall(suggestion)), Counter(_IDENTIFIER.findall(truth))
    if not mine and not theirs:
        return 1.0
    both = sum((mine & theirs).values())
    return 2 * both / (sum(mine.values()) + sum(theirs.values()))


def accepted_characters(suggestion: str, truth: str) -> int:
    """Leading characters that are right: what a user could accept word by word before correcting anything."""
    count = 0
    for mine, theirs in zip(suggestion, truth, strict=False):
        if mine != theirs:
            break
        count += 1
    return count


def parses(text: str) -> bool:
    """Whether the running Python parses `text`."""
    return _tree(text) is not None


def undefined_names(text: str) -> Counter[tuple[str, int]] | None:
    """How often each undefined name is used on each line (from 1), as pyflakes sees it; None where `text` does not
    parse."""
    tree = _tree(text)
    if tree is None:
        return None
    found = checker.Checker(tree).messages
    return Counter((str(m.message_args[0]), m.lineno) for m in found if isinstance(m, messages.UndefinedName))


def _tree(text: str) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
