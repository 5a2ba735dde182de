"""Models of the hub, through `huggingface_hub` (which resumes and checks each file itself).

Knows the hub's client library. Must not know the store or GGUF. The hub's address, mirror and token are the
library's own configuration (HF_ENDPOINT, HF_TOKEN, HF_HUB_OFFLINE).
"""

from __future__ import annotations

import importlib
import io
import shutil
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import httpx
from filelock import Timeout

from decoding.errors import ProvisionError, UnknownModel
from decoding.models.download import SourceUnreachable, require_free_space
from decoding.models.folder import CONFIG, TOKENIZER, WEIGHTS_INDEX, WEIGHTS_SAFETENSORS

BytesDone = Callable[[int, int], None]
"""Called with the bytes that have arrived and the bytes of all files."""

PROBE_S = 3.0
_FILES = ["*.json", "*.safetensors", "*.jinja", "*.txt", "LICENSE*"]
_ELSEWHERE = ["*/*"]  # other formats (onnx/, original/, …) lie in folders of a repository


def hub_state() -> str | None:
    """None where the hub answers within three seconds, else why not, in a few words."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return "HF_HUB_OFFLINE is set"
    try:
        httpx.head(constants.ENDPOINT, timeout=PROBE_S)
    except httpx.TransportError as error:
        return str(error) or type(error).__name__
    return None


def in_hub_cache(repository: str) -> Path | None:
    """The snapshot of a repository that other programs have already downloaded, or None. Uses no network."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import IncompleteSnapshotError, LocalEntryNotFoundError

    try:
        path = snapshot_download(repository, local_files_only=True, allow_patterns=_FILES, ignore_patterns=_ELSEWHERE)
    except (LocalEntryNotFoundError, IncompleteSnapshotError):
        return None
    return Path(path) if is_model_folder(Path(path)) else None


def is_model_folder(path: Path) -> bool:
    """Whether a folder holds config, tokenizer and safetensors weights."""
    weights = (path / WEIGHTS_SAFETENSORS).is_file() or (path / WEIGHTS_INDEX).is_file()
    return weights and (path / CONFIG).is_file() and (path / TOKENIZER).is_file()


def bring_from_hub(repository: str, folder: Path, done: BytesDone) -> None:
    """Download the configuration, tokenizer and safetensors of a repository into `folder`, resuming what is there.

    Raises UnknownModel where the hub has no such repository, SourceUnreachable where the network fails and
    ProvisionError where the repository cannot be used.
    """
    from huggingface_hub import HfApi, constants, snapshot_download
    from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, RepositoryNotFoundError

    try:
        repository_files = HfApi(constants.ENDPOINT).model_info(repository, files_metadata=True).siblings or []
        needed = [file for file in repository_files if _is_wanted(file.rfilename)]
        require_free_space(folder, sum(file.size or 0 for file in needed if not (folder / file.rfilename).exists()))
        snapshot_download(
            repository,
            local_dir=folder,
            tqdm_class=_bar(done),
            allow_patterns=_FILES,
            ignore_patterns=_ELSEWHERE,
        )
    except GatedRepoError as error:
        raise ProvisionError(
            f"{repository} asks for an agreement: accept it on its page, then log in with `hf auth login`"
        ) from error
    except RepositoryNotFoundError as error:
        raise UnknownModel(f"the hub has no model {repository}") from error
    except (HfHubHTTPError, _transport_error(), Timeout) as error:
        raise SourceUnreachable(
            f"{repository} could not be downloaded from the hub ({_first_line(error)}): check the network and try "
            "again; what has arrived is kept"
        ) from error
    shutil.rmtree(folder / ".cache", ignore_errors=True)  # the client's notes for resuming
    if not is_model_folder(folder):
        raise ProvisionError(
            f"{repository} has no safetensors weights with a tokenizer.json: choose another repository"
        )


def _is_wanted(name: str) -> bool:
    return "/" not in name and any(fnmatchcase(name, pattern) for pattern in _FILES)


def _transport_error() -> type[Exception]:
    """What the HTTP library of the hub's client raises where the network fails: httpx, or in later versions httpx2."""
    from huggingface_hub import get_session

    library = next(kind.__module__ for kind in type(get_session()).__mro__ if kind.__name__ == "Client")
    error: type[Exception] = importlib.import_module(library.partition(".")[0]).TransportError
    return error


def _bar(done: BytesDone) -> type:
    """A progress bar class for `snapshot_download` that draws nothing and reports bytes to `done`."""
    from tqdm.auto import tqdm

    class Bar(tqdm):  # type: ignore[misc]
        def __init__(self, *arguments: Any, **options: Any) -> None:
            options.pop("name", None)
            super().__init__(*arguments, **{**options, "file": io.StringIO(), "disable": False})

        def update(self, n: float | None = 1) -> bool | None:
            answer: bool | None = super().update(n)
            if self.unit == "B" and self.total:
                done(int(self.n), int(self.total))
            return answer

    return Bar


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
