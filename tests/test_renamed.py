"""Names of before: they still work, and say once what to write instead."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import calibrant
from calibrant import advice, transforms

pytestmark = pytest.mark.base

TOLD = "calibrant.experts is now calibrant.advice"
PARTS = {
    "advice": "MEAN_RATE",
    "exponential_weights": "ExponentialWeights",
    "internal": "InternalRegret",
    "matching": "RegretMatching",
    "online": "OnlineExperts",
    "regret": "swap_regret",
    "rule": "State",
    "schedule": "ScheduledRule",
    "stationary": "stationary_law",
    "swap": "SwapRegret",
    "tables": "laws",
}
"""Files that there were, and something that each of them held."""


@pytest.fixture(autouse=True)
def as_if_never_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if f"{name}.".startswith("calibrant.experts.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(calibrant, "experts", raising=False)


def test_experts_is_advice() -> None:
    with pytest.warns(DeprecationWarning, match=TOLD):
        old = importlib.import_module("calibrant.experts")
    assert set(old.__all__) == set(advice.__all__)
    assert all(getattr(old, name) is getattr(advice, name) for name in advice.__all__)


@pytest.mark.parametrize("name", sorted(PARTS))
def test_every_file_of_experts_is_found_by_its_old_name(name: str) -> None:
    with pytest.warns(DeprecationWarning, match=TOLD):
        old = importlib.import_module(f"calibrant.experts.{name}")
    assert hasattr(old, PARTS[name])
    assert old.__name__.startswith("calibrant.advice.")
    assert getattr(sys.modules["calibrant.experts"], name) is old


@pytest.mark.parametrize(
    "line",
    [
        "import calibrant.experts",
        "import calibrant.experts.rule as rule",
        "from calibrant import experts",
        "from calibrant.experts import ExponentialWeights, mix",
        "from calibrant.experts.advice import MEAN_RATE",
    ],
)
def test_whoever_imports_experts_is_told_once_and_in_their_own_line(line: str) -> None:
    code = f"pass\n{line}\nfrom calibrant.experts import Rule\nimport calibrant.experts.swap\n"
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, capture_output=True, check=True, text=True)
    # Python 3.13 quotes the line behind the warning.
    told = [each for each in ran.stderr.splitlines() if each != f"  {line}"]
    assert told == [f"<string>:2: DeprecationWarning: {TOLD}"]


def test_a_file_that_experts_never_had_is_not_found() -> None:
    with (
        pytest.warns(DeprecationWarning, match=TOLD),
        pytest.raises(ModuleNotFoundError, match="nobody"),
    ):
        importlib.import_module("calibrant.experts.nobody")


def test_the_mixture_of_transforms_is_found_by_its_old_name() -> None:
    with pytest.warns(DeprecationWarning, match=r"transforms\.Mixture is now .*ExpertMixture"):
        from calibrant.transforms import Mixture
    assert Mixture is transforms.ExpertMixture
    assert Mixture.name == "mixture"
    assert "Mixture" not in transforms.__all__


def test_other_names_that_transforms_lacks_are_an_error() -> None:
    with pytest.raises(AttributeError, match=r"'calibrant\.transforms' has no attribute 'Mix'"):
        transforms.Mix  # noqa: B018
