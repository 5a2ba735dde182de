"""Every setting: one fully defaulted model that VS Code, Neovim and [tool.draftwood] share.

Knows names, types, defaults and where values come from; nothing of what they do. The README's table, VS Code's
configuration schema and the mapping to EngineOptions are made from the model, so that they cannot disagree.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo

from decoding.messages import ConstraintMode, DrafterChoice, EngineOptions, Multiline, ScopeMode
from decoding.reasoning.requests import DocstringStyle, Thoughts

Warn = Callable[[str], None]
_ENGINE = EngineOptions.model_fields

CLIENT_ONLY = frozenset({"languages", "codelens", "python", "command", "package", "trace", "pause"})
"""Settings that the editors' clients keep for themselves; they may send them, we take no notice."""


class _Group(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True, extra="forbid")


def _engine(name: str, description: str, **limits: Any) -> Any:
    """A setting that becomes the EngineOptions field `name`, with that field's default."""
    return Field(_ENGINE[name].default, description=description, json_schema_extra={"engine": name}, **limits)


class ModelSettings(_Group):
    """Which model runs, and how."""

    name: str = _engine("model", "Registry name, folder or hub id. `draftwood models list` shows the registry.")
    draft: str | None = _engine("draft_model", "A smaller model with the same tokenizer that drafts for it.")
    runtime: Literal["auto", "native", "transformers"] = _engine("runtime", "`native` is the int8 runtime for CPUs.")
    device: str = _engine("device", "`auto`, `cpu`, `cuda` or `mps`.")
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = _engine("dtype", "Weights of the transformers runtime.")
    threads: int = _engine("threads", "CPU threads. 0: one per physical core.", ge=0)
    context_tokens: int = _engine("context_tokens", "Prompt and answer together.", ge=256)


class SuggestSettings(_Group):
    """When something is suggested, and how much."""

    automatic: bool = Field(True, description="Suggest while typing. Off: only when asked for.")
    max_tokens: int = _engine("max_tokens", "Longest suggestion.", ge=1, le=4096)
    multiline: Multiline = _engine("multiline", "Several lines: `auto` decides by the position.")
    alternatives: int = Field(
        3,
        ge=1,
        le=8,
        description="Distinct suggestions when asked for explicitly.",
        json_schema_extra={"engine": "alternatives"},
    )
    prefix_tokens: int = _engine("prefix_tokens", "Tokens before the cursor that the model sees.", ge=32)
    suffix_tokens: int = _engine("suffix_tokens", "Tokens after the cursor that the model sees.", ge=0)
    signature_tokens: int = _engine(
        "signature_tokens",
        "Of these, how many show declarations from outside of the window. They do not help small models.",
        ge=0,
    )
    debounce_ms: int = Field(
        -1, ge=-1, le=5000, description="Pause in typing before the model is asked. -1: from typing speed and latency."
    )
    prefetch: bool = Field(True, description="Compute what follows a suggestion while it is being read.")
    warm: bool = Field(
        True, description="Read ahead where the cursor rests; elsewhere answer from a short window first."
    )
    completion_list: Literal["auto", "on", "off"] = Field(
        "auto", description="Offer suggestions in the ordinary completion list: `auto` for editors without ghost text."
    )


class DraftSettings(_Group):
    """What proposes tokens, and how many."""

    drafter: DrafterChoice = _engine("drafter", "What drafts: `auto` combines what is at hand.")
    tree_nodes: int = _engine("tree_nodes", "Nodes of a draft tree. 0: decided each round.", ge=0, le=63)


class ConstraintSettings(_Group):
    """What the model may say."""

    mode: ConstraintMode = _engine("constraint", "`enforce` valid Python, check only drafts (`draft`), or `off`.")
    scope: ScopeMode = _engine("scope", "Names that are not defined: `soft` discourages, `hard` forbids.")
    imports: bool = _engine("imports", "Accepting a suggestion adds the import of a well-known module that it lacks.")


