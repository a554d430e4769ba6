"""The theory as numbers: fits, inequalities and horizons, and that a broken one is noticed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyarrow", reason="needs the extra experiments")
pytest.importorskip("jinja2", reason="needs the extra experiments")
pytest.importorskip("matplotlib", reason="needs the extra experiments")
pytest.importorskip("scipy", reason="needs the extra experiments")

from calibrant.experiments import measured_table, theory
from calibrant.experiments.experiment import Setting
from calibrant.experiments.measured_table import Measured, slope
from calibrant.experiments.theory import Side

SETTING = Setting(Path("nowhere"), seeds=2, quick=True)


@pytest.mark.parametrize("power", [-0.5, 0.0, 1.0, 2.5])
def test_a_power_is_found_by_its_slope(power: float) -> None:
    sizes = np.array([2.0, 4.0, 8.0, 16.0])
    assert slope(sizes, 3.0 * sizes**power) == pytest.approx(power, abs=1e-12)


@pytest.mark.slow
def test_the_whole_theory_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured_table, "SIZES", (4, 8))
    monkeypatch.setattr(measured_table, "LONG", 8)
    monkeypatch.setattr(measured_table, "ROUNDS", (200, 800))
    monkeypatch.setattr(measured_table, "STRETCHES", 1)
    monkeypatch.setattr(measured_table, "WARM", 50)
    monkeypatch.setattr(measured_table, "TIMED", dict.fromkeys(measured_table.SUBROUTINES, 50))
    monkeypatch.setattr(theory, "LONG", 8_000)
    monkeypatch.setattr(theory, "EPSILONS", (0.2,))
    monkeypatch.setattr(theory, "ERRORS", (0.1,))
    result = theory.run(SETTING)
    held = {claim.key: claim.holds for claim in result.claims}
    for key in ("space_least", "space_most", "lemma_1", "lemma_2", "lemma_3", "theorem_1",
                "theorem_2", "horizon_share"):  # fmt: skip
        assert held[key], key
    assert set(result.columns) == {"theory_table", "theory_lemmas", "theory_horizons"}
    assert len(result.tables) == 4
    assert result.figures["theory_table"].draw().axes
    assert min(result.columns["theory_table"]["microseconds"]) > 0.0


def measured(power: float, rate: float, share: float = 0.5) -> Measured:
    """A subroutine whose time, space and error grow as they are told to."""
    sizes, rounds = np.array(measured_table.SIZES), np.array(measured_table.ROUNDS)
    large = np.array(measured_table.LARGE)
    error = 0.01 * sizes**0.5
    return Measured(
        tuple(1e-6 * sizes**power), tuple((8 * large**2).tolist()), tuple(error),
        tuple(error / share), tuple(rounds**rate),
    )  # fmt: skip


def verdicts(*found: Measured) -> dict[str, bool | None]:
    told = dict(zip(measured_table.SUBROUTINES, found, strict=True))
    return {claim.key: claim.holds for claim in measured_table.claims(told)}


def test_orders_as_claimed_hold() -> None:
    good = measured(0.0, -0.5)
    assert set(verdicts(good, good, good).values()) == {True}


def test_orders_worse_than_claimed_are_noticed() -> None:
    good = measured(0.0, -0.5)
    slow = measured(2.0, -0.1, share=2.0)
    found = verdicts(slow, slow, slow)
    assert not any(found[key] for key in ("time_pairs", "time_adjacent", "time_blackwell",
                                          "rate_adjacent", "rate_blackwell",
                                          "worst_share"))  # fmt: skip
    assert verdicts(slow, good, good)["time_pairs"] is False


def test_memory_is_a_word_for_each_cell_of_each_bucket() -> None:
    small, large = (measured_table._bytes("foster_hart", size) for size in (50, 100))
    assert large / small == pytest.approx(4.0, rel=0.15)


def test_an_inequality_that_fails_fails_its_claim() -> None:
    good = [Side(f"{name}, x", "game", 0.1, 0.2) for name in
            ("Lemma 1", "Lemma 2", "Lemma 3", "Theorem 1")]  # fmt: skip
    assert all(claim.holds for claim in theory.claims(good, 0.11))
    broken = [*good, Side("Lemma 2, y", "game", 0.3, 0.2)]
    held = {claim.key: claim.holds for claim in theory.claims(broken, 0.01)}
    assert held == {
        "lemma_1": True, "lemma_2": False, "lemma_3": True, "theorem_1": True, "theorem_2": False,
    }  # fmt: skip
    assert theory._row(broken[-1])[-1] == "fails"
    assert theory._row(good[0])[-1] == "holds"


@pytest.mark.parametrize(
    ("values", "first"),
    [([0.1, 0.1, 0.1], 10), ([0.9, 0.1, 0.1], 20), ([0.1, 0.9, 0.1], 30), ([0.9, 0.9, 0.9], 30)],
)
def test_a_horizon_is_where_the_error_is_small_for_good(values: list[float], first: int) -> None:
    assert theory._settled(np.array([10, 20, 30]), np.array(values), 0.2) == first
