"""A state with a keyed digest is read by who has the key, and nobody else wrote it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from everyone import EVERYONE

from calibrant import Calibrant, Recalibrator, load
from calibrant.core.codec import Document
from calibrant.core.seal import MAGIC
from calibrant.errors import CorruptState, InvalidInput, InvalidType
from calibrant.learners import OnlineL1SVM
from calibrant.monitor import Monitor
from calibrant.outcomes import ObservedOnly, PendingUnknown, WaitForHorizon
from calibrant.recalibrate.table import Table

KEY, OTHER = b"sixteen bytes or more" * 9, bytes(16)
MADE = {name: lambda one=one: one.make(seed=1) for name, one in EVERYONE.items()}
MADE |= {"table": lambda: Table(Recalibrator(), seed=1), "monitor": Monitor}
pytestmark = pytest.mark.base


def written(model: Any, form: str, key: bytes | None) -> Any:
    data = model.to_bytes(authenticate=key) if form == "bytes" else model.to_dict(authenticate=key)
    return data if form == "bytes" else json.loads(json.dumps(data))


def read(model: Any, data: Any, key: bytes | None) -> Any:
    made = type(model).from_bytes if isinstance(data, bytes) else type(model).from_dict
    return made(data, authenticate=key)


@pytest.mark.parametrize("name", sorted(set(MADE) - {"simplex"}))
@pytest.mark.parametrize("form", ["bytes", "data"])
def test_only_who_has_the_key_reads_the_state(name: str, form: str) -> None:
    model = MADE[name]()
    data = written(model, form, KEY)
    assert read(model, data, KEY) == model
    assert load(data, authenticate=KEY) == model
    for reader in (lambda key: read(model, data, key), lambda key: load(data, authenticate=key)):
        with pytest.raises(CorruptState, match="state must be read with authenticate="):
            reader(None)
        with pytest.raises(CorruptState, match="got another keyed digest"):
            reader(OTHER)
    with pytest.raises(CorruptState, match="must be one that was written with authenticate="):
        read(model, written(model, form, None), KEY)


def test_a_key_adds_forty_bytes_and_changes_none() -> None:
    model = Calibrant(seed=1)
    plain, keyed = model.to_bytes(), model.to_bytes(authenticate=KEY)
    assert keyed[:8] == MAGIC
    assert keyed[8:-32] == plain
    assert model.to_dict(authenticate=KEY) == model.to_dict() | {
        "seal": keyed[-32:].hex(),
    }


def test_what_is_altered_is_refused_even_with_a_right_digest_inside() -> None:
    model = Recalibrator(seed=1)
    stored = model._document()
    forged = Document(stored.kind, stored.settings | {"prior": 2}, stored.arrays, stored.version)
    keyed = model.to_bytes(authenticate=KEY)
    with pytest.raises(CorruptState, match="keyed digest"):
        load(MAGIC + forged.to_bytes() + keyed[-32:], authenticate=KEY)
    for place in range(0, len(keyed), 7):
        torn = bytearray(keyed)
        torn[place] ^= 1
        with pytest.raises(CorruptState):
            load(bytes(torn), authenticate=KEY)
    for end in range(0, len(keyed), 11):
        with pytest.raises(CorruptState):
            load(keyed[:end], authenticate=KEY)
    data = forged.to_dict() | {"seal": model.to_dict(authenticate=KEY)["seal"]}
    for seal in (data["seal"], None, "", "é", 5):
        with pytest.raises(CorruptState):
            Recalibrator.from_dict(data | {"seal": seal}, authenticate=KEY)


def test_keys_are_bytes_and_long_enough() -> None:
    model = Recalibrator(seed=1)
    with pytest.raises(InvalidType, match="authenticate must be bytes, got str"):
        model.to_bytes(authenticate="secret" * 9)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="authenticate must have 16 bytes or more, got 15"):
        model.to_dict(authenticate=bytes(15))
    with pytest.raises(CorruptState, match="state must be bytes, got int"):
        Recalibrator.from_bytes(5, authenticate=KEY)  # type: ignore[arg-type]
    with pytest.raises(CorruptState):
        Recalibrator.from_dict([], authenticate=KEY)  # type: ignore[arg-type]


def test_a_file_is_read_with_its_key(tmp_path: Path) -> None:
    model = Recalibrator(seed=1)
    model.replay(np.linspace(0, 1, 50), np.arange(50) % 2)
    (tmp_path / "state").write_bytes(model.to_bytes(authenticate=KEY))
    assert load(tmp_path / "state", authenticate=KEY) == model


AROUND = {
    "wait": lambda made: WaitForHorizon(made, 5.0),
    "pending": lambda made: PendingUnknown(made, 5.0),
    "observed": lambda made: ObservedOnly(made, 0.2, seed=3),
}


@pytest.mark.parametrize("name", AROUND)
def test_what_is_around_a_recalibrator_is_sealed_with_a_key_too(name: str) -> None:
    inside = Recalibrator(seed=1)
    made = AROUND[name](inside)
    keyed = made.to_bytes(authenticate=KEY)
    assert keyed[8:-32] == made.to_bytes()
    again = type(made).from_bytes(keyed, inside, authenticate=KEY)
    assert again.to_bytes() == made.to_bytes()
    for key, told in ((None, "read with authenticate="), (OTHER, "another keyed digest")):
        with pytest.raises(CorruptState, match=told):
            type(made).from_bytes(keyed, inside, authenticate=key)
    with pytest.raises(CorruptState, match="one that was written with authenticate="):
        type(made).from_bytes(made.to_bytes(), inside, authenticate=KEY)


@pytest.mark.parametrize("form", ["bytes", "data"])
def test_a_learner_is_sealed_with_a_key_too(form: str) -> None:
    learner = OnlineL1SVM(3)
    data = written(learner, form, KEY)
    assert read(learner, data, KEY).to_bytes() == learner.to_bytes()
    for key, told in ((None, "read with authenticate="), (OTHER, "another keyed digest")):
        with pytest.raises(CorruptState, match=told):
            read(learner, data, key)
