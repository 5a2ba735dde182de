"""The assistant: snapshot in, completion out. The one facade that the command line and the worker call.

Knows models, prompts, constraints and the engine, and puts them together. Must not know the protocol, processes
or editors.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import cached_property

from decoding.chat import ChatTemplate
from decoding.engine import Guide
from decoding.errors import BadPosition
from decoding.fitting import Fitted
from decoding.hole import Hole
from decoding.infilling import Infilling
from decoding.messages import Answer, Chunk, Completion, EngineOptions, Snapshot
from decoding.models.loading import LoadedModel, Progress, fitted, load_model
from decoding.names import NamesAround, imports_for
from decoding.prompts import Prompt
from decoding.reasoning.backend import LocalBackend
from decoding.reasoning.commands import run_command
from decoding.reasoning.fixing import Trial
from decoding.reasoning.requests import CommandRequest, CommandResult, Replacement
from decoding.reasoning.thoughts import marks_of
from decoding.second_choices import is_greedy, second_choices
from decoding.stats import Tally
from decoding.steering import Steering
from decoding.stopping import StopRule, wants_lines
from decoding.writer import CancelCheck, Emit, Request, Start, Text, Watch, Writer, drained, sampling_of
from grammars.constraint import FirstToken
from grammars.fences import FenceGrammar
from grammars.reasoning import ThoughtGrammar

_SECOND_TRIES = 2
"""So often a text is written again from a name on that does not exist."""


class Assistant:
    """One loaded model, and the documents that it works on.

    Attributes:
        writer: from prompts to texts.
        infilling: from documents to prompts, and from texts to what is shown.
        chat: how messages look as a prompt.
    """

    def __init__(self, options: EngineOptions, progress: Progress = lambda _: None) -> None:
        """Provision and load the model of `options`. Raises UnknownModel or ModelError."""
        self.options = options = fitted(options, progress)
        self.model: LoadedModel = load_model(options, progress)
        self.writer = Writer(self.model, options, progress)
        self.infilling = Infilling(self.model, self.writer.room)
        self.chat = ChatTemplate(self.model.folder)

    def complete(
        self, snapshot: Snapshot, options: EngineOptions, cancelled: CancelCheck, emit: Emit, watch: Watch | None = None
    ) -> list[Completion]:
        """Suggestions for the cursor of `snapshot`, best first. The first has no text where there is nothing to say.

        `emit` gets the text of every round as it comes, before trimming. Raises BadPosition, Cancelled.
        """
        data = snapshot.text.encode("utf-8", "surrogatepass")
        if snapshot.offset > len(data):
            raise BadPosition(f"offset {snapshot.offset} is past the end of the text ({len(data)} bytes)")
        hole = Hole.at(snapshot.text, snapshot.offset)
        several = wants_lines(hole, options.multiline)
        rule = StopRule(hole, several, snapshot.language == "python")
        prompt = self._prompt_of(snapshot, options)
        started = time.perf_counter()
        guide = self._guide(prompt, snapshot, options)
        open_ms = 1e3 * (time.perf_counter() - started)
        ids = prompt.token_ids
        starts = [
            Start(Request([*ids], len(ids), prompt.healed, Tally(prune_ms=open_ms)), first, sampling_of(options, index))
            for index, first in enumerate(self._first_choices(prompt, snapshot, guide, options, cancelled))
        ]
        found: list[Completion] = []
        steering = Steering(over=rule.reason, stops=self.model.vocabulary.special)
        for start, text in self.writer.write_all(starts, options, steering, cancelled, emit, watch):
            completion = self._completion(start, text, options, steering, rule, snapshot, cancelled, watch)
            if not found or (completion.text and completion.text not in [other.text for other in found]):
                found.append(completion)
        return found

    def prepare(self) -> Iterator[None]:
        """What makes the first requests fast, to be done in idle moments: some milliseconds from step to step."""
        yield from self.infilling.python.warming()
        gc.freeze()  # what was made stays: a full collection would look through half a million objects again

    def warm(self, snapshot: Snapshot, options: EngineOptions, cancelled: CancelCheck) -> None:
        """Prefill what a request at this cursor would need, and look through its document. Raises Cancelled."""
        prompt = self._prompt_of(snapshot, options)
        self.writer.prefilled(Request([*prompt.token_ids], len(prompt.token_ids), prompt.healed), cancelled)
        self._guide(prompt, snapshot, options)
        if snapshot.language == "python":
            self.infilling.python.study(prompt.token_ids)

    def forget(self, uri: str) -> None:
        """Drop what was remembered of a document."""
        self.writer.drafting.forget(uri)
        self.infilling.scopes.forget(uri)

    def answer(
        self,
        prompt: str | Sequence[dict[str, str]],
        options: EngineOptions,
        cancelled: CancelCheck,
        emit: Emit,
        watch: Watch | None = None,
        steering: Steering | None = None,
    ) -> Answer:
        """Continue a text, or answer messages laid out by the model's chat template. Raises BadInput, Cancelled."""
        return drained(self.stream(prompt, options, cancelled, watch, steering), emit)

    def stream(
        self,
        prompt: str | Sequence[dict[str, str]],
        options: EngineOptions,
        cancelled: CancelCheck,
        watch: Watch | None = None,
        steering: Steering | None = None,
    ) -> Generator[Chunk, None, Answer]:
        """`answer` as a generator of its chunks; the answer is what it returns. Another request may be served
        between two chunks only where `steering.pause` says so."""
        steering = steering or Steering()
        laid_out = (
            self._chat_prompt(prompt, steering.opening, think=steering.think)
            if not isinstance(prompt, str)
            else self.infilling.layout.continuation(prompt + steering.opening)
        )
        request = Request(list(laid_out.token_ids), len(laid_out.token_ids), b"")
        guide = Guide.enforcing(steering.constraint)
        start = Start(request, guide, sampling_of(options))
        text, count, reason, off_reason = yield from self.writer.write(start, options, steering, cancelled, watch)
        return Answer(
            text=text,
            token_ids=tuple(request.generated[:count]),
            stop_reason=reason,
            model=self.model.folder.name,
            runtime=self.model.target.runtime,
            drafter=options.drafter,
            stats=request.tally.result(count, off_reason),
        )

    def second_choices(
        self,
        messages: Sequence[dict[str, str]],
        text: str,
        cancelled: CancelCheck,
        steering: Steering,
    ) -> list[str]:
        """The beginnings of other answers than `text` (which follows the steering's opening): up to where it could
        have gone on otherwise, and with what, the likeliest first. Raises BadPosition, Cancelled."""
        prompt = self._chat_prompt(messages, steering.opening, think=steering.think).token_ids
        cache = self.writer.prefilled(Request([*prompt], len(prompt), b""), cancelled)
        tokens = self.model.encode(text)[: self.writer.room - len(prompt)]
        vocabulary = self.model.vocabulary
        beginnings = [
            vocabulary.decode([*tokens[: choice.position], choice.token_id])
            for choice in second_choices(self.model.target, cache, prompt[-1], tokens, steering.constraint)
            if choice.token_id not in vocabulary.end
        ]
        return [whole for each in beginnings if (whole := each.decode("utf-8", "ignore")).encode() == each]

    def would_write(
        self, messages: Sequence[dict[str, str]], text: str, cancelled: CancelCheck, steering: Steering
    ) -> bool:
        """Whether the greedy answer behind the steering's opening begins with `text`. Raises BadPosition, Cancelled."""
        prompt = self._chat_prompt(messages, steering.opening, think=steering.think).token_ids
        tokens = self.model.encode(text)
        if len(prompt) + len(tokens) > self.writer.room:
            return False
        cache = self.writer.prefilled(Request([*prompt], len(prompt), b""), cancelled)
        return is_greedy(self.model.target, cache, prompt[-1], tokens, steering.constraint)

    def command(
        self,
        request: CommandRequest,
        options: EngineOptions,
        cancelled: CancelCheck,
        emit: Emit,
        pause: Callable[[], bool] = lambda: False,
        trial: Trial | None = None,
    ) -> CommandResult:
        """Explain, fix, document, test, edit or reason; `emit` gets the Markdown as it grows, `pause` is asked between
        rounds (see `Steering`). Raises BadInput, Cancelled."""
        backend = LocalBackend(self, options, cancelled, pause)
        return run_command(request, backend, lambda text: emit(Chunk(text=text, token_ids=())), trial)

    @cached_property
    def thoughts(self) -> ThoughtGrammar:
        """The grammar of this model's thoughts, made once."""
        return ThoughtGrammar(self.model.vocabulary, marks_of(self.model, self.chat))

    @cached_property
    def fences(self) -> FenceGrammar:
        """The grammar of answers with Python in them, made once."""
        return FenceGrammar(self.infilling.python)

    def imports(self, snapshot: Snapshot, start: int) -> tuple[Replacement, ...]:
        """The edits that add the imports which the text from byte `start` to the cursor lacks."""
        return imports_for(self.infilling.scopes, snapshot, start)

    def describe(self) -> dict[str, object]:
        """What runs, for status and statistics."""
        return {
            "model": self.model.folder.name,
            "runtime": self.model.target.runtime,
            "source": self.model.folder.source,
            "context_tokens": self.writer.room,
            "fallback_reason": self.model.fallback_reason,
        }

    def _prompt_of(self, snapshot: Snapshot, options: EngineOptions) -> Prompt:
        self.writer.drafting.write_in(snapshot.uri, snapshot.text)
        return self.infilling.prompt(snapshot, options)

    def _guide(self, prompt: Prompt, snapshot: Snapshot, options: EngineOptions) -> Guide:
        return self.infilling.guide(prompt, snapshot, options)

    def _completion(
        self,
        start: Start,
        text: Text,
        options: EngineOptions,
        steering: Steering,
        rule: StopRule,
        snapshot: Snapshot,
        cancelled: CancelCheck,
        watch: Watch | None,
    ) -> Completion:
        request, guide = start.request, start.guide
        infilling = self.infilling
        names = infilling.names_around(snapshot, options) if guide.off_reason is None else None
        shown = infilling.shown(text, rule, snapshot, options)
        for _ in range(_SECOND_TRIES):
            again = self._again(names, shown, request, snapshot, options)
            if again is None or cancelled():
                break
            kept, guide = again
            # What was emitted of the first try is replaced by the completion as a whole: nothing more is emitted.
            again_from = Start(request, guide, start.sampling)
            text = drained(self.writer.write(again_from, options, steering, cancelled, watch, kept), lambda _: None)
            shown = infilling.shown(text, rule, snapshot, options)
        if names is not None and shown.trimmed is not None and names.wrong(shown.trimmed) is not None:
            shown = infilling.shown(text, rule, snapshot, options, names)
        _, count, reason, off_reason = text
        return Completion(
            text=shown.trimmed.text if shown.trimmed else "",
            start=snapshot.offset,
            end=shown.trimmed.end if shown.trimmed else snapshot.offset,
            raw=shown.raw,
            token_ids=tuple(request.generated[:count]),
            stop_reason="constraint" if shown.cut else reason,
            model=self.model.folder.name,
            runtime=self.model.target.runtime,
            drafter=options.drafter,
            constraint=options.constraint,
            stats=request.tally.result(count, off_reason),
        )

    def _again(
        self,
        names: NamesAround | None,
        shown: Fitted,
        request: Request,
        snapshot: Snapshot,
        options: EngineOptions,
    ) -> tuple[list[int], Guide] | None:
        """How a text with a name that does not exist is written again from that name on: the tokens that stay, which
        the request is set back to, and what guides the rest. None where all names exist."""
        wrong = names.wrong(shown.trimmed) if names is not None and shown.trimmed is not None else None
        if names is None or shown.trimmed is None or wrong is None:
            return None
        texts = [self.model.vocabulary.tokens[token] for token in request.generated]
        resume = names.resume(shown.trimmed, wrong, texts, request.healed)
        if resume is None:
            return None
        kept = request.generated[: resume.kept]
        prompt = Prompt(tuple(request.tokens[: request.prompt_length]), request.healed)
        state = self._guide(prompt, snapshot, options).masks
        for token in kept:
            state = state.advance(token) if state is not None else None
        if state is None:
            return None
        del request.tokens[request.prompt_length + resume.kept :]
        return kept, Guide.enforcing(resume.constraint(self.infilling.names, state), state)

    def _first_choices(
        self, prompt: Prompt, snapshot: Snapshot, guide: Guide, options: EngineOptions, cancelled: CancelCheck
    ) -> Iterator[Guide]:
        """One guide an alternative: a greedy alternative k > 0 is forced to begin with the k-th best first token."""
        start = guide.masks  # a guide moves on with the text that it guides
        yield guide
        if options.alternatives == 1:
            return
        firsts: list[int] = []
        if options.temperature == 0.0 and start is not None:
            request = Request([*prompt.token_ids], len(prompt.token_ids), prompt.healed)
            firsts = self.writer.ranked_first_tokens(request, start, options.alternatives, cancelled)
        for index in range(1, options.alternatives):
            again = self._guide(prompt, snapshot, options)
            if options.temperature > 0.0:
                yield again
            elif index < len(firsts) and again.masks is not None:
                first = FirstToken(firsts[index], again.masks, self.model.vocabulary.size)
                yield Guide.enforcing(first, again.otherwise)

    def _chat_prompt(self, messages: Sequence[dict[str, str]], opening: str = "", *, think: bool = True) -> Prompt:
        """Messages as token ids; marks in what a user wrote are broken up, so that they stay text."""
        marks = [entry["content"] for entry in self._added_tokens() if len(entry["content"]) > 1]
        harmless = []
        for message in messages:
            content = message["content"]
            for mark in marks:
                content = content.replace(mark, f"{mark[0]} {mark[1:]}")
            harmless.append({**message, "content": content})
        ids = self.model.encode_marked(self.chat.render(harmless, think=think)) + self.model.encode(opening)
        return Prompt(tuple(ids or [self.infilling.layout.fallback]), b"")

    def _added_tokens(self) -> list[dict[str, str]]:
        added = self.model.tokenizer.get_added_tokens_decoder()
        return [{"content": token.content} for token in added.values()]
