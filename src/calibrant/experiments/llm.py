"""The modern re-run of question answering: confidences of language models."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from calibrant.experiments.experiment import Claim, Result, Setting, at_most
from calibrant.experiments.passes import Passes, columns, paper_panels, pass_over, raw_error
from calibrant.experiments.streams import Stream, mmlu_pro, multiple_choice
from calibrant.metrics import brier
from calibrant.report.tables import Table, shown

SEEDS: Final = 3
OFF: Final = 0.04
"""Raw C2 above which recalibration has to help a lot."""
SHOWN: Final = "mmlu pro gpt-4.1-nano verbal"
CAPTION: Final = (
    "What the model says of its answers, before and after, over the 14 subjects of MMLU-Pro one "
    "after the other; circles grow with the number of rounds."
)
NOTES: Final = (
    "Language models: wherever confidences are far off, the default takes C2 down to a small part "
    "of itself and the squared loss by a tenth or more. Where a model is nearly calibrated, as "
    "gpt-4-turbo is on ARC, there is little to gain: the squared loss falls by a few "
    "thousandths at most.",
)


@dataclass(frozen=True)
class Row:
    """One stream before and after."""

    name: str
    rounds: int
    raw_c2: float
    raw_loss: float
    c2: float
    loss: float

    @property
    def off(self) -> bool:
        """Whether the raw confidences are far off."""
        return self.raw_c2 > OFF

    @property
    def share(self) -> float:
        """C2 as a share of what it may be: a twentieth of raw, or 12/T if that is more."""
        return self.c2 / max(self.raw_c2 / 20.0, 12.0 / self.rounds)


def rerun(setting: Setting) -> Result:
    """Recalibrate every stream of confidences with the default."""
    streams = [*mmlu_pro(setting.data), *multiple_choice(setting.data)]
    passed = {}
    for stream in streams:
        setting.tell(f"{stream.name}, {len(stream):,} rounds")
        passed[stream.name] = pass_over(stream, "default", 1 if setting.quick else SEEDS)
    rows = [row_of(stream, passed[stream.name]) for stream in streams]
    figures = {"llm": paper_panels(passed[SHOWN], SHOWN, CAPTION)} if SHOWN in passed else {}
    numbers = {"llm": columns(passed[SHOWN])} if SHOWN in passed else {}
    return Result(claims(rows), figures, (_table(rows),), numbers | {"llm_streams": _all(rows)},
                  NOTES)  # fmt: skip


def row_of(stream: Stream, passes: Passes) -> Row:
    """Return a stream's line."""
    before = raw_error(stream), brier(stream.raw, stream.outcomes)
    return Row(stream.name, len(stream), *before, passes.c2, passes.loss)


def claims(rows: Iterable[Row]) -> tuple[Claim, ...]:
    """Return what is to hold wherever raw confidences are far off."""
    far = [row for row in rows if row.off]
    where = f"Language models, raw C2 above {OFF} ({len(far)} streams)"
    share = max(row.share for row in far)
    ratio = max(row.loss / row.raw_loss for row in far)
    return (
        at_most("llm_c2", f"{where}: C2 as a share of max(raw/20, 12/T), largest", share, 1.0,
                "ours"),
        at_most("llm_loss", f"{where}: squared loss by that of raw, largest", ratio, 0.9, "ours"),
    )  # fmt: skip


def _table(rows: Iterable[Row]) -> Table:
    cells = tuple(
        (
            row.name,
            f"{row.rounds:,}",
            *map(shown, (row.raw_c2, row.c2, row.raw_loss, row.loss)),
            "yes" if row.off else "no",
        )
        for row in rows
    )
    header = ("stream", "rounds", "C2 before", "now", "loss before", "now", f"above {OFF}")
    note = "Drawn forecasts of the default. C2 before in 20 equal buckets, now over exact values."
    return Table("Language models", header, cells, (0, 6), (note,))


def _all(rows: Iterable[Row]) -> dict[str, list[float | str]]:
    names = ("name", "rounds", "raw_c2", "raw_loss", "c2", "loss")
    return {name: [getattr(row, name) for row in rows] for name in names}
