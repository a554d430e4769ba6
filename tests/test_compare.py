"""Comparisons: every method is there, none looks ahead, and all are scored alike."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import registered
from hypothesis import given
from hypothesis import strategies as st
from summaries import overconfident

from calibrant import Calibrant, Recalibrator, metrics
from calibrant.compare import (
    KEYS,
    KINDS,
    Comparison,
    Method,
    Played,
    Row,
    compare,
    comparison,
    methods_by_name,
    render,
    run,
    write,
)
from calibrant.compare import method as score
from calibrant.compare import methods as own
from calibrant.compare.comparison import NOTHING, headline
from calibrant.compare.method import Stream, duel
from calibrant.errors import CorruptState, InvalidInput, MissingExtra, UnknownName
from calibrant.recalibrate.rows import SHORT
from calibrant.registry import calibrators, transforms
from calibrant.simulate import play

pytest.importorskip("river", reason="plays River's methods")
pytest.importorskip("sklearn", reason="plays scikit-learn's methods")

RAW, OUTCOMES = overconfident(120)
METHODS = methods_by_name()
QUICK = ["bucket_means", "foster_hart", "calibrant"]

SLOW = {"defensive", *filter(registered.on_all_cells, calibrators.names())}


def each(names: Iterable[str]) -> pytest.MarkDecorator:
    marks = {name: [pytest.mark.slow] if name in SLOW else [] for name in names}
    return pytest.mark.parametrize("name", [pytest.param(n, marks=m) for n, m in marks.items()])


each_method = each(METHODS)


@pytest.fixture(autouse=True)
def frequent_refits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own, "EVERY", 20)


@pytest.fixture(scope="module")
def made() -> Comparison:
    return compare(RAW, OUTCOMES, methods=QUICK, adversarial_rounds=50, seed=3, title="<games>")


def stream_of(**changes: Any) -> Stream:
    return Stream.of(**{"raw": RAW, "outcomes": OUTCOMES, **changes})


# ---------------------------------------------------------------------------- who plays


def test_every_method_of_the_registries_and_of_the_peers_takes_part() -> None:
    peers = {"river_sgd", "river_newton"}
    peers |= {f"sklearn_{shape}{last}" for shape in ("platt", "isotonic") for last in ("", "_5000")}
    assert set(METHODS) == {
        "raw",
        "calibrant",
        *calibrators.names(),
        *transforms.names(),
        *peers,
    }


def test_no_name_stands_for_two_methods() -> None:
    assert not set(calibrators.names()) & set(transforms.names())


@each_method
def test_every_method_says_what_it_is_and_belongs_to(name: str) -> None:
    method = METHODS[name]
    assert method.about.endswith(".")
    assert method.kind in KINDS


def test_the_raw_forecasts_are_always_among_those_compared(made: Comparison) -> None:
    assert [row.name for row in made.rows] == ["raw", *QUICK]


def test_methods_are_played_in_the_order_in_which_they_are_asked_for_and_once() -> None:
    names = ["identity", "raw", "running_mean", "identity"]
    rows = compare(RAW, OUTCOMES, methods=names, adversarial_rounds=0).rows
    assert [row.name for row in rows] == ["raw", "identity", "running_mean"]


def test_an_unknown_method_is_refused_and_the_known_ones_are_listed() -> None:
    with pytest.raises(UnknownName, match=r"method must be one of 'raw', 'calibrant', .*'nobody'"):
        compare(RAW, OUTCOMES, methods=["nobody"])


def chosen(monkeypatch: pytest.MonkeyPatch, missing: set[str], **options: Any) -> Any:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name in missing else found(name)
    )
    return run._chosen(options.get("methods"), options.get("peers", True), {})


def test_peers_that_are_not_installed_are_left_out_and_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    methods, absent = chosen(monkeypatch, {"river"})
    assert absent == ("river",)
    assert {m.name for m in methods} == {n for n in METHODS if not n.startswith("river")}


def test_without_peers_nothing_foreign_plays_and_nothing_is_missed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    methods, absent = chosen(monkeypatch, {"river"}, peers=False)
    assert absent == ()
    assert {method.kind for method in methods} == set(KINDS) - {"river", "scikit-learn"}


def test_a_peer_that_is_asked_for_by_name_must_be_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = "sklearn_platt needs scikit-learn, which is not installed here: pip install scikit-learn"
    with pytest.raises(MissingExtra, match=re.escape(told)):
        chosen(monkeypatch, {"sklearn"}, methods=["sklearn_platt"])


# ------------------------------------------------------------------------ looking ahead


def forecasts(name: str, stream: Stream) -> np.ndarray[Any, Any]:
    played = METHODS[name].play(stream, seed=1)
    return np.column_stack([played.mean, played.forecast])


@each_method
def test_no_forecast_depends_on_its_own_outcome_or_a_later_one(name: str) -> None:
    before = forecasts(name, stream_of())
    for t in (0, 61):
        changed = OUTCOMES.copy()
        changed[t:] = 1 - changed[t:]
        after = forecasts(name, stream_of(outcomes=changed))
        assert (before[: t + 1] == after[: t + 1]).all()


@each_method
def test_no_forecast_depends_on_an_outcome_that_is_not_known_yet(name: str) -> None:
    available = np.arange(120.0) + 30.0
    before = forecasts(name, stream_of(available=available))
    changed = OUTCOMES.copy()
    changed[50:] = 1 - changed[50:]
    after = forecasts(name, stream_of(outcomes=changed, available=available))
    assert (before[:80] == after[:80]).all()


LEARNING = [name for name in METHODS if name not in ("raw", "identity")]


@each(LEARNING)
def test_every_method_learns_in_the_end(name: str) -> None:
    raw, outcomes = np.tile([0.3, 0.8], 60), np.tile([1, 0], 60)
    stream = Stream.of(raw, outcomes)
    before, after = forecasts(name, stream), forecasts(name, replace(stream, outcomes=1 - outcomes))
    assert (before[100:, 0] != after[100:, 0]).any()


@each_method
def test_outcomes_that_are_known_at_once_are_not_late(name: str) -> None:
    late = forecasts(name, stream_of(available=np.arange(120.0)))
    np.testing.assert_allclose(late, forecasts(name, stream_of()), rtol=0, atol=1e-9)


def test_rounds_without_an_outcome_are_played_and_not_scored() -> None:
    available = np.where(np.arange(120) % 3 == 0, np.inf, np.arange(120.0))
    made = compare(RAW, OUTCOMES, available=available, methods=["bucket_means"])
    kept = np.isfinite(available)
    assert (made.rounds, made.n_unresolved) == (80, 40)
    assert made.base_rate == OUTCOMES[kept].mean()
    assert made.row("raw").brier == metrics.brier(RAW[kept], OUTCOMES[kept])


def test_a_time_that_is_not_a_number_means_never() -> None:
    stream = Stream.of([0.5, 0.5], [1, 1], available=[np.nan, 1.0])
    assert stream.scored.tolist() == [False, True]
    assert stream.events.tolist() == [0, 1, -2]


def test_a_stream_without_outcomes_has_no_figures() -> None:
    made = compare([0.5] * 3, [1] * 3, available=[np.inf] * 3, methods=QUICK, adversarial_rounds=0)
    assert made.rounds == 0
    assert math.isnan(made.base_rate)
    assert all(math.isnan(getattr(row, key)) for row in made.rows for key in KEYS)
    assert headline(made) == NOTHING
    assert made.front() == []


def test_no_rounds_at_all_are_refused() -> None:
    with pytest.raises(InvalidInput, match="raw must hold at least one forecast, got none"):
        compare([], [])


# ------------------------------------------------------------------------------- figures


def test_rows_hold_the_metrics_of_what_was_announced(made: Comparison) -> None:
    replayed = Recalibrator("foster_hart", seed=3).replay(RAW, OUTCOMES)
    row = made.row("foster_hart")
    assert row.cells == "values"
    assert row.brier == metrics.brier(replayed.mean, OUTCOMES)
    assert row.brier_drawn == metrics.brier(replayed.forecast, OUTCOMES)
    assert row.calibration_l1 == metrics.calibration_error(replayed.forecast, OUTCOMES)
    assert row.calibration_l2 == metrics.calibration_error(replayed.forecast, OUTCOMES, power=2)
    assert row.smooth == metrics.smooth_calibration_error(replayed.forecast, OUTCOMES)


def test_forecasts_that_may_be_any_numbers_are_compared_in_buckets(made: Comparison) -> None:
    online = transforms.get("bucket_means")().online()
    told = online.replay(RAW, OUTCOMES)
    row = made.row("bucket_means")
    assert row.cells == "buckets"
    assert row.brier == row.brier_drawn == metrics.brier(told, OUTCOMES)
    errors = (metrics.binned_calibration_error(told, OUTCOMES, buckets=20, power=p) for p in (1, 2))
    assert (row.calibration_l1, row.calibration_l2) == tuple(errors)
    assert row.state_bytes == len(online.to_bytes())


def test_the_default_is_compared_with_its_own_settings(made: Comparison) -> None:
    model = Calibrant(seed=3)
    told = model.replay(RAW, OUTCOMES)
    assert made.row("calibrant").brier == metrics.brier(np.minimum(told.mean, 1.0), OUTCOMES)
    assert made.row("calibrant").state_bytes == len(model.to_bytes())


def test_settings_reach_the_recalibrators_and_are_told() -> None:
    made = compare(RAW, OUTCOMES, methods=["foster_hart"], adversarial_rounds=0, resolution=4)
    told = Recalibrator("foster_hart", seed=0, resolution=4).replay(RAW, OUTCOMES)
    assert made.row("foster_hart").brier == metrics.brier(told.mean, OUTCOMES)
    assert made.settings == {"resolution": 4}


def test_the_log_loss_counts_sure_mistakes_as_nearly_sure() -> None:
    told = score.log_loss(np.array([1.0, 0.25]), np.array([0, 1], np.uint8))
    assert told == pytest.approx((-math.log(1e-15) - math.log(0.25)) / 2)


@pytest.mark.parametrize("exact", [False, True])
def test_the_worst_window_is_the_largest_error_of_whole_windows(exact: bool) -> None:
    values = np.round(RAW, 1)
    parts = [slice(k, k + 50) for k in (0, 50)]
    errors = [score.calibration(values[p], OUTCOMES[p], power=2, exact=exact) for p in parts]
    assert score.worst_window(values, OUTCOMES, 50, exact=exact) == max(errors)
    assert math.isnan(score.worst_window(values, OUTCOMES, 121, exact=exact))
    assert math.isnan(score.worst_window(values, OUTCOMES, 0, exact=exact))


def test_a_window_may_be_chosen() -> None:
    made = compare(RAW, OUTCOMES, methods=[], adversarial_rounds=0, window=30)
    assert made.window == 30
    expected = metrics.windowed_calibration_error(RAW, OUTCOMES, window=30).worst
    assert made.row("raw").worst_window_l2 == pytest.approx(expected, rel=1e-12)


def test_many_forecasts_are_rounded_before_their_smooth_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    exact = score.smooth(RAW, OUTCOMES)
    monkeypatch.setattr(score, "MANY", 100)
    assert score.smooth(RAW, OUTCOMES) != exact
    assert score.smooth(RAW, OUTCOMES) == pytest.approx(exact, abs=1e-4)


# --------------------------------------------------------------------------- the adversary


@pytest.mark.parametrize("model", [Recalibrator, Calibrant])
def test_the_game_is_the_one_that_simulate_plays(model: Any) -> None:
    record = play(model(seed=4), "noise", "threshold", 200, seed=4)
    told, outcomes = duel(own.Ticketed(model(seed=4)), 200, seed=4)
    assert (told == record.forecast).all()
    assert (outcomes == record.outcomes).all()


@each(calibrators.names())
def test_the_kernel_plays_the_same_game_as_the_loop(name: str) -> None:
    method = METHODS[name]
    assert method.adversarial(60, 2) == pytest.approx(Method.adversarial(method, 60, 2), abs=1e-12)


WITHOUT_A_COIN = [name for name, method in METHODS.items() if not method.on_grid]


@each(WITHOUT_A_COIN)
def test_methods_without_a_coin_are_wrong_every_time(name: str) -> None:
    told, outcomes = duel(METHODS[name].start(0), 60, seed=1)
    assert (outcomes == (told <= 0.5)).all()
    found = METHODS[name].adversarial(60, 1)
    assert found == pytest.approx(metrics.brier(told, outcomes), rel=1e-9)
    assert found >= 0.25


def test_the_default_withstands_where_the_raw_forecasts_are_always_wrong(made: Comparison) -> None:
    assert made.row("raw").adversarial_l2 == 1.0
    assert made.row("calibrant").adversarial_l2 == METHODS["calibrant"].adversarial(50, 3)
    assert made.row("foster_hart").adversarial_l2 == METHODS["foster_hart"].adversarial(50, 3)
    assert METHODS["calibrant"].adversarial(600, 1) < 0.025  # a tenth of what others have


def test_without_a_game_there_is_no_such_figure() -> None:
    made = compare(RAW, OUTCOMES, methods=["bucket_means"], adversarial_rounds=0)
    assert all(math.isnan(row.adversarial_l2) for row in made.rows)
    assert "adversary" not in headline(made)


# ----------------------------------------------------------------------------- the peers


def log_odds(raw: float) -> float:
    inside = min(max(raw, 1e-3), 0.999)
    return math.log(inside / (1 - inside))


def test_river_learns_by_gradient_steps_on_the_log_odds() -> None:
    a, b, expected = 0.0, 0.0, []
    for p, y in zip(RAW.tolist(), OUTCOMES.tolist(), strict=True):
        x = log_odds(p)
        told = 1 / (1 + math.exp(-(a * x + b)))
        expected.append(told)
        a, b = a - 0.01 * (told - y) * x, b - 0.01 * (told - y)
    np.testing.assert_allclose(forecasts("river_sgd", stream_of())[:, 0], expected, atol=1e-12)


@pytest.mark.parametrize("name", [name for name in METHODS if name.startswith("sklearn")])
def test_refits_are_the_same_one_by_one_and_in_pieces(name: str) -> None:
    method = METHODS[name]
    for available in (None, np.arange(120.0) + np.arange(120) % 7):
        stream = stream_of(available=available)
        alone, at_once = Method.play(method, stream, 0), method.play(stream, 0)
        np.testing.assert_allclose(alone.forecast, at_once.forecast, rtol=0, atol=1e-12)


def test_refits_say_the_raw_forecast_until_both_outcomes_were_seen() -> None:
    outcomes = np.r_[np.zeros(40, int), np.ones(40, int), np.zeros(40, int)]
    told = forecasts("sklearn_platt", stream_of(outcomes=outcomes))[:, 0]
    assert (told[:60] == RAW[:60]).all()
    assert (told[60:80] != RAW[60:80]).all()


def test_a_window_forgets_what_all_history_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own, "WINDOW", 25)
    short = next(m for m in own.scikit_methods() if m.name == "sklearn_isotonic_5000")
    stream = stream_of()
    told = short.play(stream, 0)
    regression = own._regression("isotonic")().fit(RAW[75:100], OUTCOMES[75:100])
    assert (told.forecast[100:] == regression.predict(RAW[100:])).all()
    assert told.size < METHODS["sklearn_isotonic"].play(stream, 0).size


# --------------------------------------------------------------------------------- prices


@pytest.mark.parametrize("name", ["raw", "foster_hart", "bucket_means"])
def test_a_batch_leaves_as_much_to_keep_as_its_rounds_one_by_one(name: str) -> None:
    player = METHODS[name].start(1)
    for raw, outcome in zip(RAW.tolist(), OUTCOMES.tolist(), strict=True):
        player.announce(raw)
        player.learn(raw, outcome)
    assert abs(player.size() - METHODS[name].play(stream_of(), 1).size) < 500


class Timed:
    """Notes what a warm-up does."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.runs, self.prepared = seconds, list[int](), 0

    def run(self, stream: Stream) -> Played:
        self.runs.append(len(stream))
        return Played(stream.raw, stream.raw, 0, self.seconds)

    def prepare(self) -> None:
        self.prepared += 1

    def warmed(self, rounds: int) -> tuple[list[int], int]:
        stream = Stream.of(np.full(rounds, 0.5), np.ones(rounds))
        own.warm_up(stream, self.prepare, self.run)
        return self.runs, self.prepared


