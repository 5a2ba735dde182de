"""The remote backend against a server of our own that answers, stalls, refuses and breaks off, and a real one."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from decoding.errors import Cancelled, RemoteError
from decoding.messages import Chunk, EngineOptions, Snapshot
from decoding.reasoning.docstrings import parameters_in
from decoding.reasoning.pieces import applied
from decoding.reasoning.requests import CommandRequest
from decoding.remote import RemoteAssistant, make_assistant
from decoding.server import Server

TEXT = "def area(w, h):\n    return w * h\n"


def never() -> bool:
    return False


class Script:
    """What the server does next, and what it was asked."""

    def __init__(self) -> None:
        self.pieces: list[str] = ["w * h", "\n\n", "more"]
        self.status = 200
        self.breaks_after: int | None = None
        self.stalls_after: int | None = None
        self.raw: bytes | None = None
        self.deltas: list[dict[str, Any]] | None = None
        self.asked: list[tuple[str, dict[str, Any], str | None]] = []
        self.hung_up = threading.Event()


class Handler(BaseHTTPRequestHandler):
    script: Script

    def log_message(self, *_: Any) -> None:
        return

    def do_GET(self) -> None:
        self._send_json({"data": [{"id": "first-model"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        script = self.script
        script.asked.append((self.path, body, self.headers.get("Authorization")))
        if script.status != 200:
            self.send_error(script.status)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        if script.raw is not None:
            self.wfile.write(script.raw)
            return
        chat = self.path.endswith("chat/completions")
        deltas = script.deltas or [{"content": piece} for piece in script.pieces]
        for number, delta in enumerate(deltas):
            if number == script.breaks_after:
                return
            if number == script.stalls_after:
                self._wait_until_gone()
                return
            self._event({"choices": [{"delta": delta} if chat else {"text": delta["content"]}]})
        self._event({"choices": [{"finish_reason": "stop"}], "usage": {"prompt_tokens": 9, "completion_tokens": 4}})
        self.wfile.write(b"data: [DONE]\n\n")

    def _event(self, value: dict[str, Any]) -> None:
        self.wfile.write(b"data: " + json.dumps(value).encode() + b"\n\n")
        self.wfile.flush()

    def _wait_until_gone(self) -> None:
        self.connection.settimeout(20)
        try:
            while self.connection.recv(1):
                continue
        except OSError:
            return
        self.script.hung_up.set()

    def _send_json(self, value: dict[str, Any]) -> None:
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture
def script() -> Iterator[Script]:
    Handler.script = Script()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    Handler.script.url = f"http://127.0.0.1:{server.server_port}/v1"  # type: ignore[attr-defined]
    yield Handler.script
    server.shutdown()
    server.server_close()


def options(script: Any, **changes: Any) -> EngineOptions:
    return EngineOptions(remote_url=script.url, **{"remote_model": "qwen2.5-coder-7b", **changes})


def snapshot(marked: str) -> Snapshot:
    head, _, tail = marked.partition("|")
    return Snapshot(uri="file:///project/a.py", text=head + tail, offset=len(head.encode()))


def explain(assistant: RemoteAssistant, cancelled: Callable[[], bool] = never, **fields: Any) -> Any:
    values = {"command": "explain", "snapshot": snapshot("|" + TEXT), "end": 0, **fields}
    return assistant.command(CommandRequest(**values), assistant.options, cancelled, lambda _: None)


def test_the_layout_is_the_local_one_and_the_text_is_trimmed(script) -> None:
    assistant = make_assistant(options(script))
    chunks: list[Chunk] = []
    [completion] = assistant.complete(
        snapshot("def f(w, h):\n    return |\n\nprint(1)\n"), assistant.options, never, chunks.append
    )
    assert (completion.text, completion.stop_reason) == ("w * h", "line")
    path, body, key = script.asked[0]
    assert path == "/v1/completions"
    assert body["prompt"] == "<|fim_prefix|><|fim_suffix|>\n\nprint(1)\n<|fim_middle|>def f(w, h):\n    return "
    assert (body["model"], body["stream"], key) == ("qwen2.5-coder-7b", True, None)
    assert "".join(chunk.text for chunk in chunks) == completion.raw


def test_a_model_without_infilling_gets_what_is_above_and_that_is_said(script) -> None:
    assistant = RemoteAssistant(options(script, remote_model=""))
    assistant.complete(snapshot("x = |\ny = 1\n"), assistant.options, never, lambda _: None)
    assert script.asked[0][1]["prompt"] == "x = "
    assert script.asked[0][1]["model"] == "first-model"
    assert "cannot fill in the middle" in str(assistant.describe()["fallback_reason"])


def test_commands_run_with_their_checks(script, monkeypatch) -> None:
    monkeypatch.setenv("A_KEY", "secret")
    assistant = RemoteAssistant(options(script, remote_key_env="A_KEY"))
    script.pieces = ["It ", "multiplies."]
    assert explain(assistant).text == "It multiplies."
    assert script.asked[-1][0] == "/v1/chat/completions"
    assert script.asked[-1][2] == "Bearer secret"
    script.pieces = ["Here:\n```python\ndef area(w, h):\n", "    return (w * h\n```\n"]
    refused = explain(assistant, command="edit", text="brackets", tries=2)
    assert (refused.replacements, refused.tries) == ((), 2)
    script.pieces = ["```python\ndef area(w, h):\n    return (w * h)\n```"]
    assert explain(assistant, command="edit", text="brackets").replacements[0].text.endswith("(w * h)")
    stats = explain(assistant).stats
    assert (stats.prompt_tokens, stats.tokens) == (9, 4)


@pytest.mark.parametrize(
    "deltas",
    [
        [{"reasoning_content": "Let me"}, {"reasoning_content": " see."}, {"content": "It is "}, {"content": "so."}],
        [{"content": "<think>\nLet me see.\n</th"}, {"content": "ink>\n\nIt is so."}],
    ],
)
def test_thoughts_are_shown_alike_whoever_marks_them(script, deltas) -> None:
    script.deltas = deltas
    assistant = RemoteAssistant(options(script))
    result = explain(assistant, thinking_tokens=50)
    assert result.text == "<think>\nLet me see.\n</think>\n\nIt is so."
    assert result.thought == "Let me see."
    assert explain(assistant, thinking_tokens=50, thoughts="hidden").text == "It is so."


def test_a_thought_that_never_ends_is_closed(script) -> None:
    script.deltas = [{"reasoning_content": "Hm"}]
    assert explain(RemoteAssistant(options(script)), thinking_tokens=5).text == "<think>\nHm\n</think>\n\n"


@pytest.mark.parametrize(
    ("status", "says"),
    [(401, "refused the key"), (403, "refused the key"), (404, "no such path or model"), (429, "too many requests"),
     (400, "refused the request"), (500, "failed (500)")],
)  # fmt: skip
def test_every_refusal_is_one_clear_line(script, status: int, says: str) -> None:
    assistant = RemoteAssistant(options(script))
    script.status = status
    for ask in (
        lambda: explain(assistant),
        lambda: assistant.complete(snapshot("x = |"), assistant.options, never, lambda _: None),
        lambda: assistant.answer("x", assistant.options, never, lambda _: None),
    ):
        with pytest.raises(RemoteError) as caught:
            ask()
        assert says in str(caught.value)
        assert "\n" not in str(caught.value)


def test_broken_streams_are_noticed(script) -> None:
    assistant = RemoteAssistant(options(script))
    script.breaks_after = 1
    with pytest.raises(RemoteError, match="broke off"):
        explain(assistant)
    for raw, says in [
        (b"data: not json\n\n", "OpenAI-compatible"),
        (b'data: {"x": 1}\n\n', "OpenAI-compatible"),
        (b'data: {"error": {"message": "out of memory"}}\n\n', "gave up"),
        (b"", "sent nothing"),
        (b'data: {"choices": []}\n\n', "broke off"),
    ]:
        script.raw = raw
        with pytest.raises(RemoteError, match=says):
            explain(assistant)


def test_a_server_that_is_not_there_or_silent(script) -> None:
    with pytest.raises(RemoteError, match="cannot be reached"):
        RemoteAssistant(EngineOptions(remote_url="http://127.0.0.1:9/v1"))
    with pytest.raises(RemoteError, match="cannot be reached"):
        RemoteAssistant(EngineOptions(remote_url="nonsense"))
    script.stalls_after = 1
    server = Server(script.url, "m", read_seconds=0.2)
    with pytest.raises(RemoteError, match="silent"):
        list(server.events("completions", {"prompt": "x"}, never))


def test_a_cancel_hangs_up_while_the_server_is_silent(script) -> None:
    assistant = RemoteAssistant(options(script))
    script.stalls_after = 1
    asked = 0

    def cancelled() -> bool:
        nonlocal asked
        asked += 1
        return asked > 2

    with pytest.raises(Cancelled):
        explain(assistant, cancelled)
    assert script.hung_up.wait(10)


def test_a_cancel_is_seen_however_fast_the_server_is(script) -> None:
    assistant = RemoteAssistant(options(script))
    script.pieces = ["word "] * 500
    seen: list[Chunk] = []
    request = CommandRequest(command="explain", snapshot=snapshot("|" + TEXT), end=0)
    with pytest.raises(Cancelled):
        assistant.command(request, assistant.options, lambda: bool(seen), seen.append)
    assert len(seen) < 5


def test_something_urgent_is_served_while_the_server_is_silent(script) -> None:
    assistant = RemoteAssistant(options(script))
    script.stalls_after = 1
    served: list[str] = []

    def pause() -> bool:
        if not served:
            script.stalls_after = None
            served.append(assistant.complete(snapshot("x = |"), assistant.options, never, lambda _: None)[0].text)
        return True

    request = CommandRequest(command="explain", snapshot=snapshot("|" + TEXT), end=0)
    with pytest.raises(Cancelled):
        assistant.command(request, assistant.options, lambda: bool(served), lambda _: None, pause)
    assert served == ["w * h"]


def test_a_remote_server_needs_no_torch_here() -> None:
    code = "import sys, decoding.remote; sys.exit(bool({'torch', 'transformers', 'pygls'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


class RealServer:
    """`llama_cpp.server` of the package index with the smallest registered model."""

    def __init__(self, log: Path) -> None:
        python = os.environ.get("DRAFTWOOD_LLAMA_PYTHON", sys.executable)
        if python == sys.executable and importlib.util.find_spec("llama_cpp") is None:
            pytest.skip("llama-cpp-python[server] is not installed (or name its Python in DRAFTWOOD_LLAMA_PYTHON)")
        from decoding.models.provision import ensure_model

        folder = ensure_model("smollm2-135m", lambda _: None)
        if folder.gguf_file is None:
            pytest.skip("smollm2-135m was provisioned without a GGUF file")
        port = _free_port()
        self.url = f"http://127.0.0.1:{port}/v1"
        self._log = log
        self._command = [python, "-m", "llama_cpp.server", "--model", str(folder.gguf_file), "--port", str(port)]
        self.start()

    def start(self) -> None:
        with self._log.open("wb") as output:
            self.process = subprocess.Popen(
                [*self._command, "--n_ctx", "2048", "--api_key", KEY], stdout=output, stderr=output
            )
        _wait_for(self.url, self.process, self._log)

    def options(self, **changes: Any) -> EngineOptions:
        return EngineOptions(remote_url=self.url, remote_key_env="REAL_SERVER_KEY", **{"max_tokens": 24, **changes})

    def close(self) -> None:
        self.process.kill()
        self.process.wait(30)


KEY = "secret"


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REAL_SERVER_KEY", KEY)
        server = RealServer(tmp_path_factory.mktemp("server") / "log")
        yield server
        server.close()


def _free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(600):
        if process.poll() is not None:
            pytest.fail(log.read_text(errors="replace")[-2000:])
        try:
            if httpx.get(f"{url}/models", headers={"Authorization": f"Bearer {KEY}"}, timeout=1).status_code == 200:
                return
        except httpx.HTTPError:
            time.sleep(0.2)
    pytest.fail("the server does not start")


@pytest.mark.model
def test_a_real_server_answers_and_completes(real: RealServer) -> None:
    assistant = RemoteAssistant(real.options())
    result = explain(assistant, max_tokens=24)
    assert result.text
    assert result.stats.tokens > 0
    [completion] = assistant.complete(
        snapshot("def add(a, b):\n    return |\n"), assistant.options, never, lambda _: None
    )
    assert completion.stop_reason in ("line", "end", "length")
    assert assistant.answer("The capital of France is", assistant.options, never, lambda _: None).text
    assert "cannot fill in the middle" in str(assistant.describe()["fallback_reason"])


@pytest.mark.model
@pytest.mark.parametrize("command", ["fix", "docstring", "tests", "edit", "reason"])
def test_every_command_keeps_its_promises_on_a_real_server(real: RealServer, command: str) -> None:
    assistant = RemoteAssistant(real.options())
    result = explain(assistant, command=command, text="It has to add.", tries=2, max_tokens=96)
    assert result.text
    after = applied(TEXT.encode(), result.replacements)
    compile(after, "a.py", "exec")
    if result.new_file is not None:
        compile(result.new_file.text, "test_a.py", "exec")
    if command == "docstring":
        assert parameters_in(ast.get_docstring(ast.parse(after).body[0]) or "", "google") == ("w", "h")


@pytest.mark.model
def test_what_a_real_server_refuses_is_one_clear_line(real: RealServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WRONG_KEY", "wrong")
    for changes, says in [
        ({"remote_key_env": "WRONG_KEY", "remote_model": "x"}, "WRONG_KEY"),
        ({"remote_key_env": "WRONG_KEY"}, "WRONG_KEY"),
        ({"remote_url": real.url.removesuffix("/v1"), "remote_model": "x"}, "404"),
    ]:
        with pytest.raises(RemoteError, match=says):
            explain(RemoteAssistant(real.options().model_copy(update=changes)))
    assistant = RemoteAssistant(real.options())
    with pytest.raises(RemoteError, match="longer than its context"):
        assistant.answer("word " * 4000, assistant.options, never, lambda _: None)


@pytest.mark.model
def test_a_real_server_is_free_again_after_a_cancel(real: RealServer) -> None:
    assistant = RemoteAssistant(real.options(max_tokens=400))
    seen: list[Chunk] = []
    request = CommandRequest(command="explain", snapshot=snapshot("|" + TEXT), end=0, max_tokens=400)
    with pytest.raises(Cancelled):
        assistant.command(request, assistant.options, lambda: bool(seen), seen.append)
    assert explain(assistant, max_tokens=4).text


@pytest.mark.model
def test_a_real_server_that_hangs_or_dies(real: RealServer) -> None:
    asked = {"prompt": "def f(", "max_tokens": 400}
    patient = Server.of(real.options())
    events = Server(patient.url, patient.model, patient.key_variable, read_seconds=8.0).events(
        "completions", asked, never
    )
    next(events)
    real.process.send_signal(signal.SIGSTOP)
    with pytest.raises(RemoteError, match="silent"):
        list(events)
    real.process.send_signal(signal.SIGCONT)
    events = patient.events("completions", asked, never)
    next(events)
    real.close()
    with pytest.raises(RemoteError, match="broke off"):
        list(events)
    with pytest.raises(RemoteError, match="cannot be reached"):
        list(patient.events("completions", asked, never))
    real.start()
    assert explain(RemoteAssistant(real.options()), max_tokens=4).text


@pytest.mark.parametrize("mark", ["<|fim_middle|>", "<|endoftext|>"])
def test_a_special_token_that_a_server_spells_ends_the_text(script, mark) -> None:
    script.pieces = ["w * h", mark[:5], mark[5:] + "import os"]
    found = RemoteAssistant(options(script)).complete(
        snapshot("def area(w, h):\n    return |\n"), options(script), never, lambda _: None
    )
    assert found[0].raw == "w * h"
    text = f"MARK = '{mark}'\nprint('"
    place = Snapshot(uri="file:///project/a.py", text=text + "')\n", offset=len(text))
    about = RemoteAssistant(options(script)).complete(place, options(script), never, lambda _: None)
    assert mark in about[0].raw
