"""Limits on programs that nobody has read: what hangs, forks, hides, floods or prints binary."""

import os
import sys
import time
from pathlib import Path

import pytest

from decoding.reasoning import limited
from decoding.reasoning.limited import run_limited

linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows the processes of a run")


def python(code: str) -> list[str]:
    return [sys.executable, "-I", "-c", code]


def test_status_and_the_end_of_the_output(tmp_path: Path) -> None:
    outcome = run_limited(python("import sys; print('x' * 100_000 + 'end'); sys.exit(3)"), tmp_path, 20.0)
    assert outcome.status == 3
    assert outcome.output.endswith("xxxend\n")
    assert len(outcome.output) <= 64_000


def test_a_program_that_hangs_is_ended(tmp_path: Path) -> None:
    assert run_limited(python("import time; time.sleep(600)"), tmp_path, 0.5).status is None


def test_a_program_that_nobody_wants_any_more_is_ended(tmp_path: Path) -> None:
    assert run_limited(python("import time; time.sleep(600)"), tmp_path, 500.0, cancelled=lambda: True).status is None


def test_a_flood_of_output_is_stopped(tmp_path: Path) -> None:
    outcome = run_limited("yes draftwood", tmp_path, 60.0)
    assert outcome.status not in (0, None)
    assert "draftwood" in outcome.output


def test_binary_output_is_text_afterwards(tmp_path: Path) -> None:
    outcome = run_limited(python("import os; os.write(1, bytes(range(256)))"), tmp_path, 20.0)
    assert outcome.status == 0
    assert "\ufffd" in outcome.output


@linux
def test_a_process_that_left_the_group_keeps_nobody_waiting_and_is_killed(tmp_path: Path) -> None:
    code = (
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        open('hidden', 'w').write(str(os.getpid()))\n"
        "        time.sleep(600)\n"
        "    os._exit(0)\n"
        "while not (os.path.exists('hidden') and os.path.getsize('hidden')):\n"
        "    time.sleep(0.01)\n"
        "print('left')\n"
    )
    outcome = run_limited(python(code), tmp_path, 20.0)
    assert (outcome.status, outcome.output) == (0, "left\n")
    hidden = int((tmp_path / "hidden").read_text())
    for _ in range(200):  # what is killed still has to be collected by its parent
        if not os.path.exists(f"/proc/{hidden}") or " Z " in Path(f"/proc/{hidden}/stat").read_text():
            return
        time.sleep(0.01)
    raise AssertionError("the hidden process lives on")


@linux
def test_an_interrupt_ends_the_program_too(tmp_path: Path) -> None:
    def interrupted() -> bool:
        raise KeyboardInterrupt

    before = set(os.listdir("/proc"))
    with pytest.raises(KeyboardInterrupt):
        run_limited("sleep 77.25", tmp_path, 20.0, cancelled=interrupted)
    for entry in set(os.listdir("/proc")) - before:
        if entry.isdecimal() and os.path.exists(f"/proc/{entry}/cmdline"):
            assert b"77.25" not in Path(f"/proc/{entry}/cmdline").read_bytes()


def test_a_program_that_ended_while_we_slept_is_not_one_that_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Asleep:
        """A clock that jumps over the limit between two looks, once the program has ended."""

        calls = 0

        def monotonic(self) -> float:
            self.calls += 1
            if self.calls == 1:
                return 0.0
            while not (tmp_path / "ended").exists():
                time.sleep(0.01)
            time.sleep(0.2)
            return 1e9

        sleep = staticmethod(time.sleep)

    monkeypatch.setattr(limited, "time", Asleep())
    assert run_limited(python("open('ended', 'w').close()"), tmp_path, 20.0).status == 0
