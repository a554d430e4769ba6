"""The online support vector machine: the same as the slow one, exact to resume, hard to fool."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from naive_learners import NaiveSVM

from calibrant.errors import CorruptState, InvalidInput, InvalidType
from calibrant.kernels import compile as machine
from calibrant.kernels.margins import learn
from calibrant.learners import OnlineL1SVM, online_svm

pytestmark = pytest.mark.base

FEATURES = 4
cells = st.sampled_from([0, 0, 1, 1, 2, None])
patients = st.lists(
    st.tuples(st.lists(cells, min_size=FEATURES, max_size=FEATURES), st.integers(0, 1)),
    max_size=25,
)
penalties = st.sampled_from([0.0, 0.5, 1.0, 2.0])


def coded(row):
    return [-1 if cell is None else cell for cell in row]


def stream(rounds=300, features=30, seed=1, unknown=0.05):
    """Patients whose third feature tells a lot, with some values unknown."""
    rng = np.random.default_rng(seed)
    rows = rng.binomial(2, 0.3, (rounds, features)).astype(np.int8)
    ill = (rng.random(rounds) < np.array([0.25, 0.6, 0.9])[rows[:, 2]]).astype(np.uint8)
    rows[rng.random(rows.shape) < unknown] = -127
    return rows, ill


@given(patients, penalties, st.sampled_from([0.1, 0.7]))
def test_every_score_is_that_of_the_slow_one(rounds, penalty, rate) -> None:
    slow, svm = NaiveSVM(FEATURES, penalty, rate), OnlineL1SVM(FEATURES, penalty=penalty, rate=rate)
    for row, outcome in rounds:
        expected = slow.score(row)
        # On the margin itself rounding decides which rounds count.
        assume(abs(abs(expected) - 1.0) > 1e-9)
        assert svm.score_one(coded(row)) == pytest.approx(expected, rel=1e-9, abs=1e-9)
        _, raw = slow.round(row, outcome)
        if slow.largest > 1e-6:
            assert svm.predict_one(coded(row)) == pytest.approx(raw, rel=1e-6, abs=1e-6)
        svm.learn_one(coded(row), outcome)
    if rounds:
        assert svm.hinge_loss == pytest.approx(np.mean(slow.losses), rel=1e-9)
    assert svm.rounds == len(rounds)
    assert svm.broken == sum(map(abs, slow.signs))


@given(patients.filter(bool), st.integers(0, FEATURES - 1), st.floats(-0.5, 0.5))
def test_the_weights_are_the_minimum_that_the_docstring_names(rounds, place, change) -> None:
    svm = OnlineL1SVM(FEATURES, penalty=0.5, rate=0.3)
    rows, outcomes = [coded(row) for row, _ in rounds], [outcome for _, outcome in rounds]
    signs = []
    for row, outcome in rounds:
        sign = 2 * outcome - 1
        signs.append(sign if sign * svm.score_one(coded(row)) < 1.0 else 0)
        svm.learn_one(coded(row), outcome)
    assert len(outcomes) == len(rows)
    values = np.ma.masked_less(np.array(rows, float), 0.0)
    deviation = values.std(axis=0).filled(0.0)
    moving = deviation > 0
    scaled = ((values - values.mean(axis=0)) / np.where(moving, deviation, 1.0)).filled(0.0)
    z, k = np.array(signs) @ scaled, np.abs(signs).sum()
    weights = np.zeros(FEATURES)
    weights[svm.chosen] = svm.weights * deviation[svm.chosen]

    def objective(w):
        return -z @ w + 0.5 * math.sqrt(k) * np.abs(w).sum() + math.sqrt(k) / 0.6 * (w @ w)

    other = weights.copy()
    other[place] += change if moving[place] else 0.0
    assert objective(weights) <= objective(other) + 1e-9


@pytest.fixture
def always_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    if not machine.available():
        pytest.skip("needs the extra fast")
    monkeypatch.setattr(online_svm, "MANY", 1)


@pytest.mark.parametrize("penalty", [0.0, 2.0])
@pytest.mark.slow
def test_compiled_and_plain_are_the_same_to_the_bit(always_compiled, monkeypatch, penalty) -> None:
    rows, ill = stream()
    fast, plain = OnlineL1SVM(30, penalty=penalty), OnlineL1SVM(30, penalty=penalty)
    forecasts = fast.replay(rows, ill)
    monkeypatch.setattr(online_svm, "MANY", 1_000)
    assert (forecasts == plain.replay(rows, ill)).all()
    assert fast.to_bytes() == plain.to_bytes()


def test_the_pass_that_is_compiled_does_the_same_uncompiled() -> None:
    rows, ill = stream(60, 8)
    ours, theirs, found = online_svm.Sums(8), online_svm.Sums(8), np.empty(8, np.int64)
    for t, (row, outcome) in enumerate(zip(rows, ill, strict=True), 1):
        sign = (int(outcome) * 2 - 1) * (t % 3 > 0)
        chosen = ours.add(row, sign, 1.0)
        bar = float(ours.broken)
        count = learn(theirs.table, row, sign, float(t), float(ours.balance), bar, found)
        assert (chosen == found[:count]).all()
    assert (ours.table == theirs.table).all()


@given(patients, st.data())
def test_cut_anywhere_and_resumed_it_goes_on_as_if_nothing_was(rounds, data) -> None:
    cut = data.draw(st.integers(0, len(rounds)))
    whole, part = OnlineL1SVM(FEATURES, penalty=0.5), OnlineL1SVM(FEATURES, penalty=0.5)
    for k, (row, outcome) in enumerate(rounds):
        if k == cut:
            part = OnlineL1SVM.from_bytes(part.to_bytes())
            part = OnlineL1SVM.from_dict(json.loads(json.dumps(part.to_dict())))
        assert part.predict_one(coded(row)) == whole.predict_one(coded(row))
        whole.learn_one(coded(row), outcome)
        part.learn_one(coded(row), outcome)
    assert part.to_bytes() == whole.to_bytes()


def test_a_copy_goes_its_own_way() -> None:
    rows, ill = stream(40)
    svm = OnlineL1SVM(30).learn_one(rows[0], ill[0])
    before = svm.to_bytes()
    other = svm.copy()
    other.replay(rows[1:], ill[1:])
    assert svm.to_bytes() == before
    assert other.rounds == 40


def test_looking_changes_nothing() -> None:
    rows, ill = stream(50)
    svm = OnlineL1SVM(30, penalty=1.0)
    svm.replay(rows[:40], ill[:40])
    before = svm.to_bytes()
    for row in rows[40:]:
        svm.predict_one(row)
        svm.score_one(row)
    svm.chosen[:] = 0
    svm.weights[:] = 0.0
    assert svm.to_bytes() == before
    assert svm.score_one(rows[45]) == OnlineL1SVM.from_bytes(before).score_one(rows[45])


def test_forecasts_are_scores_over_the_largest_so_far() -> None:
    rows, ill = stream(200)
    svm, largest = OnlineL1SVM(30, penalty=2.0), 0.0
    for row, outcome in zip(rows, ill, strict=True):
        score = svm.score_one(row)
        largest = max(largest, abs(score))
        expected = (score + largest) / (2 * largest) if largest else 0.5
        assert svm.predict_one(row) == expected
        svm.learn_one(row, outcome)
    assert largest > 0.5


def test_nothing_is_known_before_the_first_round() -> None:
    svm = OnlineL1SVM(3)
    assert (svm.predict_one([0, 1, 2]), svm.score_one([0, 1, 2]), svm.bias) == (0.5, 0.0, 0.0)
    assert math.isnan(svm.hinge_loss)
    assert (svm.rounds, svm.broken, svm.chosen.tolist()) == (0, 0, [])
    assert (svm.features, svm.penalty, svm.rate) == (3, 4.0, 0.4)
    assert repr(svm) == "OnlineL1SVM(3, penalty=4.0, rate=0.4): 0 in use"


def test_one_feature_among_many_is_found_and_noise_is_not() -> None:
    rows, ill = stream(1500, 300)
    svm = OnlineL1SVM(300)
    svm.replay(rows, ill)
    assert svm.chosen.tolist() == [2]
    assert svm.hinge_loss < 0.85


def test_a_replay_is_the_rounds_one_by_one() -> None:
    rows, ill = stream()
    svm, alone = OnlineL1SVM(30, penalty=2.0), OnlineL1SVM(30, penalty=2.0)
    forecasts = svm.replay((row for row in rows), ill)
    for row, outcome, forecast in zip(rows, ill, forecasts, strict=True):
        assert alone.predict_one(row) == forecast
        alone.learn_one(row, outcome)
    assert svm.to_bytes() == alone.to_bytes()


def test_it_does_not_matter_which_allele_is_counted() -> None:
    rows, ill = stream()
    other = np.where(rows < 0, rows, 2 - rows).astype(np.int8)
    one, two = OnlineL1SVM(30, penalty=1.0), OnlineL1SVM(30, penalty=1.0)
    assert one.replay(rows, ill) == pytest.approx(two.replay(other, ill), abs=1e-9)


def test_a_feature_that_is_never_known_or_never_moves_changes_nothing() -> None:
    rows, ill = stream()
    wide = np.hstack([rows, np.full((300, 1), -1, np.int8), np.ones((300, 1), np.int8)])
    one, two = OnlineL1SVM(30, penalty=0.0), OnlineL1SVM(32, penalty=0.0)
    assert (one.replay(rows, ill) == two.replay(wide, ill)).all()
    assert two.chosen.max() < 30


def test_who_is_missing_does_not_tell_who_is_ill() -> None:
    # The value is known for nearly all who are healthy and few who are ill, and says nothing.
    rng = np.random.default_rng(4)
    ill = rng.integers(0, 2, 2000)
    row = rng.binomial(2, 0.3, 2000)
    row[rng.random(2000) < np.where(ill, 0.7, 0.05)] = -1
    svm = OnlineL1SVM(1, penalty=3.0)
    svm.replay(row[:, None], ill)
    assert svm.chosen.tolist() == []


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.float32, np.float64])
def test_numbers_of_any_kind_are_taken(dtype) -> None:
    rows, ill = stream(50, unknown=0.0)
    expected = OnlineL1SVM(30, penalty=1.0).replay(rows, ill)
    assert (OnlineL1SVM(30, penalty=1.0).replay(rows.astype(dtype), ill) == expected).all()


def test_nan_and_every_number_below_zero_mean_unknown() -> None:
    rows, ill = stream(80)
    floats = np.where(rows < 0, np.nan, rows)
    minus = np.where(rows < 0, -900, rows.astype(np.int64))
    expected = OnlineL1SVM(30, penalty=1.0).replay(rows, ill)
    for other in (floats, minus):
        assert (OnlineL1SVM(30, penalty=1.0).replay(other, ill) == expected).all()


ALLELE = "must be 0, 1 or 2, or below 0 if it is not known"
BAD_ROWS = {
    "three alleles": ([0, 3, 1], InvalidInput, f"genotypes[1] {ALLELE}, got 3"),
    "half an allele": ([0.0, 0.5, 1.0], InvalidInput, f"genotypes[1] {ALLELE}, got 0.5"),
    "infinitely many": ([0.0, 1.0, np.inf], InvalidInput, f"genotypes[2] {ALLELE}, got inf"),
    "too few": ([0, 1], InvalidInput, "genotypes must be 3 numbers, got 2"),
    "a table": ([[0, 1, 2]], InvalidInput, None),
    "letters": (["A", "G", "A"], InvalidType, None),
}


@pytest.mark.parametrize("name", BAD_ROWS)
def test_bad_genotypes_are_refused_and_change_nothing(name) -> None:
    row, error, told = BAD_ROWS[name]
    svm = OnlineL1SVM(3).learn_one([0, 1, 2], 1)
    before = svm.to_bytes()
    for call in (svm.predict_one, svm.score_one, lambda each: svm.learn_one(each, 1)):
        with pytest.raises(error) as caught:
            call(row)
        assert told is None or str(caught.value) == told
    assert svm.to_bytes() == before


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([[0, 1], [1, 3]], f"genotypes[1][1] {ALLELE}, got 3"),
        ([[0, 1]], "genotypes must be 2 rows, got 1"),
        ([[0, 1], [1, 1], [2, 2]], "genotypes must be 2 rows, got more"),
    ],
    ids=["a bad row", "too few", "too many"],
)
def test_a_replay_that_is_refused_has_learned_nothing(rows, told) -> None:
    svm = OnlineL1SVM(2).learn_one([0, 2], 0)
    before = svm.to_bytes()
    with pytest.raises(InvalidInput) as caught:
        svm.replay(rows, [1, 0])
    assert str(caught.value) == told
    assert svm.to_bytes() == before


def test_a_bad_outcome_is_refused_and_changes_nothing() -> None:
    svm = OnlineL1SVM(1)
    before = svm.to_bytes()
    with pytest.raises(InvalidInput, match=r"^outcome must be 0 or 1, got 2$"):
        svm.learn_one([0], 2)
    assert svm.to_bytes() == before


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"features": 0}, "features must be a whole number of at least 1, got 0"),
        ({"features": 3, "penalty": -1.0}, "penalty must be a finite number of at least 0, got -1"),
        ({"features": 3, "rate": math.nan}, "rate must be a finite number of at least 0, got nan"),
    ],
    ids=["features", "penalty", "rate"],
)
def test_settings_out_of_range_are_refused(settings, told) -> None:
    with pytest.raises(InvalidInput) as caught:
        OnlineL1SVM(**settings)
    assert str(caught.value).startswith(told)


def altered(change):
    """A state whose checksum is right and whose content is not."""
    document = OnlineL1SVM(2).learn_one([1, 2], 1)._document()
    change(document)
    return document.to_bytes()


def forget_counts(document) -> None:
    del document.settings["counts"]


def lose_rounds(document) -> None:
    document.settings["counts"] = [0, 1, 1]


def add_up_too_much(document) -> None:
    document.arrays["table"][2] = 5


def be_unseen_too_often(document) -> None:
    document.arrays["table"][6] = 2


def lose_a_column(document) -> None:
    document.arrays["table"] = document.arrays["table"][:-1]


@pytest.mark.parametrize(
    "change",
    [forget_counts, lose_rounds, add_up_too_much, be_unseen_too_often, lose_a_column],
    ids=lambda change: change.__name__,
)
def test_a_state_that_no_rounds_can_leave_is_refused(change) -> None:
    with pytest.raises(CorruptState, match=r"^state must be of a online_l1_svm, got "):
        OnlineL1SVM.from_bytes(altered(change))


def test_bytes_of_something_else_are_refused() -> None:
    with pytest.raises(CorruptState):
        OnlineL1SVM.from_bytes(OnlineL1SVM(2).to_bytes()[:-1])
