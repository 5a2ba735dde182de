"""Models of the hub, through `huggingface_hub` (which resumes and checks each file itself).

Knows the hub's client library. Must not know the store or GGUF. The hub's address, mirror and token are the
library's own configuration (HF_ENDPOINT, HF_TOKEN, HF_HUB_OFFLINE).
"""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from filelock import Timeout

from decoding.errors import ProvisionError, UnknownModel
from decoding.models.download import require_free_space
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

    Raises UnknownModel where the hub has no such repository, ProvisionError for everything else.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, RepositoryNotFoundError

    wanted: dict[str, Any] = {"allow_patterns": _FILES, "ignore_patterns": _ELSEWHERE, "local_dir": folder}
    try:
        files = snapshot_download(repository, dry_run=True, tqdm_class=_bar(lambda _n, _total: None), **wanted)
        require_free_space(folder, sum(file.file_size for file in files if file.will_download))
        snapshot_download(repository, tqdm_class=_bar(done), **wanted)
    except GatedRepoError as error:
        raise ProvisionError(
            f"{repository} asks for an agreement: accept it on its page, then log in with `hf auth login`"
        ) from error
    except RepositoryNotFoundError as error:
        raise UnknownModel(f"the hub has no model {repository}") from error
    except (HfHubHTTPError, httpx.TransportError, Timeout) as error:
        raise ProvisionError(
            f"{repository} could not be downloaded from the hub ({_first_line(error)}): check the network and try "
            "again; what has arrived is kept"
        ) from error
    if not is_model_folder(folder):
        raise ProvisionError(
            f"{repository} has no safetensors weights with a tokenizer.json: choose another repository"
        )


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
