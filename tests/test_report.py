"""Reports: every word right, also in awkward cases, in one page that needs nothing else."""

from __future__ import annotations

import math
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from summaries import Group, awkward, chained, overconfident, replayed, told

from calibrant.errors import InvalidInput, MissingExtra
from calibrant.groups import GroupRecalibrator
from calibrant.kinds.binary import tables, view
from calibrant.kinds.binary.headline import accuracy, calibration
from calibrant.kinds.binary.judgement import (
    VERDICTS,
    beyond_noise,
    half_step,
    matters,
    noise,
    off,
    spread,
    trend,
    verdict,
)  # fmt: skip
from calibrant.kinds.binary.tables import chain, screen, windows
from calibrant.kinds.binary.view import chosen, guarantee, promise
from calibrant.metrics import calibration_curve
from calibrant.plot import canvas, save
from calibrant.report import headline, render, view_of, write, write_many
from calibrant.report.page import _templates
from calibrant.report.tables import shown, signed
from calibrant.summary import (
    Breakdown,
    Part,
    Parts,
    Summary,
    collector_for,
    summarise_collected,
)  # fmt: skip
from calibrant.transforms import Identity

pytest.importorskip("jinja2", reason='needs the extra "plot"')
pytest.importorskip("matplotlib", reason='needs the extra "plot"')

# ------------------------------------------------------------------------ sentences

# Of these, half are said to be 0.8 and are 0.62, half 0.95 and are 0.79.
FIXED = (Group(0.8, 0.6, 0.62, 5000), Group(0.95, 0.8, 0.79, 5000))

SENTENCES = {
    "fixed": (
        FIXED,
        "Cases you gave 80 % came true 62 % of the time. calibrant gives them 60 %, as close as "
        "its grid of 20 steps allows. Accuracy improved: Brier 0.230 → 0.201; ranking "
        "unchanged: AUC 0.602 → 0.602.",
    ),
    "fixed at no cost": (
        (Group(0.62, 0.5, 0.5, 550), Group(0.3, 0.3, 0.3, 9000)),
        "Cases you gave 62 % came true 50 % of the time. calibrant gives them 50 %. Accuracy "
        "unchanged: Brier 0.213 → 0.212; ranking unchanged: AUC 0.525 → 0.525.",
    ),
    "closer": (
        (Group(0.9, 0.8, 0.6, 4000), Group(0.8, 0.8, 0.6, 4000)),
        "Cases you gave 90 % came true 60 % of the time. calibrant gives them 80 %, closer but "
        "not there yet. Accuracy improved: Brier 0.305 → 0.280; ranking unchanged: AUC 0.500 → "
        "0.500.",
    ),
    "there but for the resolution": (
        (Group(0.9, 0.65, 0.63, 9000), Group(0.66, 0.65, 0.63, 9000)),
        "Cases you gave 90 % came true 63 % of the time. calibrant gives them 65 %, as close as "
        "its grid of 20 steps allows. Accuracy improved: Brier 0.270 → 0.234; ranking "
        "unchanged: AUC 0.500 → 0.500.",
    ),
    "right there but not elsewhere": (
        (Group(0.8, 0.2, 0.62, 5000), Group(0.95, 0.8, 0.79, 5000), Group(0.1, 0.2, 0.9, 5000)),
        "Cases you gave 10 % came true 90 % of the time. calibrant gives them 20 %, closer but "
        "not there yet. Accuracy improved: Brier 0.397 → 0.386; ranking improved: AUC 0.431 → "
        "0.519.",
    ),
    "elsewhere": (
        (Group(0.98, 0.6, 0.7, 4000), Group(0.3, 0.3, 0.3, 4000)),
        "Cases you gave 98 % came true 70 % of the time. calibrant gives them 60 %, closer but "
        "not there yet. Accuracy improved: Brier 0.249 → 0.215; ranking unchanged: AUC 0.700 → "
        "0.700.",
    ),
    "worse": (
        (Group(0.5, 0.6, 0.5, 6000),),
        "Calibration got worse: your forecasts were off by 0.0 points on average, calibrant's "
        "are by 10.0 points. Accuracy got worse: Brier 0.250 → 0.260.",
    ),
    "worse for rare events": (
        (Group(0.002, 0.05, 0.002, 20_000),),
        "Calibration got worse: your forecasts were off by 0.0 points on average, calibrant's "
        "are by 4.8 points. Accuracy got worse: Brier 0.00200 → 0.00430.",
    ),
    "fixed for rare events": (
        (Group(0.01, 0.0, 0.001, 20_000), Group(0.1, 0.05, 0.05, 2000)),
        "Cases you gave 10 % came true 5 % of the time. calibrant gives them 5 %. Accuracy is "
        "mixed: Brier 0.00553 → 0.00523, log loss 0.03288 → 0.04945; ranking unchanged: AUC "
        "0.873 → 0.873.",
    ),
    "sharper and worse ranked": (
        (
            Group(0.9, 0.6, 0.62, 4000),
            Group(0.5, 0.6, 0.55, 400),
            Group(0.2, 0.2, 0.2, 4000),
        ),
        "Cases you gave 90 % came true 62 % of the time. calibrant gives them 60 %, as close as "
        "its grid of 20 steps allows. Lower errors but a slightly worse ranking: Brier 0.238 → "
        "0.200, log loss 0.719 → 0.588, AUC 0.716 → 0.712.",
    ),
    "nothing to fix": (
        (Group(0.5, 0.5, 0.5, 400), Group(0.3, 0.3, 0.29, 300)),
        "Your forecasts were right already, as far as 700 rounds can tell (off by 0.4 points on "
        "average, noise alone leaves about 2.0 points), and stayed so. Accuracy unchanged: Brier "
        "0.231 → 0.231; ranking unchanged: AUC 0.606 → 0.606.",
    ),
    "nothing worth fixing": (
        (Group(0.5, 0.5, 0.508, 19_000),),
        "Your forecasts were right already, as far as 19,000 rounds can tell (off by 0.8 points "
        "on average, too little to matter), and stayed so. Accuracy unchanged: Brier 0.250 → "
        "0.250.",
    ),
    "slightly spoilt": (
        (Group(0.5, 0.5, 0.5, 9000), Group(0.31, 0.35, 0.31, 1800)),
        "Your forecasts were right already, as far as 10,800 rounds can tell (off by 0.0 points "
        "on average, noise alone leaves about 0.5 points), and are off by 0.7 points now. Accuracy "
        "unchanged: Brier 0.244 → 0.244; ranking unchanged: AUC 0.553 → 0.553.",
    ),
    "too uncertain": (
        (Group(0.62, 0.3, 0.43, 40), Group(0.62, 0.5, 0.37, 80), Group(0.62, 0.7, 0.83, 40)),
        "Cases you gave 62 % came true 49 % of the time. calibrant gives them 50 %, too few "
        "cases to call it better. Accuracy improved: Brier 0.266 → 0.230.",
    ),
    "all happened": (
        (Group(0.9, 0.95, 1.0, 1200),),
        "All 1,200 outcomes were 1. Your forecasts averaged 90 %, calibrant's 95 %. Accuracy "
        "improved: Brier 0.010 → 0.003.",
    ),
    "none happened": (
        (Group(0.004, 0.0, 0.0, 1200),),
        "All 1,200 outcomes were 0. Your forecasts averaged 0.4 %, calibrant's 0.0 %. Accuracy "
        "improved: Brier 0.00002 → 0.00000.",
    ),
    "few": (
        (Group(0.75, 0.5, 0.5, 10),),
        "10 rounds are too few to judge calibration. Brier 0.312 → 0.250.",
    ),
    "few and all alike": (
        (Group(0.75, 0.5, 1.0, 10),),
        "10 rounds, all with outcome 1, are too few to judge calibration. Brier 0.062 → 0.250.",
    ),
    "one": (
        (Group(0.75, 0.5, 0.0, 1),),
        "1 round, with outcome 0, is too few to judge calibration. Brier 0.562 → 0.250.",
    ),
    "none": (
        (Group(0.75, 0.5, 0.0, 0),),
        "There are no rounds, so there is nothing to judge.",
    ),
}


