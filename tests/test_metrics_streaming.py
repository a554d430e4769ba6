from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.errors import CorruptState, InvalidInput
from calibrant.metrics import (
    BucketedCells,
    EqualMass,
    ExactCells,
    ExpectedCells,
    MeanLoss,
    StreamingATB,
    StreamingAUC,
    StreamingSmooth,
    Windowed,
    atb,
    auc,
    binned_calibration_error,
    brier,
    calibration_curve,
    calibration_error,
    decomposition,
    mean_loss,
    mixture_calibration_error,
    smooth_calibration_error,
    windowed_calibration_error,
)

GRID = [k / 20 for k in range(21)]
MAKERS = {
    "buckets": lambda: BucketedCells(7),
    "mass": lambda: EqualMass(50),
    "smooth": lambda: StreamingSmooth(50),
    "atb": lambda: StreamingATB(50),
    "auc": lambda: StreamingAUC(50),
    "open": lambda: ExactCells(limit=100),
    "closed": lambda: ExactCells(GRID),
    "squared": MeanLoss,
    "log": lambda: MeanLoss("log"),
    "window": lambda: Windowed(5, buckets=3),
}
ORDERLESS = [name for name in MAKERS if name != "window"]

on_grid = st.lists(st.tuples(st.sampled_from(GRID), st.integers(0, 1)), max_size=40)
forecast = st.one_of(st.sampled_from([0.0, -0.0, 5e-324, 0.29, 1 - 2**-53, 1.0]), st.floats(0, 1))
anywhere = st.lists(st.tuples(forecast, st.integers(0, 1)), max_size=40)


def runs_for(name: str) -> st.SearchStrategy:
    return on_grid if name == "closed" else anywhere


def columns(run: list[tuple[float, int]]) -> tuple[list[float], list[int]]:
    return [p for p, _ in run], [y for _, y in run]


def followed(name: str, run: list[tuple[float, int]]):
    metric = MAKERS[name]()
    for round_ in run:
        metric.update(*round_)
    return metric


def same(first: object, second: object) -> bool:
    """Equal down to the last bit, nan included."""
    return repr(first) == repr(second)


@pytest.mark.parametrize("name", MAKERS)
@settings(max_examples=20)
@given(data=st.data())
def test_many_at_once_is_the_same_as_one_by_one(name: str, data: st.DataObject) -> None:
    run, more = data.draw(runs_for(name)), data.draw(runs_for(name))
    metric = followed(name, run)
    metric.update_many(*columns(more))
    assert metric == followed(name, run + more)
    assert metric.rounds == len(run) + len(more)


@pytest.mark.parametrize("name", MAKERS)
@settings(max_examples=20)
@given(data=st.data())
def test_update_and_revert_leave_no_trace(name: str, data: st.DataObject) -> None:
    run = data.draw(runs_for(name))
    extra = data.draw(runs_for(name).filter(len))[0]
    metric = followed(name, run)
    if name == "window" and metric.rounds and metric.rounds % 5 == 0:
        metric = followed(name, run[:-1])
    before = metric.to_dict()
    metric.update(*extra)
    assert metric.to_dict() != before
    metric.revert(*extra)
    assert metric.to_dict() == before


@pytest.mark.parametrize("name", ORDERLESS)
@settings(max_examples=20)
@given(data=st.data())
def test_any_round_can_be_taken_back_and_order_does_not_matter(
    name: str, data: st.DataObject
) -> None:
    run = data.draw(runs_for(name).filter(len))
    place = data.draw(st.integers(0, len(run) - 1))
    metric = followed(name, run)
    metric.revert(*run[place])
    assert metric == followed(name, (run[:place] + run[place + 1 :])[::-1])


