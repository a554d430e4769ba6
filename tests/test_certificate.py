from __future__ import annotations

import json
import math
import random
from collections import deque

import naive_bounds
import naive_metrics as naive
import naive_refining
import numpy as np
import players
import pytest
import registered
from naive_losses import FORMULAS

from calibrant import Certificate, Recalibrator
from calibrant.bounds import regret_bound
from calibrant.bounds.game import EXPECTED, PATHWISE
from calibrant.calibrators import FosterHart
from calibrant.core.grid import GRIDS
from calibrant.errors import InvalidInput
from calibrant.losses import get_loss
from calibrant.metrics import calibration_error, mean_loss
from calibrant.recalibrate.certificate import certify
from calibrant.registry import calibrators

pytestmark = pytest.mark.base

NAMES = calibrators.names()
LOSSES = ("squared", "log", "misclassification", "spherical")
every_name = pytest.mark.parametrize("name", NAMES)

VARIANTS = {name: (name, {}) for name in NAMES} | {
    "blackwell, sqrt": ("blackwell", {"step": "sqrt"}),
    "blackwell, fixed": ("blackwell", {"step": "fixed", "horizon": 150}),
    "blackwell, expected": ("blackwell", {"updates": "expected"}),
    "exponential_regret, realised": ("exponential_regret", {"updates": "realised"}),
    "exponential_regret, horizon": ("exponential_regret", {"horizon": 150}),
    "polynomial_regret, expected": ("polynomial_regret", {"updates": "expected"}),
}
every_variant = pytest.mark.parametrize("variant", VARIANTS)

QUANTITIES = {
    "anchored": [*["C2", "C1", "regret"] * 2, "regret"],
    "blackwell": ["C1", "regret"] * 2,
    "blackwell, sqrt": ["C1", "regret"],
    "blackwell, fixed": ["C1", "regret"],
    "blackwell, expected": ["C1", "regret", "pseudo C1"] * 2,
    "exponential_regret": ["C1", "regret", "pseudo C2"],
    "fading": [],
    "growing": [*["C2", "C1", "regret"] * 2, "regret"],
    "exponential_regret, realised": ["C2", "C1", "regret"],
    "exponential_regret, horizon": ["C1", "regret", "pseudo C2"],
    "foster99": ["C1", "regret"] * 2,
    "foster_hart": ["C2", "C1", "regret"] * 2,
    "polynomial_regret": ["C2", "C1", "regret"],
    "polynomial_regret, expected": ["C1", "regret", "pseudo C2"],
    "regret_matching": ["C1", "regret"] * 2,
    "running_mean": [],
}
"""What is promised of those we know, worst case first and then what was counted."""


def follows(rec: Recalibrator) -> list[str]:
    """Return which promises the theorems of a rule come to."""
    rule, account = rec.calibrator, rec._account()
    worst = rule.bound(rec.rounds, buckets=rec.buckets, prior=rec.prior)
    found = [part for part in (worst, rule.measured(account)) if part is not None]
    each = {"C2": ["C2", "C1", "regret"], "C1": ["C1", "regret"]}
    told = [each.get(b.quantity, ["C1", "regret", b.quantity]) for b in found]
    own = [] if rule.regret(account) is None else ["regret"]
    return [quantity for part in told for quantity in part] + own


def played(variant: str, rounds: int = 150, **options: object):
    name, parameters = VARIANTS[variant]
    rec = Recalibrator(name, **({"resolution": 5, "buckets": 4, "seed": 6} | parameters | options))
    raw, outcomes = players.stream(rounds, 3, edges=20)
    return rec, raw, outcomes, rec.replay(raw, outcomes)


def clipped(raw: list[float]) -> list[float]:
    return [min(max(p, 0.01), 0.99) for p in raw]


# What was measured.


