"""The collector: one pass, constant memory, and every number as if there were no hurry."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_summary import binned, log_loss, running, strides, windows
from numpy.typing import NDArray

from calibrant import Calibrant, Recalibrator, metrics
from calibrant.core.codec import Document
from calibrant.errors import CorruptState, InvalidInput
from calibrant.kernels import tallies
from calibrant.summary import Collector, Summary, batch_means, summarise, summarise_collected
from calibrant.summary.collected import ECE_BUCKETS, student
from calibrant.transforms import Identity

GRID = np.arange(21) / 20
NAMES = ("raw", "forecast", "mean")
Arrays = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]


def stream(rounds: int, seed: int = 0, grid: NDArray[np.float64] = GRID) -> Arrays:
    generator = np.random.default_rng(seed)
    raw, mean = generator.random(rounds), generator.random(rounds)
    drawn = grid[generator.integers(0, len(grid), rounds)]
    return raw, drawn, mean, (generator.random(rounds) < raw**2).astype(np.uint8)


def collected(arrays: Arrays, *, grid: NDArray[np.float64] = GRID, **options: Any) -> Collector:
    collector = Collector(grid)
    collector.update(*arrays, **options)
    return collector


def words(collector: Collector) -> list[int]:
    found: list[int] = collector.document().arrays["words"].tolist()
    return found


probabilities = st.one_of(
    st.floats(0.0, 1.0), st.sampled_from([0.0, 1.0, 0.05, 0.29, 1e-300, 0.999, 1 - 2**-53])
)
rows = st.lists(
    st.tuples(probabilities, st.sampled_from(GRID.tolist()), probabilities, st.integers(0, 1)),
    min_size=1,
    max_size=30,
)


def columns(rows: list[tuple[float, float, float, int]]) -> Arrays:
    raw, drawn, mean, outcomes = zip(*rows, strict=True)
    return np.array(raw), np.array(drawn), np.array(mean), np.array(outcomes, np.uint8)


@settings(max_examples=40)
@given(rows)
def test_the_sums_are_those_of_the_streaming_metrics_to_the_last_bit(
    rows: list[tuple[float, float, float, int]],
) -> None:
    arrays = columns(rows)
    collector = collected(arrays)
    for name, forecasts in zip(NAMES, arrays[:3], strict=True):
        buckets = metrics.BucketedCells(20)
        buckets.update_many(forecasts, arrays[3])
        assert collector.buckets(name) == buckets
    for name, forecasts in (("raw", arrays[0]), ("mean", arrays[2])):
        smooth, ranking = metrics.StreamingSmooth(1000), metrics.StreamingAUC(1000)
        smooth.update_many(forecasts, arrays[3])
        ranking.update_many(forecasts, arrays[3])
        assert collector.smooth(name) == smooth
        assert collector.ranking(name) == ranking
    exact = metrics.ExactCells(GRID)
    exact.update_many(arrays[1], arrays[3])
    assert collector.exact() == exact


@pytest.mark.parametrize(("digits", "most"), [(2, 0.0), (3, 0.0), (6, 0.2)])
@pytest.mark.parametrize("scale", [1.0, 0.01])
def test_the_exact_area_of_raw_forecasts_is_as_near_as_is_said(
    digits: int, most: float, scale: float
) -> None:
    dice = np.random.default_rng(4)
    raw = np.round(dice.random(4000) * scale, digits)
    outcomes = (dice.random(4000) < raw).astype(np.uint8)
    collector = collected((raw, np.full(4000, GRID[0]), raw, outcomes))
    unsure, area = collector.unsure("raw"), collector.ranking("raw").result()
    assert abs(metrics.auc(raw, outcomes) - area) <= unsure + 1e-12
    assert unsure <= min(most, collector.ranking("raw").error_bound)
    assert (unsure > 0.0) == (digits == 6)


@settings(max_examples=40)
@given(rows)
def test_the_log_loss_is_that_of_clipped_probabilities(
    rows: list[tuple[float, float, float, int]],
) -> None:
    arrays = columns(rows)
    collector = collected(arrays)
    for name, forecasts in zip(NAMES, arrays[:3], strict=True):
        value, clipped = log_loss(forecasts.tolist(), arrays[3].tolist(), 1e-15)
        found = collector.log_loss(name)
        assert found.value == pytest.approx(value, rel=1e-12, abs=1e-15)
        assert found.clipped == clipped


def test_the_log_loss_survives_products_far_below_the_smallest_double() -> None:
    arrays = tuple(np.full(5000, value) for value in (1e-15, 0.0, 1e-300))
    collector = collected((*arrays, np.ones(5000, np.uint8)))  # type: ignore[arg-type]
    for name, clipped in (("raw", 0), ("forecast", 5000), ("mean", 5000)):
        assert collector.log_loss(name).value == pytest.approx(-np.log(1e-15), rel=1e-12)
        assert collector.log_loss(name).clipped == clipped


@settings(max_examples=40)
@given(rows, st.data())
def test_cutting_a_run_into_batches_changes_nothing(
    rows: list[tuple[float, float, float, int]], data: st.DataObject
) -> None:
    arrays = columns(rows)
    cut = data.draw(st.integers(0, len(rows)))
    collector = Collector(GRID)
    for part in (slice(0, cut), slice(cut, None)):
        collector.update(*(array[part] for array in arrays))
    assert words(collector) == words(collected(arrays))


def test_cutting_at_windows_and_points_changes_nothing() -> None:
    arrays = stream(3000)
    collector = Collector(GRID)
    for start, end in ((0, 255), (255, 256), (256, 625), (625, 1250), (1250, 3000)):
        collector.update(*(array[start:end] for array in arrays))
    assert words(collector) == words(collected(arrays))


@pytest.mark.slow
def test_the_compiled_and_the_plain_collector_agree_to_the_last_bit() -> None:
    arrays = stream(4000)
    assert words(collected(arrays, compile=True)) == words(collected(arrays, compile=False))


def test_a_compiled_kernel_gets_the_arrays_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds: set[type] = set()

    def machine(kernel: Any, fast: bool) -> Any:
        def run(*arrays: Any) -> Any:
            kinds.update(map(type, arrays))
            return kernel(*arrays)

        return run if fast else kernel

    monkeypatch.setattr(tallies, "machine", machine)
    arrays = stream(300)
    assert words(collected(arrays, compile=True)) == words(collected(arrays, compile=False))
    assert kinds == {np.ndarray}


@pytest.mark.parametrize("rounds", [1, 2, 255, 256, 257, 700])
def test_the_trace_holds_running_averages(rounds: int) -> None:
    arrays = stream(rounds)
    at, points = collected(arrays).trace()
    stride = strides(rounds, tallies.POINTS)
    expected = list(range(stride, rounds + 1, stride))
    if expected[-1:] != [rounds]:
        expected.append(rounds)
    assert at.tolist() == expected
    for T, point in list(zip(at.tolist(), points.tolist(), strict=True))[::37]:
        naive = running(*(array[:T].tolist() for array in arrays))
        assert point == pytest.approx(naive, rel=1e-11, abs=1e-14)


def test_a_trace_never_has_more_points_than_there_is_room_for() -> None:
    collector, most = Collector(GRID), 0
    for seed in range(12):
        collector.update(*stream(100, seed))
        most = max(most, len(collector.trace()[0]))
    assert most <= tallies.POINTS


@pytest.mark.parametrize("level", range(4))
def test_windows_hold_the_binned_error_of_each_block(level: int) -> None:
    arrays = stream(11_000)
    group, shown, worst, where = collected(arrays).windows(level)
    assert group == 1
    for kind, forecasts in enumerate(arrays[:3]):
        naive = windows(forecasts.tolist(), arrays[3].tolist(), 625 << level)
        assert shown[:, kind].tolist() == pytest.approx(naive, rel=1e-11)
        assert where[kind] == int(np.argmax(naive))
        assert worst[kind] == shown[where[kind], kind]


def test_on_long_streams_a_point_shows_the_worst_of_its_windows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tallies, "WINDOW", 10)
    monkeypatch.setattr(tallies, "POINTS", 4)
    arrays = stream(127)
    group, shown, worst, where = collected(arrays, compile=False).windows(0)
    naive = windows(arrays[0].tolist(), arrays[3].tolist(), 10)
    assert group == 4
    assert shown[:, 0].tolist() == pytest.approx([max(naive[i : i + 4]) for i in (0, 4, 8)])
    assert worst[0] == pytest.approx(max(naive))
    assert where[0] == int(np.argmax(naive))


@pytest.mark.parametrize("kind", ["midpoints", "logit", "arcsine"])
def test_any_grid_will_do(kind: str) -> None:
    rec = Recalibrator(grid=kind, resolution=13, seed=1)
    values = rec.calibrator.lattice.values
    arrays = stream(500, grid=values)
    collector = collected(arrays, grid=values)
    assert collector.exact().calibration_error() == pytest.approx(
        metrics.calibration_error(arrays[1], arrays[3])
    )
    assert collector.buckets("forecast").rounds == 500


def test_a_fine_grid_has_several_values_in_a_cell() -> None:
    values = np.arange(5001) / 5000
    arrays = stream(40, grid=values)
    exact = metrics.ExactCells(values, limit=5001)
    exact.update_many(arrays[1], arrays[3])
    assert collected(arrays, grid=values).exact() == exact


def test_counts_of_fine_cells_are_those_of_a_histogram() -> None:
    arrays = stream(2000)
    collector = collected(arrays)
    for name, forecasts in zip(NAMES, arrays[:3], strict=True):
        naive = np.bincount([metrics.as_buckets([f], [0], buckets=1000).count.argmax()
                             for f in forecasts[:50]], minlength=1000)  # fmt: skip
        part = collected(tuple(array[:50] for array in arrays))  # type: ignore[arg-type]
        assert part.counts(name).tolist() == naive.tolist()
        assert collector.counts(name).sum() == 2000


def test_the_mean_drawn_forecast_is_by_the_raw_forecasts_bucket() -> None:
    collector = Collector([0.0, 0.5, 1.0])
    collector.update([0.01, 0.02, 0.99], [0.0, 0.5, 1.0], [0.1, 0.1, 0.9], [0, 1, 1])
    means = collector.mean_drawn()
    assert means[0] == 0.25
    assert means[19] == 1.0
    assert np.isnan(means[1:19]).all()


@pytest.mark.parametrize(
    ("arrays", "told"),
    [
        (([0.5], [0.31], [0.5], [1]), "forecast[0] must be a value of the grid, got 0.31"),
        (([0.5], [0.5], [0.5], [2]), "outcomes[0] must be 0 or 1, got 2"),
        (([1.5], [0.5], [0.5], [1]), "raw[0] must be a number in [0, 1], got 1.5"),
        (([0.5], [0.5], [-1.0], [1]), "mean[0] must be a number in [0, 1], got -1.0"),
    ],
)
def test_what_is_no_round_is_refused_and_leaves_no_trace(
    arrays: tuple[Any, ...], told: str
) -> None:
    collector = Collector(GRID)
    with pytest.raises(InvalidInput) as caught:
        collector.update(*arrays)
    assert str(caught.value) == told
    assert words(collector) == words(Collector(GRID))


def test_arrays_of_different_lengths_are_refused() -> None:
    with pytest.raises(InvalidInput, match="arrays must be of one length"):
        Collector(GRID).update([0.5], [0.5, 0.5], [0.5], [1])


def test_a_collector_refuses_more_rounds_than_its_sums_can_hold() -> None:
    collector = Collector(GRID)
    collector._words[tallies.ROUNDS] = tallies.MOST
    with pytest.raises(InvalidInput, match=r"^rounds must be at most 2147483648, got 2147483649$"):
        collector.update([0.5], [0.5], [0.5], [1])


@pytest.mark.parametrize("values", [[], [0.5, 0.5], [0.7, 0.2]])
def test_values_out_of_order_are_refused(values: list[float]) -> None:
    with pytest.raises(InvalidInput, match="values must be in ascending order"):
        Collector(values)


def test_a_collector_goes_on_from_its_document() -> None:
    arrays = stream(900)
    collector = collected(tuple(array[:500] for array in arrays))  # type: ignore[arg-type]
    stored = Document.from_bytes(collector.document().to_bytes(), "collector")
    restored = Collector.from_document(stored)
    restored.update(*(array[500:] for array in arrays))
    assert words(restored) == words(collected(arrays))
    assert collector.rounds == 500


@pytest.mark.parametrize("arrays", [{}, {"words": np.zeros(100, np.int64)}])
def test_a_damaged_collector_is_refused(arrays: dict[str, NDArray[np.int64]]) -> None:
    with pytest.raises(CorruptState, match="state must be of a collector"):
        Collector.from_document(Document("collector", {}, arrays))


# ------------------------------------------------------------------------- the summary


def played(rounds: int, seed: int = 5, **options: Any) -> tuple[Recalibrator, Arrays]:
    generator = np.random.default_rng(seed)
    raw = generator.random(rounds)
    outcomes = (generator.random(rounds) < 0.5 + 0.6 * (raw - 0.5)).astype(np.uint8)
    rec = Recalibrator(seed=seed, **options)
    run = rec.replay(raw, outcomes)
    return rec, (raw, run.forecast, run.mean, outcomes)


@pytest.fixture(scope="module")
def told() -> tuple[Summary, Arrays]:
    rec, arrays = played(6000)
    return summarise(rec, *arrays, seed=5), arrays


SUMMARY = {
    "version", "calibrant", "method", "calibrator", "resolution", "buckets", "seed", "n_rounds",
    "n_skipped", "n_unresolved", "base_rate", "raw", "forecast", "mean", "auc", "regret_brier",
    "window", "windows", "bound", "certificate", "chain", "certificate_holds", "breakdown",
    "timing",
}  # fmt: skip
SCORES = {
    "brier", "log_loss", "log_loss_clipped", "calibration_l1", "calibration_l2", "ece", "smooth",
    "smooth_error", "sharpness", "last_window_l2", "worst_window_l2",
}  # fmt: skip


def test_the_summary_has_the_keys_that_are_promised(told: tuple[Summary, Arrays]) -> None:
    summary = told[0].summary
    assert set(summary) == SUMMARY
    assert all(set(summary[name]) == SCORES for name in NAMES)
    assert set(summary["auc"]) == {"raw", "forecast", "mean", "error", "unsure"}
    assert set(summary["regret_brier"]) == {"value", "low", "high", "blocks", "method"}
    assert set(summary["bound"]) == {
        "c1", "c2", "regret", "assumption", "failure", "from_round",
    }  # fmt: skip
    assert set(summary["certificate"]) == {
        "rounds", "open", "expired", "delay", "c1", "c2", "loss", "regret",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["raw", "mean"])
def test_raw_and_mean_are_measured_in_buckets(told: tuple[Summary, Arrays], name: str) -> None:
    summary, arrays = told
    forecasts = arrays[NAMES.index(name)]
    scores = summary[name]
    assert scores["brier"] == pytest.approx(metrics.brier(forecasts, arrays[3]))
    for power, key in ((1, "calibration_l1"), (2, "calibration_l2")):
        naive = binned(forecasts.tolist(), arrays[3].tolist(), power)
        assert scores[key] == pytest.approx(naive)
    exact = metrics.smooth_calibration_error(forecasts, arrays[3])
    assert abs(scores["smooth"] - exact) <= scores["smooth_error"] == 0.0005
    assert scores["sharpness"] == pytest.approx(float(np.var(forecasts)))
    ranked = metrics.auc(forecasts, arrays[3])
    assert abs(summary["auc"][name] - ranked) <= summary["auc"]["error"]


def test_drawn_forecasts_are_measured_by_exact_value(told: tuple[Summary, Arrays]) -> None:
    summary, (_, drawn, _, outcomes) = told
    scores = summary["forecast"]
    assert scores["brier"] == pytest.approx(metrics.brier(drawn, outcomes))
    assert scores["calibration_l1"] == metrics.calibration_error(drawn, outcomes)
    assert scores["calibration_l2"] == metrics.calibration_error(drawn, outcomes, power=2)
    assert scores["smooth"] == metrics.smooth_calibration_error(drawn, outcomes)
    assert scores["smooth_error"] == 0.0
    assert scores["sharpness"] == pytest.approx(float(np.var(drawn)))
    assert summary["auc"]["forecast"] == metrics.auc(drawn, outcomes)


@pytest.mark.parametrize("name", NAMES)
def test_the_ece_is_over_ten_buckets(told: tuple[Summary, Arrays], name: str) -> None:
    summary, arrays = told
    forecasts = arrays[NAMES.index(name)].tolist()
    naive = binned(forecasts, arrays[3].tolist(), 1, buckets=ECE_BUCKETS)
    assert summary[name]["ece"] == pytest.approx(naive)


def test_the_certificate_stands_beside_what_was_measured(told: tuple[Summary, Arrays]) -> None:
    summary = told[0].summary
    assert summary["certificate"]["c2"] == pytest.approx(summary["forecast"]["calibration_l2"])
    assert summary["certificate"]["regret"] == pytest.approx(summary["regret_brier"]["value"])
    assert summary["bound"]["c2"] > summary["forecast"]["calibration_l2"]
    assert summary["certificate_holds"] is True


def test_the_trace_ends_where_the_summary_stands(told: tuple[Summary, Arrays]) -> None:
    summary, _ = told
    assert summary.trace.rounds[-1] == 6000
    assert summary.trace.brier_forecast[-1] == pytest.approx(summary["forecast"]["brier"])
    assert summary.trace.c2_mean[-1] == pytest.approx(summary["mean"]["calibration_l2"])
    assert summary.trace.c1_forecast[-1] == pytest.approx(summary["forecast"]["calibration_l1"])


def test_the_traces_bound_is_the_theorems(told: tuple[Summary, Arrays]) -> None:
    summary, _ = told
    rule = Recalibrator(seed=5).calibrator
    trace = summary.trace
    points = zip(trace.rounds, trace.bound_c1, trace.bound_c2, strict=True)
    for T, c1, c2 in list(points)[::50]:
        promised = rule.bound(int(T), buckets=20, prior=1)
        assert promised is not None
        assert (c1, c2) == (promised.as_c1().value, promised.value)


@pytest.mark.parametrize(
    ("method", "c1", "c2"), [("running_mean", False, False), ("regret_matching", True, False)]
)
def test_where_no_theorem_speaks_the_trace_has_no_bound(method: str, c1: bool, c2: bool) -> None:
    rec, arrays = played(50, method=method)
    trace = summarise(rec, *arrays).trace
    assert np.isfinite(trace.bound_c1).all() == c1
    assert np.isfinite(trace.bound_c2).all() == c2


@pytest.mark.parametrize(
    ("rounds", "window"), [(624, 0), (625, 625), (9999, 625), (10_000, 1250), (40_000, 5000)]
)
def test_windows_grow_with_the_stream_until_there_are_enough(rounds: int, window: int) -> None:
    rec = Recalibrator(seed=1)
    collector = Collector(GRID)
    collector.update(*stream(rounds), compile=False)
    summary = summarise_collected(collector, rec)
    assert summary.windows.window == summary["window"] == window
    number = rounds // window if window else 0
    assert len(summary.windows.first) == number
    assert (summary.windows.last - summary.windows.first + 1 == window).all()
    assert set(summary.windows.worst) == (set(NAMES) if number else set())


def test_the_worst_window_is_marked_by_its_rounds(told: tuple[Summary, Arrays]) -> None:
    summary, _ = told
    shown = summary.windows.c2_raw
    first, last, error = summary.windows.worst["raw"]
    assert error == shown.max() == summary["raw"]["worst_window_l2"]
    assert first == summary.windows.first[shown.argmax()]
    assert last == summary.windows.last[shown.argmax()]


@pytest.mark.parametrize("name", NAMES)
def test_the_last_and_the_worst_window_are_those_of_the_naive_windows(
    told: tuple[Summary, Arrays], name: str
) -> None:
    summary, arrays = told
    errors = windows(arrays[NAMES.index(name)].tolist(), arrays[3].tolist(), 625)
    places, scores = summary["windows"], summary[name]
    assert places["number"] == len(errors) == 9
    assert scores["last_window_l2"] == pytest.approx(errors[-1])
    assert scores["worst_window_l2"] == pytest.approx(max(errors))
    worst = errors.index(max(errors))
    assert places["last"] == {"first": 5001, "last": 5625}
    assert places["worst"][name] == {"first": 625 * worst + 1, "last": 625 * worst + 625}


@pytest.mark.slow
def test_on_a_long_stream_the_last_point_tells_how_many_rounds_it_covers() -> None:
    collector = Collector(GRID)
    for _ in range(2):
        collector.update(*stream(5000 * 130), compile=True)
    summary = summarise_collected(collector, Recalibrator(seed=1))
    latest = summary.windows.latest["raw"]
    assert summary["windows"]["last"] == {"first": 1_290_001, "last": 1_300_000}
    assert latest[2] == summary.windows.c2_raw[-1] == summary["raw"]["last_window_l2"]


def test_without_a_window_there_is_no_last_one() -> None:
    rec, arrays = played(600)
    summary = summarise(rec, *arrays)
    assert summary["windows"] == {"number": 0, "last": None, "worst": {}}
    assert summary["raw"]["last_window_l2"] is None
    assert summary.windows.latest == {}


# ------------------------------------------------------------------------- the chain


def chained(rounds: int, **options: Any) -> tuple[Calibrant, Summary]:
    _, (raw, _, _, outcomes) = played(rounds)
    model = Calibrant(seed=5, **{k: v for k, v in options.items() if k != "available"})
    run = model.replay(raw, outcomes, available=options.get("available"))
    return model, summarise(model, raw, run.forecast, run.mean, outcomes, seed=5)


def test_the_summary_of_the_default_tells_its_chain() -> None:
    model, summary = chained(800)
    chain, told_chain = model.certificate(), summary["chain"]
    assert (summary["method"], summary["calibrator"]) == ("calibrant", "refining")
    assert summary["bound"]["regret"] == told_chain["raw_bound"] == chain.promised("regret")
    raw = told_chain["links"][0]["bound"]
    assert told_chain["mixed_bound"] + raw == told_chain["raw_bound"]
    assert summary["bound"]["failure"] == chain.failure == 0.05
    assert "with probability at least 0.95" in summary["bound"]["assumption"]
    assert told_chain["mixed_regret"] == chain.mixed_regret
    assert told_chain["mixed_loss"] == chain.mixed_loss
    assert [each["expert"] for each in told_chain["links"]] == [k.expert for k in chain.links]
    assert told_chain["links"][0]["regret"] == chain.links[0].regret
    assert all(each["holds"] for each in told_chain["links"])
    assert summary["certificate_holds"] is True
    assert Summary.from_dict(summary.to_dict()).summary == summary.summary


def test_a_recalibrator_alone_has_no_chain(told: tuple[Summary, Arrays]) -> None:
    assert told[0].summary["chain"] is None
    assert told[0].summary["method"] == told[0].summary["calibrator"] == "foster_hart"


def test_the_summary_of_a_few_rounds_says_that_it_is_too_early() -> None:
    model, summary = chained(2)
    assert summary["certificate_holds"] is None
    assert [summary["bound"][key] for key in ("c1", "c2", "regret", "assumption")] == [None] * 4
    assert summary["bound"]["from_round"] == model.certificate().early > 2
    assert {each["bound"] for each in summary["chain"]["links"]} != {None}
    _, first = chained(1)
    assert None in {each["bound"] for each in first["chain"]["links"]}


def test_under_late_outcomes_nothing_is_promised_by_the_chain() -> None:
    _, told = chained(300, available=np.arange(300) + 5.0)
    summary = told.summary
    assert summary["certificate"]["delay"] == 4
    assert summary["certificate_holds"] is None
    assert {each["bound"] for each in summary["chain"]["links"]} == {None}
    assert {each["holds"] for each in summary["chain"]["links"]} == {None}
    assert [summary["bound"][key] for key in ("c1", "c2", "regret")] == [None] * 3
    assert summary["chain"]["links"][0]["regret"] is not None


def test_a_last_stage_whose_theorem_covers_late_outcomes_is_still_checked() -> None:
    late = {"available": np.arange(12_000) + 5.0}
    _, summary = chained(12_000, method="foster_hart", buckets=4, **late)
    assert summary["bound"]["c2"] is not None
    assert summary["certificate_holds"] is True
    assert summary["bound"]["regret"] is None


def test_raw_forecasts_that_were_announced_are_followed_to_three_digits() -> None:
    model, (raw, _, _, outcomes) = Calibrant(seed=5, raw_safe=0.0), played(400)[1]
    run = model.replay(raw, outcomes)
    summary = summarise(model, raw, run.forecast, np.minimum(run.mean, 1.0), outcomes, seed=5)
    budget = summary["chain"]["budget"]
    assert (run.forecast == raw).sum() >= budget["fallbacks"] > 0
    assert budget["excess"] <= budget["epsilon"] == 0.0
    told = np.append(model.calibrator.lattice.values, np.arange(1001) / 1000)
    near = told[np.abs(run.forecast[:, None] - told).argmin(1)]
    assert summary["forecast"]["brier"] == pytest.approx(metrics.brier(near, outcomes))
    assert summary["certificate_holds"] is True
    late = Calibrant(seed=5, raw_safe=0.01)
    run = late.replay(raw, outcomes, available=np.arange(400) + 6.0)
    told = summarise(late, raw, run.forecast, np.minimum(run.mean, 1.0), outcomes).summary
    assert told["bound"]["c2"] is None
    assert told["certificate_holds"] is True
    assert told["bound"]["regret"] == 0.01


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_the_nearest_value_is_nearest(forecasts: list[float]) -> None:
    collector = Collector(GRID)
    found = collector.nearest(np.array(forecasts))
    for forecast, value in zip(forecasts, found.tolist(), strict=True):
        assert abs(forecast - value) == min(abs(forecast - each) for each in collector.values)


def test_the_settings_make_the_same_recalibrator_again() -> None:
    summary = chained(10, loss="log", grid="midpoints")[1]
    assert summary.settings == {
        "method": "calibrant", "calibrator": "anchored", "resolution": 20, "grid": "midpoints",
        "strength": 4.0, "patience": 3.0, "buckets": 1, "loss": "log", "seed": 5,
    }  # fmt: skip
    own = chained(10, experts=Identity(), method="foster_hart")[1].settings
    assert (own["experts"], own["calibrator"], own["prior"]) == ("Identity()", "foster_hart", 1)


def test_a_bucket_row_tells_what_became_of_its_raw_forecasts(told: tuple[Summary, Arrays]) -> None:
    summary, (raw, drawn, _, outcomes) = told
    inside = (raw >= 0.15) & (raw < 0.2)
    row = summary.buckets[3]
    assert (row.low, row.high, row.count) == (0.15, 0.2, int(inside.sum()))
    assert row.mean_raw == pytest.approx(raw[inside].mean())
    assert row.rate == pytest.approx(outcomes[inside].mean())
    assert row.mean_forecast == pytest.approx(drawn[inside].mean())


def test_the_histogram_counts_every_round(told: tuple[Summary, Arrays]) -> None:
    summary, arrays = told
    for name, forecasts in zip(NAMES, arrays[:3], strict=True):
        naive = metrics.as_buckets(forecasts, arrays[3], buckets=50).count
        assert getattr(summary.histogram, name).tolist() == naive.tolist()
    assert summary.histogram.edges.tolist() == [j / 50 for j in range(51)]


def test_the_headline_is_about_the_worst_of_the_much_used_buckets(
    told: tuple[Summary, Arrays],
) -> None:
    summary, _ = told
    raw, now, headline = summary.curves["raw"], summary.curves["forecast"], summary.headline
    assert headline is not None
    j = int(np.flatnonzero(raw.lower == headline.low)[0])
    often = np.minimum(raw.count, now.count) >= 60
    share = raw.count * (raw.mean_forecast - raw.mean_outcome) ** 2
    assert often[j]
    assert share[j] == share[often].max()
    assert headline.raw_said == raw.mean_forecast[j]
    assert headline.now_means == now.mean_outcome[j]
    assert headline.now_low < headline.now_means < headline.now_high


def test_without_a_bucket_that_both_use_the_headline_is_about_the_raw_forecasts() -> None:
    rec = Recalibrator(seed=1)
    collector = Collector(rec.calibrator.lattice.values)
    collector.update([0.92] * 10, [0.3] * 10, [0.3] * 10, [0] * 10)
    headline = summarise_collected(collector, rec).headline
    assert headline is not None
    assert (headline.low, headline.raw_count, headline.now_count) == (0.9, 10, 0)
    assert np.isnan(headline.now_means)


@pytest.mark.parametrize(("raw", "outcomes"), [([], []), ([0.5], [1]), ([0.7] * 40, [1] * 40)])
def test_awkward_streams_have_a_summary_too(raw: list[float], outcomes: list[int]) -> None:
    rec = Recalibrator(seed=1)
    run = rec.replay(raw, outcomes)
    summary = summarise(rec, raw, run.forecast, run.mean, outcomes)
    assert (summary.headline is None) == (not raw)
    again = Summary.from_dict(summary.to_dict())
    assert again.to_dict() == summary.to_dict()
    assert again.summary["auc"]["raw"] is None


def test_a_summary_comes_back_from_its_dictionary(told: tuple[Summary, Arrays]) -> None:
    summary, _ = told
    again = Summary.from_dict(summary.to_dict())
    assert again.to_dict() == summary.to_dict()
    assert again.windows.worst == summary.windows.worst
    assert again.headline == summary.headline
    assert again.buckets == summary.buckets
    assert again.trace.bound_c2.tolist() == summary.trace.bound_c2.tolist()


def test_what_belongs_to_one_run_is_kept_below_timing() -> None:
    rec, arrays = played(30)
    collector = collected(arrays)
    run = {"command": "calibrant replay x", "inputs": ["x"], "columns": {}, "scale": "logit"}
    summary = summarise_collected(collector, rec, settings=run, timing={"seconds": 1.0})
    data = summary.to_dict()
    assert data["timing"] == {"seconds": 1.0, "run": run}
    assert not set(run) & set(data["detail"]["settings"])
    assert Summary.from_dict(data).settings == summary.settings


@pytest.mark.parametrize(
    ("change", "told_by"),
    [
        (lambda data: None, "summary must be an object with a version, got something else"),
        (lambda data: {**data, "version": 9}, "summary must be of version 1, got 9; it was "
         "written by another release of calibrant"),
        (lambda data: {k: v for k, v in data.items() if k != "detail"},
         "summary must be what calibrant wrote, got KeyError: 'detail'"),
        (lambda data: {**data, "detail": {**data["detail"], "histogram": {}}},
         "summary must be what calibrant wrote, got ValueError: Histogram with other entries: "
         "edges, forecast, mean, raw"),
    ],
)  # fmt: skip
def test_a_summary_that_is_none_is_refused(
    told: tuple[Summary, Arrays], change: Any, told_by: str
) -> None:
    with pytest.raises(CorruptState) as caught:
        Summary.from_dict(change(told[0].to_dict()))
    assert str(caught.value) == told_by


# ----------------------------------------------------------------------- the interval


def test_the_interval_of_a_constant_is_a_point() -> None:
    found = batch_means(0.25, 0.25 * np.arange(1, 101), 1)
    assert (found.low, found.high, found.blocks) == (0.25, 0.25, 33)


@pytest.mark.parametrize(("points", "blocks"), [(8, 8), (63, 63), (64, 32), (255, 36)])
def test_blocks_are_merged_down_to_about_32(points: int, blocks: int) -> None:
    assert batch_means(0.0, np.arange(points) * 1.0, 4).blocks == blocks


def test_below_eight_blocks_there_is_no_interval() -> None:
    found = batch_means(0.5, np.arange(1.0, 8.0), 1)
    assert np.isnan([found.low, found.high]).all()
    assert found.value == 0.5


@pytest.mark.parametrize(
    ("freedom", "quantile"), [(7, 2.364624), (10, 2.228139), (31, 2.039513), (63, 1.998341)]
)
def test_the_t_quantiles_are_right_to_three_digits(freedom: int, quantile: float) -> None:
    assert student(freedom) == pytest.approx(quantile, abs=1e-3)


@settings(max_examples=20)
@given(st.integers(0, 1000))
def test_the_interval_agrees_with_the_blocks_by_hand(seed: int) -> None:
    values = np.random.default_rng(seed).normal(size=256 * 3)
    totals = np.cumsum(values)[2::3]
    found = batch_means(float(values.mean()), totals, 3)
    means = values.reshape(32, -1).mean(1)
    reach = student(31) * means.std(ddof=1) / np.sqrt(32)
    assert found.high - found.value == pytest.approx(reach)


def test_regret_is_forecast_minus_raw_with_its_interval(told: tuple[Summary, Arrays]) -> None:
    summary, (raw, drawn, _, outcomes) = told
    regret = summary["regret_brier"]
    expected = metrics.brier(drawn, outcomes) - metrics.brier(raw, outcomes)
    assert regret["value"] == pytest.approx(expected, abs=1e-12)
    assert regret["low"] < regret["value"] < regret["high"]