def test_the_compiler_works_before_the_clock_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own, "available", lambda: True)
    assert Timed(0.001).warmed(1_000) == ([100], 0)
    assert Timed(0.5).warmed(1_000) == ([100, 100], 1)
    assert Timed(9.0).warmed(500) == ([], 0)
    assert Timed(0.0).warmed(SHORT + 500) == ([SHORT + 1], 0)
    monkeypatch.setattr(own, "available", lambda: False)
    assert Timed(9.0).warmed(1_000) == ([], 0)


def test_slow_methods_ask_for_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def warm_up(stream: Stream, prepare: Callable[[], object], run: Any) -> None:
        prepare()
        asked.append(type(run(stream)).__name__)

    monkeypatch.setattr(own, "warm_up", warm_up)
    monkeypatch.setattr(Recalibrator, "compile", lambda self: asked.append("compile"))
    METHODS["foster_hart"].play(stream_of(), 0)
    assert asked == ["compile", "Played"]


def test_times_are_below_timing_and_nowhere_else(made: Comparison) -> None:
    told = made.to_dict()
    assert set(told["timing"]) == {"microseconds", "compiler"}
    assert set(told["timing"]["microseconds"]) == {row.name for row in made.rows}
    assert not [key for row in told["rows"] for key in row if "second" in key]
    assert made.microseconds("raw") == 0.0
    assert math.isnan(replace(made, timing={}).microseconds("raw"))