@pytest.mark.parametrize("name", MAKERS)
@settings(max_examples=20)
@given(data=st.data())
def test_merged_parts_equal_the_whole(name: str, data: st.DataObject) -> None:
    run = data.draw(runs_for(name))
    cut = data.draw(st.integers(0, len(run) // 5)) * 5
    first, second = followed(name, run[:cut]), followed(name, run[cut:])
    untouched = second.to_dict()
    first.merge(second)
    whole = followed(name, run)
    assert same(first.result(), whole.result())
    assert first.rounds == whole.rounds
    assert name == "window" or first == whole
    assert second.to_dict() == untouched


@pytest.mark.parametrize("name", MAKERS)
@settings(max_examples=20)
@given(data=st.data())
def test_resuming_from_json_changes_nothing(name: str, data: st.DataObject) -> None:
    run, more = data.draw(runs_for(name)), data.draw(runs_for(name))
    metric = followed(name, run)
    resumed = type(metric).from_dict(json.loads(json.dumps(metric.to_dict())))
    assert resumed == metric
    assert same(resumed.result(), metric.result())
    resumed.update_many(*columns(more))
    assert resumed == followed(name, run + more)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize(
    ("forecasts", "outcomes"),
    [([0.5, 1.0000001], [1, 0]), ([0.5, math.nan], [1, 0]), ([0.5, 0.5], [1, 2]), ([0.5], [1, 0])],
)
def test_bad_input_changes_nothing(name: str, forecasts: list, outcomes: list) -> None:
    metric = followed(name, [(0.5, 1), (0.25, 0)])
    before = metric.to_dict()
    with pytest.raises(InvalidInput, match="must be"):
        metric.update_many(forecasts, outcomes)
    if len(forecasts) == len(outcomes):
        for change in (metric.update, metric.revert):
            with pytest.raises(InvalidInput, match="must be"):
                change(forecasts[1], outcomes[1])
    assert metric.to_dict() == before


@pytest.mark.parametrize("name", MAKERS)
def test_a_round_that_never_was_cannot_be_taken_back(name: str) -> None:
    metric = MAKERS[name]()
    with pytest.raises(InvalidInput) as caught:
        metric.revert(0.25, 1)
    told = "round must be one that was added before, got forecast 0.25, outcome 1"
    assert str(caught.value) == told
    assert metric == MAKERS[name]()


@pytest.mark.parametrize("name", ["buckets", "smooth", "open", "closed"])
def test_a_wrong_round_of_the_same_bucket_is_noticed_when_it_is_the_last(name: str) -> None:
    metric = followed(name, [(0.25, 1)])
    for wrong in ((0.26, 1), (0.25, 0), (0.25 - 2**-20, 1)):
        with pytest.raises(InvalidInput, match="round must be one that was added before"):
            metric.revert(*wrong)
    assert metric == followed(name, [(0.25, 1)])


@pytest.mark.parametrize("name", MAKERS)
def test_only_like_metrics_merge(name: str) -> None:
    strangers = [
        BucketedCells(8),
        StreamingSmooth(51),
        ExactCells([0.5]),
        ExactCells(limit=3),
        MeanLoss("hinge"),
        Windowed(6),
        None,
    ]
    metric = followed(name, [(0.5, 1)])
    before = metric.to_dict()
    for stranger in strangers:
        with pytest.raises(InvalidInput, match="other must be"):
            metric.merge(stranger)
        assert metric != stranger
    assert metric.to_dict() == before


@pytest.mark.parametrize("name", MAKERS)
def test_the_state_does_not_grow_with_the_rounds(name: str) -> None:
    rng = np.random.default_rng(4)
    forecasts, outcomes = rng.choice(GRID, 20_000), rng.random(20_000) < 0.5
    metric = MAKERS[name]()
    metric.update_many(forecasts[:500], outcomes[:500])
    small = len(json.dumps(metric.to_dict()))
    metric.update_many(forecasts, outcomes)
    assert len(json.dumps(metric.to_dict())) < 1.5 * small + 100


@pytest.mark.parametrize("name", MAKERS)
def test_states_that_are_not_ours_are_refused(name: str) -> None:
    metric = followed(name, [(0.5, 1)] * 7)
    good = metric.to_dict()
    bad = [None, [], {}, {**good, "kind": "Other"}, {**good, "version": 2}]
    bad += [{k: v for k, v in good.items() if k != key} for key in good]
    for state in bad:
        with pytest.raises(CorruptState, match="state must"):
            type(metric).from_dict(state)


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("buckets", "size", 0),
        ("buckets", "size", "7"),
        ("buckets", "size", 8),
        ("buckets", "counts", None),
        ("buckets", "counts", [1.5] * 14),
        ("buckets", "counts", [-1] * 14),
        ("buckets", "counts", [0] * 14),
        ("buckets", "sums", [["0"] * 14]),
        ("buckets", "sums", None),
        ("buckets", "sums", [["0"] * 14, ["0.5"] * 14]),
        ("open", "values", [0.5, 0.25]),
        ("open", "values", [0.5, 2.0]),
        ("open", "limit", 0),
        ("open", "closed", 1),
        ("open", "zeros", [1, 2, 3]),
        ("log", "loss", "cubic"),
        ("log", "loss", 3),
        ("log", "rounds", -1),
        ("log", "sum", "1.5"),
        ("log", "sum", "--1"),
        ("window", "window", 1),
        ("window", "window", 0),
        ("window", "power", 0.5),
        ("window", "closed", None),
        ("window", "worst", None),
        ("window", "worst", [0.5, 1]),
        ("window", "worst", [2.0, 0]),
        ("window", "worst", 7),
    ],
)
def test_altered_states_are_refused(name: str, key: str, value: object) -> None:
    metric = followed(name, [(0.5, 1), (0.25, 0)] * 4)
    state = {**metric.to_dict(), key: value}
    with pytest.raises(CorruptState, match="must"):
        type(metric).from_dict(state)


