"""What a run amounts to: an account that says nothing of delays promises as if there were none."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.calibrators import Anchored
from calibrant.calibrators.base import Account

pytestmark = [pytest.mark.base, pytest.mark.plain]


def account(**late: int) -> Account:
    rule = Anchored(resolution=4)
    counts = np.full((1, rule.lattice.cells), 100)
    return Account(counts, counts // 2, 0, np.array([0.5]), rule.worst_blocks(counts), **late)


@pytest.mark.parametrize("name", ["delay", "lag", "missing"])
def test_no_delay_is_counted_unless_it_is_told(name: str) -> None:
    assert getattr(account(), name) == 0


def test_a_promise_without_delays_is_that_of_prompt_outcomes() -> None:
    assert regret(account()) == regret(account(delay=0, lag=0, missing=0))
    assert regret(account()) < regret(account(missing=1))


def regret(given: Account) -> float:
    found = Anchored(resolution=4).regret(given)
    assert found is not None
    return float(found)
