"""What runs in a peer's environment, with NumPy and the peer: ``inside.py PEER STREAM.npz``.

Each round is forecast before its outcome is learned.  What can only be fitted is fitted again after
every ``EVERY`` outcomes, on all of them.  Prints JSON: mean squared error, CPU seconds, version.
"""

import functools
import importlib.metadata
import json
import sys
import time

import numpy as np

EVERY = 1000
FEWEST = 200
"""Outcomes before the first fit; until then the raw forecast is announced."""


def river(raw, outcomes):
    """Online logistic regression on the log-odds, as River does it."""
    from river import linear_model

    model = linear_model.LogisticRegression()
    odds = np.log(raw / (1 - raw))
    said = np.empty(len(raw))
    for t, (x, y) in enumerate(zip(odds.tolist(), outcomes.tolist(), strict=True)):
        said[t] = model.predict_proba_one({"odds": x}).get(True, 0.5)
        model.learn_one({"odds": x}, bool(y))
    return said


def river_blocks(raw, outcomes):
    """The same in batches of ``EVERY``, each of which is forecast before it is learned."""
    import pandas
    from river import linear_model

    model, said = linear_model.LogisticRegression(), np.empty(len(raw))
    frame = pandas.DataFrame({"odds": np.log(raw / (1 - raw))})
    labels = pandas.Series(outcomes.astype(bool))
    for first in range(0, len(raw), EVERY):
        part = slice(first, first + EVERY)
        said[part] = model.predict_proba_many(frame[part])[True]
        model.learn_many(frame[part], labels[part])
    return said


def refitted(fit):
    """Return a peer that is fitted again now and then."""

    def peer(raw, outcomes):
        said, first, transform = np.empty(len(raw)), 0, None
        for last in [FEWEST, *range(EVERY, len(raw), EVERY), len(raw)]:
            part = raw[first:last]
            said[first:last] = part if transform is None else transform(part)
            transform, first = fit(raw[:last], outcomes[:last]), last
        return said

    return peer


def isotonic(raw, outcomes):
    """Isotonic regression of scikit-learn."""
    from sklearn.isotonic import IsotonicRegression

    return IsotonicRegression(out_of_bounds="clip", y_min=0, y_max=1).fit(raw, outcomes).predict


def platt(raw, outcomes):
    """Logistic regression of scikit-learn on the log-odds."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression().fit(np.log(raw / (1 - raw))[:, None], outcomes)
    return functools.partial(on_odds, model)


def calibrated(raw, outcomes):
    """Logistic regression of scikit-learn, calibrated on five folds by another one."""
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.linear_model import LogisticRegression

    model = CalibratedClassifierCV(LogisticRegression(), cv=5)
    return functools.partial(on_odds, model.fit(np.log(raw / (1 - raw))[:, None], outcomes))


def on_odds(model, p):
    """Return what a classifier of scikit-learn forecasts on the log-odds."""
    return model.predict_proba(np.log(p / (1 - p))[:, None])[:, 1]


def netcal_bins(raw, outcomes):
    """Histogram binning of netcal."""
    from netcal.binning import HistogramBinning

    model = HistogramBinning(bins=20)
    model.fit(raw, outcomes)
    return model.transform


def netcal_bbq(raw, outcomes):
    """Bayesian binning into quantiles of netcal."""
    from netcal.binning import BBQ

    model = BBQ()
    model.fit(raw, outcomes)
    return model.transform


def netcal_scaling(raw, outcomes):
    """Logistic calibration of netcal."""
    from netcal.scaling import LogisticCalibration

    model = LogisticCalibration()
    model.fit(raw, outcomes)
    return model.transform


FITS = {
    "sklearn_isotonic": ("scikit-learn", isotonic),
    "sklearn_platt": ("scikit-learn", platt),
    "sklearn_calibrated": ("scikit-learn", calibrated),
    "netcal_bins": ("netcal", netcal_bins),
    "netcal_bbq": ("netcal", netcal_bbq),
    "netcal_scaling": ("netcal", netcal_scaling),
}
"""What can only be fitted: the library, and what fits."""
PEERS = {"river": ("river", river)} | {
    name: (package, refitted(fit)) for name, (package, fit) in FITS.items()
}


def main(peer, stream):
    """Print what a peer came to on a stream."""
    with np.load(stream) as file:
        raw, outcomes = np.clip(file["raw"], 1e-6, 1 - 1e-6), file["outcomes"].astype(int)
    package, play = PEERS[peer]
    start = time.process_time()
    said = np.asarray(play(raw, outcomes), float)
    told = {
        "brier": float(np.mean((said - outcomes) ** 2)),
        "seconds": time.process_time() - start,
        "version": f"{package} {importlib.metadata.version(package)}",
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
