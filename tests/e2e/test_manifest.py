"""The extension's package.json says the same as the code that it is about."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import pytest

EXTENSION = Path(__file__).parents[2] / "editor-client" / "vscode"


@pytest.fixture(scope="module")
def manifest():
    return (EXTENSION / "package.json").read_text(encoding="utf-8")


def settings_script():
    spec = importlib.util.spec_from_file_location("settings_script", EXTENSION / "scripts" / "settings.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_settings_are_those_of_the_server(manifest):
    assert settings_script().with_settings(manifest) == manifest, (
        "run `python editor-client/vscode/scripts/settings.py` to write the server's settings into package.json"
    )


def test_a_setting_that_the_server_does_not_have_is_noticed(manifest):
    package = json.loads(manifest)
    package["contributes"]["configuration"][1]["properties"]["draftwood.invented"] = {"type": "string"}
    changed = json.dumps(package, indent=2, ensure_ascii=False) + "\n"
    assert settings_script().with_settings(changed) != changed


def test_every_command_is_registered_or_the_servers(manifest):
    commands = {entry["command"] for entry in json.loads(manifest)["contributes"]["commands"]}
    sources = "".join(path.read_text() for path in (EXTENSION / "src").glob("*.ts"))
    [answering] = re.findall(r"ANSWERING = \[(.*?)\]", sources)
    servers = {f"draftwood.{name}" for name in re.findall(r"'(\w+)'", answering)}
    registered = set(re.findall(r"(?:register|registerCommand)\('(draftwood\.\w+)'", sources))
    assert commands == servers | registered


def test_programs_are_named_by_user_settings_only(manifest):
    package = json.loads(manifest)
    properties = {
        name: schema
        for section in package["contributes"]["configuration"]
        for name, schema in section["properties"].items()
    }
    restricted = package["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"]
    for name in ("draftwood.python", "draftwood.command", "draftwood.package"):
        assert properties[name]["scope"] == "machine"
        assert name in restricted
    for name in ("baseUrl", "model", "apiKeyEnv"):  # nor may a folder send code elsewhere
        assert properties[f"draftwood.remote.{name}"]["scope"] == "machine"
    assert {"draftwood.model.name", "draftwood.model.draft"} <= set(restricted)
