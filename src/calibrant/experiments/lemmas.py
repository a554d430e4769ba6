"""Lemmas 1 to 3 and both theorems as numbers: each side of each inequality, on real runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from calibrant import Certificate, Recalibrator
from calibrant.bounds import accuracy_paper, regret_bound, resolution_paper, swap_regret_bound
from calibrant.experiments.experiment import Claim, Result, Setting, at_least, at_most
from calibrant.losses import get_loss
from calibrant.metrics import calibration_error, proper_swap_regret
from calibrant.report.tables import Table, shown
from calibrant.simulate import Constant, Periodic, Record, play

SCENES: Final = (
    ("informed", "bernoulli"),
    ("noise", "threshold"),
    ("uniform", "greedy_calibration"),
    ("uniform", "greedy_accuracy"),
    ("uniform", "drifting"),
)
SIZE: Final = 10
ROUNDS: Final = 2_000
EPSILON: Final = 0.5
"""Of Theorem 1, for the squared loss, whose B is 2."""
LONG: Final = 20_000
MISSED: Final = 1.0 / 9.0
"""What a calibrated forecaster loses on 001001... under the absolute loss."""


@dataclass(frozen=True)
class Side:
    """Both sides of an inequality in one run."""

    statement: str
    scene: str
    left: float
    right: float

    @property
    def holds(self) -> bool:
        """Whether the left side is at most the right one, up to rounding."""
        return self.left <= self.right + 1e-12


def check_lemmas(setting: Setting) -> Result:
    """Play some games and evaluate every inequality in each."""
    setting.tell("Lemmas 1 to 3")
    sides = [side for scene in SCENES for side in _sides(*scene)]
    setting.tell("Theorems 1 and 2")
    sides += list(_first_theorem())
    missed = _second_theorem()
    table = Table(
        "Both sides of each inequality",
        ("statement", "game", "left", "right", ""),
        tuple(_row(side) for side in sides),
        (0, 1, 4),
    )
    return Result(
        claims(sides, missed), tables=(table,), columns={"theory_lemmas": _columns(sides)}
    )


def _row(side: Side) -> tuple[str, ...]:
    told = "holds" if side.holds else "fails"
    return side.statement, side.scene, shown(side.left), shown(side.right), told


def _columns(sides: list[Side]) -> dict[str, list[float | str]]:
    return {
        "statement": [side.statement for side in sides],
        "game": [side.scene for side in sides],
        "left": [side.left for side in sides],
        "right": [side.right for side in sides],
    }


def claims(sides: list[Side], missed: float) -> tuple[Claim, ...]:
    """Return one claim for each lemma and theorem."""
    said = {
        "Lemma 1": "If a set of predictions is calibrated, swaps gain little",
        "Lemma 2": "Recalibration preserves accuracy",
        "Lemma 3": "Calibration of the instances is preserved",
        "Theorem 1": "Algorithm 1 is an ε-accurate recalibrator",
    }
    told = []
    for name, text in said.items():
        mine = [side for side in sides if side.statement.startswith(name)]
        broken = sum(not side.holds for side in mine)
        key = name.lower().replace(" ", "_")
        words = f"{name}: {text}; inequalities that fail, of {len(mine)}"
        told.append(at_most(key, words, float(broken), 0.0))
    return (*told, at_least("theorem_2", SECOND, missed, MISSED - 0.03))


def _sides(forecaster: str, adversary: str) -> Iterator[Side]:
    scene = f"{forecaster}, {adversary}"
    record = _play(forecaster, adversary, "endpoints")
    for loss in ("squared", "misclassification"):
        yield _first_lemma(record, scene, loss)
    yield _first_lemma(_play(forecaster, adversary, "midpoints"), scene, "log", 1 / (2 * SIZE))
    found = record.certificate
    epsilon, B = 1.0 / SIZE, 2.0
    rate = max(found.c1_buckets - epsilon, 0.0)
    printed = accuracy_paper(rate, SIZE, epsilon, B).value
    yield Side("Lemma 2, as printed", scene, found.regret, printed)
    sharp = regret_bound(found.c1_buckets, "squared", SIZE).value
    yield Side("Lemma 2, sharpened", scene, found.regret, sharp)
    yield Side("Lemma 3, C1", scene, found.c1, found.c1_buckets)
    yield Side("Lemma 3, C2", scene, found.c2, found.c2_buckets)


def _play(forecaster: str, adversary: str, grid: str) -> Record:
    fresh = Recalibrator("foster_hart", resolution=SIZE, buckets=SIZE, grid=grid, prior=0, seed=1)
    return play(fresh, forecaster, adversary, ROUNDS, seed=1)


def _first_lemma(record: Record, scene: str, loss: str, low: float = 0.0) -> Side:
    """Return swap regret per round over the range of the grid, and what calibration allows."""
    arrays = record.forecast, record.outcomes
    gained = proper_swap_regret(*arrays, loss=loss) / len(record)
    error = calibration_error(*arrays, power=1)
    allowed = swap_regret_bound(error, loss, low=low, high=1.0 - low).value
    return Side(f"Lemma 1, {loss} loss", scene, gained, allowed)


def _first_theorem() -> Iterator[Side]:
    """Yield calibration error and regret at the paper's own N = M, after many rounds."""
    size = resolution_paper(EPSILON, "squared")
    for forecaster, adversary in SCENES[:3]:
        fresh = Recalibrator("foster_hart", resolution=size, buckets=size, prior=0, seed=1)
        found = play(fresh, forecaster, adversary, LONG, seed=1).certificate
        yield from _promised(found, f"{forecaster}, {adversary}")


def _promised(found: Certificate, scene: str) -> Iterator[Side]:
    yield Side(f"Theorem 1, C1 at ε = {EPSILON}", scene, found.c1, EPSILON / 6.0)
    yield Side(f"Theorem 1, regret at ε = {EPSILON}", scene, found.regret, EPSILON)


def _second_theorem() -> float:
    """Return what recalibrating the constant 0 loses on 001001... under the absolute loss."""
    fresh = Recalibrator("foster_hart", resolution=30, buckets=1, prior=0, seed=1)
    record = play(fresh, Constant(0.0), Periodic((0, 0, 1)), 3_000)
    own = float(get_loss("absolute")(record.outcomes, record.forecast).mean())
    return own - float(record.running_loss("raw", "absolute")[-1])


SECOND: Final = (
    "Theorem 2: no algorithm recalibrates for an improper loss; absolute loss lost to the constant "
    "0 on 001001…, 1/9 for a calibrated forecaster"
)
