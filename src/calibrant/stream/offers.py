"""Which columns and options to propose where the names of columns do not tell."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from calibrant.core.arrays import Reals
from calibrant.stream import advice
from calibrant.stream.columns import OUTCOME_NAMES, RAW_NAMES, Columns
from calibrant.stream.failure import Unreadable
from calibrant.stream.values import EXACT, rounded
from calibrant.stream.wording import KNOWN, Wording, shown

ZERO: Final = ("_0", "p0", "no", "false", "neg", "negative")
"""Ends of the names of columns that have the probability of 0."""


def offer(sample: advice.Sample, asked: Mapping[str, Any], words: Wording) -> str:
    """Return what could be asked for where columns cannot be guessed, as the end of a message.

    Examples
    --------
    >>> rows = {"id": [7, 8, 9], "risk": ["83%", "4%", "5%"], "churned": ["yes", "no", "no"]}
    >>> print(offer(rows, {}, Wording()))
    churned has two values, yes and no: try --raw risk --percent --outcome churned --positive yes
    """
    if classes := _of_classes(sample, asked):
        return classes
    raw = asked.get("raw") or _best_raw(sample, asked.get("outcome"))
    outcome = asked.get("outcome") or _best_outcome(sample, raw)
    if raw is None or outcome is None:
        return "" if raw is None or asked.get("raw") else f"try {shlex.join(['--raw', raw])}"
    if "odds" in raw.lower() and (advice.LOOSE.numbers(sample[raw]).values >= 1.0).all():
        return f"{raw} looks like decimal odds, whose probabilities are 1 divided by them"
    if numbers := advice.advice_on_numbers(sample, Columns(raw, outcome, wording=words)):
        return f"try {numbers}"
    flags = advice.flags_of_raw(sample[raw], words)
    two = advice.two_values(sample[outcome], outcome)
    logs = f", and {advice.LOGS}" if "--logit" in flags and advice.are_logs(sample[raw]) else ""
    flags = [flag for flag in flags if not (logs and flag == "--logit")]
    told = ["--raw", raw, *flags, "--outcome", outcome]
    if two is None or {text.lower() for text in two} <= set(advice.PLAIN):
        return f"try {shlex.join(told)}{logs}"
    told += ["--positive", two[0]]
    return f"{outcome} has two values, {two[0]} and {two[1]}: try {shlex.join(told)}{logs}"


def check_lists(source: str, sample: advice.Sample, columns: Columns) -> None:
    """Refuse one column of numbers where lists of probabilities are expected."""
    name = columns.proba[0] if len(columns.proba) == 1 else ""
    found, words = advice.present(sample.get(name, ())), columns.wording
    if not name or not found or not np.isfinite(words.numbers(found).values).all():
        return
    told = f"{name} must hold a list of probabilities in each row, got numbers"
    way = f"--proba {name},COL,... with a column for each class"
    if len(set(map(shown, advice.present(sample.get(columns.outcome, ()))))) == 2:
        way = offer(sample, {"raw": name, "outcome": columns.outcome}, words)
    raise Unreadable(f"{source}: {told}, e.g. {shown(found[0])!r}; {way}")


def _of_classes(sample: advice.Sample, asked: Mapping[str, Any]) -> str:
    """Return what to ask for where several columns are probabilities that sum to 1."""
    known = [name for name in sample if name.strip().lower() in OUTCOME_NAMES]
    outcome = asked.get("outcome") or next(iter(known), None)
    columns = {name: advice.LOOSE.numbers(values).values for name, values in sample.items()}
    names = [name for name, told in columns.items() if name != outcome and _is_share(told)]
    if len(names) < advice.FEW or asked.get("raw"):
        return ""
    table = np.column_stack([columns[name] for name in names])
    if not (rounded(table) | (np.abs(table.sum(axis=1) - 1.0) <= EXACT)).all():
        return ""
    told = ["--proba", ",".join(names)] + ([] if outcome is None else ["--outcome", outcome])
    return f"{', '.join(names[:-1])} and {names[-1]} sum to 1: try {shlex.join(told)}"


def _is_share(told: Reals) -> bool:
    return len(told) >= advice.FEW and bool(((told >= 0.0) & (told <= 1.0)).all())


def has_outcomes(sample: advice.Sample, asked: Mapping[str, Any]) -> bool:
    """Say whether a column may hold outcomes: by the name asked for, its own name or its values."""
    told = asked.get("outcome")
    known = {name for name in asked.values() if isinstance(name, str)} - {told}
    rest = {name: values for name, values in sample.items() if name not in known}
    return told in rest or _best_outcome(rest, _best_raw(rest, None)) is not None


def _best_raw(sample: advice.Sample, outcome: str | None) -> str | None:
    """Return the column that is most like raw forecasts, and not about 0 if others are alike."""
    rest = [name for name in sample if name != outcome]
    rest.sort(key=lambda name: (-_likeness(name, sample[name]), name.lower().endswith(ZERO)))
    return rest[0] if rest and _likeness(rest[0], sample[rest[0]]) > 0 else None


def _likeness(name: str, values: Sequence[Any]) -> int:
    found = advice.present(values)
    told = advice.LOOSE.numbers(found).values
    if len(set(told.tolist())) < 2 or not np.isfinite(told).all() or advice.two_values(found):
        return 0
    if any(known in name.lower().split("_") for known in RAW_NAMES if len(known) > 1):
        return 5
    if any(map(advice.has_sign, found)):
        return 4
    whole = (told == np.floor(told)).all()
    if told.min() >= 0.0 and told.max() <= 1.0 and not whole:
        return 3
    if told.min() >= 0.0 and told.max() <= 100.0:
        return 0 if whole and (np.diff(told) > 0).all() else 2
    return int(not whole)


def _best_outcome(sample: advice.Sample, raw: str | None) -> str | None:
    """Return the column with two values that is most like outcomes."""
    named = [name for name in sample if name != raw and name.strip().lower() in OUTCOME_NAMES]
    two = [name for name, values in sample.items() if name != raw and advice.two_values(values)]
    known = [name for name in two if shown(advice.present(sample[name])[0]).lower() in KNOWN]
    return next(iter(named + known + two), None)
