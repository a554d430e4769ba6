"""A state is read back by whoever wrote it, without being told who that was."""

from __future__ import annotations

from pathlib import Path

import pytest

from calibrant import Calibrant, Recalibrator, load
from calibrant.core.codec import Document
from calibrant.errors import CorruptState

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
    assert str(caught.value).endswith(", got 'session'")
    with pytest.raises(CorruptState, match=r"^state must be bytes, got int"):
        load(7)  # type: ignore[arg-type]


def test_a_file_that_is_not_there_is_the_systems_own_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "absent")
