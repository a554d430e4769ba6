"""The golden numbers of the experiments: ``python tests/golden/make.py`` writes them anew.

Small runs whose every number is a pure function of its seeds: two seeds, two subroutines, no
clock and no BLAS.  Tests compare whole numbers exactly and others to 1e-9.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from calibrant.experiments import adversary, bernoulli, diabetes, passes, theory
from calibrant.experiments.experiment import Result, Setting
from calibrant.experiments.streams import free917
from calibrant.experiments.synthetic import OURS, PAPER, play_scene

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
METHODS = (OURS, PAPER)
EVERY = 10
"""Of the points over time, this many make one line."""


def setting(data: Path | None = None) -> Setting:
    return Setting(data or Path("nowhere"), seeds=2, quick=True)


def of_bernoulli() -> dict[str, Any]:
    contest = play_scene(bernoulli.SCENE, setting(), METHODS)
    return told(Result(bernoulli.claims(contest)), contest.columns(OURS), contest.columns(PAPER))


def of_adversary() -> dict[str, Any]:
    contest = play_scene(adversary.SCENE, setting(), METHODS)
    seen = {OURS: adversary.errors_if_seen(OURS)}
    result = Result(adversary.claims(contest, seen))
    return told(result, contest.columns(OURS), contest.columns(PAPER))


def of_theory() -> dict[str, Any]:
    result = theory.check_lemmas(setting()) + theory.check_horizons(setting())
    return told(result, *result.columns.values(), every=1)


def of_free917() -> dict[str, Any]:
    """The shipped forecasts, recalibrated: the fallback of the question-answering experiment."""
    found = {}
    for stream in free917(None):
        for method in METHODS:
            run = passes.pass_over(stream, method, 2)
            found[f"{stream.name} {method}"] = [run.c2, run.loss, run.mean_loss]
        found[stream.name] = [len(stream), int(stream.outcomes.sum()), passes.raw_error(stream)]
    return found


def of_diabetes() -> dict[str, Any]:
    """The medical experiment on the small file of genotypes; its SVM uses no BLAS."""
    found = diabetes.run(Setting(seeds=20, quick=True))
    claims = {name: number for name, number in found.numbers().items() if number == number}
    return {"claims": claims, "hinge losses": [list(row[:3]) for row in found.tables[0].rows]}


def told(result: Result, *tables: Any, every: int = EVERY) -> dict[str, Any]:
    """Return claims and columns as plain data."""
    columns = [{name: list(values)[::every] for name, values in each.items()} for each in tables]
    return {"claims": result.numbers(), "columns": columns}


GOLDEN: dict[str, Callable[[], dict[str, Any]]] = {
    "bernoulli": of_bernoulli,
    "adversary": of_adversary,
    "theory": of_theory,
}


def main() -> None:
    """Write all files that can be made here."""
    made = {name: make() for name, make in GOLDEN.items()}
    made |= {"free917": of_free917(), "diabetes": of_diabetes()}
    for name, numbers in made.items():
        text = json.dumps(numbers, indent=1, allow_nan=False)
        (HERE / f"{name}.json").write_text(f"{text}\n")
        print(f"{name}.json", file=sys.stderr)


if __name__ == "__main__":
    main()
