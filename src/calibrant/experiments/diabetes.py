"""The paper's last experiment: type 1 diabetes from genotypes, one patient at a time."""

from __future__ import annotations

import importlib.util
import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from calibrant.core.arrays import Mask, Reals, Words
from calibrant.datasets.shelf import there
from calibrant.experiments import diagnosis
from calibrant.experiments.claims import Claim, Judge, at_least, at_most, unmeasured
from calibrant.experiments.diagnosis import Diagnosis
from calibrant.experiments.experiment import Result, Setting, experiment
from calibrant.experiments.figures import Curves, Panels, band_of
from calibrant.experiments.genotypes import BedFile, Cohort, generate
from calibrant.metrics import auc
from calibrant.plot import prepare_reliability
from calibrant.report.tables import Table, shown
from calibrant.simulate.games import Progress


@contextmanager
def bar(title: str) -> Iterator[Progress | None]:
    """Show how far something is: on a terminal, if rich is installed; elsewhere nothing.

    Examples
    --------
    >>> with bar("patients") as progress:
    ...     progress(1, 2)
    """
    if importlib.util.find_spec("rich") is None:
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress as Live

    console = Console(stderr=True)
    with Live(console=console, disable=not console.is_terminal, transient=True) as live:
        task = live.add_task(title, total=None)

        def show(done: int, total: int) -> None:
            live.update(task, completed=done, total=total)

        yield show


QUICK: Final = "genotypes/t1d_sim_3443x4655.npz"
SMALL: Final = Cohort(snps=4655)
"""What a quick run makes itself where that file is not there."""
SEEDS: Final = 20
"""Draws of the recalibrators that are averaged, at most."""
ORDERS: Final = (1, 2, 3)
"""Seeds of the orders in which patients come; every claim is judged in each."""
POINTS: Final = 400
MIDDLE: Final = (0.4, 0.6)
"""Where the paper finds raw forecasts calibrated."""


@experiment("diabetes", "Medical diagnosis", 4)
def run(setting: Setting) -> Result:
    """Learn who is ill from genotypes, and recalibrate: patients in three orders.

    A quick run takes 4,655 SNPs instead of 447,221.
    """
    source, found = source_of(setting), {}
    setting.tell(f"{len(source.outcomes):,} patients with {source.snps:,} SNPs")
    seeds = range(min(setting.seeds, SEEDS))
    for order in ORDERS:
        setting.tell(f"patients in order {order}")
        with bar("patients") as progress:
            found[order] = diagnosis.diagnose(source, seeds=seeds, order=order, progress=progress)
    return told(found, source.snps)


def source_of(setting: Setting) -> diagnosis.Genotypes:
    """Return the genotypes: the user's own, or few of them, or as many as the paper's."""
    if setting.bed is not None:
        return BedFile.open(setting.bed)
    if setting.quick and (packed := there(QUICK, setting.data)) is not None:
        return diagnosis.PackedFile.open(packed)
    cohort = SMALL if setting.quick else Cohort()
    setting.tell(f"genotypes are made once and kept in {cache()}")
    with bar("blocks of the genome") as progress:
        return BedFile.open(generate(cohort, cache(), progress=progress))


def cache() -> Path:
    """Return where simulated genotypes are kept: below $XDG_CACHE_HOME, or ~/.cache."""
    place = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(place) / "calibrant" / "genotypes"


def told(found: Mapping[int, Diagnosis], snps: int) -> Result:
    """Return what came of patients in some orders: claims, picture, tables and numbers."""
    first = next(iter(found.values()))
    judged = [claim for order, each in found.items() for claim in _judged(each, order)]
    return Result(
        tuple(
            # Too few patients leave some numbers undefined.
            replace(claim, holds=None, misses=()) if math.isnan(claim.value) else claim
            for claim in (*judged, *_costs(first, snps))
        ),
        {"diabetes": _picture(first)},
        (_learners(found), _scores(found)),
        {"diabetes_rounds": _rounds(first), "diabetes_over_time": _over_time(first)},
        (_note(first, snps),),
    )


# Claims.


