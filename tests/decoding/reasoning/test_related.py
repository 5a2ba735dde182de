"""What a prompt is told beside the code itself."""

from __future__ import annotations

from decoding.reasoning.related import related_code
from decoding.reasoning.requests import OpenFile
from decoding.reasoning.source import Source
from tests.decoding.reasoning.fakes import ScriptedBackend, ask, user_text

ITEM = '''\
class Item:
    """Something to sell."""
    name: str
    price: float = 0.0

    def cost(self, tax: float) -> float:
        rate: float = 1 + tax
        return self.price * rate


def unused():
    ...
'''
SHOP = '''\
import os
from store.item import Item


def total(items: list[Item]) -> float:
    """The sum of all prices."""
    return sum(each.price for each in items)


def report(items):
    return f"{total(items)} EUR"
'''
REPORT = "from shop import total\n\n# total(x)\ndef show(items):\n    print(total(items))\n    subtotal(items)\n"


def words(text: str) -> int:
    return len(text.split())


def source(text: str, name: str) -> Source:
    return Source(text.encode(), 0, 0, f"file:///project/{name}")


def about(name: str, room: int = 1000, *others: Source) -> str:
    shop = source(SHOP, "shop.py")
    definition = shop.outline.named(name)
    assert definition is not None
    return related_code(shop, shop.piece_of(definition), room, words, others)


def test_types_of_other_files_and_callers_of_all() -> None:
    assert about("total", 1000, source(ITEM, "item.py"), source(REPORT, "report.py")).split("\n") == [
        "from store.item import Item",
        "# item.py",
        "class Item:",
        "    name: str",
        "    price: float = 0.0",
        "    def cost(self, tax: float) -> float: ...",
        "# calls in shop.py",
        'return f"{total(items)} EUR"',
        "# calls in report.py",
        "print(total(items))",
    ]


def test_what_is_called_in_the_same_file() -> None:
    assert about("report") == 'def total(items: list[Item]) -> float:\n    """The sum of all prices."""'


def test_it_is_cut_where_there_is_no_room() -> None:
    assert about("total", 6, source(ITEM, "item.py")) == "from store.item import Item"


def test_what_is_not_imported_is_not_told() -> None:
    assert "class" not in about("report", 1000, source("class items: ...\n", "other.py"))


def test_a_prompt_tells_of_the_open_files() -> None:
    backend = ScriptedBackend("It adds.")
    marked = SHOP.replace("def total", "⟦⟧def total")
    ask(backend, "explain", marked, open_files=(OpenFile(uri="file:///project/item.py", text=ITEM),))
    assert "# item.py\nclass Item:\n    name: str" in user_text(backend.turns[0])
