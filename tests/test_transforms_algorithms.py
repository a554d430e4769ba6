"""Each transform against a slow, obvious version of itself, and against its promise."""

from __future__ import annotations

import math
from typing import Any

import naive_transforms as naive
import numpy as np
import pytest
import registered
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant import bounds
from calibrant.errors import CalibrantError
from calibrant.kernels import bits
from calibrant.kernels.coin import coin
from calibrant.kernels.transforms import (
    aosa,
    beta,
    hats,
    means,
    mixture,
    platt,
    regret,
    window,
)
from calibrant.kernels.transforms.kernel import Kernel
from calibrant.registry import transforms
from calibrant.transforms import (
    AOSA,
    BucketHedge,
    BucketMeans,
    Cascade,
    Defensive,
    ExpertMixture,
    HatMeans,
    Hedging,
    Identity,
    Interval,
    Online,
    OnlineBeta,
    OnlinePlatt,
    PlattSGD,
    RecalibrateRegret,
    Temperature,
    Tracking,
    Transform,
    WindowedIsotonic,
    WindowedPlatt,
)

Stream = tuple[np.ndarray, np.ndarray]
rounds_of = st.lists(
    st.tuples(st.integers(0, 40).map(lambda k: k / 40), st.integers(0, 1)), min_size=1, max_size=80
)


def stream(rounds: int = 400, seed: int = 0, slope: float = 0.6) -> Stream:
    random = np.random.default_rng(seed)
    raw = random.random(rounds)
    return raw, (random.random(rounds) < 0.5 + slope * (raw - 0.5)).astype(np.uint8)


def columns(rounds: list[tuple[float, int]]) -> Stream:
    raw, outcomes = zip(*rounds, strict=True)
    return np.array(raw), np.array(outcomes, np.uint8)


def coins(seed: int, rounds: int) -> list[float]:
    return [coin(seed, t) for t in range(rounds)]


# As their obvious versions.


@pytest.mark.parametrize("name", list(filter(registered.obvious_transform, transforms.names())))
def test_a_transform_plays_as_its_obvious_version_does(name: str) -> None:
    told = transforms.get(name)().online().replay(*stream())
    assert told == pytest.approx(registered.obvious_transform(name)(stream()), abs=1e-9)


ELSEWHERE = {
    "aosa": "test_the_biases_of_aosa_never_leave_their_interval",
    "bucket_hedge": "test_bucket_hedge_draws_as_the_rule_says",
    "cascade": "test_recalibrate_regret_and_the_cascade_on_the_papers_stream",
    "defensive": "test_defensive_forecasts_are_roots_of_the_test",
    "hedging": "test_hedging_is_the_chain_that_its_name_says",
    "mixture": "test_mixtures_weigh_their_experts_as_they_say",
    "platt_sgd": "test_descent_from_zero_is_rivers_logistic_regression",
    "recalibrate_regret": "test_recalibrate_regret_draws_as_the_rule_says",
    "windowed_isotonic": "test_windowed_isotonic_is_scikit_learns_fit_of_the_window",
    "windowed_platt": "test_windowed_platt_is_the_batch_fit_of_the_window",
}
"""Transforms that toss coins, that other libraries have too, or that follow from others: the
test that compares each."""


def test_every_rule_has_an_obvious_version_or_is_compared_elsewhere() -> None:
    assert registered.without_oracle() == sorted(ELSEWHERE)
    assert set(ELSEWHERE.values()) <= set(globals())


# Scaling.


def test_online_platt_makes_the_newton_steps() -> None:
    told = OnlinePlatt(gamma=0.3, rho=20.0).online().replay(*stream())
    assert told == pytest.approx(naive.platt(stream(), 0.3, 20.0), abs=1e-10)


def test_online_beta_makes_the_newton_steps() -> None:
    told = OnlineBeta(gamma=0.3, rho=20.0).online().replay(*stream())
    assert told == pytest.approx(naive.beta(stream(), 0.3, 20.0), abs=1e-9)


def test_temperature_makes_the_newton_steps() -> None:
    told = Temperature(gamma=0.3, rho=20.0).online().replay(*stream())
    assert told == pytest.approx(naive.temperature(stream(), 0.3, 20.0), abs=1e-10)


def test_the_factor_of_temperature_stays_in_its_range() -> None:
    online = Temperature(rho=1e-6, radius=2.0).online()
    for _ in range(20):
        online.learn_one(0.9, 0)
        assert -2.0 <= online.words[3] <= 2.0
    assert online.words[3] == -2.0


def test_descent_from_zero_is_rivers_logistic_regression() -> None:
    linear_model = pytest.importorskip("river.linear_model")
    model, online = linear_model.LogisticRegression(), PlattSGD(start="zero").online()
    for raw, y in zip(*stream(300), strict=True):
        x = {"log-odds": naive.logit(raw)}
        assert online.predict_one(raw) == pytest.approx(model.predict_proba_one(x)[True], abs=1e-12)
        model.learn_one(x, bool(y))
        online.learn_one(raw, int(y))


def log_loss(told: Any, outcomes: Any) -> float:
    return float(-np.log(np.where(outcomes == 1, told, 1.0 - np.asarray(told))).sum())


