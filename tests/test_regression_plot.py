"""Pictures of forecasts of numbers: the numbers, and one look at the ink."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant import plot
from calibrant.errors import InvalidInput
from calibrant.regression import Distributions

pytest.importorskip("matplotlib", reason='needs the extra "plot"')
import matplotlib.figure

RNG = np.random.default_rng(1)
OUTCOMES = RNG.normal(size=400)
RIGHT = Distributions.normal(np.zeros(400), np.ones(400))
NARROW = Distributions.normal(np.zeros(400), np.full(400, 0.4))
SERIES = {"raw": NARROW, "forecast": RIGHT}


def inked(drawn):
    drawn.figure.canvas.draw()
    return [text.get_text() for text in drawn.ax.get_legend().get_texts()]


def test_a_pit_histogram_is_a_density_with_a_line_at_one() -> None:
    drawn = plot.pit_histogram(SERIES, OUTCOMES, intervals=5)
    for name in SERIES:
        assert drawn.histograms[name].counts.sum() == 400
        assert drawn.density(name).mean() == pytest.approx(1.0)
    assert drawn.density("raw")[0] > 1.5 > drawn.density("forecast")[0]
    assert inked(drawn) == ["raw", "recalibrated, drawn"]
    assert drawn.ax.get_ylim()[1] > drawn.density("raw").max()
    lines = [line for line in drawn.ax.lines if set(line.get_ydata()) == {1.0}]
    assert len(lines) == 1


def test_quantile_reliability_is_coverage_against_level() -> None:
    drawn = plot.quantile_reliability(SERIES, OUTCOMES, 9)
    assert drawn.levels.tolist() == pytest.approx([k / 10 for k in range(1, 10)])
    assert drawn.coverage["raw"][0] > 0.2
    assert drawn.coverage["forecast"] == pytest.approx(drawn.levels, abs=0.06)
    assert inked(drawn) == ["raw", "recalibrated, drawn"]
    table = plot.prepare_quantile_reliability(RIGHT.quantile([0.5]), OUTCOMES, [0.5])
    assert table.coverage["forecast"][0] == pytest.approx((OUTCOMES <= 0.0).mean())


def test_columns_and_levels_must_agree() -> None:
    with pytest.raises(InvalidInput, match="forecast must have 2 columns, a level each, got 1"):
        plot.prepare_quantile_reliability(np.zeros((400, 1)), OUTCOMES, [0.1, 0.2])


def test_coverage_over_time_starts_with_the_first_round_and_ends_with_all() -> None:
    covered = (np.abs(OUTCOMES) < 1.6).astype(int)
    drawn = plot.coverage_over_time({"aci": covered, "none": 1 - covered}, 0.9)
    assert drawn.rounds[[0, -1]].tolist() == [1, 400]
    assert drawn.series["aci"][-1] == pytest.approx(covered.mean())
    assert inked(drawn) == ["aci", "none", "target"]
    assert drawn.ax.get_ylabel() == "coverage"
    low, high = drawn.ax.get_ylim()
    assert low == 0.0
    assert high >= 0.9


def test_coverage_of_windows_shows_complete_blocks() -> None:
    drawn = plot.coverage_over_time([1, 0, 1, 1, 1], 0.9, window=2)
    assert drawn.rounds.tolist() == [2, 4]
    assert drawn.series["forecast"].tolist() == [0.5, 1.0]
    assert inked(drawn) == ["recalibrated, drawn", "target"]
    assert drawn.ax.get_ylabel() == "coverage of 2 rounds"


def test_many_rounds_are_thinned_out() -> None:
    drawn = plot.prepare_coverage_over_time(np.ones(5_000), 0.5)
    assert len(drawn.rounds) == 512
    assert drawn.rounds[-1] == 5_000
    nothing = plot.prepare_coverage_over_time([], 0.5)
    assert nothing.draw().rounds.tolist() == []


def test_pictures_fit_into_given_axes() -> None:
    given = matplotlib.figure.Figure().subplots(1, 3)
    assert plot.pit_histogram(RIGHT, OUTCOMES, ax=given[0]).ax is given[0]
    assert plot.quantile_reliability(RIGHT, OUTCOMES, 3, ax=given[1]).ax is given[1]
    assert plot.coverage_over_time([1, 0], 0.5, ax=given[2]).ax is given[2]


def test_bad_targets_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"target must be a number in \[0, 1\], got 2"):
        plot.prepare_coverage_over_time([1, 0], 2)
    with pytest.raises(InvalidInput, match="arrays must be of one length"):
        plot.prepare_coverage_over_time({"a": [1, 0], "b": [1]}, 0.5)