# ------------------------------------------------------------------------------- the data


def test_two_runs_differ_in_their_timing_only(made: Comparison) -> None:
    again = compare(RAW, OUTCOMES, methods=QUICK, adversarial_rounds=50, seed=3, title="<games>")
    assert replace(again, timing={}) == replace(made, timing={})


def test_a_comparison_survives_json(made: Comparison) -> None:
    none = compare(RAW[:50], OUTCOMES[:50], methods=["bucket_means"], adversarial_rounds=0)
    for told in (made, none):
        text = json.dumps(told.to_dict(), allow_nan=False)
        read = Comparison.from_dict(json.loads(text))
        assert read.to_dict() == told.to_dict()
        assert repr(read) == repr(told)
    assert json.loads(json.dumps(none.to_dict()))["rows"][0]["adversarial_l2"] is None


@pytest.mark.parametrize("data", [None, [], {}, {"version": 2}])
def test_another_version_is_refused(data: Any) -> None:
    with pytest.raises(CorruptState, match="version must be 1 of a comparison"):
        Comparison.from_dict(data)


def test_a_comparison_with_entries_missing_is_refused(made: Comparison) -> None:
    whole = made.to_dict()
    lacking = {key: value for key, value in whole.items() if key != "window"}
    with pytest.raises(CorruptState, match="comparison must have all its entries, got 'window'"):
        Comparison.from_dict(lacking)
    with pytest.raises(CorruptState, match="comparison must have all its entries"):
        Comparison.from_dict({**whole, "rows": [{"name": "raw"}]})


