"""Rare events: what the draw loses to the mean, and the mean to the raw forecast, by base rate.

``python -m benchmarks.rare`` prints a table with the bars; ``--rounds`` and ``--seeds`` say how
much is played, ``--method`` with which last stage.  ``--panel [DIR]`` prints instead what the last
stage costs or saves on prompt streams of the quality panel, beside ``anchored`` on even grids.
"""

from __future__ import annotations

import argparse
import pathlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.quality.streams import panel
from benchmarks.store import add_store, storing
from calibrant import Calibrant, metrics

Floats = NDArray[np.float64]
Bits = NDArray[np.uint8]
RATES = (0.5, 0.1, 0.01, 0.001)
SPREAD = 1.25
"""Standard deviation of the true log-odds."""
WARPS = ((0.6, 1.0), (1.6, -0.7))
"""Slope and shift of the raw log-odds, in turns."""


@dataclass(frozen=True)
class Scores:
    """The figures of one run; AUC and Brier score of the draw are told less the mean's."""

    auc_raw: float
    auc_mean: float
    auc_draw: float
    log_raw: float
    log_mean: float
    log_ratio: float
    log_loss_mean: float
    brier_raw: float
    brier_mean: float
    brier_draw: float
    c2: float
    ends: float


def stream(rate: float, rounds: int, seed: int) -> tuple[Floats, Bits]:
    """Return raw forecasts of wrong slope and shift, and outcomes of that base rate."""
    rng = np.random.default_rng([seed, round(1e5 * rate)])
    deviation = SPREAD * rng.standard_normal(rounds)
    centre, (slope, shift) = _centre(rate, deviation), WARPS[seed % len(WARPS)]
    chance = 1.0 / (1.0 + np.exp(-centre - deviation))
    raw = 1.0 / (1.0 + np.exp(-centre - slope * deviation - shift))
    return raw, (rng.random(rounds) < chance).astype(np.uint8)


def _centre(rate: float, deviation: Floats) -> float:
    """Return the log-odds around which the mean chance is the base rate."""
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2.0
        below = float(np.mean(1.0 / (1.0 + np.exp(-middle - deviation)))) < rate
        low, high = (middle, high) if below else (low, middle)
    return low


def score(rate: float, rounds: int, seed: int, method: str) -> Scores:
    """Return the figures of one stream."""
    raw, y = stream(rate, rounds, seed)
    run = Calibrant(method=method, seed=seed).compile().replay(raw, y)
    other = Calibrant(method=method, loss="log", seed=seed).compile().replay(raw, y)
    drawn, mean = run.forecast, run.mean
    auc = [metrics.auc(p, y) for p in (raw, mean, drawn)]
    logs = [_log_loss(p, y) for p in (raw, mean, drawn, other.mean)]
    brier = [metrics.brier(p, y) for p in (raw, mean, drawn)]
    ends = float(np.mean((drawn == 0.0) | (drawn == 1.0)))
    return Scores(
        auc[0],
        auc[1] - auc[0],
        auc[2] - auc[1],
        logs[0],
        logs[1],
        logs[2] / logs[1],
        logs[3],
        brier[0],
        brier[1],
        brier[2] - brier[1],
        metrics.calibration_error(drawn, y, power=2.0),
        ends,
    )


def _log_loss(p: Floats, y: Bits) -> float:
    return metrics.mean_loss(p, y, loss="log")


def bars(rate: float, rounds: int, told: Scores) -> dict[str, bool]:
    """Return each bar, and whether it is met."""
    return {
        "log loss of the draw": told.log_ratio <= 1.03,
        "AUC of the draw": told.auc_draw >= -0.005,
        "AUC of the mean": rate < 0.01 or told.auc_mean >= -0.01,
        "Brier of the draw": told.brier_draw <= 0.0003,
        "C2": told.c2 <= 20.0 / rounds + 0.025**2,
        'mean under loss="log"': told.log_loss_mean <= told.log_mean,
    }


