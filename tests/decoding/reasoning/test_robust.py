"""Whatever is selected and whatever the model says: an answer or one line, and a file that parsed still parses."""

from __future__ import annotations

from typing import get_args

from hypothesis import given, settings
from hypothesis import strategies as st

from decoding.errors import BadInput
from decoding.messages import Snapshot
from decoding.reasoning.checks import syntax_error
from decoding.reasoning.commands import run_command
from decoding.reasoning.pieces import applied
from decoding.reasoning.requests import CommandName, CommandRequest, CommandResult, Problem
from tests.decoding.reasoning.fakes import ScriptedBackend

TEXTS = (
    "",
    "\r\n",
    "'''abc",
    "\x00",
    "\ufeffimport os\n",
    "x = '\ud800'\n",
    '{"a": [1, 2]}\n',
    "a = 1; b = 2\n",
    "if x:\n\tpass\nelse:\n\ty = 1\n",
    "x = '''\n  def f():\n'''\n",
    "@d\nasync def f(*, a=1, **k):\n  '''Doc.'''\n  yield 1\n",
    "class A:\n  x = 1\n  def f(self): return 1\n",
    "def f(a,\n      b): return a\\\n+ b\n",
    "def é(ü):\n    '''Eins.\n\n    Zwei.'''\n    return f'{ü!r:>{w}}'\n",
    "import os\n\n\ndef f(x):\n    return os.path.join(x, y)\n\n\ndef g():\n    return f(1)\n",
    "x = 1\f\ndef g():\n    pass",
    "def f(:\n    return (1\n",
)
SAID = (
    "",
    " does it.\nmore",
    "```",
    "def f():\n    return 1\n```",
    "    return 1\n```",
    "def f(:\n```",
    "'''\n```",
    "x = 1\n```\nmore",
    "import os\nprint(1)\n```",
    "é = 'ß'\n```",
)
MESSAGES = (
    "",
    "fix it",
    "NameError: name 'y' is not defined",
    'File "/a/m.py", line 9999\n',
    "\x00\x1b[31m",
    "a " * 3000,
)


@given(
    text=st.sampled_from(TEXTS),
    crlf=st.booleans(),
    cut=st.integers(0, 80),
    places=st.tuples(st.integers(0, 90), st.integers(0, 90)),
    command=st.sampled_from(get_args(CommandName)),
    message=st.sampled_from(MESSAGES),
    problem=st.none() | st.tuples(st.integers(0, 120), st.sampled_from(["undefined name 'y'", "odd", "`os` unused"])),
    said=st.lists(st.sampled_from(SAID), min_size=1, max_size=4),
    continues=st.booleans(),
    language=st.sampled_from(["python", "python", "python", "json"]),
)
@settings(max_examples=150, deadline=None)
def test_an_answer_or_one_line(text, crlf, cut, places, command, message, problem, said, continues, language) -> None:
    text = text.replace("\n", "\r\n") if crlf else text
    text = text[:cut] + text[cut + 1 :] if cut < 40 else text
    data = text.encode("utf-8", "surrogatepass")
    start, end = sorted(places)
    problems = () if problem is None else (Problem(start=problem[0], end=problem[0] + 3, message=problem[1]),)
    request = CommandRequest(
        command=command,
        snapshot=Snapshot(uri="file:///project/m.py", text=text, offset=start, language=language),
        end=end,
        text=message,
        problems=problems,
    )
    backend = ScriptedBackend(*said, others=["    return -", "x"])
    backend.continues = continues
    streamed: list[str] = []
    result, refusal = answered(request, backend, streamed)
    if result is None:
        assert refusal
        assert "\n" not in refusal
        return
    assert "".join(streamed) == result.text
    if result.replacements and syntax_error(text) is None:
        assert syntax_error(applied(data, result.replacements)) is None


def answered(
    request: CommandRequest, backend: ScriptedBackend, streamed: list[str]
) -> tuple[CommandResult | None, str]:
    """The result, or what was said instead of one."""
    try:
        return run_command(request, backend, streamed.append), ""
    except BadInput as error:
        return None, str(error)
