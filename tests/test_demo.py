"""The demo: its stream, its games, what it prints and writes, and what it says goes wrong."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

from calibrant import Calibrant, Recalibrator, __version__
from calibrant.cli import ExitCode
from calibrant.demo import main, scanner, screen
from calibrant.demo import show as showing
from calibrant.demo.games import GAMES, MARKS, Row, results
from calibrant.demo.scanner import BLOCK, Stream, scan
from calibrant.demo.show import NEEDED, show
from calibrant.errors import InvalidInput, MissingExtra
from calibrant.metrics import brier
from calibrant.simulate import play

# ------------------------------------------------------------------------------ the stream


@pytest.fixture(scope="module")
def stream() -> Stream:
    return scan(20_000)


def test_a_seed_makes_one_stream_and_another_seed_another() -> None:
    stream, again, other = scan(1000), scan(1000), scan(1000, seed=8)
    assert again.raw.tolist() == stream.raw.tolist()
    assert again.outcome.tolist() == stream.outcome.tolist()
    assert other.raw.tolist() != stream.raw.tolist()


@pytest.mark.parametrize("rounds", [1, BLOCK, BLOCK + 1])
def test_a_stream_has_as_many_rounds_as_asked_for(rounds: int) -> None:
    stream = scan(rounds)
    assert len(stream) == rounds
    assert stream.time.tolist() == list(range(rounds))
    assert ((stream.raw >= 0.0) & (stream.raw <= 1.0)).all()
    assert np.isin(stream.outcome, [0, 1]).all()


def test_the_classifier_is_surer_than_it_is_right(stream: Stream) -> None:
    yes, no = stream.raw > 0.9, stream.raw < 0.1
    assert min(yes.mean(), no.mean()) > 0.2
    assert stream.outcome[yes].mean() < stream.raw[yes].mean() - 0.05
    assert stream.outcome[no].mean() > stream.raw[no].mean() + 0.05


def test_the_classifier_is_worth_listening_to(stream: Stream) -> None:
    assert ((stream.raw > 0.5) == stream.outcome).mean() > 0.7


def test_dirt_on_the_lens_costs_accuracy_until_it_is_cleaned(stream: Stream) -> None:
    clean, dirty, cleaned = (
        brier(stream.raw[part], stream.outcome[part])
        for part in (slice(0, 2000), slice(10_000, 12_000), slice(12_000, 14_000))
    )
    assert dirty > clean + 0.1
    assert dirty > cleaned + 0.1


def test_the_mix_changes_for_the_last_fifth(stream: Stream) -> None:
    before, after = stream.outcome[:16_000].mean(), stream.outcome[16_000:].mean()
    assert before == pytest.approx(0.5, abs=0.02)
    assert after == pytest.approx(0.4, abs=0.03)


class FakeLearner:
    """It knows all digits: the pixel of an image is its number, and the last figure its digit."""

    learned: set[float]
    asked: set[float]

    def fit(self, images: Any, odd: Any) -> FakeLearner:
        FakeLearner.learned = set(images[:, 0])
        FakeLearner.asked = set()
        return self

    def predict_proba(self, images: Any) -> Any:
        FakeLearner.asked |= set(images[:, 0])
        odd = images[:, 0] % 2
        return np.column_stack([1 - odd, odd])


@pytest.fixture
def of_fakes(monkeypatch: pytest.MonkeyPatch) -> Stream:
    """A stream from 300 images of one pixel, read by who knows them all."""
    images, digits = np.arange(300.0)[:, np.newaxis], np.arange(300) % 10
    fake = SimpleNamespace(
        load_digits=lambda return_X_y: (images, digits),
        LogisticRegression=lambda **settings: FakeLearner(),
    )
    monkeypatch.setattr(scanner, "_scikit_learn", lambda part: fake)
    monkeypatch.setattr(scanner, "_through_the_lens", lambda images, share, rng: images)
    return scan(5000)


@pytest.mark.base
def test_the_outcome_is_whether_the_digit_is_odd(of_fakes: Stream) -> None:
    assert of_fakes.outcome.tolist() == of_fakes.raw.tolist()


@pytest.mark.base
@pytest.mark.usefixtures("of_fakes")
def test_the_stream_holds_no_image_that_the_classifier_has_learned_from() -> None:
    assert len(FakeLearner.learned) == 100
    assert FakeLearner.asked == set(range(300)) - FakeLearner.learned


def test_a_stream_is_written_with_a_header_and_six_digits(stream: Stream, tmp_path: Path) -> None:
    stream.write(tmp_path / "stream.csv")
    assert (tmp_path / "stream.csv").read_text().startswith("time,raw,outcome\n0,0.")
    time, raw, outcome = np.loadtxt(tmp_path / "stream.csv", delimiter=",", skiprows=1).T
    assert time.tolist() == stream.time.tolist()
    assert raw.tolist() == np.round(stream.raw, 6).tolist()
    assert outcome.tolist() == stream.outcome.tolist()


@pytest.mark.base
def test_no_rounds_are_no_stream() -> None:
    with pytest.raises(InvalidInput, match="rounds must be a whole number of at least 1, got 0"):
        scan(0)


@pytest.mark.base
def test_without_scikit_learn_the_stream_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(MissingExtra) as caught:
        scan(10)
    assert str(caught.value) == (
        "the demo's stream needs scikit-learn, which is not installed: pip install scikit-learn"
    )


# ------------------------------------------------------------------------------- the games


def by_player(rows: list[Row]) -> dict[tuple[str, int], Row]:
    return {(row.player, row.rounds): row for row in rows}


def test_on_coin_tosses_the_numbers_are_those_of_the_paper() -> None:
    rows = by_player(results(GAMES[0], games=3))
    for rounds in MARKS:
        ours, raw = rows["Algorithm 1", rounds], rows["raw forecast", rounds]
        assert rounds * ours.loss == pytest.approx(0.35)
        assert rounds * ours.c1 == pytest.approx(1.3)
        assert rounds * ours.c2 == pytest.approx(0.35)
        assert (raw.loss, raw.c1, raw.c2) == pytest.approx((0.09, 0.3, 0.09))
        assert rows["calibrator alone", rounds].loss == pytest.approx(0.25, abs=0.015)
    assert max(rows["Algorithm 1", 300].loss, rows["Algorithm 1", 300].c2) < 0.005
    assert rows["calibrator alone", 1000].c2 < 0.01


def test_against_the_adversary_the_numbers_are_those_of_the_paper() -> None:
    rows = by_player(results(GAMES[1], games=3))
    assert rows["Algorithm 1", 1000].c1 < 0.03
    assert rows["Algorithm 1", 1000].loss == pytest.approx(0.25, abs=0.01)
    assert rows["Algorithm 1", 300].loss > rows["Algorithm 1", 1000].loss
    assert rows["calibrator alone", 1000].loss == pytest.approx(0.25, abs=0.005)
    assert rows["raw forecast", 1000].loss == pytest.approx(0.5, abs=0.03)


@pytest.mark.base
def test_results_are_averages_over_the_games() -> None:
    records = [
        play(
            Recalibrator("foster_hart", resolution=10, buckets=10, prior=0, seed=seed),
            "noise",
            "threshold",
            1000,
            seed=seed,
        )
        for seed in (0, 1)
    ]
    row = by_player(results(GAMES[1], games=2))["Algorithm 1", 300]
    assert row.loss == pytest.approx(np.mean([r.running_loss()[299] for r in records]))
    assert row.c1 == pytest.approx(np.mean([r.running_c1[299] for r in records]))
    assert row.c2 == pytest.approx(np.mean([r.running_c2[299] for r in records]))


# ------------------------------------------------------------------------------ what is seen


def without(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Pretend that these packages are not installed."""
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name in names else find(name)
    )


