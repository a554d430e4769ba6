"""Every state that was ever written is loaded for ever, and goes on as it would have then."""

from __future__ import annotations

import json
import math
import pkgutil
from collections.abc import Iterator, Sequence
from inspect import isabstract, isclass
from pathlib import Path
from typing import Any

import pytest
from golden.state_steps import STATES, WAYS, Playing, class_of, dictionary_of, told

import calibrant
from calibrant import Recalibrator, registry
from calibrant.core.codec import Document
from calibrant.core.stateful import Stateful
from calibrant.errors import CorruptState
from calibrant.groups import GroupRecalibrator
from calibrant.regression import interval_methods, quantile_methods
from calibrant.transforms import Online

FILES = sorted(STATES.glob("*/*.json"))
RENAMED = {
    "middle_loss": "mixed_loss",
    "middle_regret": "mixed_regret",
    "aside": "fallbacks",
}
"""What parts of an answer were called when files were written, and are called now."""
TOLD_APART = {"UnknownTicket": {"UnknownTicket", "RepeatedTicket", "ExpiredTicket"}}
"""Tables refused settled and expired tickets as they refuse unknown ones, and tell which since."""


def golden(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text())


def marks(file: dict[str, Any], way: str) -> list[pytest.MarkDecorator]:
    """What a file needs, NumPy excepted, is told by itself; to compile takes seconds."""
    slow = [pytest.mark.slow] if way == "compile" else []
    return slow if "needs" in file else [pytest.mark.base, *slow]


def every_way() -> list[Any]:
    listed = [(path, way) for path in FILES for way in golden(path)["ways"]]
    return [
        pytest.param(
            path, way, id=f"{path.parent.name} {path.stem} {way}", marks=marks(golden(path), way)
        )
        for path, way in listed
    ]


def same(found: Any, kept: Any, near: float, where: str) -> None:
    """Compare answers; more than was told when the file was written may be told since."""
    if isinstance(kept, dict):
        names = {name: name if name in found else RENAMED.get(name) for name in kept}
        assert set(names.values()) <= set(found), where
        # What holds is judged by bounds on the run itself since; the numbers are compared.
        for name, part in kept.items():
            if name == "holds":
                continue
            if name == "refused":
                assert found[name] in TOLD_APART.get(part, {part}), where
                continue
            same(found[names[name]], part, near, f"{where}.{name}")
    elif isinstance(kept, list):
        assert len(found) == len(kept), where
        for place, (one, other) in enumerate(zip(found, kept, strict=True)):
            same(one, other, near, f"{where}[{place}]")
    elif near and found != kept and is_real(kept) and is_real(found):
        one, other = float.fromhex(found), float.fromhex(kept)
        assert math.isclose(one, other, rel_tol=near, abs_tol=near), f"{where}: {one!r}, {other!r}"
    else:
        assert found == kept, where


def is_real(part: Any) -> bool:
    return isinstance(part, str) and part.lstrip("-").startswith("0x")


@pytest.mark.parametrize(("path", "way"), every_way())
def test_a_stored_state_goes_on_as_it_did(path: Path, way: str) -> None:
    file = golden(path)
    if "needs" in file:
        pytest.importorskip(file["needs"])
    made = WAYS[way](file)
    assert type(made) is class_of(file)
    for number, (step, answer) in enumerate(Playing(made, file["tickets"]).play(file["steps"])):
        where = f"step {number}, {step['do']}"
        if step["do"] == "observe" and step["answer"] is None:
            # Some kinds said nothing then; all return the ticket since.
            continue
        same(answer, step["answer"], step.get("near", 0.0), where)


def with_tickets() -> list[Any]:
    return [pytest.param(path, id=path.stem) for path in FILES if golden(path)["tickets"]]


@pytest.mark.base
@pytest.mark.parametrize("path", with_tickets())
def test_a_stored_ticket_says_what_it_said(path: Path) -> None:
    for number, kept in enumerate(golden(path)["tickets"]):
        ticket = class_of(kept).from_dict(kept["dictionary"])
        same(told(ticket), kept["answer"], 0.0, f"ticket {number}")


