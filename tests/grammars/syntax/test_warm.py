from __future__ import annotations

from grammars.python_states import State
from grammars.warm_sample import SAMPLE


def test_the_sample_is_sound_to_its_end() -> None:
    state = State.start().run(SAMPLE)
    assert state is not None
    assert state.may_end()
