"""Settings from every place they may come from, and what they become."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest

from decoding.messages import EngineOptions
from lsp_server.settings import ALL, Setting, Settings, from_pyproject, markdown_table, read, vscode_configuration


def settings(*layers: dict[str, Any]) -> tuple[Settings, list[str]]:
    warnings: list[str] = []
    return read(list(layers), warnings.append), warnings


def test_nothing_gives_the_defaults() -> None:
    assert settings() == (Settings(), [])
    assert settings({}) == (Settings(), [])
    assert Settings().engine_options() == EngineOptions()


OTHER: dict[str, Any] = {
    "model": "smollm2-135m",
    "draft_model": "smollm2-135m",
    "runtime": "native",
    "device": "cpu",
    "dtype": "bfloat16",
    "drafter": "none",
    "constraint": "off",
    "scope": "hard",
    "multiline": "never",
}


def other(setting: Setting) -> Any:
    """A value that is allowed and not the default."""
    default = setting.info.default
    if setting.engine in OTHER:
        return OTHER[setting.engine]
    if isinstance(default, bool):
        return not default
    choices = get_args(setting.info.annotation)
    if choices and isinstance(default, str):
        return next(choice for choice in choices if choice != default)
    if isinstance(default, str):
        return "something"
    return {"top_p": 0.5, "min_p": 0.5}.get(setting.name, default + 1)


@pytest.mark.parametrize("setting", ALL, ids=lambda setting: setting.path)
def test_each_setting_reaches_its_engine_option_and_no_other(setting: Setting) -> None:
    changed, warnings = settings({setting.path: other(setting)})
    assert warnings == []
    assert changed != Settings()
    before, after = Settings().engine_options(explicit=True), changed.engine_options(explicit=True)
    differing = [name for name in EngineOptions.model_fields if getattr(before, name) != getattr(after, name)]
    assert differing == ([setting.engine] if setting.engine else [])


def test_every_engine_option_has_a_setting() -> None:
    assert {setting.engine for setting in ALL} - {None} == set(EngineOptions.model_fields)


def test_only_explicit_requests_ask_for_alternatives() -> None:
    assert Settings().engine_options().alternatives == 1
    assert Settings().engine_options(explicit=True).alternatives == 3


@pytest.mark.parametrize(
    "raw",
    [
        {"sampling": {"topP": 0.5}},
        {"draftwood": {"sampling": {"topP": 0.5}}},
        {"sampling.topP": 0.5},
        {"sampling": {"top-p": 0.5}},
        {"sampling": {"top_p": 0.5}},
        {"draftwood": {"sampling.top_p": 0.5}},
    ],
)
def test_any_spelling(raw: dict[str, Any]) -> None:
    result, warnings = settings(raw)
    assert result.sampling.top_p == 0.5
    assert warnings == []


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        ({"sampling": {"temperature": "hot"}}, "draftwood.sampling.temperature = 'hot'"),
        ({"sampling": {"temperature": -1}}, "0.0 is used"),
        ({"sampling": {"temperture": 1}}, "draftwood.sampling.temperture is no setting"),
        ({"sampling": 3}, "draftwood.sampling is no setting"),
        ({"draft": {"drafter": "magic"}}, "draftwood.draft.drafter = 'magic'"),
        ({"suggest": {"maxTokens": {"a": 1}}}, "draftwood.suggest.maxTokens"),
        ({"nonsense": {"a": 1}}, "draftwood.nonsense is no setting"),
    ],
)
def test_a_bad_value_warns_once_and_the_default_is_used(raw: dict[str, Any], says: str) -> None:
    result, [warning] = settings(raw)
    assert says in warning
    assert "\n" not in warning
    assert result == Settings()


@pytest.mark.parametrize("junk", [None, 3, "x", [], [1]])
def test_junk_instead_of_a_group_of_settings(junk: Any) -> None:
    assert settings({"draftwood": junk})[0] == Settings()


def test_what_clients_keep_for_themselves_is_no_news() -> None:
    assert settings({"languages": ["python"], "codeLens": True, "trace": {"server": "off"}, "python": ""}) == (
        Settings(),
        [],
    )


def test_null_is_the_default() -> None:
    assert settings({"model": {"draft": None, "name": None}}) == (Settings(), [])


def test_the_editor_wins_where_it_says_something() -> None:
    editor = {"sampling": {"seed": 1, "temperature": 0.0}}
    project = {"sampling": {"seed": 2, "temperature": 0.5}}
    result, _ = settings(editor, project)
    assert result.sampling.seed == 1
    assert result.sampling.temperature == 0.5


def project(folder: Path, text: str) -> tuple[Settings, list[str]]:
    (folder / "pyproject.toml").write_text(text)
    warnings: list[str] = []
    return read([from_pyproject(folder, warnings.append)], warnings.append), warnings


def test_pyproject(tmp_path: Path) -> None:
    result, warnings = project(
        tmp_path, "[tool.draftwood.suggest]\nmax-tokens = 7\n[tool.draftwood.model]\nname='smollm2-135m'"
    )
    assert (result.suggest.max_tokens, result.model.name, warnings) == (7, "smollm2-135m", [])


@pytest.mark.parametrize("name", ["someone/weights", "./weights", "/weights", "~/weights", "..", "C:\\\\weights"])
def test_a_repository_may_not_bring_its_own_weights(tmp_path: Path, name: str) -> None:
    result, [warning] = project(tmp_path, f'[tool.draftwood]\nmodel.name = "{name}"')
    assert result == Settings()
    assert "may not set" in warning


@pytest.mark.parametrize("text", ["[tool", "tool = 3", "[tool]\ndraftwood = 3", "[project]"])
def test_a_broken_or_foreign_pyproject(tmp_path: Path, text: str) -> None:
    assert project(tmp_path, text)[0] == Settings()


def test_no_pyproject(tmp_path: Path) -> None:
    assert from_pyproject(tmp_path, pytest.fail) == {}


def test_the_table_has_every_setting() -> None:
    rows = markdown_table().splitlines()
    assert len(rows) == len(ALL) + 2
    assert all(setting.info.description for setting in ALL)
    assert "| `draftwood.suggest.maxTokens` | `64` | Longest suggestion. |" in rows


def test_the_schema_for_vscode_has_every_setting() -> None:
    sections = vscode_configuration()
    properties = {name: schema for section in sections for name, schema in section["properties"].items()}
    assert set(properties) == {f"draftwood.{setting.path}" for setting in ALL}
    assert properties["draftwood.draft.drafter"]["enum"] == ["auto", "none", "lookup", "recycle", "model"]
    assert properties["draftwood.model.draft"]["type"] == ["string", "null"]
    assert all("default" in schema and schema.get("type") for schema in properties.values())
