"""The binding of the compiled kernels: ctypes structures that mirror `api.h`, `kernels.h` and `model.h`.

Knows the C interface only. Must not know files, tokens or torch.
"""

from __future__ import annotations

import ctypes
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_float, c_int32, c_void_p
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ABI = 2
"""Must equal `draftwood_abi()`: a library that was built from other sources is not used."""

MAX_ROWS = 256
MAX_TOP = 64


class Matrix(Structure):
    """`draftwood::Matrix`."""

    _fields_ = (
        ("weights", c_void_p),
        ("scales", c_void_p),
        ("bias", c_void_p),
        ("inputs", c_int32),
        ("outputs", c_int32),
        ("scale_groups", c_int32),
    )


class LayerWeights(Structure):
    """`draftwood::LayerWeights`."""

    _fields_ = (
        ("attention_norm", c_void_p),
        ("feed_norm", c_void_p),
        ("qkv", Matrix),
        ("attention_output", Matrix),
        ("gate_up", Matrix),
        ("down", Matrix),
    )


class ModelWeights(Structure):
    """`draftwood::ModelWeights`."""

    _fields_ = (
        ("vocab", c_int32),
        ("tokens", c_int32),
        ("hidden", c_int32),
        ("layers", c_int32),
        ("heads", c_int32),
        ("kv_heads", c_int32),
        ("head_dim", c_int32),
        ("feed", c_int32),
        ("norm_eps", c_float),
        ("rotary_frequencies", c_void_p),
        ("final_norm", c_void_p),
        ("layer", POINTER(LayerWeights)),
        ("embedding", Matrix),
        ("head", Matrix),
    )


class Rows(Structure):
    """`draftwood::Rows`."""

    _fields_ = (("tokens", c_void_p), ("parents", c_void_p), ("count", c_int32), ("ready", c_int32))


class Scores(Structure):
    """`draftwood::Scores`."""

    _fields_ = (("logits", c_void_p), ("top_ids", c_void_p), ("top_logits", c_void_p), ("top", c_int32))


CancelCheck = CFUNCTYPE(c_int32)

_SIGNATURES: dict[str, tuple[object, tuple[object, ...]]] = {
    "draftwood_isa": (c_char_p, ()),
    "draftwood_model_create": (c_void_p, (POINTER(ModelWeights), c_char_p, c_int32)),
    "draftwood_model_destroy": (None, (c_void_p,)),
    "draftwood_model_isa": (c_char_p, (c_void_p,)),
    "draftwood_cache_create": (c_void_p, (c_void_p, c_int32)),
    "draftwood_cache_destroy": (None, (c_void_p,)),
    "draftwood_cache_keep": (None, (c_void_p, c_int32, c_void_p, c_int32)),
    "draftwood_forward": (c_int32, (c_void_p, c_void_p, c_int32, POINTER(Rows), POINTER(Scores), c_void_p)),
}


@dataclass(frozen=True, slots=True)
class NativeStatus:
    """Whether compiled kernels can be used.

    Attributes:
        available: whether a library was found and loaded.
        isa: the instruction set it chose on this machine, "" where there is none.
        reason: why it is not available, "" where it is.
    """

    available: bool
    isa: str
    reason: str


def native_status() -> NativeStatus:
    """What `draftwood doctor` says of the kernels."""
    try:
        library = load_library()
    except OSError as error:
        return NativeStatus(False, "", str(error))
    return NativeStatus(True, library.draftwood_isa().decode(), "")


@cache
def load_library(path: Path | None = None) -> ctypes.CDLL:
    """Load the kernels (or the library at `path`). Raises OSError with the reason where there are none."""
    if path is None:
        found = [file for file in Path(__file__).parent.glob("_kernels*") if file.suffix in {".so", ".pyd"}]
        if not found:
            raise OSError("the kernels were not compiled: install a C++ compiler, then reinstall the package")
        path = found[0]
    library = ctypes.CDLL(str(path))
    library.draftwood_abi.restype = c_int32
    if library.draftwood_abi() != ABI:
        raise OSError(f"{path.name} was built from other sources: reinstall the package")
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library
