"""Install Draftwood into the virtual environment whose Python runs this: `python tools/install.py [EXTRA ...]`.

Knows pip's command line, and which PyTorch to choose: on Linux without an NVIDIA GPU the ordinary PyTorch package
brings gigabytes of CUDA libraries that nothing could use, so a CPU build is preferred there. Uses the standard
library only, and works with the old pip that a fresh virtual environment begins with.
"""

from __future__ import annotations

import importlib.metadata
import json
import platform
import shutil
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CPU_WHEELS = "https://download.pytorch.org/whl/cpu"
CPU_BUILD = "torch==2.13.0+cpu"
PROBE_S = 3
PIP = (sys.executable, "-m", "pip")
# Twice quiet: errors only. Once still repeats what the build backend thinks of editable installations.
QUIET = ("--disable-pip-version-check", "--no-input", "-qq")


def main(extras: list[str]) -> None:
    """Bring pip up to date, PyTorch, then the package with its extras, editable."""
    if sys.prefix == sys.base_prefix:
        sys.exit("tools/install.py: run it with the Python of a virtual environment (make does)")
    # pip 25.1: earlier ones download wheels when they are only asked where those are
    pip("install", "--upgrade", "pip>=25.1")
    if not has_torch():
        install_torch()
    wanted = f"[{','.join(extras)}]" if extras else ""
    print(f"Installing draftwood{wanted} and what it needs: a few minutes the first time …", flush=True)
    pip("install", "--editable", f"{ROOT}{wanted}")


def pip(*arguments: str) -> None:
    """Run pip; its own message is the explanation where it fails."""
    if subprocess.run([*PIP, *arguments, *QUIET], check=False).returncode != 0:
        sys.exit(f"tools/install.py: pip {arguments[0]} failed, see above")


def has_torch() -> bool:
    """Whether some PyTorch is here already (its version is checked by the package's own requirements)."""
    try:
        importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def install_torch() -> None:
    """Choose a PyTorch, say which, and install it."""
    if platform.system() != "Linux" or shutil.which("nvidia-smi"):
        return  # the package's requirement brings the right one
    if answers(f"{CPU_WHEELS}/torch/"):
        print("PyTorch: the CPU build from PyTorch's own wheel index (no NVIDIA GPU here) …", flush=True)
        pip("install", "torch>=2.6", "--index-url", CPU_WHEELS)
    elif offered(CPU_BUILD):
        print(f"PyTorch: {CPU_BUILD} from the package index (no NVIDIA GPU here) …", flush=True)
        pip("install", CPU_BUILD)
    else:
        print(
            f"PyTorch: the ordinary build with CUDA, {download_size('torch>=2.6')}: no CPU build can be reached. "
            "To choose one yourself, interrupt now and install torch into .venv first …",
            flush=True,
        )
        pip("install", "torch>=2.6")


def answers(url: str) -> bool:
    """Whether a server answers within three seconds."""
    try:
        with urllib.request.urlopen(url, timeout=PROBE_S):
            return True
    except urllib.error.HTTPError as error:
        return error.code < 500
    except (OSError, ssl.SSLError):
        return False


def offered(requirement: str) -> bool:
    """Whether pip finds a wheel for `requirement` on this machine."""
    question = (*PIP, "install", "--dry-run", "--no-deps", "--only-binary=:all:", requirement, *QUIET)
    return subprocess.run(question, check=False, capture_output=True).returncode == 0


def download_size(requirement: str) -> str:
    """The size of what installing `requirement` downloads, for people."""
    question = (*PIP, "install", "--dry-run", "--report", "-", "--only-binary=:all:", requirement, *QUIET)
    answer = subprocess.run(question, check=False, capture_output=True, text=True)
    if answer.returncode != 0:
        return "several GB to download"
    urls = [item["download_info"]["url"] for item in json.loads(answer.stdout)["install"]]
    total = sum(content_length(url) for url in urls)
    return f"{total / 1e9:.1f} GB to download in {len(urls)} packages"


def content_length(url: str) -> int:
    """Bytes behind a URL, 0 where the server does not say."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=PROBE_S) as response:
            return int(response.headers.get("Content-Length", 0))
    except OSError:
        return 0


if __name__ == "__main__":
    main(sys.argv[1:])
