"""Builds the C++ kernels as an optional extension: where no compiler is found, the package installs without them
and the runtime falls back to torch (`draftwood doctor` says so)."""

import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

SOURCES = sorted(path.as_posix() for path in Path("decoding/native").glob("*.cpp"))


class BuildKernels(build_ext):
    """A plain shared library with a C interface, loaded by ctypes: it has no module initialiser to export."""

    def get_export_symbols(self, ext: Extension) -> list[str]:
        """Visibility is marked in the sources."""
        return ext.export_symbols


# Contraction is off because it would let the compiler round one row's sums differently from another's. GCC 12 warns
# about uninitialised values inside its own AVX-512 headers.
WARNINGS = ["-Wall", "-Wextra", "-Wno-uninitialized", "-Wno-maybe-uninitialized"]
COMPILE = (
    ["/std:c++17", "/O2", "/fp:precise"]
    if sys.platform == "win32"
    else ["-std=c++17", "-O3", "-ffp-contract=off", "-fvisibility=hidden", "-pthread", *WARNINGS]
)

setup(
    ext_modules=[
        Extension(
            "decoding.native._kernels",
            SOURCES,
            depends=sorted(path.as_posix() for path in Path("decoding/native").glob("*.h")),
            extra_compile_args=COMPILE,
            extra_link_args=[] if sys.platform == "win32" else ["-pthread"],
            language="c++",
            optional=True,
        )
    ],
    cmdclass={"build_ext": BuildKernels},
)
