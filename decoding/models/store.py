"""The model store: which models are provisioned below the user's cache folder.

Knows folders, manifests and locks. Must not know networks or weights. Layout below the root:

    models/SLUG/            a provisioned model; its manifest `draftwood.json` is written last
    models/SLUG.partial/    one on its way, a folder for each source; the one that gets whole becomes models/SLUG
    locks/SLUG.lock         held by the one process that provisions, converts or removes it
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import platformdirs
from filelock import FileLock, Timeout

from decoding.errors import ProvisionError, UnknownModel
from decoding.models.folder import ModelFolder, open_folder

CACHE_VARIABLE = "DRAFTWOOD_CACHE"
MANIFEST = "draftwood.json"
FORMAT = 2
"""Of the files that Draftwood itself writes into a model folder; raised when they change."""


_NAME = re.compile(r"(?!\.)[^/\\\0]+(?:/(?!\.)[^/\\\0]+)?\Z")
"""A registry name or a hub id; neither part is empty or begins with a dot."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a provisioned folder holds.

    Attributes:
        name: registry name or hub id.
        source: where it came from, for people.
        infilling: False where the model cannot fill in the middle although its tokenizer has the marks.
        sizes: bytes of each file when it was provisioned; a file of another size is damaged.
        format: FORMAT when it was written.
    """

    name: str
    source: str
    infilling: bool | None
    sizes: dict[str, int] = field(default_factory=dict)
    format: int = FORMAT


@dataclass(frozen=True, slots=True)
class StoredModel:
    """One provisioned model and the bytes that its folder takes."""

    name: str
    source: str
    path: Path
    size: int


class ModelStore:
    """The provisioned models of one user."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.models = root / "models"
        self.locks = root / "locks"

    @classmethod
    def of_user(cls) -> ModelStore:
        """The store in $DRAFTWOOD_CACHE, else in the user's cache folder."""
        chosen = os.environ.get(CACHE_VARIABLE)
        return cls(Path(chosen).expanduser() if chosen else Path(platformdirs.user_cache_dir("draftwood")))

    def path(self, name: str) -> Path:
        """Where a model of this name is, or would be."""
        return self.models / slug(name)

    def partial(self, name: str, source: str) -> Path:
        """Where a model of this name is assembled from a kind of source; made if it is not there."""
        folder = self._partials(name) / source
        make_folder(folder)
        return folder

    def _partials(self, name: str) -> Path:
        return self.models / (slug(name) + ".partial")

    def find(self, name: str) -> ModelFolder | None:
        """The provisioned model of this name, or None where it is absent, incomplete or of an older format."""
        manifest = _read_manifest(self.path(name))
        if manifest is None or manifest.format != FORMAT or not _is_whole(self.path(name), manifest):
            return None
        return open_folder(self.path(name), manifest.name, manifest.source, manifest.infilling)

    def all(self) -> list[StoredModel]:
        """Every provisioned model, by name."""
        folders = sorted(self.models.iterdir()) if self.models.is_dir() else []
        found = [(folder, _read_manifest(folder)) for folder in folders if folder.is_dir()]
        return [
            StoredModel(manifest.name, manifest.source, folder, folder_size(folder))
            for folder, manifest in found
            if manifest is not None and not folder.name.endswith(".partial")
        ]

    def publish(self, name: str, partial: Path, source: str, infilling: bool | None) -> None:
        """Make the folder `partial` the model of that name, replacing a damaged one. Needs the lock."""
        final = self.path(name)
        sizes = {file.name: file.stat().st_size for file in partial.iterdir() if file.is_file()}
        content = json.dumps(asdict(Manifest(name, source, infilling, sizes)), indent=1)
        (partial / MANIFEST).write_text(content, encoding="utf-8")
        if final.exists():
            shutil.rmtree(final)
        partial.replace(final)
        shutil.rmtree(self._partials(name))

    def remove(self, name: str) -> int:
        """Delete a model, whole or partial; returns the bytes that were freed, 0 where there was none."""
        with self.locked(name, lambda: None):
            folders = [folder for folder in (self.path(name), self._partials(name)) if folder.exists()]
            freed = sum(folder_size(folder) for folder in folders)
            for folder in folders:
                shutil.rmtree(folder)
        return freed

    @contextmanager
    def locked(self, name: str, waiting: Callable[[], None]) -> Iterator[None]:
        """Hold the lock of `name`; `waiting` is called once where another process has it. A process that dies
        lets go of it."""
        make_folder(self.locks)
        lock = FileLock(self.locks / (slug(name) + ".lock"))
        try:
            lock.acquire(timeout=0)
        except Timeout:
            waiting()
            lock.acquire()
        try:
            yield
        finally:
            lock.release()


def slug(name: str) -> str:
    """A file name for a model name: OWNER/NAME becomes OWNER--NAME.

    Raises UnknownModel for what cannot be one: a name like ".." would reach out of the store.
    """
    if not _NAME.match(name):
        raise UnknownModel(f"{name!r} is no model name: draftwood models list shows what there is")
    return name.replace("/", "--")


def make_folder(folder: Path) -> None:
    """Make a folder of the store. Raises ProvisionError, which names it, where that cannot be done."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ProvisionError(
            f"{folder} cannot be made ({error.strerror}): set {CACHE_VARIABLE} to a folder that can be written"
        ) from error


def folder_size(folder: Path) -> int:
    """Bytes of all files below a folder; what it only links to takes no room in it."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file() and not file.is_symlink())


def _read_manifest(folder: Path) -> Manifest | None:
    try:
        return Manifest(**json.loads((folder / MANIFEST).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _is_whole(folder: Path, manifest: Manifest) -> bool:
    return all(
        (folder / name).is_file() and (folder / name).stat().st_size == size for name, size in manifest.sizes.items()
    )