@pytest.mark.parametrize("slope", [0.2, 0.6, -0.8])
def test_the_regret_of_newton_steps_grows_like_a_logarithm(slope: float) -> None:
    optimize = pytest.importorskip("scipy.optimize")
    raw, outcomes = stream(4000, seed=3, slope=slope)
    told = OnlinePlatt().online().replay(raw, outcomes)
    x = np.array([naive.logit(p) for p in raw])

    def total(theta: Any) -> float:
        z = theta[0] * x + theta[1]
        return float((np.logaddexp(0.0, z) - outcomes * z).sum())

    best = optimize.minimize(total, [1.0, 0.0])
    radius = max(float(np.linalg.norm(best.x)), 1.0)
    regret_made = log_loss(told, outcomes) - best.fun
    assert regret_made <= 2.0 * (math.exp(radius) + 10.0 * radius) * math.log(4000) + 1.0
    assert regret_made <= 12.0 * math.log(4000)


@pytest.mark.parametrize(("module", "size"), [(platt, 2), (beta, 3)])
@given(data=st.data())
@settings(max_examples=30)
def test_the_projection_is_the_nearest_point_in_the_norm_of_a(
    module: Any, size: int, data: st.DataObject
) -> None:
    optimize = pytest.importorskip("scipy.optimize")
    numbers = st.floats(-3.0, 3.0)
    root = np.array([[data.draw(numbers) for _ in range(size)] for _ in range(size)])
    A = root @ root.T + 0.1 * np.eye(size)
    theta = np.array([data.draw(numbers) for _ in range(size)])
    theta *= 3.0 / max(np.linalg.norm(theta), 1e-3)
    inverse = np.linalg.inv(A)
    if np.linalg.norm(theta) <= 1.5:
        return
    at = {2: platt.SLOPE, 3: beta.THETA}[size]
    words = [0.0] * (at + size) + inverse[np.triu_indices(size)].tolist() + [0.0] * 3
    words[module.SQUARE], words[at : at + size] = 1.5**2, theta.tolist()
    module.project(words, words, 0)
    found = np.array(words[at : at + size])
    assert np.linalg.norm(found) == pytest.approx(1.5, rel=1e-9)

    def distance(point: np.ndarray) -> float:
        return float((point - theta) @ A @ (point - theta))

    ball = {"type": "ineq", "fun": lambda point: 1.5**2 - point @ point}
    best = optimize.minimize(distance, theta / 2.0, constraints=[ball], tol=1e-12)
    assert distance(found) <= distance(best.x) * (1.0 + 1e-5) + 1e-9


@pytest.mark.parametrize("transform", [OnlinePlatt, OnlineBeta])
def test_parameters_stay_in_the_ball(transform: Any) -> None:
    online = transform(radius=1.5, rho=0.01, gamma=0.01).online()
    at = 3
    for raw, y in zip(*stream(200, slope=-1.0), strict=True):
        online.learn_one(raw, int(y))
        inside = online.words[at : at + (2 if transform is OnlinePlatt else 3)]
        assert math.hypot(*inside) <= 1.5 * (1.0 + 1e-9)


@pytest.mark.parametrize("memory", [math.inf, 30.0])
def test_an_intercept_alone_does_not_leave_the_ball(memory: float) -> None:
    online = OnlinePlatt(radius=1.5, rho=0.01, gamma=0.01, memory=memory).online()
    for _ in range(20):
        online.learn_one(0.5, 1)
        slope, intercept = online.words[3:5]
        assert math.hypot(slope, intercept) <= 1.5 * (1.0 + 1e-9)
    assert intercept > 1.0


def test_windowed_platt_is_the_batch_fit_of_the_window() -> None:
    optimize = pytest.importorskip("scipy.optimize")
    raw, outcomes = stream(95, seed=2)
    online = WindowedPlatt(window=60, every=30, ridge=0.5).online()
    told = online.replay(raw, outcomes)
    assert told[:30] == pytest.approx(raw[:30].clip(0.01, 0.99))
    for first, last in ((0, 30), (0, 60), (30, 90)):
        x = np.array([naive.logit(p) for p in raw[first:last]])
        y = outcomes[first:last]

        def total(theta: Any, x: Any = x, y: Any = y) -> float:
            z = theta[0] * x + theta[1]
            pull = 0.25 * ((theta[0] - 1.0) ** 2 + theta[1] ** 2)
            return float((np.logaddexp(0.0, z) - y * z).sum() + pull)

        a, b = optimize.minimize(total, [1.0, 0.0], tol=1e-10).x
        expected = naive.sigmoid(a * naive.logit(raw[last]) + b)
        assert told[last] == pytest.approx(expected, abs=1e-6)


def test_windowed_platt_survives_outcomes_that_can_be_separated() -> None:
    online = WindowedPlatt(window=50, every=5, ridge=1e-6).online()
    raw = np.linspace(0.0, 1.0, 50)
    told = online.replay(np.tile(raw, 4), np.tile((raw < 0.5).astype(int), 4))
    assert np.isfinite(told).all()
    assert told[150] > 0.99
    assert told[-1] < 0.01


@given(rounds_of)
def test_windowed_isotonic_is_scikit_learns_fit_of_the_window(
    rounds: list[tuple[float, int]],
) -> None:
    isotonic = pytest.importorskip("sklearn.isotonic")
    raw, outcomes = columns(rounds)
    online = WindowedIsotonic(window=30, every=1).online()
    online.replay(raw, outcomes)
    fit = isotonic.IsotonicRegression(out_of_bounds="clip").fit(raw[-30:], outcomes[-30:])
    for p in np.linspace(0.0, 1.0, 23):
        assert online.predict_one(p) == pytest.approx(fit.predict([p])[0], abs=1e-12)