def row(name: str, brier: float, c2: float = 0.1, **changes: Any) -> Row:
    same = dict.fromkeys(("log_loss", "brier_drawn", "calibration_l1", "smooth"), 0.5)
    figures = {"brier": brier, "calibration_l2": c2, "worst_window_l2": 0.2, "adversarial_l2": c2}
    kind = {"raw": "raw", "calibrant": "default"}.get(name, "transform")
    told = {"kind": kind, "about": "It is.", "cells": "buckets", "state_bytes": 9}
    return Row(name=name, **{**same, **figures, **told, **changes})


def told(*rows: Row, **changes: Any) -> Comparison:
    facts = {"rounds": 100, "n_unresolved": 0, "base_rate": 0.5, "window": 0, "seed": 1}
    more = {"title": "t", "adversarial_rounds": 10, "settings": {}, "absent": (), "timing": {}}
    return Comparison(rows=rows, **{**facts, **more, **changes})


def test_rows_are_ranked_with_those_that_lack_a_figure_last() -> None:
    made = told(row("a", math.nan), row("b", 0.3), row("c", 0.2), row("d", 0.2))
    assert [found.name for found in made.ranked("brier")] == ["c", "d", "b", "a"]
    with pytest.raises(InvalidInput, match="by must be one of"):
        made.ranked("beauty")
    with pytest.raises(InvalidInput, match="figure must be one of"):
        made.points("beauty")
    with pytest.raises(UnknownName, match="row must be one of 'a', 'b', 'c', 'd', got 'e'"):
        made.row("e")


