"""Texts to read before the first request: what they meet, requests will meet again.

Knows where the running interpreter keeps its library. Must not know what is made of the texts.
"""

from __future__ import annotations

import sysconfig
from collections.abc import Iterator
from pathlib import Path

_TYPICAL = ("argparse", "dataclasses", "pathlib", "enum", "unittest/case", "json/encoder", "asyncio/tasks", "csv")
"""Modules of the standard library that are written in different manners."""


def typical_sources() -> Iterator[bytes]:
    """The sources of some modules; fewer where the interpreter came without them."""
    library = Path(sysconfig.get_path("stdlib"))
    for name in _TYPICAL:
        try:
            yield (library / f"{name}.py").read_bytes()
        except OSError:
            continue


SAMPLE = rb'''
from ..package.module import name as other
import os.path, sys as system
@decorator(1, key="value")
class Klass(Base, metaclass=Meta):
    """Doc string with "quotes" and 'others'."""
    field: int = 0x1F + 0b11 - 0o17 * 1_000.5e-3 / 2j // .5 % 3 @ 4 ** 5 << 1 >> 2 & 3 | 4 ^ ~5
    raw = r"raw\d" + r'raw' + b"bytes\x41" + b'b' + rb'\x' + u"u"
    async def method(self, a, /, b: list[int] = [1, 2], *args, c=None, **kwargs) -> dict[str, int]:
        if a == b and not c or a != b and a <= b and a >= c and a < b and a > c:  # comment
            return {"key": value, 'other': [x for x in y if x is not None], **rest}
        elif a in b and a not in c:
            self.total += 1; self.count -= 2; x *= 3; y /= 4; z //= 5; w %= 6; v **= 2; u >>= 1; t <<= 2
            yield lambda x, *y, z=1: (x, y, z)
        else:
            text = f"{a!r:>{width}.3f} and {b['key']} {c[0]:x} {{}} {d(e, f='g')}\n" f'{a["b"]} {c}' f"""{a} "b" """
            text = 'escape \n \x41 \u0041 \N{BULLET} \\ ' "\t\""
            text = """triple "quoted" 'text'\n""" + rf"\d{a}" + f"""{a} 'b'"""
        while (n := next(it, ...)) is not None:
            try:
                with open(path) as handle, lock:
                    await handle.read()
            except (ValueError, KeyError) as error:
                raise RuntimeError("message %s" % error) from None
            finally:
                del cache[key], other.attr
            assert x, "message"; continue
        for i, (k, v) in enumerate(items): break
        match command:
            case [1, *rest] | {"a": 1} if ok: pass
            case Point(x=0) as p: global g
            case _: nonlocal_name = a if b else c
        try: pass
        except* Error: pass
\
if __name__ == "__main__": main()
'''
"""Meets most modes of the lexer."""
