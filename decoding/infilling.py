"""Infilling: what of a document decides a completion: its prompt, what guides the text, and what of it is shown.

Knows documents, cursors, prompt layouts and the constraints of Python. Must not know the model's passes, its caches or
how tokens are chosen.
"""

from __future__ import annotations

from decoding.engine import Guide
from decoding.fitting import Fitted, cut_to_fit
from decoding.messages import EngineOptions, Snapshot
from decoding.models.loading import LoadedModel
from decoding.names import NamesAround
from decoding.prompts import Layout, Prompt
from decoding.stopping import StopRule
from decoding.trimming import Trimmed, trim_at
from decoding.workspace import Workspace
from decoding.writer import Text
from grammars.constraint import Both, Constraint, Unconstrained
from grammars.healing import HealingConstraint
from grammars.python_constraint import PythonConstraint
from grammars.scope_constraint import ScopeConstraint
from grammars.scope_documents import ScopeDocuments
from grammars.signatures import signatures_in_scope
from grammars.well_known_imports import WELL_KNOWN


class Infilling:
    """The documents that are completed, in the tokens of one model.

    Attributes:
        layout: how prompts look.
        python: the syntax, `names` and `scopes` what exists where, `workspace` the modules beside a document.
        room: tokens of the longest prompt with its text.
    """

    def __init__(self, model: LoadedModel, room: int) -> None:
        self._encode, self._vocabulary = model.encode, model.vocabulary
        ends = model.folder.end_token_ids
        self.layout = Layout(
            encode=model.encode,
            vocabulary=model.vocabulary,
            start=model.start,
            fallback=ends[0] if ends else 0,
            fim=model.folder.fim,
        )
        self.python = PythonConstraint(model.vocabulary)
        self.names = ScopeConstraint(model.vocabulary)
        self.scopes = ScopeDocuments()
        self.workspace = Workspace(self.scopes)
        self.room = room

    def prompt(self, snapshot: Snapshot, options: EngineOptions) -> Prompt:
        """What the model reads; declarations from outside of the window are at the cost of that."""
        data = snapshot.text.encode("utf-8", "surrogatepass")
        before, after = self._windows(options)
        signatures = min(options.signature_tokens, before // 2) if snapshot.language == "python" else 0
        prompt = self.layout.infill(data, snapshot.offset, before - signatures, after)
        index = self.scopes.index(snapshot.uri, data) if signatures else None
        if index is None:
            return prompt
        shown_before, shown_after = self.layout.shown(prompt)
        text = signatures_in_scope(
            index,
            snapshot.offset,
            (snapshot.offset - shown_before, snapshot.offset + shown_after),
            signatures,
            lambda line: len(self._encode(line)),
            self.workspace.around(snapshot.uri),
        )
        return self.layout.behind(prompt, text)

    def _windows(self, options: EngineOptions) -> tuple[int, int]:
        """Tokens before and after the cursor that fit into the context beside the answer."""
        room = self.room - options.max_tokens - 8
        after = min(options.suffix_tokens, room // 4) if self.layout.fim is not None else 0
        return min(options.prefix_tokens, room - after), after

    def guide(self, prompt: Prompt, snapshot: Snapshot, options: EngineOptions) -> Guide:
        """What holds the text to the file around it. Token healing is always enforced."""
        free = self._healed(prompt, Unconstrained())
        if options.constraint == "off" or snapshot.language != "python":
            return Guide.enforcing(free)
        data = snapshot.text.encode("utf-8", "surrogatepass")
        start = snapshot.offset - len(prompt.healed)
        # What was taken back is generated again, so the state stands before it.
        syntax = self.python.open(data, snapshot.offset, again=len(prompt.healed))
        if syntax.off_reason is not None:
            return Guide(free, free, off_reason=syntax.off_reason)
        state = self._healed(prompt, self._scoped(syntax, data, start, snapshot, options))
        return Guide.enforcing(state, free) if options.constraint == "enforce" else Guide(free, state)

    def _scoped(
        self, syntax: Constraint, data: bytes, start: int, snapshot: Snapshot, options: EngineOptions
    ) -> Constraint:
        """`syntax` together with the names in scope at the cursor."""
        if options.scope == "off":
            return syntax
        index = self.scopes.index(snapshot.uri, data)
        if index is None:
            return syntax
        importable = WELL_KNOWN if options.imports else ()
        find_module = self.workspace.around(snapshot.uri)
        names = self.names.open(index, snapshot.offset, options.scope, start, find_module, importable)
        return Both(syntax, names) if names.off_reason is None else syntax

    def _healed(self, prompt: Prompt, then: Constraint) -> Constraint:
        return HealingConstraint(self._vocabulary, prompt.healed, then) if prompt.healed else then

    def names_around(self, snapshot: Snapshot, options: EngineOptions) -> NamesAround | None:
        """What says which names a suggestion gets wrong, None where names do not count."""
        if options.constraint != "enforce" or options.scope == "off" or snapshot.language != "python":
            return None
        index = self.scopes.index(snapshot.uri, snapshot.text.encode("utf-8", "surrogatepass"))
        return NamesAround(index, snapshot.offset, options.imports) if index is not None else None

    def shown(
        self,
        text: Text,
        rule: StopRule,
        snapshot: Snapshot,
        options: EngineOptions,
        names: NamesAround | None = None,
    ) -> Fitted:
        """What of a raw text is shown: by the rules of hygiene, and where the constraint is enforced, only what leaves
        the file in order, with names that exist."""
        raw, _, reason, _ = text
        finished = reason not in ("length", "cancelled")

        def inserted(text: str, whole: bool) -> Trimmed | None:
            return trim_at(
                text,
                rule.hole,
                snapshot.offset,
                finished=whole,
                multiline=rule.several_lines,
                language=snapshot.language,
            )

        if options.constraint != "enforce" or snapshot.language != "python":
            return Fitted(raw, inserted(raw, finished), cut=False)
        gap = self.python.gap(snapshot.text.encode("utf-8", "surrogatepass"), snapshot.offset)

        def fits(text: Trimmed) -> bool:
            put = text.text.encode("utf-8", "surrogatepass")
            return gap.fits(put, text.end - text.start) and (names is None or names.wrong(text) is None)

        return cut_to_fit(raw, finished, inserted, fits)
