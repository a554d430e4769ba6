"""What the first rows of an input suggest: which columns to name, and which options to give.

Nothing here is acted upon, but for forms of times that leave no doubt: it is told, so that the
next command works.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from calibrant.stream.columns import Columns, Scale
from calibrant.stream.dialect import SEPARATORS, THOUSANDS, Asked
from calibrant.stream.failure import Unreadable
from calibrant.stream.source import Source
from calibrant.stream.values import rounded, times
from calibrant.stream.wording import PAIRS, Wording, forms, opposite, shown


class Loose(Wording):
    """Takes a comma for a point."""

    def _point(self, text: str) -> str:
        return super()._point(text.replace(",", "."))


LOOSE: Final = Loose(percent=True)
"""Reads numbers with a point or a comma, and with a sign of per cent."""
NEAR_ONE: Final = 2.0
"""Numbers from 0 up to here are rather probabilities with a mistake than percents."""
MOST: Final = 0.75
"""From this share of readable values on, others are mistakes."""
FEW: Final = 3
"""Fewer values do not tell what a column is."""
MOST_CLASSES: Final = 20
"""Whole numbers with more values than this are amounts rather than classes."""
LOGS: Final = (
    "--logit if these are log-odds; if they are logarithms of probabilities, take exp first"
)
OWN_FORM: Final = "--time-format with their form, in the codes of Python's strptime"
DAY: Final = "%Y%m%d"
"""Days that may as well be numbers."""
COUNTS: Final = {3: "three", 4: "four", 5: "five"}
"""How many outcomes are listed."""
UNKNOWN: Final = ("na", "n/a", "nan", "null", "none", "unknown", "?", "-", ".")
"""Words for an outcome that is not known."""
NEGATIONS: Final = ("not", "non", "no", "un", "in", "dis", "never", "nicht", "kein", "pas", "не")
"""What makes the opposite of a word behind it."""
PLAIN: Final = ("0", "1", "true", "false")
"""Outcomes that nobody has to be told about."""

Sample = Mapping[str, Sequence[Any]]
"""The first rows, by the names of their columns."""


def present(values: Sequence[Any]) -> list[Any]:
    """Return the values that are there."""
    return [value for value in values if value is not None and value != ""]


def flags_of_raw(values: Sequence[Any], words: Wording, kind: str = "probability") -> list[str]:
    """Return the options that make raw forecasts readable; none if they are, or cannot be.

    Examples
    --------
    >>> flags_of_raw(["83%", "7%"], Wording()), flags_of_raw([83.0, 7.0], Wording())
    (['--percent'], ['--percent'])
    >>> flags_of_raw(["-2.3", "0.7"], Wording()), flags_of_raw(["0,83"], Wording())
    (['--logit'], ['--decimal', ','])
    >>> flags_of_raw(["0.83"], Wording()), flags_of_raw(["high"], Wording())
    ([], [])
    """
    found = present(values)
    told = LOOSE.numbers(found).values
    if _is_readable(found, words, kind) or not np.isfinite(told).all():
        return []
    signed = any(map(has_sign, found))
    flags: list[str] = []
    if kind == "probability" and not _is_mixed(found):
        percent = told.min() >= 0.0 and NEAR_ONE < told.max() <= 100.0
        flags += ["--percent"] if signed or percent else []
        flags += ["--logit"] if told.min() < 0.0 and not flags else []
    other = "," if words.decimal == "." else "."
    texts = [value.strip() for value in found if isinstance(value, str)]
    used = any(other in text and not THOUSANDS.fullmatch(text) for text in texts)
    return flags + (["--decimal", other] if used else [])


def _is_readable(values: Sequence[Any], words: Wording, kind: str) -> bool:
    """Say whether values are what they should be, but for a few among fractions."""
    told = words.numbers(values).values
    good = Scale(kind).allows(told)
    fractions = good & (told != np.floor(told))
    return bool(good.all() or (good.mean() >= MOST and fractions.any()))


def has_sign(value: Any) -> bool:
    """Say whether a value ends in a sign of per cent."""
    return isinstance(value, str) and value.strip().endswith("%")


def _is_mixed(values: Sequence[Any]) -> bool:
    """Say whether some are percents with their sign, and all others no more than 1."""
    bare = [value for value in values if not has_sign(value)]
    told = LOOSE.numbers(bare).values
    return 0 < len(bare) < len(values) and bool((told <= 1.0).all() and (told > 0.0).any())


def check_percents(source: str, sample: Sample, columns: Columns, kind: str) -> None:
    """Refuse percents that are, or among which stand, probabilities: all would be below 1 %."""
    found = present(sample.get(columns.raw, ())) if kind == "percent" else []
    if len(small := _small(found)) == len(found) >= FEW:
        told = f"must be percents, got numbers of at most 1, e.g. {shown(small[0])!r}"
        way = "leave --percent out, or divide them by 100 if they are percents"
        raise Unreadable(f"{source}: {columns.raw} {told}; {way}")
    if _is_mixed(found):
        bare = next(shown(value) for value in found if not has_sign(value))
        signed = next(shown(value) for value in found if has_sign(value))
        told = f"all percents or all probabilities, got {signed!r} and {bare!r}"
        raise Unreadable(f"{source}: {columns.raw} must be {told}; write them in one way")


def _small(values: Sequence[Any]) -> list[Any]:
    """Return numbers of at most 1 without a sign of per cent, if there are fractions among them."""
    bare = [value for value in values if not has_sign(value)]
    told = LOOSE.numbers(bare).values
    small = [value for value, x in zip(bare, told.tolist(), strict=True) if 0.0 <= x <= 1.0]
    return small if ((told > 0.0) & (told < 1.0)).any() else []


def _percents(sample: Sample, columns: Columns) -> list[str]:
    """Say that values which look like probabilities are read as percents."""
    found = present(sample.get(columns.raw, ())) if columns.wording.percent else []
    if not found or len(small := _small(found)) < max(FEW, MOST * len(found)):
        return []
    told = f"{len(small)} of the first {len(found)} values are at most 1 and read as less than 1 %"
    return [f"{columns.raw}: {told}, e.g. {shown(small[0])!r}"]


def flags_of_outcomes(values: Sequence[Any], words: Wording, name: str = "") -> list[str]:
    """Return the option that makes outcomes readable; none if they are, or are not two values.

    Examples
    --------
    >>> flags_of_outcomes(["left", "stayed", "stayed"], Wording())
    ['--positive', 'left']
    >>> flags_of_outcomes(["1", "0"], Wording()), flags_of_outcomes(["a", "b", "c"], Wording())
    ([], [])
    """
    found = present(values)
    if words.positive is not None or np.isin(words.outcomes(found).values, (0.0, 1.0)).all():
        return []
    two = two_values(found, name)
    return [] if two is None else ["--positive", two[0]]


def two_values(values: Sequence[Any], name: str = "") -> tuple[str, str] | None:
    """Return the two values of a column, the one that is rather meant by 1 first; None if not two.

    >>> two_values(["no", "yes", "no"]), two_values([1.0, 2.0]), two_values(["a"])
    (('yes', 'no'), ('2', '1'), None)
    """
    seen = Counter(shown(value) for value in present(values))
    if len(seen) != 2:
        return None
    first, second = sorted(seen, key=lambda text: (seen[text], text))
    return max((first, second), (second, first), key=lambda pair: _claim(pair[0], pair[1], name))


def _claim(text: str, other: str, name: str) -> tuple[bool, ...]:
    """Return what speaks for a value to be meant by 1, the surest first, beside being rarer."""
    # Marks around a value do not change its meaning.
    plain, bare, name = (each.lower().strip(" \"'=[](){},.;?") for each in (text, other, name))
    named = min(len(plain), len(name)) >= FEW and (plain in name or name in plain)
    larger = bool(np.diff(LOOSE.numbers([bare, plain]).values) > 0.0)
    return (plain, bare) in PAIRS, bare.removesuffix(plain).strip(" -_") in NEGATIONS, named, larger


def other_value(values: Sequence[Any], positive: str) -> list[str]:
    """Return the value beside the positive one, if there are these two; nothing otherwise.

    >>> other_value([1, -1, 1], "1"), other_value(["a", "b", "c"], "a")
    (['-1'], [])
    """
    two = two_values(values) or ()
    rest = [text for text in two if text.casefold() != positive.casefold()]
    return rest if len(rest) == 1 else []


def advice(sample: Sample, columns: Columns, kind: str) -> str:
    """Return the options that make the columns of a sample readable, as they are typed."""
    if columns.vector or not sample:
        return ""
    words, raw = columns.wording, sample.get(columns.raw, ())
    outcomes = present(sample.get(columns.outcome, ()))
    if told := advice_on_numbers(sample, columns):
        return told
    flags = flags_of_raw(raw, words, kind)
    logs = LOGS if "--logit" in flags and are_logs(raw) else ""
    flags = [flag for flag in flags if not (logs and flag == "--logit")]
    flags += flags_of_outcomes(outcomes, words, columns.outcome)
    more = "" if "--positive" in flags else _advice_on_several(outcomes, columns)
    told = " ".join(filter(None, [shlex.join(flags), more]))
    return ", and ".join(filter(None, [told, logs])) or _advice_on_positive(outcomes, words)


def are_logs(values: Sequence[Any]) -> bool:
    """Say whether numbers may be logarithms of probabilities: none of them is above 0.

    >>> are_logs([-0.1, -2.3, -0.7]), are_logs([-0.1, 2.3, -0.7])
    (True, False)
    """
    told = LOOSE.numbers(present(values)).values
    return len(told) >= FEW and bool((told <= 0.0).all())


def advice_on_numbers(sample: Sample, columns: Columns) -> str:
    """Return what to do about outcomes that are numbers beside 0 and 1."""
    raw, outcomes = (present(sample.get(name, ())) for name in (columns.raw, columns.outcome))
    told = LOOSE.numbers(outcomes).values
    if columns.wording.positive is not None or len(told) < FEW or not np.isfinite(told).all():
        return ""
    if (told != np.floor(told)).mean() < 0.5 and len(set(told.tolist())) <= MOST_CLASSES:
        return ""
    inside = bool(((told >= 0.0) & (told <= 1.0)).all())
    if inside and np.isin(Wording().outcomes(raw).values, (0.0, 1.0)).all():
        return shlex.join(["--raw", columns.outcome, "--outcome", columns.raw])
    example = f"({columns.outcome}, e.g. {shown(outcomes[0])})"
    return f"--quantiles or --normal, which are for outcomes that are numbers {example}"


def _advice_on_positive(values: Sequence[Any], words: Wording) -> str:
    """Return what to do about a value that counts as 1 and goes with none in the first rows."""
    own = replace(words, other=list(words.other))
    if words.positive is None or np.isin(own.outcomes(values).values, (0.0, 1.0)).any():
        return ""
    if np.isin(Wording().outcomes(values).values, (0.0, 1.0)).all():
        return "leaving --positive out" if values else ""
    return shlex.join(flags_of_outcomes(values, replace(words, positive=None)))


def _advice_on_several(values: Sequence[Any], columns: Columns) -> str:
    """Return how two of several values are read as outcomes, if few are read as they are."""
    seen = Counter(shown(value) for value in present(values))
    if columns.wording.positive is not None or len(seen) not in COUNTS:
        return ""
    known = [text for text in seen if text.lower() not in UNKNOWN]
    readable = np.isin(Wording().outcomes(present(values)).values, (0.0, 1.0)).mean() >= 0.5
    if readable:
        return ""
    paired = [text for text in known if (opposite(text) or "") in map(str.lower, known)]
    often = sorted(paired or known, key=lambda text: -seen[text])[:2]
    two = two_values([value for value in values if shown(value) in often], columns.outcome)
    # Without a known opposite, the first other value in the file is the one that counts as 0.
    if two is None or not (paired or two[1] == next(text for text in seen if text != two[0])):
        return ""
    left = ", ".join(text for text in seen if text not in two)
    told = f"{columns.outcome} has {COUNTS[len(seen)]} values: {', '.join(seen)}"
    flags = shlex.join(["--positive", two[0], "--on-error", "skip"])
    return f"{flags}, which leaves out {left} ({told})"


def advice_on(
    value: Any, column: str | None, columns: Columns, kind: str, sample: Sample | None = None
) -> str:
    """Return the options that make one value readable that is not, as they are typed.

    The first rows, if they are told, may say that one value misleads.
    """
    if columns.vector and column == columns.outcome and shown(value) == str(len(columns.proba)):
        return "numbering the classes from 0, not from 1"
    if columns.vector or value is None:
        return ""
    if column == columns.raw:
        return _advice_on_raw(value, columns, kind, present((sample or {}).get(column, ())))
    if column == columns.outcome and shown(value).lower() in UNKNOWN:
        return "--on-error skip, or empty cells for what is unknown"
    if column == columns.outcome and columns.wording.positive is None:
        return _advice_on_classes((sample or {}).get(column, ()), column)
    if column is not None and column in (columns.time, columns.available):
        if np.isfinite(columns.wording.times([value]).values).all():
            return f"sorting the rows by {column}" if column == columns.time else ""
        return _advice_on_time(value, columns.wording, present((sample or {}).get(column, ())))
    return ""


def _advice_on_classes(values: Sequence[Any], column: str) -> str:
    """Return what to do about outcomes of which more than a few are neither 0 nor 1."""
    gaps, values = len(values) - len(present(values)), present(values)
    good = np.isin(Wording().outcomes(values).values, (0.0, 1.0)).tolist()
    seen = list(dict.fromkeys(map(shown, values)))
    bad = [shown(value) for value, is_good in zip(values, good, strict=True) if not is_good]
    bad = [text for text in bad if text.lower() not in UNKNOWN]
    if len(bad) < FEW:
        return ""
    if len(seen) == 1 and gaps:
        return f"writing 0 where {seen[0]!r} is not: empty cells are outcomes that are not known"
    if len(seen) == 1:
        return f"--positive with the value that counts as 1 ({column} has one value: {seen[0]})"
    if not any(good) and len(seen) in COUNTS:
        way = "--positive with the value that counts as 1, or --proba if these are classes"
        return f"{way} ({column} has {COUNTS[len(seen)]} values: {', '.join(seen)})"
    if len(seen) not in COUNTS:
        way = "--outcome with the name of another column, or --proba if these are classes"
        return f"{way} ({column} has {len(seen)} values)"
    left = ", ".join(dict.fromkeys(bad))
    told = f"{column} has {COUNTS[len(seen)]} values: {', '.join(seen)}"
    return f"--on-error skip, which leaves out {left}, or --proba if these are classes ({told})"


def _advice_on_time(value: Any, words: Wording, first: Sequence[Any]) -> str:
    texts = [text for text in first if isinstance(text, str)]
    unknown = bool(texts) and not np.isfinite(words.times(texts).values).any()
    if words.time_format is None:
        return "".join(_time_flags([str(value)])[:1]) or (OWN_FORM if unknown else "")
    if not unknown:
        return ""
    if np.isfinite(times(texts).values).all():
        return "leaving --time-format out"
    return " or ".join(_time_flags(texts))


def _time_flags(texts: Sequence[str]) -> list[str]:
    """Return the options that make times readable."""
    return [shlex.join(["--time-format", form]) for form in forms(texts)]


def _advice_on_raw(value: Any, columns: Columns, kind: str, first: Sequence[Any]) -> str:
    if isinstance(value, list) or str(value).lstrip().startswith("["):
        return shlex.join(["--proba", columns.raw])
    if _is_mixed([*first, value]):
        return "percents or probabilities alone, not both in one column"
    if first and _is_readable(first, columns.wording, kind):
        return ""
    told = LOOSE.numbers([*first, value]).values
    large = np.isfinite(told).all() and told.max() > 100.0
    if kind in ("probability", "percent") and (large or str(value).strip().endswith("‰")):
        return "dividing them by the largest possible value, or --score for numbers of any size"
    if first and not np.isfinite(told).any():
        return "writing these as numbers, or --raw with the name of another column"
    return shlex.join(flags_of_raw([value], columns.wording, kind))


def time_format(source: str, sample: Sample, columns: Columns) -> str | None:
    """Return the form of times that are neither numbers nor ISO 8601; None if none fits.

    Day and month that may be either are asked for.
    """
    names = [name for name in (columns.time, columns.available) if name is not None]
    texts = [v for name in names for v in present(sample.get(name, ())) if isinstance(v, str)]
    if not texts or np.isfinite(times(texts).values).all():
        return None
    known = forms(texts)
    if len(known) > 1:
        which = " or ".join(_time_flags(texts))
        told = f"{names[0]} may have the day or the month first, e.g. {_open(texts, known)!r}"
        told = f"{told}; say {which}"
        raise Unreadable(f"{source}: {told}")
    return known[0] if known else None


def _open(texts: Sequence[str], forms: Sequence[str]) -> str:
    """Return the first text that different forms read as different times."""
    read = [Wording(time_format=form).times(list(texts)).values for form in forms]
    apart = np.flatnonzero(np.ptp(read, axis=0))
    return texts[int(apart[0])]


def guesses(source: Source, asked: Asked, sample: Sample, columns: Columns) -> list[str]:
    """Return what was guessed about how an input is written, a sentence each."""
    dialect, told, flags = source.dialect, [], []
    usual = "\t" if source.format == "tsv" else ","
    if asked.sep is None and dialect.sep != usual:
        told.append(f"{SEPARATORS.get(dialect.sep, repr(dialect.sep))} between fields")
        flags.append("--sep")
    if asked.decimal is None and dialect.decimal != ".":
        told.append("a decimal comma")
        flags.append("--decimal")
    if asked.encoding is None and source.encoding != "utf-8":
        told.append(f"encoding {source.encoding}")
        flags.append("--encoding")
    if asked.header is None and not dialect.header:
        told.append("no names of columns, which are called 1, 2, ...")
        flags.append("--header")
    if asked.header is None and dialect.titles:
        lines = "1 line" if dialect.titles == 1 else f"{dialect.titles} lines"
        told.append(f"{lines} above the names of columns left out")
        flags.append("--header")
    told += ["single quotes"] if dialect.quote == "'" else []
    made = [f"read with {', '.join(told)} (else: {', '.join(flags)})"] if flags else []
    made += ["read without the quotes around each line"] if dialect.wrapped else []
    return made + _words(sample, columns) + _sums(sample, columns)


def _sums(sample: Sample, columns: Columns) -> list[str]:
    """Say that rows of probabilities are rounded."""
    if len(columns.proba) < FEW - 1 or not all(present(sample.get(c, ())) for c in columns.proba):
        return []
    read = columns.wording.numbers
    table = np.column_stack([read(sample[name]).values for name in columns.proba])
    sums = table[rounded(table)].sum(axis=1)
    told = "probabilities are rounded and divided by their sums"
    return [f"{told}, e.g. {sums[0]:.6g}"] if len(sums) else []


def _days(sample: Sample, columns: Columns) -> list[str]:
    """Say that times which look like days, as 20240131, are read as plain numbers."""
    found = present(sample.get(columns.time or "", ()))
    if columns.wording.time_format or not found or not all(isinstance(v, str) for v in found):
        return []
    days = Wording(time_format=DAY).times([v for v in found if len(v.strip()) == len("20240131")])
    if len(days.values) < len(found) or not np.isfinite(days.values).all():
        return []
    told = f"e.g. {found[0].strip()}; if they are days: --time-format {DAY}"
    return [f"{columns.time} read as plain numbers, {told}"]


def _words(sample: Sample, columns: Columns) -> list[str]:
    words = columns.wording
    told = [f"{columns.time} read as {words.time_format!r}"] if words.time_format else []
    told += _days(sample, columns) + _percents(sample, columns)
    two = two_values(sample.get(columns.outcome, ())) if not columns.vector else None
    if two is None or {text.lower() for text in two} <= set(PLAIN):
        return told
    first, second = (words.outcomes([text]).values[0] for text in two)
    if {first, second} == {0.0, 1.0}:
        told.append(f"{columns.outcome}: {two[0]!r} is {first:.0f}, {two[1]!r} is {second:.0f}")
    return told