@settings(max_examples=25)
@given(anywhere.filter(len), st.integers(1, 30))
def test_bucketed_cells_give_what_the_batch_functions_give(run: list, buckets: int) -> None:
    p, y = columns(run)
    metric = BucketedCells(buckets)
    metric.update_many(p, y)
    for power in (1, 2):
        expected = binned_calibration_error(p, y, buckets=buckets, power=power)
        assert metric.calibration_error(power=power) == expected
    debiased = binned_calibration_error(p, y, buckets=buckets, power=2, debiased=True)
    assert metric.calibration_error(power=2, debiased=True) == debiased
    assert metric.brier() == pytest.approx(brier(p, y), abs=1e-12)
    assert metric.decomposition() == decomposition(p, y, buckets=buckets)
    assert same(metric.curve(), calibration_curve(p, y, buckets=buckets))


@given(anywhere.filter(len), st.integers(1, 60))
def test_fine_grids_keep_within_their_stated_error(run: list, resolution: int) -> None:
    p, y = columns(run)
    smooth, two_bin = StreamingSmooth(resolution), StreamingATB(resolution)
    ranking = StreamingAUC(resolution)
    for metric in (smooth, two_bin, ranking):
        metric.update_many(p, y)
    slack = 1e-12
    assert abs(smooth.result() - smooth_calibration_error(p, y)) <= smooth.error_bound + slack
    for power in (1, 2):
        error = abs(two_bin.result(power=power) - atb(p, y, power=power))
        assert error <= two_bin.error_bound + slack
    exact = auc(p, y)
    assert math.isnan(exact) == math.isnan(ranking.result()) == math.isnan(ranking.error_bound)
    assert math.isnan(exact) or abs(ranking.result() - exact) <= ranking.error_bound + slack


@given(anywhere.filter(len), st.integers(1, 60), st.integers(1, 12))
def test_buckets_of_equal_mass_keep_within_their_stated_error(run, resolution, buckets) -> None:
    p, y = columns(run)
    metric = EqualMass(resolution)
    metric.update_many(p, y)
    exact = binned_calibration_error(p, y, buckets=buckets, strategy="mass")
    stated = metric.error_bound(buckets=buckets)
    assert abs(metric.result(buckets=buckets) - exact) <= stated + 1e-12
    assert 0.0 <= stated <= 1.0


@given(on_grid.filter(len), st.integers(1, 12))
def test_buckets_of_equal_mass_are_exact_for_forecasts_from_a_coarser_grid(run, buckets) -> None:
    metric = EqualMass(1000)
    metric.update_many(*columns(run))
    exact = binned_calibration_error(*columns(run), buckets=buckets, strategy="mass")
    assert metric.result(buckets=buckets) == pytest.approx(exact, abs=1e-12)


def test_buckets_of_equal_mass_err_where_a_border_cuts_a_cell() -> None:
    metric = EqualMass(1)
    assert math.isnan(metric.result())
    assert math.isnan(metric.error_bound())
    metric.update_many([0.5] * 4, [0, 1, 0, 1])
    # All four are in one cell, and could have been two at 0.5 and two beside it.
    assert metric.result(buckets=2) == 0.0
    assert metric.error_bound(buckets=2) == 1.0
    assert metric.error_bound(buckets=1) == 0.0
    far, outcomes = [0.0, 0.0, 1.0, 1.0], [1, 1, 0, 0]
    wrong = EqualMass(1)
    wrong.update_many(far, outcomes)
    assert binned_calibration_error(far, outcomes, buckets=2, strategy="mass") == 1.0
    assert (wrong.result(buckets=2), wrong.error_bound(buckets=2)) == (0.0, 1.0)
    for asked in (metric.result, metric.error_bound, EqualMass().result):
        with pytest.raises(InvalidInput, match="buckets must be a whole number of at least 1, go"):
            asked(buckets=0)