def test_the_front_holds_whom_nobody_beats_in_both() -> None:
    made = told(row("a", 0.2, 0.3), row("b", 0.3, 0.1), row("c", 0.3, 0.3))
    assert made.front() == ["b", "a"]
    assert made.front("brier", "smooth") == ["a"]


def test_the_headline_names_the_best_and_the_default() -> None:
    rows = row("raw", 0.3, 1.0), row("calibrant", 0.25, 0.02), row("x", 0.2), row("y", 0.4, 0.001)
    assert headline(told(*rows)) == (
        "x is the most accurate, Brier 0.2000 (raw 0.3000); y is the best calibrated, C2 0.0010; "
        "calibrant has Brier 0.2500 and C2 0.0200. Against the adversary, y has the least C2, "
        "0.0010; calibrant has 0.0200; 1 of 4 methods exceed 0.1."
    )


def test_the_headline_is_short_where_one_method_is_best_in_all() -> None:
    made = told(row("raw", 0.2, 0.01), row("x", 0.3, 0.2))
    assert headline(made) == (
        "raw is the most accurate, Brier 0.2000, and the best calibrated, C2 0.0100. Against the "
        "adversary, raw has the least C2, 0.0100; 1 of 2 methods exceed 0.1."
    )


def test_of_equals_raw_forecasts_are_the_best() -> None:
    made = told(row("aosa", 0.2, 0.0), row("raw", 0.2, 0.0), row("x", 0.3, 0.2))
    assert headline(made).startswith("raw is the most accurate, Brier 0.2000, and the best")