@pytest.mark.parametrize("grid", GRIDS)
@every_name
def test_calibration_errors_are_those_of_the_draws(name: str, grid: str) -> None:
    rec, _, outcomes, run = played(name, grid=grid, prior=2)
    record = rec.certificate()
    drawn = run.forecast
    assert record.rounds == 150
    for power, overall, apart in (
        (1, record.c1, record.c1_buckets),
        (2, record.c2, record.c2_buckets),
    ):
        assert overall == pytest.approx(calibration_error(drawn, outcomes, power=power), abs=1e-13)
        slow = naive.calibration_error(drawn.tolist(), outcomes, power)
        assert overall == pytest.approx(slow, abs=1e-13)
        told, parts = np.array(outcomes), []
        for j in set(run.bucket.tolist()):
            here = run.bucket == j
            parts.append(here.mean() * calibration_error(drawn[here], told[here], power=power))
        assert apart == pytest.approx(sum(parts), abs=1e-13)
        assert overall <= apart + 1e-13


@pytest.mark.parametrize("loss", LOSSES)
@every_name
def test_losses_and_regret_are_those_of_the_draws(name: str, loss: str) -> None:
    grid = "endpoints" if registered.refuses(name, "midpoints") else "midpoints"
    rec = Recalibrator(name, resolution=6, grid=grid, buckets=4, seed=6, loss=loss)
    raw, outcomes = players.stream(80, 4)
    raw = clipped(raw)
    run = rec.replay(raw, outcomes)
    record, price = rec.certificate(), get_loss(loss)
    assert record.loss_name == loss
    assert record.loss == pytest.approx(float(price(outcomes, run.forecast).mean()), abs=1e-13)
    assert record.raw_loss == pytest.approx(float(price(outcomes, np.array(raw)).mean()), abs=1e-13)
    assert record.regret == record.loss - record.raw_loss
    assert record.raw_loss == pytest.approx(mean_loss(raw, outcomes, loss=loss), abs=1e-13)


def test_the_log_loss_of_a_certain_error_is_infinite() -> None:
    rec = Recalibrator(resolution=4, buckets=1, seed=1, prior=0, loss="log")
    for _ in range(4):
        rec.learn_one(0.5, 1)
    assert rec.certificate().loss < math.inf
    rec.learn_one(0.5, 1)
    assert rec.predict_one(0.5) == 1.0
    rec.learn_one(0.5, 0)
    record = rec.certificate()
    assert record.loss == math.inf
    assert record.raw_loss == pytest.approx(math.log(2))
    assert Recalibrator.from_bytes(rec.to_bytes()).certificate() == record


@every_name
def test_open_and_expired_tickets_are_counted_apart(name: str) -> None:
    rec = Recalibrator(name, resolution=4, buckets=2, seed=1, max_open=10)
    tickets = [rec.forecast(0.3) for _ in range(25)]
    for ticket in tickets[15:18]:
        rec.observe(ticket, 1)
    record = rec.certificate()
    assert (record.rounds, record.open, record.expired) == (3, 7, 15)
    assert record.method == name


def test_before_the_first_outcome_there_is_nothing_to_promise() -> None:
    rec = Recalibrator(seed=1)
    rec.forecast(0.5)
    record = rec.certificate()
    assert (record.rounds, record.open, record.c1, record.c2, record.loss) == (0, 1, 0.0, 0.0, 0.0)
    assert record.bounds == ()
    assert record.holds is None
    assert record.bound("C1") is None


# What was promised.


@pytest.mark.parametrize("prior", [0, 3])
@every_variant
def test_every_theorem_of_a_calibrator_is_there(variant: str, prior: int) -> None:
    rec, *_ = played(variant, prior=prior)
    record = rec.certificate()
    wanted = follows(rec)
    assert wanted == QUANTITIES.get(variant, wanted)
    assert [bound.quantity for bound in record.bounds] == wanted
    worst = rec.calibrator.bound(150, buckets=4, prior=prior)
    assert worst is None or worst in record.bounds
    for quantity in set(wanted):
        found = [float(b) for b in record.bounds if b.quantity == quantity]
        assert record.bound(quantity) == min(found)