def test_the_curve_is_fitted_only_when_it_is_due() -> None:
    online = WindowedIsotonic(window=10, every=4).online()
    knots = []
    for t in range(9):
        online.learn_one(t / 10, 1)
        knots.append(online.words[window.KNOTS])
    assert knots == [0, 0, 0, 2, 2, 2, 2, 2, 2]


# Bucket means.


@given(rounds_of, st.sampled_from([1.0, 5.0, math.inf]), st.sampled_from([0.0, 0.7, 10.0]))
def test_bucket_means_are_weighted_means_of_the_past(
    rounds: list[tuple[float, int]], memory: float, prior: float
) -> None:
    told = BucketMeans(8, memory, prior).online().replay(*columns(rounds))
    expected = naive.bucket_means(columns(rounds), 8, memory, prior)
    assert told == pytest.approx(expected, abs=1e-12)


@given(rounds_of)
def test_bucket_means_calibeat(rounds: list[tuple[float, int]]) -> None:
    raw, outcomes = columns(rounds)
    told = BucketMeans(buckets=5).online().replay(raw, outcomes)
    where = np.minimum((raw * 5).astype(int), 4)
    paid, allowed = float(((told - outcomes) ** 2).sum()), 0.0
    for j in set(where.tolist()):
        here = outcomes[where == j]
        allowed += float(((here - here.mean()) ** 2).sum()) + bounds.harmonic(len(here))
    assert paid <= allowed + 1e-9


# Mixtures.


def advice_of(experts: tuple[Transform, ...], raw: Any, outcomes: Any) -> np.ndarray:
    return np.column_stack([expert.online().replay(raw, outcomes) for expert in experts])


EXPERTS = (
    BucketMeans(6, prior=1.0),
    BucketMeans(6, 10.0, 0.5),
    Identity(),
    OnlinePlatt(),
    BucketMeans(3),
    Tracking(),
)


@pytest.mark.parametrize(
    ("form", "loss", "eta"),
    [("substitution", "squared", 2.0), ("mean", "squared", 0.5), ("mean", "log", 1.0)],
)
@pytest.mark.parametrize("share", [0.0, 0.01])
@pytest.mark.parametrize("uneven", [False, True])
def test_mixtures_weigh_their_experts_as_they_say(
    form: str, loss: str, eta: float, share: float, uneven: bool
) -> None:
    raw, outcomes = stream(200, seed=4)
    raw = raw.clip(0.05, 0.95)
    experts = (
        EXPERTS if loss == "squared" else (Identity(), OnlinePlatt(), BucketMeans(3, 9.0, 2.0))
    )
    start = [1.0 + 2.0 * k for k in range(len(experts))] if uneven else [1.0] * len(experts)
    transform = ExpertMixture(experts, share, loss=loss, form=form, start=start if uneven else None)
    online = transform.online()
    told = online.replay(raw, outcomes)
    advice = advice_of(experts, raw, outcomes)
    kind = "bayes" if loss == "log" else form
    wanted = naive.weigh_experts(advice, outcomes, share, eta, kind, start)
    assert told == pytest.approx(wanted, abs=1e-10)
    standing = transform.standing(online.words)
    assert sum(standing.weights) == pytest.approx(1.0, abs=1e-12)
    if loss == "squared":
        expected = ((advice - outcomes[:, None]) ** 2).sum(axis=0)
        assert standing.loss == pytest.approx(((told - outcomes) ** 2).sum())
    else:
        expected = [log_loss(column, outcomes) for column in advice.T]
        assert standing.loss == pytest.approx(log_loss(told, outcomes))
    assert standing.losses == pytest.approx(list(expected))


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=6), st.data())
@settings(max_examples=200)
def test_the_substitution_never_loses_more_than_the_potential_allows(
    advice: list[float], data: st.DataObject
) -> None:
    count = len(advice)
    weights = [data.draw(st.floats(0.01, 1.0)) for _ in advice]
    weights = [w / sum(weights) for w in weights]
    eta = data.draw(st.floats(0.1, 2.0))
    swaps = data.draw(st.booleans())
    combine, _ = mixture.substitution(0, count, swaps)
    # A mixture that watches for swaps keeps what it saw where others keep the unit.
    head = [1.0, -eta, data.draw(st.integers(0, 2**63 - 1)) if swaps else 0.5 / eta, 0.0, 0]
    padded = bits.lanes(count)
    room = [0.0] * (3 * padded - count + 2)
    words = [*head, *weights, *[0.0] * (2 * count), *advice, *room]
    told = combine(words, words, 0, len(head) + 3 * count)
    for y in (0, 1):
        total = sum(w * math.exp(-eta * (p - y) ** 2) for w, p in zip(weights, advice, strict=True))
        assert (told - y) ** 2 <= -math.log(total) / eta + 1e-9


def constant(value: float) -> Transform:
    """An expert that always says the same."""

    class Constant(Identity):
        kernel = Kernel(lambda words, reals, at, raw: value, Identity.kernel.learn)

    return Constant()


