"""State that was written under an earlier default goes on as it was, whoever reads it."""

from __future__ import annotations

import functools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from golden.make_files import FILES, SEED, answers, begun, pattern

from calibrant import Calibrant, Journal, Recalibrator, Table
from calibrant.classes import ClassCalibrant
from calibrant.errors import CorruptState, InvalidInput
from calibrant.recalibrate.earlier import UNDO, earlier_forms, earlier_patterns, patterns_of, was
from calibrant.transforms import ExpertMixture, HatMeans, Identity
from tests.interrupting import interrupted

pytestmark = pytest.mark.base

DEFAULTS = Path(__file__).resolve().parent / "golden" / "defaults.json"
VERSIONS = sorted(path.name for path in FILES.iterdir())
NAMES = ("calibrant", "recalibrator")


def stored(version: str, name: str) -> dict[Any, bytes]:
    told = json.loads((FILES / version / f"bodies_{name}.json").read_text())
    return {key: bytes.fromhex(body) for key, body in told.items()}


def expected(version: str, name: str) -> Any:
    return json.loads((FILES / version / "answers.json").read_text())[f"bodies_{name}.json"]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", NAMES)
def test_a_table_of_the_pattern_takes_bodies_of_then(version: str, name: str) -> None:
    bodies, table = stored(version, name), Table(pattern(name), seed=SEED)
    table.take(list(bodies), list(bodies.values()))
    assert answers(table) == expected(version, name)


def test_an_interrupt_after_a_table_became_that_of_then_undoes_nothing_later() -> None:
    bodies, table = stored(VERSIONS[0], "calibrant"), Table(pattern("calibrant"), seed=SEED)
    # As if the interrupt came where `with` ends, and somebody held the traceback for a while.
    held = table._as_before_if_refused()
    held.__enter__()
    table.take(list(bodies), list(bodies.values()))
    del held
    assert answers(table) == expected(VERSIONS[0], "calibrant")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", NAMES)
def test_streams_in_a_store_come_back_as_they_were_written(version: str, name: str) -> None:
    store = stored(version, name)
    assert answers(Table(pattern(name), seed=SEED, store=store)) == expected(version, name)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_new_key_before_the_first_old_one_does_not_lock_out_the_store(version: str) -> None:
    table = Table(Calibrant(), seed=SEED, store=stored(version, "calibrant"))
    table.forecast("new", 0.5)
    found = answers(table)
    assert found.pop("rounds")[1:] == expected(version, "calibrant")["rounds"]
    assert found.items() <= expected(version, "calibrant").items()
    then = Table.open(FILES / version / "snapshot_calibrant")
    then.forecast("new", 0.5)
    assert table.row("new") == then.row("new")


@pytest.mark.parametrize("version", VERSIONS)
def test_what_a_table_took_over_is_stored_and_opened_with_the_settings_of_then(
    version: str, tmp_path: Path
) -> None:
    bodies, table = stored(version, "calibrant"), Table(Calibrant(), seed=SEED)
    table.take(list(bodies), list(bodies.values()))
    table.save(tmp_path / "table")
    for other in (Table.open(tmp_path / "table"), Table.from_bytes(table.to_bytes())):
        assert other.bodies() == table.bodies()
        assert answers(other) == expected(version, "calibrant")
    store: dict[Any, bytes] = {}
    table.store = store
    table.evict(keep=0)
    assert answers(Table(Calibrant(), seed=SEED, store=store)) == expected(version, "calibrant")


def test_streams_of_two_defaults_are_not_taken_into_one_table() -> None:
    bodies, table = stored("v2", "calibrant"), begun("calibrant")
    before = table.to_bytes()
    wrong = "body of key 'site 0' must be of today's model where a table has keys, got one of bef"
    with pytest.raises(InvalidInput, match=wrong):
        table.take(["site 0"], [bodies["site 0"]])
    assert table.to_bytes() == before
    fresh, mixed = Table(Calibrant(), seed=SEED), [bodies["site 0"], table.body("site 1")]
    empty = fresh.to_bytes()
    for two in (mixed, mixed[::-1]):
        with pytest.raises(CorruptState, match="must be what a table with these settings gave"):
            fresh.take(["a", "b"], two)
        assert fresh.to_bytes() == empty
    fresh.take(["site 1"], [table.body("site 1")])
    assert fresh.row("site 1") == table.row("site 1")


