"""Chat prompts: messages to token ids, by the model's own template.

Knows jinja2 templates as model folders carry them. Must not know what the messages say.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from decoding.errors import BadInput
from decoding.models.folder import CHAT_TEMPLATE, TOKENIZER_CONFIG, ModelFolder


class ChatTemplate:
    """The template of one model folder, rendered in a sandbox: folders come from strangers."""

    def __init__(self, folder: ModelFolder) -> None:
        """Nothing is read until the first message."""
        self._folder = folder

    def render(self, messages: Sequence[dict[str, str]], *, think: bool = True) -> str:
        """The text of `messages` ({"role", "content"}) up to where the assistant's answer begins.

        Where the template opens a thought there and `think` is false, the thought is closed again.
        Raises BadInput where the model has no template or the template refuses the messages.
        """
        try:
            text: str = self._template.render(
                messages=list(messages), add_generation_prompt=True, enable_thinking=think, **self._special_texts
            )
        except TemplateError as error:
            raise BadInput(f"{self._folder.name} cannot lay out these messages: {error}") from error
        return text if think or not text.rstrip().endswith("<think>") else f"{text.rstrip()}\n\n</think>\n\n"

    def mentions(self, text: str) -> bool:
        """Whether the template's source speaks of `text`; false where there is no template."""
        return self._folder.has_chat_template and text in self._source(self._folder.path)

    @cached_property
    def _settings(self) -> dict[str, Any]:
        path = self._folder.path / TOKENIZER_CONFIG
        return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else {}

    @cached_property
    def _special_texts(self) -> dict[str, str]:
        """`bos_token`, `eos_token` … as templates expect them."""
        return {
            name: value if isinstance(value, str) else value["content"]
            for name, value in self._settings.items()
            if name.endswith("_token") and (isinstance(value, str) or (isinstance(value, dict) and "content" in value))
        }

    @cached_property
    def _template(self) -> Any:
        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        environment.globals["raise_exception"] = _refuse
        return environment.from_string(self._source(self._folder.path))

    def _source(self, path: Path) -> str:
        file = path / CHAT_TEMPLATE
        if file.is_file():
            return file.read_text(encoding="utf-8")
        template = self._settings.get("chat_template")
        if isinstance(template, list):  # several named templates: the default one
            template = next((entry["template"] for entry in template if entry["name"] == "default"), None)
        if not isinstance(template, str):
            raise BadInput(f"{self._folder.name} has no chat template: give a prompt instead of messages")
        return template


def _refuse(message: str) -> None:
    raise TemplateError(message)
