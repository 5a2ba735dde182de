"""What a session does with time, typing and attention; the client and its checks are those of the interleavings."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from lsprotocol import types

from lsp_server.documents import Document
from lsp_server.pace import Pace
from lsp_server.session import makes_sense
from lsp_server.settings import Settings
from tests.lsp_server.interleavings import Client

MakeClient = Callable[..., Client]


@pytest.fixture
def make() -> Iterator[MakeClient]:
    made: list[Client] = []

    def new(text: str, **suggest: object) -> Client:
        settings = Settings.model_validate({"suggest": {"debounce_ms": 0, **suggest}})
        made.append(Client("utf-16", text, settings))
        return made[-1]

    yield new
    for client in made:
        client.close()


def ask(client: Client, **how: bool) -> str:
    """A request that runs to its end; what it shows."""
    client.last_item = ""
    client.request(**how)
    client.settle()
    if client.requests:
        client.worker.finish()
        client.settle()
    return client.last_item


def test_typing_what_is_suggested_asks_nobody(make: MakeClient) -> None:
    client = make("x = ", prefetch=False)
    text = ask(client)
    for typed in text[:-1]:
        client.type(typed)
        text = text[1:]
        assert ask(client) == text
    assert client.worker.begun == 1


def test_typing_ahead_of_the_model_is_adopted(make: MakeClient) -> None:
    client = make("x = ", prefetch=False)
    text = ask(make("x = ", prefetch=False))
    client.request()
    client.settle()
    client.worker.step(2)
    client.cancel(0)
    client.type(text[:5])
    client.settle(0.2)
    assert ask(client) == text[5:]
    assert client.worker.begun == 1
    assert client.counts.adopted == 1


def test_a_contradiction_stops_the_worker_at_once(make: MakeClient) -> None:
    client = make("x = ")
    client.request()
    client.settle()
    client.worker.step(2)
    client.type("§")
    client.settle()
    assert not client.worker.jobs


def test_a_contradiction_that_shows_later_stops_it_then(make: MakeClient) -> None:
    client = make("x = ", prefetch=False)
    text = ask(make("x = ", prefetch=False))
    client.request()
    client.settle()
    client.type(text[:2] + "§")
    client.settle()
    assert client.worker.jobs
    client.worker.step(3)
    client.settle()
    assert not client.worker.jobs


def test_a_cancel_alone_stops_it_soon(make: MakeClient) -> None:
    client = make("x = ")
    client.request()
    client.settle()
    client.cancel(0)
    client.settle()
    client.settle(0.05)
    assert client.worker.jobs
    client.settle(0.05)
    assert not client.worker.jobs


def test_agreement_without_a_question_stops_it_later(make: MakeClient) -> None:
    client = make("x = ")
    text = ask(make("x = "))
    client.request()
    client.settle()
    client.type(text[0])
    client.settle(0.4)
    assert client.worker.jobs
    client.settle(0.2)
    assert not client.worker.jobs


def test_closing_stops_it(make: MakeClient) -> None:
    client = make("x = ")
    client.request()
    client.settle()
    client.session.closed(client.document.uri)
    client.settle()
    assert not client.worker.jobs
    assert not client.requests


def test_what_follows_is_there_when_it_is_accepted(make: MakeClient) -> None:
    client = make("x = ")
    text = ask(client)
    client.worker.finish()
    client.settle()
    client.type(text)
    ask(client)
    client.type("\n")
    assert ask(client)
    assert client.worker.begun - client.counts.prefetched == 1
    assert client.counts.from_cache == 2


def test_prefetching_goes_on_while_it_may_be_of_use(make: MakeClient) -> None:
    client = make("x = ")
    text = ask(client)
    client.type(text[0])
    client.settle(1.0)
    assert client.worker.jobs
    client.type("§")
    client.settle()
    assert not client.worker.jobs


def test_a_request_goes_before_prefetching(make: MakeClient) -> None:
    client = make("x = \ny = ")
    ask(client)
    assert client.worker.jobs
    client.move(0.4)
    assert client.cursor < len("x = \ny")
    client.request(explicit=True)
    client.settle()
    assert client.worker.jobs[0].view.patches == ()


def test_whole_lines_are_shown_while_the_rest_is_written(make: MakeClient) -> None:
    client = make("x = 1\n", multiline="always")
    client.request()
    client.settle()
    client.worker.step(1)
    while not client.worker.jobs[0].raw.endswith("\n"):
        client.worker.step(1)
    client.worker.step(2)
    client.settle(0.4)
    assert client.requests
    client.settle(0.2)
    assert not client.requests
    first = client.last_item
    assert first == client.worker.jobs[0].raw.split("\n")[0]
    client.type(first)
    client.request()
    client.settle(0.1)
    assert client.worker.begun == 1
    client.worker.finish()
    client.settle()
    assert client.last_item.startswith("\n")


def test_explicit_requests_wait_for_all_of_it(make: MakeClient) -> None:
    client = make("x = 1\n", multiline="always")
    client.request(explicit=True)
    client.settle()
    client.worker.step(60)
    client.settle(5.0)
    assert client.requests


def test_prefetching_may_be_off(make: MakeClient) -> None:
    client = make("x = ", prefetch=False)
    assert ask(client)
    assert not client.worker.jobs


def test_what_was_turned_down_is_not_shown_there_again(make: MakeClient) -> None:
    client = make("x = ")
    text = ask(client)
    client.type("§")
    client.settle()
    client.delete(1)
    assert ask(client) == ""
    assert ask(client, explicit=True) == text
    assert client.counts.dismissed == 1


def test_what_was_typed_or_accepted_was_not_turned_down(make: MakeClient) -> None:
    client = make("x = ")
    text = ask(client)
    client.type(text[:3])
    assert client.counts.partly_accepted == 1
    ask(client)
    client.type(text[3:])
    assert client.counts.dismissed == 0


def test_nothing_to_say_is_remembered(make: MakeClient) -> None:
    client = make("x = abcdefghijklmnopqrstuvwxyz0123")
    while ask(client):
        client.type("q")
    begun = client.worker.begun
    assert ask(client) == ""
    assert client.worker.begun == begun


def test_in_a_burst_the_model_is_asked_once(make: MakeClient) -> None:
    client = make("x = ", debounce_ms=100)
    for _ in range(5):
        client.type("§")
        client.request()
        client.settle(0.05)
    assert client.worker.begun == 0
    client.settle(0.1)
    assert client.worker.begun == 1


def test_new_settings_drop_what_was_computed_under_the_old(make: MakeClient) -> None:
    client = make("x = ", prefetch=False)
    ask(client)
    client.session.reconfigure(Settings.model_validate({"suggest": {"max_tokens": 3, "debounce_ms": 0}}))
    assert len(ask(client)) == 3


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("x = |", True),
        ("x = |   ", True),
        ("|", True),
        ("foo(|)", True),
        ("foo(|, b)", True),
        ('print("|")', True),
        ("pri|nt(x)", False),
        ("|print(x)", False),
        ("x = | + y", True),
        ("x| = y", False),
        ("foo(a|b)", False),
        ("if x|: pass", True),
        ("return a| + b", False),
    ],
)
def test_where_a_suggestion_makes_sense(line: str, expected: bool) -> None:
    before, _, after = line.partition("|")
    document = Document("file:///a.py", "python", before + after, 1)
    assert makes_sense(document.view(len(before))) is expected


def test_pace() -> None:
    pace = Pace()
    assert pace.delay(0.0) == 0.0
    for key in range(8):
        pace.key(key * 0.1)
    assert 0.05 < pace.delay(0.7) <= 0.15
    assert pace.delay(0.9) == 0.0
    for _ in range(20):
        pace.answered(0.02)
    assert pace.delay(0.7) < 0.02
    pace.key(5.0)
    assert pace.delay(5.0) == 0.0


def warmed(client: Client) -> list[int]:
    return [view.offset for view in client.worker.warmed]


def test_what_stands_where_the_cursor_rests_is_read(make: MakeClient) -> None:
    client = make("x = 1\ny = ")
    client.rest(5)
    client.settle(0.1)
    client.rest(9)  # it only passed
    client.settle(0.2)
    assert not client.worker.warming
    client.settle(0.1)
    client.settle(1)
    assert warmed(client) == [9]
    client.rest(9)
    client.settle(1)
    assert not client.worker.warming, "it was read already"


def test_who_only_reads_a_document_has_it_read_once(make: MakeClient) -> None:
    client = make("x = 1\ny = ")
    for offset in (5, 3, 1):
        client.rest(offset)
        client.settle(0.3)
        client.settle(1)
    assert warmed(client) == [5]
    client.type("q")
    client.type("q")
    client.rest(1)
    client.settle(0.3)
    client.settle(1)
    assert warmed(client) == [5, 1]


@pytest.mark.parametrize("what", ["question", "edit", "command", "close", "settings"])
def test_reading_ahead_gives_way_to_anything(make: MakeClient, what: str) -> None:
    client = make("x = 1\ny = ")
    client.rest(5)
    client.settle(0.3)
    assert client.worker.warming
    match what:
        case "question":
            client.request()
        case "edit":
            client.type("1")
        case "command":
            client.session.step_aside()
        case "close":
            client.session.closed(client.document.uri)
        case "settings":
            client.session.reconfigure(client.settings)
    client.settle()
    assert not client.worker.warming
    assert not client.worker.warmed


def test_reading_ahead_waits_until_the_worker_is_free(make: MakeClient) -> None:
    client = make("x = 1\ny = ", prefetch=False)
    client.request()
    client.settle()
    client.rest(5)
    client.settle(0.4)
    assert client.worker.jobs
    assert not client.worker.warming
    client.worker.finish()
    client.settle()
    client.settle(0.3)
    assert client.worker.warming


def test_a_place_that_was_read_is_answered_from_the_whole_window(make: MakeClient) -> None:
    client = make("x = 1\ny = ", prefetch=False)
    client.rest(10)
    client.settle(0.3)
    client.settle(1)
    client.type("z")
    ask(client)
    assert client.worker.windows == [client.settings.suggest.prefix_tokens]


def test_a_place_that_was_not_is_answered_from_a_short_one_and_then_read(make: MakeClient) -> None:
    client = make("x = 1\ny = ", prefetch=False)
    ask(client)
    assert client.worker.windows[0] < client.settings.suggest.prefix_tokens
    client.settle(0.3)
    client.settle(1)
    assert warmed(client) == [10]
    client.type("§")
    ask(client)
    assert client.worker.windows[1] == client.settings.suggest.prefix_tokens


def test_nothing_is_read_ahead_where_that_is_off(make: MakeClient) -> None:
    for off in ({"warm": False}, {"automatic": False}):
        client = make("x = 1\ny = ", **off)
        client.rest(5)
        client.settle(2)
        assert not client.worker.warming
        assert not client.worker.warmed


def test_what_follows_is_computed_on_while_a_part_is_accepted(make: MakeClient) -> None:
    client = make("x = ")
    text = ask(client)
    assert client.worker.jobs, "what follows is being computed"
    client.type(text[:5])  # the first word, as editors accept it
    assert ask(client) == text[5:]
    assert client.counts.partly_accepted == 1
    client.worker.finish()
    client.settle()
    client.type(text[5:])
    ask(client)
    client.type("\n")
    assert ask(client)
    assert client.worker.begun - client.counts.prefetched == 1


def test_what_fails_in_a_way_that_nobody_foresaw_is_not_begun_again(make: MakeClient) -> None:
    client = make("x = ", prefetch=False, warm=False)
    client.request()
    client.settle()
    client.worker.die(RuntimeError("a mistake of ours"))
    client.settle()
    client.settle()
    assert not client.requests
    assert client.worker.begun == 1
    assert client.counts.failed == 1
    assert ask(client)


def test_of_two_documents_that_ask_at_once_the_later_is_answered(make: MakeClient) -> None:
    client = make("x = ", prefetch=False, warm=False)
    other = client.store.open(types.TextDocumentItem("file:///b.py", "python", 1, "y = "))
    client.request()
    client.settle()
    client.worker.step(2)
    later = client.loop.create_task(client.session.suggest(other.view(4)))
    for _ in range(5):
        client.settle()
        client.worker.step(50)
    assert not client.requests
    assert client.last_item == ""
    assert later.result().best_first
    assert client.worker.begun == 2