def opening_of(summary: Summary) -> str:
    """What the headline says before its verdict on the guarantee."""
    return " ".join(view_of(summary).opening(summary))


def test_the_headline_ends_with_one_verdict_on_the_guarantee() -> None:
    for summary in (told(*FIXED), chained(*overconfident(1500))):
        assert headline(summary) == f"{opening_of(summary)} {promise(summary)}"
        assert headline(summary).count(promise(summary)) == 1
    assert (
        headline(told(Group(0.75, 0.5, 0.0, 0)))
        == "There are no rounds, so there is nothing to judge."
    )


def test_a_grid_that_splits_is_an_excuse_only_for_what_its_draws_leave() -> None:
    groups = Group(0.9, 0.6, 0.62, 5000), Group(0.4, 0.4, 0.4, 5000)
    usual = told(*groups)
    made = replace(usual, summary=usual.summary | {"calibrator": "refining", "resolution": 15})
    assert "calibrant gives them 60 %, closer but not there yet." in headline(made)
    # Half the distance of two cells that were drawn so often and did not split.
    rules = ("gaps", 20), ("refining", 15)
    even, fine = (half_step(*rule, [0.5, 0.02], [400, 400]) for rule in rules)
    assert even.tolist() == [0.025, 0.025]
    assert fine == pytest.approx([0.25**0.75 / 20, 0.0196**0.75 / 20])


@pytest.mark.parametrize("case", SENTENCES)
def test_the_headline_is_right(case: str) -> None:
    groups, expected = SENTENCES[case]
    assert opening_of(told(*groups)) == expected


