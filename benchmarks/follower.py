"""Following live streams: a round, a glance, a summary, a page, in CPU time.

``python -m benchmarks.follower`` prints a table; ``--rounds`` and ``--repeats`` say how much.
"""

from __future__ import annotations

import argparse
import time
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.store import add_store, storing
from calibrant import Calibrant
from calibrant.live import Memory, Pages, Stream
from calibrant.live.app import event
from calibrant.live.fragments import judge
from calibrant.live.packed import gzip_packer
from calibrant.monitor import LateWatch
from calibrant.summary import Follower, collector_for, glance, summarise_collected

Row = tuple[float, float, float, int]
STRETCH = 1250
"""Rounds that are timed together: two times the rounds that are added together."""
BAR = 2.0
"""Microseconds that a round may take."""


def rows_of(rec: Any, rounds: int) -> list[Row]:
    """Return a stream as a recalibrator announced it."""
    rng = np.random.default_rng(0)
    raw = rng.random(rounds)
    outcomes = (rng.random(rounds) < raw**1.5).astype(np.uint8)
    run = rec.replay(raw, outcomes)
    columns = raw, run.forecast, np.minimum(run.mean, 1.0), outcomes
    return list(zip(*(column.tolist() for column in columns), strict=True))


def least(job: Callable[[], Any], repeats: int) -> float:
    """Return the least CPU seconds of a job."""
    found = []
    for _ in range(repeats):
        began = time.thread_time()
        job()
        found.append(time.thread_time() - began)
    return min(found)


def measured(rounds: int, repeats: int) -> Iterator[tuple[str, float, str]]:
    """Yield what was measured, how much it took, and in which unit."""
    rec = Calibrant(seed=1)
    rows = rows_of(rec, rounds)

    follower = Follower(rec)
    stretches = [
        least(lambda start=start: take(follower, rows[start : start + STRETCH]), 1)
        for start in range(0, rounds, STRETCH)
    ]

    def one_by_one() -> None:
        made = collector_for(rec)
        for raw, drawn, mean, outcome in rows[: rounds // 20]:
            made.update([raw], [drawn], [mean], [outcome], compile=False)

    def together() -> None:
        made = collector_for(rec)
        made.update(*map(np.array, zip(*rows[: rounds // 4], strict=True)), compile=False)

    micro = "µs a round"
    for name, found in (("least", min(stretches)), ("median", float(np.median(stretches)))):
        yield f"Follower.take, {name} of stretches of {STRETCH:,}", 1e6 * found / STRETCH, micro
    yield "Collector.update, one by one", 1e6 * least(one_by_one, 1) / (rounds // 20), micro
    yield "Collector.update, plain, together", 1e6 * least(together, 1) / (rounds // 4), micro
    yield "glance", 1e3 * least(lambda: glance(follower), repeats), "ms"
    full = least(lambda: summarise_collected(follower.collector(), rec), repeats)
    yield "summary", 1e3 * full, "ms"
    yield "to_bytes", 1e3 * least(follower.to_bytes, repeats), "ms"
    some = rows[:4096]
    yield "LateWatch, plain", 1e6 * least(lambda: watched(LateWatch(), some), 1) / 4096, micro
    watched(LateWatch().compile(), some)
    fast = least(lambda: watched(LateWatch().compile(), some), repeats)
    yield "LateWatch, machine code", 1e6 * fast / 4096, micro
    yield from drawn(rec, follower, repeats)


def take(follower: Follower, rows: list[Row]) -> None:
    """Follow some rounds."""
    for row in rows:
        follower.take(*row)


def watched(made: LateWatch, rows: list[Row]) -> None:
    """Watch a stream whose outcomes come 50 rounds late."""
    for k, (raw, _, mean, _) in enumerate(rows):
        made.forecast(raw, mean)
        if k >= 50:
            made.observe(k - 50, rows[k - 50][3])


def drawn(rec: Any, follower: Follower, repeats: int) -> Iterator[tuple[str, float, str]]:
    """Yield what the fragments of a page take that change every second."""
    stream = Stream(rec)
    stream.follower = follower
    pages = Pages(Memory(one=stream), quick=0.0, slow=1e9)
    pages.one_stream("one")
    seen, board = stream.glance(), stream.board()
    yield "verdict", 1e3 * least(lambda: judge(seen, board), repeats), "ms"
    yield "overview, a stream", 1e3 * least(pages.all_streams, repeats), "ms"
    yield "page, every second", 1e3 * least(lambda: pages.one_stream("one"), repeats), "ms"
    html = "".join(part.html for part in pages._quick("one")).encode()
    yield "page, every second, gzipped", len(zlib.compress(html)) / 1e3, "kB"
    whole = "".join(part.html for part in pages.one_stream("one")).encode()
    yield "page, all fragments, gzipped", len(zlib.compress(whole)) / 1e3, "kB"
    yield "update behind others, gzipped", update(stream, pages) / 1e3, "kB"


def update(stream: Stream, pages: Pages) -> float:
    """Return the median bytes of the events of a second with ten outcomes, after the first."""
    packer, sent, sizes = gzip_packer(), dict[str, str](), []
    for k in range(20):
        for _ in range(10 if k else 0):
            stream.observe(stream.forecast(0.4, time=float(k)).id, k % 2, time=k + 1.0)
        parts = pages.one_stream("one")
        new = [part for part in parts if sent.get(part.key) != part.html]
        sent |= {part.key: part.html for part in new}
        text = "".join(map(event, new)).encode()
        sizes.append(len(packer.compress(text)) + len(packer.flush(zlib.Z_SYNC_FLUSH)))
    return float(np.median(sizes[1:]))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.follower", description=__doc__)
    parser.add_argument("--rounds", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=5)
    add_store(parser)
    chosen = parser.parse_args()
    with storing("follower", wanted=chosen.store):
        print("| what | least |\n|---|---|")
        for what, value, unit in measured(chosen.rounds, chosen.repeats):
            above = what.startswith("Follower") and value > BAR
            missed = f" (above the bar of {BAR:g})" if above else ""
            print(f"| {what} | {value:.3g} {unit}{missed} |")


if __name__ == "__main__":
    main()