@pytest.mark.parametrize("prior", [0, 1, 5])
@pytest.mark.parametrize("rounds", [1, 10, 150, 600])
@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize(
    "variant", ["foster_hart", "foster99", "regret_matching", "blackwell", "blackwell, expected"]
)
def test_what_was_counted_only_tightens_a_bound(variant, grid, rounds, prior) -> None:
    rec, *_ = played(variant, rounds=rounds, grid=grid, prior=prior)
    record = rec.certificate()
    half = len(record.bounds) // 2
    assert half > 0
    for worst, measured in zip(record.bounds[:half], record.bounds[half:], strict=True):
        assert worst.quantity == measured.quantity
        assert measured.value <= worst.value * (1 + 1e-12)
        power = 2 if "C2" in worst.quantity else 1
        if worst.quantity.endswith(("C1", "C2")):
            assert measured.value >= rec.calibrator.lattice.half_cell**power


@every_variant
def test_a_long_game_stays_below_every_worst_case(variant: str) -> None:
    rounds = 250 if registered.on_all_cells(VARIANTS[variant][0]) else 3_000
    rec, *_ = played(variant, rounds=rounds)
    record = rec.certificate()
    worst = rec.calibrator.bound(rounds, buckets=4, prior=1)
    if worst is None:
        assert record.holds is None
        return
    measured = {"C1": record.c1_buckets, "C2": record.c2_buckets}
    if worst.quantity in measured:
        assert measured[worst.quantity] <= worst.value
    assert record.regret <= regret_bound(worst, "squared", 4).value
    # After 250 rounds no bound on this very run says more than what is always true.
    assert record.holds is (None if rounds == 250 else True)


def test_a_record_that_breaks_a_bound_does_not_hold() -> None:
    rec, *_ = played("foster_hart")
    record = rec.certificate()
    assert record.holds is True
    broken = Certificate(**{**vars(record), "c2": 2.0})
    assert broken.holds is False


def test_bounds_of_an_improper_comparison_are_left_out() -> None:
    rec, *_ = played("foster_hart")
    record = certify(rec.calibrator, rec._account(), get_loss("absolute"), 3.0, 0, 0)
    assert [bound.quantity for bound in record.bounds] == ["C2", "C1"] * 2
    assert record.loss_name == "absolute"
    rec, *_ = played("exponential_regret")
    record = certify(rec.calibrator, rec._account(), get_loss("absolute"), 3.0, 0, 0)
    assert [bound.quantity for bound in record.bounds] == ["C1", "pseudo C2"]


CURVATURES = {
    "squared": lambda low, high: 1.0,
    "log": lambda low, high: 1 / min(low * (1 - low), high * (1 - high)) if low else math.inf,
    "misclassification": lambda low, high: math.inf,
    "spherical": lambda low, high: math.sqrt(2),
}


def late_rounds(rec: Recalibrator, rounds: int, delay: int):
    """Play with so many outcomes outstanding at each forecast; return what was played."""
    raw, outcomes = players.stream(rounds, 3, edges=20)
    waiting, seen = deque(), []
    for p, y in zip(raw, outcomes, strict=True):
        if len(waiting) > delay:
            rec.observe(*waiting.popleft())
        ticket = rec.forecast(p)
        waiting.append((ticket, y))
        mixture = tuple(zip(ticket.mixture.indices, ticket.mixture.weights, strict=True))
        seen.append((ticket.bucket, ticket.index, y, mixture))
    for ticket, y in waiting:
        rec.observe(ticket, y)
    return seen


@pytest.mark.parametrize(("rounds", "prior", "delay"), [(70, 0, 0), (70, 3, 0), (12, 1, 0)])
@pytest.mark.parametrize("grid", GRIDS)
@every_variant
def test_every_promise_is_what_the_rounds_alone_say(variant, grid, rounds, prior, delay) -> None:
    promises_are_what_the_rounds_say(variant, grid, rounds, prior, delay)


@pytest.mark.parametrize("prior", [0, 2])
@pytest.mark.parametrize("grid", ["endpoints", "logit"])
@every_variant
def test_every_promise_counts_late_outcomes(variant: str, grid: str, prior: int) -> None:
    promises_are_what_the_rounds_say(variant, grid, 40, prior, delay=3)


