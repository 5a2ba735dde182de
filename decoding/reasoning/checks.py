"""What can be known about a Python text without running it: does it compile, and what do pyflakes' checks say.

Knows the compiler and pyflakes. Must not know where the text came from.
"""

from __future__ import annotations

import ast
import io
import tokenize
import warnings
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from pyflakes.checker import Checker
from pyflakes.messages import Message, UndefinedName


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding of pyflakes: 1-based line, what it says, the names it speaks of."""

    line: int
    text: str
    names: tuple[str, ...]
    undefined: bool


def syntax_error(text: str) -> str | None:
    """Why `text` does not compile, in one line; None where it does. Nothing of it is run."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "<text>", "exec", dont_inherit=True)
    except SyntaxError as error:
        return f"line {error.lineno}: {error.msg}"
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        return f"it cannot be compiled ({type(error).__name__})"
    return None


def findings(text: str) -> list[Finding]:
    """What pyflakes finds, in the order of lines; nothing for a text that does not parse."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
        messages: Iterable[Message] = Checker(tree, "<text>").messages
    except (SyntaxError, ValueError, RecursionError):
        return []
    found = [
        Finding(
            line=int(message.lineno),
            text=str(message.message % message.message_args),
            names=tuple(str(argument) for argument in message.message_args),
            undefined=isinstance(message, UndefinedName),
        )
        for message in messages
    ]
    return sorted(found, key=lambda finding: finding.line)


def new_findings(before: str, after: str) -> list[str]:
    """What pyflakes says of `after` and did not say of `before`, as often as it is new."""
    known = Counter(finding.text for finding in findings(before))
    return list((Counter(finding.text for finding in findings(after)) - known).elements())


def lines_inside_strings(text: str) -> frozenset[int]:
    """The 0-based lines that begin inside a string; nothing for a text that cannot be tokenised."""
    inside: set[int] = set()
    opened: list[int] = []
    starts = {tokenize.STRING, *(getattr(tokenize, name) for name in ("FSTRING_START",) if hasattr(tokenize, name))}
    end_of_f_string = getattr(tokenize, "FSTRING_END", None)
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.STRING:
                inside.update(range(token.start[0], token.end[0]))
            elif token.type in starts:
                opened.append(token.start[0])
            elif token.type == end_of_f_string:
                inside.update(range(opened.pop(), token.end[0]))
    except (tokenize.TokenError, SyntaxError):
        return frozenset()
    return frozenset(inside)


def in_words(code: str, offset: int) -> bool:
    """Whether the character at `offset` of code, which may be unfinished, is in a comment or a docstring: words for
    readers, which change nothing."""
    begun = code[:offset]
    line = begun.rpartition("\n")[2]
    quotes = line.count('"') + line.count("'")
    if "#" in line and quotes % 2 == 0:
        return True
    for mark in ('"""', "'''"):
        before = begun.split(mark)
        if len(before) % 2 == 0:
            return not before[-2].rpartition("\n")[2].strip(" \trR")
    return False
