"""Suggestions as the protocol's items, and requests as what they ask for.

Knows the protocol's shapes and positions; nothing of how a suggestion comes about.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lsprotocol import types

from decoding.trimming import Trimmed
from lsp_server.documents import Document, View
from lsp_server.lines import Encoding, decode
from lsp_server.session import Suggestions

ACCEPTED = "draftwood.accepted"
_WORD_BEFORE = re.compile(r"\w*\Z")


@dataclass(frozen=True, slots=True)
class Asked:
    """A request's place. `replaced_from` to `replaced_to` is what the editor's own list would replace, in bytes of the
    document; `chosen` what it would put there. Without such a list all is empty and at the cursor."""

    document: Document
    view: View
    encoding: Encoding
    replaced_from: int
    replaced_to: int
    chosen: str = ""

    @classmethod
    def at(
        cls,
        document: Document,
        position: types.Position,
        encoding: Encoding,
        selected: types.SelectedCompletionInfo | None = None,
        context: bytes = b"",
    ) -> Asked:
        """What a request at `position` asks for; `context` is text that the document continues."""
        offset = document.offset_at(position, encoding)
        view = document.view(offset).behind(context)
        if selected is None:
            return cls(document, view, encoding, offset, offset)
        start = document.offset_at(selected.range.start, encoding)
        end = document.offset_at(selected.range.end, encoding)
        chosen = view.what_if(len(context) + start, len(context) + end, selected.text)
        return cls(document, chosen, encoding, start, end, selected.text)

    def range_of(self, suggestion: Trimmed, start: int | None = None) -> types.Range:
        """What accepting replaces; always within one line."""
        end = self.replaced_to + suggestion.end - suggestion.start
        return types.Range(
            self.document.position_at(self.replaced_from if start is None else start, self.encoding),
            self.document.position_at(end, self.encoding),
        )


def inline_items(asked: Asked, suggestions: Suggestions) -> list[types.InlineCompletionItem]:
    """Ghost texts, best first."""
    return [
        types.InlineCompletionItem(
            insert_text=asked.chosen + suggestion.text,
            range=asked.range_of(suggestion),
            command=accepted(asked, suggestions, rank, asked.replaced_from, asked.chosen + suggestion.text),
        )
        for rank, suggestion in enumerate(suggestions.best_first)
    ]


def completion_items(asked: Asked, suggestions: Suggestions) -> types.CompletionList:
    """The same for editors that have only a list: it wants items that begin with the word before the cursor."""
    line = decode(asked.view.data[max(0, asked.view.offset - 1000) : asked.view.offset]).splitlines()
    word = match[0] if line and (match := _WORD_BEFORE.search(line[-1])) else ""
    start = asked.replaced_from - len(word.encode("utf-8"))
    items = []
    for rank, suggestion in enumerate(suggestions.best_first):
        text = word + suggestion.text
        items.append(
            types.CompletionItem(
                label=_label(text),
                label_details=types.CompletionItemLabelDetails(description="Draftwood"),
                kind=types.CompletionItemKind.Text,
                documentation=text if "\n" in text else None,
                filter_text=text,
                sort_text=f"~{rank}",
                text_edit=types.TextEdit(asked.range_of(suggestion, start), text),
                insert_text_format=types.InsertTextFormat.PlainText,
                command=accepted(asked, suggestions, rank, start, text),
            )
        )
    return types.CompletionList(is_incomplete=True, items=items)


def accepted(asked: Asked, suggestions: Suggestions, rank: int, start: int, text: str) -> types.Command:
    """What the editor runs when the user accepts: the way to count it, and to add the imports that `text`, put at byte
    `start`, lacks."""
    position = asked.document.position_at(start, asked.encoding)
    argument = {
        "uri": asked.document.uri,
        "start": {"line": position.line, "character": position.character},
        "text": text,
        "characters": len(suggestions.best_first[rank].text),
        "alternative": rank,
        "source": suggestions.source,
        "prefilled": suggestions.prefilled,
    }
    return types.Command("Suggestion accepted", ACCEPTED, arguments=[argument])


def _label(text: str) -> str:
    first = text.strip().splitlines()[0]
    return first if len(first) <= 60 and first == text.strip() else f"{first[:60]}…"
