"""Writes the server's settings into the extension's package.json, after the editor's own section.

`python editor-client/vscode/scripts/settings.py [--check]`: with `--check` it only says whether they agree.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from lsp_server.settings import vscode_configuration

MANIFEST = Path(__file__).parents[1] / "package.json"


def with_settings(manifest: str) -> str:
    """The text of package.json with the server's sections as the model has them now."""
    package = json.loads(manifest)
    [own] = [section for section in package["contributes"]["configuration"] if section["title"] == "Editor"]
    package["contributes"]["configuration"] = [own, *vscode_configuration()]
    return json.dumps(package, indent=2, ensure_ascii=False) + "\n"


def main() -> int:
    """Exit status 1 where `--check` finds a difference."""
    before = MANIFEST.read_text(encoding="utf-8")
    after = with_settings(before)
    if "--check" in sys.argv[1:]:
        return int(before != after)
    MANIFEST.write_text(after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
