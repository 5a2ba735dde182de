"""Attributes that are known: a preference of the soft constraint, and only where the whole list is known."""

from __future__ import annotations

import pytest

from grammars.scope_attributes import KnownAttributes
from grammars.scope_constraint import ScopeConstraint
from grammars.scope_index import ScopeIndex
from grammars.scope_modules import FindModule, Module, no_modules
from grammars.scopes import view
from grammars.vocabulary import Vocabulary

_TEXT = """
import enum, shapes
from dataclasses import dataclass
from elsewhere import Unknown

class Base:
    limit = 1
    def grow(self):
        self.size, self.depth = 1, 2

class Derived(Base):
    def shrink(self, other):
        self.weight: int = 0
        return (self.⌖)

class Open(Unknown):
    def f(self): return 1

class Dynamic:
    def __getattr__(self, name): return 1

class Color(enum.Enum):
    RED = 1

@dataclass
class Point:
    x: int
    y: int = 0
"""
_OFFSET = len(_TEXT[: _TEXT.index("⌖")].encode())
_INDEX = ScopeIndex.of(_TEXT.replace("⌖", "").encode())


def known(find_module: FindModule = no_modules) -> KnownAttributes:
    return KnownAttributes(view(_INDEX, _OFFSET).frames, find_module)


def test_of_self_with_bases_and_of_classes() -> None:
    own = known().of("self")
    assert own is not None
    assert {"limit", "grow", "size", "depth", "shrink", "weight", "__class__"} <= own
    assert "RED" not in own
    assert {"RED", "name", "value", "__members__"} <= (known().of("Color") or set())
    assert {"x", "y"} <= (known().of("Point") or set())


@pytest.mark.parametrize("name", ["Open", "Dynamic", "other", "Unknown", "shapes", "nothing"])
def test_what_cannot_be_known_has_no_answer(name: str) -> None:
    assert known().of(name) is None


def attributes_of(module: str, imports: str = "import shapes\n", name: str = "shapes") -> frozenset[str] | None:
    """What is known of a name in a document with these imports, where a module has this source."""
    found = {"shapes": module, "a.shapes": module, ".shapes": module, "..b.shapes": module}
    modules = {spelling: Module(ScopeIndex.of(source.encode())) for spelling, source in found.items()}
    index = ScopeIndex.of(imports.encode())
    return KnownAttributes(view(index, len(index.text)).frames, modules.get).of(name)


def test_of_modules_of_the_workspace() -> None:
    found = attributes_of("AREA = 1\ndef grow():\n    global MADE\n    MADE = inner = 1\n")
    assert found is not None
    assert {"AREA", "grow", "MADE", "__name__"} <= found
    assert "inner" not in found
    inside = Module(ScopeIndex.of(b""), frozenset({"deep"})).attributes()
    assert inside is not None
    assert "deep" in inside


@pytest.mark.parametrize(
    ("imports", "name", "known"),
    [
        ("import shapes as s\n", "s", True),
        ("from a import shapes\n", "shapes", True),
        ("from . import shapes as s, other\n", "s", True),
        ("from ..b import shapes\n", "shapes", True),
        ("import a.shapes\n", "a", False),
        ("from shapes import shapes\n", "shapes", False),  # something in it
        ("import shapes\nshapes = 1\n", "shapes", False),
        ("import other\n", "other", False),
        ("", "shapes", False),
    ],
)
def test_which_names_are_modules(imports: str, name: str, known: bool) -> None:
    assert (attributes_of("x = 1\n", imports, name) is not None) is known


@pytest.mark.parametrize(
    "module", ["from b import *\n", "def __getattr__(name): ...\n", "globals()[x] = 1\n", "x = (\n"]
)
def test_modules_that_nobody_knows(module: str) -> None:
    assert attributes_of(module) is None


_WORDS = ["size", "weight", "RED", "x", "unheard", "self", "Color", "Point", ".", "(", ")", " = ", "we", "ight", "\n"]


@pytest.fixture(scope="module")
def constraint() -> ScopeConstraint:
    return ScopeConstraint(Vocabulary.from_tokens([word.encode() for word in _WORDS]))


@pytest.mark.parametrize(
    ("completion", "better", "worse"),
    [
        ([], ["size", "weight", "we"], ["unheard", "RED"]),
        (["we"], ["ight"], ["unheard"]),
        (["size", "(", "Color", "."], ["RED"], ["x", "unheard"]),
        (["size", "(", "Point", "."], ["x"], ["RED"]),
        (["size", "."], ["unheard", "x"], []),
        (["size", ")", "\n", "self", "."], ["unheard"], []),
    ],
)
def test_soft_preferences(
    constraint: ScopeConstraint, completion: list[str], better: list[str], worse: list[str]
) -> None:
    state = constraint.open(_INDEX, _OFFSET, "soft")
    for word in completion:
        following = state.advance(_WORDS.index(word))
        assert following is not None
        state = following
    penalty = state.penalty()
    lowered = dict(zip(penalty[0].tolist(), penalty[1].tolist(), strict=True)) if penalty is not None else {}
    assert [word for word in better if _WORDS.index(word) in lowered] == []
    assert [word for word in worse if _WORDS.index(word) not in lowered] == []
    for token in range(len(_WORDS)):
        assert lowered.get(token, 0.0) == pytest.approx(state.penalty_of(token))


def test_an_attribute_is_never_forbidden(constraint: ScopeConstraint) -> None:
    assert constraint.open(_INDEX, _OFFSET, "hard").permits(_WORDS.index("unheard"))
