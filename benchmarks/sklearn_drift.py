"""A ``partial_fit`` loop through drift, beside a calibrated classifier that was fitted once.

Each data set is sorted by one feature with noise.  Both sides fit the same logistic
regression to the first thousand rows; ``CalibratedClassifierCV(method="isotonic")`` then stays
what it is, and ``OnlineCalibratedClassifier`` forecasts each batch and learns it.  What is
told is about the second half of the stream, when the feature has drifted far.

C2 is the mean squared distance of forecast and frequency over twenty buckets of equal width;
its floor is what the outcomes' own chance leaves of it if every forecast is right.
"""

from __future__ import annotations

import argparse
import pathlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.store import add_store, storing
from calibrant.core.place import buckets_of
from calibrant.datasets.loaders import DRIFTING, FROZEN, load_drifting_table
from calibrant.integrations.sklearn import OnlineCalibratedClassifier
from calibrant.metrics import binned_calibration_error, brier, calibration_error

__all__ = ["Drift", "run", "streams"]

Floats = NDArray[np.float64]

BARS = {"bank": 1 / 10, "credit_default": 1 / 4}
BUCKETS = 20
BATCH = 50


@dataclass(frozen=True)
class Drift:
    """What became of one stream, in its second half.

    Attributes
    ----------
    c2_frozen, c2_mean, floor
        Over twenty buckets: the frozen classifier's, ``predict_proba``'s, and what chance leaves.
    c2_draw
        Of ``sample_proba``, over exact values.
    brier_frozen, brier_mean
        Mean squared errors.
    """

    name: str
    rows: int
    c2_frozen: float
    c2_mean: float
    c2_draw: float
    floor: float
    brier_frozen: float
    brier_mean: float

    @property
    def ratio(self) -> float:
        """How much of the frozen classifier's calibration error is left."""
        return self.c2_mean / self.c2_frozen


def streams(data: pathlib.Path | None = None) -> Iterator[tuple[str, Floats, NDArray[np.int64]]]:
    """Yield name, features and labels of each data set in its order of drift."""
    for name in DRIFTING:
        features, labels = load_drifting_table(name, data=data)
        yield name, features, labels.astype(np.int64)


def run(
    data: pathlib.Path | None = None, *, method: str = "calibrant", batch: int = BATCH
) -> list[Drift]:
    """Return a result for each data set."""
    return [one(*stream, method=method, batch=batch) for stream in streams(data)]


def one(name: str, X: Floats, y: NDArray[np.int64], *, method: str, batch: int) -> Drift:
    """Return what became of one data set."""
    from sklearn.calibration import CalibratedClassifierCV

    head, rest = slice(None, FROZEN), slice(FROZEN, None)
    frozen = CalibratedClassifierCV(model(), method="isotonic").fit(X[head], y[head])
    ours = OnlineCalibratedClassifier(model(), method=method, random_state=1)
    mean, drawn = forecasts(ours.fit(X[head], y[head]), X[rest], y[rest], batch)
    still = frozen.predict_proba(X[rest])[:, 1]
    late, told = slice(len(mean) // 2, None), y[rest][len(mean) // 2 :]
    return Drift(
        name=name,
        rows=len(told),
        c2_frozen=binned_calibration_error(still[late], told, buckets=BUCKETS, power=2),
        c2_mean=binned_calibration_error(mean[late], told, buckets=BUCKETS, power=2),
        c2_draw=calibration_error(drawn[late], told, power=2),
        floor=floor(mean[late]),
        brier_frozen=brier(still[late], told),
        brier_mean=brier(mean[late], told),
    )


def model() -> Any:
    """Return the classifier that both sides calibrate."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))


def forecasts(ours: Any, X: Floats, y: NDArray[np.int64], batch: int) -> tuple[Floats, Floats]:
    """Forecast each batch, then learn it; return means and draws."""
    mean, drawn = np.empty(len(X)), np.empty(len(X))
    for start in range(0, len(X), batch):
        part = slice(start, start + batch)
        mean[part] = ours.predict_proba(X[part])[:, 1]
        drawn[part] = ours.sample_proba(X[part])[:, 1]
        ours.partial_fit(X[part], y[part])
    return mean, drawn


def floor(mean: Floats) -> float:
    """Return the expected C2 of forecasts that are all right: q (1 - q) for each bucket, by T."""
    found = buckets_of(mean, BUCKETS)
    variances = [
        float((p * (1.0 - p)).mean()) for p in (mean[found == k] for k in set(found.tolist()))
    ]
    return sum(variances) / len(mean)


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sklearn_drift", description=__doc__)
    add_store(parser)
    with storing("sklearn_drift", wanted=parser.parse_args().store):
        print("| data | rows | C2 isotonic, fitted once | C2 here | left of it | bar ", end="")
        print("| by chance | C2 of the draw | Brier |")
        print("|---|---|---|---|---|---|---|---|---|")
        for each in run():
            print(line(each))


def line(told: Drift) -> str:
    """Return a line of the table."""
    bar = f"{BARS[told.name]:.0%}" if told.name in BARS else ""
    cells = [
        told.name.replace("_", " "),
        f"{told.rows:,}",
        f"{told.c2_frozen:.5f}",
        f"{told.c2_mean:.5f}",
        f"{100 * told.ratio:.0f} %",
        bar.replace("%", " %"),
        f"{told.floor:.5f}",
        f"{told.c2_draw:.5f}",
        f"{told.brier_frozen:.4f} to {told.brier_mean:.4f}",
    ]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