def test_a_fine_grid_has_a_small_error_for_equal_mass() -> None:
    rng = np.random.default_rng(2)
    truth = rng.random(20_000)
    outcomes = rng.random(20_000) < truth**2
    metric = EqualMass()
    metric.update_many(truth, outcomes)
    exact = binned_calibration_error(truth, outcomes, strategy="mass")
    assert abs(metric.result() - exact) < 5e-4
    assert metric.error_bound() < 0.01


def test_the_stated_errors_are_reached_or_nearly_so() -> None:
    forecasts, outcomes = [0.0, 1.0 - 2**-53], [1, 0]
    smooth, two_bin, ranking = StreamingSmooth(1), StreamingATB(1), StreamingAUC(1)
    for metric in (smooth, two_bin, ranking):
        metric.update_many(forecasts, outcomes)
    assert smooth.error_bound == 0.5
    assert smooth_calibration_error(forecasts, outcomes) - smooth.result() == pytest.approx(0.5)
    assert two_bin.error_bound == 1.0
    assert atb(forecasts, outcomes, power=1) - two_bin.result(power=1) == pytest.approx(1.0)
    assert auc(forecasts, outcomes) == 0.0
    assert (ranking.result(), ranking.error_bound) == (0.5, 0.5)


@settings(max_examples=40)
@given(on_grid.filter(len))
def test_fine_grids_are_exact_for_forecasts_from_a_coarser_grid(run: list) -> None:
    p, y = columns(run)
    smooth, two_bin = StreamingSmooth(1000), StreamingATB(1000)
    smooth.update_many(p, y)
    two_bin.update_many(p, y)
    assert smooth.result() == pytest.approx(smooth_calibration_error(p, y), abs=1e-15)
    assert two_bin.result() == pytest.approx(atb(p, y), abs=1e-15)
    assert calibration_error(two_bin.cells) == pytest.approx(calibration_error(p, y), abs=1e-15)


@settings(max_examples=40)
@given(on_grid.filter(len))
def test_exact_cells_give_what_the_batch_functions_give(run: list) -> None:
    metric = followed("closed", run)
    assert metric.calibration_error(power=2) == calibration_error(*columns(run), power=2)
    assert smooth_calibration_error(metric.result()) == smooth_calibration_error(*columns(run))


def test_exact_cells_have_a_limit() -> None:
    metric = ExactCells(limit=2)
    metric.update_many([0.1, 0.2], [0, 1])
    with pytest.raises(InvalidInput) as caught:
        metric.update(0.3, 1)
    assert str(caught.value) == "forecasts must be at most 2 different values, got 3"
    with pytest.raises(InvalidInput, match="at most 2 different values, got 4"):
        metric.update_many([0.1, 0.3, 0.4], [0, 1, 1])
    other = ExactCells(limit=2)
    other.update(0.3, 1)
    with pytest.raises(InvalidInput, match="at most 2 different values, got 3"):
        metric.merge(other)
    assert metric.rounds == 2
    metric.revert(0.1, 0)
    metric.update(0.3, 1)
    with pytest.raises(InvalidInput, match="at most 2 different values, got 3"):
        ExactCells([0.1, 0.2, 0.3], limit=2)


def test_a_grid_admits_its_own_values_only() -> None:
    metric = ExactCells([0.5, 1.0, 0.0])
    for wrong in (0.25, float(np.nextafter(0.5, 1.0))):
        with pytest.raises(InvalidInput) as caught:
            metric.update(wrong, 1)
        assert str(caught.value) == f"forecast must be a value of the grid, got {wrong!r}"
    with pytest.raises(InvalidInput, match=r"forecast must be a value of the grid, got 0\.1"):
        metric.update_many([0.5, 0.1], [1, 0])
    assert metric.rounds == 0
    metric.update(-0.0, 1)
    assert metric.result().values.tolist() == [0.0]


