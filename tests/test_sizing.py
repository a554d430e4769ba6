"""From a target accuracy to a recalibrator that reaches it."""

from __future__ import annotations

import math

import pytest
import registered

from calibrant import Calibrant, Recalibrator
from calibrant.bounds import regret_bound, regret_limit
from calibrant.core.grid import GRIDS
from calibrant.errors import CalibrantError, InvalidInput
from calibrant.losses import CustomLoss, Squared
from calibrant.registry import calibrators
from calibrant.transforms import OnlinePlatt

pytestmark = pytest.mark.base

METHODS = [name for name in calibrators.names() if registered.bounded(name)]
LOSSES = ("squared", "log", "misclassification", "spherical")
ETERNITY = 10**24


def limit_of(rec: Recalibrator, loss: str) -> float:
    """What the bound on the regret has fallen to after ages."""
    rule = rec.calibrator
    bound = rule.bound(ETERNITY, buckets=rec.buckets, prior=rec.prior)
    low, high = float(rule.lattice.values[0]), float(rule.lattice.values[-1])
    return regret_bound(bound, loss, rec.buckets, low=low, high=high).value


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("method", METHODS)
def test_the_regret_tends_to_at_most_epsilon_on_every_grid(method, grid, loss) -> None:
    if loss == "log" and grid == "endpoints":
        with pytest.raises(InvalidInput, match=r"^epsilon must be reachable with 65536 cells"):
            Recalibrator.from_epsilon(0.3, loss=loss, method=method, grid=grid, seed=1)
        return
    rec = Recalibrator.from_epsilon(0.3, loss=loss, method=method, grid=grid, seed=1)
    assert rec.calibrator.grid == grid
    assert rec.calibrator.resolution == rec.buckets
    assert rec.certificate().loss_name == loss
    assert limit_of(rec, loss) <= 0.3 * (1 + 1e-6)
    assert regret_limit(loss, rec.buckets, rec.buckets, grid) < 0.3


def test_a_grid_that_is_coarse_somewhere_needs_more_points() -> None:
    sizes = {}
    for grid in GRIDS:
        rec = Recalibrator.from_epsilon(0.1, method="regret_matching", grid=grid, seed=1)
        sizes[grid] = rec.buckets
    assert sizes == {"endpoints": 15, "midpoints": 15, "logit": 25, "arcsine": 21, "graded": 32}


def test_what_is_left_open_makes_up_for_what_is_given() -> None:
    kept = Recalibrator.from_epsilon(0.1, resolution=40, seed=1)
    assert (kept.calibrator.resolution, kept.buckets) == (40, 15)
    fewer = Recalibrator.from_epsilon(0.1, method="regret_matching", buckets=9, seed=1)
    assert (fewer.calibrator.resolution, fewer.buckets) == (22, 9)
    assert limit_of(fewer, "squared") <= 0.1
    coarse = Recalibrator.from_epsilon(
        0.4, loss="misclassification", method="regret_matching", resolution=6, seed=1
    )
    assert coarse.buckets % 2 == 0
    # The average gap is judged by its own bound, on C2.
    assert Recalibrator.from_epsilon(0.1, resolution=2, seed=1).buckets == 15


def test_both_may_be_given_if_they_reach_it() -> None:
    rec = Recalibrator.from_epsilon(0.1, resolution=4, buckets=12, seed=1)
    assert (rec.calibrator.resolution, rec.buckets) == (4, 12)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            {"method": "running_mean"},
            "method must have a bound to promise an epsilon, got 'running_mean'",
        ),
        (
            {"resolution": 1},
            "epsilon must be at least 0.282222, the limit of the regret with resolution 1 and "
            "buckets 15 on the grid 'endpoints', got 0.1",
        ),
        (
            {"resolution": 2, "method": "regret_matching"},
            "epsilon must be at least 0.532222, the limit of the regret with resolution 2 and "
            "buckets 15 on the grid 'endpoints', got 0.1",
        ),
        (
            {"resolution": 20, "buckets": 4},
            "epsilon must be at least 0.103164, the limit of the regret with resolution 20 and "
            "buckets 4 on the grid 'endpoints', got 0.1",
        ),
        (
            {"loss": "misclassification", "buckets": 3},
            "epsilon must be at least 1.08333, the limit of the regret with resolution 12 and "
            "buckets 3 on the grid 'endpoints', got 0.1",
        ),
        (
            {"method": "blackwell", "step": "fixed", "eta": 0.01, "resolution": 15, "buckets": 15},
            "epsilon must be at least 0.108889, the limit of the regret with resolution 15 and "
            "buckets 15 on the grid 'endpoints', got 0.1",
        ),
    ],
    ids=str,
)
def test_what_cannot_reach_it_is_refused_with_the_numbers(options, text) -> None:
    with pytest.raises(InvalidInput) as refused:
        Recalibrator.from_epsilon(0.1, seed=1, **options)
    assert str(refused.value) == text


