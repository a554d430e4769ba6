"""The expert that looks back, alone and in the default; and the streams made for it."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import fast
from calibrant import Calibrant, metrics
from calibrant.errors import InvalidInput
from calibrant.kernels.transforms import history
from calibrant.kernels.transforms.mixture import PARTS
from calibrant.transforms import ExpertMixture, History, Identity, OnlinePlatt

pytestmark = pytest.mark.plain


def repeating(rounds: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.random(rounds), fast.repeats(rng, rounds).astype(np.uint8)


def lengths(outcomes: np.ndarray) -> np.ndarray:
    return np.diff(np.flatnonzero(np.diff(outcomes.astype(int))))


def test_the_first_forecast_is_the_raw_one() -> None:
    assert History().online().predict_one(0.3) == pytest.approx(0.3, abs=1e-12)


def test_history_sees_that_labels_repeat_where_a_line_sees_nothing() -> None:
    raw, outcomes = repeating(2000, 5)
    told = {t.name: t.online().replay(raw, outcomes) for t in (History(), OnlinePlatt())}
    briers = {name: metrics.brier(p[500:], outcomes[500:]) for name, p in told.items()}
    assert briers["history"] < 0.12 < 0.24 < briers["online_platt"]


@pytest.mark.slow
def test_the_default_follows_the_expert_that_looks_back() -> None:
    raw, outcomes = repeating(2000, 6)
    now, before = (Calibrant(e, seed=1).replay(raw, outcomes) for e in (None, fast.BEFORE))
    assert metrics.brier(now.mean, outcomes) < 0.5 * metrics.brier(before.mean, outcomes)


def test_the_default_gives_most_of_its_first_weights_to_the_raw_forecast() -> None:
    transform = Calibrant(seed=1).transform
    assert isinstance(transform, ExpertMixture)
    parts = 5.5, 1.0, 1.0, 1.0, 1.2, 1.5, 1.0, 1.0
    assert transform.start == pytest.approx(tuple(part / 13.2 for part in parts))
    assert transform.start[0] > 3 * max(transform.start[1:])


def test_a_stream_whose_outcomes_are_late_has_no_history() -> None:
    state = History().fresh()
    state[history.RECENT], state[history.LAST] = 1.5, 1.0
    history.given(state, state, 0, 0.5, 0.0, 0.0)
    history.partly(state, state, 0, 0.5, 0.5, 1, 0.5)
    assert (state[history.RECENT], state[history.LAST]) == (0.0, 0.0)


def test_a_prompt_outcome_is_remembered() -> None:
    online = History(memory=4.0).online()
    online.learn_one(0.5, 1)
    online.learn_one(0.5, 0)
    words = online.words
    assert words[history.RECENT] == 0.5 + (-2.0 - 0.5) / 4.0
    assert words[history.LAST] == -1.0


def test_late_outcomes_in_a_mixture_leave_no_history() -> None:
    mixture = ExpertMixture((Identity(), History()))
    words, kernel = mixture.fresh(), mixture.kernel
    start = words[PARTS + 1]
    for crowd, remembered in ((1.0, 1.0), (4.0, 0.0), (1.0, 1.0)):
        told, kept = kernel.predict(words, words, 0, 0.7), [0]
        kernel.keep(words, words, 0, kept, 0)
        if crowd == 1.0:
            kernel.learn(words, words, 0, 0.7, told, 1)
        else:
            kernel.late(words, words, 0, 0.7, told, 1, crowd, crowd**-0.5, kept, 0)
        assert words[start + history.LAST] == remembered


@pytest.mark.parametrize("memory", [0.5, float("inf"), None])
def test_the_memory_of_history_is_finite(memory: float | None) -> None:
    with pytest.raises((InvalidInput, TypeError), match="memory must be"):
        History(memory=memory)  # type: ignore[arg-type]


def test_runs_are_as_long_as_they_say() -> None:
    found = lengths(fast.runs(np.random.default_rng(1), 5000))
    assert (found.min(), found.max()) == (5, 50)


def test_labels_repeat_as_often_as_they_say() -> None:
    outcomes = fast.repeats(np.random.default_rng(1), 20_000)
    assert np.mean(outcomes[1:] == outcomes[:-1]) == pytest.approx(0.9, abs=0.01)


def test_a_swap_changes_the_model_half_way_and_nothing_else() -> None:
    stream, chance = fast.swapped(lambda x: x, lambda x: -x, 1000, seed=1)
    assert stream.raw[:500] == pytest.approx(chance[:500])
    assert stream.raw[500:] == pytest.approx(1.0 - chance[500:])


def test_outsiders_of_fast_worlds_use_only_what_came_before() -> None:
    outcomes = repeating(50, 8)[1]
    for told in (fast.markov, lambda y: fast.recent(y, 5)):
        changed = outcomes.copy()
        changed[-1] = 1 - changed[-1]
        assert (told(outcomes) == told(changed)).all()