@settings(max_examples=15)
@given(
    st.lists(
        st.builds(
            Group,
            st.integers(0, 50).map(lambda k: k / 50),
            st.integers(0, 20).map(lambda k: k / 20),
            st.integers(0, 10).map(lambda k: k / 10),
            st.integers(0, 120),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_whatever_happened_there_is_one_sentence_without_nonsense(groups: list[Group]) -> None:
    summary = told(*groups)
    sentence = headline(summary)
    assert sentence.endswith(".")
    assert sentence[0].isupper() or sentence[0].isdigit()
    assert not re.search(r"nan|inf|None|-0\.0|  ", sentence)
    assert headline(Summary.from_dict(summary.to_dict())) == sentence


def with_regret(summary: Summary, value: float, low: float, high: float) -> Summary:
    regret = summary["regret_brier"] | {"value": value, "low": low, "high": high}
    return replace(summary, summary=summary.summary | {"regret_brier": regret})


@pytest.mark.parametrize(
    ("value", "low", "high", "expected"),
    [
        (0.0, -0.004, 0.004, "same"),
        (0.0005, 0.0001, 0.0009, "same"),
        (0.001, -0.02, 0.02, "unclear"),
        (0.004, 0.001, 0.007, "slightly worse"),
        (-0.004, -0.007, -0.001, "slightly improved"),
        (0.02, 0.01, 0.03, "worse"),
        (-0.02, -0.03, -0.01, "improved"),
        (-0.02, math.nan, math.nan, "unknown"),
    ],
)
def test_accuracy_is_judged_by_its_interval(
    value: float, low: float, high: float, expected: str
) -> None:
    summary = told(Group(0.5, 0.5, 0.5, 200))
    assert accuracy(with_regret(summary, value, low, high)) == expected


def test_a_small_brier_score_makes_small_changes_matter() -> None:
    summary = told(Group(0.01, 0.0, 0.01, 2000))
    assert accuracy(with_regret(summary, 0.001, 0.0005, 0.0015)) == "worse"


def test_without_an_interval_the_sentence_claims_nothing_about_accuracy() -> None:
    summary = with_regret(told(*FIXED), -0.02, math.nan, math.nan)
    told_of = "allows. Brier 0.230 → 0.201; ranking unchanged: AUC 0.602 → 0.602."
    assert opening_of(summary).endswith(told_of)


def test_a_change_too_small_for_three_digits_is_shown_with_more() -> None:
    summary = with_regret(told(Group(0.5, 0.5, 0.5, 3000)), -0.02, -0.03, -0.01)
    assert "Accuracy improved: Brier 0.25000 → 0.25000." in headline(summary)


def with_scores(summary: Summary, name: str, **scores: float) -> Summary:
    """The summary with other figures of the forecasts of that name."""
    return replace(summary, summary=summary.summary | {name: summary[name] | scores})


def test_accuracy_is_not_called_improved_while_ranking_fell() -> None:
    assert "Accuracy improved: Brier 0.230 → 0.201;" in headline(told(*FIXED))
    said = headline(with_scores(told(*FIXED), "auc", raw=0.81, forecast=0.68))
    assert "improved" not in said
    assert "Lower errors but a worse ranking: Brier 0.230 → 0.201, log loss" in said
    assert said.count("ranking") == 1
    assert ", AUC 0.810 → 0.680." in said


def test_accuracy_is_called_mixed_only_where_scores_disagree() -> None:
    both = with_scores(told(*FIXED), "auc", raw=0.81, forecast=0.68)
    said = headline(with_scores(both, "raw", log_loss=0.25))
    assert "Accuracy is mixed: Brier 0.230 → 0.201, log loss 0.250 → " in said
    assert "; ranking got worse: AUC 0.810 → 0.680." in said


def test_accuracy_is_not_called_improved_while_the_log_loss_rose() -> None:
    said = headline(with_scores(told(*FIXED), "raw", log_loss=0.25))
    assert "improved" not in said
    assert "log loss 0.250 → " in said


def test_accuracy_is_not_called_unchanged_while_the_log_loss_rose_by_enough_to_matter() -> None:
    same = with_regret(told(*FIXED), 0.0, -0.004, 0.004)
    assert "Accuracy unchanged: Brier 0.230 → 0.201;" in headline(same)
    log_loss = same["forecast"]["log_loss"]
    said = headline(with_scores(same, "raw", log_loss=log_loss / 3.0))
    assert "Brier score unchanged but a worse log loss: Brier 0.230 → 0.201, log loss 0." in said
    assert "unchanged:" not in said.partition("; ranking")[0]
    assert "log loss" not in headline(with_scores(same, "raw", log_loss=log_loss / 1.02))


@pytest.mark.parametrize(("low", "high"), [(-0.02, 0.02), (math.nan, math.nan)])
def test_a_log_loss_that_rose_is_named_where_the_brier_score_tells_nothing(
    low: float, high: float
) -> None:
    summary = with_regret(told(*FIXED), 0.001, low, high)
    assert "log loss" not in headline(summary)
    assert ", log loss 0.2" in headline(with_scores(summary, "raw", log_loss=0.2))


def test_a_ranking_is_not_called_improved_without_the_log_loss_that_rose() -> None:
    ranked = with_scores(told(*FIXED), "auc", raw=0.61, forecast=0.68)
    same = with_regret(ranked, 0.0, -0.004, 0.004)
    log_loss = same["forecast"]["log_loss"]
    said = headline(with_scores(same, "raw", log_loss=log_loss / 1.02))
    assert re.search(r"Accuracy unchanged: Brier .*, log loss .*; ranking improved: AUC", said)


def test_a_ranking_that_got_better_is_said_to_have() -> None:
    said = opening_of(with_scores(told(*FIXED), "auc", raw=0.61, forecast=0.68))
    assert said.endswith("ranking improved: AUC 0.610 → 0.680.")


@pytest.mark.parametrize("said", [2e-6, 1e-3, 0.05, 0.1, 0.3, 1.0 / 3.0, 0.9])
def test_forecasts_that_are_all_the_same_have_no_ranking_to_lose_or_to_gain(said: float) -> None:
    for rounds in (250, 1500, 5000):
        summary = told(Group(said, 0.5, 0.5, rounds), Group(said, 0.6, 0.2, rounds))
        assert summary["auc"]["raw"] == 0.5 > summary["auc"]["forecast"]
        assert "ranking" not in headline(summary)


def test_forecasts_that_differ_by_little_have_a_ranking() -> None:
    said = headline(told(Group(0.1, 0.1, 0.0, 900), Group(0.102, 0.2, 0.3, 900)))
    assert "ranking unchanged: AUC" in said


def test_nothing_is_called_closer_that_is_not_in_the_digits_printed() -> None:
    said = headline(told(Group(0.446, 0.45, 0.6, 4000)))
    assert "Cases you gave 45 % came true 60 % of the time." in said
    assert "calibrant gives them 45 %, still off" in said
    said = headline(told(Group(0.446, 0.5, 0.6, 4000)))
    assert "calibrant gives them 50 %, closer but not there yet" in said


def test_nothing_above_the_fold_speaks_of_c2() -> None:
    for groups, _ in SENTENCES.values():
        summary = told(*groups)
        assert "C2" not in headline(summary) + promise(summary)
    summary = chained(*overconfident(1500))
    page = render([summary])
    assert "C2" not in page[page.index("<h1>") : page.index("<section")]


def part(rounds: int, before: float, after: float, bound: float = math.nan) -> Part:
    return Part("north", rounds, 0.5, 0.7, 0.5, 0.2, before, 0.1, after, bound)


@pytest.mark.parametrize(
    ("row", "before", "after", "expected"),
    [
        (part(99, 0.2, 0.0), 0.9, 0.5, "too few rounds"),
        (part(1000, 0.2, 0.04, 0.03), 0.9, 0.5, "bound exceeded"),
        (part(1000, 0.2, 0.001), 0.9, 0.5, "fixed"),
        (part(1000, 0.001, 0.001), 0.51, 0.5, "right already"),
        (part(1000, 0.2, 0.05), 0.9, 0.7, "better but still off"),
        (part(1000, 0.001, 0.05), 0.5, 0.7, "worse"),
        (part(1000, 0.05, 0.05), 0.7, 0.705, "no better"),
    ],
)
def test_each_group_has_one_verdict_by_the_rule_of_the_headline(
    row: Part, before: float, after: float, expected: str
) -> None:
    outcomes = np.arange(row.rounds) % 2
    raw, now = (curve_of(np.full(row.rounds, said), outcomes) for said in (before, after))
    assert verdict(row, raw, now, "gaps", 20) == expected


FORECASTERS = {
    "even": lambda dice, n: 0.01 + 0.98 * dice.random(n),
    "sure": lambda dice, n: dice.beta(8.0, 2.0, n).clip(0.001, 0.999),
    "rare": lambda dice, n: dice.beta(0.5, 8.0, n).clip(0.001, 0.999),
    "in tenths": lambda dice, n: dice.choice([0.5, 0.6, 0.7, 0.8, 0.9], n),
    # One miss among the nearly sure ones, which comes once in ten runs, must not decide a trend.
    "a tenth nearly sure": lambda dice, n: np.where(np.arange(n) % 10, 0.5, 1.0 - 1.0 / n),
}


def called_off(seed: int, rounds: int, make: Any, chance: Any, runs: int = 200) -> int:
    """How many of some forecasters are called off, if outcomes have another chance."""
    dice, found = np.random.default_rng(seed), 0
    for _ in range(runs):
        raw = make(dice, rounds)
        found += off(curve_of(raw, dice.random(rounds) < chance(raw)))
    return found


def curve_of(raw: Any, outcomes: Any) -> Any:
    followed = Breakdown("group")
    followed.add(followed.places(["a"] * len(raw)), raw, raw, outcomes)
    return followed.curve("a", 0, bands=False)


@pytest.mark.parametrize("rounds", [50, 100, 200, 400, 1000])
@pytest.mark.parametrize("name", FORECASTERS)
def test_right_forecasters_of_any_length_are_rarely_called_off(name: str, rounds: int) -> None:
    wrong = called_off(rounds, rounds, FORECASTERS[name], lambda raw: raw)
    # Each is called off with probability 5 %, and of 200 more than 20 once in 600 times.
    assert wrong <= 20


def bolder(by: float) -> Any:
    """What happens if log-odds are that many times too large."""
    return lambda raw: 1.0 / (1.0 + (1.0 / raw - 1.0) ** (1.0 / by))


@pytest.mark.parametrize(
    ("rounds", "chance", "least"),
    [
        (100, lambda raw: raw - 0.2, 180),
        (100, bolder(3.0), 180),
        (100, lambda raw: 0.5 + 0.0 * raw, 195),
        (200, lambda raw: raw - 0.2, 195),
        (200, bolder(2.0), 170),
        (400, lambda raw: raw + 0.1, 180),
        (1000, bolder(1.5), 180),
    ],
)
def test_forecasters_that_are_visibly_wrong_are_not_called_right(
    rounds: int, chance: Any, least: int
) -> None:
    assert called_off(7, rounds, FORECASTERS["even"], chance) >= least


def test_the_headline_of_a_few_hundred_wrong_rounds_says_what_was_wrong_where() -> None:
    dice = np.random.default_rng(0)
    raw = dice.random(120)
    outcomes = dice.random(120) < bolder(3.0)(raw)
    summary = replayed(raw, outcomes)
    assert not beyond_noise(summary.curves["raw"]).any()
    assert off(summary.curves["raw"])
    said = opening_of(summary)
    assert re.match(r"Cases you gave \d+ % came true \d+ % of the time\.", said), said
    assert "right already" not in said


def test_the_headline_names_what_was_wrong_by_enough_to_matter() -> None:
    # Most was to be corrected at 50 %, by 0.7 points, which is beyond noise and does not matter.
    raw = np.repeat([0.5, 0.2], [100_000, 10_000])
    outcomes = np.concatenate([np.arange(100_000) < 50_700, np.arange(10_000) < 2_120])
    mixed = np.random.default_rng(3).permutation(len(raw))
    summary = replayed(raw[mixed], outcomes[mixed])
    assert beyond_noise(summary.curves["raw"]).sum() == 2
    assert opening_of(summary).startswith("Cases you gave 20 % came true 21 % of the time.")


def test_right_forecasts_are_told_with_the_error_that_chance_alone_leaves() -> None:
    dice = np.random.default_rng(4)
    raw = dice.random((300, 200))
    curves = [curve_of(row, dice.random(200) < row) for row in raw]
    seen, told = (np.mean([f(curve) for curve in curves]) for f in (spread, noise))
    assert seen == pytest.approx(told, rel=0.05)


def test_a_trend_is_not_judged_where_hardly_any_outcome_was_expected() -> None:
    curve = calibration_curve([0.0001] * 9_999 + [0.2], [1, *[0] * 9_999], buckets=20)
    assert (trend(curve) == np.nan_to_num(curve.mean_forecast)).all()


def test_the_verdict_on_a_group_of_all_rounds_is_that_of_the_headline() -> None:
    for seed, chance in ((1, bolder(3.0)), (2, lambda raw: raw), (3, lambda raw: raw - 0.2)):
        dice = np.random.default_rng(seed)
        raw = 0.2 + 0.8 * dice.random(300)
        outcomes = dice.random(300) < chance(raw)
        rec = GroupRecalibrator(seed=1)
        run = rec.replay(raw, outcomes, groups=["all"] * 300)
        followed = Breakdown("group")
        followed.add(followed.places(["all"] * 300), raw, run.forecast, outcomes)
        collector = collector_for(rec)
        collector.update(raw, run.forecast, np.minimum(run.mean, 1.0), outcomes)
        summary = summarise_collected(collector, rec, breakdown=followed)
        row = summary["breakdown"]["rows"][0]
        assert row["verdict"] == VERDICTS[calibration(summary).ending]
        assert row["verdict"] in opening_of(summary)
        assert Summary.from_dict(summary.to_dict()).parts.rows[0].verdict == row["verdict"]


def test_groups_of_a_summary_that_was_stored_without_verdicts_are_not_judged() -> None:
    summary = replace(told(*FIXED), parts=Parts("group", [part(1000, 0.2, 0.001)], {}))
    stored = dict(vars(part(1000, 0.2, 0.001)))
    del stored["verdict"]
    assert tables.parts_table({"kind": "group", "rows": [stored]}).rows[0][-1] == "not judged"
    assert tables.tally(summary) == "Group by group: 1 not judged."


@pytest.mark.parametrize(
    ("scale", "begins"),
    [
        (None, "Cases you gave 80 % came true 62 % of the time."),
        ("percent", "Cases you gave 80 % came true 62 % of the time."),
        ("logit", "Cases whose log-odds amount to 80 % came true 62 % of the time."),
        ("score", "Cases whose scores are read as 80 % came true 62 % of the time."),
    ],
)
def test_the_headline_says_what_its_numbers_are_where_others_were_given(
    scale: str | None, begins: str
) -> None:
    summary = told(*FIXED)
    made = replace(summary, settings=summary.settings | {"scale": scale})
    assert opening_of(made).startswith(begins)


def test_verdicts_in_table_sentence_and_screen_agree() -> None:
    words = ("fixed", "better but still off", "too few rounds")
    pairs = zip("abc", words, strict=True)
    named = [replace(part(1000, 0.2, 0.1), name=name, verdict=word) for name, word in pairs]
    summary = replace(told(*FIXED), parts=Parts("group", named, {}))
    table = tables.parts(summary)
    assert table is not None
    assert [row[5] for row in table.rows] == ["fixed", "better but still off", "too few rounds"]
    end = "Group by group: 1 fixed, 1 better but still off, 1 with too few rounds."
    assert opening_of(summary).endswith(end)
    shown = tables.parts_table({"kind": "group", "rows": [vars(row) for row in named]})
    assert [row[-1] for row in shown.rows] == [row[5] for row in table.rows]


def test_no_caption_speaks_of_a_bound_that_is_not_drawn() -> None:
    summary = chained(*overconfident(1500))
    assert "promises" in view.words("calibration_over_time", summary)[1]
    empty = np.full_like(summary.trace.bound_c2, math.nan)
    bare = replace(summary, trace=replace(summary.trace, bound_c2=empty))
    assert view.words("calibration_over_time", bare)[1].endswith("on a logarithmic axis.")
    assert "promises" not in view.describe("calibration_over_time", bare)


def test_calibrated_forecasts_are_hardly_ever_called_miscalibrated() -> None:
    dice = np.random.default_rng(11)
    truths = dice.random((60, 400))
    events = dice.random((60, 400)) < truths
    pairs = zip(truths, events, strict=True)
    called = sum(off(calibration_curve(p, y, buckets=20)) for p, y in pairs)
    # Each is called off with probability 5 % at most, and of 60 more than 9 once in 500 times.
    assert called <= 9


def test_forecasts_are_off_only_if_a_twentieth_of_the_rounds_is() -> None:
    most, some = Group(0.5, 0.5, 0.5, 9700), Group(0.9, 0.9, 0.1, 300)
    curve = told(most, some).curves["raw"]
    assert beyond_noise(curve).sum() == 1
    assert not off(curve)
    assert off(told(most, replace(some, rounds=600)).curves["raw"])
    assert not off(told(most, replace(some, rounds=600)).curves["raw"], allowed=0.85)


def test_how_far_forecasts_are_off_on_average_is_the_binned_calibration_error() -> None:
    raw, outcomes = overconfident(500)
    summary = replayed(raw, outcomes)
    assert spread(summary.curves["raw"]) == pytest.approx(summary["raw"]["calibration_l1"])
    assert math.isnan(spread(awkward()["nothing"].curves["raw"]))


def test_what_matters_depends_on_how_rare_the_event_is() -> None:
    assert matters([0.5, 0.5, 0.002, 0.998], [0.509, 0.511, 0.0017, 0.9974]).tolist() == [
        False,
        True,
        False,
        True,
    ]


# --------------------------------------------------------------------------- tables


@pytest.mark.parametrize("name", awkward())
def test_every_table_has_as_many_cells_in_a_row_as_in_its_header(name: str) -> None:
    summary = awkward()[name]
    made = [getattr(tables, kind)(summary) for kind in KINDS]
    for table in filter(None, made):
        assert all(len(row) == len(table.header) for row in table.rows)
        assert not any("nan" in cell or "None" in cell for row in table.rows for cell in row)


KINDS = ("scores", "buckets", "brier", "windows", "promises", "settings")


def test_the_table_of_scores_holds_the_summary() -> None:
    summary = told(*FIXED)
    rows = {row[0]: row[1:4] for row in tables.scores(summary).rows}
    for label, key, _ in tables.SCORES:
        expected = tuple(tables.shown(summary[n][key]) for n in ("raw", "forecast", "mean"))
        assert rows[label] == expected
    assert rows["Brier score"] == ("0.2298", "0.2010", "0.2010")
    assert set(summary["raw"]) - {key for _, key, _ in tables.SCORES} == {
        "log_loss_clipped",
        "smooth_error",
        "last_window_l2",
        "worst_window_l2",
    }


def test_sure_mistakes_are_told_below_the_scores() -> None:
    notes = tables.scores(awkward()["never right"]).notes
    assert notes[-1].startswith("In the log loss an outcome that was called impossible counts")
    assert notes[-1].endswith("rounds where it happened: 200 raw, 1 forecast.")


def test_buckets_without_rounds_are_left_out() -> None:
    table = tables.buckets(told(*FIXED))
    assert table.rows == (
        ("0.80 to 0.85", "5,000", "0.800", "0.620", "0.600", "-0.180", "+0.020"),
        ("0.95 to 1.00", "5,000", "0.950", "0.790", "0.800", "-0.160", "-0.010"),
    )


def test_a_promise_is_kept_exceeded_or_was_never_made() -> None:
    summary = replayed(*overconfident(300))
    assert {row[3] for row in tables.promises(summary).rows} == {"kept"}
    bound = summary["bound"] | {"c2": 1e-9}
    broken = replace(
        summary, summary=summary.summary | {"bound": bound, "certificate_holds": False}
    )
    assert tables.promises(broken).rows[1][3] == "exceeded in this run"
    assert promise(broken).startswith(
        "A bound was exceeded in this run. That happens in at most 5 % of runs if the"
    )
    assert promise(broken).endswith("in at most 5 % of runs if the assumptions hold.")
    assert promise(summary).startswith(
        "The guarantee was kept: the errors measured here are within what is proven"
    )
    assert {row[3] for row in tables.promises(awkward()["no promise"]).rows} == {"no promise"}
    parted = replace(summary, parts=Parts("group", [], {}))
    assert promise(parted) == promise(summary)
    bound = summary["bound"] | {"c1": None, "c2": None}
    parted = replace(parted, summary=summary.summary | {"bound": bound})
    assert promise(parted).startswith("The guarantee was kept in each group, which is what it is")


def test_a_few_rounds_are_told_to_be_too_few() -> None:
    summary = replayed(*overconfident(5))
    first = int(summary["bound"]["from_round"])
    assert (
        promise(summary)
        == f"It is too early to promise anything; promises begin at about round {first}."
    )
    assert guarantee(summary).startswith("The drawn forecasts of this run are promised")
    assert {row[3] for row in tables.promises(summary).rows} == {"no promise"}
    assert "too early</td>" in render([summary, summary])


def test_where_only_a_bound_on_the_loss_says_something_calibration_is_not_promised() -> None:
    summary = replayed(*overconfident(30))
    assert summary["certificate_holds"] is True
    bound = summary["bound"] | {"c1": None, "c2": None, "from_round": 120}
    summary = replace(summary, summary=summary.summary | {"bound": bound})
    told = "It is too early to promise calibration; promises begin at about round 120."
    assert promise(summary) == told


def test_tickets_that_expired_are_told_on_the_page() -> None:
    summary = replayed(*overconfident(300))
    account = summary["certificate"] | {"expired": 1234}
    fewer = replace(summary, summary=summary.summary | {"certificate": account})
    assert "1,234 forecasts expired without an outcome" in promise(fewer)
    assert any("1,234 expired without an outcome" in line for line in screen(fewer)[1])


def test_settings_are_told_in_plain_words_with_the_time_it_took() -> None:
    summary = awkward()["nothing"]
    chosen = {"columns": {"raw": "p"}, "inputs": ["a.csv", "b.csv"]}
    changed = replace(
        summary,
        settings=summary.settings | chosen,
        summary=summary.summary | {"timing": {"seconds": 1.23456}},
    )
    rows = dict(tables.settings(changed).rows)
    assert rows["columns"] == "raw = p"
    assert rows["inputs"] == "a.csv, b.csv"
    assert rows["timing: seconds"] == "1.235"
    assert rows["calibrant"] == summary["calibrant"]


def test_infinite_numbers_have_a_sign_of_their_own() -> None:
    assert (tables.shown(math.inf), tables.shown(-math.inf)) == ("∞", "-∞")


# ----------------------------------------------------------------------------- page

VOID = {"meta", "br", "link", "img", "hr", "input"}
SHAPES = {"path", "use", "rect", "circle", "line"}


class Checker(HTMLParser):
    """Reads a page and keeps what the tests ask about."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.named: list[str] = []
        self.tags: list[str] = []
        self.classes: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def _note(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            text = value or ""
            if name == "id":
                self.ids.append(text)
            if name in ("href", "src", "xlink:href", "action", "data", "srcset", "poster"):
                self.links.append(text)
            if name == "aria-labelledby":
                self.named += text.split()


@pytest.fixture(scope="module")
def summary() -> Summary:
    return replayed(*overconfident(1500))


@pytest.fixture(scope="module")
def page(summary: Summary) -> str:
    return render([summary])


def test_the_page_is_well_formed_and_every_id_is_its_own(page: str) -> None:
    checked = Checker(page)
    assert page.startswith("<!DOCTYPE html>")
    assert len(checked.ids) == len(set(checked.ids)) > 0
    assert set(checked.named) <= set(checked.ids)
    assert checked.tags.count("h1") == 1
    assert checked.tags.count("svg") == checked.tags.count("figure") == 8


def test_the_page_needs_nothing_from_elsewhere(page: str) -> None:
    checked = Checker(page)
    assert [link for link in checked.links if not link.startswith("#")] == []
    assert {link[1:] for link in checked.links} <= set(checked.ids)
    assert not {"script", "link", "img", "iframe", "object", "embed"} & set(checked.tags)
    assert re.findall(r"https?://[^\"\s]+", page) == ["http://www.w3.org/1999/xlink"] * 8
    assert re.findall(r"url\((?!#)|@import|@font-face", page) == []
    assert "default-src 'none'" in page


def test_images_take_all_their_colours_from_the_page(page: str) -> None:
    for image in re.findall(r"<svg.*?</svg>", page, re.DOTALL):
        inherited = re.sub(r"var\(--[a-z]+, #[0-9a-f]{6}\)", "", image)
        assert save.COLOUR.findall(inherited) == []
        assert "rgb(" not in image


def test_the_page_has_a_language_a_title_and_colours_for_light_and_dark(page: str) -> None:
    assert '<html lang="en">' in page
    assert "<title>Calibration of a run of foster_hart</title>" in page
    assert "prefers-color-scheme: dark" in page
    for colours in (canvas.LIGHT, canvas.DARK):
        assert all(f"--{role}: {colour};" in page for role, colour in colours.items())


def test_tables_have_captions_and_headers_with_a_scope(page: str) -> None:
    for table in re.findall(r"<table>.*?</table>", page, re.DOTALL):
        assert "<caption>" in table
        assert set(re.findall(r"<th\b([^>]*)>", table)) <= {
            ' scope="col"',
            ' scope="col" class="n"',
            ' scope="row"',
        }


def test_the_page_says_the_headline_the_promise_and_how_to_repeat_it(
    page: str, summary: Summary
) -> None:
    rate = f"{summary['base_rate']:.3f}"
    facts = f"1,500 rounds · base rate {rate} · foster_hart, resolution 20, 20 buckets, seed 1"
    first, *rest = view.opening(summary)
    assert f"<h1>{first}</h1>" in page.replace("\u00a0", " ")
    assert all(f'<p class="lead">{told}</p>' in page.replace("\u00a0", " ") for told in rest)
    assert facts in page
    assert "The guarantee was kept: " in page
    code = "Recalibrator(&#39;foster_hart&#39;, resolution=20, grid=&#39;endpoints&#39;, "
    assert f"{code}buckets=20, prior=1, loss=&#39;squared&#39;, seed=1)" in page
    assert "On the command line" not in page
    told = "The drawn forecasts of this run are promised to be calibrated whatever the outcomes"
    assert f"{told}, in all but 5\u00a0% of runs" in page


def test_no_line_of_the_page_begins_with_a_percent_sign(page: str) -> None:
    words = re.sub(r"<(style|svg|pre)\b.*?</\1>|<[^>]*>", "", page, flags=re.DOTALL)
    assert len(re.findall("\u00a0%", words)) > 5
    assert re.findall(r".{20}[0-9] %", words) == []


def test_the_page_of_the_default_shows_its_chain_and_its_windows() -> None:
    summary = chained(*overconfident(1500))
    page = render([summary])
    facts = "calibrant, resolution 15, 1 bucket, seed 1"
    assert facts in page
    assert "<caption>The chain, link by link</caption>" in page
    assert "Mixture over identity" in page
    assert "and the mixture&#39;s little above that of any expert, the raw forecast" in page
    code = "Calibrant(method=&#39;refining&#39;, resolution=15, grid=&#39;graded&#39;, "
    code += "strength=5.3, patience=3.0, doublings=2, buckets=1, "
    assert f"{code}loss=&#39;squared&#39;, seed=1)" in page
    assert "<caption>Window by window</caption>" in page
    Checker(page)


def test_the_chain_stands_as_it_was_measured() -> None:
    summary = chained(*overconfident(1500))
    table, told = chain(summary), summary["chain"]
    assert table is not None
    assert table.rows[0][0] == "Draws over the mixture"
    assert table.rows[0][2:] == (
        signed(told["mixed_regret"]), shown(told["mixed_bound"]), "kept",
    )  # fmt: skip
    assert [row[0] for row in table.rows[1:]] == [f"Mixture over {k['expert']}" for k in
                                                  told["links"]]  # fmt: skip
    assert {row[-1] for row in table.rows} == {"kept"}
    assert chain(awkward()["ten rounds"]) is None
    assert chain(chained(np.zeros(0), np.zeros(0, np.int64))) is None


def test_the_last_and_the_worst_window_are_told_with_their_rounds() -> None:
    summary = chained(*overconfident(1500))
    table = windows(summary)
    assert table is not None
    last, worst = table.rows
    assert last[1] == f"{shown(summary['raw']['last_window_l2'])} (rounds 626 to 1,250)"
    first, end, error = summary.windows.worst["forecast"]
    assert worst[2] == f"{shown(error)} (rounds {first:,} to {end:,})"


def test_a_page_says_nothing_of_windows_before_one_has_ended() -> None:
    few = awkward()["ten rounds"]
    assert windows(few) is None
    assert "windows" not in chosen(few)
    assert "indow" not in re.sub(
        "<style.*?</style>|<script.*?</script>", "", render([few]), flags=re.S
    )
    assert "Does it hold all the time?" in render([few])


def test_of_many_groups_the_largest_are_listed() -> None:
    rows = [Part(f"g{k}", k, 0.5, 0.5, 0.5, 0.1, 0.01, 0.1, 0.01, 0.2) for k in range(101)]
    summary = replace(awkward()["ten rounds"], parts=Parts("group", rows, {}))
    table = tables.parts(summary)
    assert table is not None
    assert [row[0] for row in table.rows] == [f"g{k}" for k in range(100, 0, -1)]
    assert all(len(row) == len(table.header) for row in table.rows)
    told = "Of 101, those 100 with the most rounds; all are in the summary."
    assert table.notes[-1] == told
    few = tables.parts(replace(summary, parts=Parts("class", rows[:3], {})))
    assert few is not None
    assert len(few.notes) == 1
    assert tables.parts(awkward()["ten rounds"]) is None
    assert view.part_drawings(summary) == {}


def test_panels_of_groups_stand_in_the_order_of_their_table() -> None:
    rows = [Part(f"g{k}", k, 0.5, 0.5, 0.5, 0.1, 0.01, 0.1, 0.01, 0.2) for k in (3, 5, 4, 5)]
    rows[3] = replace(rows[3], name="other")
    curve = calibration_curve([0.5], [1], buckets=1)
    curves = {row.name: (curve, curve) for row in rows}
    summary = replace(awkward()["ten rounds"], parts=Parts("group", rows, curves))
    table = tables.parts(summary)
    assert table is not None
    listed = [row[0] for row in table.rows]
    assert listed == ["g5", "other", "g4", "g3"]
    for drawn in view.part_drawings(summary).values():
        assert [row.group for row in drawn.rows] == listed


def test_a_front_of_ones_own_stands_in_the_code() -> None:
    summary = chained(*overconfident(50), experts=Identity(), method="foster_hart")
    page = render([summary])
    code = "Calibrant(Identity(), method=&#39;foster_hart&#39;, resolution=20"
    assert code in page


def test_late_outcomes_are_told_where_no_theorem_speaks_of_them() -> None:
    raw, outcomes = overconfident(200)
    summary = chained(raw, outcomes, available=np.arange(200) + 3.0, method="growing")
    assert promise(summary) == (
        "Outcomes came late here, at most 2 outstanding at a forecast, and no theorem of this "
        "method covers a single run then. What was measured stands; nothing is promised."
    )
    assert guarantee(summary).startswith("Nothing is promised here.")
    table = chain(summary)
    assert table is not None
    assert {row[-1] for row in table.rows} == {"no promise"}


def test_a_bound_on_the_loss_to_the_mixture_alone_is_no_guarantee_that_was_kept() -> None:
    raw, outcomes = overconfident(2500)
    summary = chained(raw, outcomes, available=np.arange(2500) + 3.0)
    assert summary["certificate_holds"] is True
    assert summary["chain"]["mixed_bound"] < 1.0
    assert {summary["bound"][key] for key in ("c1", "c2", "regret")} == {None}
    first = summary["bound"]["from_round"]
    told = f"It is too early to promise anything; promises begin at about round {first:,}."
    assert promise(summary) == told
    assert "too early</td>" in render([summary, summary])


def test_a_summary_from_before_there_were_chains_is_still_told(summary: Summary) -> None:
    old = {k: v for k, v in summary.summary.items() if k not in ("chain", "calibrator", "windows")}
    for name in ("raw", "forecast", "mean"):
        old[name] = {k: v for k, v in old[name].items() if k != "last_window_l2"}
    old["certificate"] = {k: v for k, v in old["certificate"].items() if k != "delay"}
    page = render([replace(summary, summary=old)])
    assert "Recalibrator(&#39;foster_hart&#39;, resolution=20" in page
    assert "The chain, link by link" not in page


def test_the_same_summary_gives_the_same_page_also_by_way_of_json(
    page: str, summary: Summary
) -> None:
    assert render([Summary.from_dict(summary.to_dict())]) == page


def test_nothing_that_a_user_wrote_becomes_markup() -> None:
    evil = '<script>alert("x")</script>'
    summary = awkward()["nothing"]
    given_settings = {"inputs": [evil, "-"], "command": ["calibrant", "replay", evil], "note": evil}
    page = render([replace(summary, settings=summary.settings | given_settings)])
    assert "<script" not in page
    assert "alert(" in page
    Checker(page)


def test_a_command_is_shown_as_it_can_be_typed() -> None:
    summary = awkward()["nothing"]
    words = ["calibrant", "replay", "my games.csv", "--seed", 3]
    page = render([replace(summary, settings=summary.settings | {"command": words})])
    assert "<code>calibrant replay &#39;my games.csv&#39; --seed 3</code>" in page
    page = render([replace(summary, settings=summary.settings | {"command": "calibrant play"})])
    assert "<code>calibrant play</code>" in page


def test_rows_that_made_no_round_are_told() -> None:
    told = awkward()["nothing"]
    summary = told.summary | {"n_skipped": 1200, "n_unresolved": 3, "seed": None}
    page = render([replace(told, summary=summary)])
    assert "1,200 rows skipped · 3 without an outcome yet" in page
    assert "no seed" in page


def test_a_method_that_nobody_knows_is_shown_with_what_all_have_in_common() -> None:
    summary = awkward()["nothing"]
    page = render([replace(summary, summary=summary.summary | {"method": "mine"})])
    told = "buckets=20, prior=1, loss=&#39;squared&#39;, seed=1"
    assert f"Recalibrator(&#39;mine&#39;, {told})" in page


def test_without_rounds_there_are_no_pictures_but_the_settings() -> None:
    page = render([awkward()["nothing"]])
    assert "<figure>" not in page
    assert "What was promised will be checked once there are rounds." in page
    assert "<caption>Settings</caption>" in page


def test_c1_has_a_picture_of_its_own_if_the_theorem_is_about_c1() -> None:
    about_c2 = chosen(replayed(*overconfident(700)))
    about_c1 = chosen(replayed(*overconfident(700), method="regret_matching"))
    assert set(about_c1) - set(about_c2) == {"calibration_l1_over_time"}
    assert set(chosen(awkward()["no promise"])) == set(about_c2)


def test_a_method_without_a_promise_says_so() -> None:
    summary = awkward()["no promise"]
    assert promise(summary) == "running_mean makes no promise that could be checked here."
    assert guarantee(summary).startswith("Nothing is promised here.")


def test_several_runs_are_compared_and_then_told_one_by_one(tmp_path: Path) -> None:
    summaries = [awkward()["one round"], awkward()["ten rounds"]]
    named = [
        replace(s, settings=s.settings | {"inputs": f"dir/{k}.csv"})
        for k, s in enumerate(summaries)
    ]
    goal = write_many(named, tmp_path / "both.html")
    page = goal.read_text()
    checked = Checker(page)
    assert len(checked.ids) == len(set(checked.ids))
    assert {"#run1", "#run2"} <= set(checked.links)
    assert "<title>Calibration of 0.csv and 1.csv</title>" in page
    assert "<caption>All runs</caption>" in page
    assert checked.tags.count("h1") == 1


def test_a_report_is_written_to_its_place(tmp_path: Path) -> None:
    goal = write(awkward()["nothing"], tmp_path / "report.html")
    assert goal.read_text() == render([awkward()["nothing"]])
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_a_report_of_nothing_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"^summaries must be at least one, got \[\]$"):
        render([])


def test_a_missing_jinja2_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    _templates.cache_clear()
    with pytest.raises(MissingExtra) as caught:
        render([awkward()["nothing"]])
    expected = (
        'reports need jinja2, which is not installed: pip install ".[plot]" in a clone of calibrant'
    )
    assert str(caught.value) == expected
