"""Passes of a recalibrator over a stream, with other draws each, and language models re-run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from calibrant import Calibrant, Recalibrator
from calibrant.core.arrays import Reals
from calibrant.experiments.claims import Claim, at_most
from calibrant.experiments.experiment import Result, Setting
from calibrant.experiments.figures import Band, Columns, Curves, Panels, band_of, columns_of
from calibrant.experiments.streams import Stream, mmlu_pro, multiple_choice
from calibrant.metrics import binned_calibration_error, brier, calibration_error
from calibrant.plot import prepare_over_time, prepare_reliability
from calibrant.report.tables import Table, shown

BUCKETS: Final = 20
"""In which raw confidences, whose values hardly repeat, are measured."""
SIZE: Final = 10
"""Resolution and number of buckets of Algorithm 1; the paper does not say."""
CURVE: Final = 10
TITLES: Final = {"brier": "squared loss", "c2": "calibration error C2"}
NULL: Final = 400
"""Runs under perfect calibration that show what noise alone does."""
ALGORITHM: Final = partial(Recalibrator, resolution=SIZE, buckets=SIZE)

METHODS: Final[Mapping[str, Callable[..., Recalibrator]]] = {
    "foster_hart": partial(ALGORITHM, "foster_hart"),
    "exponential_regret": partial(ALGORITHM, "exponential_regret", prior=0),
    "default": Calibrant,
}
"""Algorithm 1 with our subroutine and with the paper's, and the package's default."""


@dataclass(frozen=True, eq=False)
class Passes:
    """What a method announced, a row for each seed."""

    stream: Stream
    drawn: Reals
    mean: Reals

    @property
    def c2(self) -> float:
        """C2 of the draws over exact values, averaged over seeds."""
        y = self.stream.outcomes
        return float(np.mean([calibration_error(row, y, power=2) for row in self.drawn]))

    @property
    def loss(self) -> float:
        """Squared loss of the draws, averaged over seeds."""
        return float(np.mean([brier(row, self.stream.outcomes) for row in self.drawn]))

    @property
    def mean_loss(self) -> float:
        """Squared loss of the means, averaged over seeds."""
        return float(np.mean([brier(row, self.stream.outcomes) for row in self.mean]))


def pass_over(stream: Stream, method: str, seeds: int) -> Passes:
    """Replay a stream with that many seeds."""
    runs = [METHODS[method](seed=seed).replay(stream.raw, stream.outcomes) for seed in range(seeds)]
    drawn, mean = np.array([run.forecast for run in runs]), np.array([run.mean for run in runs])
    return Passes(stream, drawn, np.clip(mean, 0.0, 1.0))


def raw_error(stream: Stream) -> float:
    """Return C2 of the raw forecasts in equal buckets."""
    return binned_calibration_error(stream.raw, stream.outcomes, buckets=BUCKETS, power=2)


def noise(forecasts: Reals) -> float:
    """Return what C2 stays below with probability 0.95 if the forecasts are right.

    Outcomes are drawn with the very probabilities that were announced; C2 is over exact values.

    Examples
    --------
    >>> 0.0 < noise(np.full(100, 0.5)) < 0.03
    True
    """
    rng = np.random.default_rng(5)
    tosses = rng.random((NULL, len(forecasts))) < forecasts
    errors = [calibration_error(forecasts, row.astype(np.uint8), power=2) for row in tosses]
    return float(np.quantile(errors, 0.95))


def paper_panels(passes: Passes, title: str, caption: str) -> Panels:
    """Return the paper's figure: loss and error over time, and calibration curves."""
    stream = passes.stream
    curves = {"raw": stream.raw, "forecast": passes.drawn[0]}
    drawings = {
        "a": _over_time(passes, "brier"),
        "b": _over_time(passes, "c2"),
        "c": prepare_reliability(curves, stream.outcomes, buckets=CURVE),
    }
    return Panels(title, caption, drawings, ["ac", "bc"], (8.6, 5.2))


def _over_time(passes: Passes, quantity: str) -> Curves:
    y = passes.stream.outcomes
    raw = prepare_over_time(passes.stream.raw, y, quantity=quantity, buckets=BUCKETS)
    rows = [
        prepare_over_time(row, y, quantity=quantity, buckets=None).series["forecast"]
        for row in passes.drawn
    ]
    series: dict[str, Band] = {"raw": band_of(raw.series["forecast"]), "forecast": band_of(rows)}
    return Curves(TITLES[quantity], raw.rounds, series)


