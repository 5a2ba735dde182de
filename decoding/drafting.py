"""Drafting: the drafters and the budget of one loaded model, as options ask for them.

Knows every kind of drafter and budget, and puts them together. Must not know prompts, texts or the engine's loop.
"""

from __future__ import annotations

import torch

from decoding.budget import Budget, FixedBudget, MeasuredBudget
from decoding.drafters.drafter import Drafter
from decoding.drafters.growing import GrowingDrafter
from decoding.drafters.guarded import GuardedDrafter
from decoding.drafters.lookup import LookupSource
from decoding.drafters.model import ModelDrafter
from decoding.drafters.pairs import check_pair
from decoding.drafters.paying import PayingDrafter
from decoding.drafters.recycle import RecycleSource
from decoding.drafters.successors import successors_for
from decoding.errors import UnknownModel
from decoding.messages import EngineOptions, ModelProgress
from decoding.models.loading import LoadedModel, Progress, load_model
from decoding.models.registry import REGISTRY
from decoding.models.store import ModelStore
from decoding.pass_cost import PassCost, known_cost

_COSTS = "costs"


class Drafting:
    """What drafts for one target, and how much of it is worth verifying. Lasts as long as the model is loaded, so
    that what is learned from one request serves the next."""

    def __init__(self, model: LoadedModel, options: EngineOptions, capacity: int, progress: Progress) -> None:
        """`capacity` is that of the target's caches. Loads the draft model where the options name one.

        Raises UnknownModel, ModelError or TokenizerMismatch.
        """
        self._encode = model.encode
        self._vocabulary = model.vocabulary
        self.draft_model: ModelDrafter | None = None
        draft_name = _draft_model_name(options)
        if draft_name is not None:
            self.draft_model = _model_drafter(model, draft_name, options, capacity, progress)
        self.unlearn()
        self._measured: MeasuredBudget | None = None
        if options.drafter != "none" and not options.tree_nodes:
            self._measured = _measured_budget(model, options, progress)

    def unlearn(self) -> None:
        """Begin with drafters that no request has taught anything, for comparisons in which none may help the next."""
        self._written: tuple[str, str] | None = None  # the document that is written in, and its text
        self.lookup = LookupSource()
        recycle = RecycleSource(successors_for(self._vocabulary))
        size, ends = self._vocabulary.size, self._vocabulary.end
        self._drafters: dict[str, list[Drafter]] = {
            "none": [],
            "auto": [GuardedDrafter(GrowingDrafter([self.lookup, recycle], ends), size)],
            "lookup": [GuardedDrafter(GrowingDrafter([self.lookup], ends), size)],
            "recycle": [GuardedDrafter(GrowingDrafter([recycle], ends), size)],
        }
        if self.draft_model is not None:
            self._drafters["model"] = [GuardedDrafter(self.draft_model, size)]
            self._drafters["auto"].append(GuardedDrafter(PayingDrafter(self.draft_model), size))

    def drafters(self, options: EngineOptions) -> list[Drafter]:
        """The drafters of a request. Raises UnknownModel where no draft model was loaded and one is asked for."""
        found = self._drafters.get(options.drafter)
        if found is None:
            raise UnknownModel("no draft model is loaded: give --draft-model")
        return found

    def budget(self, options: EngineOptions) -> Budget:
        """The budget of a request: what the options fix, else what was measured."""
        if options.drafter == "none":
            return FixedBudget(0)
        if options.tree_nodes or self._measured is None:
            return FixedBudget(options.tree_nodes or _FALLBACK_NODES)
        return self._measured

    def cost(self) -> PassCost | None:
        """What passes cost on this machine, None where it was not measured."""
        return self._measured.cost if self._measured is not None else None

    def write_in(self, key: str, text: str) -> None:
        """The next prompts are from the document `key`, which has this text now. The one that was left for it becomes
        a source of drafts. It is none itself: what is near stands in the prompt, what is far gave nothing (0.98 to
        0.99 of the tokens a pass, 48 holes), and the text behind the cursor is not what comes next."""
        if self._written is not None and self._written[0] != key:
            left, its_text = self._written
            sound = its_text[:_MOST_CHARACTERS].encode("utf-8", "ignore").decode("utf-8")
            self.lookup.remember(left, self._encode(sound))
            self.lookup.forget(key)
        self._written = (key, text)

    def forget(self, key: str) -> None:
        """Drop a document that was closed."""
        self.lookup.forget(key)
        if self._written is not None and self._written[0] == key:
            self._written = None


_MOST_CHARACTERS = 100_000
"""Of a document that becomes a source: reading so many takes 50 ms, once when another document is turned to."""
_FALLBACK_NODES = 7
"""For an assistant that was made without drafting and is asked for it: eight rows cost little everywhere."""


def _draft_model_name(options: EngineOptions) -> str | None:
    """The draft model that the options name, or the registered one where drafting by a model is asked for."""
    if options.draft_model is not None or options.drafter != "model":
        return options.draft_model
    entry = REGISTRY.get(options.model)
    if entry is None or entry.draft_model is None:
        raise UnknownModel(f"no draft model is registered for {options.model}: give --draft-model")
    return entry.draft_model


def _model_drafter(
    model: LoadedModel, name: str, options: EngineOptions, capacity: int, progress: Progress
) -> ModelDrafter:
    draft = load_model(options.model_copy(update={"model": name, "draft_model": None}), progress)
    never = check_pair(model.vocabulary, draft.vocabulary, model.folder.name, name)
    return ModelDrafter(draft.target, never, capacity)


def _measured_budget(model: LoadedModel, options: EngineOptions, progress: Progress) -> MeasuredBudget:
    def tell(fraction: float) -> None:
        message = "Measuring this machine"
        progress(ModelProgress(model=model.folder.name, stage="warm", fraction=fraction, message=message))

    folder = ModelStore.of_user().root / _COSTS
    threads = options.threads or torch.get_num_threads()
    cost, file = known_cost(model.target, model.folder.name, threads, folder, tell)
    return MeasuredBudget(cost, drifted=file.write)
