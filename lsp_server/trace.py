"""The trace of one completion: what was drafted in each round, what became of it, and how long it took.

Knows rounds of the engine and a vocabulary; draws them in a terminal with rich. Must not know how drafts are made.
The same trace as a page to step through: `trace_page.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

if TYPE_CHECKING:
    from decoding.draft_tree import DraftTree
    from decoding.engine import Round
    from grammars.vocabulary import Vocabulary

Fate = Literal["accepted", "rejected", "refused", "left out"]
"""accepted: on the path. rejected: verified, the target chose otherwise. refused: cut by the constraint before the
target saw it. left out: not probable enough to be worth its row."""

_MOST_LEFT_OUT = 12
_STYLES: dict[Fate, str] = {
    "accepted": "bold green",
    "rejected": "default",
    "refused": "red strike",
    "left out": "dim",
}
_STAGES = ("propose", "prune", "forward", "verify", "observe")


@dataclass(frozen=True, slots=True)
class Node:
    """One drafted token. `parent` indexes the same list, -1 is the root; `probability` is that of the whole path."""

    text: str
    parent: int
    probability: float
    source: str
    fate: Fate


@dataclass(frozen=True, slots=True)
class Step:
    """One round: the token it started from, its drafts, what it emitted (the bonus last) and milliseconds a stage."""

    root: str
    nodes: tuple[Node, ...]
    emitted: tuple[str, ...]
    ms: dict[str, float]
    note: str = ""


@dataclass(slots=True)
class Trace:
    """The rounds of one completion so far."""

    vocabulary: Vocabulary
    steps: list[Step] = field(default_factory=list)
    _last: str = "…"

    def add(self, round_: Round) -> None:
        """Take down a round (the engine reuses nothing of it)."""
        text = self._text
        emitted = tuple(text(token) for token in round_.token_ids)
        ms = {stage: round(getattr(round_.ms, stage), 3) for stage in _STAGES}
        note = "the constraint allowed nothing" if round_.verdict.exhausted else ""
        self.steps.append(Step(self._last, tuple(self._nodes(round_)), emitted, ms, note))
        self._last = emitted[-1] if emitted else self._last

    def show(self, console: Console) -> None:
        """Draw every round as a tree."""
        for number, step in enumerate(self.steps, 1):
            console.print(_drawn(number, step))
        total = {stage: sum(step.ms[stage] for step in self.steps) for stage in _STAGES}
        console.print(Text("All rounds: " + _times(total), style="cyan"))

    def _nodes(self, round_: Round) -> list[Node]:
        tree, accepted = round_.pruned.tree, set(round_.verdict.path)
        nodes = [
            self._node(tree, node, "accepted" if node + 1 in accepted else "rejected", int(tree.parents[node]))
            for node in range(len(tree))
        ]
        nodes += [
            Node(self._text(token), parent, 0.0, "", "refused")
            for parent, token in round_.pruned.refused
            if parent < len(tree)  # below nodes that were left out afterwards nothing is shown
        ]
        return nodes + self._left_out(round_)

    def _left_out(self, round_: Round) -> list[Node]:
        """Proposed children of the root and of verified nodes that were neither verified nor refused."""
        tree, proposed = round_.pruned.tree, round_.proposed
        verified = {
            (parent, token): node
            for node, (parent, token) in enumerate(zip(tree.parents.tolist(), tree.token_ids.tolist(), strict=True))
        }
        refused = set(round_.pruned.refused)
        place = {-1: -1}
        found = []
        for node, (parent, token) in enumerate(
            zip(proposed.parents.tolist(), proposed.token_ids.tolist(), strict=True)
        ):
            if parent not in place:
                continue
            key = (place[parent], token)
            if key in verified:
                place[node] = verified[key]
            elif key not in refused:
                found.append(self._node(proposed, node, "left out", place[parent]))
        return sorted(found, key=lambda node: -node.probability)[:_MOST_LEFT_OUT]

    def _node(self, tree: DraftTree, node: int, fate: Fate, parent: int) -> Node:
        probability = math.exp(min(0.0, float(tree.log_probs[node])))
        source = tree.sources[node] if tree.sources else ""
        return Node(self._text(int(tree.token_ids[node])), parent, round(probability, 4), source, fate)

    def _text(self, token: int) -> str:
        vocabulary = self.vocabulary
        known = token < vocabulary.size and vocabulary.tokens[token]
        return vocabulary.decode([token]).decode("utf-8", "replace") if known else f"<{token}>"


def visible(text: str) -> str:
    """A token's text with its blanks shown."""
    return text.replace("\n", "⏎").replace("\t", "⇥").replace("\r", "␍").replace(" ", "·")


def _drawn(number: int, step: Step) -> Tree:
    head = Text(f"round {number} ", style="bold")
    head.append(f"{_times(step.ms)}   ", style="cyan")
    head.append("".join(visible(text) for text in step.emitted) or step.note, style="bold green")
    drawn = Tree(head, guide_style="dim")
    branches = {-1: drawn.add(Text(f"{visible(step.root)}  (root)", style="bold"))}
    for index, node in enumerate(step.nodes):
        label = Text(visible(node.text) or "∅", style=_STYLES[node.fate])
        if node.fate == "refused":
            label.append("  refused by the constraint", style="red not strike")
        else:
            label.append(f"  {node.probability:.2f} {node.source}", style="dim not bold")
            if node.fate == "left out":
                label.append("  not worth its row", style="dim")
        branches[index] = branches[node.parent].add(label)
    if step.emitted:
        drawn.add(Text(f"bonus {visible(step.emitted[-1])}", style="bold green"))
    return drawn


def _times(ms: dict[str, float]) -> str:
    return " · ".join(f"{stage} {took:.2f} ms" for stage, took in ms.items())