def test_tables_and_headings_say_the_same_with_and_without_rich(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    columns, rows = {"": "left", "loss": "right"}, [["raw [0, 1]", "0.09"], ["Algorithm 1", "0"]]
    texts = []
    for absent in ((), ("rich",)):
        with monkeypatch.context() as patch:
            without(patch, *absent)
            screen.heading("One title")
            screen.table("A table", columns, rows)
        texts.append(capsys.readouterr().out)
    assert "=========" in texts[1]
    assert texts[0].split() == texts[1].replace("=", "").split()


def play_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spare the time of the other games."""
    monkeypatch.setattr(showing, "results", lambda game: results(game, games=1))


class Shown(NamedTuple):
    code: int
    text: str
    directory: Path


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    directory, text = tmp_path_factory.mktemp("demo") / "new", io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(text):
        play_once(patch)
        code = show(directory, rounds=3000)
    return Shown(code, text.getvalue(), directory)


def test_the_demo_writes_stream_forecasts_summary_and_report(shown: Shown) -> None:
    assert shown.code == ExitCode.OK
    assert sorted(path.name for path in shown.directory.iterdir()) == [
        "forecasts.csv",
        "report.html",
        "stream.csv",
        "summary.json",
    ]
    assert json.loads((shown.directory / "summary.json").read_text())["n_rounds"] == 3000


def test_the_demo_tells_its_parts_in_order(shown: Shown) -> None:
    parts = [
        "1. A classifier that is too sure of itself",
        "$ calibrant replay",
        "Brier score",
        "\nCases you gave ",
        "2. The two games of the paper",
        "Coin tosses",
        "Adversary",
        "3. What to do next",
        f"Open {(shown.directory / 'report.html').as_uri()}",
        "./script/demo replay my.csv",
        "That took",
    ]
    places = [shown.text.find(part) for part in parts]
    assert -1 not in places
    assert places == sorted(places)


def test_what_the_demo_says_fits_into_80_columns(shown: Shown) -> None:
    lines = shown.text.replace(str(shown.directory), "demo").splitlines()
    assert [line for line in lines if len(line) > 80] == []


def test_the_sentence_of_the_demo_stands_in_its_report(shown: Shown) -> None:
    text = " ".join(shown.text.split())
    told = text.partition(" Cases you gave ")[2].partition(". Accuracy")[0]
    page = " ".join((shown.directory / "report.html").read_text().split())
    assert told
    assert told in page.replace("\xa0", " ")


def test_the_command_that_the_demo_prints_gives_the_forecasts_it_wrote(shown: Shown) -> None:
    _, raw, outcome = np.loadtxt(shown.directory / "stream.csv", delimiter=",", skiprows=1).T
    table = np.loadtxt(shown.directory / "forecasts.csv", delimiter=",", skiprows=1)
    assert "--seed 7 " in shown.text
    assert table[:, 3].tolist() == Calibrant(seed=7).replay(raw, outcome).forecast.tolist()


@pytest.mark.base
def test_without_its_packages_the_demo_plays_the_games_and_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    without(monkeypatch, *NEEDED)
    play_once(monkeypatch)
    assert show(tmp_path / "demo") == ExitCode.MISSING_EXTRA
    text = capsys.readouterr().out
    assert f"it needs {', '.join(NEEDED)}, not installed here" in text
    assert '  pip install ".[all]" in a clone of calibrant\n' in text
    assert "Coin tosses" in text
    assert "./script/demo replay my.csv" in text
    assert "report.html" not in text
    assert not (tmp_path / "demo").exists()


def test_a_replay_that_fails_ends_the_demo_with_its_code(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "forecasts.csv").mkdir()
    assert show(tmp_path, rounds=100) == ExitCode.OUTPUT
    captured = capsys.readouterr()
    assert "forecasts.csv" in captured.err
    assert "2. The two games" not in captured.out
    assert not (tmp_path / "report.html").exists()


# ------------------------------------------------------------------------------ the command


def call(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["demo", *arguments])
    return main()


@pytest.mark.base
def test_without_arguments_the_demo_is_shown_and_its_code_returned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Path] = []
    monkeypatch.setattr(showing, "show", lambda directory: asked.append(directory) or 7)
    assert call(monkeypatch) == 7
    assert asked == [Path("demo")]


def test_with_arguments_the_demo_is_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert call(monkeypatch, "replay", str(tmp_path / "absent.csv")) == ExitCode.INPUT
    assert "absent.csv" in capsys.readouterr().err


def test_the_module_can_be_run_and_does_nothing_when_it_is_imported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["demo", "--version"])
    importlib.import_module("calibrant.demo.__main__")
    assert capsys.readouterr().out == ""
    del sys.modules["calibrant.demo.__main__"]
    with pytest.raises(SystemExit) as caught:
        runpy.run_module("calibrant.demo", run_name="__main__")
    assert caught.value.code == ExitCode.OK
    assert capsys.readouterr().out == f"calibrant {__version__}\n"


def test_a_file_where_the_directory_should_be_is_one_line_and_a_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("demo").write_text("mine")
    assert call(monkeypatch) == ExitCode.OUTPUT
    assert capsys.readouterr().err == "calibrant: demo: cannot be written: File exists\n"
    assert Path("demo").read_text() == "mine"


@pytest.mark.base
def test_an_interrupted_demo_is_one_line_and_a_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(directory: Path) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(showing, "show", interrupt)
    assert call(monkeypatch) == ExitCode.INTERRUPTED
    assert capsys.readouterr().err == "calibrant: interrupted\n"


@pytest.mark.base
def test_a_demo_that_nobody_reads_to_the_end_is_a_code_and_no_complaint(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def stop(directory: Path) -> int:
        raise BrokenPipeError

    monkeypatch.setattr(showing, "show", stop)
    with (tmp_path / "out.txt").open("w") as out:
        monkeypatch.setattr(sys, "stdout", out)
        assert call(monkeypatch) == ExitCode.PIPE
        print("nobody reads this", flush=True)
    assert capfd.readouterr().err == ""
    assert (tmp_path / "out.txt").read_text() == ""