ZERO, ONE = constant(0.0), constant(1.0)


def against_its_forecast(form: str, rounds: int, share: float) -> tuple[float, tuple[float, ...]]:
    """Let an adversary choose the outcome that is farther from the forecast."""
    transform = ExpertMixture((ZERO, ONE), share, form=form)
    online = transform.online()
    for _ in range(rounds):
        online.learn_one(0.5, int(online.predict_one(0.5) < 0.5))
    standing = transform.standing(online.words)
    return standing.loss, standing.losses


@pytest.mark.parametrize(("form", "eta"), [("substitution", 2.0), ("mean", 0.5)])
@pytest.mark.parametrize("share", [0.0, 1e-3])
@pytest.mark.parametrize("rounds", [1, 50, 2000])
def test_an_adversary_that_sees_the_forecast_gains_no_more_than_the_bound(
    form: str, eta: float, share: float, rounds: int
) -> None:
    loss, losses = against_its_forecast(form, rounds, share)
    allowed = rounds * bounds.mixture(rounds, 2, share, eta).value
    for other in losses:
        assert loss <= other + allowed + 1e-9


def test_the_mean_with_too_large_a_rate_would_break_the_bound() -> None:
    advice = np.tile([0.0, 1.0], (2000, 1))
    outcomes: list[int] = []
    weights = np.array([0.5, 0.5])
    loss = 0.0
    for p in advice:
        told = float(weights @ p)
        outcomes.append(int(told < 0.5))
        loss += (told - outcomes[-1]) ** 2
        weights = weights * np.exp(-2.0 * (p - outcomes[-1]) ** 2)
        weights /= weights.sum()
    best = min(sum((end - y) ** 2 for y in outcomes) for end in (0, 1))
    assert loss - best > 10.0 * math.log(2) / 2.0


@given(rounds_of, st.sampled_from([("substitution", 2.0), ("mean", 0.5)]))
@settings(max_examples=40)
def test_a_mixture_stays_close_to_every_expert(
    rounds: list[tuple[float, int]], form: tuple[str, float]
) -> None:
    transform = ExpertMixture(EXPERTS, 0.01, form=form[0])
    online = transform.online()
    online.replay(*columns(rounds))
    standing = transform.standing(online.words)
    allowed = len(rounds) * bounds.mixture(len(rounds), len(EXPERTS), 0.01, form[1]).value
    assert standing.loss <= min(standing.losses) + allowed + 1e-9


@given(rounds_of, st.integers(1, 79))
@settings(max_examples=40)
def test_a_mixture_with_a_share_follows_a_switch(rounds: list[tuple[float, int]], cut: int) -> None:
    raw, outcomes = columns(rounds)
    if cut >= len(raw):
        return
    transform = ExpertMixture(EXPERTS, 0.05)
    online = transform.online()
    told = online.replay(raw, outcomes)
    losses = (advice_of(EXPERTS, raw, outcomes) - outcomes[:, None]) ** 2
    best = losses[:cut].sum(axis=0).min() + losses[cut:].sum(axis=0).min()
    allowed = len(raw) * bounds.mixture(len(raw), len(EXPERTS), 0.05, switches=1).value
    assert ((told - outcomes) ** 2).sum() <= best + allowed + 1e-9


def test_a_bank_of_means_is_the_same_as_its_members_apart() -> None:
    members = (BucketMeans(6), BucketMeans(6, 10.0, 0.5), BucketMeans(6, 3.0))
    apart = tuple(e for member in members for e in (member, Identity()))
    together = (*members, Identity(), Identity(), Identity())
    raw, outcomes = stream(150)
    one, other = ExpertMixture(apart), ExpertMixture(together)
    online, same = one.online(), other.online()
    online.replay(raw, outcomes)
    same.replay(raw, outcomes)
    assert one.standing(online.words).losses[0::2] == other.standing(same.words).losses[:3]


def test_no_expert_is_lost_for_ever_where_nothing_is_shared() -> None:
    transform = ExpertMixture((ZERO, ONE), 0.0)
    online = transform.online()
    for y in (0, 1):
        for _ in range(800):
            online.learn_one(0.5, y)
        for _ in range(800 * y):
            online.learn_one(0.5, y)
    assert transform.standing(online.words).weights[1] > 0.99
    assert online.predict_one(0.5) > 0.99


def test_under_log_loss_an_expert_that_was_surely_wrong_is_out_but_for_its_share() -> None:
    transform = ExpertMixture((ZERO, Identity()), 0.01, loss="log")
    online = transform.online()
    online.learn_one(0.5, 1)
    standing = transform.standing(online.words)
    assert standing.losses == (math.inf, pytest.approx(math.log(2.0)))
    assert standing.weights == (pytest.approx(0.005), pytest.approx(0.995))


def test_under_log_loss_nobody_is_blamed_for_what_all_thought_impossible() -> None:
    transform = ExpertMixture((ZERO, ZERO), 0.0, loss="log")
    online = transform.online()
    assert online.predict_one(0.5) == 0.0
    online.learn_one(0.5, 1)
    standing = transform.standing(online.words)
    assert standing.weights == (0.5, 0.5)
    assert standing.loss == math.inf


