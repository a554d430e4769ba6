"""Pictures: their numbers are the metrics', and their ink depends on nothing but them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from summaries import awkward, overconfident, replayed

from calibrant import metrics, plot
from calibrant.errors import InvalidInput, InvalidType, MissingExtra
from calibrant.plot import canvas, save
from calibrant.summary import Summary

pytest.importorskip("matplotlib", reason='needs the extra "plot"')
import matplotlib
import matplotlib.figure
import matplotlib.style

RAW, OUTCOMES = overconfident(400)
AFTER = np.round(RAW * 20.0) / 20.0
BOTH = {"raw": RAW, "forecast": AFTER}

ROUNDS = st.lists(st.tuples(st.integers(0, 8).map(lambda k: k / 8), st.integers(0, 1)), min_size=1)


def columns(rounds: list[tuple[float, int]]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    forecasts, outcomes = zip(*rounds, strict=True)
    return np.array(forecasts), np.array(outcomes)


@pytest.fixture(scope="module")
def summary() -> Summary:
    return replayed(*overconfident(2500))


def same(first: Any, second: Any) -> bool:
    """Whether two records of arrays and numbers hold the same."""
    pairs = [(getattr(first, n), getattr(second, n)) for n in first.__dataclass_fields__]
    return all(np.array_equal(a, b, equal_nan=True) for a, b in pairs)


# ------------------------------------------------------------------------ numbers


def test_a_reliability_diagram_holds_the_calibration_curve() -> None:
    drawn = plot.prepare_reliability(BOTH, OUTCOMES, buckets=7, confidence=0.8)
    for name, values in BOTH.items():
        expected = metrics.calibration_curve(values, OUTCOMES, buckets=7, confidence=0.8)
        assert same(drawn.curves[name], expected)


def test_without_buckets_every_distinct_forecast_is_a_point() -> None:
    curve = plot.prepare_reliability(AFTER, OUTCOMES, buckets=None).curves["forecast"]
    cells = metrics.as_cells(AFTER, OUTCOMES)
    assert curve.mean_forecast.tolist() == cells.values.tolist() == curve.upper.tolist()
    assert curve.mean_outcome.tolist() == cells.rho.tolist()
    low, high = metrics.binomial_band(cells.ones, cells.counts)
    assert (curve.band_low.tolist(), curve.band_high.tolist()) == (low.tolist(), high.tolist())
    assert curve.count.sum() == len(AFTER)


def test_circles_have_areas_proportional_to_counts_and_never_vanish() -> None:
    drawn = plot.prepare_reliability([0.1] * 98 + [0.9] * 49 + [0.5], [0, 1] * 74, buckets=None)
    areas = drawn.areas("forecast")
    assert areas[2] / areas[0] == pytest.approx(0.5)
    assert areas[1] > areas[0] / 98


def test_a_summary_gives_raw_and_drawn_forecasts(summary: Summary) -> None:
    assert dict(plot.prepare_reliability(summary).curves) == {
        name: summary.curves[name] for name in ("raw", "forecast")
    }


@given(ROUNDS, st.sampled_from(["c1", "c2", "brier"]), st.sampled_from([None, 1, 5, 20]))
def test_each_point_over_time_is_the_metric_of_the_rounds_so_far(
    rounds: list[tuple[float, int]], quantity: str, buckets: int | None
) -> None:
    forecasts, outcomes = columns(rounds)
    drawn = plot.prepare_over_time(forecasts, outcomes, quantity=quantity, buckets=buckets)
    assert drawn.rounds.tolist() == list(range(1, len(rounds) + 1))
    for end, value in zip(drawn.rounds, drawn.series["forecast"], strict=True):
        expected = measured(forecasts[:end], outcomes[:end], quantity, buckets)
        assert value == pytest.approx(expected, abs=1e-12)


def measured(
    forecasts: NDArray[np.float64], outcomes: NDArray[np.int64], quantity: str, buckets: int | None
) -> float:
    if quantity == "brier":
        return metrics.brier(forecasts, outcomes)
    power = 2.0 if quantity == "c2" else 1.0
    if buckets is None:
        return metrics.calibration_error(forecasts, outcomes, power=power)
    return metrics.binned_calibration_error(forecasts, outcomes, buckets=buckets, power=power)


def test_long_streams_are_drawn_with_few_points_that_end_at_the_end() -> None:
    drawn = plot.prepare_over_time(
        np.tile(RAW, 5), np.tile(OUTCOMES, 5), bound=1 / np.arange(1, 2001)
    )
    assert len(drawn.rounds) == 512
    assert drawn.rounds[-1] == 2000
    assert drawn.bound.tolist() == (1 / drawn.rounds).tolist()
    assert drawn.series["forecast"][-1] == pytest.approx(
        metrics.binned_calibration_error(RAW, OUTCOMES, buckets=20, power=2.0)
    )


def test_a_summarys_trace_is_drawn_as_it_is(summary: Summary) -> None:
    c2 = plot.prepare_over_time(summary)
    assert list(c2.series) == ["raw", "forecast", "mean"]
    assert c2.series["forecast"] is summary.trace.c2_forecast
    assert c2.bound is summary.trace.bound_c2
    c1 = plot.prepare_over_time(summary.trace, quantity="c1")
    assert list(c1.series) == ["forecast"]
    assert c1.bound is summary.trace.bound_c1
    assert np.isnan(plot.prepare_over_time(summary, quantity="brier").bound).all()


def test_errors_that_are_all_zero_do_not_need_a_logarithm() -> None:
    flat = plot.prepare_over_time([0.0, 0.0], [0, 0])
    assert not flat.logarithmic
    assert flat.draw().ax.get_yscale() == "linear"
    assert plot.over_time([0.5, 0.5], [0, 0]).ax.get_yscale() == "log"


def test_windows_hold_the_windowed_calibration_error() -> None:
    drawn = plot.prepare_windows(BOTH, OUTCOMES, window=90, buckets=5)
    for name, values in BOTH.items():
        expected = metrics.windowed_calibration_error(values, OUTCOMES, window=90, buckets=5)
        assert drawn.series[name].tolist() == expected.errors.tolist()
        first, last, error = drawn.worst[name]
        assert error == expected.worst
        assert (first, last) == (90 * expected.worst_block + 1, 90 * (expected.worst_block + 1))
    assert (drawn.first.tolist(), drawn.last.tolist()) == ([1, 91, 181, 271], [90, 180, 270, 360])


def test_a_summarys_windows_are_drawn_as_they_are(summary: Summary) -> None:
    drawn = plot.prepare_windows(summary)
    assert drawn.series["raw"] is summary.windows.c2_raw
    assert drawn.worst == {name: summary.windows.worst[name] for name in ("raw", "forecast")}
    again = plot.prepare_windows(Summary.from_dict(summary.to_dict()).windows)
    assert again.worst == drawn.worst


@given(st.lists(st.integers(0, 60).map(lambda k: k / 60)))
def test_a_histogram_counts_every_forecast_once(forecasts: list[float]) -> None:
    drawn = plot.prepare_histogram(np.array(forecasts), intervals=4)
    naive = [sum(j <= 4 * p < j + 1 or (j == 3 and p == 1) for p in forecasts) for j in range(4)]
    assert drawn.counts["forecast"].tolist() == naive
    assert drawn.share("forecast").sum() == pytest.approx(1.0 if forecasts else 0.0)


def test_a_summarys_histogram_shows_raw_against_drawn(summary: Summary) -> None:
    drawn = plot.prepare_histogram(summary)
    assert drawn.counts == {"raw": summary.histogram.raw, "forecast": summary.histogram.forecast}
    assert plot.prepare_histogram(summary.histogram).edges is summary.histogram.edges


@pytest.mark.parametrize("buckets", [None, 5])
def test_the_parts_of_the_brier_score_are_the_decompositions(buckets: int | None) -> None:
    drawn = plot.prepare_decomposition(BOTH, OUTCOMES, buckets=buckets)
    for name, values in BOTH.items():
        assert drawn.parts[name] == metrics.decomposition(values, OUTCOMES, buckets=buckets)
        rest = drawn.parts[name].brier - drawn.parts[name].reliability
        assert drawn.rest(name) == max(rest, 0.0)
        assert rest > -1e-15


def test_a_summarys_decomposition_is_drawn_as_it_is(summary: Summary) -> None:
    assert plot.prepare_decomposition(summary).parts == summary.decompositions


def test_buckets_average_over_the_rounds_of_each() -> None:
    drawn = plot.prepare_buckets(RAW, AFTER, OUTCOMES, buckets=4)
    for j in range(4):
        inside = np.minimum((RAW * 4).astype(int), 3) == j
        assert drawn.count[j] == inside.sum()
        assert drawn.mean_raw[j] == pytest.approx(RAW[inside].mean())
        assert drawn.mean_forecast[j] == pytest.approx(AFTER[inside].mean())
        assert drawn.rate[j] == pytest.approx(OUTCOMES[inside].mean())


def test_rows_of_a_summary_and_arrays_give_the_same_buckets() -> None:
    found = replayed(RAW, OUTCOMES)
    run_again = plot.prepare_buckets(found)
    expected = metrics.calibration_curve(RAW, OUTCOMES, buckets=20)
    assert run_again.count.tolist() == expected.count.tolist()
    np.testing.assert_allclose(run_again.band_low, expected.band_low, atol=1e-12)
    np.testing.assert_allclose(run_again.band_high, expected.band_high, atol=1e-12)
    assert plot.prepare_buckets(found.buckets).rate.tolist() == run_again.rate.tolist()


# ---------------------------------------------------------------------------- ink

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "reliability": lambda **k: plot.reliability(BOTH, OUTCOMES, **k),
    "exact reliability": lambda **k: plot.reliability(AFTER, OUTCOMES, buckets=None, **k),
    "over time": lambda **k: plot.over_time(BOTH, OUTCOMES, bound=np.full(400, 0.1), **k),
    "brier": lambda **k: plot.over_time(BOTH, OUTCOMES, quantity="brier", **k),
    "windows": lambda **k: plot.windows(BOTH, OUTCOMES, window=50, **k),
    "histogram": lambda **k: plot.histogram(BOTH, **k),
    "decomposition": lambda **k: plot.decomposition(BOTH, OUTCOMES, **k),
    "buckets": lambda **k: plot.buckets(RAW, AFTER, OUTCOMES, **k),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_plot_draws_on_a_figure_of_its_own_or_on_given_axes(name: str) -> None:
    own = FUNCTIONS[name]()
    assert own.figure.axes[0] is own.ax
    assert canvas.png(own.figure, 40).startswith(b"\x89PNG")
    given_axes = matplotlib.figure.Figure(layout="constrained").subplots(1, 2)[1]
    theirs = FUNCTIONS[name](ax=given_axes)
    assert theirs.ax is given_axes
    assert theirs.figure is given_axes.figure
    assert canvas.svg(theirs.figure).startswith("<?xml")


def test_a_notebook_shows_the_picture_once_it_is_drawn() -> None:
    drawn = plot.reliability([0.2, 0.7, 0.7], [0, 1, 1])
    assert "<svg" in str(drawn._repr_svg_())
    assert plot.prepare_reliability([0.2, 0.7, 0.7], [0, 1, 1])._repr_svg_() is None


def test_given_axes_keep_their_own_fonts_and_frame() -> None:
    ax = matplotlib.figure.Figure().subplots()
    ax.xaxis.label.set_fontsize(23.0)
    plot.histogram(RAW, ax=ax)
    assert ax.xaxis.label.get_fontsize() == 23.0
    assert ax.spines["top"].get_visible()


def test_a_plot_is_as_large_as_asked() -> None:
    drawn = plot.prepare_histogram(RAW).draw(size=(3.3, 2.0))
    assert drawn.figure.get_size_inches().tolist() == [3.3, 2.0]


@pytest.mark.parametrize("name", awkward())
def test_every_picture_of_an_awkward_summary_can_be_drawn(name: str) -> None:
    for drawing in plot.prepare_all(awkward()[name]).values():
        low, high = drawing.draw().ax.get_ylim()
        assert np.isfinite([low, high]).all()
        assert low < high


@pytest.mark.parametrize("name", ["one round", "always zero"])
def test_pictures_of_an_awkward_summary_become_images(name: str) -> None:
    for drawing in plot.prepare_all(awkward()[name]).values():
        assert "<svg" in canvas.svg(drawing.draw().figure)


def test_arrays_without_rounds_can_be_drawn() -> None:
    for drawing in (
        plot.prepare_reliability([], []),
        plot.prepare_reliability([], [], buckets=None),
        plot.prepare_over_time([], []),
        plot.prepare_over_time([], [], quantity="brier", buckets=None),
        plot.prepare_windows([], []),
        plot.prepare_histogram([]),
        plot.prepare_decomposition([], []),
        plot.prepare_buckets([], [], []),
    ):
        assert drawing.draw().figure.axes


def test_numbers_have_no_figure_before_they_are_drawn() -> None:
    with pytest.raises(InvalidInput, match=r"^Spread must be drawn first: call draw\(\)$"):
        _ = plot.prepare_histogram(RAW).figure


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(InvalidType, match=r"^ax must be matplotlib axes, got 3$"):
        plot.histogram(RAW, ax=3)
    with pytest.raises(InvalidInput, match=r"^series must be at least one, got \{\}$"):
        plot.histogram({})
    with pytest.raises(InvalidInput, match=r"^bound must be 400 numbers, got shape \(2,\)$"):
        plot.over_time(RAW, OUTCOMES, bound=[0.1, 0.2])
    with pytest.raises(
        InvalidInput, match=r"^quantity must be one of 'c2', 'c1', 'brier', got 'x'$"
    ):
        plot.over_time(RAW, OUTCOMES, quantity="x")
    many = np.arange(5000) / 5000
    told = r"^forecasts must be at most 4096 different values without buckets, got 5000$"
    with pytest.raises(InvalidInput, match=told):
        plot.over_time(many, many > 0.5, buckets=None)


def test_a_bound_above_one_is_told_but_not_drawn() -> None:
    drawn = plot.over_time(RAW, OUTCOMES, bound=np.full(400, 1.5))
    texts = [text.get_text() for text in drawn.ax.get_legend().get_texts()]
    assert texts == ["recalibrated, drawn", "theorem's bound (still above 1)"]
    assert len(drawn.ax.get_lines()) == 1


def test_the_legend_of_windows_tells_the_worst() -> None:
    drawn = plot.windows({"raw": [0.5] * 8}, [0, 1, 0, 1, 1, 1, 1, 1], window=4)
    assert [t.get_text() for t in drawn.ax.get_legend().get_texts()] == ["raw, worst 0.25"]


def test_pictures_do_not_depend_on_ids_that_are_drawn_at_random(summary: Summary) -> None:
    drawing = plot.prepare_reliability(summary)
    first, second = (canvas.svg(drawing.draw().figure) for _ in range(2))
    assert first != second
    assert save.settled(first) == save.settled(second)


STYLES: dict[str, Any] = {
    "dark": "dark_background",
    "seaborn": ["seaborn-v0_8", "seaborn-v0_8-poster"],
    "serif": {"font.family": ["DejaVu Serif"], "savefig.bbox": "tight", "axes.grid": True},
}


@pytest.fixture(scope="module")
def plainly(summary: Summary) -> dict[str, str]:
    return rendered(summary)


def rendered(summary: Summary) -> dict[str, str]:
    drawings = {
        "reliability": plot.prepare_reliability(summary),
        "over time": plot.prepare_over_time(summary),
        "windows": plot.prepare_windows(summary),
        "decomposition": plot.prepare_decomposition(summary),
    }
    return {n: save.settled(canvas.svg(d.draw().figure)) for n, d in drawings.items()}


@pytest.mark.parametrize("style", STYLES)
def test_a_callers_style_sheet_does_not_reach_our_own_figures(
    style: str, summary: Summary, plainly: dict[str, str]
) -> None:
    with matplotlib.style.context(STYLES[style]):
        assert rendered(summary) == plainly


def test_settings_are_left_as_they_were(summary: Summary) -> None:
    before = dict(matplotlib.rcParams)
    rendered(summary)
    assert dict(matplotlib.rcParams) == before


def test_threads_draw_what_one_alone_draws(summary: Summary, plainly: dict[str, str]) -> None:
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda _: rendered(summary), range(2))) == [plainly] * 2


ALONE = """
import sys
import calibrant.plot as plot, calibrant.report
numbers = plot.prepare_reliability([0.1, 0.9], [0, 1])
assert not {"matplotlib", "jinja2"} & set(sys.modules)
numbers.draw()
assert "matplotlib.pyplot" not in sys.modules
"""


def test_matplotlib_is_loaded_late_and_pyplot_never() -> None:
    paths = [str(Path(plot.__file__).parents[2])]
    code = f"import sys; sys.path[:0] = {paths!r}\n{ALONE}"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_missing_matplotlib_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtra) as caught:
        plot.histogram(RAW)
    told = (
        "plots need matplotlib, which is not installed: "
        'pip install ".[plot]" in a clone of calibrant'
    )
    assert str(caught.value) == told


# ------------------------------------------------------------------------- colour


def linear(colour: str) -> NDArray[np.float64]:
    channels = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def luminance(colour: str) -> float:
    return float(linear(colour) @ [0.2126, 0.7152, 0.0722])


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def lab(light: NDArray[np.float64]) -> NDArray[np.float64]:
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    x, y, z = np.cbrt(to_xyz @ np.clip(light, 1e-4, 1) / [0.9505, 1.0, 1.089])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


# What is left of linear red, green and blue: Machado, Oliveira and Fernandes (2009).
EYES = {
    "all cones": np.eye(3),
    "no red cones": [
        [0.1523, 1.0526, -0.2049],
        [0.1145, 0.7863, 0.0992],
        [-0.0039, -0.0481, 1.052],
    ],
    "no green cones": [
        [0.3673, 0.8606, -0.228],
        [0.2801, 0.6725, 0.0474],
        [-0.0118, 0.0429, 0.9689],
    ],
}


@pytest.mark.parametrize("page", [canvas.LIGHT, canvas.DARK], ids=["light", "dark"])
def test_everything_stands_out_from_the_page(page: dict[str, str]) -> None:
    for role in set(page) - {"paper", "rule"}:
        least = 4.5 if role in ("ink", "soft", "forecast") else 3.0
        assert contrast(page[role], page["paper"]) >= least, role


@pytest.mark.parametrize("page", [canvas.LIGHT, canvas.DARK], ids=["light", "dark"])
@pytest.mark.parametrize("eye", EYES)
def test_the_three_series_look_different_to_every_eye(page: dict[str, str], eye: str) -> None:
    seen = [lab(EYES[eye] @ linear(page[name])) for name in ("raw", "forecast", "mean")]
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert np.linalg.norm(seen[one] - seen[other]) > 25


def test_raw_and_recalibrated_differ_in_greyscale_and_all_series_in_shape() -> None:
    light = canvas.LIGHT
    assert abs(lab(linear(light["raw"]))[0] - lab(linear(light["forecast"]))[0]) > 20
    given_looks = plot.looks(["raw", "forecast", "mean", "a", "b", "c"]).values()
    assert len({(look.marker, look.filled, look.dash) for look in given_looks}) == 6


def test_light_and_dark_know_the_same_roles_and_no_colour_twice() -> None:
    assert list(canvas.LIGHT) == list(canvas.DARK)
    assert len(set(canvas.LIGHT.values())) == len(canvas.LIGHT)


@settings(max_examples=20)
@given(st.lists(st.text(min_size=1), unique=True, min_size=1, max_size=12))
def test_every_series_gets_a_look_and_keeps_its_name(names: list[str]) -> None:
    found = plot.looks(names)
    assert list(found) == names
    assert all(found[n].label == n for n in names if n not in ("raw", "forecast", "mean"))
