"""The lookup source: what followed the same tokens before.

Knows token sequences: the prompt, what was generated, other open documents, accepted completions. No model.
Prompt lookup (Saxena 2023) and suffix decoding (arXiv 2411.04975) as probabilities: the places whose text before ends
like the current one go first where that agreement is longest, and shorter agreements share what is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from decoding.drafters.drafter import Observation

_LONGEST = 16
"""Tokens of agreement that are counted; longer ones say nothing more."""
_SUREST = 0.99
_PLACES = 24
"""Latest places looked at in one text; bounds the time on repetitive files."""
_MOST_PLACES = 32
"""Places followed in all texts together, longest agreement first."""
_AFTER_SURPRISE = 8
"""Places looked at where no followed place goes on with the token."""


class SuffixIndex:
    """One text and, for every token and pair of tokens, the places that follow it. Cut and continued in O(1) a token,
    so that a text that grows by a keystroke is not read again."""

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self._after_one: dict[int, list[int]] = {}
        self._after_two: dict[tuple[int, int], list[int]] = {}

    def become(self, tokens: Sequence[int]) -> None:
        """Hold exactly these tokens: what is shared with the tokens held now stays as it is."""
        shared = 0
        for mine, theirs in zip(self.tokens, tokens, strict=False):
            if mine != theirs:
                break
            shared += 1
        self._cut(shared)
        self.extend(tokens[shared:])

    def extend(self, tokens: Sequence[int]) -> None:
        """Append tokens."""
        mine, after_one, after_two = self.tokens, self._after_one, self._after_two
        before = mine[-1] if mine else -1
        for place, token in enumerate(tokens, len(mine) + 1):
            after_one.setdefault(token, []).append(place)
            after_two.setdefault((before, token), []).append(place)
            before = token
        mine.extend(tokens)

    def places_after(self, before: int, token: int, most: int) -> list[int]:
        """The latest places that follow the pair, or, where there is none, the token alone; the latest last. The end
        of the text is no such place: nothing is known to follow there."""
        return self._latest(self._after_two.get((before, token)), most) or self._latest(
            self._after_one.get(token), most
        )

    def _latest(self, places: list[int] | None, most: int) -> list[int]:
        if not places:
            return []
        return places[-most - 1 : -1] if places[-1] == len(self.tokens) else places[-most:]

    def agreement(self, place: int, context: Sequence[int]) -> int:
        """How many tokens before `place` are the last ones of `context`."""
        tokens = self.tokens
        most = min(_LONGEST, place, len(context))
        for back in range(1, most + 1):
            if tokens[place - back] != context[-back]:
                return back - 1
        return most

    def _cut(self, length: int) -> None:
        for place in range(len(self.tokens), length, -1):
            token = self.tokens[place - 1]
            before = self.tokens[place - 2] if place > 1 else -1
            self._after_one[token].pop()
            self._after_two[before, token].pop()
        del self.tokens[length:]


# Measured on real infilling points and edits, by tokens of agreement 0 .. 16: one place, several places of one mind,
# several that differ (the chance that one of them is right).
_PRIOR_ONE_PLACE = (0.1, 0.4, 0.42, 0.55, 0.6, 0.75, 0.8, 0.84, 0.88, 0.89, 0.9, 0.91, 0.94, 0.95, 0.95, 0.96, 0.985)
_PRIOR_AGREED = (0.1, 0.55, 0.75, 0.87, 0.88, 0.92, 0.94, 0.94, 0.94, 0.95, 0.95, 0.95, 0.96, 0.96, 0.97, 0.97, 0.99)
_PRIOR_DIVIDED = (0.1, 0.53, 0.42, 0.42, 0.6, 0.7, 0.7, 0.8, 0.8, 0.6, 0.6, 0.7, 0.7, 0.7, 0.7, 0.7, 0.85)
_PRIOR_HERE = _PRIOR_ONE_PLACE + _PRIOR_AGREED + _PRIOR_DIVIDED
_ELSEWHERE = 0.6
"""What an agreement with another text is worth, compared with one in the text itself."""
_PRIOR = tuple(_ELSEWHERE * rate for rate in _PRIOR_HERE) + _PRIOR_HERE
_WEIGHTS = (12.0,) * len(_PRIOR)
_KINDS = _LONGEST + 1


@dataclass(slots=True)
class _Rates:
    """How often the followed places named the right token, by length of agreement and by whether they were of one
    mind: beta distributions with a prior that was measured on real files."""

    hits: list[float] = field(default_factory=lambda: [w * p for w, p in zip(_WEIGHTS, _PRIOR, strict=True)])
    trials: list[float] = field(default_factory=lambda: list(_WEIGHTS))

    def probability(self, bucket: int) -> float:
        return min(self.hits[bucket] / self.trials[bucket], _SUREST)

    def update(self, bucket: int, hit: bool) -> None:
        # Forgets over about 200 trials, so that a change of file shows.
        self.hits[bucket] = 0.995 * self.hits[bucket] + hit
        self.trials[bucket] = 0.995 * self.trials[bucket] + 1.0


def _bucket(rank: int, votes: dict[int, int]) -> int:
    length, here = divmod(rank, 2)
    kind = 2 if len(votes) > 1 else 1 if next(iter(votes.values())) > 1 else 0
    return (3 * here + kind) * _KINDS + length


Match = tuple[SuffixIndex, int, int]
"""A text, the place in it that would come next, and the tokens before it that agree."""


@dataclass(frozen=True, slots=True)
class Matches:
    """The place of a node: its last token and the places in known texts that are followed."""

    last: int
    places: tuple[Match, ...]
    by_agreement: list[tuple[int, dict[int, int]]]
    """(rank, next token -> number of places), best rank first. The rank is twice the tokens of agreement, and one more
    in the text itself than in another one."""

    @classmethod
    def of(cls, last: int, places: Sequence[Match], here: SuffixIndex) -> Matches:
        """Group the places; `here` is the text itself."""
        groups: dict[int, dict[int, int]] = {}
        for index, place, length in places:
            votes = groups.setdefault(2 * length + (index is here), {})
            token = index.tokens[place]
            votes[token] = votes.get(token, 0) + 1
        return cls(last, tuple(places), sorted(groups.items(), reverse=True))


class LookupSource:
    """Successors from earlier text. State that lasts: a bounded set of other texts and the measured hit rates."""

    name = "lookup"

    def __init__(self, corpus_tokens: int = 200_000) -> None:
        """`corpus_tokens` bounds what is remembered of other documents and accepted completions."""
        self._corpus_tokens = corpus_tokens
        self._documents: dict[str, SuffixIndex] = {}
        self._live = SuffixIndex()
        self._rates = _Rates()

    def remember(self, key: str, tokens: Sequence[int]) -> None:
        """Make a text (an open document, an accepted completion) a source; the oldest texts leave first."""
        index = self._documents.pop(key, None) or SuffixIndex()
        index.become(tokens[-self._corpus_tokens :])
        self._documents[key] = index
        total = sum(len(document.tokens) for document in self._documents.values())
        while total > self._corpus_tokens and len(self._documents) > 1:
            total -= len(self._documents.pop(next(iter(self._documents))).tokens)

    def forget(self, key: str) -> None:
        """Drop a text."""
        self._documents.pop(key, None)

    def begin(self, tokens: Sequence[int]) -> None:
        """See `Source.begin`: a prompt that shares its beginning with the last one is not read again."""
        self._live.become(tokens)

    def root(self, tokens: Sequence[int]) -> Matches:
        """See `Source.root`."""
        self._live.extend(tokens[len(self._live.tokens) :])
        context = tokens[-_LONGEST:]
        last, before = context[-1], context[-2] if len(context) > 1 else -1
        found = self._found(self._live, before, last, context)
        # Other texts add what the live one does not say: it mostly is a part of one of them, and the same place found
        # twice is no second witness (2% fewer tokens a pass where the file itself was remembered).
        said = {(length, self._live.tokens[place]) for _, place, length in found}
        for index in self._documents.values():
            found += [
                match
                for match in self._found(index, before, last, context)
                if (match[2], index.tokens[match[1]]) not in said
            ]
        if len(found) > _MOST_PLACES:
            found = sorted(found, key=_agreement, reverse=True)[:_MOST_PLACES]
        return Matches.of(last, found, self._live)

    def _found(self, index: SuffixIndex, before: int, last: int, context: Sequence[int]) -> list[Match]:
        return [(index, place, index.agreement(place, context)) for place in index.places_after(before, last, _PLACES)]

    def after(self, place: Matches, token: int) -> Matches:
        """See `Source.after`. Where no followed place goes on with `token`, the latest places of the pair do."""
        going_on = [
            (index, at + 1, min(agreed + 1, _LONGEST))
            for index, at, agreed in place.places
            if at + 1 < len(index.tokens) and index.tokens[at] == token
        ]
        if not going_on:
            for index in (self._live, *self._documents.values()):
                going_on += [
                    (index, at, 2 if index.tokens[at - 2] == place.last else 1)
                    for at in index.places_after(place.last, token, _AFTER_SURPRISE)
                    if at > 1
                ]
        return Matches.of(token, going_on[:_MOST_PLACES], self._live)

    def successors(self, place: Matches) -> list[tuple[int, float]]:
        """See `Source.successors`: the longest agreement first; what it leaves goes to the shorter ones."""
        left = 1.0
        found: dict[int, float] = {}
        for rank, votes in place.by_agreement:
            # Where the longer agreements are wrong, so is every shorter one that names the same token.
            fresh = {token: count for token, count in votes.items() if token not in found} if found else votes
            if not fresh:
                continue
            rate = self._rates.probability(_bucket(rank, fresh))
            share = left * rate / sum(fresh.values())
            for token, count in fresh.items():
                found[token] = share * count
            left *= 1.0 - rate
        return list(found.items())

    def observe(self, seen: Observation, places: Sequence[Matches]) -> None:
        """See `Source.observe`: whether the longest agreement was right, at every node of the accepted path."""
        for place, token in zip(places, seen.verdict.token_ids, strict=False):
            if place.by_agreement:
                rank, votes = place.by_agreement[0]
                self._rates.update(_bucket(rank, votes), token in votes)


def _agreement(match: Match) -> int:
    return match[2]
