"""Peers: what is said to their process, and what is said of a process that does not answer."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import pytest

from decoding.benchmark import peers
from decoding.benchmark.peers import PYTHON_VARIABLE, Peer, PeerAbsent, PeerKind
from decoding.benchmark.workloads import Case
from decoding.models.folder import ModelFolder

KIND = PeerKind("a peer", "fake", "model.gguf")
CASE = Case("infill", "one", (1, 2, 3), 4)


@pytest.fixture
def folder(tmp_path: Path) -> ModelFolder:
    """Nothing but the file that the peer asks for."""
    (tmp_path / "model.gguf").write_text("")
    folder = ModelFolder.__new__(ModelFolder)
    object.__setattr__(folder, "path", tmp_path)
    object.__setattr__(folder, "name", "nothing")
    return folder


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Makes a program that stands in for the interpreter with the peer's packages."""

    def worker(body: str) -> None:
        program = tmp_path / "python"
        program.write_text(f"#!{sys.executable}\nimport json, sys, time\n{body}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv(PYTHON_VARIABLE, str(program))

    return worker


def test_a_peer_answers_with_its_tokens_and_times(folder, worker) -> None:
    worker(
        "print('a library says hello')\n"
        "print(json.dumps({'version': '1.2'}), flush=True)\n"
        "for line in sys.stdin:\n"
        "    asked = json.loads(line)\n"
        "    ids = asked['prompt_ids'][:asked['tokens']]\n"
        "    print(json.dumps({'token_ids': ids, 'prefill_ms': 5.0, 'decode_ms': 7.0}), flush=True)"
    )
    peer = Peer(KIND, folder, 2)
    run = peer.run(CASE, 2)
    peer.close()
    assert peer.version == "1.2"
    assert (run.token_ids, run.decode_ms, run.prefill_ms) == ((1, 2), 7.0, 5.0)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("print(json.dumps({'error': 'no such package'}))", "no such package"),
        ("sys.exit(3)", "status 3"),
        ("time.sleep(60)", "no answer within 1 s"),
    ],
)
def test_a_peer_that_does_not_start_is_absent_with_the_reason(folder, worker, monkeypatch, body, reason) -> None:
    monkeypatch.setattr(peers, "_START_SECONDS", 1.0)
    worker(body)
    with pytest.raises(PeerAbsent, match=reason):
        Peer(KIND, folder, 2)


def test_a_peer_that_hangs_later_is_absent_from_then_on(folder, worker, monkeypatch) -> None:
    monkeypatch.setattr(peers, "_RUN_SECONDS", 1.0)
    worker("print(json.dumps({'version': ''}), flush=True)\ntime.sleep(60)")
    peer = Peer(KIND, folder, 2)
    with pytest.raises(PeerAbsent, match="no answer within 1 s"):
        peer.run(CASE, 2)