def test_long_runs_under_log_loss_add_up() -> None:
    transform = ExpertMixture((Identity(), OnlinePlatt()), loss="log")
    online = transform.online()
    raw, outcomes = stream(2000)
    raw = raw.clip(0.01, 0.99)
    told = online.replay(raw, outcomes)
    standing = transform.standing(online.words)
    assert standing.losses[0] == pytest.approx(log_loss(raw, outcomes))
    assert standing.loss == pytest.approx(log_loss(told, outcomes))


# Calibration by draws.


@given(rounds_of, st.integers(0, 5))
@settings(max_examples=50)
def test_bucket_hedge_draws_as_the_rule_says(rounds: list[tuple[float, int]], seed: int) -> None:
    told = BucketHedge(3, 7, seed).online().replay(*columns(rounds))
    expected = naive.hedge(columns(rounds), 3, 7, coins(seed, len(rounds)))
    assert told.tolist() == expected


def c2(told: np.ndarray, outcomes: np.ndarray) -> float:
    total = 0.0
    for value in set(told.tolist()):
        here = outcomes[told == value]
        total += len(here) * (here.mean() - value) ** 2
    return total / len(told)


@pytest.mark.parametrize("transform", [BucketHedge(4, 10, seed=3), Hedging(4, 10, seed=3)])
def test_drawn_forecasts_are_calibrated_against_an_adversary(transform: Transform) -> None:
    # The adversary does not see the draw of the round: it goes against the last twenty.
    online, random = transform.online(), np.random.default_rng(0)
    told, outcomes = [], []
    for raw in random.random(4000).tolist():
        p = online.predict_one(raw)
        y = int(np.mean(told[-20:] or [0.5]) < 0.5)
        online.learn_one(raw, y)
        told.append(p)
        outcomes.append(y)
    cells = 4 * 11
    bound = 1 / 400 + cells * (1 + math.log(4000 / cells)) / 4000
    slack = math.sqrt(2.0 * math.log(1e6) / 4000)
    assert c2(np.array(told), np.array(outcomes)) <= bound + slack
    assert c2(np.array(told), np.array(outcomes)) <= 0.01


def test_hedging_is_the_chain_that_its_name_says() -> None:
    raw, outcomes = stream(300)
    middle = OnlinePlatt().online().replay(raw, outcomes)
    expected = BucketHedge(5, 8, seed=2).online().replay(middle, outcomes)
    assert Hedging(5, 8, 2).online().replay(raw, outcomes).tolist() == expected.tolist()


def test_tracking_is_the_chain_that_its_name_says() -> None:
    raw, outcomes = stream(300)
    middle = OnlinePlatt(gamma=0.2).online().replay(raw, outcomes)
    expected = BucketMeans(10).online().replay(middle, outcomes)
    assert Tracking(gamma=0.2).online().replay(raw, outcomes).tolist() == expected.tolist()


@given(rounds_of, st.integers(0, 3))
@settings(max_examples=60)
def test_recalibrate_regret_draws_as_the_rule_says(
    rounds: list[tuple[float, int]], seed: int
) -> None:
    told = RecalibrateRegret(8, seed).online().replay(*columns(rounds))
    assert told.tolist() == naive.regret(columns(rounds), 8, coins(seed, len(rounds)))


@given(st.integers(1, 12), st.data())
@settings(max_examples=300)
def test_no_outcome_moves_the_regret_state_far(m: int, data: st.DataObject) -> None:
    # Grid point 0 never has a coordinate above 0 and the last none below: they are pushed
    # one way only.
    a = [data.draw(st.floats(-1.0, 1.0)) for _ in range(m + 1)]
    a[0], a[m] = -abs(a[0]), abs(a[m])
    b, raw = data.draw(st.floats(0.0, 1.0)), data.draw(st.floats(0.0, 1.0))
    words = [m, 0, 0, b, *a, 0]
    low, weight = regret.search(words, words, 0, raw)
    for y in (0.0, 1.0):
        moved = weight * regret.push(words, words, 0, low, raw, y)
        if weight < 1.0:
            moved += (1.0 - weight) * regret.push(words, words, 0, low + 1, raw, y)
        assert moved <= 1.0 / m + 8.0 * b / m**2 + 1e-12


def test_recalibrate_regret_and_the_cascade_on_the_papers_stream() -> None:
    random = np.random.default_rng(1)
    outcomes = random.integers(0, 2, 5000).astype(np.uint8)
    raw = np.where(outcomes == 1, 0.7, 0.3)
    alone = RecalibrateRegret(20, 5).online().replay(raw, outcomes)
    both = Cascade(20, 20, 5).online().replay(raw, outcomes)
    assert ((raw - outcomes) ** 2).mean() == pytest.approx(0.09)
    assert ((alone - outcomes) ** 2).mean() <= 0.095
    assert c2(alone, outcomes) <= 0.01
    assert ((both - outcomes) ** 2).mean() < 0.001
    middle = BucketMeans(20).online().replay(raw, outcomes)
    expected = RecalibrateRegret(20, 5).online().replay(middle, outcomes)
    assert both.tolist() == expected.tolist()


# Without draws.


def kernel_of(transform: Defensive) -> Any:
    """The features' kernel of (forecast, raw) pairs."""
    size, words = transform.features, transform.fresh()
    v, w = np.array(words[4 : 4 + size]), np.array(words[4 + size : 4 + 2 * size])

    def K(one: tuple[float, float], other: tuple[float, float]) -> float:
        return float(np.cos(v * (one[0] - other[0]) + w * (one[1] - other[1])).mean())

    return K