def _judged(found: Diagnosis, order: int) -> Iterator[Claim]:
    """Yield every claim, with the order of the patients in its key and in its words."""
    for claim in (*_papers(found), *_ours(found)):
        key, said = f"{claim.key}_{order}", f"{claim.said}, patient order {order}"
        yield replace(claim, key=key, said=said)


def _papers(found: Diagnosis) -> tuple[Claim, ...]:
    within = (found.raw >= MIDDLE[0]) & (found.raw <= MIDDLE[1])
    inner, outer = _error_of(found, within), _error_of(found, ~within)
    less = "Algorithm 1 has the lower error at all times: part of the rounds beyond 300"
    return (
        at_least("raw_outside", "raw scores are worse calibrated outside [0.4, 0.6]", outer, inner),
        _of_draws(at_least, "plain_lower", less, [found.lower(row) for row in found.plain], 0.95),
        _of_draws(
            at_most, "plain_worse", "its squared loss comes within 0.01 of raw",
            _worse(found, found.plain), 0.01,
        ),
    )  # fmt: skip


def _of_draws(
    judge: Judge, key: str, said: str, values: Sequence[float], bar: float, source: str = "paper"
) -> Claim:
    """Return a claim about the mean over draws, and the seeds whose draws alone miss the bar."""
    alone = [judge(key, said, value, bar, source).holds for value in values]
    misses = tuple(seed for seed, holds in enumerate(alone) if not holds)
    return replace(judge(key, said, float(np.mean(values)), bar, source), misses=misses)


def _worse(found: Diagnosis, rows: Reals) -> list[float]:
    """Return what the draws of each seed add to the squared loss of raw."""
    return [found.loss(row) - found.loss(found.raw) for row in rows]


def _error_of(found: Diagnosis, part: Mask) -> float:
    """Return the calibration error of raw forecasts in some rounds."""
    errors = diagnosis.running_error(found.raw[part], found.outcomes[part])
    return float(errors[-1]) if len(errors) else 0.0


def _ours(found: Diagnosis) -> tuple[Claim, ...]:
    third = found.error(found.raw) / 3.0
    errors = [found.error(row) for row in found.drawn]
    lower = [found.lower(row) for row in found.drawn]
    worse = _worse(found, found.drawn)
    less = "part of the rounds beyond 300 in which the default's draws have less ECE than raw"
    return (
        _of_draws(at_most, "error", "ECE of the default's draws, a third of raw", errors, third,
                  "ours"),
        _of_draws(at_least, "lower", less, lower, 0.95, "ours"),
        _of_draws(at_most, "worse", "squared loss of the draws, less that of raw", worse, 0.01,
                  "ours"),
        at_least("auc", "AUC of the learner in the second half", found.late_auc, 0.62, "ours"),
    )  # fmt: skip


def _costs(found: Diagnosis, snps: int) -> tuple[Claim, ...]:
    """Return what a pass costs, if there are as many SNPs as in the paper."""
    passing = "seconds", "CPU seconds of one pass over the paper's SNPs"
    holding = "gigabytes", "peak memory of the process in gigabytes"
    most = _peak()
    if snps < Cohort().snps or most is None:
        bars = (passing, "at most 60"), (holding, "at most 2.5")
        return tuple(unmeasured(*pair, words, "ours") for pair, words in bars)
    seconds = found.race.seconds[found.race.best]
    return at_most(*passing, seconds, 60.0, "ours"), at_most(*holding, most, 2.5, "ours")


def _peak() -> float | None:
    """Return the most memory that this process had, where the system tells."""
    try:
        import resource
    except ModuleNotFoundError:
        return None
    unit = 1e9 if sys.platform == "darwin" else 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


# Picture, tables and numbers.


def _kinds(found: Diagnosis) -> Mapping[str, Reals]:
    """Return forecasts by kind: one row a seed."""
    raw = found.raw[None, :]
    return {"raw": raw, "forecast": found.drawn, "mean": found.mean, "Algorithm 1": found.plain}


