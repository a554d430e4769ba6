"""The contract of all transforms, read from the registry."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import json
import math
import pickle
import pkgutil
from typing import Any

import numpy as np
import players
import pytest

import calibrant.transforms
from calibrant.core.codec import Document
from calibrant.errors import CorruptState, InvalidInput, InvalidType, UnknownName
from calibrant.kernels.compile import available
from calibrant.kernels.transforms import interval, platt
from calibrant.registry import transforms
from calibrant.transforms import (
    AOSA,
    BucketHedge,
    BucketMeans,
    Cascade,
    Chain,
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
    from_description,
)

SMALL: dict[str, dict[str, Any]] = {
    "windowed_platt": {"window": 40, "every": 15},
    "windowed_isotonic": {"window": 40, "every": 7},
    "defensive": {"features": 4},
    "context": {"places": 16, "features": 2},
}
"""Settings with which the slow ones are fast enough here."""

VARIANTS: dict[str, Transform] = {
    **{name: transforms.get(name)(**SMALL.get(name, {})) for name in transforms.names()},
    "descent from zero": PlattSGD(start="zero", step=0.1, clip=1e-6),
    "forgetting newton": OnlinePlatt(gamma=0.3, rho=10.0, memory=50.0),
    "forgetting newton in a narrow ball": OnlinePlatt(radius=1.0, rho=0.1, gamma=0.05, memory=9.0),
    "hats on the log-odds": HatMeans(cells=2, scale="logit", memory=20.0, clip=0.001),
    "uneven mixture": ExpertMixture(start=(6.0, 1.0, 1.0, 1.0, 1.0), share=0.01),
    "narrow ball": OnlinePlatt(radius=1.0, rho=0.1, gamma=0.05),
    "narrow ball of beta scaling": OnlineBeta(radius=1.5, rho=0.1, gamma=0.05),
    "forgetting means": BucketMeans(buckets=7, memory=20.0, prior=2.5),
    "first defensive": Defensive(form="K29", features=3, seed=5),
    "mixture by the mean": ExpertMixture(form="mean", share=0.01),
    "mixture under log loss": ExpertMixture(loss="log", share=0.0),
    "chain of mixtures": Chain(
        ExpertMixture((Tracking(), Identity())), ExpertMixture((BucketMeans(),) * 2)
    ),
    "coarse": AOSA(resolution=1, limit=3),
}
every_variant = pytest.mark.parametrize("variant", VARIANTS)
Stream = tuple[np.ndarray, np.ndarray]


def stream(rounds: int = 300, seed: int = 0) -> Stream:
    """Over-confident raw forecasts, with 0, 1 and edges of buckets among them."""
    random = np.random.default_rng(seed)
    raw = random.random(rounds)
    raw[::7] = random.integers(0, 21, len(raw[::7])) / 20
    outcomes = (random.random(rounds) < 0.5 + 0.6 * (raw - 0.5)).astype(np.uint8)
    return raw, outcomes


def plain(online: Online, raw: np.ndarray, outcomes: np.ndarray) -> np.ndarray:
    """Play the batch without the compiler, even where it has been at work."""
    told = np.empty(len(raw))
    words = online._words()
    online.transform.kernel.replay(words, words, raw.tolist(), outcomes.tolist(), told)
    online._rounds += len(raw)
    return told


@every_variant
def test_one_by_one_and_in_a_batch_the_forecasts_are_the_same(variant: str) -> None:
    raw, outcomes = stream()
    one, many = VARIANTS[variant].online(), VARIANTS[variant].online()
    told = []
    for p, y in zip(raw.tolist(), outcomes.tolist(), strict=True):
        told.append(one.predict_one(p))
        one.learn_one(p, y)
    assert plain(many, raw, outcomes).tolist() == told
    assert many == one
    assert one.rounds == 300


@every_variant
def test_forecasts_are_probabilities_and_depend_on_the_raw_ones_or_the_past(variant: str) -> None:
    told = plain(VARIANTS[variant].online(), *stream())
    assert ((told >= 0.0) & (told <= 1.0)).all()
    assert len(set(told.tolist())) > 2


@every_variant
def test_predicting_changes_nothing(variant: str) -> None:
    asked, quiet = VARIANTS[variant].online(), VARIANTS[variant].online()
    for p, y in zip(*(column.tolist() for column in stream(60)), strict=True):
        before = asked.to_bytes()
        first = asked.predict_one(p)
        assert [asked.predict_one(other) for other in (0.0, 1.0, 0.5)]
        assert asked.to_bytes() == before
        assert asked.predict_one(p) == first == quiet.predict_one(p)
        asked.predict_one(1.0 - p)
        asked.learn_one(p, y)
        quiet.learn_one(p, y)
        assert asked == quiet


@every_variant
def test_a_restart_in_the_middle_changes_nothing(variant: str) -> None:
    raw, outcomes = stream()
    whole = VARIANTS[variant].online()
    told = plain(whole, raw, outcomes)
    first = VARIANTS[variant].online()
    plain(first, raw[:131], outcomes[:131])
    first.predict_one(0.3)
    for again in (
        Online.from_bytes(first.to_bytes()),
        first.copy(),
        pickle.loads(pickle.dumps(first)),
    ):
        assert again == first
        assert again.rounds == 131
        assert again.transform == VARIANTS[variant]
        assert plain(again, raw[131:], outcomes[131:]).tolist() == told[131:].tolist()
        assert again.to_bytes() == whole.to_bytes()
    assert first.rounds == 131


@pytest.mark.slow
@pytest.mark.skipif(not available(), reason="no compiler here")
@every_variant
def test_compiled_and_plain_agree_to_the_last_bit(variant: str) -> None:
    raw, outcomes = stream(700, seed=1)
    one, other = VARIANTS[variant].online(), VARIANTS[variant].online()
    assert one.transform.kernel.machine is not None
    assert one.replay(raw, outcomes).tolist() == plain(other, raw, outcomes).tolist()
    assert one == other
    assert one.predict_one(0.4) == other.predict_one(0.4)


def test_long_batches_start_the_compiler_and_short_ones_do_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("calibrant.transforms.base.SHORT", 2)
    monkeypatch.setattr("calibrant.kernels.transforms.kernel.available", lambda: True)
    monkeypatch.setattr("calibrant.kernels.transforms.kernel.compiled", lambda *a, **o: a[0])
    transform = Chain(BucketMeans(), Chain(Identity(), Identity()))
    online = transform.online()
    online.replay([0.5, 0.5], [1, 1])
    assert "machine" not in transform.kernel.__dict__
    assert online.replay([0.5, 0.5, 0.5], [1, 0, 0]).tolist() == [1.0, 1.0, 0.75]
    assert "machine" in transform.kernel.__dict__
    assert online.replay([0.5], [0]).tolist() == [0.6]


def test_without_a_compiler_there_is_no_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("calibrant.kernels.transforms.kernel.available", lambda: False)
    transform = Chain(Identity(), Chain(Identity(), Identity()))
    assert transform.kernel.machine is None


@every_variant
def test_the_kinds_of_words_never_change(variant: str) -> None:
    fresh = VARIANTS[variant].fresh()
    online = VARIANTS[variant].online()
    for p, y in zip(*(column.tolist() for column in stream(100)), strict=True):
        online.predict_one(p)
        online.learn_one(p, y)
    assert [type(word) for word in online.words] == [type(word) for word in fresh]
    assert len(fresh) == VARIANTS[variant].size


@every_variant
def test_a_transform_can_be_described_in_json_and_made_again(variant: str) -> None:
    transform = VARIANTS[variant]
    text = json.dumps(transform.description, allow_nan=False)
    assert from_description(json.loads(text)) == transform
    assert type(transform).from_parameters(transform.parameters) == transform


@every_variant
def test_transforms_can_be_copied_and_pickled_even_after_work(variant: str) -> None:
    transform = VARIANTS[variant]
    assert transform.kernel.predict is transform.online()._predict
    assert pickle.loads(pickle.dumps(transform)) == copy.deepcopy(transform) == transform
    assert hash(copy.copy(transform)) == hash(transform)


def test_equal_composites_share_their_kernels() -> None:
    assert Tracking().kernel is Tracking(buckets=3).kernel
    assert ExpertMixture().kernel is ExpertMixture(share=0.1).kernel
    assert ExpertMixture().kernel is not ExpertMixture(loss="log").kernel


@every_variant
def test_transforms_say_what_they_promise(variant: str) -> None:
    made = type(VARIANTS[variant])
    assert transforms.get(made.name) is made
    for fact in (made.reference, made.guarantee, made.assumption, made.cost):
        assert fact == fact.strip() != ""
    for part in ("Notes\n-----", "Examples\n--------"):
        assert part in (inspect.getdoc(made) or "")
    for field in dataclasses.fields(made):
        assert field.name in (made.__doc__ or "")


def test_every_module_registers_a_transform() -> None:
    package = calibrant.transforms
    names = {f"{package.__name__}.{m.name}" for m in pkgutil.iter_modules(package.__path__)}
    busy = {transforms.get(name).__module__ for name in transforms.names()}
    assert names - busy == {f"{package.__name__}.base"}


def test_the_middle_layer_is_complete() -> None:
    asked = """identity online_platt platt_sgd online_beta temperature bucket_means
    windowed_isotonic windowed_platt tracking hedging recalibrate_regret cascade defensive aosa
    interval mixture"""
    assert set(asked.split()) <= set(transforms.names())


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (1.5, "raw forecast must be a number in [0, 1], got 1.5"),
        (math.nan, "raw forecast must be a number in [0, 1], got nan"),
        ("0.5", "raw forecast must be a number in [0, 1], got '0.5'"),
        (None, "raw forecast must be a number in [0, 1], got None"),
    ],
)
def test_bad_raw_forecasts_are_refused_and_change_nothing(raw: Any, text: str) -> None:
    online = BucketMeans().online()
    before = online.to_bytes()
    for call in (online.predict_one, lambda p: online.learn_one(p, 1)):
        with pytest.raises((InvalidInput, InvalidType)) as refused:
            call(raw)
        assert str(refused.value) == text
    assert online.to_bytes() == before


def test_bad_outcomes_and_batches_are_refused_and_change_nothing() -> None:
    online = OnlinePlatt().online()
    before = online.to_bytes()
    with pytest.raises(InvalidInput, match=r"^outcome must be 0 or 1, got 2$"):
        online.learn_one(0.5, 2)
    with pytest.raises(InvalidInput, match=r"^raw forecasts\[1\] must be a number in \[0, 1\]"):
        online.replay([0.5, 2.0], [0, 1])
    with pytest.raises(InvalidInput, match=r"^outcomes\[0\] must be 0 or 1, got 3$"):
        online.replay([0.5], [3])
    with pytest.raises(InvalidInput, match=r"arrays must be of one length, got: raw has 1"):
        online.replay([0.5], [0, 1])
    assert online.to_bytes() == before


def test_numbers_of_other_kinds_are_welcome() -> None:
    online, other = BucketMeans().online(), BucketMeans().online()
    online.learn_one(np.float32(0.5), True)
    other.learn_one(0.5, 1)
    assert online == other
    assert online.predict_one(np.float64(0.5)) == 1.0


def test_an_empty_batch_is_no_round() -> None:
    online = OnlinePlatt().online()
    assert online.replay([], []).tolist() == []
    assert online == OnlinePlatt().online()


def test_objects_are_equal_by_state_and_not_hashable() -> None:
    one, other = BucketMeans().online(), BucketMeans().online()
    assert one == other
    other.learn_one(0.5, 1)
    assert one != other
    assert one != "state"
    assert BucketMeans(buckets=3).online() != BucketMeans(buckets=4).online()
    with pytest.raises(TypeError):
        hash(one)
    assert repr(Identity().online()) == "Online(Identity(), rounds=0)"


def test_damaged_or_foreign_bytes_are_refused() -> None:
    data = BucketMeans(buckets=3).online().to_bytes()
    with pytest.raises(CorruptState):
        Online.from_bytes(data[:-1])
    with pytest.raises(CorruptState):
        Online.from_bytes(b"nothing")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"name": "nobody"}, "state must be of a transform, got transform must be one of"),
        ({"parameters": {"many": 3}}, "parameters of bucket_means must be among buckets, mem"),
        ({"parameters": {"buckets": 0}}, "buckets must be a whole number from 1 to"),
        ({"parameters": {"buckets": 9}}, "state must have 31 words, got 13$"),
        ({"rounds": -1}, "rounds must be a whole number of at least 0, got -1"),
    ],
)
def test_states_with_settings_that_cannot_be_are_refused(change: Any, text: str) -> None:
    document = BucketMeans(buckets=3).online()._document()
    changed = dataclasses.replace(document, settings={**document.settings, **change})
    with pytest.raises(CorruptState, match=text):
        Online.from_bytes(changed.to_bytes())


@every_variant
def test_what_a_stored_state_is_checked_for_holds_in_every_run(variant: str) -> None:
    transform, online = VARIANTS[variant], VARIANTS[variant].online()
    fresh, fixed, limits = transform.fresh(), transform.constants(), transform.limits()
    assert set(fixed) & ({*limits} | {*transform.note_positions()}) == set()
    for p, y in zip(*(column.tolist() for column in stream(120, seed=5)), strict=True):
        words = online.words
        assert [words[place] for place in fixed] == [fresh[place] for place in fixed]
        assert all(low <= words[place] <= high for place, (low, high) in limits.items())
        online.learn_one(p, y)


@every_variant
def test_a_stored_state_that_would_lead_astray_is_refused(variant: str) -> None:
    transform, online = VARIANTS[variant], VARIANTS[variant].online()
    document = online._document()
    for place in transform.constants():
        with pytest.raises(CorruptState, match=f"got word {place} must be from"):
            Online.from_bytes(changed(document, place, -7))
    real = [type(word) is float for word in transform.fresh()]
    for place, limits in transform.limits().items():
        for word in players.beyond(limits, real[place]):
            with pytest.raises(CorruptState, match=f"got word {place} must be from"):
                Online.from_bytes(changed(document, place, word))


def changed(document: Document, place: int, word: int) -> bytes:
    words = document.arrays["words"].copy()
    words[place] = word
    return dataclasses.replace(document, arrays={"words": words}).to_bytes()


def test_notes_in_a_stored_state_are_forgotten() -> None:
    online = OnlinePlatt().online()
    assert Online.from_bytes(changed(online._document(), platt.FEATURE, 3)) == online


def test_an_interval_stays_within_the_unit_interval_even_in_an_impossible_state() -> None:
    for ones in (-1, 2):
        assert interval.search([1, 1, ones, 0, 0], 0, 0) == (0, 0)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: OnlinePlatt(gamma=0.0), "gamma must be a finite number above 0, got 0.0"),
        (lambda: OnlinePlatt(rho=-1), "rho must be a finite number above 0, got -1"),
        (lambda: OnlinePlatt(radius=0.5), "radius must be a finite number of at least 1, got 0.5"),
        (lambda: OnlinePlatt(clip=0.5), "clip must be a number from 1e-15 to 0.49, got 0.5"),
        (
            lambda: OnlineBeta(radius=1.0),
            "radius must be a finite number of at least sqrt(2), got 1.0",
        ),
        (lambda: PlattSGD(start="one"), "start must be one of 'identity', 'zero', got 'one'"),
        (lambda: Temperature(radius=0), "radius must be a finite number of at least 1, got 0"),
        (
            lambda: BucketMeans(memory=0.5),
            "memory must be a number of at least 1, or None, got 0.5",
        ),
        (lambda: BucketMeans(prior=-1.0), "prior must be a finite number of at least 0, got -1.0"),
        (lambda: Tracking(buckets=0), "buckets must be a whole number from 1 to 65536, got 0"),
        (
            lambda: Hedging(seed=-1),
            "seed must be a whole number from 0 to 9223372036854775807, got -1",
        ),
        (lambda: Cascade(resolution=0), "resolution must be a whole number from 1 to 4096, got 0"),
        (lambda: BucketHedge(0), "buckets must be a whole number from 1 to 65536, got 0"),
        (lambda: RecalibrateRegret(0), "resolution must be a whole number from 1 to 4096, got 0"),
        (lambda: Defensive(form="K"), "form must be one of 'K29', 'K29*', got 'K'"),
        (lambda: Defensive(width=0), "width must be a finite number of at least 0.001, got 0"),
        (lambda: AOSA(limit=2), "limit must be a whole number from 4 to 4096, got 2"),
        (lambda: Interval(0), "resolution must be a whole number from 1 to 4096, got 0"),
        (lambda: WindowedPlatt(window=1), "window must be a whole number from 2 to 1048576, got 1"),
        (lambda: WindowedIsotonic(every=0), "every must be a whole number from 1 to 1048576, got"),
        (lambda: Chain("identity"), "first must be a transform, got 'identity'"),
        (lambda: ExpertMixture(()), "experts must be at least one transform, got none"),
        (
            lambda: ExpertMixture("identity"),
            "experts must be a tuple of transforms, got 'identity'",
        ),
        (lambda: ExpertMixture((1,)), "experts must be a tuple of transforms, got (1,)"),
        (lambda: ExpertMixture(share=0.6), "share must be a number in [0, 0.5], got 0.6"),
        (lambda: ExpertMixture(loss="hinge"), "loss must be one of 'squared', 'log', got 'hinge'"),
        (lambda: ExpertMixture(eta=2.1), "eta must be a number above 0 and at most 2.0, got 2.1"),
        (
            lambda: ExpertMixture(eta=1.0, form="mean"),
            "eta must be a number above 0 and at most 0.5, got 1.0",
        ),
        (lambda: ExpertMixture(eta=0.5, loss="log"), "eta must be 1 for the log loss, got 0.5"),
        (
            lambda: ExpertMixture(form="substitution", loss="log"),
            "form must be one of 'mean', got 'substitution'",
        ),
        (
            lambda: Identity.from_parameters({"a": 1}),
            "parameters of identity must be among none, got 'a'",
        ),
    ],
)
def test_bad_parameters_are_refused_in_one_sentence(make: Any, text: str) -> None:
    with pytest.raises((InvalidInput, InvalidType)) as refused:
        make()
    assert str(refused.value).startswith(text)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(UnknownName, match=r"^transform must be one of 'aosa', "):
        from_description({"name": "nobody", "parameters": {}})


def test_only_interval_forecasters_announce_intervals() -> None:
    assert Interval(resolution=2).online().interval_one(0.3) == (0.25, 0.25)
    with pytest.raises(InvalidType, match=r"announces intervals, got 'identity'$"):
        Identity().online().interval_one(0.5)


def test_parameters_are_stored_as_plain_numbers() -> None:
    means = BucketMeans(buckets=np.int64(4), memory=None, prior=np.float32(1))
    assert [type(value) for value in vars(means).values()] == [int, float, float]
    assert BucketMeans(memory=math.inf) == BucketMeans(memory=None)
    assert BucketMeans().parameters == {"buckets": 20, "memory": None, "prior": 0.0}
    assert Tracking(gamma=1).gamma == 1.0