@pytest.mark.parametrize("form", ["K29", "K29*"])
@given(rounds=rounds_of)
@settings(max_examples=15)
def test_defensive_forecasts_are_roots_of_the_test(
    form: str, rounds: list[tuple[float, int]]
) -> None:
    transform = Defensive(form, features=3, seed=1)
    K, online, past = kernel_of(transform), transform.online(), []
    for raw, y in rounds[:25]:
        p = online.predict_one(raw)
        said = naive.lean(past, p, raw, form == "K29*", K)
        assert abs(said) <= 1e-6 or (p == 0.0 and said < 0.0) or (p == 1.0 and said > 0.0)
        if not past:
            assert p == (raw if form == "K29" else 0.5) or form == "K29*"
        past.append((p, raw, y))
        online.learn_one(raw, y)


@pytest.mark.parametrize("form", ["K29", "K29*"])
@given(rounds=rounds_of)
@settings(max_examples=15)
def test_the_defensive_invariant_holds_whatever_the_outcomes(
    form: str, rounds: list[tuple[float, int]]
) -> None:
    transform = Defensive(form, features=5, seed=2)
    online = transform.online()
    allowed = 0.0
    for raw, y in rounds:
        p = online.predict_one(raw)
        online.learn_one(raw, y)
        allowed += p * (1.0 - p) if form == "K29*" else (y - p) ** 2
        sums = np.array(online.words[4 + 10 : 4 + 20])
        assert sums @ sums / 5 <= allowed + 1e-6


def test_the_features_approach_the_gaussian_kernel() -> None:
    K = kernel_of(Defensive(features=4096, width=0.2, seed=9))
    for one, other in [
        ((0.1, 0.5), (0.3, 0.4)),
        ((0.0, 1.0), (0.5, 0.5)),
        ((0.2, 0.2), (0.2, 0.2)),
    ]:
        square = (one[0] - other[0]) ** 2 + (one[1] - other[1]) ** 2
        assert K(one, other) == pytest.approx(math.exp(-square / (4 * 0.2**2)), abs=0.06)


def test_defensive_forecasts_stand_up_to_an_adversary_that_sees_them() -> None:
    online, outcomes, told = Defensive(features=8).online(), [], []
    for _ in range(400):
        told.append(online.predict_one(0.5))
        outcomes.append(int(told[-1] < 0.5))
        online.learn_one(0.5, outcomes[-1])
    assert abs(np.mean(told) - np.mean(outcomes)) < 1.0 / math.sqrt(400)


@given(rounds_of, st.sampled_from([(1, 1), (1, 8), (3, 5), (4, 512)]))
@settings(max_examples=60)
def test_the_biases_of_aosa_never_leave_their_interval(
    rounds: list[tuple[float, int]], sizes: tuple[int, int]
) -> None:
    transform = AOSA(*sizes)
    online, booked, distance, m, left = transform.online(), {}, 0.0, sizes[0], sizes[0] ** 2
    error = 0.0
    for raw, y in rounds:
        words = online.words
        assert words[aosa.STEPS] == m
        biases = words[aosa.BIASES : aosa.BIASES + m + 1]
        assert max(abs(bias) for bias in biases) <= m
        assert biases == [booked.get(k, 0) for k in range(m + 1)]
        p = online.predict_one(raw)
        low = online.words[aosa.BIASES + sizes[1] + 1]
        assert biases[low] <= 0 <= biases[low + 1]
        assert p in (low / m, (low + 1) / m)
        assert abs(p - raw) == min(abs(low / m - raw), abs((low + 1) / m - raw))
        online.learn_one(raw, y)
        k = low + y
        booked[k] = booked.get(k, 0) + k - m * y
        distance += abs(p - k / m)
        left -= 1
        if left == 0:
            error += sum(map(abs, booked.values())) / m
            booked, m = {}, min(2 * m, sizes[1])
            left = m * m
    expected = error + distance + sum(map(abs, booked.values())) / m
    assert transform.distance(online.words) == pytest.approx(expected)


def test_aosa_is_close_to_calibrated_against_an_adversary_that_sees_everything() -> None:
    transform = AOSA(resolution=4)
    online = transform.online()
    for _ in range(4**2 + 8**2 + 16**2 + 32**2):
        online.learn_one(0.5, int(online.predict_one(0.5) < 0.5))
    assert transform.distance(online.words) <= sum(2 * m - 1 for m in (4, 8, 16, 32))


def test_aosa_stays_near_the_raw_forecast_where_it_may() -> None:
    raw, outcomes = stream(4000, slope=1.0)
    told = AOSA().online().replay(raw, outcomes)
    assert ((told - outcomes) ** 2).mean() < 0.25


@given(rounds_of, st.integers(1, 6))
def test_intervals_are_those_of_the_rule(rounds: list[tuple[float, int]], m: int) -> None:
    online = Interval(m).online()
    expected = naive.potc(columns(rounds), m)
    for (raw, y), (low, high, _) in zip(rounds, expected, strict=True):
        found = online.interval_one(raw)
        assert found == ((2 * low + 1) / (2 * m), (2 * high + 1) / (2 * m))
        assert online.predict_one(raw) == pytest.approx(sum(found) / 2)
        online.learn_one(raw, y)


