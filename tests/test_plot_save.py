"""Pictures on disk: all of them, the same every time, whole or not there."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from xml.etree import ElementTree

import pytest
from summaries import overconfident, replayed

from calibrant import plot
from calibrant.plot import save
from calibrant.plot.save import put

pytest.importorskip("matplotlib", reason='needs the extra "plot"')


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("pictures") / "made" / "here"
    plot.save_all(replayed(*overconfident(150)), directory, dpi=50)
    return directory


def test_every_picture_is_there_as_png_and_svg_and_nothing_else(place: Path) -> None:
    expected = {f"{name}.{kind}" for name in plot.PICTURES for kind in ("png", "svg")}
    assert {path.name for path in place.iterdir()} == expected


def test_pictures_have_the_size_that_was_asked_for(place: Path) -> None:
    header = (place / "reliability.png").read_bytes()[16:24]
    width, height = (int.from_bytes(header[k : k + 4]) for k in (0, 4))
    wide, high = plot.Reliability.size
    assert abs(width - 50 * wide) <= 1
    assert abs(height - 50 * high) <= 1


def test_svg_files_are_well_formed_and_say_nothing_of_their_making(place: Path) -> None:
    for path in place.glob("*.svg"):
        assert ElementTree.fromstring(path.read_text()).tag.endswith("svg")
        assert "dc:date" not in path.read_text()
        assert "Matplotlib v" not in path.read_text()


def test_saving_again_changes_no_byte(place: Path) -> None:
    before = {path.name: digest(path) for path in place.iterdir()}
    written = plot.save_all(replayed(*overconfident(150)), place, dpi=50)
    assert {path.name: digest(path) for path in place.iterdir()} == before
    assert [path.name for path in written[:2]] == ["reliability.png", "reliability.svg"]


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_ids_are_settled_but_colours_stay() -> None:
    text = (
        '<g id="mab12"><use xlink:href="#mab12" style="fill: #ab12cd"/></g><p id="x" d="url(#x)"/>'
    )
    expected = (
        '<g id="i0"><use xlink:href="#i0" style="fill: #ab12cd"/></g><p id="i1" d="url(#i1)"/>'
    )
    assert save.settled(text) == expected


def test_an_image_in_a_page_keeps_the_ids_it_uses_and_names_itself() -> None:
    drawn = (
        '<?xml version="1.0"?><svg width="9pt" viewBox="0 0 9 9"><metadata>who</metadata>'
        '<!-- a --><g id="unused"/><path id="mark" style="fill: #004488; stroke: #123456"/>'
        '<use xlink:href="#mark"/></svg>'
    )
    assert save.inline(drawn, "f", "A & B", "seen") == (
        '<svg xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 9 9" role="img" '
        'aria-labelledby="f-title f-description"><title id="f-title">A &amp; B</title>'
        '<desc id="f-description">seen</desc><g/>'
        '<path id="f-1" style="fill: var(--forecast, #004488); stroke: #123456"/>'
        '<use xlink:href="#f-1"/></svg>'
    )


def test_a_file_is_replaced_in_one_step_with_the_usual_rights(tmp_path: Path) -> None:
    goal = tmp_path / "page.html"
    goal.write_text("old")
    mask = os.umask(0o027)
    try:
        assert put(goal, b"new") == goal
    finally:
        os.umask(mask)
    assert goal.read_text() == "new"
    assert goal.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_a_link_stays_a_link_and_a_pipe_a_pipe(tmp_path: Path) -> None:
    goal, link, pipe = (tmp_path / name for name in ("page.html", "link.html", "pipe"))
    goal.write_text("old")
    link.symlink_to(goal)
    assert put(link, b"new") == link
    assert link.is_symlink()
    assert goal.read_text() == "new"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    assert put(pipe, b"whole") == pipe
    assert os.read(reader, 10) == b"whole"
    os.close(reader)
    assert pipe.is_fifo()


def test_a_write_that_fails_leaves_the_old_file_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    goal = tmp_path / "page.html"
    goal.write_text("old")

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        put(goal, b"new")
    assert goal.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]