def promises_are_what_the_rounds_say(variant, grid, rounds, prior, delay) -> None:
    name, parameters = VARIANTS[variant]
    rec = Recalibrator(name, resolution=5, grid=grid, buckets=4, prior=prior, seed=6, **parameters)
    seen, values = late_rounds(rec, rounds, delay), rec.calibrator.lattice.values.tolist()
    assert rec.delay == delay
    r = naive_bounds.Run(seen, values, 4, prior, delay)
    found = naive_bounds.theorems(r, name, grid == "midpoints", **parameters)
    for loss in LOSSES:
        price, ends = get_loss(loss), (values[0], values[-1])
        priced = naive_bounds.priced(
            FORMULAS[loss],
            CURVATURES[loss](*ends),
            price.comparators(4).tolist(),
            price.bucket_cost(4),
            values,
        )
        wanted = [part for bound in found for part in naive_bounds.promises(r, bound, priced)]
        if name == "anchored" and loss == "squared" and not delay:
            wanted.append(("regret", naive_bounds.anchored_regret(r, values)))
        if name == "refining" and loss == "squared" and not delay:
            wanted.append(("regret", naive_refining.regret(r)))
        if name == "growing" and loss == "squared" and not delay:
            wanted.append(("regret", naive_bounds.coarse_regret(r, 5)))
        record = certify(rec.calibrator, rec._account(), price, 0.0, 0, 0)
        assert [b.quantity for b in record.bounds] == [quantity for quantity, _ in wanted]
        told = [b.value for b in record.bounds]
        assert told == pytest.approx([value for _, value in wanted], rel=1e-9)


@pytest.mark.parametrize(
    "variant", ["exponential_regret", "polynomial_regret, expected", "blackwell, expected"]
)
def test_what_is_promised_of_draws_says_that_it_is_an_expectation(variant: str) -> None:
    rec, *_ = played(variant)
    record = rec.certificate()
    for bound in record.bounds:
        sure = bound.quantity.startswith("pseudo")
        assert bound.assumption == (PATHWISE if sure else EXPECTED)
    assert all(f"probability at least {0.95:g}" in bound.assumption for bound in record.sure)
    assert record.holds is None


# How it is told.


def test_a_certificate_reads_well() -> None:
    rec, *_ = played("foster_hart")
    record = rec.certificate()
    lines = str(record).splitlines()
    assert lines[0] == "foster_hart: 150 rounds, 0 open, 0 expired"
    losses = f"squared loss {record.loss:.5f}, raw {record.raw_loss:.5f}"
    assert lines[1] == f"  measured: C1 {record.c1:.5f}, C2 {record.c2:.6f}, {losses}"
    told = ", ".join(f"{name} <= {record.promised(name):.4g}" for name in ("C1", "C2", "regret"))
    who = "against any adversary who does not see the draw"
    assert lines[2] == f"  promised with probability 0.95, {who}: {told}; kept"
    assert lines[3:] == [
        "  seeded: anyone who knows the seed can predict the draws; no bound holds against them"
    ]


def test_the_baseline_says_that_it_promises_nothing() -> None:
    rec, *_ = played("running_mean")
    assert str(rec.certificate()).splitlines()[2:] == ["  no guarantee"]


def test_before_the_first_round_there_is_no_verdict_to_tell() -> None:
    for name in ("foster_hart", "running_mean"):
        rec = Recalibrator(name, seed=1)
        assert str(rec.certificate()).splitlines()[2:] == ["  no rounds yet"]


def test_late_outcomes_without_a_theorem_are_counted() -> None:
    rec = Recalibrator("blackwell", resolution=4, buckets=1, seed=1)
    late_rounds(rec, 10, 2)
    told = str(rec.certificate()).splitlines()[2:]
    assert told == ["  no guarantee with 2 outcomes outstanding"]


def test_bounds_on_expectations_alone_are_told_where_no_single_run_has_any() -> None:
    rec = Recalibrator("regret_matching", seed=1)
    rec.replay(np.full(300, 0.4), np.arange(300) % 2, available=np.arange(300) + 3.0)
    made = rec.certificate()
    assert made.sure == ()
    assert {bound.quantity for bound in made.bounds} == {"C1", "regret"}
    told = "no guarantee with 2 outcomes outstanding; bounds on expectations in details()"
    assert str(made).splitlines()[2] == f"  {told}"
    assert "in expectation over the draws" in made.details()