def test_bodies_of_another_model_are_of_no_earlier_default() -> None:
    bodies = stored("v2", "calibrant")
    for made in (Recalibrator(), Calibrant(buckets=2), Calibrant(max_open=5)):
        with pytest.raises(CorruptState):
            Table(made, seed=SEED).take(list(bodies), list(bodies.values()))


def test_an_interrupt_while_old_bodies_are_taken_changes_all_or_nothing() -> None:
    bodies = stored("v2", "calibrant")
    keys, told = list(bodies), list(bodies.values())
    empty, whole = Table(Calibrant(), seed=SEED), Table(Calibrant(), seed=SEED)
    whole.take(keys, told)
    possible = empty.to_bytes(), whole.to_bytes()
    at, stopped = 1, True
    while stopped:
        table = Table(Calibrant(), seed=SEED)
        stopped, _ = interrupted(functools.partial(table.take, keys, told), at)
        assert table.to_bytes() in possible
        table.take(keys, told)
        assert table.to_bytes() == whole.to_bytes()
        at += 1 + at // 40


SPELLINGS: dict[str, Recalibrator] = {
    "default": Calibrant(),
    "log": Calibrant(loss="log"),
    "context": Calibrant(context=True),
    "plain": Recalibrator(),
}
"""Patterns whose settings are for calibrant to choose."""


@pytest.mark.parametrize(("name", "made"), SPELLINGS.items())
def test_every_default_that_ever_was_is_known(name: str, made: Recalibrator) -> None:
    """If this fails, the default has changed: give earlier.UNDO a way back, and append it here."""
    listed = json.loads(DEFAULTS.read_text())[name]
    today = json.loads(json.dumps(made.spec.settings))
    assert today == listed[-1]
    known = [today, *json.loads(json.dumps(list(earlier_forms(made.spec.settings))))]
    assert known == listed[::-1]
    for then in earlier_patterns(made):
        assert was(then.spec, made)
        assert not was(made.spec, then)


def test_every_way_back_leads_somewhere() -> None:
    forms = [list(earlier_forms(made.spec.settings)) for made in SPELLINGS.values()]
    assert max(map(len, forms)) == len(UNDO)


NAMED: dict[str, dict[str, Any]] = {
    "share": {"share": 6e-4},
    "strength": {"strength": 5.3},
    "both": {"share": 6e-4, "strength": 5.3},
    "experts": {"experts": (Identity(), HatMeans()), "share": 6e-4},
}
"""What code may have named that is usual today."""


@pytest.mark.parametrize("told", NAMED.values(), ids=list(NAMED))
def test_what_was_named_before_it_was_usual_is_still_known(told: dict[str, Any]) -> None:
    today, share = Calibrant(**told), told.get("share", 3e-4)
    usual = {"start": None} if "experts" in told else {"start": (7.0, *[1.0] * 7)}
    made: Any = replace(today.transform, share=share, eta=2.0, **usual)  # type: ignore[type-var]
    then = Calibrant(made, strength=told.get("strength", 4.0))
    assert then.spec != today.spec
    assert was(then.spec, today)
    old, new = Table(then, seed=SEED), Table(today, seed=SEED)
    old.observe(old.forecast("a", 0.3), 1)
    new.take(["a"], [old.body("a")])
    assert new.forecast("a", 0.6).value == old.forecast("a", 0.6).value


def test_experts_of_ones_own_with_such_weights_are_not_taken_for_the_usual_ones() -> None:
    experts = (Identity(), HatMeans(), HatMeans(memory=9.0))
    own, other = (
        Calibrant(ExpertMixture(experts, share=0.1, start=(first, 1.0, 1.0)), strength=1.0)
        for first in (5.5, 7.0)
    )
    assert not was(other.spec, own)


