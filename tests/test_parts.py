"""Experts of a mixture are asked and taught in their order, however many they are."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from calibrant.kernels.layout import MIXED
from calibrant.kernels.place import point_before, point_by_halves
from calibrant.kernels.transforms.kernel import Kernel, by_logs
from calibrant.kernels.transforms.parts import TOGETHER, Part, bank, fold, single

pytestmark = pytest.mark.base

START = 3
"""Where these tests keep where each part begins."""


def told_apart(number: int, heard: list[tuple[int, ...]], logs: bool) -> Kernel:
    """Return a transform that says its number, and notes where it was asked and what it learned."""

    def predict(words, reals, at, raw):
        heard.append((number, at))
        return number

    def learn(words, reals, at, raw, told, outcome):
        heard.append((number, at, told, outcome))

    if not logs:
        return Kernel(predict, learn)

    def asked(words, reals, at, raw, odds, less):
        return predict(words, reals, at, raw)

    def partly(words, reals, at, raw, told, outcome, part):
        learn(words, reals, at, raw, told, outcome)

    return by_logs(asked, partly, 0)


def bank_words(width: int) -> list[float]:
    """A bucket; what members keep, and their priors; two edges; sums of outcomes, and visits."""
    return [1, *[1.0] * width, *[1.0] * width, 0.0, 2.0, *[0.0] * (2 * width)]


def state_of(parts: list[Part]) -> tuple[list[float], list[int], int]:
    """Return words for parts, where each of them begins, and where their forecasts go."""
    head = START + len(parts)
    words = [[0.0] if part.kernel else bank_words(part.width) for part in parts]
    starts = [head + sum(map(len, words[:k])) for k in range(len(parts))]
    flat = [0.0] * START + starts + [word for part in words for word in part]
    return flat + [0.0] * sum(p.width for p in parts), starts, len(flat)


@example([(1, True)] * (2 * TOGETHER + 1))
@example([(1, False)] * TOGETHER + [(3, False)])
@given(st.lists(st.tuples(st.sampled_from([1, 1, 1, 2, 3]), st.booleans()), min_size=1))
def test_every_expert_is_asked_and_taught_once_and_in_its_order(kinds):
    heard = []
    parts = [
        single(told_apart(k, heard, logs)) if width == 1 else bank(width)
        for k, (width, logs) in enumerate(kinds)
    ]
    words, starts, out = state_of(parts)
    advise, absorb = fold(tuple(parts), START)
    advise(words, words, 0, 0.25, 0.0, 0.0, out)
    # A bank that saw nothing says the raw forecast.
    said = [k if p.kernel else 0.25 for k, p in enumerate(parts) for _ in range(p.width)]
    assert words[out:] == said
    alone = [k for k, part in enumerate(parts) if part.kernel]
    assert heard == [(k, starts[k]) for k in alone]
    heard.clear()
    absorb(words, words, 0, 0.25, out, 1, 1.0)
    assert heard == [(k, starts[k], k, 1) for k in alone]
    for start, part in zip(starts, parts, strict=True):
        if part.kernel is None:
            assert words[start + 3 + 2 * part.width :][: 2 * part.width] == [1.0] * 2 * part.width


@given(st.lists(st.floats(0, 1), min_size=2, max_size=20, unique=True), st.floats(0, 1))
def test_both_searches_find_the_same_grid_point(values, anchor):
    words = [0.0] * MIXED + [anchor] + sorted(values)
    found = point_before(words, MIXED + 1, len(values))
    assert found == point_by_halves(words, MIXED + 1, len(values))
    below = [k for k, value in enumerate(sorted(values)) if value <= anchor]
    assert found == min(max([0, *below]), len(values) - 2)