# ----------------------------------------------------------------- nothing is left out


def named(place: str, files: Sequence[Path] = FILES) -> set[str]:
    """Return every word that is said under this name anywhere in the dictionaries of states."""
    found: set[str] = set()

    def look(part: Any) -> None:
        if isinstance(part, dict):
            found.update([part[place]] if isinstance(part.get(place), str) else [])
            part = list(part.values())
        if isinstance(part, list):
            for each in part:
                look(each)

    for path in files:
        file = golden(path)
        look(dictionary_of(file) if "dictionary" in file else None)
    return found


def stored_classes(root: Any = Stateful) -> set[Any]:
    """Return all classes of the package that can be stored and have instances."""
    below = {each for kind in root.__subclasses__() for each in stored_classes(kind)}
    whole = hasattr(root, "kind") and not getattr(root, "__abstractmethods__", None)
    return below | ({root} if whole and root.__module__.startswith("calibrant") else set())


def all_modules() -> Iterator[Any]:
    for found in pkgutil.walk_packages(calibrant.__path__, "calibrant."):
        # Spark has an environment of its own.
        if not found.name.endswith("__main__") and ".spark" not in found.name:
            yield pytest.importorskip(found.name, exc_type=ImportError)


def golden_classes() -> set[Any]:
    files = [golden(path) for path in FILES]
    return {class_of(part) for file in files for part in (file, *file["tickets"])}


@pytest.mark.base
def test_buckets_of_the_first_version_must_be_in_order() -> None:
    file = golden(STATES / "v1" / "recalibrator_foster_hart.json")
    stored = Document.read_dict(dictionary_of(file))
    assert len(stored.arrays["touched"]) > 1
    assert Recalibrator.from_dict(stored.to_dict()).issued > 0
    turned = stored.arrays | {"touched": stored.arrays["touched"][::-1]}
    altered = Document(stored.kind, stored.settings, turned, stored.version)
    with pytest.raises(CorruptState) as refused:
        Recalibrator.from_dict(altered.to_dict())
    told = "state must be of a recalibrator, got buckets that are not in order"
    assert str(refused.value) == told


def asked_for(kind: str, names: Sequence[str]) -> set[str]:
    """Return which names must have a state here: in a release all, before it those kept already.

    So a new calibrator or transform is complete without one until it is released.
    """
    kept = json.loads((STATES / "kept.json").read_text())[kind]
    assert set(kept) <= set(names), "a name that was kept once is known for ever"
    return set(kept) if ".dev" in calibrant.__version__ else set(names)


def test_every_calibrator_has_a_golden_state() -> None:
    assert asked_for("calibrators", registry.calibrators.names()) <= named("method")


def test_every_transform_has_a_golden_state() -> None:
    online = [path for path in FILES if class_of(golden(path)) is Online]
    assert asked_for("transforms", registry.transforms.names()) <= named("name", online)


def test_every_method_for_numbers_has_a_golden_state() -> None:
    assert {*interval_methods.names(), *quantile_methods.names()} <= named("method")


def test_every_stored_kind_has_a_golden_state() -> None:
    kinds = {each.kind for each in stored_classes() | {GroupRecalibrator}}
    assert kinds <= {getattr(each, "kind", None) for each in golden_classes()}


@pytest.mark.parametrize("reader", ["from_bytes", "from_document"])
def test_every_class_that_reads_a_state_has_a_golden_one(reader: str) -> None:
    things = {
        thing for module in all_modules() for thing in vars(module).values() if isclass(thing)
    }
    own = {thing for thing in things if thing.__module__.startswith("calibrant.")}
    missing = {each for each in own if reader in vars(each) and not isabstract(each)}
    # Some read for the classes that are derived from them.
    covered = {base for each in golden_classes() for base in each.__mro__}
    assert missing - {Document} <= covered
