"""Verification by sample-and-walk: pure functions of a tree, the target's logits and a constraint.

Knows no model and no cache. At each node the target's next token is chosen exactly as plain decoding would
choose it; if a child of the node carries that token the walk goes on there, else the token is the bonus and the
round ends. Exact for any proposal, since a draft decides only how far one pass gets, never what is chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from decoding.draft_tree import DraftTree
from decoding.models.target import TreeLogits
from decoding.sampling import Sampling, choose
from grammars.constraint import Constraint


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one pass decided.

    Attributes:
        path: rows whose keys and values stay, from row 0 (the root) downwards; len(path) - 1 drafts accepted.
        token_ids: the tokens emitted by the pass: the accepted drafts and, last, the bonus. Ends early with an
            end-of-text token, which has no row. Empty only where the constraint allowed nothing at the root.
        state: the constraint's state after `token_ids` (before an end token), or None without a constraint.
        ended: whether the last token is an end-of-text token.
        otherwise: the state after `token_ids` of what counts once the constraint allows nothing; None where nothing
            else does.
        dropped: the constraint allowed nothing at some node, and `state` is that of `otherwise` since.
        exhausted: nothing at all was allowed at some node, so that the text had to stop there.
    """

    path: tuple[int, ...]
    token_ids: tuple[int, ...]
    state: Constraint | None
    otherwise: Constraint | None = None
    dropped: bool = False
    ended: bool = False
    exhausted: bool = False


def verify(
    tree: DraftTree,
    scored: TreeLogits,
    state: Constraint | None,
    sampling: Sampling,
    context: Sequence[int],
    end_token_ids: frozenset[int],
    otherwise: Constraint | None = None,
) -> Verdict:
    """Walk the tree with the target's own choices.

    Args:
        tree: n proposed nodes.
        scored: logits of the n + 1 rows.
        state: the constraint after `context`, which masks every node and the bonus; None in the modes `off` and
            `draft`.
        sampling: how the target chooses.
        context: all tokens before the pass, the root last.
        end_token_ids: tokens that end the text.
        otherwise: takes the place of `state` from the first node on at which that allows nothing (an empty mask opens
            the constraint); None: the text stops there.
    """
    nodes = enumerate(zip(tree.parents.tolist(), tree.token_ids.tolist(), strict=True), 1)
    best_ids, best_logits = scored.top_ids.tolist(), scored.top_logits.tolist()
    tokens = list(context) if sampling.reads_context else []
    path = [0]
    emitted: list[int] = []
    dropped = False
    while True:
        row = path[-1]
        token = choose(scored.logits[row], best_ids[row], best_logits[row], state, sampling, tokens)
        if token is None and otherwise is not None:
            state, otherwise, dropped = otherwise, None, True
            token = choose(scored.logits[row], best_ids[row], best_logits[row], state, sampling, tokens)
        if token is None:
            return Verdict(tuple(path), tuple(emitted), state, otherwise, dropped, exhausted=True)
        emitted.append(token)
        if token in end_token_ids:
            return Verdict(tuple(path), tuple(emitted), state, otherwise, dropped, ended=True)
        state = state.advance(token) if state is not None else None
        otherwise = otherwise.advance(token) if otherwise is not None else None
        # Children come after their parents, so that one pass over the nodes serves the whole walk.
        child = next((node for node, (parent, drafted) in nodes if parent == row - 1 and drafted == token), None)
        if child is None:
            return Verdict(tuple(path), tuple(emitted), state, otherwise, dropped)
        tokens.append(token)
        path.append(child)
