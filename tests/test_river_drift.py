"""The monitor as a River drift detector."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest

pytest.importorskip("river", reason='needs the extra "river"')

from river import base

from calibrant.errors import InvalidInput, InvalidType
from calibrant.integrations.river import CalibrationDrift
from calibrant.monitor import Monitor


def chances(rounds: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    forecasts = rng.integers(0, 21, rounds) / 20
    return forecasts, rng.random(rounds) < forecasts


def test_it_is_a_detector_with_warnings() -> None:
    detector = CalibrationDrift(run_length=1e4, alpha=0.05, buckets=5, lag=2)
    assert isinstance(detector, base.DriftAndWarningDetector)
    assert not detector.drift_detected
    assert not detector.warning_detected
    again = detector.clone()
    assert again._get_params() == detector._get_params()
    assert "run_length=10000." in repr(detector)


@pytest.mark.parametrize("lag", [1, 3])
def test_residuals_tell_the_monitor_all_it_needs(lag) -> None:
    forecasts, outcomes = chances(500, 1)
    detector, monitor = CalibrationDrift(lag=lag), Monitor(lag=lag)
    for p, y in zip(forecasts.tolist(), outcomes.tolist(), strict=True):
        detector.update(y - p)
        # Certain and right: such rounds count in the highest bucket.
        sure = (y - p) == 0.0
        monitor.update(1.0 if sure else p, 1 if sure else y)
    for one, other in zip(detector.monitor.table(), monitor.table(), strict=True):
        assert (one.rounds, one.frequency) == (other.rounds, other.frequency) or one.rounds == 0
    assert detector.monitor.evidence.now == pytest.approx(monitor.evidence.now, rel=1e-6)


def test_forecasts_on_a_bucket_edge_keep_their_bucket_whatever_the_outcome() -> None:
    detector = CalibrationDrift(buckets=20)
    for k in range(1, 20):
        detector.update(1 - k / 20)
        detector.update(0 - k / 20)
    assert [row.rounds for row in detector.monitor.table()] == [0] + [2] * 19


def test_drift_is_told_once_and_then_it_begins_anew() -> None:
    rng = np.random.default_rng(2)
    detector = CalibrationDrift(run_length=1e4)
    rang = []
    for t in range(4000):
        detector.update(float(rng.random() < (0.2 if t < 2000 else 0.5)) - 0.2)
        if detector.drift_detected:
            rang.append(t)
            assert abs(detector.monitor.since - (2000 if len(rang) == 1 else rang[-2])) < 60
    assert 2000 <= rang[0] < 2100
    assert all(later > earlier + 1 for earlier, later in itertools.pairwise(rang))


def test_a_warning_says_that_forecasts_cannot_all_have_been_right() -> None:
    detector = CalibrationDrift(run_length=1e50, alpha=0.01)
    for t in range(60):
        detector.update(t % 2 - 0.9)
    assert detector.warning_detected
    assert not detector.drift_detected
    again = pickle.loads(pickle.dumps(detector))
    assert again.warning_detected
    assert again.monitor == detector.monitor


@pytest.mark.parametrize("x", [1.5, -1.1, float("nan"), float("inf")])
def test_what_is_no_residual_is_refused(x) -> None:
    detector = CalibrationDrift()
    with pytest.raises(InvalidInput, match="x must be an outcome minus its probability"):
        detector.update(x)
    with pytest.raises(InvalidType, match="x must be an outcome minus its probability"):
        detector.update("0.5")
    assert detector.monitor.rounds == 0
