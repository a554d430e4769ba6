"""Real streams that come along: every file is what the list says, and every stream loads."""

from __future__ import annotations

import gzip
import hashlib
import inspect
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from benchmarks.pack import PACKED
from calibrant import datasets
from calibrant.datasets import __main__ as command
from calibrant.datasets import loaders, shelf
from calibrant.errors import InvalidInput, MissingData, MissingExtra

pytestmark = [pytest.mark.base, pytest.mark.once]

ROOT = Path(__file__).resolve().parent.parent
MOST_BYTES = 8_000_000
TRAVELS = [each for each in shelf.files().values() if each.shelf != "fetch"]
FIGURES = set("0123456789.-+: eE")


@pytest.mark.parametrize("each", TRAVELS, ids=lambda each: each.name)
def test_every_file_that_travels_is_what_the_list_says(each: shelf.File) -> None:
    body = (shelf.SHELVES[each.shelf] / each.name).read_bytes()
    assert (len(body), hashlib.sha256(body).hexdigest()) == (each.size, each.sha256)
    assert shelf.SOURCES[each.name.partition("/")[0]].shelf == each.shelf


def test_nothing_lies_on_the_shelves_that_is_not_listed() -> None:
    found = {
        path.relative_to(place).as_posix()
        for place in shelf.SHELVES.values()
        for path in place.rglob("*")
        if path.is_file() and path.name != "README.md"
    }
    assert found == {each.name for each in TRAVELS} == set(PACKED)


def test_all_files_together_are_small() -> None:
    assert sum(each.size for each in TRAVELS) <= MOST_BYTES


def test_files_that_must_stay_apart_are_not_in_the_package() -> None:
    for folder, source in shelf.SOURCES.items():
        apart = "GPL" in source.licence or "SA" in source.licence
        inside = (shelf.SHELVES["wheel"] / folder).exists()
        assert apart is not inside, folder
        assert source.origin
        assert source.licence


def test_every_folder_apart_tells_its_licence() -> None:
    for name in ("gpl", "cc-by-sa"):
        told = (shelf.SHELVES[name] / "README.md").read_text()
        for folder, source in shelf.SOURCES.items():
            if source.shelf == name:
                assert folder in told
                assert source.licence in told


def test_no_sentence_of_others_travels() -> None:
    """Words in the tables are short codes, names of states, markets, subjects and industries."""
    for each in TRAVELS:
        if each.name.endswith(".csv.gz"):
            body = gzip.decompress((shelf.SHELVES[each.shelf] / each.name).read_bytes()).decode()
            cells = {cell for line in body.splitlines()[1:] for cell in line.split(",")}
            words = [cell.strip('"') for cell in cells if not set(cell) <= FIGURES]
            assert all(len(word) <= 32 for word in words), each.name
            assert len(words) < 1_300, each.name


LOADERS = {name: getattr(datasets, name) for name in datasets.__all__ if name.startswith("load_")}


@pytest.mark.parametrize("name", sorted(set(LOADERS) - {"load_drift"}))
def test_every_stream_loads(name: str) -> None:
    found = LOADERS[name]()
    if isinstance(found, datasets.Dataset):
        assert len(found) == len(found.outcomes) > 0
        assert ((found.raw >= 0.0) & (found.raw <= 1.0)).all()
        assert all(len(names) == len(found) for names in found.groups.values())
        assert (found.licence, found.origin) in {
            (each.licence, each.origin) for each in shelf.SOURCES.values()
        }
    else:
        first, second = found
        assert len(first) == len(second) > 0


@pytest.mark.parametrize("name", sorted(LOADERS))
def test_a_choice_that_is_not_there_is_refused(name: str) -> None:
    choices = [
        each.name
        for each in inspect.signature(LOADERS[name]).parameters.values()
        if isinstance(each.default, str)
    ]
    if name == "load_drift" and find_spec("sklearn") is None:
        # A model of scikit-learn scores these tables, and is asked for first.
        with pytest.raises(MissingExtra):
            LOADERS[name](table="none such")
        return
    for each in choices:
        with pytest.raises(InvalidInput, match=f"{each} must be one of"):
            LOADERS[name](**{each: "none such"})


def test_outcomes_that_come_late_come_after_their_forecasts() -> None:
    for found in (
        datasets.load_elections("governors"),
        datasets.load_elections("president"),
        datasets.load_recessions(),
        datasets.load_markets(delayed=True),
    ):
        assert found.time is not None
        assert found.available is not None
        assert (found.available > found.time).all()
        assert (np.diff(found.time) >= 0.0).all()


def test_games_are_in_the_order_in_which_they_were_played() -> None:
    seasons = datasets.load_games("nba").groups["season"].astype(int)
    assert (np.diff(seasons) >= 0).all()


