"""The Pareto plot: who is not beaten, and what is drawn where."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant import plot
from calibrant.errors import InvalidInput
from calibrant.plot.pareto import _box, _moves, _overlap, front_of

pytest.importorskip("matplotlib", reason='needs the extra "plot"')
from matplotlib.figure import Figure

POINTS = {
    "raw": (0.25, 0.04),
    "sharp": (0.20, 0.02),
    "calm": (0.22, 0.001),
    "both": (0.21, 0.002),
    "worse": (0.23, 0.02),
}
KINDS = {"raw": "raw", "sharp": "a", "calm": "b", "both": "a", "worse": "b"}

figure = st.integers(0, 4).map(lambda k: math.nan if k == 4 else k / 4)


@given(st.lists(st.tuples(figure, figure), max_size=12))
def test_the_front_is_what_nothing_beats_in_both(pairs: list[tuple[float, float]]) -> None:
    points = {str(k): pair for k, pair in enumerate(pairs)}
    whole = {name: p for name, p in points.items() if not any(map(math.isnan, p))}
    beaten = {
        a
        for a, (x, u) in whole.items()
        for y, v in whole.values()
        if y <= x and v <= u and (y < x or v < u)
    }
    found = front_of(points)
    assert set(found) == set(whole) - beaten
    assert [points[name][1] for name in found] == sorted(points[name][1] for name in found)


def test_the_plot_holds_its_numbers_and_needs_no_ink_for_them() -> None:
    made = plot.prepare_pareto(POINTS, kinds=KINDS, accuracy="loss", calibration="error")
    assert made.points == POINTS
    assert made.front == ["calm", "both", "sharp"]
    assert made.titles == ("loss", "error")
    assert made.ax is None
    with pytest.raises(InvalidInput, match="Pareto must be drawn first"):
        _ = made.figure


def test_without_kinds_all_methods_look_alike() -> None:
    drawn = plot.pareto(POINTS)
    assert set(drawn.kinds.values()) == {"method"}
    assert texts(drawn) == set(drawn.front)


def test_every_method_needs_a_kind() -> None:
    with pytest.raises(InvalidInput, match="kinds must name every method, got none for 'raw'"):
        plot.prepare_pareto(POINTS, kinds={})


def texts(drawn: plot.Pareto) -> set[str]:
    assert drawn.ax is not None
    return {text.get_text() for text in drawn.ax.texts}


def test_the_front_is_named_and_so_is_who_is_alone_in_its_kind() -> None:
    assert texts(plot.pareto(POINTS, kinds=KINDS)) == {"calm", "both", "sharp", "raw"}


def test_every_point_is_drawn_at_its_figures() -> None:
    drawn = plot.pareto(POINTS, kinds=KINDS)
    assert drawn.ax is not None
    marks = {tuple(map(float, line.get_xydata()[0])) for line in drawn.ax.lines[1:]}
    assert marks == {(c, a) for a, c in POINTS.values()}
    assert drawn.ax.get_xscale() == "log"
    assert drawn.beyond == []


def test_the_border_goes_down_in_steps_through_the_front() -> None:
    drawn = plot.pareto(POINTS, kinds=KINDS)
    assert drawn.ax is not None
    border = drawn.ax.lines[0].get_xydata()
    assert border.tolist() == [
        [0.001, 0.22],
        [0.002, 0.22],
        [0.002, 0.21],
        [0.02, 0.21],
        [0.02, 0.2],
    ]


def test_a_hopeless_method_is_drawn_at_the_edge_and_told() -> None:
    drawn = plot.pareto({**POINTS, "hopeless": (0.9, 0.5)}, kinds={**KINDS, "hopeless": "b"})
    assert drawn.beyond == ["hopeless"]
    assert drawn.points["hopeless"] == (0.9, 0.5)
    assert drawn.ax is not None
    highest = max(float(line.get_ydata()[0]) for line in drawn.ax.lines[1:])
    assert highest == drawn.limit < 0.9
    legend = drawn.ax.get_legend()
    assert legend is not None
    assert "faded: further up" in [text.get_text() for text in legend.get_texts()]


def test_errors_of_zero_have_a_place_on_the_logarithmic_axis() -> None:
    drawn = plot.pareto({"a": (0.2, 0.0), "b": (0.1, 0.1)})
    assert drawn.ax is not None
    assert min(float(line.get_xdata()[0]) for line in drawn.ax.lines[1:]) == 1e-7
    assert drawn.points["a"] == (0.2, 0.0)


def test_methods_without_both_figures_are_not_drawn() -> None:
    drawn = plot.pareto({"a": (0.2, 0.1), "b": (math.nan, 0.1)})
    assert set(drawn.shown) == {"a"}
    assert texts(drawn) == {"a"}
    nothing = plot.pareto({"b": (0.2, math.nan)})
    assert texts(nothing) == {"no method has both figures"}


def test_it_draws_on_axes_that_are_given() -> None:
    ax = Figure().add_subplot()
    assert plot.pareto(POINTS, kinds=KINDS, ax=ax).ax is ax


def test_one_method_alone_can_be_drawn() -> None:
    assert plot.pareto({"a": (0.2, 0.1)}).front == ["a"]


def test_names_do_not_cover_each_other_where_there_is_room() -> None:
    drawn = plot.pareto({f"method{k}": (0.2 - 0.001 * k, 0.01 * 1.3**k) for k in range(5)})
    assert drawn.ax is not None
    drawn.figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in drawn.ax.texts]
    for k, one in enumerate(boxes):
        assert not any(one.overlaps(other) for other in boxes[:k])


def test_no_name_is_struck_through_by_the_border() -> None:
    drawn = plot.pareto(POINTS, kinds=KINDS)
    assert drawn.ax is not None
    drawn.figure.draw_without_rendering()
    border = drawn.ax.lines[0].get_transform().transform(drawn.ax.lines[0].get_xydata())
    for text in drawn.ax.texts:
        box = text.get_window_extent()
        for (left, high), (right, low) in itertools.pairwise(border):
            assert not (box.x0 < right and left < box.x1 and box.y0 < high and low < box.y1), (
                text.get_text()
            )


def test_boxes_are_where_the_names_are() -> None:
    first = next(_moves("abc"))
    box = _box("abc", 10.0, 20.0, first)
    assert box[0] == 16.0
    assert _overlap(box, box) == pytest.approx((box[2] - box[0]) * (box[3] - box[1]))
    assert _overlap(box, tuple(np.array(box) + 100.0)) == 0.0  # type: ignore[arg-type]


def test_a_named_method_is_drawn_above_another_at_the_same_place() -> None:
    points = {"raw": (0.25, 0.04), "identity": (0.25, 0.04), "a": (0.2, 0.01)}
    kinds = {"raw": "raw", "identity": "transform", "a": "transform"}
    drawn = plot.pareto(points, kinds=kinds)
    assert drawn.ax is not None
    below, named, other = (line.get_markeredgecolor() for line in drawn.ax.lines[1:])
    assert below == other != named