@settings(max_examples=40)
@given(anywhere.filter(len))
def test_the_mean_loss_is_that_of_the_batch(run: list) -> None:
    for loss in ("squared", "log", "spherical"):
        metric = MeanLoss(loss)
        metric.update_many(*columns(run))
        assert metric.result() == pytest.approx(mean_loss(*columns(run), loss=loss), abs=1e-12)


def test_array_and_scalar_losses_agree_to_the_last_bit() -> None:
    rng = np.random.default_rng(9)
    forecasts, outcomes = rng.random(1001), rng.integers(0, 2, 1001)
    for loss in ("squared", "log", "spherical", "hinge"):
        many, single = MeanLoss(loss), MeanLoss(loss)
        many.update_many(forecasts, outcomes)
        for p, y in zip(forecasts.tolist(), outcomes.tolist(), strict=True):
            single.update(p, y)
        assert many == single


def test_an_infinite_loss_can_be_taken_back() -> None:
    metric = MeanLoss("log")
    metric.update_many([0.5, 1.0], [1, 0])
    assert metric.result() == math.inf
    metric.revert(1.0, 0)
    assert metric.result() == pytest.approx(math.log(2))
    with pytest.raises(InvalidInput, match="round must be one that was added before"):
        metric.revert(1.0, 0)


def cube(outcome: float, forecast: float) -> float:
    return (forecast - outcome) ** 3


def test_a_loss_of_ones_own_is_handed_over_again() -> None:
    metric = MeanLoss(cube)
    metric.update_many([0.25, 0.5], [1, 1])
    assert metric.result() == pytest.approx(-(0.75**3 + 0.5**3) / 2)
    state = metric.to_dict()
    assert MeanLoss.from_dict(state, cube).result() == metric.result()
    with pytest.raises(CorruptState, match="loss must be one of"):
        MeanLoss.from_dict(state)
    with pytest.raises(CorruptState, match="loss must be 'cube', got 'squared'"):
        MeanLoss.from_dict(state, "squared")


@given(anywhere, st.integers(1, 12), st.lists(st.integers(0, 12), max_size=8))
def test_windows_are_those_of_the_batch_however_the_stream_is_cut(
    run: list, window: int, cuts: list[int]
) -> None:
    p, y = columns(run)
    metric, start = Windowed(window, buckets=5), 0
    for cut in [*cuts, len(run)]:
        metric.update_many(p[start : start + cut], y[start : start + cut])
        start += cut
    expected = windowed_calibration_error(p, y, window=window, buckets=5)
    found = metric.result()
    assert found.blocks == len(expected.errors)
    assert same((found.worst, found.worst_block), (expected.worst, expected.worst_block))
    rest = len(run) % window
    partial = binned_calibration_error(p[len(p) - rest :], y[len(y) - rest :], buckets=5, power=2)
    assert same(found.partial, partial)


def test_a_closed_block_stays_closed() -> None:
    metric = Windowed(2, buckets=1)
    metric.update_many([0.5] * 3, [1, 1, 0])
    metric.revert(0.5, 0)
    assert (metric.rounds, metric.result().blocks) == (2, 1)
    with pytest.raises(InvalidInput, match="round must be one that was added before"):
        metric.revert(0.5, 1)


