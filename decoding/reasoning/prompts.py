"""What each command says to the model. Pure functions from texts to messages.

Knows wording only: small models follow short, concrete requests with the code before the question.
"""

from __future__ import annotations

from decoding.reasoning.pieces import fenced

Messages = list[dict[str, str]]

SYSTEM = "You are an expert Python programmer. You answer precisely and briefly."


def conversation(request: str) -> Messages:
    """One request of the user."""
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": request}]


def again(messages: Messages, code: str, failure: str) -> Messages:
    """The conversation after a candidate that failed."""
    return [
        *messages,
        {"role": "assistant", "content": fenced(code)},
        {
            "role": "user",
            "content": f"This is still wrong. {failure}\n\nFind the cause and write the complete corrected code in one "
            "```python block.",
        },
    ]


def explain(code: str, name: str, related: str, error: str, language: str = "python") -> Messages:
    """Explain code, or an error that it raises."""
    shown = fenced(code, language if language.isalnum() else "")
    if error:
        return conversation(
            f"{_related(related)}This code is from `{name}`:\n\n{shown}\nIt gives this error:\n\n"
            f"{fenced(error, 'text')}\nExplain what the error means, which line causes it and how to repair it. Quote "
            "the lines that matter in ```python blocks."
        )
    return conversation(
        f"{_related(related)}This code is from `{name}`:\n\n{shown}\nExplain it: first one sentence that says "
        "what it does, then how it works step by step, quoting the lines that matter in ```python blocks, then what "
        "its callers should know."
    )


def explain_steps(code: str, name: str, file: str, related: str) -> Messages:
    """Explain code whose steps are quoted one after the other while the answer is written."""
    return conversation(
        f"{_related(related)}This code is from `{file}`:\n\n{fenced(code)}\nExplain `{name}` to a colleague: first one "
        "sentence that says what it does; then, below the quote of each step, one sentence that says what these lines "
        "do and why; at the end one sentence about what its callers should know. Plain sentences, no lists."
    )


def fix(code: str, related: str, problem: str) -> Messages:
    """Repair code."""
    return conversation(
        f"{_related(related)}This Python code has a bug:\n\n{fenced(code)}\nThe problem: {problem}\n\nWrite the "
        "complete corrected code in one ```python block. Change only what has to be changed."
    )


def afresh(header: str, description: str, related: str, problem: str) -> Messages:
    """Write a function from its description; what was there is not shown, so that its mistake is not copied."""
    words = f"{description}\n\n" if description else ""
    return conversation(
        f"{_related(related)}Write this Python function:\n\n{fenced(header + '    ...')}\n{words}An earlier version "
        f"was wrong:\n\n{fenced(problem, 'text')}\nWrite the complete function in one ```python block."
    )


def edit(code: str, related: str, instruction: str) -> Messages:
    """Change code as the user says."""
    return conversation(
        f"{_related(related)}Here is Python code:\n\n{fenced(code)}\nRewrite it: {instruction}\n\nWrite the complete "
        "new code in one ```python block, nothing else."
    )


def document(code: str, slots: tuple[str, ...]) -> Messages:
    """Describe the parts of a function or class, one line each."""
    wanted = "\n".join(f"{slot}: ..." for slot in slots)
    return conversation(
        f"{fenced(code)}\nDocument this code. For each of the following write one short line that says what it is or "
        f"does; the summary says in at most ten words what the code does, as a command.\n\n{wanted}"
    )


def tests(code: str, related: str, name: str) -> Messages:
    """Write tests for a function or class."""
    return conversation(
        f"{_related(related)}Here is Python code:\n\n{fenced(code)}\nWrite a pytest test file for `{name}`: several "
        "small test functions, one for the usual case and one for each special case. Use only plain `assert` and "
        "`pytest.raises`. Do not repeat the code itself."
    )


def reason(question: str, name: str, code: str) -> Messages:
    """Think about a question, with code or without."""
    about = f"This is `{name}`:\n\n{fenced(code)}\n" if code else ""
    return conversation(f"{about}{question}")


def _related(code: str) -> str:
    return f"Related code:\n\n{fenced(code)}\n" if code else ""
