"""The figures of the reasoning commands on public data: what parses, what is collected, what is fixed, how fast.

Knows the assistant's commands and the data sets. Generated code runs only in limited subprocesses. Every measurement
yields one outcome a case, so that a run that is stopped early still says what it found.
"""

from __future__ import annotations

import ast
import json
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from decoding.assistant import Assistant
from decoding.benchmark.workloads import data_folder, read_json_lines, sampled
from decoding.messages import Chunk, EngineOptions, Snapshot
from decoding.reasoning.checks import syntax_error
from decoding.reasoning.docstrings import parameters_in, shape_of
from decoding.reasoning.failures import essence
from decoding.reasoning.limited import Outcome as Ended
from decoding.reasoning.limited import run_limited
from decoding.reasoning.pieces import applied
from decoding.reasoning.requests import CommandName, CommandRequest, CommandResult
from decoding.reasoning.thoughts import CLOSE, OPEN
from decoding.steering import Steering
from grammars.constraint import Unconstrained
from grammars.reasoning import PLAN_MARKS, TEXT_MARKS, ThoughtGrammar, ThoughtMarks

_SECONDS = 10.0
_TRIES = 4
_NO_TESTS = 5
"""pytest's status where it found no test functions: these tests run while they are imported."""
_FENCE = re.compile(r"^```(?:python|py)[ \t]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
_INSTRUCTIONS = (
    "use clearer names for the local variables",
    "add type annotations",
    "raise a ValueError where an argument is None",
    "write it without a loop where that is possible",
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one case gave: pairs to be summed and divided, (1, 1) for a success and (0, 1) for a failure of a share."""

    figure: str
    case: str
    part: float
    whole: float


@dataclass(frozen=True, slots=True)
class FixCase:
    """A buggy program with tests: some to be seen while fixing, the others to judge by. Tests stand behind the code."""

    id: str
    function: str
    source: str
    visible: str
    hidden: str


class ReasoningBenchmark:
    """All measurements, on one loaded model."""

    def __init__(self, assistant: Assistant, count: int, skip: int = 0) -> None:
        """`count` cases of each kind behind the first `skip`, fewer where the data has fewer."""
        self._assistant = assistant
        self._count = count
        self._skip = skip
        self._data = data_folder()

    @property
    def measurements(self) -> dict[str, Callable[[], Iterator[Outcome]]]:
        """By name."""
        return {
            "thoughts": self.thoughts,
            "docstrings": self.docstrings,
            "edits": self.edits,
            "tests": self.tests,
            "explanations": self.explanations,
            "fixes": self.fixes,
            "speed": self.speed,
        }

    def thoughts(self) -> Iterator[Outcome]:
        """Blocks that are well formed: marks of three kinds of model, budgets 1 to 512, temperatures 0 to 1.2."""
        vocabulary = self._assistant.model.vocabulary
        specials = sorted(vocabulary.special - vocabulary.end)[:2]
        kinds = {"own": self._assistant.thoughts.marks, "text": TEXT_MARKS, "plan": PLAN_MARKS}
        if len(specials) == 2:
            kinds["tokens"] = ThoughtMarks(open_token=specials[0], close_token=specials[1])
        grammars = {name: ThoughtGrammar(vocabulary, marks) for name, marks in kinds.items()}
        for number in range(self._skip, self._skip + self._count):
            name = list(grammars)[number % len(grammars)]
            budget = min(512, 2 ** (number % 10))
            options = self._assistant.options.model_copy(
                update={"max_tokens": budget + 48, "temperature": round(0.3 * (number % 5), 1), "seed": number}
            )
            steering = Steering(
                constraint=grammars[name].start(budget, options.max_tokens, Unconstrained()),
                marks=kinds[name].shown_tokens,
            )
            messages = [{"role": "user", "content": f"Which is larger, {number} or {number * 7 % 13}? Think."}]
            answer = self._assistant.answer(messages, options, _never, lambda _: None, None, steering)
            yield Outcome(f"thoughts well formed ({name})", str(number), _well_formed(answer.text, kinds[name]), 1)

    def docstrings(self) -> Iterator[Outcome]:
        """Docstrings whose parameters are those of the signature."""
        for item in self._sampled("fresh_docstrings/dev.jsonl.gz"):
            code = item["code"].rstrip() + "\n"
            shape = shape_of(code, method=False)
            if shape is None:
                continue
            result = self._run("docstring", code)
            found = _docstring(applied(code.encode(), result.replacements))
            equal = found is not None and parameters_in(found, "google") == tuple(name for name, _ in shape.parameters)
            yield Outcome("docstrings with the signature's parameters", item["func_name"], equal, 1)

    def edits(self) -> Iterator[Outcome]:
        """Edits that are proposed at all, and those after which the file parses."""
        for number, (name, code) in enumerate(self._functions()):
            text = _INSTRUCTIONS[number % len(_INSTRUCTIONS)]
            result = self._run("edit", code, text=text)
            yield Outcome("edits proposed", name, bool(result.replacements), 1)
            if result.replacements:
                after = applied(code.encode(), result.replacements)
                yield Outcome("edits after which the file parses", name, syntax_error(after) is None, 1)

    def tests(self) -> Iterator[Outcome]:
        """Test files that pytest collects without an error."""
        for name, code in self._functions():
            with tempfile.TemporaryDirectory() as folder:
                module = Path(folder) / "solution.py"
                module.write_text(code, encoding="utf-8")
                result = self._run("tests", code, uri=module.as_uri())
                collected = False
                if result.new_file is not None:
                    (Path(folder) / "test_solution.py").write_text(result.new_file.text, encoding="utf-8")
                    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider"]
                    collected = run_limited([*command, "test_solution.py"], Path(folder), 6 * _SECONDS).status == 0
            yield Outcome("test files that pytest collects", name, collected, 1)

    def explanations(self) -> Iterator[Outcome]:
        """Explanations with code in them, and their Python fences that parse. One that a limit cut is not counted."""
        for name, code in self._functions():
            fences = _FENCE.findall(self._run("explain", code).text)
            yield Outcome("explanations that quote code", name, bool(fences), 1)
            for fence in fences:
                yield Outcome("Python fences that parse", name, _parses(fence), 1)

    def speed(self) -> Iterator[Outcome]:
        """The time to the first characters of a cold explanation, and the speed-up over plain decoding."""
        for name, code in self._long_functions():
            self._assistant.writer.pool.clear()
            yield from self._first_characters(name, code)
        for number, (name, code) in enumerate(self._functions()):
            yield from self._speed_up("explain", name, code)
            yield from self._speed_up("edit", name, code, text=_INSTRUCTIONS[number % len(_INSTRUCTIONS)])

    def fixes(self) -> Iterator[Outcome]:
        """Bugs whose hidden tests pass: after one try, after the best of several independent tries, after the loop of
        as many. What is best, and when the loop is over, the visible tests say."""
        for case in self._fix_cases():
            failure = self._failure(case.source, case.visible) or "the result is wrong for some arguments"

            def trial(text: str, case: FixCase = case) -> str | None:
                return self._failure(text, case.visible)

            once = self._fixed(case, failure, tries=1)
            yield Outcome("fixed in one try", case.id, self._passes(once, case.hidden), 1)
            best = next(
                (text for text in self._independent(case, failure, once) if self._passes(text, case.visible)), once
            )
            yield Outcome(f"fixed by the best of {_TRIES}", case.id, self._passes(best, case.hidden), 1)
            looped = self._fixed(case, failure, tries=_TRIES, trial=trial)
            yield Outcome(f"fixed by the loop of {_TRIES}", case.id, self._passes(looped, case.hidden), 1)

    def _independent(self, case: FixCase, failure: str, once: str) -> Iterator[str]:
        yield once
        for seed in range(1, _TRIES):
            yield self._fixed(case, failure, tries=1, temperature=0.8, seed=seed)

    # What they share --------------------------------------------------------------------------------------------

    def _run(self, command: CommandName, code: str, **more: Any) -> CommandResult:
        options: EngineOptions = more.pop("options", self._assistant.options)
        emit: Callable[[Chunk], None] = more.pop("emit", lambda _: None)
        trial = more.pop("trial", None)
        name = more.pop("name", "")
        start = code.index(f"def {name}(") if name else _last_function(code)
        snapshot = Snapshot(uri=more.pop("uri", "file:///benchmark/solution.py"), text=code, offset=start)
        request = CommandRequest(command=command, snapshot=snapshot, end=start, **{"max_tokens": 384, **more})
        return self._assistant.command(request, options, _never, emit, trial=trial)

    def _first_characters(self, name: str, code: str) -> Iterator[Outcome]:
        started = time.perf_counter()
        seen: list[float] = []
        options = self._assistant.options.model_copy(update={"max_tokens": 8})
        self._run("explain", code, options=options, emit=lambda _: seen.append(time.perf_counter()), max_tokens=8)
        if seen:  # an explanation of a function begins with its name, which is ours
            yield Outcome("seconds to the first characters", name, seen[min(1, len(seen) - 1)] - started, 1)

    def _speed_up(self, command: CommandName, name: str, code: str, **more: Any) -> Iterator[Outcome]:
        """Decoding time a token, plain over drafted, of the same greedy texts. And of the whole answer, in which
        quotes are read and not written: plain decoding of all its tokens over the time behind the first characters."""
        seen: list[float] = []
        result = self._run(command, code, tries=1, emit=lambda _: seen.append(time.perf_counter()), **more)
        drafted = result.stats
        plain_options = self._assistant.options.model_copy(update={"drafter": "none"})
        plain = self._run(command, code, tries=1, options=plain_options, **more).stats
        if drafted.tokens == plain.tokens and drafted.decode_ms:
            yield Outcome(f"{command}: speed-up over plain decoding", name, plain.decode_ms, drafted.decode_ms)
            tokens = len(self._assistant.model.encode(result.text))
            whole = tokens * plain.decode_ms / plain.tokens
            yield Outcome(f"{command}: speed-up of the whole answer", name, whole, 1e3 * (seen[-1] - seen[0]))

    def _sampled(self, name: str) -> list[dict[str, Any]]:
        return sampled(read_json_lines(self._data / name), self._skip + self._count)[self._skip :]

    def _functions(self) -> Iterator[tuple[str, str]]:
        for item in self._sampled("humanevalpack/dev.jsonl.gz"):
            yield item["task_id"], item["declaration"] + item["canonical_solution"].rstrip() + "\n"

    def _long_functions(self) -> Iterator[tuple[str, str]]:
        """Functions of about 50 lines."""
        for item in sampled(read_json_lines(self._data / "fresh_docstrings" / "dev.jsonl.gz"), 10 * self._count):
            if 35 <= item["code"].rstrip().count("\n") + 1 <= 65:
                yield item["func_name"], item["code"].rstrip() + "\n"

    def _fix_cases(self) -> Iterator[FixCase]:
        for item in self._sampled("humanevalpack/dev.jsonl.gz"):
            yield FixCase(
                item["task_id"],
                item["entry_point"],
                item["prompt"] + item["buggy_solution"].rstrip() + "\n",
                item["example_test"],
                item["test"],
            )
        for item in self._sampled("quixbugs/dev.jsonl"):
            tests = _tests_of(item, self._data / "quixbugs" / "aux_files.json")
            half = len(tests) // 2
            if half:
                visible, hidden = ("\n".join(part) for part in (tests[:half], tests[half:]))
                yield FixCase(item["name"], item["name"], item["buggy"].lstrip("\n"), visible, hidden)

    def _fixed(self, case: FixCase, failure: str, *, tries: int, trial: Any = None, **sampling: Any) -> str:
        options = self._assistant.options.model_copy(update=sampling)
        result = self._run(
            "fix", case.source, name=case.function, text=failure, tries=tries, trial=trial, options=options
        )
        return applied(case.source.encode(), result.replacements)

    def _failure(self, code: str, tests: str) -> str | None:
        """What pytest says of a failing test, None where all pass (which is known much sooner)."""
        if self._passes(code, tests):
            return None
        outcome = self._outcome(code, tests, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider")
        if outcome.status in (0, _NO_TESTS):
            return None
        return "A test does not end." if outcome.status is None else f"A test fails:\n{essence(outcome.output)}"

    def _passes(self, code: str, tests: str) -> bool:
        return self._outcome(code, tests, "-I").status == 0

    def _outcome(self, code: str, tests: str, *how: str) -> Ended:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "test_case.py").write_text(f"{code}\n{tests}\n", encoding="utf-8")
            return run_limited([sys.executable, *how, "test_case.py"], Path(folder), _SECONDS)


def _tests_of(item: dict[str, Any], aside: Path) -> list[str]:
    """The tests of a QuixBugs program, each one code that stands behind it: calls with arguments and results, or, of
    programs on graphs, test functions on nodes."""
    if item.get("json_testcases"):
        return [_call(item["name"], arguments, expected) for arguments, expected in item["json_testcases"]]
    node = json.loads(aside.read_text(encoding="utf-8"))["python_testcases/node.py"]
    statements = ast.parse(item["pytest"]).body
    tests = [each for each in statements if isinstance(each, ast.FunctionDef) and each.name.startswith("test")]
    imports = ast.Import | ast.ImportFrom | ast.If  # of what stands here already
    given = [ast.unparse(each) for each in statements if each not in tests and not isinstance(each, imports)]
    return [
        "\n".join([node, *given, ast.unparse(each), "if __name__ == '__main__':", f"    {each.name}()"])
        for each in tests
    ]


def _call(name: str, arguments: Any, expected: Any) -> str:
    """Test code that calls a function with arguments."""
    arguments = arguments if isinstance(arguments, list) else [arguments]
    return (
        f"arguments, expected = {arguments!r}, {expected!r}\n"
        f"got = {name}(*arguments)\n"
        f"got = list(got) if hasattr(got, '__next__') else got\n"
        f"assert got == expected, f'{name}(*{{arguments}}) gave {{got}}, not {{expected}}'\n"
    )


def _well_formed(text: str, marks: ThoughtMarks) -> bool:
    """One closed block, then something."""
    opening, close = (
        (OPEN, CLOSE) if marks.open_token is not None else (marks.open.decode().strip(), marks.close.decode())
    )
    once = text.startswith(opening) and f"\n{text}".count(close) == 1
    return once and bool(text.partition(close)[2].strip())


def _last_function(code: str) -> int:
    """The byte where the last function at the top of the code begins; 0 where there is none."""
    lines = [node.lineno for node in ast.parse(code).body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return len("".join(code.splitlines(keepends=True)[: lines[-1] - 1]).encode()) if lines else 0


def _docstring(text: str) -> str | None:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return ast.get_docstring(node)
    return None


def _parses(code: str) -> bool:
    try:
        ast.parse(code)
    except SyntaxError:
        return False
    return True


def _never() -> bool:
    return False
