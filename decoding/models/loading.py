"""From a model's name to a target that runs: provisioning, the choice of a runtime, the tokenizer.

Knows all runtimes. Must not know prompts or the engine. The native runtime is the default on CPUs; where it
cannot run a model the reason is kept for `doctor` and the log, and transformers takes over.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from tokenizers import Tokenizer

from decoding.errors import BadWeights
from decoding.memory import Runtime, plan_memory
from decoding.messages import EngineOptions, ModelProgress
from decoding.models.architecture import Architecture, Unsupported
from decoding.models.folder import ModelFolder
from decoding.models.provision import ensure_model, ensure_safetensors
from decoding.models.target import TargetModel
from decoding.models.transformers_model import TransformersModel, pick_device
from grammars.vocabulary import Vocabulary

_log = logging.getLogger(__name__)

Progress = Callable[[ModelProgress], None]


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A target and what turns text into its tokens.

    Attributes:
        folder: where it came from.
        target: the runtime.
        tokenizer: encodes text that looks like a special token as ordinary text.
        vocabulary: id -> bytes.
        start: ids that begin every text of this model.
        fallback_reason: why the native runtime was not used, None where it was or was not asked for.
    """

    folder: ModelFolder
    target: TargetModel
    tokenizer: Tokenizer
    vocabulary: Vocabulary
    start: tuple[int, ...]
    fallback_reason: str | None

    def encode(self, text: str) -> list[int]:
        """Ids of `text`, no special tokens whatever it says."""
        ids: list[int] = self.tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def encode_marked(self, text: str) -> list[int]:
        """Ids of a rendered chat template, special tokens included."""
        self.tokenizer.encode_special_tokens = False  # a second tokenizer would cost 0.3 s at every start
        try:
            ids: list[int] = self.tokenizer.encode(text, add_special_tokens=False).ids
        finally:
            self.tokenizer.encode_special_tokens = True
        return ids


def fitted(options: EngineOptions, progress: Progress) -> EngineOptions:
    """`options` with what does not fit into free memory given up: context, then the draft model (both are logged).

    Raises OutOfMemory, with the numbers, where the model itself does not fit; UnknownModel or another ModelError where
    it cannot be had. GPUs, and architectures whose needs are not known, are not planned for.
    """
    if pick_device(options.device) != "cpu":
        return options
    try:
        target = Architecture.from_config(ensure_model(options.model, progress).config())
        name = options.draft_model
        draft = Architecture.from_config(ensure_model(name, progress).config()) if name is not None else None
    except Unsupported:
        return options
    runtime: Runtime = "bfloat16" if options.runtime == "transformers" else "native"
    plan = plan_memory(target, options.context_tokens, draft=draft, runtime=runtime)
    if plan.given_up:
        _log.warning("%s runs without %s: %s", options.model, ", ".join(plan.given_up), plan)
    return options.model_copy(
        update={"context_tokens": plan.context_tokens, "draft_model": name if plan.draft is not None else None}
    )


def load_model(options: EngineOptions, progress: Progress) -> LoadedModel:
    """Provision and load `options.model`. Raises UnknownModel or ModelError."""
    folder = ensure_model(options.model, progress)
    progress(ModelProgress(model=options.model, stage="load"))
    tokenizer = _tokenizer(folder)
    tokenizer.encode_special_tokens = True
    target, reason = _load_target(folder, tokenizer.get_vocab_size(), options, progress)
    return LoadedModel(
        folder=folder,
        target=target,
        tokenizer=tokenizer,
        vocabulary=Vocabulary.from_file(folder.tokenizer_file, folder.end_token_ids),
        start=tuple(tokenizer.encode("").ids),
        fallback_reason=reason,
    )


def _tokenizer(folder: ModelFolder) -> Tokenizer:
    try:
        return Tokenizer.from_file(str(folder.tokenizer_file))
    except Exception as error:
        raise BadWeights(f"{folder.tokenizer_file} is no tokenizer ({error}): bring the model again") from error


def _load_target(
    folder: ModelFolder, tokenizer_size: int, options: EngineOptions, progress: Progress
) -> tuple[TargetModel, str | None]:
    reason: str | None = None
    device = pick_device(options.device)
    if options.runtime == "native" or (options.runtime == "auto" and device == "cpu" and options.dtype == "auto"):
        from decoding.models.native_model import NativeModel

        reason = NativeModel.supports(folder.path)
        if reason is None:

            def tell(fraction: float) -> None:
                progress(ModelProgress(model=folder.name, stage="convert", fraction=fraction))

            return NativeModel.load(folder.path, threads=options.threads, progress=tell), None
        if options.runtime == "native":
            raise BadWeights(f"the native runtime cannot run {folder.name}: {reason}; use --runtime transformers")
        _log.warning("the native runtime cannot run %s: %s; transformers runs it instead", folder.name, reason)
    path = ensure_safetensors(folder, progress)
    target = TransformersModel.load(
        path, device=device, dtype=options.dtype, tokenizer_size=tokenizer_size, threads=options.threads
    )
    return target, reason
