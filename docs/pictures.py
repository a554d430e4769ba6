"""Make the pictures of the README and of the gallery, from streams that came along.

Run as ``python docs/pictures.py [NAME ...]``.  Seeds are fixed: the same versions of calibrant,
NumPy and Matplotlib give the same files.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import calibrant
from calibrant import Calibrant, compare, datasets, plot
from calibrant.datasets import Dataset
from calibrant.plot.canvas import svg
from calibrant.plot.save import settled
from calibrant.summary.summary import bare

IMAGES = Path(__file__).parent / "images"
SEED = 1
GALLERY: dict[str, Callable[[], Dataset]] = {
    "language-model": lambda: datasets.load_language_model("gpt-4.1-nano", "verbal"),
    "rain": lambda: datasets.load_rain("frankfurt"),
    "games": lambda: datasets.load_games("nba"),
    "flares": lambda: datasets.load_flares("C1", "NJIT"),
    "recessions": datasets.load_recessions,
    "icing": datasets.load_icing,
}
"""Streams of the gallery, by the name of their picture."""


def before_and_after(stream: Dataset) -> str:
    """Return reliability of raw and recalibrated forecasts."""
    when = {} if stream.time is None else {"time": stream.time, "available": stream.available}
    run = Calibrant(seed=SEED).replay(stream.raw, stream.outcomes, **when)
    shown = {"raw": stream.raw, "mean": run.mean}
    return svg(plot.reliability(shown, stream.outcomes, buckets=20).figure)


def accuracy_and_safety() -> str:
    """Return every method of ``calibrant compare`` on one stream, and against the adversary."""
    stream = datasets.load_language_model("gpt-4.1-nano", "verbal")
    made = compare.compare(stream.raw, stream.outcomes, seed=SEED, title="gpt-4.1-nano")
    rows = [vars(row) for row in made.ranked()]
    told = {"rounds": made.rounds, "seed": SEED, "calibrant": calibrant.__version__, "rows": rows}
    (IMAGES / "accuracy-and-safety.json").write_text(json.dumps(bare(told), indent=1) + "\n")
    points = made.points(calibration="adversarial_l2")
    titles = "C2 against the adversary"
    return svg(plot.pareto(points, kinds=made.kinds, calibration=titles).figure)


PICTURES: dict[str, Callable[[], str]] = {
    **{name: lambda load=load: before_and_after(load()) for name, load in GALLERY.items()},
    "accuracy-and-safety": accuracy_and_safety,
}


def main(names: list[str]) -> None:
    """Write the pictures."""
    IMAGES.mkdir(exist_ok=True)
    for name in names or PICTURES:
        (IMAGES / f"{name}.svg").write_text(settled(PICTURES[name]()))
        print(f"wrote docs/images/{name}.svg", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
