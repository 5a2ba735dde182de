"""Builds and runs kernel_test.cpp: plainly, under sanitizers, and for 64-bit ARM under an emulator."""

from __future__ import annotations

import platform
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SOURCES = HERE.parents[2] / "decoding" / "native"
FLAGS = ["-std=c++17", "-ffp-contract=off", "-w", "-pthread", f"-I{SOURCES}"]
ARM = "aarch64-linux-gnu-g++"


def build(compiler: str, target: Path, *flags: str) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    sources = [str(path) for path in sorted(SOURCES.glob("*.cpp")) if path.name != "api.cpp"]
    command = [compiler, *FLAGS, *flags, str(HERE / "kernel_test.cpp"), *sources, "-o", str(target)]
    subprocess.run(command, check=True, capture_output=True, text=True)


def run(*command: str) -> str:
    result = subprocess.run(command, capture_output=True, text=True, timeout=500)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_address_and_undefined_behaviour_sanitizers(tmp_path: Path) -> None:
    build("g++", tmp_path / "kernels", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined")
    assert "portable passed" in run(str(tmp_path / "kernels"))


def test_thread_sanitizer(tmp_path: Path) -> None:
    """The workers once read the vector of threads while it was still being filled."""
    build("g++", tmp_path / "kernels", "-O1", "-g", "-fsanitize=thread")
    if shutil.which("setarch") is None:
        pytest.skip("the thread sanitizer needs setarch to switch address randomisation off")
    assert "portable passed" in run("setarch", "-R", str(tmp_path / "kernels"), "portable")


def test_arm_kernels_under_an_emulator(tmp_path: Path) -> None:
    if shutil.which("qemu-aarch64") is None or platform.machine() == "aarch64":
        pytest.skip("qemu-aarch64 is not installed, or this is the machine itself")
    build(ARM, tmp_path / "kernels", "-O2", "-static")
    assert "neon-dotprod passed" in run("qemu-aarch64", "-cpu", "max", str(tmp_path / "kernels"), "neon-dotprod")