def test_two_infinite_losses_are_not_compared_and_not_written_as_numbers() -> None:
    rec = Recalibrator(resolution=4, buckets=2, seed=1, prior=0, loss="log")
    for _ in range(10):
        rec.learn_one(1.0, 1)
    rec.learn_one(1.0, 0)
    record = rec.certificate()
    assert record.loss == record.raw_loss == math.inf
    assert math.isnan(record.regret)
    assert record.bound("regret") == math.inf
    assert record.holds is None
    data = json.loads(json.dumps(record.to_dict(), allow_nan=False))
    assert (data["loss"], data["raw_loss"], data["regret"]) == (None, None, None)
    assert None in [bound["value"] for bound in data["bounds"]]
    assert data["c1"] == record.c1


@every_variant
def test_a_certificate_is_data(variant: str) -> None:
    rec, *_ = played(variant)
    record = rec.certificate()
    data = json.loads(json.dumps(record.to_dict()))
    assert data["method"] == record.method
    assert data["holds"] == record.holds
    assert [b["value"] for b in data["bounds"]] == [b.value for b in record.bounds]
    numbers = {
        key: data[key] for key in ("rounds", "open", "expired", "c1", "c2", "loss", "regret")
    }
    assert numbers == {key: getattr(record, key) for key in numbers}


def test_taking_a_certificate_changes_nothing() -> None:
    rec, *_ = played("foster_hart")
    before = rec.to_bytes()
    assert rec.certificate() == rec.certificate()
    assert rec.to_bytes() == before


def test_a_calibrator_given_as_itself_is_certified_by_its_name() -> None:
    rec = Recalibrator(FosterHart(resolution=3), seed=1)
    rec.learn_one(0.5, 1)
    assert rec.certificate().method == "foster_hart"


# What holds of this very run.


@pytest.mark.slow
@every_variant
@pytest.mark.parametrize("prior", [0, 1])
def test_what_is_sure_is_kept_in_almost_every_run(variant: str, prior: int) -> None:
    name, options = VARIANTS[variant]
    broken, runs = 0, 40
    for seed in range(runs):
        rec = Recalibrator(name, buckets=1, resolution=2, prior=prior, seed=seed, **options)
        rng = random.Random(seed)
        for _ in range(60):
            rec.learn_one(rng.random(), int(rng.random() < 0.4))
        made = rec.certificate(failure=0.2)
        told = {"C1": made.c1, "C2": made.c2, "regret": made.regret}
        broken += any(told[b.quantity] > b.value for b in made.sure if b.quantity in told)
        assert made.failure == 0.2
    assert broken <= runs * 0.2


@every_variant
def test_a_smaller_chance_to_fail_costs_more(variant: str) -> None:
    rec, *_ = played(variant)
    often, seldom = rec.certificate(failure=0.5).sure, rec.certificate(failure=0.001).sure
    assert [b.quantity for b in often] == [b.quantity for b in seldom]
    assert all(a.value < b.value for a, b in zip(often, seldom, strict=True))
    assert bool(often) is (rec.calibrator.bound(10) is not None)


@pytest.mark.parametrize("method", ["foster_hart", "anchored", "growing"])
def test_what_is_sure_about_c2_is_the_mean_and_what_azuma_adds(method: str) -> None:
    rec, *_ = played(method)
    made, drift = rec.certificate(failure=0.2), 0.2 if method == "foster_hart" else 0.1
    mean = rec.calibrator.measured(rec._account())
    excess = math.sqrt(2 * math.log(1 / drift) / made.rounds)
    assert made.sure[0].value == pytest.approx(mean.value + excess, rel=1e-12)
    assert made.sure[1].value == pytest.approx(math.sqrt(mean.value + excess), rel=1e-12)


@pytest.mark.parametrize("chance", [0.0, 1.0, -1.0, float("nan")])
def test_a_chance_to_fail_lies_between_0_and_1(chance: float) -> None:
    rec, *_ = played("foster_hart")
    with pytest.raises(InvalidInput, match="failure must be a number in"):
        rec.certificate(failure=chance)


def test_what_is_always_true_is_not_said_to_hold() -> None:
    rec = Recalibrator(seed=1)
    rec.learn_one(0.3, 1)
    assert rec.certificate().sure
    assert rec.certificate().holds is None
