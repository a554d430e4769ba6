"""What is seen in each group or class, followed in constant memory."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_summary import binned

from calibrant import metrics
from calibrant.summary import Breakdown, Summary, summarise_collected
from calibrant.summary.collector import SERIES

pytestmark = pytest.mark.base

rows = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c d"]), st.floats(0, 1), st.floats(0, 1), st.integers(0, 1)
    ),
    max_size=40,
)


def followed(given: list[tuple[str, float, float, int]], cuts: int = 1) -> Breakdown:
    made = Breakdown("group")
    for part in np.array_split(np.arange(len(given)), cuts):
        names, raw, forecast, outcomes = (
            zip(*(given[t] for t in part), strict=True) if len(part) else ((), (), (), ())
        )
        made.add(made.places(names), raw, forecast, outcomes)
    return made


@settings(max_examples=60)
@given(rows)
def test_each_part_is_measured_as_if_it_were_alone(given: list) -> None:
    made = followed(given)
    assert made.names == tuple(dict.fromkeys(name for name, *_ in given))
    for part in made.parts():
        own = [row[1:] for row in given if row[0] == part.name]
        raw, now, outcomes = ([row[k] for row in own] for k in range(3))
        assert part.rounds == len(own)
        assert part.rate == pytest.approx(sum(outcomes) / len(own))
        assert part.mean_raw == pytest.approx(math.fsum(raw) / len(own), abs=1e-8)
        assert part.mean_forecast == pytest.approx(math.fsum(now) / len(own), abs=1e-8)
        assert part.c1_raw == pytest.approx(binned(raw, outcomes, 1), abs=1e-8)
        assert part.c2_raw == pytest.approx(binned(raw, outcomes, 2), abs=1e-8)
        assert part.c1_forecast == pytest.approx(binned(now, outcomes, 1), abs=1e-8)
        assert part.c2_forecast == pytest.approx(binned(now, outcomes, 2), abs=1e-8)


@settings(max_examples=30)
@given(rows, st.integers(1, 5))
def test_cuts_and_stored_words_change_nothing(given: list, cuts: int) -> None:
    whole, cut = followed(given), followed(given, cuts)
    assert whole.words().tolist() == cut.words().tolist()
    again = Breakdown.from_words("group", cut.names, cut.words())
    assert again.parts() == whole.parts()
    more = [("new", 0.5, 0.5, 1), ("a", 0.1, 0.2, 0)]
    for made in (again, whole):
        names, *columns = zip(*more, strict=True)
        made.add(made.places(names), *columns)
    assert again.parts() == whole.parts()


def test_curves_are_those_of_the_metrics() -> None:
    generator = np.random.default_rng(3)
    raw, now, outcomes = generator.random(200), generator.random(200), generator.integers(0, 2, 200)
    made = Breakdown("class")
    made.add(made.places(["one"] * 200), raw, now, outcomes)
    for series, forecasts in zip(range(SERIES), (raw, now), strict=True):
        own = made.curve("one", series)
        told = metrics.calibration_curve(forecasts, outcomes, buckets=20)
        assert own.count.tolist() == told.count.tolist()
        assert own.lower.tolist() == told.lower.tolist()
        assert own.mean_forecast == pytest.approx(told.mean_forecast, abs=1e-8, nan_ok=True)
        assert own.mean_outcome == pytest.approx(told.mean_outcome, nan_ok=True)
        assert own.band_low == pytest.approx(told.band_low, nan_ok=True)
        assert own.band_high == pytest.approx(told.band_high, nan_ok=True)


def test_the_largest_parts_are_kept_in_order_of_appearance() -> None:
    made = followed([(name, 0.5, 0.5, 1) for name in "abbcccd"])
    assert made.largest(2) == ["b", "c"]
    assert made.largest(9) == ["a", "b", "c", "d"]


def test_a_part_without_rounds_has_no_numbers() -> None:
    made = Breakdown("group")
    made.places(["declared"])
    (part,) = made.parts()
    assert (part.rounds, part.bound) == (0, None)
    assert math.isnan(part.rate)
    assert math.isnan(part.c2_raw)


def test_a_summary_with_parts_survives_json() -> None:
    from calibrant.groups import GroupRecalibrator
    from calibrant.summary import collector_for

    rec = GroupRecalibrator(seed=1)
    raw, outcomes = np.linspace(0, 1, 40), [0, 1] * 20
    names = ["a", "b"] * 20
    run = rec.replay(raw, outcomes, groups=names)
    collector = collector_for(rec)
    collector.update(raw, run.forecast, np.minimum(run.mean, 1.0), outcomes)
    made = Breakdown("group")
    made.add(made.places(names), raw, run.forecast, outcomes)
    made.places(["empty"])
    rec.forecast(0.5, groups="empty")
    summary = summarise_collected(collector, rec, seed=1, breakdown=made)
    again = Summary.from_dict(summary.to_dict())
    assert again.summary == summary.summary
    assert again.parts is not None
    assert summary.parts is not None
    assert again.parts.rows[0] == summary.parts.rows[0]
    assert again.to_dict() == summary.to_dict()
    told = {row["name"]: row for row in summary["breakdown"]["rows"]}
    own = {row.group: row for row in rec.certificate().groups}
    assert told["a"]["c2_forecast"] == own["a"].c2
    assert told["a"]["bound"] == own["a"].sure
    assert told["empty"]["bound"] is None
    assert summary["method"] == "groups"
    assert summary.settings["form"] == "l2"
    assert np.isnan(summary.trace.bound_c2).all()
