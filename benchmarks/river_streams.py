"""River's bundled streams, three models each, with and without calibrant.

``progressive_val_score`` throughout: every row is forecast before it is learned.  C2 is the
mean squared distance of forecast and frequency over twenty buckets; with several classes that
of the class the model puts first.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks.store import add_store, storing
from calibrant.integrations.river import Brier, CalibrationError, RecalibratedClassifier

__all__ = ["Line", "run"]


@dataclass(frozen=True)
class Line:
    """One model on one stream: log loss, Brier score and C2, bare and wrapped.

    The Brier score is that of the first class's probability where there are several.
    """

    stream: str
    model: str
    bare: tuple[float, float, float]
    wrapped: tuple[float, float, float]


class First:
    """Turn a metric of a probability into one of the class that came first."""

    def update(self, y_true: Any, y_pred: Any, w: float = 1.0) -> None:
        top = max(y_pred, key=y_pred.get)
        super().update(y_true == top, y_pred[top], w)  # type: ignore[misc]


class FirstBrier(First, Brier):
    """Mean squared error of the first class's probability."""


class FirstError(First, CalibrationError):
    """Calibration error of the first class's probability."""


def run(seed: int = 1) -> Iterator[Line]:
    """Yield a line for every stream and model."""
    from river import datasets, evaluate

    for stream in (datasets.Phishing(), datasets.Bananas(), datasets.ImageSegments()):
        several = isinstance(stream, datasets.ImageSegments)
        for name, model in models(several):
            both = model.clone(), RecalibratedClassifier(model.clone(), seed=seed)
            scores = []
            for each in both:
                metric = measures(several)
                evaluate.progressive_val_score(stream, each, metric)
                scores.append(tuple(metric.get()))
            yield Line(type(stream).__name__, name, *scores)


def models(several: bool) -> Iterator[tuple[str, Any]]:
    """Yield three kinds of models."""
    from river import linear_model, multiclass, naive_bayes, preprocessing, tree

    logistic = linear_model.LogisticRegression()
    last = multiclass.OneVsRestClassifier(logistic) if several else logistic
    yield "logistic regression", preprocessing.StandardScaler() | last
    yield "naive Bayes", naive_bayes.GaussianNB()
    yield "Hoeffding tree", tree.HoeffdingTreeClassifier()


def measures(several: bool) -> Any:
    """Return log loss, Brier score and C2."""
    from river import metrics

    if several:
        return metrics.CrossEntropy() + FirstBrier() + FirstError(power=2.0)
    return metrics.LogLoss() + Brier() + CalibrationError(power=2.0)


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.river_streams", description=__doc__)
    add_store(parser)
    with storing("river_streams", wanted=parser.parse_args().store):
        print("| stream | model | log loss | Brier | C2 |")
        print("|---|---|---|---|---|")
        for line in run():
            pairs = zip(line.bare, line.wrapped, (3, 4, 5), strict=True)
            told = " | ".join(f"{bare:.{n}f} to {wrapped:.{n}f}" for bare, wrapped, n in pairs)
            print(f"| {line.stream} | {line.model} | {told} |", flush=True)


if __name__ == "__main__":
    main()