def test_a_step_that_is_fixed_may_be_small_enough() -> None:
    options = {"method": "blackwell", "step": "fixed", "eta": 1e-5}
    assert limit_of(Recalibrator.from_epsilon(0.1, seed=1, **options), "squared") <= 0.1


def squared(outcome: float, forecast: float) -> float:
    return 100 * (outcome - forecast) ** 2


@pytest.mark.parametrize("loss", [squared, CustomLoss(squared), CustomLoss(abs, "squared")])
def test_a_loss_is_not_known_by_its_name(loss) -> None:
    with pytest.raises(CalibrantError, match=r"^loss must be "):
        Recalibrator.from_epsilon(1.0, loss=loss, seed=1)


def test_a_loss_of_ones_own_is_sent_elsewhere() -> None:
    with pytest.raises(InvalidInput) as refused:
        Recalibrator.from_epsilon(1.0, loss=squared, seed=1)
    assert str(refused.value) == (
        "loss must be one of 'squared', 'log', 'misclassification', 'spherical', which a "
        "recalibrator can add up, got 'squared'; calibrant.bounds.resolution_sharp gives the "
        "size for any proper loss"
    )


def test_a_loss_may_be_given_as_itself() -> None:
    rec = Recalibrator.from_epsilon(0.1, loss=Squared(), seed=1)
    assert rec == Recalibrator.from_epsilon(0.1, seed=1)
    assert math.isclose(limit_of(rec, "squared"), 1 / 900 + Squared().bucket_cost(15), rel_tol=1e-6)


def test_sizes_left_open_grow_for_a_rule_that_needs_more() -> None:
    options = {"method": "blackwell", "step": "fixed", "eta": 0.01}
    rec = Recalibrator.from_epsilon(0.1, seed=1, **options)
    assert rec.calibrator.resolution == rec.buckets > 15
    assert limit_of(rec, "squared") <= 0.1 * (1 + 1e-6)


# Chains: what sharing costs is taken off first.


@pytest.mark.parametrize(("epsilon", "resolution"), [(0.001, 22), (0.01, 6)])
def test_a_chain_is_as_fine_as_its_epsilon_needs(epsilon: float, resolution: int) -> None:
    model = Calibrant.from_epsilon(epsilon, seed=1)
    assert model == Calibrant(method="anchored", resolution=resolution, seed=1)
    with pytest.raises(InvalidInput) as refused:
        Calibrant.from_epsilon(epsilon, resolution=resolution - 1, seed=1)
    told = f"epsilon must be one that resolution {resolution - 1} can promise"
    assert str(refused.value) == f"{told}, got {epsilon}"


def test_a_chain_keeps_a_resolution_that_is_finer_than_needed() -> None:
    model = Calibrant.from_epsilon(0.001, resolution=40, seed=1)
    assert model == Calibrant(method="anchored", resolution=40, seed=1)


def test_a_chain_with_another_rule_or_loss_is_sized_as_a_recalibrator() -> None:
    model = Calibrant.from_epsilon(0.1, method="foster_hart", share=0.0, seed=1)
    rec = Recalibrator.from_epsilon(0.1, method="foster_hart", seed=1)
    assert (model.calibrator, model.buckets) == (rec.calibrator, rec.buckets)
    model = Calibrant.from_epsilon(0.3, loss="log", share=0.0, seed=1)
    rec = Recalibrator.from_epsilon(0.3, loss="log", method="anchored", seed=1)
    assert (model.calibrator, model.buckets) == (rec.calibrator, rec.buckets)
    assert model.certificate().loss_name == "log"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            {"experts": OnlinePlatt()},
            f"experts must hold Identity() to promise an epsilon, got {OnlinePlatt()!r}",
        ),
        ({"share": 0.5}, "epsilon must be above 0.407734, what sharing costs, got 0.01"),
        ({"strength": 0.0}, "epsilon must be one that resolution 4096 can promise, got 0.01"),
    ],
    ids=["no identity", "sharing", "no pull"],
)
def test_a_chain_that_cannot_promise_an_epsilon_is_refused(options, text) -> None:
    with pytest.raises(InvalidInput) as refused:
        Calibrant.from_epsilon(0.01, seed=1, **options)
    assert str(refused.value) == text