EVEN: dict[str, Any] = {"method": "anchored", "grid": "endpoints"}
STAGES: dict[str, dict[str, Any]] = {
    "refining": {},
    "anchored, 19 even steps": EVEN | {"resolution": 19},
    "anchored, 21 even steps": EVEN | {"resolution": 21},
}
LONGEST = 12_000
"""Rounds of the longest stream of the panel that is played."""
BAR = 0.002


def panel_rows(data: pathlib.Path | None, seeds: int) -> Iterator[str]:
    """Compare last stages with ``anchored`` on 20 even steps: Brier scores of mean and draw."""
    streams = [s for s in panel(data)[0] if len(s) <= LONGEST and not s.delayed]
    before, worse = {s.name: averaged(EVEN, s, seeds) for s in streams}, list[str]()
    yield "| last stage | mean | draw | streams above +0.2 % | worst | best |"
    yield "|---|---|---|---|---|---|"
    for name, options in STAGES.items():
        now = {s.name: averaged(options, s, seeds) for s in streams}
        change = {which: now[which] / before[which] - 1.0 for which in now}
        ordered = sorted(change, key=lambda which: change[which][0])
        best, worst = (f"{100 * change[k][0]:+.2f} %, {k}" for k in (ordered[0], ordered[-1]))
        mean, draw = 100.0 * np.mean(list(change.values()), axis=0)
        above = [which for which in reversed(ordered) if change[which][0] > BAR]
        told = f"{mean:+.2f} % | {draw:+.2f} % | {len(above)} of {len(now)}"
        yield f"| {name} | {told} | {worst} | {best} |"
        if not options:
            worse = [f"| {which} | {100 * change[which][0]:+.2f} % |" for which in above]
    yield "\n| refining above +0.2 % | change |\n|---|---|"
    yield from worse


def averaged(options: dict[str, Any], stream: Any, seeds: int) -> Floats:
    """Return the Brier scores of mean and draw, averaged over seeds."""
    made = [Calibrant(seed=seed, **options).compile() for seed in range(seeds)]
    runs = [each.replay(stream.raw, stream.outcomes) for each in made]
    y = stream.outcomes
    pairs = [(metrics.brier(run.mean, y), metrics.brier(run.forecast, y)) for run in runs]
    return np.mean(pairs, axis=0)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=50_000)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--method", default="refining")
    parser.add_argument("--panel", type=pathlib.Path, nargs="?", default=NO_PANEL)
    add_store(parser)
    given = parser.parse_args()
    wanted = given.panel is not NO_PANEL
    found = panel_rows(given.panel, given.seeds) if wanted else rows(given)
    with storing("rare", part="panel" if wanted else "", wanted=given.store):
        for row in found:
            print(row, flush=True)


NO_PANEL: Any = object()
"""In place of a directory, where the panel is not wanted; None is what came along."""


def rows(given: argparse.Namespace) -> Iterator[str]:
    """Yield the table of base rates."""
    yield (
        "| base rate | AUC raw | mean's, less raw's | draw's, less mean's | log loss raw | mean "
        "| draw over mean | mean, `loss=\"log\"` | Brier raw | mean | draw's, less mean's "
        "| C2 of the draw | said 0 or 1 | missed |"
    )
    yield "|" + "---|" * 14
    for rate in RATES:
        runs = [score(rate, given.rounds, seed, given.method) for seed in range(given.seeds)]
        told = Scores(*np.mean([list(vars(run).values()) for run in runs], axis=0).tolist())
        missed = [name for name, met in bars(rate, given.rounds, told).items() if not met]
        yield line(rate, told, missed)


def line(rate: float, told: Scores, missed: list[str]) -> str:
    """Return a line of the table."""
    cells = [
        f"{100 * rate:g} %",
        f"{told.auc_raw:.4f}",
        f"{told.auc_mean:+.4f}",
        f"{told.auc_draw:+.4f}",
        f"{told.log_raw:.5f}",
        f"{told.log_mean:.5f}",
        f"{told.log_ratio:.4f}",
        f"{told.log_loss_mean:.5f}",
        f"{told.brier_raw:.6f}",
        f"{told.brier_mean:.6f}",
        f"{told.brier_draw:+.6f}",
        f"{told.c2:.6f}",
        f"{100 * told.ends:.0f} %",
        ", ".join(missed),
    ]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
