"""The assistant: snapshot in, completion out. The one facade that the command line and the worker call.

Knows models, prompts, constraints and the engine, and puts them together. Must not know the protocol, processes
or editors.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from decoding.budget import Budget
from decoding.chat import ChatTemplate
from decoding.draft_tree import DraftTree
from decoding.drafters.drafter import Drafter
from decoding.drafting import Drafting
from decoding.engine import Guide, Round, generate
from decoding.errors import BadPosition, Cancelled
from decoding.fitting import Fitted, cut_to_fit
from decoding.hole import Hole
from decoding.kv_cache import CachePool
from decoding.messages import Answer, Chunk, Completion, EngineOptions, Snapshot, StopReason
from decoding.models.loading import LoadedModel, Progress, fitted, load_model
from decoding.models.target import KVCache
from decoding.names import NamesAround, imports_for
from decoding.prompts import Layout, Prompt
from decoding.reasoning.backend import LocalBackend
from decoding.reasoning.commands import run_command
from decoding.reasoning.fixing import Trial
from decoding.reasoning.requests import CommandRequest, CommandResult, Replacement
from decoding.reasoning.thoughts import marks_of
from decoding.sampling import Sampling, best_tokens
from decoding.second_choices import is_greedy, second_choices
from decoding.stats import Tally
from decoding.steering import Steering
from decoding.stopping import StopRule, wants_lines
from decoding.text_stream import TextStream
from decoding.together import Branch, Forest
from decoding.trimming import Trimmed, trim_at
from decoding.workspace import Workspace
from grammars.constraint import Both, Constraint, FirstToken, Unconstrained
from grammars.fences import FenceGrammar
from grammars.healing import HealingConstraint
from grammars.python_constraint import PythonConstraint
from grammars.reasoning import ThoughtGrammar
from grammars.scope_constraint import ScopeConstraint
from grammars.scope_documents import ScopeDocuments
from grammars.signatures import signatures_in_scope
from grammars.well_known_imports import WELL_KNOWN

CancelCheck = Callable[[], bool]
Emit = Callable[[Chunk], None]
Watch = Callable[[Round], None]
T = TypeVar("T")
Text = tuple[str, int, StopReason, str | None]
"""A raw text: what it says, how many tokens it has, why it ended, and why the constraint went off on the way."""

_CACHED_PROMPTS = 4
_SECOND_TRIES = 2
"""So often a text is written again from a name on that does not exist."""
_MORE_ROWS = 64
"""Room behind the longest text for the rows of a tree."""


@dataclass(slots=True)
class Request:
    """One generation on its way: what was asked, and what came of it so far.

    Attributes:
        tokens: prompt and text.
        prompt_length: tokens of the prompt.
        healed: bytes that the text spells again first.
    """

    tokens: list[int]
    prompt_length: int
    healed: bytes
    tally: Tally = field(default_factory=Tally)

    @property
    def generated(self) -> list[int]:
        """The tokens after the prompt."""
        return self.tokens[self.prompt_length :]


@dataclass(frozen=True, slots=True)
class Start:
    """Where a text begins: its prompt, what guides it, and how its tokens are chosen."""

    request: Request
    guide: Guide
    sampling: Sampling


class Assistant:
    """One loaded model with its caches and drafters."""

    def __init__(self, options: EngineOptions, progress: Progress = lambda _: None) -> None:
        """Provision and load the model of `options`. Raises UnknownModel or ModelError."""
        self.options = options = fitted(options, progress)
        self.model: LoadedModel = load_model(options, progress)
        vocabulary = self.model.vocabulary
        ends = self.model.folder.end_token_ids
        self.layout = Layout(
            encode=self.model.encode,
            vocabulary=vocabulary,
            start=self.model.start,
            fallback=ends[0] if ends else 0,
            fim=self.model.folder.fim,
        )
        capacity = min(options.context_tokens, self.model.target.max_context) + _MORE_ROWS
        self.pool = CachePool(self.model.target, capacity, _CACHED_PROMPTS)
        self.drafting = Drafting(self.model, options, capacity, progress)
        self.chat = ChatTemplate(self.model.folder)
        self.python = PythonConstraint(vocabulary)
        self.names = ScopeConstraint(vocabulary)
        self.scopes = ScopeDocuments()
        self.workspace = Workspace(self.scopes)

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
        prompt = self._prompt(snapshot, options)
        started = time.perf_counter()
        guide = self._guide(prompt, snapshot, options)
        open_ms = 1e3 * (time.perf_counter() - started)
        ids = prompt.token_ids
        starts = [
            Start(Request([*ids], len(ids), prompt.healed, Tally(prune_ms=open_ms)), first, sampling_of(options, index))
            for index, first in enumerate(self._first_choices(prompt, snapshot, guide, options, cancelled))
        ]
        found: list[Completion] = []
        for start, text in self._first_texts(starts, options, rule, cancelled, emit, watch):
            completion = self._one(start, text, options, rule, snapshot, cancelled, watch)
            if not found or (completion.text and completion.text not in [other.text for other in found]):
                found.append(completion)
        return found

    def prepare(self) -> Iterator[None]:
        """What makes the first requests fast, to be done in idle moments: some milliseconds from step to step."""
        yield from self.python.warming()
        gc.freeze()  # what was made stays: a full collection would look through half a million objects again

    def warm(self, snapshot: Snapshot, options: EngineOptions, cancelled: CancelCheck) -> None:
        """Prefill what a request at this cursor would need, and look through its document. Raises Cancelled."""
        prompt = self._prompt(snapshot, options)
        self._prefilled(Request(list(prompt.token_ids), len(prompt.token_ids), prompt.healed), cancelled)
        self._guide(prompt, snapshot, options)
        if snapshot.language == "python":
            self.python.study(prompt.token_ids)

    def forget(self, uri: str) -> None:
        """Drop what was remembered of a document."""
        self.drafting.forget(uri)
        self.scopes.forget(uri)

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
        return _drained(self.stream(prompt, options, cancelled, watch, steering), emit)

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
            else self.layout.continuation(prompt + steering.opening)
        )
        request = Request(list(laid_out.token_ids), len(laid_out.token_ids), b"")
        guide = Guide.enforcing(steering.constraint)
        start = Start(request, guide, sampling_of(options))
        text, count, reason, off_reason = yield from self._run(start, options, steering, cancelled, watch)
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
        cache = self._prefilled(Request(list(prompt), len(prompt), b""), cancelled)
        tokens = self.model.encode(text)[: self.pool.capacity - len(prompt) - _MORE_ROWS]
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
        if len(prompt) + len(tokens) + _MORE_ROWS > self.pool.capacity:
            return False
        cache = self._prefilled(Request(list(prompt), len(prompt), b""), cancelled)
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
        return FenceGrammar(self.python)

    def imports(self, snapshot: Snapshot, start: int) -> tuple[Replacement, ...]:
        """The edits that add the imports which the text from byte `start` to the cursor lacks."""
        return imports_for(self.scopes, snapshot, start)

    def describe(self) -> dict[str, object]:
        """What runs, for status and statistics."""
        return {
            "model": self.model.folder.name,
            "runtime": self.model.target.runtime,
            "source": self.model.folder.source,
            "context_tokens": self.pool.capacity - _MORE_ROWS,
            "fallback_reason": self.model.fallback_reason,
        }

    # One text ---------------------------------------------------------------------------------------------------

    def _first_texts(
        self,
        starts: Sequence[Start],
        options: EngineOptions,
        rule: StopRule,
        cancelled: CancelCheck,
        emit: Emit,
        watch: Watch | None,
    ) -> Iterator[tuple[Start, Text]]:
        """What the model writes after every start: as many at a time as fit into one pass; one alone is drafted."""
        steering = Steering(over=rule.reason, stops=self.model.vocabulary.special)
        rows = min(self.model.target.most_rows, self.pool.capacity - starts[0].request.prompt_length) - 1
        together = max(1, rows // options.max_tokens)
        for begin in range(0, len(starts), together):
            group = starts[begin : begin + together]
            branches = [Branch(start.request.tokens, start.guide, start.sampling) for start in group]
            cache = self._prefilled(group[0].request, cancelled) if len(group) > 1 else None
            forest = Forest(self.model.target, cache, branches, self.model.vocabulary.end) if cache else None
            runs = [
                self._run(start, options, steering, cancelled, watch, rounds=forest.rounds(number) if forest else None)
                for number, start in enumerate(group)
            ]
            try:
                texts = _in_turns(runs, emit)
            finally:
                if forest is not None:
                    forest.close()
            yield from zip(group, texts, strict=True)

    def _one(
        self,
        start: Start,
        text: Text,
        options: EngineOptions,
        rule: StopRule,
        snapshot: Snapshot,
        cancelled: CancelCheck,
        watch: Watch | None,
    ) -> Completion:
        request, guide = start.request, start.guide
        names = self._names_around(snapshot, options) if guide.off_reason is None else None
        steering = Steering(over=rule.reason, stops=self.model.vocabulary.special)
        shown = self._shown(text, rule, snapshot, options)
        for _ in range(_SECOND_TRIES):
            again = self._again(names, shown, request, snapshot, options)
            if again is None or cancelled():
                break
            kept, guide = again
            # What was emitted of the first try is replaced by the completion as a whole: nothing more is emitted.
            again_from = Start(request, guide, start.sampling)
            text = _drained(self._run(again_from, options, steering, cancelled, watch, kept), lambda _: None)
            shown = self._shown(text, rule, snapshot, options)
        if names is not None and shown.trimmed is not None and names.wrong(shown.trimmed) is not None:
            shown = self._shown(text, rule, snapshot, options, names)
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

    def _names_around(self, snapshot: Snapshot, options: EngineOptions) -> NamesAround | None:
        """What says which names a suggestion gets wrong, None where names do not count."""
        if options.constraint != "enforce" or options.scope == "off" or snapshot.language != "python":
            return None
        index = self.scopes.index(snapshot.uri, snapshot.text.encode("utf-8", "surrogatepass"))
        return NamesAround(index, snapshot.offset, options.imports) if index is not None else None

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
        return kept, Guide.enforcing(resume.constraint(self.names, state), state)

    def _shown(
        self,
        text: Text,
        rule: StopRule,
        snapshot: Snapshot,
        options: EngineOptions,
        names: NamesAround | None = None,
    ) -> Fitted:
        """What of a raw text is shown: by the rules of hygiene, and where the constraint is enforced, only what leaves
        the file in order, with names that exist."""
        raw, _, reason, _ = text
        finished = reason not in ("length", "cancelled")

        def inserted(text: str, whole: bool) -> Trimmed | None:
            return trim_at(
                text,
                rule.hole,
                snapshot.offset,
                finished=whole,
                multiline=rule.several_lines,
                language=snapshot.language,
            )

        if options.constraint != "enforce" or snapshot.language != "python":
            return Fitted(raw, inserted(raw, finished), cut=False)
        gap = self.python.gap(snapshot.text.encode("utf-8", "surrogatepass"), snapshot.offset)

        def fits(text: Trimmed) -> bool:
            put = text.text.encode("utf-8", "surrogatepass")
            return gap.fits(put, text.end - text.start) and (names is None or names.wrong(text) is None)

        return cut_to_fit(raw, finished, inserted, fits)

    def _run(
        self,
        start: Start,
        options: EngineOptions,
        steering: Steering,
        cancelled: CancelCheck,
        watch: Watch | None,
        kept: Sequence[int] = (),
        rounds: Iterator[Round] | None = None,
    ) -> Generator[Chunk, None, Text]:
        """Generate until something ends the text: the text, its tokens, why it ended, why the constraint went off.
        `kept`: tokens of it that are there already; `rounds`: where it does not run by itself.

        Whether the text is over is asked after every single token, so that the answer does not depend on how many
        tokens a pass emits.
        """
        request, guide, sampling = start.request, start.guide, start.sampling
        spoken = TextStream(request.healed)
        tokens = list(kept)
        for token in kept:
            spoken.add(self.model.vocabulary.decode([token]))
        ends = self.model.vocabulary.end | steering.stops
        reason: StopReason = "length"
        if rounds is None:
            rounds = self._rounds(request, guide, sampling, options, steering.pause, cancelled)
        for round_ in rounds:
            request.tally.add(round_)
            if watch is not None:
                watch(round_)
            new, said = [], ""
            verdict: StopReason | None = "constraint" if round_.verdict.exhausted else None
            for token in round_.token_ids:
                if token in ends:
                    verdict = "end"
                    break
                tokens.append(token)
                new.append(token)
                said += spoken.add(steering.marks.get(token) or self.model.vocabulary.decode([token]))
                verdict = steering.over(spoken.text) or ("length" if len(tokens) >= options.max_tokens else None)
                if verdict is not None:
                    break
            if new:
                yield Chunk(text=said, token_ids=tuple(new), alternative=sampling.alternative)
            if verdict is None and cancelled():
                verdict = "cancelled"
            if verdict is not None:
                reason = verdict
                break
        return spoken.text, len(tokens), reason, guide.off_reason

    def _rounds(
        self,
        request: Request,
        guide: Guide,
        sampling: Sampling,
        options: EngineOptions,
        pause: Callable[[], bool],
        cancelled: CancelCheck,
    ) -> Iterator[Round]:
        """The engine's rounds. After a pause in which the caches and drafters served another request they begin
        again where they were: keys and values that are gone are computed anew, and a sample depends on its position
        only."""
        interrupted = True
        while interrupted:
            interrupted = False
            for round_ in generate(
                self.model.target,
                self._prefilled(request, cancelled),
                request.tokens,
                self.drafters(options),
                guide,
                sampling,
                self._budget(options),
                self.model.vocabulary.end,
            ):
                yield round_
                if pause():
                    interrupted = not (round_.verdict.ended or round_.verdict.exhausted)
                    break

    def _prefilled(self, request: Request, cancelled: CancelCheck) -> KVCache:
        """A cache that holds everything of the request's tokens but the last."""
        started = time.perf_counter()
        known = request.tokens[:-1]
        room = self.pool.capacity - _MORE_ROWS
        if len(known) >= room:
            raise BadPosition(f"the prompt has {len(known)} tokens, the context holds {room}: raise context_tokens")
        cache, reused = self.pool.acquire(known)
        if cancelled():
            raise Cancelled("useless before it began")
        self.model.target.prefill(known[reused:], cache, cancelled)
        if not request.tally.steps:
            request.tally.prompt_tokens = len(request.tokens)
            request.tally.reused_tokens = reused
        request.tally.prefill_ms += 1e3 * (time.perf_counter() - started)
        return cache

    # What goes into it ------------------------------------------------------------------------------------------

    def _prompt(self, snapshot: Snapshot, options: EngineOptions) -> Prompt:
        """What the model reads; declarations from outside of the window are at the cost of that."""
        self.drafting.write_in(snapshot.uri, snapshot.text)
        data = snapshot.text.encode("utf-8", "surrogatepass")
        before, after = self._windows(options)
        signatures = min(options.signature_tokens, before // 2) if snapshot.language == "python" else 0
        prompt = self.layout.infill(data, snapshot.offset, before - signatures, after)
        index = self.scopes.index(snapshot.uri, data) if signatures else None
        if index is None:
            return prompt
        shown_before, shown_after = self.layout.shown(prompt)
        text = signatures_in_scope(
            index,
            snapshot.offset,
            (snapshot.offset - shown_before, snapshot.offset + shown_after),
            signatures,
            lambda line: len(self.model.encode(line)),
            self.workspace.around(snapshot.uri),
        )
        return self.layout.behind(prompt, text)

    def _windows(self, options: EngineOptions) -> tuple[int, int]:
        """Tokens before and after the cursor that fit into the context beside the answer."""
        room = self.pool.capacity - _MORE_ROWS - options.max_tokens - 8
        after = min(options.suffix_tokens, room // 4) if self.layout.fim is not None else 0
        return min(options.prefix_tokens, room - after), after

    def _guide(self, prompt: Prompt, snapshot: Snapshot, options: EngineOptions) -> Guide:
        """What holds the text to the file around it. Token healing is always enforced."""
        free = self._healed(prompt, Unconstrained())
        if options.constraint == "off" or snapshot.language != "python":
            return Guide.enforcing(free)
        data = snapshot.text.encode("utf-8", "surrogatepass")
        start = snapshot.offset - len(prompt.healed)
        # What was taken back is generated again, so the state stands before it.
        syntax = self.python.open(data, snapshot.offset, again=len(prompt.healed))
        if syntax.off_reason is not None:
            return Guide(free, free, off_reason=syntax.off_reason)
        state = self._healed(prompt, self._scoped(syntax, data, start, snapshot, options))
        return Guide.enforcing(state, free) if options.constraint == "enforce" else Guide(free, state)

    def _scoped(
        self, syntax: Constraint, data: bytes, start: int, snapshot: Snapshot, options: EngineOptions
    ) -> Constraint:
        """`syntax` together with the names in scope at the cursor."""
        if options.scope == "off":
            return syntax
        index = self.scopes.index(snapshot.uri, data)
        if index is None:
            return syntax
        importable = WELL_KNOWN if options.imports else ()
        find_module = self.workspace.around(snapshot.uri)
        names = self.names.open(index, snapshot.offset, options.scope, start, find_module, importable)
        return Both(syntax, names) if names.off_reason is None else syntax

    def _healed(self, prompt: Prompt, then: Constraint) -> Constraint:
        return HealingConstraint(self.model.vocabulary, prompt.healed, then) if prompt.healed else then

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
            firsts = self._ranked_first_tokens(prompt, start, options.alternatives, cancelled)
        for index in range(1, options.alternatives):
            again = self._guide(prompt, snapshot, options)
            if options.temperature > 0.0:
                yield again
            elif index < len(firsts) and again.masks is not None:
                first = FirstToken(firsts[index], again.masks, self.model.vocabulary.size)
                yield Guide.enforcing(first, again.otherwise)

    def _ranked_first_tokens(self, prompt: Prompt, state: Constraint, count: int, cancelled: CancelCheck) -> list[int]:
        request = Request(list(prompt.token_ids), len(prompt.token_ids), prompt.healed)
        cache = self._prefilled(request, cancelled)
        scored = self.model.target.forward_tree(prompt.token_ids[-1], DraftTree.empty(), cache)
        return best_tokens(scored.logits[0], state, count)

    def drafters(self, options: EngineOptions) -> list[Drafter]:
        """What proposes tokens under these options."""
        if options.drafter == "none":
            return []
        return self.drafting.drafters(options)

    def _budget(self, options: EngineOptions) -> Budget:
        return self.drafting.budget(options)

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
        return Prompt(tuple(ids or [self.layout.fallback]), b"")

    def _added_tokens(self) -> list[dict[str, str]]:
        added = self.model.tokenizer.get_added_tokens_decoder()
        return [{"content": token.content} for token in added.values()]


def sampling_of(options: EngineOptions, alternative: int = 0) -> Sampling:
    """The sampling part of the options."""
    return Sampling(
        temperature=options.temperature,
        top_p=options.top_p,
        top_k=options.top_k,
        min_p=options.min_p,
        repetition_penalty=options.repetition_penalty,
        seed=options.seed,
        alternative=alternative,
    )


def _in_turns(runs: Sequence[Generator[Chunk, None, T]], emit: Emit) -> list[T]:
    """What the generators return, each of which is asked for one chunk a turn."""
    results: dict[int, T] = {}
    while len(results) < len(runs):
        for number, run in enumerate(runs):
            if number not in results:
                try:
                    emit(next(run))
                except StopIteration as end:
                    results[number] = end.value
    return [results[number] for number in range(len(runs))]


def _drained(chunks: Generator[Chunk, None, T], emit: Emit) -> T:
    """Hand every chunk to `emit`; what the generator returns."""
    while True:
        try:
            chunk = next(chunks)
        except StopIteration as end:
            result: T = end.value
            return result
        emit(chunk)