@given(rounds_of, st.integers(1, 6))
def test_the_better_ends_of_intervals_are_calibrated(
    rounds: list[tuple[float, int]], m: int
) -> None:
    online = Interval(m).online()
    for t, (raw, y) in enumerate(rounds, 1):
        online.learn_one(raw, y)
        words = online.words
        gaps = [abs(words[2 + 2 * b] - (b + 0.5) / m * words[1 + 2 * b]) for b in range(m)]
        assert sum(gaps) / t <= 1.0 / (2 * m) + m / t + 1e-12


def test_a_fresh_object_starts_with_the_raw_forecast_where_it_says_so() -> None:
    for transform in (
        OnlinePlatt(),
        OnlineBeta(),
        Temperature(),
        PlattSGD(),
        BucketMeans(),
        WindowedPlatt(),
        WindowedIsotonic(),
        Defensive(form="K29"),
        Tracking(),
        ExpertMixture(),
    ):
        assert Online(transform).predict_one(0.3) == pytest.approx(0.3, abs=1e-12)


def test_forgetting_newton_steps_are_those_of_a_decaying_sum() -> None:
    rounds = stream(300, seed=8)
    told = OnlinePlatt(gamma=0.3, rho=10.0, memory=40.0).online().replay(*rounds)
    wanted = naive.platt(rounds, gamma=0.3, rho=10.0, kept=1.0 - 1.0 / 40.0)
    assert told == pytest.approx(wanted, abs=1e-9)


def test_forgetting_newton_steps_follow_a_drift() -> None:
    rng, rounds, change = np.random.default_rng(3), 27_000, 25_000
    raw = rng.random(rounds)
    chance = np.where(np.arange(rounds) < change, raw, 1.0 - raw)
    outcomes = (rng.random(rounds) < chance).astype(np.uint8)
    scores = [
        ((made.online().replay(raw, outcomes) - outcomes)[change:] ** 2).mean()
        for made in (OnlinePlatt(), OnlinePlatt(gamma=0.3, rho=10.0, memory=200.0))
    ]
    assert scores[1] < 0.19
    assert scores[0] > 0.25


@pytest.mark.parametrize("memory", [math.inf, 30.0])
@pytest.mark.parametrize("scale", ["linear", "logit"])
def test_hat_means_are_means_of_errors_between_knots(memory: float, scale: str) -> None:
    rounds = stream(300, seed=9)
    transform = HatMeans(cells=4 if scale == "linear" else 1, memory=memory, scale=scale, clip=0.01)
    if scale == "linear":
        knots = (lambda raw: 4 * raw), 5
    else:
        knots = (lambda raw: naive.logit(raw) + 5.0), 11
    wanted = naive.hat_means(rounds, knots, memory, prior=2.0)
    assert transform.online().replay(*rounds) == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"cells": 0}, "cells must be"),
        ({"prior": 0.0}, "prior must be"),
        ({"scale": "cubic"}, "scale must be"),
        ({"memory": 0.5}, "memory must be"),
        ({"clip": 0.6}, "clip must be"),
    ],
)
def test_hat_means_refuse_what_makes_no_sense(options: dict[str, Any], told: str) -> None:
    with pytest.raises(CalibrantError, match=told):
        HatMeans(**options)


@pytest.mark.parametrize("start", [(1.0,), (1.0, 0.0), (1.0, -1.0), 3, (1.0, "a")])
def test_first_weights_are_one_for_each_expert_and_above_zero(start: object) -> None:
    with pytest.raises(CalibrantError, match="start must be"):
        ExpertMixture((Identity(), BucketMeans()), start=start)


def test_a_first_weight_decides_how_much_may_be_lost_to_its_expert() -> None:
    rounds, share = 100, 0.01
    even, uneven = (bounds.mixture(rounds, 4, share, start=w) for w in (0.25, 0.5))
    assert even.value == bounds.mixture(rounds, 4, share).value
    assert even.value - uneven.value == pytest.approx(math.log(2.0) / (2.0 * rounds))
    moved = [bounds.mixture(rounds, 4, share, start=w, switches=1) for w in (0.25, 0.5)]
    assert moved[0].value - moved[1].value == pytest.approx(math.log(4.0) / (2.0 * rounds))


# Outcomes that come late.