class SamplingSettings(_Group):
    """How a token is chosen."""

    temperature: float = _engine("temperature", "0: always the likeliest token.", ge=0.0, le=5.0)
    top_p: float = _engine("top_p", "Keep the likeliest tokens of this total probability.", gt=0.0, le=1.0)
    top_k: int = _engine("top_k", "Keep so many tokens. 0: all.", ge=0)
    min_p: float = _engine("min_p", "Keep tokens of at least this share of the likeliest.", ge=0.0, le=1.0)
    repetition_penalty: float = _engine("repetition_penalty", "Above 1: discourages repetition.", gt=0.0)
    seed: int = _engine("seed", "Same seed, same suggestions.")


class AnswerSettings(_Group):
    """Explanations, fixes, docstrings, tests and edits."""

    max_tokens: int = Field(512, ge=16, le=4096, description="Longest answer.")
    thinking_tokens: int = Field(
        256, ge=0, le=4096, description="Tokens of thought before the answer to a question. 0: none."
    )
    thoughts: Thoughts = Field("folded", description="Show thoughts folded, or hide them.")
    docstring_style: DocstringStyle = Field("auto", description="Style of docstrings; `auto` takes the file's own.")
    tries: int = Field(3, ge=1, le=16, description="Candidates until one passes the checks.")


class RemoteSettings(_Group):
    """A server that runs the model in place of this machine; see the README."""

    base_url: str = _engine("remote_url", "Of any OpenAI-compatible server, with its `/v1`. Empty: this machine.")
    model: str = _engine("remote_model", "The model's name there. Empty: the server's first.")
    api_key_env: str = _engine("remote_key_env", "The environment variable that holds the key.")


class Settings(_Group):
    """All of them, as `draftwood.<group>.<name>`."""

    model: ModelSettings = ModelSettings()
    suggest: SuggestSettings = SuggestSettings()
    draft: DraftSettings = DraftSettings()
    constraint: ConstraintSettings = ConstraintSettings()
    sampling: SamplingSettings = SamplingSettings()
    answer: AnswerSettings = AnswerSettings()
    remote: RemoteSettings = RemoteSettings()

    def engine_options(self, *, explicit: bool = False) -> EngineOptions:
        """The options of one request. Only an explicit one asks for alternatives."""
        values = {
            setting.engine: getattr(getattr(self, setting.group), setting.name) for setting in ALL if setting.engine
        }
        if not explicit:
            values["alternatives"] = 1
        return EngineOptions(**values)


