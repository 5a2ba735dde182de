"""Download one file: resumable, checked, with errors in one line.

Knows HTTP and files. Must not know what a model is or where its parts come from.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import httpx

from decoding.errors import ProvisionError

BytesDone = Callable[[int], None]
"""Called with the bytes of the file that are on disk by now."""

_DISK_FULL = {errno.ENOSPC, errno.EDQUOT}
_NOT_WRITABLE = {errno.EACCES, errno.EPERM, errno.EROFS}


class SourceUnreachable(ProvisionError):
    """The place that a file comes from does not answer; another source may."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a download is worth trying.

    Attributes:
        connect_s: to reach the server.
        stall_s: between two arriving blocks, before the connection is given up and resumed.
        attempts: connections in a row that bring no new byte.
        pause_s: before the second of them; doubles each time.
    """

    connect_s: float = 10.0
    stall_s: float = 30.0
    attempts: int = 4
    pause_s: float = 0.5


def sha256_of(path: Path) -> str:
    """Hexadecimal SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def one_line_disk_errors(path: Path) -> Iterator[None]:
    """Turn a full or unwritable disk into a ProvisionError that says what to do."""
    advice = "or set DRAFTWOOD_CACHE to a folder on another disk"
    try:
        yield
    except OSError as error:
        if error.errno in _DISK_FULL:
            raise ProvisionError(f"the disk that holds {path} is full: free some space, {advice}") from error
        if error.errno in _NOT_WRITABLE:
            raise ProvisionError(
                f"{error.filename or path} cannot be written: change its permissions, {advice}"
            ) from error
        raise


def require_free_space(path: Path, needed: int) -> None:
    """Refuse before the first byte is fetched what the disk below `path` cannot hold."""
    free = shutil.disk_usage(path).free
    if free < needed:
        raise ProvisionError(
            f"{path} has {free >> 20} MB free, {(needed >> 20) + 1} MB are needed: free some space, or set "
            "DRAFTWOOD_CACHE to a folder on another disk"
        )


def fetch(url: str, sha256: str, target: Path, done: BytesDone, patience: Patience) -> None:
    """Bring `url` to `target`, which appears only once it is whole and its SHA-256 is right.

    What an earlier call left in `target` + ".part" is continued. A wrong checksum is answered by one fresh download,
    then by ProvisionError.
    """
    part = target.with_name(target.name + ".part")
    for _ in range(2):
        _complete(url, part, done, patience)
        if sha256_of(part) == sha256:
            part.replace(target)
            return
        part.unlink()
    raise ProvisionError(
        f"{_file_name(url)} arrived with a wrong checksum twice: try again, and if it stays so, look for a proxy that "
        "alters downloads"
    )


def _complete(url: str, part: Path, done: BytesDone, patience: Patience) -> None:
    """Make `part` as long as the server says the file is."""
    if urlsplit(url).scheme == "file":
        shutil.copyfile(url2pathname(urlsplit(url).path), part)
        return
    timeout = httpx.Timeout(patience.stall_s, connect=patience.connect_s)
    failures, pause = 0, patience.pause_s
    with httpx.Client(timeout=timeout, follow_redirects=True, verify=_certificates()) as client:
        while True:
            before = _size(part)
            try:
                _continue(client, url, part, done)
            except httpx.TransportError as error:
                failures = 1 if _size(part) > before else failures + 1
                if failures >= patience.attempts:
                    raise SourceUnreachable(
                        f"{_file_name(url)} could not be downloaded ({_reason(error)}): check the network and try "
                        "again; what has arrived is kept"
                    ) from error
                time.sleep(pause)
                pause = patience.pause_s if failures == 1 else pause * 2
            else:
                return


def _continue(client: httpx.Client, url: str, part: Path, done: BytesDone) -> None:
    """One connection: append what is missing. Raises httpx.TransportError where it broke before the end."""
    have = _size(part)
    # identity: a compressed body would have other offsets than the file on disk
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    with client.stream("GET", url, headers=headers) as response:
        if response.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
            return  # nothing is missing, or the file is another one by now: the checksum decides
        if response.is_server_error or response.status_code == httpx.codes.TOO_MANY_REQUESTS:
            raise httpx.RemoteProtocolError(f"the server answered {response.status_code}")
        if not response.is_success:
            raise ProvisionError(
                f"{_file_name(url)}: the server answered {response.status_code} {response.reason_phrase}; "
                "check the package index that pip is configured with (pip config list)"
            )
        resumed = response.status_code == httpx.codes.PARTIAL_CONTENT
        have = have if resumed else 0
        with part.open("ab" if resumed else "wb") as file:
            for block in response.iter_bytes():  # as they come: a larger block would be lost with the connection
                file.write(block)
                file.flush()  # a killed process leaves what had arrived
                have += len(block)
                done(have)


def _certificates() -> ssl.SSLContext | bool:
    """pip's certificate bundle where one is named in the environment, else httpx's own choice."""
    bundle = os.environ.get("PIP_CERT")
    return ssl.create_default_context(cafile=bundle) if bundle else True


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _file_name(url: str) -> str:
    return urlsplit(url).path.rsplit("/", 1)[-1]


def _reason(error: httpx.TransportError) -> str:
    return str(error) or type(error).__name__