@pytest.mark.parametrize("lag", [2.0, 10.0])
@pytest.mark.parametrize("outcome", [0, 1])
@pytest.mark.parametrize(
    ("form", "loss"), [("substitution", "squared"), ("mean", "squared"), ("mean", "log")]
)
def test_a_late_outcome_moves_the_weights_by_its_part(form, loss, outcome, lag) -> None:
    raw, outcomes = stream(60, seed=5)
    raw = raw.clip(0.05, 0.95)
    experts = (Identity(), OnlinePlatt(), BucketMeans(3, 9.0, 2.0)) if loss == "log" else EXPERTS
    transform = ExpertMixture(experts, 0.01, loss=loss, form=form)
    kernel, words = transform.kernel, list(transform.fresh())
    alone = [expert.online() for expert in experts]
    for p, y in zip(raw[:40].tolist(), outcomes[:40].tolist(), strict=True):
        told = kernel.predict(words, words, 0, p)
        kernel.learn(words, words, 0, p, told, y)
    asked, room = 0.37, [0] * kernel.kept
    told = kernel.predict(words, words, 0, asked)
    advice = np.array([words[transform.size - transform.notes + k] for k in range(len(experts))])
    kernel.keep(words, words, 0, room, 0)
    for p, y in zip(raw[40:].tolist(), outcomes[40:].tolist(), strict=True):
        kernel.learn(words, words, 0, p, kernel.predict(words, words, 0, p), y)
    for expert in alone:
        expert.replay(raw, outcomes)
    before = transform.standing(words)
    kernel.late(words, words, 0, asked, told, outcome, lag, lag**-0.5, room, 0)
    after = transform.standing(words)
    likely = advice if outcome else 1.0 - advice
    cost = -np.log(likely) if loss == "log" else (advice - outcome) ** 2
    moved = np.array(before.weights) * np.exp(-transform.eta * cost / lag)
    share = 0.01 / lag
    wanted = (1.0 - share) * moved / moved.sum() + share / len(experts)
    assert after.weights == pytest.approx(wanted.tolist(), abs=1e-4)
    grown = np.array(after.losses) - np.array(before.losses)
    assert grown == pytest.approx(cost.tolist(), abs=1e-3)
    own = -math.log(told if outcome else 1.0 - told) if loss == "log" else (told - outcome) ** 2
    assert after.loss - before.loss == pytest.approx(own, abs=1e-9)
    # The experts learn less than from a prompt outcome.
    kernel.predict(words, words, 0, 0.61)
    first = transform.size - transform.notes
    wanted = [learned_in_part(each, asked, outcome, lag**-0.5) for each in alone]
    assert words[first : first + len(experts)] == pytest.approx(wanted, abs=1e-12)


def learned_in_part(online: Online, raw: float, outcome: int, part: float) -> float:
    """What a transform says at 0.61 after learning a part of an outcome, if it can do that."""
    kernel, words = online.transform.kernel, online.words
    told = kernel.predict(words, words, 0, raw)
    if kernel.partly is not None:
        kernel.partly(words, words, 0, raw, told, outcome, part)
    else:
        kernel.learn(words, words, 0, raw, told, outcome)
    return kernel.predict(words, words, 0, 0.61)


STEPPING = [OnlinePlatt(), OnlinePlatt(memory=50.0), OnlineBeta()]


@pytest.mark.parametrize("transform", STEPPING, ids=["platt", "forgetting", "beta"])
@given(st.floats(0.02, 0.98), st.integers(0, 1), st.floats(0.01, 1.0))
def test_a_step_in_part_is_a_step_on_a_part_of_the_gap(transform, raw, outcome, part) -> None:
    kernel, words = transform.kernel, transform.fresh()
    told = kernel.predict(words, words, 0, raw)
    other = list(words)
    kernel.partly(words, words, 0, raw, told, outcome, part)
    kernel.learn(other, other, 0, raw, outcome + part * (told - outcome), outcome)
    assert words == pytest.approx(other, rel=1e-9, abs=1e-12)


@given(st.floats(0.0, 1.0), st.integers(0, 1), st.floats(0.01, 1.0))
def test_means_count_a_part_of_an_outcome_as_that_part_of_a_visit(raw, outcome, part) -> None:
    for transform in (HatMeans(cells=4), HatMeans(cells=1, scale="logit")):
        kernel, words = transform.kernel, transform.fresh()
        told = kernel.predict(words, words, 0, raw)
        kernel.partly(words, words, 0, raw, told, outcome, part)
        knots = np.array(words[hats.KNOTS :]).reshape(-1, hats.WIDTH)
        assert knots[:, 0].sum() == pytest.approx(part)
        assert knots[:, 1].sum() == pytest.approx(part * (outcome - raw))
    kept, (_, absorb) = 0.75, means.make_bank(1)
    words = BucketMeans(1, 4.0).fresh()
    for _ in range(2):
        absorb(words, words, 0, raw, 0, outcome, part)
    assert words[-1] == pytest.approx(part + part * (1.0 - (1.0 - kept) * part))
    assert words[-2] == pytest.approx(outcome * words[-1])


def test_a_late_outcome_that_all_called_impossible_leaves_the_weights() -> None:
    transform = ExpertMixture((ZERO, ZERO), 0.0, loss="log", start=(3.0, 1.0))
    kernel, words = transform.kernel, list(transform.fresh())
    room = [0] * kernel.kept
    told = kernel.predict(words, words, 0, 0.5)
    kernel.keep(words, words, 0, room, 0)
    kernel.late(words, words, 0, 0.5, told, 1, 3.0, 3.0**-0.5, room, 0)
    assert transform.standing(words).weights == (0.75, 0.25)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=9))
def test_what_is_kept_of_forecasts_is_right_to_fifteen_bits(values) -> None:
    transform = ExpertMixture(tuple(constant(value) for value in values))
    kernel, words = transform.kernel, list(transform.fresh())
    kernel.predict(words, words, 0, 0.5)
    room = [0] * kernel.kept
    kernel.keep(words, words, 0, room, 0)
    assert all(0 <= word < 1 << 60 for word in room)
    found = [(room[k // 4] >> (15 * (k % 4)) & 0x7FFF) / 32767 for k in range(len(values))]
    assert found == pytest.approx(values, abs=0.6 / 32767)
