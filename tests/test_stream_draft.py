"""Files appear whole or not at all; signals wait while a row is half done."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="needs the extra cli")

from calibrant.stream import Drafts, Unwritable
from calibrant.stream.failure import uninterrupted


def test_nothing_is_there_before_the_commit_and_everything_after(tmp_path: Path) -> None:
    target = tmp_path / "o.csv"
    with Drafts() as drafts:
        drafts.reserve(str(target)).write_text("rows")
        assert not target.exists()
        drafts.commit()
    assert target.read_text() == "rows"
    assert os.listdir(tmp_path) == ["o.csv"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_whatever_goes_wrong_leaves_nothing_behind(
    tmp_path: Path, error: type[BaseException]
) -> None:
    def work() -> None:
        with Drafts() as drafts:
            drafts.reserve(str(tmp_path / "o.csv")).write_text("half of the")
            (drafts.reserve_directory(str(tmp_path / "plots")) / "a.svg").write_text("ink")
            raise error

    with pytest.raises(error):
        work()
    assert os.listdir(tmp_path) == []


def test_a_file_that_is_there_is_replaced_only_by_force(tmp_path: Path) -> None:
    target = tmp_path / "o.csv"
    target.write_text("old")
    with pytest.raises(Unwritable) as caught, Drafts() as drafts:
        drafts.reserve(str(target))
    assert str(caught.value) == f"{target}: already exists; --force replaces it"
    assert target.read_text() == "old"
    with Drafts(force=True) as drafts:
        drafts.reserve(str(target)).write_text("new")
        drafts.commit()
    assert target.read_text() == "new"


def test_a_state_is_replaced_without_force_and_kept_from_others(tmp_path: Path) -> None:
    target = tmp_path / "state"
    target.write_text("old")
    with Drafts() as drafts:
        drafts.reserve(str(target), replace=True, secret=True).write_text("new")
        drafts.commit()
    assert target.read_text() == "new"
    assert target.stat().st_mode & 0o777 == 0o600


def test_a_link_goes_on_pointing_to_the_same_file(tmp_path: Path) -> None:
    (tmp_path / "real.csv").write_text("old")
    link = tmp_path / "link.csv"
    link.symlink_to("real.csv")
    with Drafts(force=True) as drafts:
        drafts.reserve(str(link)).write_text("new")
        drafts.commit()
    assert link.is_symlink()
    assert (tmp_path / "real.csv").read_text() == "new"


def test_a_device_is_written_as_it_is() -> None:
    with Drafts() as drafts:
        assert drafts.reserve("/dev/null") == Path("/dev/null")
        drafts.commit()
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("", "cannot be written: Is a directory"),
        ("no/such/o.csv", "cannot be written: No such file"),
    ],
)
def test_a_place_that_cannot_be_written_is_told_before_the_work(
    tmp_path: Path, name: str, told: str
) -> None:
    with pytest.raises(Unwritable, match=told), Drafts() as drafts:
        drafts.reserve(str(tmp_path / name))


def test_pictures_go_into_a_directory(tmp_path: Path) -> None:
    target = tmp_path / "plots"
    for force, text in ((False, "first"), (True, "second")):
        with Drafts(force=force) as drafts:
            (drafts.reserve_directory(str(target)) / "a.svg").write_text(text)
            drafts.commit()
        assert (target / "a.svg").read_text() == text
    assert os.listdir(tmp_path) == ["plots"]


def test_an_empty_directory_needs_no_force(tmp_path: Path) -> None:
    with Drafts() as drafts:
        (drafts.reserve_directory(str(tmp_path)) / "a.svg").write_text("ink")
        drafts.commit()
    assert os.listdir(tmp_path) == ["a.svg"]


def test_a_directory_in_use_and_a_file_are_no_place_for_pictures(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(Unwritable, match="already exists and is not a directory"):
        Drafts().reserve_directory(str(file))
    with pytest.raises(Unwritable, match="not empty; --force writes into it"):
        Drafts().reserve_directory(str(tmp_path))


def test_an_interrupt_waits_until_the_row_is_done() -> None:
    done = []

    def work() -> None:
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
            done.append("row")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["row"]


def test_without_an_interrupt_nothing_happens_and_handlers_come_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with uninterrupted():
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before


def test_in_other_threads_signals_are_left_alone() -> None:
    seen: list[object] = []

    def work() -> None:
        before = signal.getsignal(signal.SIGINT)
        with uninterrupted():
            seen.append(signal.getsignal(signal.SIGINT) is before)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [True]
