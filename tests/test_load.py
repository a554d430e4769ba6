"""A state is read back by whoever wrote it, without being told who that was."""

from __future__ import annotations

import importlib
import pickle
import pkgutil
from collections.abc import Iterator
from inspect import isabstract, isclass
from pathlib import Path
from typing import Any

import pytest

import calibrant
from calibrant import Calibrant, Recalibrator, Ticket, load
from calibrant.classes import OneVsRest
from calibrant.core.codec import Document
from calibrant.core.stateful import Stateful, registered
from calibrant.errors import CorruptState, InvalidInput
from calibrant.groups import GroupRecalibrator
from calibrant.learners import OnlineL1SVM
from calibrant.loading import PACKAGES
from calibrant.outcomes import ObservedOnly, PendingUnknown, WaitForHorizon

pytestmark = pytest.mark.base

KINDS = [Calibrant, Recalibrator]


def made(kind: type[Recalibrator]) -> Recalibrator:
    model = kind(seed=3)
    model.replay([0.2, 0.7, 0.7], [0, 1, 0])
    model.forecast(0.4, id="waiting")
    return model


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_dictionaries_and_files_are_read_back(
    kind: type[Recalibrator], tmp_path: Path
) -> None:
    model = made(kind)
    file = tmp_path / "state"
    file.write_bytes(model.to_bytes())
    views = bytearray(model.to_bytes()), memoryview(model.to_bytes())
    for source in (model.to_bytes(), *views, model.to_dict(), file, str(file)):
        again = load(source)
        assert type(again) is kind
        assert again == model
        assert again.observe("waiting", 1).outcome == 1


@pytest.mark.parametrize("kind", KINDS)
def test_damage_is_told_as_it_is(kind: type[Recalibrator]) -> None:
    content = made(kind).to_bytes()
    with pytest.raises(CorruptState, match=r"^state must be whole and unaltered, got"):
        load(content[:-1])
    told = made(kind).to_dict()
    with pytest.raises(CorruptState, match=r"^state must be unaltered, got data whose checksum"):
        load(told | {"settings": told["settings"] | {"prior": 7}})
    broken = Document(kind.kind, {"method": "foster_hart"}, {}).to_bytes()
    with pytest.raises(CorruptState, match=rf"^state must be of a {kind.kind}, got 'parameters'"):
        load(broken)


def test_a_state_of_something_else_is_refused() -> None:
    with pytest.raises(CorruptState) as caught:
        load(Document("session", {}, {}).to_bytes())
    assert str(caught.value).startswith("state must be of a kind among 'calibrant', ")
    told = ", got 'session': go on from it with calibrant replay --state"
    assert str(caught.value).endswith(told)
    with pytest.raises(CorruptState, match=r"^state must be bytes, got int"):
        load(7)  # type: ignore[arg-type]


def test_a_file_that_is_not_there_is_the_systems_own_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "absent")


def stored() -> Iterator[type[Any]]:
    """Yield every class of the packages of users whose objects are stored by themselves."""
    for package in PACKAGES:
        found = importlib.import_module(f"calibrant.{package}")
        for module in pkgutil.iter_modules(found.__path__, f"{found.__name__}."):
            for made in vars(importlib.import_module(module.name)).values():
                own = isclass(made) and made.__module__ == module.name
                if own and hasattr(made, "to_bytes") and not isabstract(made):
                    yield made


def test_every_class_with_a_state_is_one_that_load_knows() -> None:
    found = [made for made in stored() if not made.__name__.endswith("Ticket")]
    assert {OnlineL1SVM, ObservedOnly, PendingUnknown, WaitForHorizon, Calibrant} <= {*found}
    for made in found:
        assert issubclass(made, Stateful), made
        assert "kind" not in vars(made) or registered()[made.kind] is made


def test_a_learner_is_read_copied_pickled_and_compared() -> None:
    svm = OnlineL1SVM(3)
    svm.replay([[0, 1, 2], [2, 1, 0], [0, 0, 2]], [1, 0, 1])
    for again in (load(svm.to_bytes()), load(svm.to_dict()), pickle.loads(pickle.dumps(svm))):
        assert again == svm
        assert again.learn_one([1, 1, 1], 0) != svm


AROUND = [
    lambda rec: WaitForHorizon(rec, 2.0),
    lambda rec: PendingUnknown(rec, 2.0, buckets=2),
    lambda rec: ObservedOnly(rec, 0.5, seed=3),
]


@pytest.mark.parametrize("around", AROUND)
def test_what_stands_around_a_recalibrator_is_read_beside_it(around: Any) -> None:
    rec = Recalibrator(seed=1)
    made = around(rec)
    made.forecast(0.3, time=1.0, id="one")
    twin = Recalibrator.from_bytes(rec.to_bytes())
    ways = (
        load(made.to_bytes(), recalibrator=twin),
        load(made.to_dict(), recalibrator=twin),
        made.copy(),
        pickle.loads(pickle.dumps(made)),
    )
    for again in ways:
        assert type(again) is type(made)
        assert again == made
        assert again.recalibrator is not rec
    assert around(Recalibrator(seed=2)) != made
    assert made != made.to_bytes()
    changed = ways[2]
    changed.forecast(0.3, time=1.5)
    assert changed != made
    assert rec.issued == 1
    with pytest.raises(InvalidInput) as refused:
        load(made.to_bytes())
    assert str(refused.value) == (
        "recalibrator must be the one that was stored beside the state, got None"
    )


@pytest.mark.parametrize(
    "ticket", [Recalibrator(seed=1).forecast(0.5), OneVsRest(3, seed=1).forecast([0.2, 0.3, 0.5])]
)
def test_a_ticket_is_read_by_its_own_class_and_load_says_so(ticket: Any) -> None:
    told = ": a ticket is read by its own class, as Ticket.from_bytes"
    with pytest.raises(CorruptState) as refused:
        load(ticket.to_bytes())
    assert str(refused.value).endswith(told)
    assert type(ticket).from_bytes(ticket.to_bytes()).to_dict() == ticket.to_dict()
    assert Ticket is calibrant.Ticket


def always(context: Any, history: Any) -> str:
    return "always"


def test_a_state_with_rules_of_groups_says_how_to_give_them_again() -> None:
    model = GroupRecalibrator([always], seed=1)
    model.forecast(0.4)
    told = (
        "groups must be the 1 rules and the names [] that the state was made with, got 0 and []: "
        "give them again, by load(data, groups=...) or "
        "GroupRecalibrator.from_bytes(data, groups=...)"
    )
    for source in (model.to_bytes(), model.to_dict()):
        with pytest.raises(InvalidInput) as caught:
            load(source)
        assert str(caught.value) == told
        assert load(source, groups=[always]) == model
        with pytest.raises(InvalidInput, match=r"got 2 and \[\]$"):
            load(source, groups=[always, always])