def test_what_is_no_body_is_of_no_pattern() -> None:
    body = begun("calibrant").body("site 0")
    torn = [body, b"", body[:-1], body[:-8] + bytes(8), None, 3]
    assert [found is not None for found in patterns_of(torn, Calibrant())] == [True] + [False] * 5


def test_a_table_of_then_is_like_the_pattern_of_today() -> None:
    table = Table.open(FILES / "v2" / "snapshot_calibrant")
    assert table.is_like(Calibrant())
    assert not table.is_like(Calibrant(max_open=5))
    assert not table.is_like(Recalibrator())


@pytest.mark.parametrize("keyed", [False, True])
def test_a_journal_of_then_opens_with_the_pattern_of_today(keyed: bool, tmp_path: Path) -> None:
    then, *_ = earlier_patterns(Calibrant())
    path, options = tmp_path / "journal", {"keyed": keyed}
    key = "a" if keyed else None
    with Journal(path, then, **options) as journal:
        journal.forecast(key, 0.5, id="one")
    with Journal(path, Calibrant(), **options) as journal:
        journal.observe("one", 1)
    with pytest.raises(InvalidInput, match="pattern must be that of the stream"):
        Journal(path, Calibrant(buckets=2), **options)


def test_a_journal_of_classes_of_then_opens_with_the_pattern_of_today(tmp_path: Path) -> None:
    earlier, *_ = earlier_patterns(Calibrant())
    then = ClassCalibrant(3, experts=earlier.transform, strength=earlier.calibrator.strength)
    assert then.spec != ClassCalibrant(3).spec
    path = tmp_path / "journal"
    with Journal(path, then, keyed=False) as journal:
        journal.forecast(None, [0.2, 0.3, 0.5], id="one")
    with Journal(path, ClassCalibrant(3), keyed=False) as journal:
        journal.observe("one", 1)
    for other in (ClassCalibrant(4), ClassCalibrant(3, buckets=2), Calibrant()):
        with pytest.raises(InvalidInput, match="pattern must be that of the stream"):
            Journal(path, other, keyed=False)


def test_each_way_back_undoes_one_change_alone() -> None:
    usual, today = Calibrant().spec.settings, Calibrant(loss="log").spec.settings
    before_weights, before_swaps, before_alike, before_share = (undo(today) for undo in UNDO)
    now, then = today["transform"]["parameters"], before_share["transform"]["parameters"]
    assert now["alike"]
    assert now["swaps"]
    assert then == now | {"share": 3e-4}
    assert before_swaps["transform"]["parameters"] == {k: now[k] for k in now if k != "swaps"}
    halved = {"start": [0.5] + [0.5 / 7] * 7}
    assert before_weights["parameters"] == today["parameters"] | {"strength": 4.0}
    assert before_weights["transform"]["parameters"] == now | halved
    slower = UNDO[0](usual)["transform"]["parameters"]
    assert slower == usual["transform"]["parameters"] | halved | {"eta": 2.0, "share": 3e-4}
    assert "alike" not in before_alike["transform"]["parameters"]
    assert before_alike["transform"]["parameters"]["share"] == now["share"] == 3e-5


class Shelf:
    """A store that cannot say which keys it has."""

    def __init__(self) -> None:
        self.kept = dict[Any, bytes]()

    def __getitem__(self, key: Any) -> bytes:
        return self.kept[key]

    def __setitem__(self, key: Any, body: bytes) -> None:
        self.kept[key] = body

    def pop(self, key: Any, default: Any = None) -> Any:
        return self.kept.pop(key, default)


def test_a_store_that_does_not_list_its_keys_gives_them_back() -> None:
    shelf: Any = Shelf()
    first = Table(Calibrant(), seed=SEED, store=shelf)
    for key in ("a", "b"):
        first.observe(first.forecast(key, 0.5), 1)
        shelf[key] = first.body(key)
    again = Table(Calibrant(), seed=SEED, store=shelf)
    assert again.forecast("a", 0.3).value == first.forecast("a", 0.3).value
    assert again.row("a") == first.row("a")
