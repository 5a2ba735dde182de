"""A local HTTP server that misbehaves on purpose, and a package index in a folder."""

from __future__ import annotations

import hashlib
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


@dataclass
class Faults:
    """What the server does wrong; each count is used up by one answer to a request for a data file."""

    truncate: int = 0  # closes the connection after half of what was asked for
    corrupt: int = 0  # flips the first byte
    stall: int = 0  # sends half, then nothing for longer than a client waits
    refuse: int = 0  # answers 503
    ignore_ranges: bool = False
    dead: bool = False  # closes every connection at once
    slow_s: float = 0.0  # pause before each block of 4 KiB

    def take(self, name: str) -> bool:
        left = getattr(self, name)
        if left:
            setattr(self, name, left - 1)
        return bool(left)


@dataclass
class FileServer:
    """Serves a dict of paths; records the Range header of each request."""

    files: dict[str, bytes] = field(default_factory=dict)
    faults: Faults = field(default_factory=Faults)
    ranges: list[str | None] = field(default_factory=list)
    url: str = ""

    def sha256(self, path: str) -> str:
        return hashlib.sha256(self.files[path]).hexdigest()


@contextmanager
def serving(server: FileServer) -> Iterator[FileServer]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_arguments: object) -> None:
            pass

        def do_GET(self) -> None:
            _answer(server, self)

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    thread = threading.Thread(target=http.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    server.url = f"http://127.0.0.1:{http.server_port}"
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
        thread.join()


def _answer(server: FileServer, handler: BaseHTTPRequestHandler) -> None:
    faults, body = server.faults, server.files.get(handler.path)
    handler.close_connection = True
    if faults.dead:
        return
    if body is None:
        handler.send_error(404)
        return
    if handler.path.endswith("/"):  # a page of the index: faults are for data only
        _send(handler, 200, body, {"Content-Type": "text/html"})
        return
    wanted = handler.headers.get("Range")
    server.ranges.append(wanted)
    if faults.take("refuse"):
        handler.send_error(503)
        return
    start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and not faults.ignore_ranges else 0
    if start >= len(body) > 0:
        handler.send_error(416)
        return
    piece = body[start:]
    status = 206 if start else 200
    headers = {"Content-Range": f"bytes {start}-{len(body) - 1}/{len(body)}"} if start else {}
    if faults.take("corrupt"):
        piece = bytes([piece[0] ^ 1]) + piece[1:]
    half, stall = faults.take("truncate"), faults.take("stall")
    sent = piece[: len(piece) // 2] if half or stall else piece
    _send(handler, status, sent, headers, length=len(piece), slow_s=faults.slow_s)
    if stall:
        time.sleep(2.0)


def _send(
    handler: BaseHTTPRequestHandler,
    status: int,
    body: bytes,
    headers: dict[str, str],
    length: int | None = None,
    slow_s: float = 0.0,
) -> None:
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(body) if length is None else length))
    handler.end_headers()
    try:
        for start in range(0, len(body), 4096) if slow_s else (0,):
            handler.wfile.write(body[start : start + 4096] if slow_s else body)
            handler.wfile.flush()
            time.sleep(slow_s)
    except (BrokenPipeError, ConnectionResetError):
        pass  # the client was killed, which is what some tests do


def wheel(folder: Path, package: str, version: str, member: str, data: bytes) -> Path:
    """A minimal wheel that holds one data file."""
    stem = package.replace("-", "_")
    path = folder / f"{stem}-{version}-py3-none-any.whl"
    info = f"{stem}-{version}.dist-info"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member, data)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


def publish_wheel(server: FileServer, path: Path, package: str) -> None:
    """Add a wheel to the server as a package index would show it, hash and separate metadata included."""
    content = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        metadata = next(archive.read(name) for name in archive.namelist() if name.endswith("/METADATA"))
    sha256, metadata_sha256 = hashlib.sha256(content).hexdigest(), hashlib.sha256(metadata).hexdigest()
    server.files[f"/files/{path.name}"] = content
    server.files[f"/files/{path.name}.metadata"] = metadata
    server.files[f"/simple/{package}/"] = (
        f'<!DOCTYPE html><html><body><a href="/files/{path.name}#sha256={sha256}" '
        f'data-core-metadata="sha256={metadata_sha256}">{path.name}</a></body></html>'
    ).encode()
