"""Weather ensembles: what recalibration and intervals do to real forecasts of rain."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.datasets import load_ensemble
from calibrant.regression import (
    ConformalInterval,
    Distributions,
    QuantileRecalibrator,
    interval_methods,
    metrics,
)


@pytest.fixture(scope="module")
def frankfurt():
    return load_ensemble("frankfurt")


@pytest.fixture(scope="module")
def monsoon():
    return {lead: load_ensemble("monsoon", lead=lead) for lead in range(1, 11)}


def dressed(members):
    """Ensembles with one dry member more, straight between and above members."""
    count = members.shape[1] + 2
    values = np.column_stack([np.zeros((len(members), 2)), np.sort(members, axis=1)])
    return Distributions.from_quantiles(np.arange(count) / count, values)


def pit_error(forecasts, outcomes):
    return metrics.pit_histogram(forecasts, outcomes, intervals=10).error


@pytest.mark.slow
@pytest.mark.parametrize("method", ["mixed", "pit", "tracker"])
def test_frankfurt_becomes_calibrated_and_no_less_sharp(frankfurt, method) -> None:
    members, outcomes = frankfurt
    raw = dressed(members)
    rec = QuantileRecalibrator(method, levels=9, seed=1)
    run = rec.replay(raw, outcomes)
    assert len(outcomes) == 3_617
    assert pit_error(raw, outcomes) > 0.25
    assert pit_error(run.forecast, outcomes) < 0.02
    assert metrics.crps(run.forecast, outcomes) < metrics.crps(raw, outcomes)
    assert rec.certificate().holds
    assert rec.certificate().error < 0.03


def test_the_tracker_keeps_its_promise_on_every_lead_of_the_monsoon(monsoon) -> None:
    for members, outcomes in monsoon.values():
        raw = dressed(members)
        rec = QuantileRecalibrator("tracker", levels=9, seed=1)
        run = rec.replay(raw, outcomes)
        assert len(outcomes) == 517
        assert rec.certificate().holds
        assert pit_error(run.forecast, outcomes) < 0.55 * pit_error(raw, outcomes)
        assert metrics.crps(run.forecast, outcomes) < 1.02 * metrics.crps(raw, outcomes)


@pytest.mark.slow
def test_experts_reach_beyond_the_ensemble_on_every_lead_of_the_monsoon(monsoon) -> None:
    for members, outcomes in monsoon.values():
        raw = dressed(members)
        rec = QuantileRecalibrator("mixed", levels=9, seed=1)
        run = rec.replay(raw, outcomes)
        assert np.isfinite(run.quantiles).all()
        assert metrics.crps(run.forecast, outcomes) < metrics.crps(raw, outcomes)
        assert (outcomes <= run.quantiles[:, -1]).mean() > 0.85


def test_outcomes_outside_the_ensemble_stay_outside_what_is_recalibrated(monsoon) -> None:
    # A CDF that is moved up or down still ends where the raw one does.
    members, outcomes = monsoon[1]
    raw = Distributions.from_samples(members)
    above = outcomes > members.max(axis=1)
    assert above.mean() > 0.2
    run = QuantileRecalibrator("pit", levels=9, seed=1).replay(raw, outcomes)
    assert (run.quantiles[:, -1] <= members.max(axis=1)).all()
    tracked = QuantileRecalibrator("tracker", levels=9, seed=1).replay(raw, outcomes)
    assert np.isinf(tracked.quantiles[:, -1]).mean() > 0.2


@pytest.mark.slow
@pytest.mark.parametrize("method", interval_methods.names())
def test_intervals_around_the_ensemble_mean_cover_nine_days_in_ten(frankfurt, method) -> None:
    members, outcomes = frankfurt
    band = ConformalInterval(method, coverage=0.9, seed=1)
    run = band.replay(members.mean(axis=1), outcomes)
    record = band.certificate()
    assert record.coverage == pytest.approx(0.9, abs=0.015)
    assert record.holds in (True, None)
    late = metrics.windowed_coverage(run.covered, window=100)
    # A mean of levels follows a change more slowly.
    assert late.min() > (0.75 if method == "dtaci" else 0.78)
