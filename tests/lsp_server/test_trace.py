"""Traces: every drafted node with its fate, in the terminal and as a page."""

from __future__ import annotations

import io
import json
import re

from rich.console import Console

from decoding.draft_tree import DraftTree, Pruned
from decoding.engine import Round, StageTimes
from decoding.messages import Completion, Stats
from decoding.verify import Verdict
from grammars.vocabulary import Vocabulary
from lsp_server.trace import Trace
from lsp_server.trace_page import page

VOCABULARY = Vocabulary.from_tokens([b"<end>", b"if", b" x", b"\n", b"</script>", b"\xc3"], special=[0], end=[0])


def round_() -> Round:
    """if > " x" accepted, "\\n" rejected, "</script>" refused below the root, one proposal left out."""
    proposed = DraftTree.from_lists([1, 2, 3, 4, 5], [-1, 0, -1, -1, 0], [-0.1, -0.2, -1.0, -1.1, -3.0], ["a"] * 5)
    tree = DraftTree.from_lists([1, 2, 3], [-1, 0, -1], [-0.1, -0.2, -1.0], ["a", "a+b", "b"])
    verdict = Verdict((0, 1, 2), (1, 2, 3), None)
    return Round((1, 2, 3), proposed, Pruned(tree, ((-1, 4), (7, 2))), verdict, StageTimes(0.1, 0.2, 10.0, 0.3, 0.4))


def trace() -> Trace:
    made = Trace(VOCABULARY)
    made.add(round_())
    made.add(round_())
    return made


def test_every_node_has_its_fate() -> None:
    step = trace().steps[1]
    assert step.root == "\n"
    assert step.emitted == ("if", " x", "\n")
    assert [(node.text, node.parent, node.fate) for node in step.nodes] == [
        ("if", -1, "accepted"),
        (" x", 0, "accepted"),
        ("\n", -1, "rejected"),
        ("</script>", -1, "refused"),
        ("\ufffd", 0, "left out"),
    ]
    assert step.nodes[1].source == "a+b"
    assert step.ms["forward"] == 10.0


def test_the_terminal_shows_tree_path_reasons_and_times() -> None:
    console = Console(record=True, width=160, file=io.StringIO())
    trace().show(console)
    text = console.export_text()
    for part in ("round 2", "if  0.90 a", "·x  0.82 a+b", "refused by the constraint", "not worth its row", "bonus ⏎"):
        assert part in text
    assert "forward 20.00 ms" in text


def test_a_page_is_whole_and_no_token_can_break_it() -> None:
    completion = Completion(
        text="", start=0, end=0, raw="", token_ids=(), stop_reason="end", model="<m>", runtime="r", drafter="auto",
        constraint="off", stats=Stats(),
    )  # fmt: skip
    text = page(trace(), completion)
    assert "&lt;m&gt;" in text
    assert "{{" not in text
    assert not re.search(r"(src|href)=", text), "nothing is loaded from elsewhere"
    encoded = re.search(r'id="data">(.*?)</script>', text, re.DOTALL)
    assert encoded is not None
    data = json.loads(encoded[1])
    assert data["steps"][0]["nodes"][3]["text"] == "</script>"
    assert len(data["steps"]) == 2
