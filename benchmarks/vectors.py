"""Whole vectors over classes: Brier score and log loss of the default against refitted scalings.

Run as ``python -m benchmarks.vectors [--data DIR] [--rounds T] [--chosen | --late] [WORD]``.  DIR
holds ``image_logits`` and ``llm_multiple_choice``; streams whose files are not there are left out.
The table is of streams on which nothing was chosen; ``--chosen`` prints those on which it was.  A
word keeps the streams whose titles have it.

Others are temperature, vector and matrix scaling (by L-BFGS, with a ridge) and isotonic regression
class by class, each fitted on the last 2,000 rounds every 500; ours are judged by their means.  The
bar is 1.01 times the best of them, of ``OneVsRest`` and of ``TopLabel``, plus 2 K / T.  C2 is over
the exact values that were drawn.

``--late`` plays streams over three classes whose outcomes are late, because of what they are, or
because many forecasts wait for one of them, with ``--seeds`` seeds; the bar is the raw forecast's
Brier score + 0.001 where this is right.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import pathlib
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.isotonic import IsotonicRegression

from benchmarks.images import DATA, NETS, load, softmax
from benchmarks.store import add_store, storing
from calibrant.classes import ClassCalibrant, OneVsRest, TopLabel, metrics
from calibrant.datasets import path
from calibrant.metrics import calibration_error

__all__ = ["APART", "CHOSEN", "blurred", "leaking", "linear", "scaled"]

Reals = NDArray[np.float64]
Labels = NDArray[np.int64]
Stream = tuple[Reals, Labels]
WINDOW, EVERY = 2_000, 500
SMALLEST = 1e-6
RIDGES = {"temperature": 1e-6, "vector": 1e-3, "matrix": 1e-2}
MOST_CLASSES = 32


# ------------------------------------------------------------------------- streams


def blurred(rounds: int, classes: int, seed: int) -> Stream:
    """Return points around centres, read as if their noise had not grown threefold halfway."""
    rng = np.random.default_rng(seed)
    outcomes, size = rng.integers(0, classes, rounds), max(3, classes // 2)
    centres = 1.5 * rng.normal(size=(classes, size))
    noise = np.where(np.arange(rounds) < rounds // 2, 1.0, 3.0)[:, None]
    points = centres[outcomes] + noise * rng.normal(size=(rounds, size))
    return softmax(-((points[:, None] - centres) ** 2).sum(axis=2) / 2.0), outcomes


def leaking(rounds: int, classes: int, seed: int) -> Stream:
    """Return raw forecasts half of whose chance belongs to another class, another from halfway."""
    rng = np.random.default_rng(seed)
    raw, half = softmax(1.5 * rng.normal(size=(rounds, classes))), rounds // 2
    one, other = (0.5 * np.eye(classes) + 0.5 * np.eye(classes)[rng.permutation(classes)]
                  for _ in range(2))  # fmt: skip
    return raw, _drawn(rng, np.concatenate([raw[:half] @ one, raw[half:] @ other]))


def linear(rounds: int, classes: int, seed: int) -> Stream:
    """Return raw forecasts whose chances are a matrix of their logits, which slowly changes."""
    rng = np.random.default_rng(seed)
    logits = 1.5 * rng.normal(size=(rounds, classes))
    one, other = (
        0.6 * np.eye(classes) + 0.5 * rng.normal(size=(classes, classes)) / np.sqrt(classes)
        for _ in range(2)
    )
    late = np.linspace(0.0, 1.0, rounds)[:, None]
    mixed = (1.0 - late) * (logits @ one.T) + late * (logits @ other.T)
    return softmax(logits), _drawn(rng, softmax(mixed + 0.3 * rng.normal(size=classes)))


def steep(rounds: int, classes: int, seed: int) -> Stream:
    """Return raw forecasts twice as steep as they should be."""
    rng = np.random.default_rng(seed)
    logits = 1.5 * rng.normal(size=(rounds, classes))
    return softmax(2.0 * logits), _drawn(rng, softmax(logits))


def honest(rounds: int, classes: int, seed: int) -> Stream:
    """Return raw forecasts that are right."""
    rng = np.random.default_rng(seed)
    raw = softmax(1.5 * rng.normal(size=(rounds, classes)))
    return raw, _drawn(rng, raw)


def _drawn(rng: np.random.Generator, chances: Reals) -> Labels:
    drawn = (chances.cumsum(axis=1) < rng.random((len(chances), 1))).sum(axis=1)
    return np.minimum(drawn, chances.shape[1] - 1)


def image(data: pathlib.Path | None, title: str) -> Stream:
    """Return the forecasts of a network."""
    return load(data, NETS[title])


def answers(data: pathlib.Path | None, name: str, *models: str) -> Stream:
    """Return which of some models answer right: as if they did so independently of each other."""
    with gzip.open(path(f"llm_multiple_choice/{name}.csv.gz", data), "rt") as file:
        rows = [row for row in csv.DictReader(file)
                if all(row[f"{m}_correct"] in "01" for m in models)]  # fmt: skip
    raw, outcomes = np.ones((len(rows), 1)), np.zeros(len(rows), np.int64)
    for m in models:
        sure = np.array([float(row[f"{m}_confidence"]) for row in rows])
        pair = np.column_stack([1.0 - sure, sure])
        raw = (raw[:, :, None] * pair[:, None, :]).reshape(len(rows), -1)
        outcomes = 2 * outcomes + np.array([int(row[f"{m}_correct"]) for row in rows])
    return raw / raw.sum(axis=1, keepdims=True), outcomes


# --------------------------------------------------------------------- late outcomes


def luck(raw: Reals, coins: Reals, slope: float) -> Labels:
    """Return classes by coins, with chances that are the raw forecast to a power, over the sum."""
    chances = raw**slope / (raw**slope).sum(axis=1, keepdims=True)
    return np.minimum((chances.cumsum(axis=1) < coins[:, None]).sum(axis=1), raw.shape[1] - 1)


def crowded(size: int, slope: float = 1.0) -> Callable[[int, int], tuple[Reals, Labels, Reals]]:
    """Return what makes forecasts of which ``size`` in a row wait for one shared outcome."""

    def make(rounds: int, seed: int) -> tuple[Reals, Labels, Reals]:
        rng, crowd = np.random.default_rng([seed, size]), np.arange(rounds) // size
        raw = rng.dirichlet(np.full(3, 1.5), rounds)
        outcomes = luck(raw[crowd], rng.random(rounds)[crowd], slope)
        return raw[crowd], outcomes, (crowd + 1.0) * size - 0.5

    return make


def delayed(
    lags: Callable[[np.random.Generator, Labels], Reals], slope: float = 1.0
) -> Callable[[int, int], tuple[Reals, Labels, Reals]]:
    """Return what makes forecasts whose outcomes are late by so much."""

    def make(rounds: int, seed: int) -> tuple[Reals, Labels, Reals]:
        rng = np.random.default_rng([seed, 3])
        raw = rng.dirichlet(np.full(3, 1.5), rounds)
        outcomes = luck(raw, rng.random(rounds), slope)
        return raw, outcomes, np.arange(rounds) + lags(rng, outcomes)

    return make


def of_class(k: int, lag: float) -> Callable[[np.random.Generator, Labels], Reals]:
    """Return delays of one class."""
    return lambda rng, outcomes: np.where(outcomes == k, lag, 0.0)


def heavy(rng: np.random.Generator, outcomes: Labels) -> Reals:
    """Return delays with a heavy tail, the longer the higher the class."""
    scale = np.array([1.0, 5.0, 20.0])[outcomes]
    return np.minimum(np.floor(scale * (rng.random(len(outcomes)) ** (-1 / 1.5) - 1.0)), 5_000.0)


LATE: dict[str, Callable[[int, int], tuple[Reals, Labels, Reals]]] = {
    **{f"crowds of {n}": crowded(n) for n in (10, 100, 1_000)},
    **{f"class 0 late by {n}": delayed(of_class(0, n)) for n in (20, 200)},
    "class 2 late by 200": delayed(of_class(2, 200.0)),
    "heavy tail, by class": delayed(heavy),
    "all late by 100": delayed(lambda rng, y: np.full(len(y), 100.0)),
    "crowds of 10, steep": crowded(10, 0.5),
    "class 0 late by 20, steep": delayed(of_class(0, 20.0), 0.5),
    "all late by 100, steep": delayed(lambda rng, y: np.full(len(y), 100.0), 0.5),
}
"""Streams whose outcomes are late; the steep ones have logits twice as far apart as they should."""


def late_row(title: str, rounds: int, seeds: int) -> str:
    """Return the line of a stream whose outcomes are late."""
    found = []
    for seed in range(seeds):
        raw, outcomes, known = LATE[title](rounds, seed)
        time, scores = np.arange(rounds) * 1.0, [metrics.brier(raw, outcomes)]
        for kind in (OneVsRest, ClassCalibrant):
            rec = kind(3, seed=seed).compile()
            run = rec.replay(raw, outcomes, time=time, available=known)
            made = run.mean / run.mean.sum(axis=1, keepdims=True)
            scores.append(metrics.brier(made, outcomes))
        found.append(scores)
    raw, each, own = np.mean(found, axis=0).tolist()
    most = max(ours - before for before, _, ours in found)
    bar = "" if "steep" in title else (" kept" if own <= raw + 0.001 else " missed")
    cells = f"{raw:.4f} | {each - raw:+.4f} | {own - raw:+.4f} | {most:+.4f}"
    return f"| {title} | {cells} |{bar} |"


def late_table(word: str, rounds: int, seeds: int) -> Iterator[str]:
    """Yield the table of streams whose outcomes are late, those with a word in their titles."""
    yield "| stream | Brier raw | `OneVsRest`, less raw | ours, less raw | at worst | bar |"
    yield "|---|---|---|---|---|---|"
    for title in (title for title in LATE if word in title):
        yield late_row(title, rounds, seeds)


Maker = Callable[[pathlib.Path | None, int], Stream]
CHOSEN: dict[str, Maker] = {
    "LeNet-5, CIFAR-10": lambda data, t: image(data, "LeNet-5, CIFAR-10"),
    "ARC, two models": lambda data, t: answers(data, "arc", "Llama3-8b", "gpt-3.5-turbo"),
    "HellaSwag, one model": lambda data, t: answers(data, "hellaswag", "Mistral"),
    "blurred, K = 3": lambda data, t: blurred(t, 3, 1),
    "blurred, K = 10": lambda data, t: blurred(t, 10, 2),
    "leaking, K = 5": lambda data, t: leaking(t, 5, 3),
    "leaking, K = 10": lambda data, t: leaking(t, 10, 4),
    "linear, K = 6": lambda data, t: linear(t, 6, 5),
    "steep, K = 10": lambda data, t: steep(t, 10, 6),
    "honest, K = 4": lambda data, t: honest(t, 4, 7),
}
"""Streams on which experts and memories were chosen."""
APART: dict[str, Maker] = {
    "WRN-16-4, CIFAR-10": lambda data, t: image(data, "WRN-16-4, CIFAR-10"),
    "ResNet-50, CIFAR-10": lambda data, t: image(data, "ResNet-50, CIFAR-10"),
    "WRN-16-4, CIFAR-100": lambda data, t: image(data, "WRN-16-4, CIFAR-100"),
    "WinoGrande, one model": lambda data, t: answers(data, "winogrande", "Llama3-8b"),
    "MMLU, two models": lambda data, t: answers(data, "mmlu", "Llama3-8b", "gpt-3.5-turbo"),
    "MMLU, three models": lambda data, t: answers(
        data, "mmlu", "Llama-7b", "Mistral", "gpt-4-turbo"
    ),
    "blurred, K = 8": lambda data, t: blurred(t, 8, 11),
    "blurred, K = 20": lambda data, t: blurred(t, 20, 12),
    "leaking, K = 3": lambda data, t: leaking(t, 3, 13),
    "linear, K = 12": lambda data, t: linear(t, 12, 14),
}
"""Streams on which nothing was chosen."""


# -------------------------------------------------------------------------- others


def scaled(kind: str, raw: Reals, outcomes: Labels) -> Reals:
    """Return forecasts scaled by what was best on the last rounds."""
    logs = np.log(np.maximum(raw, SMALLEST))
    logs -= logs.mean(axis=1, keepdims=True)
    made, found = raw.copy(), None
    for now in range(EVERY, len(raw), EVERY):
        past = slice(max(0, now - WINDOW), now)
        found = _fitted(kind, logs[past], outcomes[past], found)
        next_ones = slice(now, now + EVERY)
        made[next_ones] = softmax(_logits(kind, found, logs[next_ones]))
    return made


def _logits(kind: str, told: Reals, logs: Reals) -> Reals:
    k = logs.shape[1]
    if kind == "temperature":
        return told[0] * logs
    if kind == "vector":
        return logs * told[:k] + told[k:]
    return logs @ told[: k * k].reshape(k, k).T + told[k * k :]


def _fitted(kind: str, logs: Reals, outcomes: Labels, begin: Reals | None) -> Reals:
    k, ridge = logs.shape[1], RIDGES[kind]
    starts = {"temperature": np.ones(1), "vector": np.repeat([1.0, 0.0], k),
              "matrix": np.concatenate([np.eye(k).ravel(), np.zeros(k)])}  # fmt: skip
    start, truth = starts[kind], np.eye(k)[outcomes]

    def loss(told: Reals) -> tuple[float, Reals]:
        said = softmax(_logits(kind, told, logs))
        off, away = (said - truth) / len(logs), told - start
        slopes = {"temperature": lambda: [(off * logs).sum()],
                  "vector": lambda: [*(off * logs).sum(axis=0), *off.sum(axis=0)],
                  "matrix": lambda: [*(off.T @ logs).ravel(), *off.sum(axis=0)]}  # fmt: skip
        value = metrics.log_loss(said, outcomes) + 0.5 * ridge * (away**2).sum()
        return value, np.array(slopes[kind]()) + ridge * away

    first = start if begin is None else begin
    found: Reals = minimize(loss, first, jac=True, method="L-BFGS-B", options={"maxiter": 60}).x
    return found


def isotonic(raw: Reals, outcomes: Labels) -> Reals:
    """Return forecasts by isotonic regression of each class on the last rounds, over their sum."""
    made, classes = raw.copy(), raw.shape[1]
    for now in range(EVERY, len(raw), EVERY):
        past, new = slice(max(0, now - WINDOW), now), slice(now, now + EVERY)
        for k in range(classes):
            fit = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
            made[new, k] = fit.fit(raw[past, k], outcomes[past] == k).predict(raw[new, k])
    made += 1e-12
    return made / made.sum(axis=1, keepdims=True)


# --------------------------------------------------------------------------- table


def row(title: str, raw: Reals, outcomes: Labels) -> Iterator[str]:
    """Yield the cells of a stream."""
    classes, rounds = raw.shape[1], len(raw)
    ours = ClassCalibrant(classes, seed=1).replay(raw, outcomes)
    each = OneVsRest(classes, renormalise="project", seed=1).replay(raw, outcomes)
    top = TopLabel(classes, seed=1).replay(raw, outcomes)
    others = {"OneVsRest": each.mean, "TopLabel": top.mean, "isotonic": isotonic(raw, outcomes)}
    for kind in ("temperature", "vector", *(["matrix"] if classes <= MOST_CLASSES else [])):
        others[kind] = scaled(kind, raw, outcomes)
    scores = {name: metrics.brier(made, outcomes) for name, made in others.items()}
    name = min(scores, key=scores.__getitem__)
    bar, own = 1.01 * scores[name] + 2.0 * classes / rounds, metrics.brier(ours.mean, outcomes)
    logs = min(metrics.log_loss(np.maximum(m, 1e-12), outcomes) for m in others.values())
    yield title
    yield from (f"{classes}", f"{rounds}", f"{metrics.brier(raw, outcomes):.4f}")
    yield from (f"{scores['OneVsRest']:.4f}", f"{scores['TopLabel']:.4f}")
    yield from (f"{scores[name]:.4f} ({name})", f"{own:.4f}", "kept" if own <= bar else "missed")
    yield from (f"{logs:.4f}", f"{metrics.log_loss(ours.mean, outcomes):.4f}")
    for run in (top, ours):
        yield f"{calibration_error(run.confidence, run.top == outcomes, power=2):.5f}"
    for run in (each, ours):
        yield f"{metrics.classwise_error(run.classwise, outcomes, power=2):.5f}"


HEADS = ("stream", "K", "T", "Brier raw", "`OneVsRest`", "`TopLabel`", "best of all others", "ours",
         "bar", "log loss, best of others", "ours", "C2 of confidence, `TopLabel`", "ours",
         "C2 by class, `OneVsRest`", "ours")  # fmt: skip


def table(streams: dict[str, Maker], data: pathlib.Path, rounds: int) -> Iterator[str]:
    """Yield the table of some streams."""
    yield "| " + " | ".join(HEADS) + " |"
    yield "|" + " --- |" * len(HEADS)
    for title, make in streams.items():
        try:
            raw, outcomes = make(data, rounds)
        except FileNotFoundError:
            continue
        yield "| " + " | ".join(row(title, raw[:rounds], outcomes[:rounds])) + " |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=pathlib.Path, default=DATA)
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--chosen", action="store_true")
    parser.add_argument("--late", action="store_true")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("word", nargs="?", default="")
    add_store(parser)
    told = parser.parse_args()
    streams = CHOSEN if told.chosen else APART
    asked = {title: make for title, make in streams.items() if told.word in title}
    lines = table(asked, told.data, told.rounds)
    if told.late:
        lines = late_table(told.word, told.rounds, told.seeds)
    part = "late" if told.late else "chosen" if told.chosen else ""
    with storing("vectors", part=part, wanted=told.store):
        for line in lines:
            print(line, flush=True)


if __name__ == "__main__":
    main()