class Setting(BaseModel):
    """One leaf of Settings."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    group: str
    name: str
    engine: str | None
    info: FieldInfo

    @property
    def path(self) -> str:
        """As users write it, without `draftwood.`."""
        return f"{self.group}.{to_camel(self.name)}"

    def checked(self, value: Any) -> Any:
        """The value as its type. Raises ValidationError."""
        return TypeAdapter(self.info.rebuild_annotation()).validate_python(value)


def _leaves() -> Iterator[Setting]:
    for group, field in Settings.model_fields.items():
        kind = field.annotation
        assert isinstance(kind, type)
        assert issubclass(kind, BaseModel)
        for name, info in kind.model_fields.items():
            extra = info.json_schema_extra
            engine = extra.get("engine") if isinstance(extra, dict) else None
            yield Setting(group=group, name=name, engine=str(engine) if engine else None, info=info)


ALL = tuple(_leaves())
_BY_PATH = {f"{setting.group}.{setting.name}".replace("_", ""): setting for setting in ALL}
_GROUPS = frozenset(Settings.model_fields)


def read(layers: list[Mapping[str, Any]], warn: Warn) -> Settings:
    """Settings from layers of raw values, the first layer that differs from the default wins.

    Keys may be nested or dotted, in camelCase, snake_case or kebab-case, under `draftwood` or not. An unknown key or
    a bad value is told to `warn` in one line and otherwise ignored.
    """
    chosen: dict[str, dict[str, Any]] = {}
    for layer in reversed(layers):
        for setting, value in _known(layer, warn):
            default = setting.info.default
            if value != default or setting.name not in chosen.get(setting.group, {}):
                chosen.setdefault(setting.group, {})[setting.name] = value
    return Settings.model_validate(chosen)


def _known(layer: Mapping[str, Any], warn: Warn) -> Iterator[tuple[Setting, Any]]:
    for path, value in _flattened(layer.get("draftwood", layer)):
        setting = _BY_PATH.get(_spelling(path))
        if setting is None:
            if _spelling(path).split(".")[0] not in CLIENT_ONLY:
                warn(f"draftwood.{path} is no setting and is ignored")
            continue
        if value is None:
            continue
        try:
            yield setting, setting.checked(value)
        except ValidationError as error:
            reason = error.errors()[0]["msg"]
            reason = reason[0].lower() + reason[1:]
            warn(f"draftwood.{setting.path} = {value!r}: {reason}; {setting.info.default!r} is used")


def _flattened(values: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """Paths and values of nested mappings; what is not a group is a value, even if it is a mapping."""
    if not isinstance(values, Mapping):
        return
    for key, value in values.items():
        path = f"{before}{key}"
        if isinstance(value, Mapping) and _spelling(path) in _GROUPS:
            yield from _flattened(value, f"{path}.")
        elif _spelling(path) not in _GROUPS or value is not None:
            yield path, value


def _spelling(path: str) -> str:
    return re.sub(r"[-_]", "", path).lower()


def from_pyproject(root: Path, warn: Warn) -> Mapping[str, Any]:
    """[tool.draftwood] of a workspace. It comes with other people's code, so it may choose only registry names of
    models, never a folder or a hub id."""
    try:
        text = (root / "pyproject.toml").read_text("utf-8")
    except OSError:
        return {}
    except UnicodeDecodeError:
        warn("pyproject.toml is not UTF-8 text and is ignored")
        return {}
    try:
        tool = tomllib.loads(text).get("tool", {})
    except tomllib.TOMLDecodeError as error:
        warn(f"pyproject.toml is ignored: {error}")
        return {}
    table = tool.get("draftwood", {}) if isinstance(tool, dict) else {}
    return {path: value for path, value in _flattened(table) if _harmless(path, value, warn)}


def _harmless(path: str, value: Any, warn: Warn) -> bool:
    if _spelling(path).startswith("remote"):
        warn(f"pyproject.toml may not set draftwood.{path}: it would send your code elsewhere; set it in the editor")
        return False
    foreign = _spelling(path) in ("model.name", "model.draft") and re.search(r"[/\\]|^[.~]", str(value)) is not None
    if foreign:
        warn(f"pyproject.toml may not set draftwood.{path} to a folder or hub id; set it in the editor")
    return not foreign


def markdown_table() -> str:
    """The README's table."""
    rows = ["| setting | default | meaning |", "| --- | --- | --- |"]
    for setting in ALL:
        default = "" if setting.info.default is None else f"`{_json(setting.info.default)}`"
        rows.append(f"| `draftwood.{setting.path}` | {default} | {setting.info.description} |")
    return "\n".join(rows) + "\n"


def vscode_configuration() -> list[dict[str, Any]]:
    """The `contributes.configuration` sections of a VS Code extension, one for each group."""
    sections = []
    for group, field in Settings.model_fields.items():
        kind = field.annotation
        assert isinstance(kind, type)
        assert issubclass(kind, BaseModel)
        schema = kind.model_json_schema()["properties"]
        properties = {}
        for order, setting in enumerate((setting for setting in ALL if setting.group == group), 1):
            shown = {
                k: v for k, v in schema[to_camel(setting.name)].items() if k not in ("title", "engine", "description")
            }
            if "anyOf" in shown:
                shown["type"] = [choice["type"] for choice in shown.pop("anyOf")]
            if group == "remote":  # a folder must not send code elsewhere
                shown["scope"] = "machine"
            shown |= {"default": setting.info.default, "order": order, "markdownDescription": setting.info.description}
            properties[f"draftwood.{setting.path}"] = shown
        sections.append({"title": group.capitalize(), "properties": properties})
    return sections


def _json(value: Any) -> str:
    return {True: "true", False: "false"}.get(value, str(value)) if isinstance(value, bool) else str(value)
