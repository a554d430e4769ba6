"""Comparisons: every method on one stream, scored alike, with the cost of each.

>>> from calibrant.compare import compare
>>> made = compare([0.9, 0.2] * 60, [1, 0, 1, 1] * 30, methods=["online_platt"], seed=1)
>>> made.row("online_platt").brier < made.row("raw").brier
True
"""

from calibrant.compare.comparison import KEYS, KINDS, VERSION, Comparison, Row, render, write
from calibrant.compare.method import Method, Played
from calibrant.compare.run import compare, methods_by_name

__all__ = [
    "KEYS", "KINDS", "VERSION", "Comparison", "Method", "Played", "Row", "compare",
    "methods_by_name", "render", "write",
]  # fmt: skip