def _picture(found: Diagnosis) -> Panels:
    ends = _ends(found)
    kinds = {name: rows for name, rows in _kinds(found).items() if name != "mean"}
    losses = {name: band_of(_losses(found, rows)[:, ends]) for name, rows in kinds.items()}
    errors = {name: band_of(_errors(found, rows)[:, ends]) for name, rows in kinds.items()}
    last = {name: rows[0] for name, rows in kinds.items()}
    drawings = {
        "a": Curves("squared loss", ends + 1, losses),
        "b": Curves("calibration error (ECE)", ends + 1, errors),
        "c": prepare_reliability(last, found.outcomes, buckets=diagnosis.BUCKETS),
    }
    caption = (
        "A support vector machine, recalibrated: squared loss and calibration error over the "
        "patients so far, means over seeds, and calibration curves at the end of the first seed."
    )
    return Panels("Medical diagnosis", caption, drawings, ["abc"], (10.0, 3.6))


def _ends(found: Diagnosis) -> Words:
    """Return the rounds that the picture shows."""
    last = len(found.outcomes) - 1
    return np.unique(np.linspace(0, last, POINTS).astype(np.int64))


def _losses(found: Diagnosis, rows: Reals) -> Reals:
    """Return the mean squared loss of the first rounds, for each number of them."""
    counts = np.arange(1, len(found.outcomes) + 1)
    return np.asarray(np.cumsum((rows - found.outcomes) ** 2, axis=1) / counts)


def _errors(found: Diagnosis, rows: Reals) -> Reals:
    return np.array([diagnosis.running_error(row, found.outcomes) for row in rows])


def _learners(found: Mapping[int, Diagnosis]) -> Table:
    rows = tuple(row for order, each in found.items() for row in _raced(each, order))
    header = ("order", "penalty", "hinge loss", "AUC, second half", "ECE", "SNPs in use", "")
    return Table("Support vector machines, by the strength of the penalty", header, rows, (6,))


def _raced(found: Diagnosis, order: int) -> Iterator[tuple[str, ...]]:
    """Yield a row for each learner."""
    race, half = found.race, len(found.outcomes) // 2
    columns = race.penalties, race.hinge_losses, race.forecasts, race.in_use
    for k, (penalty, loss, forecasts, used) in enumerate(zip(*columns, strict=True)):
        yield (
            str(order),
            f"{penalty:g}",
            shown(loss),
            shown(auc(forecasts[half:], found.outcomes[half:])),
            shown(found.error(forecasts)),
            f"{used:,}",
            "chosen" if k == race.best else "",
        )


def _scores(found: Mapping[int, Diagnosis]) -> Table:
    rows = tuple(
        (
            str(order),
            name,
            shown(each.error(forecasts)),
            shown(each.loss(forecasts)),
            shown(each.lower(forecasts)) if name != "raw" else "",
        )
        for order, each in found.items()
        for name, forecasts in _kinds(each).items()
    )
    less = f"rounds beyond {diagnosis.EARLY} with less ECE than raw"
    return Table("Before and after", ("order", "", "ECE", "squared loss", less), rows, (1,))


def _rounds(found: Diagnosis) -> Mapping[str, list[float]]:
    """Return every round of the first seed."""
    kinds = {name: rows[0].tolist() for name, rows in _kinds(found).items()}
    return {"outcome": found.outcomes.tolist(), **kinds}


def _over_time(found: Diagnosis) -> Mapping[str, list[float]]:
    ends = _ends(found)
    columns: dict[str, list[float]] = {"rounds": (ends + 1).tolist()}
    for name, rows in _kinds(found).items():
        columns[f"{name} loss"] = _losses(found, rows).mean(axis=0)[ends].tolist()
        columns[f"{name} error"] = _errors(found, rows).mean(axis=0)[ends].tolist()
    return columns


def _note(found: Diagnosis, snps: int) -> str:
    race, ill = found.race, int(found.outcomes.sum())
    size = "" if snps >= Cohort().snps else f" The bars are made for {Cohort().snps:,} SNPs."
    return (
        f"{len(found.outcomes):,} subjects, {ill:,} of them ill, {snps:,} SNPs. Of "
        f"{len(race.penalties)} penalties, {race.penalties[race.best]:g} had the least progressive "
        f"hinge loss, {race.hinge_losses[race.best]:.4f}; nothing else was looked at to choose it. "
        "This is about the first order of patients, and so is the picture; claims are judged in "
        f"each. Numbers of recalibrated forecasts are means over seeds.{size}"
    )
