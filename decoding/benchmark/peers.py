"""Contenders from elsewhere: other runtimes on the same weights, each in a process of its own.

Knows how to start `peer_worker.py` and talk to it in JSON lines. What is not installed is absent, with its reason, and
is said so in the report. `DRAFTWOOD_BENCH_PYTHON` names another interpreter that has the peers' packages.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from decoding.benchmark.contenders import Run
from decoding.benchmark.workloads import Case
from decoding.models.folder import ModelFolder

PYTHON_VARIABLE = "DRAFTWOOD_BENCH_PYTHON"
_WORKER = Path(__file__).with_name("peer_worker.py")
_START_SECONDS, _RUN_SECONDS = 900.0, 300.0
"""Some peers convert the model when they start for the first time; a run of the slowest one took 40 seconds."""


@dataclass(frozen=True, slots=True)
class PeerKind:
    """A way to run a peer: its name in the report, the worker's kind, and the model file that it wants."""

    name: str
    kind: str
    file: str


KINDS = (
    PeerKind("transformers plain (bf16)", "transformers", ""),
    PeerKind("transformers prompt lookup (bf16)", "transformers-lookup", ""),
    PeerKind("llama.cpp plain (Q4_K_M)", "llama", "model.gguf"),
    PeerKind("llama.cpp prompt lookup (Q4_K_M)", "llama-lookup", "model.gguf"),
    PeerKind("OpenVINO GenAI plain (Q8_0)", "openvino", "model.gguf"),
    PeerKind("OpenVINO GenAI prompt lookup (Q8_0)", "openvino-lookup", "model.gguf"),
    PeerKind("CTranslate2 (int8)", "ctranslate2", ""),
)


class PeerAbsent(Exception):
    """A peer that cannot run here; the message says why."""


class Peer:
    """One peer in its own process. Idle while others run: it blocks on its input."""

    def __init__(self, kind: PeerKind, folder: ModelFolder, threads: int) -> None:
        """Start it and wait until it is ready. Raises PeerAbsent."""
        self.name = kind.name
        path = folder.path / kind.file
        if not path.exists():
            raise PeerAbsent(f"needs {kind.file}, which {folder.name} has not")
        interpreter = os.environ.get(PYTHON_VARIABLE) or sys.executable
        self._process = subprocess.Popen(
            [interpreter, str(_WORKER), kind.kind, str(path), str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        ready = self._read(_START_SECONDS)
        self.version = str(ready.get("version", ""))

    def begin(self) -> None:
        """Peers learn nothing from one case to the next."""

    def run(self, case: Case, tokens: int) -> Run:
        """See `Contender.run`. Raises PeerAbsent where the process died or refused."""
        request = {"prompt_ids": list(case.prompt_ids), "tokens": tokens, "temperature": case.temperature}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._read(_RUN_SECONDS)
        return Run(tuple(answer["token_ids"]), answer["decode_ms"], answer["prefill_ms"])

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()

    def _read(self, seconds: float) -> dict[str, Any]:
        """The next answer. Raises PeerAbsent for an error, an end, or none within the time."""
        assert self._process.stdout is not None
        alarm = threading.Timer(seconds, self._process.kill)
        alarm.start()
        try:
            for line in self._process.stdout:
                if line.startswith("{"):  # libraries print what they like
                    answer: dict[str, Any] = json.loads(line)
                    if "error" in answer:
                        self.close()
                        raise PeerAbsent(answer["error"])
                    return answer
        finally:
            late = not alarm.is_alive()
            alarm.cancel()
        self._process.wait()
        if late:
            raise PeerAbsent(f"no answer within {seconds:.0f} s")
        raise PeerAbsent(f"its process ended with status {self._process.returncode}")