def test_windows_merge_at_block_borders_only() -> None:
    metric = followed("window", [(0.5, 1)] * 3)
    with pytest.raises(InvalidInput) as caught:
        metric.merge(MAKERS["window"]())
    told = "block under way must be complete before a merge, got 3 rounds of 5"
    assert str(caught.value) == told


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BucketedCells(0), "buckets must be a whole number from 1 to 1048576, got 0"),
        (lambda: StreamingSmooth(0), "resolution must be a whole number from 1 to 1048576, got 0"),
        (lambda: ExactCells(limit=0), "limit must be a whole number from 1 to 1048576, got 0"),
        (lambda: Windowed(0), "window must be a whole number of at least 1, got 0"),
        (lambda: Windowed(power=0), "power must be a finite number of at least 1, got 0"),
    ],
)
def test_bad_settings_are_refused(make, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        make()
    assert str(caught.value) == message


def test_metrics_show_their_settings() -> None:
    assert repr(BucketedCells()) == "BucketedCells(buckets=20)"
    assert repr(StreamingAUC()) == "StreamingAUC(resolution=1024)"
    assert repr(ExactCells([0.5])) == "ExactCells([0.5], limit=4096)"
    assert repr(ExactCells()) == "ExactCells(limit=4096)"
    assert repr(ExpectedCells([0.5])) == "ExpectedCells([0.5])"
    assert repr(MeanLoss("log")) == "MeanLoss('log')"
    assert repr(Windowed()) == "Windowed(window=5000, buckets=20, power=2.0)"


weights = st.floats(0, 1).map(lambda w: [w, 1 - w])
mixtures = st.lists(st.tuples(st.integers(0, 3), weights, st.integers(0, 1)), max_size=20)


def expected_cells(run: list) -> ExpectedCells:
    metric = ExpectedCells([0.0, 0.2, 0.5, 0.9, 1.0])
    for index, pair, outcome in run:
        metric.update([index, index + 1], pair, outcome)
    return metric


@settings(max_examples=40)
@given(mixtures, st.integers(0, 20))
def test_mixtures_are_followed_without_a_trace_of_order(run: list, cut: int) -> None:
    whole = expected_cells(run)
    merged, late = expected_cells(run[cut:]), expected_cells(run[:cut])
    merged.merge(late)
    assert merged == whole
    many = expected_cells([])
    indices = np.array([[i, i + 1] for i, _, _ in run], dtype=np.int64).reshape(-1, 2)
    table = np.array([w for _, w, _ in run]).reshape(-1, 2)
    many.update_many(indices, table, [y for _, _, y in run])
    assert many == whole
    assert ExpectedCells.from_dict(json.loads(json.dumps(whole.to_dict()))) == whole
    for index, pair, outcome in run:
        whole.revert([index, index + 1], pair, outcome)
    assert whole == expected_cells([])


@settings(max_examples=40)
@given(mixtures.filter(len))
def test_the_expected_error_is_that_of_the_batch(run: list) -> None:
    metric = expected_cells(run)
    grid = np.array([0.0, 0.2, 0.5, 0.9, 1.0])
    values = np.array([[grid[i], grid[i + 1]] for i, _, _ in run])
    found = mixture_calibration_error(values, [w for _, w, _ in run], [y for *_, y in run])
    assert metric.calibration_error() == pytest.approx(found, abs=1e-12)
    assert metric.rounds == len(run)


@pytest.mark.parametrize(
    ("indices", "mixture", "outcome"),
    [
        ([0, 5], [0.5, 0.5], 1),
        ([-1, 0], [0.5, 0.5], 1),
        ([0.0, 1.0], [0.5, 0.5], 1),
        ([0], [0.5, 0.5], 1),
        ([0, 1], [0.5, 0.6], 1),
        ([0, 1], [0.5, 0.5], 2),
    ],
)
def test_bad_mixtures_change_nothing(indices: list, mixture: list, outcome: int) -> None:
    metric = expected_cells([(0, [0.5, 0.5], 1)])
    before = metric.to_dict()
    for change in (metric.update, metric.revert):
        with pytest.raises(InvalidInput, match="must be"):
            change(indices, mixture, outcome)
    with pytest.raises(InvalidInput, match="arrays must be of one length"):
        metric.update_many([[0, 1]], [[0.5, 0.5]], [1, 0])
    assert metric.to_dict() == before


def test_a_mixture_that_never_was_cannot_be_taken_back() -> None:
    metric = expected_cells([(0, [0.5, 0.5], 1)])
    for indices, outcome in (([0, 1], 0), ([1, 2], 1)):
        with pytest.raises(InvalidInput, match="round must be one that was added before"):
            metric.revert(indices, [0.5, 0.5], outcome)
    with pytest.raises(InvalidInput, match="round must be one that was added before"):
        expected_cells([]).revert([0], [1.0], 1)


def test_mixtures_live_on_one_grid() -> None:
    metric = expected_cells([])
    for stranger in (ExpectedCells([0.5]), None):
        with pytest.raises(InvalidInput, match="other must be ExpectedCells of the same grid"):
            metric.merge(stranger)
        assert metric != stranger
    for values in ([], [0.5, 0.5], [0.5, 0.2]):
        with pytest.raises(InvalidInput, match="values must be distinct and in ascending order"):
            ExpectedCells(values)
    state = metric.to_dict()
    for key, value in (("values", [0.5, 0.2]), ("sums", ["1"]), ("rounds", "x")):
        with pytest.raises(CorruptState, match="must be"):
            ExpectedCells.from_dict({**state, key: value})
