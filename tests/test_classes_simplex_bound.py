"""The theorem about grids over the simplex: its number from tickets alone, and its induction."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import naive_classes as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.classes import SimplexRecalibrator

COVER = {2: Fraction(1, 2), 3: Fraction(2, 3), 4: Fraction(1)}
"""Squared distance of a deep hole from the whole vectors: an edge's middle, a triangle's centre,
the centre of an octahedron of edge sqrt(2)."""


def cover(classes, resolution):
    """The squared distance within which every distribution has a grid point."""
    return COVER[classes] / resolution**2


def cell_of(raw, parts):
    """The nearest vector of multiples of 1/parts, by looking at all: lower classes first."""

    def far(place):
        pairs = zip(place, raw, strict=True)
        return sum((p - parts * Fraction(r)) ** 2 for p, r in pairs), [-p for p in place]

    return min(naive.compositions(len(raw), parts), key=far)


def played(rec, rows, outcomes):
    """Forecast and observe; return the cell, the vector and the outcome of each round."""
    told = []
    for raw, y in zip(rows, outcomes, strict=True):
        ticket = rec.forecast(raw)
        rec.observe(ticket, y)
        told.append((cell_of(raw, rec.cells), tuple(ticket.value.tolist()), y))
    return told


def theorem(told, classes, resolution):
    """C2 <= d + (2/T) sum over cells and points of H(n), in fractions."""
    visits = Counter((cell, value) for cell, value, _ in told)
    paid = sum(Fraction(1, t) for n in visits.values() for t in range(1, n + 1))
    return cover(classes, resolution) + 2 * paid / len(told)


@pytest.mark.parametrize(
    ("classes", "resolution", "cells"), [(2, 5, 3), (3, 1, 1), (3, 3, 2), (3, 4, 1), (4, 2, 1)]
)
def test_the_bound_is_the_theorems_number_from_the_tickets_alone(
    classes, resolution, cells
) -> None:
    rng = np.random.default_rng(classes + resolution)
    rec = SimplexRecalibrator(classes, resolution=resolution, cells=cells, seed=1)
    rows, outcomes = rng.dirichlet(np.ones(classes), 60), rng.integers(0, classes, 60).tolist()
    told = played(rec, rows, outcomes)
    found = rec.certificate().c2_bound
    assert found == pytest.approx(float(theorem(told, classes, resolution)), rel=1e-13)


@pytest.mark.parametrize(("classes", "resolution"), [(2, 1), (3, 1), (4, 2)])
def test_the_cover_is_the_distance_of_the_even_vector_where_that_is_a_deep_hole(
    classes, resolution
) -> None:
    allowed = float(cover(classes, resolution))
    even = np.full(classes, 1 / classes)
    assert naive.nearest_distance(even, classes, resolution) == pytest.approx(allowed)
    rows = np.random.default_rng(classes).dirichlet(np.ones(classes), 200)
    found = [naive.nearest_distance(row, classes, resolution) for row in rows]
    assert max(found) <= allowed


# The induction step: Q = sum_i |S_i|^2/n_i grows by at most d + 2/(n_i + 1) on average.


def energy(seen, value):
    """|S|^2/n of the point with that value, from the outcomes that it met."""
    if not seen:
        return 0.0
    gap = np.bincount(seen, minlength=len(value)) - len(seen) * np.array(value)
    return float(gap @ gap) / len(seen)


def step(ticket, past, classes, constant=2.0):
    """By how much Q is expected to grow beyond constant/(n + 1), for each class that may come."""
    grown = np.zeros(classes)
    for value, weight in zip(map(tuple, ticket.points.tolist()), ticket.weights, strict=True):
        seen = past.get(value, [])
        for y in range(classes):
            more = energy([*seen, y], value) - energy(seen, value)
            grown[y] += weight * (more - constant / (len(seen) + 1))
    return grown


@st.composite
def games(draw):
    classes = draw(st.integers(2, 4))
    resolution = draw(st.integers(1, 3 if classes < 4 else 2))
    parts = st.lists(st.integers(0, 20), min_size=classes, max_size=classes).filter(any)
    rows = [np.array(row) / sum(row) for row in draw(st.lists(parts, min_size=1, max_size=12))]
    return classes, resolution, rows, [draw(st.integers(0, classes - 1)) for _ in rows]


@settings(max_examples=40)
@given(games())
def test_whichever_class_comes_the_potential_grows_by_what_the_theorem_allows(game) -> None:
    classes, resolution, rows, outcomes = game
    rec = SimplexRecalibrator(classes, resolution=resolution, cells=1, seed=2)
    pasts: dict = {}
    for raw, y in zip(rows, outcomes, strict=True):
        ticket, past = rec.forecast(raw), pasts.setdefault(cell_of(raw, 1), {})
        assert step(ticket, past, classes).max() <= cover(classes, resolution) + 1e-6
        rec.observe(ticket, y)
        past.setdefault(tuple(ticket.value.tolist()), []).append(y)


def test_the_constant_two_is_met_by_a_first_surprise_at_a_corner() -> None:
    """S is the difference of two unit vectors then, so nothing below 2 would do."""
    ticket = SimplexRecalibrator(3, resolution=10, cells=1, seed=2).forecast([1.0, 0.0, 0.0])
    assert step(ticket, {}, 3).max() == 0.0
    assert step(ticket, {}, 3, constant=1.9).max() > float(cover(3, 10))


def test_the_bound_is_met_by_surprises_at_every_corner_up_to_the_cover() -> None:
    """One round a cell, each the worst that can come: C2 is 2, and the bound d more."""
    rec = SimplexRecalibrator(3, resolution=4, cells=1, seed=2)
    for raw in np.eye(3):
        rec.observe(rec.forecast(raw), int((raw.argmax() + 1) % 3))
    record = rec.certificate()
    assert (record.c2, record.c2_cells) == (2.0, 2.0)
    assert record.c2_bound == pytest.approx(2 + float(cover(3, 4)))
