"""The rules that make raw model output fit to be shown: each a small pure function for one complaint of users.

Pure and torch-free: knows text, lines and brackets, no model and no protocol. A rule takes the text (its lines end
in "\\n") and the hole it goes into, and may only shorten the text or change its blanks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from itertools import pairwise

from decoding.hole import Hole, Opened, indentation, opens_block, scan, statements

Rule = Callable[[str, Hole], str]

# The text alone ---------------------------------------------------------------------------------------------

_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f\ufffd\ud800-\udfff]")


def without_control_characters(text: str, hole: Hole) -> str:
    """Ends before a control character or half a character."""
    return _before(_CONTROL, text)


_CHAT = re.compile(
    r"""^[ \t]*(?:```|~~~|(?:\#[ \t]*)?(?:
      here(?:'s|\ is|\ are)\b | sure[,!.\ ] | certainly[,!.\ ] | of\ course[,!.\ ] | as\ an\ ai\b
    | i\ (?:hope|think|have|would|am|can)\b | i'm\b | let\ me\ (?:know|explain)\b | let's\ (?:test|try|see)\b
    | (?:example\ )?usage(?:\ example)?s?: | explanation: | output: | test\ (?:the|your)\ (?:function|code|class)\b
    | (?:this|the\ above)\ (?:code|function|method|class|script)\ (?:is|will|does|takes|should|defines)\b
    | in\ this\ (?:example|code)\b | please\ (?:note|let|provide|replace)\b | you\ can\ (?:use|also|now|add)\b
    | (?:(?:add|put|write)\ )?your\ (?:code|implementation)\b
    | (?:\.\.\.\ ?)?(?:rest\ of(?:\ the|\ your)?|existing)\ (?:code|implementation)\b
    ))""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)


def without_chat(text: str, hole: Hole) -> str:
    """Ends before a Markdown fence and before a line that talks to the reader instead of being code.

    A sentence that the user began before the cursor may be finished, and a docstring may say what it likes.
    """
    for match in _CHAT.finditer(text):
        begun_by_user = match.start() == 0 and hole.before.strip()
        if not begun_by_user and scan(hole.before + text[: match.start()]).quote not in ("'''", '"""'):
            return text[: match.start()]
    return text


_SECRET = re.compile(
    r"""(?<![A-Za-z0-9])(?:AKIA[0-9A-Z]{16} | gh[pousr]_\w{20,} | github_pat_\w{20,} | glpat-[\w-]{16,}
    | sk-[\w-]{20,} | sk_live_\w{16,} | xox[abprs]-[\w-]{10,} | AIza[\w-]{30,} | hf_\w{30,}
    | eyJ[\w-]{10,}\.[\w-]{10,} | -----BEGIN\ [A-Z\ ]*PRIVATE\ KEY)""",
    re.VERBOSE,
)
_SECRET_BY_NAME = re.compile(
    r"""(?:password|passwd|pwd|secret|token|api_?key|access_?key|private_?key|credential)s?
    \w*["'\]]*\s*(?::\s*\w+\s*)?[=:]\s*[bru]{0,2}["'](?=[^"'\s]*\d)(?=[^"'\s]*[A-Za-z])([^"'\s]{16,})""",
    re.IGNORECASE | re.VERBOSE,
)


def without_secrets(text: str, hole: Hole) -> str:
    """Ends before a literal that looks like a key, token or password: it is somebody's, or made up."""
    line = hole.before + text
    known, named = _SECRET.search(text), _SECRET_BY_NAME.search(line)
    starts = [match.start() for match in (known,) if match]
    starts += [match.start(1) - len(hole.before) for match in (named,) if match]
    if not starts:
        return text
    head = text[: max(0, min(starts))]
    return re.sub(r"""[ \t]*[bBrRuU]{0,2}["']{1,3}\w*$""", "", head)


def first_line(text: str, hole: Hole) -> str:
    """Keeps the rest of the cursor's line only."""
    return text.split("\n", 1)[0]


# How it ends ------------------------------------------------------------------------------------------------

_HALF_WORD = re.compile(r"\w+$")
_WAITING = re.compile(r"(?:\s|[=+\-*/%|&^<>@~!.\\]|\b(?:and|or|not|in|is|if|else|for|as|import|from|lambda|await)\b)+$")


def cut_half_line(text: str, hole: Hole) -> str:
    """Cuts text whose budget ended mid-way: after its last whole statement, or its last whole word in one line."""
    *whole, last = text.split("\n")
    for count in range(len(whole), 0, -1):
        kept = whole[:count]
        closes = scan(hole.before + "\n".join(kept)).balanced and not kept[-1].endswith("\\")
        decorates = kept[-1].lstrip().startswith("@")
        if kept[-1].strip() and closes and not decorates and not opens_block(kept[-1]):
            return "\n".join(kept)
    if any(line.strip() for line in whole):
        return "\n".join(whole)
    return "\n".join([*whole, _cut_half_word(last, () if whole else hole.inside)])


def _cut_half_word(line: str, inside: tuple[Opened, ...]) -> str:
    """Drops a half-written word or string, then operators that wait for an operand."""
    state = scan(line, inside)
    if state.quote and state.open == inside and not state.unmatched:
        return line[: line.rfind(" ")] if " " in line.strip() else line
    begun = next((opened for opened in state.open if opened.is_string and opened.at >= 0), None)
    if begun is not None:
        return _WAITING.sub("", re.sub(r"\b[bfrtuBFRTU]{1,2}$", "", line[: begun.at]))
    cut = _HALF_WORD.sub("", line)
    return _WAITING.sub("", cut) if cut.strip() else line


def without_trailing_blanks(text: str, hole: Hole) -> str:
    """No blank lines and no blanks at the end, and no blanks at line ends."""
    return re.sub(r"[ \t]+(?=\n)", "", text.rstrip())


_CYCLE_LINES = 4
"""Longest cycle of lines that counts as one thing repeated."""
_INLINE_CYCLE = re.compile(r"(.{2,40}?)\1{4,}$")


def without_runaway_repetition(text: str, hole: Hole) -> str:
    """Keeps one round of what goes round in circles: lines (with those above the cursor), or a line's end."""
    match = _INLINE_CYCLE.search(text)
    if match and len(match.group()) >= 32 and re.search(r"[^\W\d_]", match.group(1)):
        text = text[: match.end(1)]
    given = [line for line in hole.above[-2 * _CYCLE_LINES :] if line.strip()]
    lines = [*given, *(hole.before + text).split("\n")]
    for end in range(len(given) + 1, len(lines) + 1):
        for size in range(1, _CYCLE_LINES + 1):
            rounds = _rounds(lines[:end], size)
            repeats_line_above = rounds == 2 and size == 1 and end == len(given) + 1
            if rounds >= 3 or repeats_line_above:
                second_round = max(end - (rounds - 1) * size, len(given))
                return "\n".join(lines[len(given) : second_round])[len(hole.before) :]
    return text


def _rounds(lines: list[str], size: int) -> int:
    """How often the last `size` lines stand there in a row; 1 where they say nothing (no letters)."""
    cycle = lines[len(lines) - size :]
    if len(lines) < 2 * size or not any(re.search(r"[^\W\d_]{2}", line) for line in cycle):
        return 1
    rounds = 1
    while lines[max(0, len(lines) - (rounds + 1) * size) : len(lines) - rounds * size] == cycle:
        rounds += 1
    return rounds


# The lines around it ----------------------------------------------------------------------------------------

_SAYS_LITTLE = re.compile(r"\s*(?:return|continue|break|pass|else:|finally:|\W*)\s*")


def without_repeated_next_lines(text: str, hole: Hole) -> str:
    """Ends where it arrives at the lines that follow the cursor anyway.

    One telling line is enough; closers and one-word statements count only if all that comes after repeats too.
    """
    following = hole.following
    lines = (hole.before + text).split("\n")
    for index, line in enumerate(lines):
        if not following or line.rstrip() != following[0]:
            continue
        rest = [later.rstrip() for later in lines[index:] if later.strip()]
        if not _SAYS_LITTLE.fullmatch(line) or (index and rest == following[: len(rest)]):
            return "\n".join(lines[:index])[len(hole.before) :]
    return text


def in_file_indentation(text: str, hole: Hole) -> str:
    """Writes the lines after the first with the file's own indentation: tabs, or its number of spaces."""
    head, *lines = text.split("\n")
    base = indentation(hole.before + head)
    step = _step([hole.before + head, *lines], hole.indent)
    if not lines or step == hole.indent:
        return text
    return "\n".join([head, *(_restyled(line, step, hole.indent, base) for line in lines)])


def _step(lines: list[str], unit: str) -> str:
    """One level of indentation as the text itself writes it; `unit` where it does not differ or does not say."""
    leads = [indentation(line) for line in lines[1:] if line.strip()]
    if unit == "\t":
        width = math.gcd(*(len(lead) for lead in leads if lead and "\t" not in lead))
        return " " * min(width, 4) or unit
    if any("\t" in lead for lead in leads):
        return "\t"
    for outer, inner in pairwise(lines):
        base, lead = indentation(outer), indentation(inner)
        if opens_block(outer) and len(lead) > len(base) and lead.startswith(base):
            return lead[len(base) :]
    return unit


def _restyled(line: str, step: str, unit: str, base: str) -> str:
    lead = indentation(line)
    outer = base if lead.startswith(base) else ""
    levels, rest = 0, lead[len(outer) :]
    while rest.startswith(step):
        levels, rest = levels + 1, rest[len(step) :]
    return outer + unit * levels + rest + line[len(lead) :]


def with_first_indentation(text: str, hole: Hole) -> str:
    """On a blank line: no deeper than the code above allows (models like to repeat the blanks before a cursor)."""
    if hole.before.strip() or text[:1] not in (" ", "\t") or hole.previous is None:
        return text
    if not scan(hole.previous).balanced:
        return text
    allowed = indentation(hole.previous) + (hole.indent if opens_block(hole.previous) else "")
    lead = indentation(text)
    return lead[: max(0, len(allowed) - len(hole.before))] + text[len(lead) :]


_CONTINUES_BLOCK = re.compile(r"\s*(?:else|elif|except|finally|case)\b")


def within_block(text: str, hole: Hole) -> str:
    """Ends before the statement that leaves the cursor's block: one less indented than the cursor's own, or no
    deeper than it where that one opens a block."""
    lines = (hole.before + text).split("\n")
    base: int | None = None
    opens = False
    for index, statement in statements(lines):
        depth = len(indentation(statement).expandtabs(8))
        closes = statement.lstrip()[0] in ")]}"
        leaves = base is not None and (depth < base or (opens and depth == base))
        if leaves and not closes and not (depth == base and _CONTINUES_BLOCK.match(statement)):
            return "\n".join(lines[:index])[len(hole.before) :]
        if base is None or closes:
            base, opens = depth, opens_block(statement)
    return text


_PARAGRAPH_END = re.compile(r"(?<=\S)[ \t]*\n[ \t]*\n\s*?(?=^[^\s)\]}])", re.MULTILINE)


def within_paragraph(text: str, hole: Hole) -> str:
    """Ends, at the top level, at the blank line before the next top-level statement: nothing dedents there."""
    if hole.before[:1].isspace() or hole.inside:
        return text
    for match in _PARAGRAPH_END.finditer(hole.before + text, len(hole.before)):
        if scan((hole.before + text)[: match.start()]).balanced:
            return (hole.before + text)[len(hole.before) : match.start()]
    return text


def _before(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return text[: match.start()] if match else text


TEXT_RULES: tuple[Rule, ...] = (
    without_control_characters,
    without_chat,
    without_secrets,
)
LINE_RULES: tuple[Rule, ...] = (
    without_runaway_repetition,
    in_file_indentation,
    without_repeated_next_lines,
    without_trailing_blanks,
)
BLOCK_RULES: tuple[Rule, ...] = (with_first_indentation, within_block, within_paragraph, without_trailing_blanks)
