"""Completions for people: the file around the cursor with the suggestion in it, and one line of statistics.

Knows rich. Must not know how a completion is made.
"""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from decoding.messages import Completion, Snapshot
from decoding.reasoning.requests import CommandResult

_LINES_AROUND = 8


def show_completion(completion: Completion, snapshot: Snapshot, console: Console | None = None) -> None:
    """Print before, suggestion (highlighted) and after, then the statistics."""
    console = console or Console(highlight=False)
    data = snapshot.text.encode("utf-8", "surrogatepass")
    before = data[: completion.start].decode("utf-8", "replace")
    after = data[completion.end :].decode("utf-8", "replace")
    replaced = data[completion.start : completion.end].decode("utf-8", "replace")
    head = "".join(before.splitlines(keepends=True)[-_LINES_AROUND:])
    tail = "".join(after.splitlines(keepends=True)[:_LINES_AROUND])
    body = Text(head, style="dim")
    # Without colours the marks still show where the suggestion begins and ends.
    marks = ("", "") if console.is_terminal and not console.no_color else ("⟦", "⟧")
    body.append(marks[0] + completion.text + marks[1], style="bold bright_green")
    if replaced and not completion.text.endswith(replaced):
        body.append(replaced, style="strike dim")
    body.append(tail.rstrip("\n"), style="dim")
    console.print(body, soft_wrap=True)
    if not completion.text:
        console.print(Text("(nothing to suggest here)", style="yellow"))
    console.print(Text(statistics_line(completion), style="cyan"))


def statistics_line(completion: Completion | CommandResult) -> str:
    """One line: how many tokens, how fast, by what."""
    stats = completion.stats
    parts = [
        f"{stats.tokens} tokens in {stats.steps} passes ({stats.mean_accepted:.2f} a pass)",
        f"{stats.tokens_per_second:.0f} tokens/s",
        f"prompt {stats.prompt_tokens} tokens in {stats.prefill_ms:.0f} ms",
        f"stopped at: {completion.stop_reason}",
        f"{completion.model} on {completion.runtime}",
    ]
    if stats.constraint_off_reason:
        parts.append(f"constraint off: {stats.constraint_off_reason}")
    return " · ".join(parts)