def test_chance_is_named_where_there_are_few_rounds() -> None:
    made = told(row("raw", 0.2, 0.01), row("x", 0.3, 0.2), rounds=5)
    first = "With 5 rounds, chance decides which method is the best. raw is the most accurate"
    assert headline(made).startswith(first)


def test_progress_is_told_before_each_method_and_at_the_end() -> None:
    seen: list[tuple[int, int, str]] = []
    compare(
        RAW, OUTCOMES, methods=["identity"], adversarial_rounds=0,
        progress=lambda *step: seen.append(step),
    )  # fmt: skip
    assert seen == [(0, 2, "raw"), (1, 2, "identity"), (2, 2, "")]


# ------------------------------------------------------------------------------- the page


def test_the_page_is_complete_and_asks_nobody_for_anything(made: Comparison) -> None:
    pytest.importorskip("jinja2", reason='needs the extra "plot"')
    text = render(made, command="calibrant compare games.csv")
    for found in made.rows:
        assert f"</span>{found.name}</th>" in text
        assert f">{comparison.shown(found.brier)}</td>" in text
    links = re.findall(r"https?://[^\"' )]+", text)
    assert set(links) == {"http://www.w3.org/1999/xlink"}
    assert "<script" not in text
    assert "prefers-color-scheme: dark" in text
    assert "Methods compared on &lt;games&gt;" in text
    assert text.count('role="img" aria-labelledby=') == 2
    assert "calibrant compare games.csv</code>" in text