def columns(passes: Passes) -> Columns:
    """Return the numbers behind panels a and b."""
    made = {quantity: _over_time(passes, quantity) for quantity in TITLES}
    table: dict[str, list[float]] = {"rounds": made["c2"].rounds.tolist()}
    for quantity, curves in made.items():
        table |= {f"{quantity}_{name}": band.mean.tolist() for name, band in curves.series.items()}
    return table


SEEDS: Final = 3
OFF: Final = 0.04
"""Raw C2 above which recalibration has to help a lot."""
COLUMNS: Final = ("name", "rounds", "raw_c2", "raw_loss", "c2", "loss")
SHOWN: Final = "mmlu pro gpt-4.1-nano verbal"
CAPTION: Final = (
    "What the model says of its answers, before and after, over the 14 subjects of MMLU-Pro one "
    "after the other; circles grow with the number of rounds."
)
NOTES: Final = (
    "Language models: wherever confidences are far off, the default takes C2 down to a small part "
    "of itself and the squared loss by a tenth or more. Where a model is nearly calibrated, as "
    "gpt-4-turbo is on ARC, there is little to gain: the squared loss falls by a few "
    "thousandths at most.",
)


@dataclass(frozen=True)
class Row:
    """One stream before and after."""

    name: str
    rounds: int
    raw_c2: float
    raw_loss: float
    c2: float
    loss: float

    @property
    def off(self) -> bool:
        """Whether the raw confidences are far off."""
        return self.raw_c2 > OFF

    @property
    def share(self) -> float:
        """C2 as a share of what it may be: a twentieth of raw, or 12/T if that is more."""
        return self.c2 / max(self.raw_c2 / 20.0, 12.0 / self.rounds)


def rerun(setting: Setting) -> Result:
    """Recalibrate every stream of confidences with the default."""
    streams = [*mmlu_pro(setting.data), *multiple_choice(setting.data)]
    passed = {}
    for stream in streams:
        setting.tell(f"{stream.name}, {len(stream):,} rounds")
        passed[stream.name] = pass_over(stream, "default", 1 if setting.quick else SEEDS)
    rows = [row_of(stream, passed[stream.name]) for stream in streams]
    figures = {"llm": paper_panels(passed[SHOWN], SHOWN, CAPTION)} if SHOWN in passed else {}
    numbers: dict[str, Columns] = {"llm": columns(passed[SHOWN])} if SHOWN in passed else {}
    numbers["llm_streams"] = columns_of(rows, *COLUMNS)
    return Result(claims(rows), figures, (_table(rows),), numbers, NOTES)


def row_of(stream: Stream, passes: Passes) -> Row:
    """Return a stream's line."""
    before = raw_error(stream), brier(stream.raw, stream.outcomes)
    return Row(stream.name, len(stream), *before, passes.c2, passes.loss)


def claims(rows: Iterable[Row]) -> tuple[Claim, ...]:
    """Return what is to hold wherever raw confidences are far off."""
    far = [row for row in rows if row.off]
    where = f"Language models, raw C2 above {OFF} ({len(far)} streams)"
    share = max(row.share for row in far)
    ratio = max(row.loss / row.raw_loss for row in far)
    return (
        at_most("llm_c2", f"{where}: C2 as a share of max(raw/20, 12/T), largest", share, 1.0,
                "ours"),
        at_most("llm_loss", f"{where}: squared loss by that of raw, largest", ratio, 0.9, "ours"),
    )  # fmt: skip


def _table(rows: Iterable[Row]) -> Table:
    cells = tuple(
        (
            row.name,
            f"{row.rounds:,}",
            *map(shown, (row.raw_c2, row.c2, row.raw_loss, row.loss)),
            "yes" if row.off else "no",
        )
        for row in rows
    )
    header = ("stream", "rounds", "C2 before", "now", "loss before", "now", f"above {OFF}")
    note = "Drawn forecasts of the default. C2 before in 20 equal buckets, now over exact values."
    return Table("Language models", header, cells, (0, 6), (note,))
