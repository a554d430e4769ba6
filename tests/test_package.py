"""The package itself: what it offers, what it hides, and what importing it costs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import calibrant
from calibrant.core.ticket import Ticket

SOURCE = Path(calibrant.__file__).parent
INSIDE = {"__main__", "_renamed", "kinds", "loading", "_version", "cli", "core", "demo", "kernels"}
"""Not for users: the command, the demo, and what the packages are made of."""
OLD = {"experts"}
"""Names that still work, with a warning."""
NEEDY = {"experiments", "frames", "stream"}
"""Packages that can only be imported where their extra is installed."""
CLASSES = {"Calibrant", "Certificate", "Journal", "Keys", "Pending", "Recalibrator", "Run", "Table"}
CLASSES |= {"Ticket"}


def packages() -> set[str]:
    folders = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    files = {path.stem for path in SOURCE.glob("*.py")} - {"__init__"}
    return (folders | files) - INSIDE - OLD


def printed(code: str) -> str:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout


@pytest.mark.base
def test_tickets_are_offered_where_forecasts_are() -> None:
    assert calibrant.Ticket is Ticket
    assert isinstance(calibrant.Recalibrator(seed=1).forecast(0.5), calibrant.Ticket)


@pytest.mark.base
def test_public_names_are_listed_and_nothing_besides() -> None:
    assert set(dir(calibrant)) == CLASSES | {"__version__", "load"} | packages()


def attributes(names: set[str]) -> set[str]:
    """Return what these attributes are called where nothing but calibrant was imported."""
    code = f"import calibrant; print(*(getattr(calibrant, name).__name__ for name in {names}))"
    return set(printed(code).split())


@pytest.mark.base
def test_every_public_package_is_an_attribute() -> None:
    names = packages() - NEEDY
    assert attributes(names) == {f"calibrant.{name}" for name in names}


def test_packages_that_need_an_extra_are_attributes_too() -> None:
    assert attributes(NEEDY) == {f"calibrant.{name}" for name in NEEDY}


@pytest.mark.base
def test_importing_loads_no_package_before_it_is_used() -> None:
    loaded = "print(*sorted(name for name in sys.modules if name.startswith('calibrant.')))"
    assert printed(f"import sys, calibrant; dir(calibrant); {loaded}") == "calibrant._version\n"


@pytest.mark.base
def test_everything_in_all_can_be_imported_with_a_star() -> None:
    found: dict[str, object] = {}
    exec("from calibrant import *", found)
    assert CLASSES | {"load", "__version__"} == set(found) - {"__builtins__"}


@pytest.mark.base
def test_an_attribute_that_nobody_defined_is_an_error() -> None:
    with pytest.raises(AttributeError, match="module 'calibrant' has no attribute 'nobody'"):
        calibrant.nobody  # noqa: B018
