"""The paper's first experiment: a perfect forecaster that is not calibrated."""

from __future__ import annotations

from typing import Final

from calibrant.experiments.claims import Claim, below, near
from calibrant.experiments.experiment import Result, Setting, experiment
from calibrant.experiments.synthetic import OURS, PAPER, ROUNDS, Contest, play_scene

SCENE: Final = ("informed", "bernoulli")
EARLY: Final = 300
CAPTION: Final = (
    "Outcomes are tosses of a fair coin; the raw forecaster says 0.3 before each 0 and 0.7 before "
    "each 1. Means over games, and bands from the tenth to the ninetieth percentile."
)


@experiment("bernoulli", "Predicting a Bernoulli sequence", 1)
def run(setting: Setting) -> Result:
    """Play 1,000 rounds with each subroutine, over many seeds."""
    contest = play_scene(SCENE, setting)
    return Result(
        claims(contest),
        contest.figures("bernoulli", "ab", CAPTION),
        (contest.methods_table(EARLY), contest.sizes_table(EARLY)),
        {f"bernoulli_{method}": contest.columns(method) for method in contest.players},
        NOTES,
    )


def claims(contest: Contest) -> tuple[Claim, ...]:
    """Return what the paper says about its panels a and b, and what was measured."""
    ours, paper = contest.players[OURS], contest.players[PAPER]
    inside, alone = ours.at("c2", EARLY)
    loss, loss_alone = ours.at("loss", ROUNDS)
    slow, slow_alone = paper.at("c2", EARLY)
    drawn_alone, mean_alone = (paper.at(name, ROUNDS)[1] for name in ("loss", "mean_loss"))
    raw = float(contest.raw["loss"][:, -1].mean())
    low = "Both methods achieve low calibration error after about 300 observations"
    late = f"The paper's own RegMin, {PAPER}, is slower: C2 after 300 rounds"
    return (
        below("c2", f"{low}: Algorithm 1, {OURS}", inside, 0.01),
        below("c2_alone", f"{low}: {OURS} alone", alone, 0.01),
        near("c2_paper", f"{late}, Algorithm 1", slow, 0.012, 0.005, "ours"),
        near("c2_paper_alone", f"{late}, alone", slow_alone, 0.05, 0.01, "ours"),
        below("loss", f"Algorithm 1 makes perfect predictions: squared loss, {OURS}", loss, 0.005),
        near(
            "loss_raw", "The expert is uncalibrated: squared loss of 0.3 and 0.7", raw, 0.09, 1e-9
        ),
        near("loss_alone", f"{OURS} alone always forecasts 0.5", loss_alone, 0.25, 0.01),
        near("loss_paper_alone", f"{PAPER} alone does", drawn_alone, 0.25, 0.01),
        near("mean_paper_alone", "… its means do", mean_alone, 0.25, 0.01, "ours"),
    )


NOTES: Final = (
    f"{PAPER}, the paper's own RegMin, is slow: after 300 rounds its error is still several times "
    f"that of {OURS}, alone and inside Algorithm 1, and its draws cost more than its means. Both "
    "pictures are shown. The paper's statement holds for it only if an error of 0.05 is low.",
)
