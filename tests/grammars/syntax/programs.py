"""Hypothesis strategies for Python 3.13 programs: valid by construction, in as many forms as the grammar has."""

from __future__ import annotations

from hypothesis import strategies as st

names = st.sampled_from(["a", "b1", "_", "match", "case", "type", "é", "print", "x_y", "iff", "f", "rb"])
numbers = st.sampled_from(["0", "1_0", "0x_fF", "0b1", "0o7", "1.", ".5", "1e-3", "012j", "1_0.0_1E+5J", "00"])
plain_strings = st.sampled_from(
    ["''", '"a"', "'''\n'x\n'''", '"""\\\n\\""""', r'r"\""', "u'é'", r"'\x41\u0041\N{BULLET}'", r"R'\d'", "'a' 'b'"]
)
byte_strings = st.sampled_from(["b'a'", r'rB"\""', "b'''\\x00\n'''"])


def joined(*parts: st.SearchStrategy[str] | str) -> st.SearchStrategy[str]:
    """The parts one after the other."""
    return st.tuples(*(st.just(part) if isinstance(part, str) else part for part in parts)).map("".join)


def listed(items: st.SearchStrategy[str], least: int = 0, most: int = 3) -> st.SearchStrategy[str]:
    """Some items between commas, sometimes over several lines of a bracket."""
    return st.tuples(
        st.lists(items, min_size=least, max_size=most), st.sampled_from([", ", ",", ",\n  ", " ,# c\n"])
    ).map(lambda drawn: drawn[1].join(drawn[0]))


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    grouped = joined("(", inner, ")")
    operators = st.sampled_from(["+", " - ", "*", " @ ", "//", " % ", "**", "<<", "|", "&", " ^ ", ">>", "/"])
    compared = st.sampled_from([" < ", "==", "!=", " in ", " not in ", " is ", " is not ", ">="])
    clause = joined(" for ", targets, " in ", grouped, st.sampled_from(["", " if a"]))
    field = joined("{", grouped, st.sampled_from(["", "!r", "=", " = !s", ":>5", ":{a}.{b}", ":%H:%M"]), "}")
    return st.one_of(
        grouped,
        joined(grouped, operators, grouped),
        joined(grouped, compared, grouped),
        joined(st.sampled_from(["-", "not ", "~", "+-"]), grouped),
        joined(grouped, st.sampled_from([" and ", " or ", "and "]), inner),
        joined(grouped, " if ", grouped, " else ", inner),
        joined("(", names, " := ", inner, ")"),
        joined("(", inner, ",", listed(inner), ")"),
        joined("[", listed(inner), "]"),
        joined("{", listed(inner, 1), "}"),
        joined("{", listed(joined(grouped, ": ", inner)), "}"),
        joined("[", inner, clause, clause, "]"),
        joined("{", grouped, ": ", inner, clause, "}"),
        joined("(", inner, clause, ")"),
        joined(names, "(", listed(inner), ")"),
        joined(names, "(*", grouped, ", ", names, "=", inner, ", **", grouped, ")"),
        joined(names, "[", inner, ":", inner, ", *", grouped, "]"),
        joined(grouped, ".", names),
        joined("lambda ", names, ", *, b=", grouped, ": ", inner),
        joined('f"', field, "{{", field, '}}"'),
        joined("rf'''a\n", field, "\\d'''"),
        joined("(yield ", inner, ")"),
        joined("(await ", grouped, ")"),
    )


targets = st.recursive(
    st.one_of(names, joined(names, ".", names), joined(names, "[0]")),
    lambda inner: st.one_of(joined("(", inner, ", ", inner, ")"), joined("[", inner, "]"), joined("(*", inner, ",)")),
    max_leaves=3,
)
expressions = st.recursive(st.one_of(names, numbers, plain_strings, byte_strings), _larger, max_leaves=6)
patterns = st.recursive(
    st.sampled_from(["1", "-1.5", "1 + 2j", "'a'", "None", "A.b", "_"]),
    lambda inner: st.one_of(
        joined("[", inner, ", *_]"),
        joined("(", inner, ",)"),
        joined("{'k': ", inner, ", **rest}"),
        joined("P(", inner, ", x=", inner, ")"),
        joined("(", inner, ") | (", inner, ")"),
    ),
    max_leaves=4,
)


def _statements() -> st.SearchStrategy[str]:
    rhs = expressions
    return st.one_of(
        rhs,
        joined(targets, " = ", targets, " = ", rhs),
        joined(names, ": ", rhs, " = ", rhs),
        joined(names, st.sampled_from(["+=", " **= ", "//=", " @= "]), rhs),
        joined("return ", rhs),
        joined("del ", names, ", ", names, "[0]"),
        joined("assert ", rhs, ", ", rhs),
        joined("raise ", rhs, " from ", rhs),
        joined("type X[T, *U, **P] = ", names),
        st.sampled_from(
            ["pass", "import a.b as c, d", "from ..a import (b as c, d,)", "from ... import a", "...; pass;"]
        ),
    )


simple_statements = _statements()


def indented(block: str) -> str:
    """A block one level deeper. Lines inside strings and brackets are indented with it, which changes no validity."""
    return "".join(f"  {line}\n" if line else "\n" for line in block.split("\n")[:-1])


def _compound(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    body = st.one_of(inner.map(lambda block: "\n" + indented(block)), simple_statements.map(lambda one: f" {one}\n"))
    return st.one_of(
        st.tuples(inner, inner).map("".join),
        joined("if ", expressions, ":", body, "elif ", expressions, ":", body, "else:", body),
        joined("while ", expressions, ": # c", inner.map(lambda block: "\n\n" + indented(block)), "else:", body),
        joined("for ", targets, ", in ", expressions, ":", body),
        joined("async for ", targets, " in ", expressions, ":", body),
        joined("with (", expressions, " as ", names, ", ", expressions, "):", body),
        joined("with ", expressions, " as ", targets, ":", body),
        joined("try:", body, "except ", expressions, " as e:", body, "except:", body, "else:", body, "finally:", body),
        joined("try:", body, "except* ", expressions, ":\n  pass\n"),
        joined("@", expressions, "\nasync def f[T: int](a, /, b: T = 1, *c, d, **e) -> a:", body),
        joined("class A[T](B, m=", expressions, "):\n  x = 1\n"),
        joined("match ", expressions, ":\n  case ", patterns, " if ", expressions, ":\n    pass\n  case _: pass\n"),
    )


blocks = st.recursive(simple_statements.map(lambda one: f"{one}\n"), _compound, max_leaves=4)
programs = blocks.map(lambda block: f"async def program():\n{indented(block)}")
"""Whole files: the statements stand in a coroutine, where nearly everything is allowed."""
