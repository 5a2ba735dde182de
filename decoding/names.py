"""Names that a suggestion reads and that do not exist, and from where it is to be written again.

A constraint that looks at a word when it begins cannot know what becomes of it: `[resize(` may be followed by
`for resize in`, and a keyword argument by its `=`. In the finished text there is no doubt. Knows the scope index and
token bytes; must not know models or the engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from decoding.messages import Snapshot
from decoding.reasoning.requests import Replacement
from decoding.trimming import Trimmed
from grammars.constraint import Constraint
from grammars.healing import HealingConstraint
from grammars.imports import is_importable, missing_imports
from grammars.known_word import KnownWordFirst
from grammars.scope_constraint import ScopeConstraint, statement_before
from grammars.scope_documents import ScopeDocuments
from grammars.scope_index import ScopeIndex
from grammars.scopes import names_read_at, typed_prefix, view, word_at
from grammars.undefined_names import new_undefined_names


@dataclass(frozen=True, slots=True)
class Resume:
    """Where a text is taken up again.

    Attributes:
        kept: so many of its tokens stay.
        owed: bytes that have to be spelt again before the word.
        word: what stood there, behind what is owed.
        begun: the word begins before that.
        before: the statement up to where the tokens that stay end.
        names: what the word may be.
    """

    kept: int
    owed: bytes
    word: bytes
    begun: bool
    before: bytes
    names: frozenset[str]

    def constraint(self, scopes: ScopeConstraint, then: Constraint) -> Constraint:
        """`then`, which stands behind the tokens that are kept, but with a name that exists at first."""
        state = scopes.open_word(self.names, self.before, self.begun)
        known = KnownWordFirst(state, then, len(self.owed), self.owed + self.word)
        return HealingConstraint(scopes.vocabulary, self.owed, known) if self.owed else known


@dataclass(frozen=True, slots=True)
class NamesAround:
    """The document around a suggestion.

    Attributes:
        index: of the document without it.
        offset: of the cursor.
        imports: whether the import of what is well known is added where it is missing, so that its name exists.
    """

    index: ScopeIndex
    offset: int
    imports: bool = False

    def wrong(self, text: Trimmed) -> int | None:
        """Bytes of the text before the first name that does not exist, None where all do.

        A name that the user began counts only where it could have become one that exists. It has a negative place.
        """
        document, end = self._filled(text)
        prefix = typed_prefix(self.index.text, self.offset)
        start = self.offset - len(prefix.encode("utf-8", "replace"))
        for found in new_undefined_names(document, start, end):
            if self.imports and is_importable(document.text, found):
                continue
            if found.offset > start or not prefix or self._begins_name(prefix):
                return found.offset - self.offset
        return None

    def _begins_name(self, prefix: str) -> bool:
        return any(name.startswith(prefix) for name in view(self.index, self.offset).names)

    def _filled(self, text: Trimmed) -> tuple[ScopeIndex, int]:
        """The document with the text in it, and where that ends."""
        data = text.text.encode("utf-8", "surrogatepass")
        return self.index.edited(text.start, text.end, data), text.start + len(data)

    def resume(self, text: Trimmed, wrong: int, tokens: Sequence[bytes], healed: bytes) -> Resume | None:
        """How to write the name at `wrong` again; None where the tokens are not those of the text up to there.

        Args:
            text: the suggestion.
            wrong: see above.
            tokens: the bytes of what was generated; the first ones spell `healed` again.
        """
        document, _ = self._filled(text)
        names = names_read_at(document, self.offset + wrong)
        begin = max(0, wrong)
        right = healed + text.text.encode("utf-8", "surrogatepass")[:begin]
        if names is None or right != b"".join(tokens)[: len(right)]:
            return None
        kept, at = 0, -len(healed)
        while kept < len(tokens) and at + len(tokens[kept]) <= begin:
            at += len(tokens[kept])
            kept += 1
        word = word_at(document.text, self.offset + begin).encode("utf-8", "replace")[begin - wrong :]
        before = statement_before(document, self.offset + at)
        return Resume(kept, right[len(healed) + at :], word, wrong < at, before, names)


def imports_for(documents: ScopeDocuments, snapshot: Snapshot, start: int) -> tuple[Replacement, ...]:
    """The edits that add the imports which the text from byte `start` to the snapshot's cursor lacks."""
    data = snapshot.text.encode("utf-8", "surrogatepass")
    index = documents.index(snapshot.uri, data) if snapshot.language == "python" else None
    found = missing_imports(index, start, snapshot.offset) if index is not None else None
    return (Replacement(start=found.start, end=found.end, text=found.text),) if found is not None else ()
