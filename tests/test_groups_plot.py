"""Small multiples of groups: the numbers, and one look at the ink."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from calibrant import plot
from calibrant.errors import InvalidInput

pytest.importorskip("matplotlib", reason='needs the extra "plot"')
import matplotlib.figure

RNG = np.random.default_rng(1)
FORECASTS = RNG.integers(0, 11, 600) / 10
OUTCOMES = (RNG.random(600) < FORECASTS).astype(int)
NAMES = np.array(["a", "b", "c", "d"])[RNG.choice(4, 600, p=[0.4, 0.3, 0.2, 0.1])]


def test_each_group_has_its_own_curve() -> None:
    drawn = plot.prepare_groups(FORECASTS, OUTCOMES, NAMES)
    assert sorted(drawn.curves) == ["a", "b", "c", "d"]
    for row in drawn.rows:
        inside = row.group == NAMES
        assert row.rounds == drawn.curves[row.group].count.sum() == inside.sum()
        assert row.frequency == pytest.approx(OUTCOMES[inside].mean())
    assert (drawn.columns, drawn.lines) == (4, 1)


def test_only_the_largest_groups_are_kept_in_the_order_of_their_appearance() -> None:
    drawn = plot.prepare_groups(FORECASTS, OUTCOMES, NAMES, most=2, columns=1, buckets=5)
    order = [name for name in dict.fromkeys(NAMES.tolist()) if name in "ab"]
    assert [row.group for row in drawn.rows] == list(drawn.curves) == order
    assert len(drawn.curves["a"].count) == 5
    assert (drawn.columns, drawn.lines) == (1, 2)


def test_masks_refer_to_declared_names() -> None:
    mask = np.array(["x", "y"]) == np.where(FORECASTS > 0.5, "x", "y")[:, None]
    drawn = plot.prepare_groups(FORECASTS, OUTCOMES, mask, declared=["x", "y"])
    assert {row.group for row in drawn.rows} == {"x", "y"}


def test_there_is_a_panel_a_group_with_its_name_and_numbers() -> None:
    drawn = plot.groups(FORECASTS, OUTCOMES, NAMES, columns=3)
    panels = drawn.ax.child_axes
    assert len(panels) == 4
    told = [panel.texts[0].get_text() for panel in panels]
    assert [text.splitlines()[0] for text in told] == [row.group for row in drawn.rows]
    assert "rounds, C2 0." in told[0]
    assert drawn.figure.get_size_inches().tolist() == pytest.approx([7.6, 5.6666667])
    drawn.figure.canvas.draw()


def test_nothing_that_is_written_runs_into_the_next_panel() -> None:
    long = np.array([f"{name}, a group with a rather long name" for name in NAMES])
    drawn = plot.groups(FORECASTS, OUTCOMES, long, columns=4)
    drawn.figure.canvas.draw()
    boxes = [
        [text.get_window_extent() for text in (*panel.texts, *panel.get_xticklabels())]
        for panel in drawn.ax.child_axes
    ]
    for left, right in itertools.pairwise(boxes):
        assert not [one for one in left for other in right if one.padded(12).overlaps(other)]


def test_panels_fit_into_given_axes_and_sizes() -> None:
    given = matplotlib.figure.Figure().subplots()
    drawn = plot.groups(FORECASTS, OUTCOMES, NAMES, ax=given)
    assert drawn.ax is given
    sized = plot.prepare_groups(FORECASTS, OUTCOMES, NAMES).draw(size=(3.0, 2.0))
    assert sized.figure.get_size_inches().tolist() == [3.0, 2.0]


def test_without_groups_there_is_nothing_to_draw() -> None:
    drawn = plot.groups([0.5], [1], None)
    assert (drawn.rows, drawn.lines, drawn.ax.child_axes) == ((), 0, [])


@pytest.mark.parametrize("name", ["most", "columns"])
def test_bad_sizes_are_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match=f"{name} must be a whole number of at least 1, got 0"):
        plot.prepare_groups(FORECASTS, OUTCOMES, NAMES, **{name: 0})  # type: ignore[arg-type]