def test_the_best_figure_of_a_column_is_marked_and_so_is_the_front(made: Comparison) -> None:
    lines = comparison._lines(made)
    assert [line.row.name for line in lines if line.front] == sorted(
        made.front(), key=lambda name: made.row(name).brier
    )
    first = made.ranked()[0].name
    assert [line.cells[0].best for line in lines] == [line.row.name == first for line in lines]


def test_the_page_tells_what_is_missing() -> None:
    pytest.importorskip("jinja2", reason='needs the extra "plot"')
    made = told(row("raw", 0.2), adversarial_rounds=0, absent=("river",), n_unresolved=7)
    text = render(made)
    assert "Not installed here, and therefore missing: River." in text
    assert "7 without an outcome" in text
    assert "Adversarial C2 is not about this stream" not in text
    assert text.count("<figure>") == 1
    assert render(replace(made, rounds=0)).count("<figure>") == 0


def test_the_page_says_how_long_a_window_is_and_whether_there_was_a_compiler() -> None:
    made = told(row("raw", 0.2), window=625, timing={"compiler": True})
    assert any("one of 625 rounds" in note for note in comparison._notes(made))
    assert any("with a compiler" in note for note in comparison._notes(made))


def test_the_price_of_a_round_has_three_digits() -> None:
    made = told(row("raw", 0.2), timing={"microseconds": {"raw": 1234.5}})
    assert comparison._prices(made, made.rows[0])[0].text == "1234"
    quick = replace(made, timing={"microseconds": {"raw": 1.23456}})
    assert comparison._prices(quick, made.rows[0])[0].text == "1.23"


def test_the_page_is_written_whole(made: Comparison, tmp_path: Path) -> None:
    pytest.importorskip("jinja2", reason='needs the extra "plot"')
    assert write(made, tmp_path / "c.html").read_text() == render(made)


def test_without_jinja_the_page_says_what_to_install(
    made: Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtra, match="the page needs jinja2, which is not installed"):
        render(made)


def test_comparing_needs_no_library_but_numpy_until_it_is_asked_for() -> None:
    code = "import sys, calibrant.compare; print(*{n.partition('.')[0] for n in sys.modules})"
    paths = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    ran = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, check=True, text=True, env={**os.environ, **paths},
    )  # fmt: skip
    assert not {"river", "sklearn", "matplotlib", "jinja2", "pyarrow"} & set(ran.stdout.split())


def test_the_how_to_describes_every_key(made: Comparison) -> None:
    place = Path(__file__).resolve().parent.parent / "docs" / "how-to" / "compare.md"
    section = place.read_text().partition("## The JSON\n")[2].partition("\n## ")[0]
    first = re.findall(r"^\| (`.*?`) \|", section, re.MULTILINE)
    told = made.to_dict()
    assert sorted(re.findall(r"\w+", " ".join(first))) == sorted([*told, *told["rows"][0]])


SMALL = st.lists(st.tuples(st.integers(0, 10), st.integers(0, 1)), min_size=1, max_size=40)


@given(SMALL)
def test_any_short_stream_can_be_compared(rounds: list[tuple[int, int]]) -> None:
    raw, outcomes = zip(*[(k / 10, y) for k, y in rounds], strict=True)
    made = compare(raw, outcomes, methods=["running_mean", "bucket_means"], adversarial_rounds=0)
    assert made.rounds == len(rounds)
    assert set(made.front()) <= {row.name for row in made.rows}
    for found in made.rows:
        assert 0.0 <= found.calibration_l2 <= found.calibration_l1 <= 1.0
