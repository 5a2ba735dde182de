"""`visible_names` on fixtures that carry their expectations, and its contract."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from grammars import visible_names
from grammars.builtin_names import BUILTIN_NAMES
from grammars.scopes import PositionKind

_FIXTURES = Path(__file__).with_name("fixtures")
_MARKER = re.compile(r"^(\s*#\s*)\^ ([a-z ]+): ([^|]*)(?:\| (.*))?$")
_CURSOR = "⌖"


def marked_positions() -> Iterator[object]:
    """(text, offset, kind, visible, hidden) of every marker in the fixtures; markers stay in, they are comments."""
    for path in sorted(_FIXTURES.glob("[!u]*.py.txt")):
        text = path.read_text("utf-8")
        lines = text.split("\n")
        target = 0
        for number, line in enumerate(lines):
            marker = _MARKER.match(line)
            if marker is None:
                target = number
                continue
            offset = sum(len(earlier) + 1 for earlier in lines[:target]) + len(marker[1])
            expected = (marker[2], marker[3].split(), (marker[4] or "").split())
            yield pytest.param(text, offset, *expected, id=f"{path.stem}:{number + 1}")


def unfinished_cases() -> Iterator[object]:
    for case in (_FIXTURES / "unfinished.py.txt").read_text("utf-8").split("== ")[1:]:
        title, _, rest = case.partition("\n")
        code, _, expectation = rest.partition("---\n")
        kind, _, names = expectation.strip().partition(":")
        shown, _, hidden = names.partition("|")
        offset = code.index(_CURSOR)
        yield pytest.param(code.replace(_CURSOR, ""), offset, kind, shown.split(), hidden.split(), id=title)


@pytest.mark.parametrize(("text", "offset", "kind", "shown", "hidden"), [*marked_positions(), *unfinished_cases()])
def test_fixture(text: str, offset: int, kind: str, shown: list[str], hidden: list[str]) -> None:
    view = visible_names(text, offset)
    assert view.position == kind
    assert view.escape_hatch is None
    assert [name for name in shown if name not in view.names] == []
    assert [name for name in hidden if name in view.names] == []


def test_offsets_are_code_points_for_str_and_bytes_for_bytes() -> None:
    text = 'ä = "→"\nöl = ä\nprint('
    view = visible_names(text, len(text))
    assert {"ä", "öl"} <= view.names
    assert visible_names(text.encode(), len(text.encode())) == view
    assert "öl" not in visible_names(text, text.index("ä\n")).names


@pytest.mark.parametrize("offset", [-1, 4])
def test_an_offset_outside_of_the_text_is_an_error(offset: int) -> None:
    with pytest.raises(ValueError, match="outside of a text of length 3"):
        visible_names("x=1", offset)


def test_identifiers_are_compared_as_python_compares_them() -> None:
    assert "fi" in visible_names("ﬁ = 1\n", 6).names


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_line_endings(newline: str) -> None:
    text = newline.join(["class A:", "    x = 1", "    y = x", "    def f(self):", "        return self", ""])
    assert "x" in visible_names(text, text.index("x" + newline + "    def")).names
    assert "x" not in visible_names(text, text.index("self" + newline)).names


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("from os import *\n⌖", "star import"),
        ("exec(code)\n⌖", "exec()"),
        ("globals()[x] = 1\n⌖", "globals()"),
        ("globals()['not a name'] = 1\n⌖", "globals()"),
        ("globals()['x'].y, globals()[x] = 1\n⌖", "globals()"),
        ("fill(globals())\n⌖", "globals()"),
        ("fill(names=globals())\n⌖", "globals()"),
        ("exec(code, globals())\n⌖", "globals()"),
        ("g = globals()\n⌖", "globals()"),
        ("locals().update(a)\n⌖", "locals()"),
        ("try:\n    ⌖\nexcept NameError: pass", "except NameError"),
        ("try:\n    ⌖\nexcept: pass", "except NameError"),
        ("def f():\n    def g(): ⌖\n    self.assertRaises(NameError, g)\n", "expected NameError"),
        ("def f():\n    def g(): ⌖\n    try: g()\n    except NameError: pass\n", "expected NameError"),
        ("E._convert_('A', __name__, f)\n⌖", "_convert_()"),
        ("@enum.global_enum\nclass E: A = 1\n⌖", "global_enum()"),
        ("setattr(sys.modules[__name__], 'x', 1)\n⌖", "sys.modules[__name__]"),
        ("@fixture\nasync ⌖\n    async for x in f():\n        yield x\n", "syntax error"),
    ],
)
def test_escape_hatches(code: str, reason: str) -> None:
    offset = code.index("⌖")
    assert visible_names(code.replace("⌖", ""), offset).escape_hatch == reason


@pytest.mark.parametrize(
    "code",
    [
        "exec(code, {})\n⌖",
        "'x' in globals()\n⌖",
        "globals()['x'] = 1\n⌖",
        "hints = typing.get_type_hints(f, globals(), locals())\n⌖",
        "timeit('x', globals=globals())\n⌖",
        "eval(code, globals())\n⌖",
        "def f(): return locals()\n⌖",
        "vars(x)\n⌖",
        "try: pass\nexcept NameError: pass\n⌖",
        "with raises(NameError): pass\n⌖",
        "def f():\n    with raises(NameError): pass\ndef g(): ⌖\n",
        "def f():\n    try: pass\n    except: pass\n    ⌖\n",
        "with open('NameErrors'): ⌖",
        "try: pass\nexcept ValueError: ⌖",
        "class A:\n    locals().update(a)\n    def f(self): return ⌖",
    ],
)
def test_what_is_no_escape_hatch(code: str) -> None:
    offset = code.index("⌖")
    assert visible_names(code.replace("⌖", ""), offset).escape_hatch is None


@pytest.mark.parametrize("where", ["", "def f():\n    ", "class A:\n    "])
@pytest.mark.parametrize(
    ("code", "name"), [("globals()['x'] = 1", "x"), ("builtins.x = 1", "x"), ("gettext.install('domain')", "_")]
)
def test_names_that_code_makes_global(where: str, code: str, name: str) -> None:
    text = f"{where}{code}\nprint()\n"
    assert name in visible_names(text, text.index(")\n", text.index("print"))).names


def test_private_globals_are_mangled() -> None:
    text = "class _A:\n    def f(self):\n        global __x\n        __x = 1\nprint()\n"
    assert "_A__x" in visible_names(text, text.index(")\n", text.index("print"))).names


def test_bindings_say_where_a_name_comes_from() -> None:
    text = "import os\ndef f(a):\n    b = a\n    return b\n"
    bindings = visible_names(text, text.index("b\n", 30)).bindings
    assert {name: (b.kind.value, b.scope.value) for name, b in bindings.items()} == {
        "os": ("import", "module"),
        "f": ("function", "module"),
        "a": ("parameter", "function"),
        "b": ("assignment", "function"),
    }
    assert all(text.startswith(name, binding.offset) for name, binding in bindings.items())


def test_a_typed_prefix_is_told_apart() -> None:
    view = visible_names("value = 1\nprint(val", 19)
    assert (view.prefix, view.position) == ("val", PositionKind.ARGUMENT)


def test_what_is_bound_later_is_known_to_come() -> None:
    view = visible_names("\nx = 1\n", 0)
    assert "x" not in view.names
    assert "x" in view.later


@pytest.mark.parametrize(
    "text", ["", "\n", "\x00", "\ufeffx = 1\n", "\ud800", "'''", '"', "f'{", "(", ")", "\\", "\\\n", "@", "\t x"]
)
def test_any_text_has_a_view_at_any_offset(text: str) -> None:
    for offset in range(len(text) + 1):
        assert visible_names(text, offset).names >= BUILTIN_NAMES


@pytest.mark.parametrize(
    ("code", "visible"),
    [
        ("def f():\n    return ⌖ if (x := g()) else 0", True),
        ("def f():\n    return 0 if (x := g()) else ⌖", True),
        ("def f(a):\n    return [⌖ for b in a if (x := b)]", True),
        ("def f(a):\n    return g(⌖ for b in a if h(x := b))", True),
        ("def f(a):\n    return ⌖ + (x := 1)", False),
        ("y = ⌖ if (x := g()) != 1 else ''", True),
    ],
)
def test_what_is_evaluated_after_a_walrus(code: str, visible: bool) -> None:
    assert ("x" in visible_names(code.replace("⌖", "z"), code.index("⌖")).names) is visible


def test_a_name_that_is_declared_global_is_there() -> None:
    code = "def f():\n    global w\n    print(⌖)\n"
    assert "w" in visible_names(code.replace("⌖", "z"), code.index("⌖")).names
