"""The types that cross the process border, as pydantic models.

Knows pydantic only: both the server and the worker import it, so it must not know torch, pygls or tree-sitter.
All offsets are UTF-8 bytes; positions are 0-based (line, column in characters) unless a field says otherwise.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

StopReason = Literal["end", "length", "block", "suffix", "line", "stop_text", "cancelled", "constraint"]
ConstraintMode = Literal["enforce", "draft", "off"]
ScopeMode = Literal["soft", "hard", "off"]
DrafterChoice = Literal["auto", "none", "lookup", "recycle", "model"]
Multiline = Literal["auto", "always", "never"]


class Message(BaseModel):
    """Frozen base: what crosses the border is a value."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Edit(Message):
    """One change of a document, in UTF-8 bytes of the text before (start, old_end) and after (new_end) it."""

    start: int = Field(ge=0)
    old_end: int = Field(ge=0)
    new_end: int = Field(ge=0)


class Snapshot(Message):
    """An immutable document and a cursor in it."""

    uri: str
    version: int = 0
    text: str
    offset: int = Field(ge=0, description="cursor, in UTF-8 bytes of `text`")
    language: str = "python"
    base_version: int | None = Field(
        None, description="the version that `edits` start from, None: send nothing but `text`"
    )
    edits: tuple[Edit, ...] = ()


class EngineOptions(Message):
    """How one request is to be generated. Settings map to it field by field."""

    model: str = "qwen2.5-coder-0.5b"
    draft_model: str | None = None
    runtime: Literal["auto", "native", "transformers"] = "auto"
    device: str = "auto"
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    threads: int = Field(0, ge=0, description="0: one per physical core")
    context_tokens: int = Field(2048, ge=256, description="prompt and answer together")
    drafter: DrafterChoice = "auto"
    tree_nodes: int = Field(0, ge=0, le=63, description="0: the budget decides each round")
    constraint: ConstraintMode = "enforce"
    scope: ScopeMode = "soft"
    imports: bool = Field(True, description="names of well-known modules count: their import is added on accepting")
    max_tokens: int = Field(64, ge=1, le=4096)
    multiline: Multiline = "auto"
    temperature: float = Field(0.0, ge=0.0, le=5.0)
    top_p: float = Field(1.0, gt=0.0, le=1.0)
    top_k: int = Field(0, ge=0)
    min_p: float = Field(0.0, ge=0.0, le=1.0)
    repetition_penalty: float = Field(1.0, gt=0.0)
    seed: int = 0
    alternatives: int = Field(1, ge=1, le=8)
    prefix_tokens: int = Field(768, ge=32, description="window before the cursor, in tokens")
    suffix_tokens: int = Field(192, ge=0, description="window after the cursor, in tokens")
    signature_tokens: int = Field(0, ge=0, description="of the prefix tokens: for declarations out of the window")
    remote_url: str = Field("", description='an OpenAI-compatible server, with "/v1"; "": this machine')
    remote_model: str = Field("", description="the model's name there; empty: the server's first")
    remote_key_env: str = Field("", description="the environment variable that holds the key")


class Position(Message):
    """0-based line and column in characters (code points)."""

    line: int
    column: int


class Range(Message):
    """Start and end positions; the end is exclusive."""

    start: Position
    end: Position


class Stats(Message):
    """What one request cost. Times are milliseconds."""

    prompt_tokens: int = 0
    reused_tokens: int = 0
    prefill_ms: float = 0.0
    steps: int = 0
    drafted: int = 0
    accepted: int = 0
    tokens: int = 0
    mean_accepted: float = 0.0
    decode_ms: float = 0.0
    tokens_per_second: float = 0.0
    mask_ms: float = 0.0
    scope_ms: float = 0.0
    constraint_off_reason: str | None = None


class Completion(Message):
    """One suggestion: `text` replaces the bytes [start, end) of the snapshot's text.

    `raw` is the untrimmed text that was generated after the cursor (what caches hold: trimming.py is applied again
    for every answer made from it).
    """

    text: str
    start: int
    end: int
    raw: str
    token_ids: tuple[int, ...]
    stop_reason: StopReason
    model: str
    runtime: str
    drafter: str
    constraint: str
    stats: Stats


class Chunk(Message):
    """Text that one round added to a running request, for alternative `alternative`."""

    text: str
    token_ids: tuple[int, ...]
    alternative: int = 0


class Answer(Message):
    """The result of a command or of free generation."""

    text: str
    token_ids: tuple[int, ...]
    stop_reason: StopReason
    model: str
    runtime: str
    drafter: str
    stats: Stats


class ModelProgress(Message):
    """Provisioning or loading: `fraction` in 0..1, None where unknown."""

    model: str
    stage: Literal["download", "convert", "load", "warm"]
    fraction: float | None = None
    message: str = ""
