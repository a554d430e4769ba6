"""The bound of a mixture; tests/test_transforms_algorithms.py plays against it."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.bounds import mixture
from calibrant.errors import InvalidInput


@pytest.mark.parametrize(("rounds", "experts", "share", "eta"), [(10, 3, 0.01, 2.0), (1, 1, 0, 1)])
def test_against_one_expert_it_is_the_logarithm_of_their_number_and_of_the_share(
    rounds: int, experts: int, share: float, eta: float
) -> None:
    expected = (math.log(experts) - (rounds - 1) * math.log(1.0 - share)) / (eta * rounds)
    bound = mixture(rounds, experts, share, eta)
    assert bound.value == pytest.approx(expected)
    assert bound.quantity == "regret"
    assert bound.assumption == "against each single expert, for every sequence of outcomes"


@given(
    st.integers(2, 5),
    st.integers(1, 3),
    st.floats(0.01, 0.5),
    st.integers(0, 4),
)
def test_it_is_the_weight_of_a_sequence_of_experts(
    rounds: int, experts: int, share: float, switches: int
) -> None:
    if switches >= rounds:
        return
    bound = rounds * 2.0 * mixture(rounds, experts, share, switches=switches).value
    for sequence in itertools.product(range(experts), repeat=rounds):
        moves = [a != b for a, b in itertools.pairwise(sequence)]
        if sum(moves) == switches:
            stay = 1.0 - share + share / experts
            weight = 1.0 / experts
            for moved in moves:
                weight *= share / experts if moved else stay
            assert -math.log(weight) <= bound + 1e-9


def test_switches_are_named_in_the_assumption() -> None:
    assert mixture(10, 2, 0.1, switches=3).assumption.startswith(
        "against a sequence of experts with 3 switches"
    )


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"rounds": 0}, "rounds must be a whole number of at least 1, got 0"),
        ({"experts": 0}, "experts must be a whole number of at least 1, got 0"),
        ({"share": 0.7}, r"share must be a number in \[0, 0.5\], got 0.7"),
        ({"eta": 3.0}, "eta must be a number above 0 and at most 2, got 3.0"),
        ({"switches": 10}, "switches must be a whole number from 0 to 9, got 10"),
        ({"share": 0.0, "switches": 1}, "share must be above 0 where the comparator switches"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, float], text: str) -> None:
    given_all = {"rounds": 10, "experts": 2, "share": 0.1, "eta": 2.0, **arguments}
    with pytest.raises(InvalidInput, match=text):
        mixture(**given_all)  # type: ignore[arg-type]
