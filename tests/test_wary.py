"""How little experts over classes and numbers learn of outcomes that are late, or alike."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.kernels.wary import DOUBT, wary_part

pytestmark = pytest.mark.base

CROWDS = st.floats(1.0, 1e6)
LEARNED = st.floats(0.0, 1e9)


def test_a_prompt_outcome_is_learned_in_full() -> None:
    assert wary_part(1.0, 1.0, 0.0) == 1.0


@given(CROWDS, LEARNED)
def test_one_of_many_that_differ_is_learned_by_the_root_of_their_number(
    crowd: float, learned: float
) -> None:
    assert wary_part(crowd, 1.0, learned) == 1.0 / math.sqrt(crowd)


@pytest.mark.parametrize(
    ("crowd", "same", "learned", "part"),
    [
        (100.0, 100.0, 1e18, 1.0 / 100.0),
        (100.0, 2.0, DOUBT - 1.0, 1.0 / 10.0),
        (9.0, 2.0, DOUBT - 1.0, 1.0 / 4.0),
        (4.0, 3.0, 0.0, 1.0 / (3.0 * (1.0 + 2.0 * DOUBT))),
    ],
)
def test_outcomes_that_are_the_same_count_as_about_one(
    crowd: float, same: float, learned: float, part: float
) -> None:
    assert wary_part(crowd, same, learned) == pytest.approx(part, rel=1e-9)


@given(CROWDS, st.floats(1.0, 1e3), LEARNED)
def test_doubt_never_teaches_more_and_falls_as_results_come(
    crowd: float, same: float, learned: float
) -> None:
    part = wary_part(crowd, same, learned)
    assert 0.0 < part <= 1.0 / math.sqrt(crowd)
    assert part <= wary_part(crowd, same, 2.0 * learned + 1.0)