def test_a_directory_that_is_named_is_the_only_one(tmp_path: Path) -> None:
    with pytest.raises(MissingData, match=r"recid\.csv\.gz: not there"):
        datasets.load_recidivism(data=tmp_path)
    packed = shelf.path("recidivism/recid.csv.gz")
    (tmp_path / "recidivism").mkdir()
    plain = tmp_path / "recidivism" / "recid.csv"
    plain.write_bytes(gzip.decompress(packed.read_bytes()))
    assert len(datasets.load_recidivism(data=tmp_path)) == 1_000


def test_the_setting_is_looked_at_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "recidivism").mkdir()
    own = tmp_path / "recidivism" / "recid.csv"
    own.write_text("anything")
    monkeypatch.setenv(shelf.ELSEWHERE, str(tmp_path))
    assert shelf.path("recidivism/recid.csv.gz") == own
    assert shelf.path("solar_flares/flares_M1.csv.gz").parent.parent == shelf.SHELVES["wheel"]


def test_what_is_not_there_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(shelf.ELSEWHERE, raising=False)
    monkeypatch.setenv(shelf.FETCHED, str(tmp_path))
    monkeypatch.setitem(shelf.SHELVES, "gpl", tmp_path)
    with pytest.raises(MissingData, match=r"python -m calibrant\.datasets fetch genotypes"):
        shelf.path("genotypes/hapmap3.bed")
    with pytest.raises(MissingData, match="data/gpl of a clone of the repository has it"):
        datasets.load_icing()
    with pytest.raises(InvalidInput, match="name must begin with one of"):
        shelf.path("chess/games.csv")


# Fetching.


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """Addresses of two files of one folder, with a list that fits them."""
    bodies = {"https://example.org/a": b"first", "https://example.org/b": b"second"}
    names = {"free917/a.txt": "https://example.org/a", "free917/b.txt": "https://example.org/b"}
    listed = {
        name: shelf.File(name, "fetch", len(bodies[at]), hashlib.sha256(bodies[at]).hexdigest())
        for name, at in names.items()
    }
    module = sys.modules["calibrant.datasets.fetch"]
    monkeypatch.setattr(module, "ADDRESSES", names)
    monkeypatch.setattr(module, "files", lambda: listed)
    return bodies


def test_fetched_files_are_checked_and_kept(source: dict[str, bytes], tmp_path: Path) -> None:
    asked: list[str] = []

    def read(address: str) -> bytes:
        asked.append(address)
        return source[address]

    made = datasets.fetch("free917", tmp_path, read=read)
    assert [path.read_bytes() for path in made] == [b"first", b"second"]
    assert datasets.fetch("free917", tmp_path, read=read) == made
    assert len(asked) == 2
    made[0].write_bytes(b"damaged")
    datasets.fetch("free917", tmp_path, read=read)
    assert made[0].read_bytes() == b"first"
    assert asked[2:] == ["https://example.org/a"]


def test_bytes_with_another_digest_are_not_written(
    source: dict[str, bytes], tmp_path: Path
) -> None:
    with pytest.raises(InvalidInput, match=r"a\.txt must be 5 bytes with SHA-256 \w+, got 5 other"):
        datasets.fetch("free917", tmp_path, read=lambda address: b"other")
    assert not list(tmp_path.rglob("*.*"))


def test_a_folder_that_is_not_fetched_is_refused() -> None:
    with pytest.raises(InvalidInput, match="folder must be one of free917, genotypes, got 'chess'"):
        datasets.fetch("chess")


def test_the_usual_download_reads_an_address(tmp_path: Path) -> None:
    module = sys.modules["calibrant.datasets.fetch"]
    (tmp_path / "x").write_bytes(b"here")
    assert module._download((tmp_path / "x").as_uri()) == b"here"


def test_the_cache_of_the_user_is_where_fetched_files_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(shelf.FETCHED, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert shelf.fetched() == tmp_path / "calibrant" / "data"


def test_every_file_to_fetch_has_an_address_and_a_digest() -> None:
    listed = {each.name for each in shelf.files().values() if each.shelf == "fetch"}
    assert listed == set(shelf.ADDRESSES)


def test_the_command_lists_sources_and_refuses_in_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(shelf.ELSEWHERE, raising=False)
    monkeypatch.setenv(shelf.FETCHED, str(tmp_path))
    assert command.main([]) == 0
    told = capsys.readouterr().out
    for folder, source in shelf.SOURCES.items():
        assert f"{folder} ({source.licence})" in told
    assert "! genotypes/hapmap3.bed" in told
    assert command.main(["fetch", "chess"]) == 1
    assert capsys.readouterr().err.startswith("calibrant: folder must be one of")


def test_loading_needs_numpy_alone() -> None:
    code = "import sys, calibrant as c; c.datasets.load_games(); print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"scipy", "pandas", "pyarrow", "sklearn", "matplotlib"} & set(ran.stdout.split())


def test_days_and_hours_are_days() -> None:
    assert loaders.day("2020-01-02") - loaders.day("2020-01-01 12:00:00") == 0.5
