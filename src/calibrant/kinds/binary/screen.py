"""What is told on a screen at the end of a run on probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from calibrant.report.tables import Table, count_lines, printed
from calibrant.summary import NAMES, Summary

SCORES: Final = {
    "brier": "Brier score",
    "log_loss": "log loss",
    "calibration_l1": "calibration error C1",
    "calibration_l2": "calibration error C2",
    "ece": "binned error (ECE)",
    "smooth": "smooth error",
    "last_window_l2": "C2 of the last window",
    "worst_window_l2": "C2 of the worst window",
    "sharpness": "sharpness",
}
"""Rows of the table before and after."""

PARTS: Final = 20
"""Groups or classes that are shown."""
TITLE: Final = 43
"""Columns of an expert's name."""
LATE: Final = "late outcomes, at most {:,} outstanding: no theorem here speaks of them"


def screen(summary: Summary) -> tuple[list[Table], list[str]]:
    """Return the tables before and after, of the chain, and of groups or classes; then lines."""
    told = summary.summary
    rows = [
        [title, *(printed(told[name].get(key)) for name in NAMES)] for key, title in SCORES.items()
    ]
    rows.append(["AUC", *(printed(told["auc"][name]) for name in NAMES)])
    title = f"{told['n_rounds']:,} rounds, {told['method']}, seed {told['seed']}"
    tables = [Table.of(title, ("", *NAMES), rows)]
    if (chain := told.get("chain")) is not None and chain["links"]:
        tables.append(chain_table(told))
    if told.get("breakdown") is not None:
        tables.append(parts_table(told["breakdown"]))
    return tables, closing_lines(told)


def closing_lines(told: Mapping[str, Any]) -> list[str]:
    """Return what the table cannot say, a sentence each."""
    regret = told["regret_brier"]
    interval = f"[{printed(regret['low'])}, {printed(regret['high'])}]"
    lines = [f"Brier, forecast minus raw: {printed(regret['value'])}, 95 % interval {interval}"]
    lines += [*_window_lines(told), *_budget(told), *_guarantee(told)]
    return [*lines, *count_lines(told)]


def _window_lines(told: Mapping[str, Any]) -> list[str]:
    """Return where the last and the worst window of the forecasts lie, if there is any."""
    places = told.get("windows") or {"last": None}
    if places["last"] is None:
        return []
    last, worst = places["last"], places["worst"]["forecast"]
    spans = [f"{each['first']:,}-{each['last']:,}" for each in (last, worst)]
    return [f"windows: {told['window']:,} rounds; last {spans[0]}, worst forecasts {spans[1]}"]


def _budget(told: Mapping[str, Any]) -> list[str]:
    """Return what was spent of a budget, and what that costs."""
    found = (told.get("chain") or {}).get("budget")
    if found is None:
        return []
    lines = [f"loss beyond raw: {printed(found['excess'])}, never above {found['epsilon']:g}"]
    if found["aside"]:
        part = f"{found['aside']:,} of {found['rounds']:,} rounds"
        lines.append(f"raw forecasts announced in {part}: calibration is not promised")
        if found["c2_bound"] is not None:
            lines.append(f"but of the other rounds: c2 at most {printed(found['c2_bound'])}")
    return lines


def _guarantee(told: Mapping[str, Any]) -> list[str]:
    bounds, late = told["bound"], told["certificate"].get("delay")
    holds = {True: "holds", False: "is exceeded", None: "is not known"}
    verdict = holds[told["certificate_holds"]]
    if bounds["c2"] is None and bounds["c1"] is None:
        if told["breakdown"] is not None and told["certificate_holds"] is not None:
            return [f"guarantee, group by group: the bounds above; it {verdict}"]
        return [LATE.format(late)] if late else []
    parts = [f"{key} {printed(bounds[key])}" for key in ("c1", "c2", "regret")]
    return [f"guarantee after these rounds: {', '.join(parts)}; it {verdict}"]


def chain_table(told: Mapping[str, Any]) -> Table:
    """Return the chain of the default, link by link: measured, and what the theorems say."""
    chain, bounds, found = told["chain"], told["bound"], told["certificate"]
    rows = [
        ["calibration error C2 of the draws", "", found["c2"], bounds["c2"]],
        [
            "extra loss of the draws over the mixture",
            "",
            chain["middle_regret"],
            chain["middle_bound"],
        ],
        ["extra loss of the mixture over each expert", "", "", ""],
        *([f"  {_cut(each['expert'])}", *_weighed(each)] for each in chain["links"]),
        ["extra loss of the draws over the raw forecast", "", found["regret"], bounds["regret"]],
    ]
    header = (f"chain, {found['loss']} loss", "weight", "measured", "bound")
    cells = [[cell if isinstance(cell, str) else printed(cell) for cell in row] for row in rows]
    return Table.of("", header, cells)


def parts_table(told: Mapping[str, Any]) -> Table:
    """Return the largest groups or classes: what was said, what happened, and the errors."""
    kind, rows = told["kind"], told["rows"]
    shown = sorted(rows, key=lambda row: -row["rounds"])[:PARTS]
    said = ("raw said", "raw C2", "said", "C2", "bound")
    header = (f"{kind} by {kind}", "rounds", "happened", *said)
    keys = ("mean_raw", "c2_raw", "mean_forecast", "c2_forecast", "bound")
    cells = [
        [_cut(row["name"]), f"{row['rounds']:,}", *(printed(row[key]) for key in ("rate", *keys))]
        for row in shown
    ]
    if len(rows) > PARTS:
        cells.append([f"{len(rows) - PARTS:,} more in --json", *[""] * 7])
    return Table.of("", header, cells)


def _weighed(link: Mapping[str, Any]) -> tuple[str, Any, Any]:
    return f"{link['weight']:.3f}", link["regret"], link["bound"]


def _cut(title: str) -> str:
    return title if len(title) <= TITLE else f"{title[: TITLE - 3]}..."
