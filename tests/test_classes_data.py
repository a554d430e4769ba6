"""Image classifiers: honest confidences, the same labels, hardly any loss of accuracy."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.classes import OneVsRest, TopLabel, metrics
from calibrant.datasets.loaders import NETWORKS, load_images
from calibrant.metrics import binned_calibration_error, calibration_error

pytestmark = pytest.mark.slow

NETS = {
    "lenet-5-cifar-10": 10,
    "wideresnet-16-4-cifar-10": 10,
    "cifar10_resnet50_logits": 10,
    "wideresnet-16-4-cifar-100_f16": 100,
}


def load(name: str):
    """Return raw forecasts and outcomes of one network."""
    short = next(short for short, whole in NETWORKS.items() if whole == name)
    found = load_images(short)
    return found.raw, found.outcomes


def confidence_c2(raw, outcomes):
    """The raw confidence's error over twenty buckets: it has no exact values."""
    sure, right = raw.max(axis=1), raw.argmax(axis=1) == outcomes
    return binned_calibration_error(sure, right, buckets=20, power=2)


@pytest.mark.parametrize("conditional", [True, False])
@pytest.mark.parametrize("name", NETS)
def test_confidences_become_honest(name, conditional) -> None:
    raw, outcomes = load(name)
    run = TopLabel(NETS[name], conditional=conditional, seed=1).replay(raw, outcomes)
    right = run.top == outcomes
    before, after = confidence_c2(raw, outcomes), calibration_error(run.confidence, right, power=2)
    assert after <= (before / 4 if before > 0.004 else before)
    assert (run.top == raw.argmax(axis=1)).all()
    worse = metrics.brier(run.mean, outcomes) - metrics.brier(raw, outcomes)
    assert worse <= 0.002


@pytest.mark.parametrize("name", ["lenet-5-cifar-10", "wideresnet-16-4-cifar-10"])
def test_every_first_class_is_near_what_sampling_leaves(name) -> None:
    raw, outcomes = load(name)
    run = TopLabel(10, seed=1).replay(raw, outcomes)
    error = metrics.top_class_error(run.forecast, outcomes, tops=run.top, power=2)
    floor = metrics.top_class_floor(run.forecast, tops=run.top)
    assert error <= 3 * floor + 0.002


def test_numbers_of_every_class_become_honest() -> None:
    raw, outcomes = load("lenet-5-cifar-10")
    run = OneVsRest(10, renormalise="project", seed=1).replay(raw[:4000], outcomes[:4000])
    before = metrics.classwise_error(raw[:4000], outcomes[:4000], power=2, buckets=20)
    after = metrics.classwise_error(run.classwise, outcomes[:4000], power=2)
    assert after <= before
    worse = metrics.brier(run.mean, outcomes[:4000]) - metrics.brier(raw[:4000], outcomes[:4000])
    assert worse <= 0.002


def temperature(raw, outcomes):
    """The best of many temperatures on these rounds, as fitted in a batch."""
    losses = {t: metrics.log_loss(heated(raw, t), outcomes) for t in np.linspace(0.5, 5.0, 46)}
    return min(losses, key=losses.__getitem__)


def heated(raw, t):
    raised = np.maximum(raw, 1e-12) ** (1.0 / t)
    return raised / raised.sum(axis=1, keepdims=True)


def test_a_temperature_fails_after_a_switch_and_this_does_not() -> None:
    raw, outcomes = load("lenet-5-cifar-10")
    half = len(raw) // 2
    switched = raw.copy()
    # From the middle on the logits are five times as steep: far too sure.
    switched[half:] = heated(raw[half:], 0.2)
    fitted = heated(switched, temperature(raw[:half], outcomes[:half]))
    run = TopLabel(10, seed=1).replay(switched, outcomes)
    late = slice(half, None)
    right = (run.top == outcomes)[late]
    batch = confidence_c2(fitted[late], outcomes[late])
    ours = calibration_error(run.confidence[late], right, power=2)
    assert batch > 0.02
    assert ours < batch / 4
