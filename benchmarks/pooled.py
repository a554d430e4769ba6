"""Pooling: should a new key of a table start from what all keys have in common?

``python -m benchmarks.pooled`` prints a table: Brier score and log loss of the means, how much
lower the Brier score is than that of keys that know nothing of each other, with its standard error
over all rounds (as if these were independent), and on how many streams it is lower.  Streams are
language models' answers by subject, a model's answers to several sets of questions, and questions
of prediction markets by market; all outcomes are known before the next forecast.  They are played
in the order of the files and in a shuffled one (seed 0), in which all keys begin early.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.store import add_store, storing
from calibrant import Calibrant, Keys, Table, datasets
from calibrant.datasets import loaders

Floats = NDArray[np.float64]
CLIP = 1e-4
"""Means are this far from 0 and 1 at least where the log loss is taken."""
EARLY = 50
"""Rounds of a key that count as its first ones."""


class Keyed(NamedTuple):
    """A stream by key."""

    kind: str
    raw: Floats
    outcomes: NDArray[np.uint8]
    codes: NDArray[np.int64]

    def shuffled(self, seed: int) -> Keyed:
        """Return the same rounds in another order."""
        order = np.random.default_rng(seed).permutation(len(self.raw))
        return Keyed(self.kind, self.raw[order], self.outcomes[order], self.codes[order])


def keyed(kind: str, raw: Any, outcomes: Any, keys: Any) -> Keyed:
    """Return a stream whose keys are told by name."""
    return Keyed(kind, raw, outcomes, Keys.of([str(key) for key in keys]).codes)


def streams() -> Iterator[Keyed]:
    """Yield the streams that are here."""
    for model in datasets.language_models():
        for confidence in loaders.CONFIDENCES:
            found = datasets.load_language_model(model, confidence)
            told = found.raw, found.outcomes, found.groups["subject"]
            if len(found):
                yield keyed("language models by subject", *told)
    for model in _choosing():
        parts = [(name, datasets.load_multiple_choice(name, model)) for name in loaders.QUESTIONS]
        raw = np.concatenate([part.raw for _, part in parts])
        outcomes = np.concatenate([part.outcomes for _, part in parts])
        whose = np.repeat([name for name, _ in parts], [len(part) for _, part in parts])
        yield keyed("questions by set", raw, outcomes, whose)
    for ranker in loaders.RANKERS:
        found = datasets.load_questions(ranker)
        yield keyed("questions by set", found.raw, found.outcomes, found.groups["part"])
    try:
        markets = datasets.load_markets()
    except FileNotFoundError:
        return
    told = markets.raw, markets.outcomes, markets.groups["market"]
    yield keyed("market questions by market", *told)


def _choosing() -> list[str]:
    """Return the models that answered every set of questions."""
    ending, found = "_confidence", list[set[str]]()
    for name in loaders.QUESTIONS:
        first = loaders.rows_of(f"llm_multiple_choice/{name}.csv.gz", None)[0]
        found.append({each.removesuffix(ending) for each in first if each.endswith(ending)})
    return sorted(set.intersection(*found))


def apart(stream: Keyed) -> Floats:
    """Each key by itself."""
    return Table(Calibrant(), seed=1).replay(stream.codes, stream.raw, stream.outcomes).mean


def together(stream: Keyed) -> Floats:
    """One stream for all keys."""
    return Calibrant(seed=1).compile().replay(stream.raw, stream.outcomes).mean


def shared_first(stream: Keyed) -> Floats:
    """Each key by itself, on the means of one stream for all."""
    return apart(stream._replace(raw=together(stream)))


def shrunk(count: int) -> Callable[[Keyed], Floats]:
    """Return what starts each key with the rounds of all keys before it, at most so many."""

    def start(stream: Keyed) -> Floats:
        first = np.unique(stream.codes, return_index=True)[1]
        before = [np.arange(max(0, t - count), t) for t in first]
        order = np.concatenate([*before, np.arange(len(stream.raw))])
        owner = np.repeat(stream.codes[first], [len(part) for part in before])
        codes = np.concatenate([owner, stream.codes])
        played = Keyed(stream.kind, stream.raw[order], stream.outcomes[order], codes)
        return apart(played)[len(owner) :]

    start.__doc__ = f"Each key starts with {count} rounds of all keys."
    return start


WAYS: dict[str, Callable[[Keyed], Floats]] = {
    "each key by itself": apart,
    "one stream for all": together,
    "shared mean, then the key": shared_first,
    "key starts with 20 rounds of all": shrunk(20),
    "key starts with 200 rounds of all": shrunk(200),
}


def losses(stream: Keyed, mean: Floats) -> tuple[Floats, Floats]:
    """Return squared error and log loss of each round."""
    y = stream.outcomes.astype(np.float64)
    clipped = np.clip(mean, CLIP, 1.0 - CLIP)
    return (mean - y) ** 2, -np.log(np.where(y == 1.0, clipped, 1.0 - clipped))


def first_rounds(stream: Keyed) -> NDArray[np.bool_]:
    """Say which rounds are among the first ones of their key."""
    order, sizes = np.argsort(stream.codes, kind="stable"), np.bincount(stream.codes)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return rank < EARLY


def table(order: str, all_streams: list[Keyed]) -> Iterator[str]:
    """Yield lines: for each kind and way, scores, and how much lower they are."""
    for kind in dict.fromkeys(stream.kind for stream in all_streams):
        some = [stream for stream in all_streams if stream.kind == kind]
        early, base = [first_rounds(stream) for stream in some], list[Floats]()
        for way, play in WAYS.items():
            found = [losses(stream, play(stream)) for stream in some]
            brier = [each for each, _ in found]
            base = base or brier
            means = [
                np.mean([each.mean() for each in brier]),
                np.mean([loss.mean() for _, loss in found]),
                np.mean([each[new].mean() for each, new in zip(brier, early, strict=True)]),
            ]
            lower = [old - new for old, new in zip(base, brier, strict=True)]
            joined, won = np.concatenate(lower), sum(each.mean() > 0 for each in lower)
            error = joined.std() / np.sqrt(len(joined))
            told = f"{1e4 * joined.mean():.1f} +- {1e4 * error:.1f} | {won} of {len(some)}"
            told = " | " if brier is base else told
            numbers = " | ".join(f"{each:.4f}" for each in means)
            yield f"| {kind}, {order} | {way} | {numbers} | {told} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_store(parser)
    found = list(streams())
    orders = {"as filed": found, "shuffled": [stream.shuffled(0) for stream in found]}
    with storing("pooled", wanted=parser.parse_args().store):
        early = f"Brier, first {EARLY} of a key"
        print(f"| streams | way | Brier | log loss | {early} | lower by, 1e-4 | on |")
        print("|---|---|---|---|---|---|---|")
        for order, played in orders.items():
            print("\n".join(table(order, played)), flush=True)


if __name__ == "__main__":
    main()
