"""The parts of the live page, each a pure function of what a source said."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np

from calibrant import plot
from calibrant.core.arrays import Reals
from calibrant.kernels.tallies import LEVELS, WINDOW
from calibrant.kinds.binary.headline import points
from calibrant.kinds.binary.judgement import matters
from calibrant.live.source import Board
from calibrant.live.svg import picture
from calibrant.metrics import CalibrationCurve
from calibrant.monitor import LateAlarm
from calibrant.plot.canvas import KNOWN
from calibrant.report.page import Figure, filled
from calibrant.report.tables import NOTHING, Table, plainly, shown, view_of
from calibrant.summary import AnySummary, Glance, Part, Summary, Windows
from calibrant.summary.recent import OFF, Recent, likely

NEEDS: Final = "the live page needs"
EARLY: Final = 100
"""Outcomes below which nothing is said about calibration."""
WORST: Final = 20
"""Keys that are listed."""
BOTH: Final = ("raw", "forecast")
SCORE_BANDS: Final = (
    "How often it happened against how likely it was said to be, in 20 equal buckets, over all "
    "outcomes so far. On the dotted line forecasts mean what they say. Marks grow with the number "
    "of rounds, bars are 95 % score limits, and the strip counts rounds."
)
BUCKETS: Final = (
    "For each bucket of raw forecasts: the average that came in, the average announced instead, "
    "and how often it happened, with 95 % score limits."
)
PROMISE: Final = (
    "An alarm says that forecasts are not the chances of their outcomes. It is false with "
    "probability at most {:g}, ever, if {}."
)
STILL: Final = (
    "Alarms judge means. Drawn forecasts may be calibrated all the same, as they are against an "
    "adversary: see the sentence at the top, and the guarantee below."
)
UNORDERED: Final = "There are no windows of this stream: its rounds have no order."
UNITS: Final = (("d", 86400.0), ("h", 3600.0), ("min", 60.0), ("s", 1.0))


@dataclass(frozen=True)
class Fragment:
    """A part of a page: where it goes, how it is called, and its content.

    ``spoken`` says whether a screen reader tells when it changes.
    """

    key: str
    title: str
    html: str
    spoken: bool = False


@dataclass(frozen=True)
class Verdict:
    """What is said of a stream in one sentence.

    ``state`` is ``"empty"``, ``"early"``, also while draws come closer, ``"fine"``, ``"alarm"`` if
    draws are off, or ``"mean"`` if only means are, of which nothing is promised.
    """

    state: str
    words: str


def fragment(key: str, title: str = "", *, spoken: bool = False, **content: Any) -> Fragment:
    """Return a fragment of what is given: paragraphs, figures, tables, text."""
    nothing: dict[str, Any] = dict.fromkeys(("paragraphs", "figures", "tables", "folded"), ())
    nothing |= dict.fromkeys(("state", "verdict", "picker", "text"))
    values = nothing | {"key": key, "title": title} | content
    html = filled(NEEDS, "calibrant.live", "fragment.html", extra="serve", **values)
    return Fragment(key, title, html, spoken)


# ----------------------------------------------------------------------------- words


def clock(seconds: float | None) -> str:
    """Return a moment, given in seconds since 1970.

    >>> clock(0.0), clock(None)
    ('1970-01-01 00:00:00 UTC', 'n/a')
    """
    if seconds is None:
        return NOTHING
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"


def duration(seconds: float) -> str:
    """Return a time that something took, in one unit.

    >>> duration(1.0), duration(64.0), duration(8192.0), duration(1e6), duration(float("nan"))
    ('1 s', '1.1 min', '2.3 h', '12 d', 'n/a')
    """
    if math.isnan(seconds):
        return NOTHING
    name, size = next((unit for unit in UNITS if seconds >= unit[1]), UNITS[-1])
    return f"{seconds / size:.2g} {name}"


def judge(seen: Glance, board: Board) -> Verdict:
    """Say in one sentence whether a stream is calibrated now, and since when not.

    What is promised is promised of draws.  They are judged by the latest windows, with half a step
    of their grid allowed, or by all rounds where no window has ended or rounds have no order.
    Means are judged by the alarm.
    """
    if not seen.rounds:
        return Verdict("empty", "No outcomes yet.")
    alarms = {alarm.name: alarm for alarm in board.alarms}
    mean = alarms.get("calibrated") or alarms.get("forecast")
    means = "" if mean is None else f" Means are off since about {_since(mean)}."
    if seen.rounds < max(EARLY, board.learning):
        told = f"Too early to say after {_many(seen.rounds, 'outcome')}.{means}"
        return Verdict("mean" if means else "early", told)
    found = _drawn(seen, board, means)
    if found is None and means:
        found = Verdict("mean", f"Draws are calibrated, as far as can be told.{means}")
    return found or _quiet(board, alarms.get("raw"))


def _drawn(seen: Glance, board: Board, means: str) -> Verdict | None:
    """Judge the draws of a stream if they are off."""
    recent = seen.recent
    if recent is None:
        tables = np.array([curve_sums(seen.curves[name]) for name in BOTH])
        off, since, new = bool(likely(_told(tables[1:]), board.step / 2.0)[0] < OFF), "", True
        where = ""
    else:
        rounds, sums = recent.latest()
        tables, off, new = sums.reshape(2, 3, -1), bool(recent.since), not recent.well
        since, where = f" since about {_moment(recent)}", f" in the latest {rounds:,} outcomes"
    if not off:
        return None
    before, now = map(_apart, tables)
    apart = f"{points(now)} on average{where}, raw forecasts by {points(before)}"
    if new and now < before and likely(tables[:1])[0] < OFF:
        return Verdict("early", f"Draws are not there yet: off by {apart}.{means}")
    return Verdict("alarm", f"Draws are off{since and f'{since},'} by {apart}.{means}")


def curve_sums(curve: CalibrationCurve) -> list[Any]:
    """Return rounds, ones and the sum of forecasts of each bucket."""
    means = np.nan_to_num(curve.mean_outcome), np.nan_to_num(curve.mean_forecast)
    return [curve.count, *(curve.count * mean for mean in means)]


def _told(tables: Reals) -> Reals:
    """Return sums without the buckets whose distances are too small to matter."""
    count, ones, total = tables[:, 0], tables[:, 1], tables[:, 2]
    n = np.maximum(count, 1)
    return np.where(matters(total / n, ones / n)[:, None], tables, 0.0)


def _apart(table: Reals) -> float:
    """Return the average distance of frequency and forecast over buckets."""
    count, ones, total = table
    return float(np.abs(ones - total).sum() / count.sum())


def _moment(recent: Recent) -> str:
    told = f"outcome {recent.since:,}"
    return told if math.isnan(recent.since_time) else f"{clock(recent.since_time)} ({told})"


def _quiet(board: Board, raw: LateAlarm | None) -> Verdict:
    """Judge a stream whose draws and means nobody found to be off."""
    if board.alpha and board.judged < max(EARLY, board.learning):
        judged = f"{_many(board.judged, 'forecast')} judged"
        words = "in order, and an outcome is missing before the next"
        return Verdict("early", f"Too early to say: {judged} so far, {words}.")
    words = "Calibrated, as far as can be told." if board.alpha else "Nobody watches for alarms."
    if raw is not None:
        words += f" Raw forecasts are off since about {_since(raw)}."
    return Verdict("fine", words)


def _since(alarm: LateAlarm) -> str:
    if alarm.since_time is None:
        return f"forecast {alarm.since:,}"
    return f"{clock(alarm.since_time)} (forecast {alarm.since:,})"


def _many(count: int, what: str) -> str:
    """Return that many of something.

    >>> _many(1, "round"), _many(1200, "round")
    ('1 round', '1,200 rounds')
    """
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


# --------------------------------------------------------------------- every second


def overview(rows: Sequence[tuple[str, str, Glance, Board]]) -> Fragment:
    """Return all streams at a glance; a row is name, link, glance and board."""
    told = [_row(*row) for row in rows]
    bad, mean = (sum(row["state"] == state for row in told) for state in ("alarm", "mean"))
    words = _many(len(told), "stream")
    words += f", {bad} off" if bad else "; none is known to be off"
    words += f"; in {mean:,} only means are off." if mean else "."
    html = filled(NEEDS, "calibrant.live", "overview.html", extra="serve", rows=told, words=words)
    return Fragment("overview", "", html)


def _row(name: str, link: str, seen: Glance, board: Board) -> dict[str, Any]:
    found = judge(seen, board)
    scores = [shown(part[kind]) for part in (seen.brier, seen.c2) for kind in BOTH]
    late = duration(seen.waited(0.5))
    cells = f"{seen.rounds:,}", *scores, f"{seen.open:,}", late
    return {
        "name": name,
        "link": link,
        "state": found.state,
        "verdict": found.words,
        "cells": cells,
    }


def verdict(seen: Glance, board: Board) -> Fragment:
    """Return whether a stream is calibrated now."""
    found = judge(seen, board)
    return fragment("verdict", spoken=True, state=found.state, verdict=found.words)


def facts(seen: Glance) -> Fragment:
    """Return the counts and the scores of a stream."""
    counts = f"{_many(seen.rounds, 'outcome')} known, {seen.open:,} open"
    counts += f", {seen.expired:,} expired" if seen.expired else ""
    counts += f". The base rate is {shown(seen.base_rate, 3)}." if seen.rounds else "."
    header = ("", "raw", "drawn", "mean")
    scores = (("Brier score", seen.brier), ("C1", seen.c1), ("C2", seen.c2))
    rows = [(label, *(shown(part[name]) for name in part)) for label, part in scores]
    tables = [Table.of("Scores of all outcomes so far", header, rows)] if seen.rounds else []
    return fragment("facts", paragraphs=[counts], tables=tables)


def reliability(seen: Glance) -> Fragment:
    """Return what forecasts meant before and mean now, with bands and counts."""
    title = "Do forecasts mean what they say?"
    if not seen.rounds:
        return fragment("reliability", title, paragraphs=["That will be seen once outcomes come."])
    curves = {name: seen.curves[name] for name in BOTH}
    before, now = (_distance(curve) for curve in curves.values())
    told = f"Average distance from the line: {shown(before)} before, {shown(now)} now."
    figures = [
        _figure("reliability", plot.Reliability(curves), "What forecasts meant", SCORE_BANDS, told),
        _figure("buckets", bucket_map(seen), "What became of forecasts", BUCKETS),
    ]
    tables = [*map(_curve_table, curves.values(), ("before", "now"))]
    return fragment("reliability", title, paragraphs=[told], figures=figures, folded=tables)


def _distance(curve: CalibrationCurve) -> float:
    gaps = np.nan_to_num(np.abs(curve.mean_forecast - curve.mean_outcome))
    return float((curve.count * gaps).sum() / max(int(curve.count.sum()), 1))


def bucket_map(seen: Glance) -> plot.BucketMap:
    """Return what raw forecasts were turned into, bucket by bucket."""
    raw = seen.curves["raw"]
    bands = raw.band_low, raw.band_high
    means = raw.mean_forecast, seen.drawn, raw.mean_outcome
    return plot.BucketMap(raw.lower, raw.upper, raw.count, *means, *bands)


def _curve_table(curve: CalibrationCurve, when: str) -> Table:
    columns = (curve.lower, curve.upper, curve.count, curve.mean_forecast, curve.mean_outcome)
    bands = curve.band_low, curve.band_high
    lines = zip(*(column.tolist() for column in (*columns, *bands)), strict=True)
    rows = [
        (f"{low:.2f} to {high:.2f}", f"{count:,}", *(f"{part:.3f}" for part in rest))
        for low, high, count, *rest in lines
        if count
    ]
    header = ("forecasts", "rounds", "said", "happened", "from", "to")
    return Table.of(f"Forecasts {when}, bucket by bucket", header, rows)


def late(seen: Glance) -> Fragment:
    """Return how many forecasts are open and how late outcomes are."""
    title = "How late are outcomes?"
    counts = f"Without an outcome so far: {_many(seen.open, 'forecast')}."
    if not seen.rounds:
        return fragment("late", title, paragraphs=[counts])
    half, most = (duration(seen.waited(share)) for share in (0.5, 0.9))
    told = f"Half of the outcomes were known within {half}, nine in ten within {most}."
    rows, total = [], int(seen.waits.sum())
    for k in np.flatnonzero(seen.waits).tolist():
        start = "below" if k == 0 else f"{duration(2.0 ** (k - 1))} to"
        count = int(seen.waits[k])
        rows.append((f"{start} {duration(2.0**k)}", f"{count:,}", f"{count / total:.1%}"))
    table = Table.of("How long outcomes took", ("time", "outcomes", "share"), rows)
    return fragment("late", title, paragraphs=[counts, told], folded=[table])


def alarms(board: Board) -> Fragment:
    """Return the alarms with their times, and what they promise."""
    title = "Alarms"
    if board.alpha is None:
        return fragment("alarms", title, paragraphs=["Nobody watches this stream."])
    counts = f"{_many(board.judged, 'forecast')} judged, {board.missing:,} left out because the "
    counts += "outcome was not known in time."
    promise = PROMISE.format(
        board.alpha, ", and if ".join(board.assumptions) or "forecasts are right"
    )
    if not board.alarms:
        return fragment("alarms", title, paragraphs=["None has rung.", counts, promise])
    header = ("forecasts", "rang for a forecast of", "number", "off since about", "number ")
    rows = [
        (each.name, clock(each.time), f"{each.number:,}", clock(each.since_time), f"{each.since:,}")
        for each in board.alarms
    ]
    table = Table("Alarms that have rung", header, tuple(rows), (0, 1, 3))
    return fragment("alarms", title, paragraphs=[counts, promise, STILL], tables=[table])


# ------------------------------------------------------------------ every ten seconds


def over_time(summary: AnySummary) -> Fragment:
    """Return errors and accuracy over time, with what is promised."""
    title = "Does it hold all the time?"
    if not isinstance(summary, Summary) or not summary["n_rounds"]:
        return fragment("time", title, paragraphs=["That will be seen once outcomes come."])
    view = view_of(summary)
    pairs = (("calibration_over_time", "c2"), ("brier_over_time", "brier"))
    figures = [
        _figure(f"time-{quantity}", plot.prepare_over_time(summary, quantity=quantity),
                *view.WORDS[name], view.describe(name, summary))
        for name, quantity in pairs
    ]  # fmt: skip
    return fragment("time", title, figures=figures, folded=[_time_table(summary)])


def _time_table(summary: Summary) -> Table:
    trace = summary.trace
    chosen = np.unique(np.linspace(0, len(trace.rounds) - 1, min(8, len(trace.rounds))).astype(int))
    columns = (
        trace.c2_raw,
        trace.c2_forecast,
        trace.bound_c2,
        trace.brier_raw,
        trace.brier_forecast,
    )
    rows = [
        (f"{int(trace.rounds[k]):,}", *(shown(column[k]) for column in columns))
        for k in chosen.tolist()
    ]
    header = ("rounds", "C2 before", "C2 now", "bound", "Brier before", "Brier now")
    return Table.of("Errors of the first rounds", header, rows)


def windows(found: Windows | None, level: int | None, link: str) -> Fragment:
    """Return the errors in windows of one length, and the links to other lengths."""
    title = "Window by window"
    if found is None:
        return fragment("windows", title, paragraphs=[UNORDERED])
    now = found.window or WINDOW << (level or 0)
    picker = [
        (f"{length:,} rounds", f"{link}?window={length}#windows", length == now)
        for length in (WINDOW << k for k in range(LEVELS))
    ]
    if not found.window:
        few = f"There are no {now:,} outcomes yet."
        return fragment("windows", title, paragraphs=[few], picker=picker)
    told = ", ".join(f"{KNOWN[name].label} {shown(found.worst[name][2])}" for name in BOTH)
    words = "Squared calibration error of consecutive stretches. Noise adds to each."
    drawn = plot.prepare_windows(found)
    figure = _figure("windows-p", drawn, "Error in each window", words, f"C2 of the worst: {told}.")
    return fragment("windows", title, figures=[figure], picker=picker, folded=[_worst(found)])


def _worst(found: Windows) -> Table:
    rows = []
    for label, places in (("last", found.latest), ("worst", found.worst)):
        for name in BOTH:
            first, last, error = places[name]
            rows.append((f"{label}, {KNOWN[name].label}", f"{first:,}", f"{last:,}", shown(error)))
    return Table.of("Last and worst window", ("window", "from round", "to round", "C2"), rows)


def spread(summary: AnySummary) -> Fragment:
    """Return where forecasts lie, and all scores."""
    title = "What became of forecasts?"
    if not summary["n_rounds"]:
        return fragment("spread", title, paragraphs=["That will be seen once outcomes come."])
    view, tables = view_of(summary), view_of(summary).tables(summary)
    figures = []
    if isinstance(summary, Summary):
        words = view.WORDS["histogram"]
        figures = [_figure("histogram", plot.prepare_histogram(summary), *words)]
    folded = [table for name in ("scores", "buckets", "brier") if (table := tables.get(name))]
    return fragment("spread", title, figures=figures, folded=folded)


def parts(summary: AnySummary, keys: Sequence[Part]) -> Fragment:
    """Return groups or classes, and the keys with the largest errors."""
    title = "Does it hold for each of them?"
    found = view_of(summary).tables(summary).get("parts")
    tables = [] if found is None else [found]
    worst = sorted(keys, key=lambda part: -np.nan_to_num(part.c2_forecast))[:WORST]
    if worst:
        many = f"{len(worst)} of {len(keys):,} keys, those with the largest error now"
        header, rows = _known_columns(worst)
        tables.append(Table("Worst keys", header, rows, (0,), (f"{many}.",)))
    words = [] if tables else ["This stream has no groups, classes or keys."]
    return fragment("parts", title, paragraphs=words, tables=tables)


def _known_columns(keys: Sequence[Part]) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Return what is known of some keys: titles, and rows."""
    columns = {
        "key": [part.name for part in keys],
        "rounds": [f"{part.rounds:,}" for part in keys],
        "it happened": [shown(part.rate, 3) for part in keys],
        "now said": [shown(part.mean_forecast, 3) for part in keys],
        "C2 before": [shown(part.c2_raw) for part in keys],
        "C2 now": [shown(part.c2_forecast) for part in keys],
        "promised": [shown(math.nan if part.bound is None else part.bound) for part in keys],
    }
    known = {title: told for title, told in columns.items() if set(told) != {NOTHING}}
    return tuple(known), tuple(zip(*known.values(), strict=True))


def trust(summary: AnySummary, certificate: str) -> Fragment:
    """Return what is promised, beside what was measured."""
    view, title = view_of(summary), "Can it be trusted?"
    if not summary["n_rounds"]:
        return fragment("trust", title, paragraphs=[view.promise(summary)], text=certificate)
    tables = view.tables(summary)
    found = [table for name in ("promises", "chain") if (table := tables.get(name))]
    words = [view.promise(summary), view.guarantee(summary)]
    return fragment("trust", title, paragraphs=words, tables=found, text=certificate)


def settings(told: Mapping[str, Any]) -> Fragment:
    """Return what the stream was made with."""
    rows = tuple((name, plainly(value)) for name, value in told.items())
    table = Table("Settings", ("setting", "value"), rows, (0, 1))
    return fragment("settings", "How is it made?", tables=[table] if rows else [])


def _figure(ids: str, drawing: plot.Drawing, title: str, caption: str, told: str = "") -> Figure:
    return Figure(title, caption, picture(drawing, ids, title, told or caption))
