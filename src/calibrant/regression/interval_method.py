"""The ways to find conformal intervals: a rule each over a part of a row, and a bound."""

from __future__ import annotations

from typing import Any, ClassVar, Final, NamedTuple, TypeAlias

import numpy as np

from calibrant.bounds import Bound, conformal_pid, quantile_tracker, saocp, step_sizes
from calibrant.core import check
from calibrant.core.arrays import Mask, Reals
from calibrant.kernels import intervals as kernel
from calibrant.kernels.compile import SHORT
from calibrant.kernels.layout import REAL, ROUNDS, STATE, UNBOUNDED, Section, Words
from calibrant.kernels.whole import copied
from calibrant.registry import Registry
from calibrant.regression.method import OWN, Method, check_once
from calibrant.regression.ticket import IntervalTicket

interval_methods: Registry[type[IntervalMethod]] = Registry("method")
"""What :class:`calibrant.regression.ConformalInterval` can do."""

Met: TypeAlias = tuple[float, float]
"""How far an outcome lay above the centre and how far below; a score, and minus infinity."""
Played: TypeAlias = tuple[Reals, Reals]
"""The radii of a batch, above and below."""

WIDEST: Final = 10_000
"""Scores that are looked back at, at most."""


class Record(NamedTuple):
    """What a theorem speaks about, what was measured, the bound, and what is the most anyway."""

    quantity: str
    measured: float | None
    bound: Bound | None
    most: float = 1.0


class IntervalMethod(Method):
    """A way to choose the radius that covers the next score.

    Parameters
    ----------
    coverage
        Which part of scores should be covered.
    **options
        The rule's own.

    Notes
    -----
    The method works in a part of a row that it is given: see :meth:`sit`.
    """

    program: ClassVar[kernel.IntervalProgram]
    sides: int = 1

    @property
    def fields(self) -> str:
        """What the desk keeps: centre, radius and scorecast; and the radius below, if another."""
        return "d" * (2 + self.sides)

    def face(self, sides: int) -> None:
        """Prepare for outcomes that have so many sides: two around a centre, one if scores."""

    def _start(self, coverage: float, section: Section = kernel.HEAD, **more: float) -> None:
        """Begin with the words of a section, all zero but for those that options name, and more."""
        told = {"alpha": 1.0 - coverage, "step": 1.0, **self._options, **more}
        self.section = section
        self._fresh = [told.get(field.name.lower()) or 0.0 for field in section.fields]
        self._learn = self.program.learn

    def verify(self, row: Words) -> None:
        """Refuse a row with which the rule would go astray."""
        part = row[OWN:].view(np.float64)
        if np.isnan(part).any() or part[kernel.ROUNDS] != row[ROUNDS]:
            raise ValueError(f"a state that is not of {self.name}")

    def sound(self, words: Words, reals: Reals) -> Mask:
        """Say which tickets could have been issued, given centres, radii and scorecasts."""
        centre, base, cast = reals.T[:3]
        known = ~np.isnan(base) & ~np.isnan(reals.T[-1])
        return np.asarray(np.isfinite(centre) & known & np.isfinite(cast))

    @property
    def radius(self) -> float:
        """The radius that the next forecast announces."""
        return float(self._seat.reals()[self._seat.at + kernel.RADIUS])

    @property
    def below(self) -> float | None:
        """The radius below the centre, or None where both are one."""
        return None

    @property
    def coverage(self) -> float:
        """Which part of scores was covered; nan without any."""
        s = self._seat.part()
        return 1.0 - s[kernel.MISSES] / s[kernel.ROUNDS] if s[kernel.ROUNDS] else float("nan")

    def learn(self, ticket: IntervalTicket, met: Met) -> None:
        """Learn the scores for which the ticket's radius was announced."""
        self._learn(self._seat.reals(), self._seat.at, *self._told(ticket), *self._scores(met))

    def amend(self, ticket: IntervalTicket, before: Met, after: Met) -> None:
        """Replace the scores for which the ticket's radius was announced."""
        state, at, told = self._seat.reals(), self._seat.at, self._told(ticket)
        was, now = self._scores(before), self._scores(after)
        misses = state[at + kernel.MISSES] + _missed(told, now) - _missed(told, was)
        check_once(misses, state[at + kernel.ROUNDS], f"{misses:g} misses")
        self.program.amend(state, at, *told, *was, *now)

    def _told(self, ticket: IntervalTicket) -> tuple[float, ...]:
        """Return what a ticket announced, as the rule takes it."""
        return (ticket.base,)

    def _scores(self, met: Met) -> tuple[float, ...]:
        """Return the scores above and below the centre as the rule takes them: the larger one.

        Not so large that what scores add up to would be infinite.
        """
        return (min(max(*met, REAL[0]), REAL[1]),)

    def play(self, ups: Reals, downs: Reals) -> Played:
        """Play a batch of scores; return the radii announced before each, above and below."""
        radii = np.empty(len(ups))
        # As ``max`` does it: of 0.0 and -0.0 the first.
        self._replay([np.clip(np.where(downs > ups, downs, ups), *REAL)], radii)
        return radii, radii

    def _replay(self, scores: list[Reals], *radii: Reals) -> None:
        """Play a batch, compiled if it is long."""
        seat = self._seat
        machine = self.program.machine if len(radii[0]) > SHORT else None
        if machine is not None:
            machine.replay(seat.flat(), seat.at, *scores, *radii)
        else:
            self.program.replay(seat.reals(), seat.at, *(each.tolist() for each in scores), *radii)

    def compile(self) -> None:
        """Compile single steps, if there is a compiler."""
        machine, seat = self.program.machine, self._seat
        if machine is not None:
            seat.use_views()
            self._learn = lambda _, at, *told: machine.learn(seat.flat(), at, *told)

    def record(self, delay: int) -> Record:
        """Return what was measured and its bound, after at least one round.

        By default the distance of coverage from its target, and what is known about it.
        """
        s = self._seat.part()
        off = abs(s[kernel.MISSES] / s[kernel.ROUNDS] - s[kernel.ALPHA])
        most = max(s[kernel.ALPHA], 1.0 - s[kernel.ALPHA])
        return Record("C1", off, self._bound(s, int(s[kernel.ROUNDS]), delay), most)

    def _bound(self, s: list[float], rounds: int, delay: int) -> Bound | None:
        """Return the bound on that distance: by the steps that were made, and None without any."""
        moves = s[kernel.RISE] + s[kernel.FALL]
        ends = s[kernel.FIRST_INVERSE] + s[kernel.LAST_INVERSE]
        inverse, idle = (ends + s[kernel.VARIATION]) / 2.0, int(s[kernel.IDLE])
        # A correction moves the radius without a step; one over the least steps is infinite.
        if not moves or not ends or inverse == kernel.INFINITY:
            return None
        width = s[kernel.HIGH] - s[kernel.LOW]
        return step_sizes(rounds, width, moves, inverse, idle=idle, delay=delay)


def _missed(radii: tuple[float, ...], scores: tuple[float, ...]) -> bool:
    """Say whether a score lies beyond its radius."""
    return any(score > radius for score, radius in zip(scores, radii, strict=True))


def checked(**options: Any) -> dict[str, Any]:
    """Return options: a whole window, and numbers above 0; None where the scores themselves say."""
    made = dict(options)
    for name, value in options.items():
        if name == "window":
            made[name] = check.whole(value, name, low=1, high=WIDEST)
        elif value is not None or name not in ("scale", "gain"):
            made[name] = check.above(value, name, 1e100)
    return made


def with_scores(words: Section, window: int) -> Section:
    """Return the words of a rule with those of the last scores behind them."""
    made = Section(words, limits=UNBOUNDED)
    made.real("SCORES", STATE, "The last scores, as they came.", words=window)
    made.real("SORTED", STATE, "The same in order.", words=window)
    return made


@interval_methods.add("aci")
class AdaptiveConformal(IntervalMethod):
    """After each score, ``radius += step scale (missed - (1 - coverage))``.

    Parameters
    ----------
    step
        How far the radius moves, as a part of the scale.
    scale
        What the largest score is taken to be; None takes the largest so far.
    """

    guarantee = "|coverage - target| <= (D + eta)/(eta T), eta = step scale, scores within D"
    reference = "Gibbs and Candes (2021), Adaptive conformal inference under distribution shift"
    program = kernel.ACI

    def __init__(self, coverage: float, *, step: float = 0.05, scale: float | None = None) -> None:
        self._options = checked(step=step, scale=scale)
        self._start(coverage)


@interval_methods.add("aci_quantile")
class AdaptiveQuantile(IntervalMethod):
    """The radius is a quantile of the last scores; ``level += step (1 - coverage - missed)``.

    At a level of 0 or less everything is covered, at 1 or more nothing, which is what makes the
    guarantee independent of the scores.

    Parameters
    ----------
    step
        How far the level moves.
    window
        How many scores are looked back at.
    """

    guarantee = "|coverage - target| <= (1 + step)/(step T), whatever the size of scores"
    reference = "Gibbs and Candes (2021), Adaptive conformal inference under distribution shift"
    program = kernel.ACI_QUANTILE

    def __init__(self, coverage: float, *, step: float = 0.02, window: int = 500) -> None:
        self._options = checked(step=step, window=window)
        words = with_scores(kernel.QUANTILE_HEAD, self._options["window"])
        # Without a single score nothing can be left out.
        self._start(coverage, words, level=1.0 - coverage, radius=kernel.INFINITY)

    def kept(self) -> list[tuple[int, Any]]:
        """Return all but the scores, of which the oldest is replaced."""
        words, row, first = self._seat.state()[0], self._seat.row, self._seat.at + kernel.LATEST
        oldest = first + words[row + ROUNDS] % self._options["window"]
        return [(row, copied(words, row, first)), (oldest, copied(words, oldest, oldest + 1))]

    def mend(self) -> None:
        """Sort the last scores anew."""
        state, window, first = self._seat.reals(), self._options["window"], self._seat.at
        size = min(self._seat.counts()[self._seat.row + ROUNDS], window)
        first += kernel.LATEST
        told = sorted(state[first : first + size]) + [0.0] * (window - size)
        for k, score in enumerate(told, first + window):
            state[k] = score

    def _bound(self, s: list[float], rounds: int, delay: int) -> Bound | None:
        return quantile_tracker(rounds, s[kernel.STEP], delay=delay)


@interval_methods.add("pid")
class ConformalPID(IntervalMethod):
    """Steps in proportion to the spread of recent scores, and an answer to all errors so far.

    The integral part is ``gain tan(x ln(t + 1) / (saturation (t + 1)))``, x being the errors less
    their target; beyond a quarter turn it is infinite, which is what bounds x.  The part D is
    the ``scorecast`` that the caller gives with a forecast.

    Parameters
    ----------
    step
        How far the radius moves, as a part of the spread of the last ``window`` scores.
    window
        How many scores are looked back at.
    gain
        Of the integral part, in units of the score; None takes the largest score so far.
    saturation
        The smaller, the sooner the integral part answers, and the tighter the bound.
    """

    guarantee = "|coverage - target| <= (C (pi/2) (T + 1)/ln(T + 1) + 1)/T, C = saturation"
    reference = "Angelopoulos, Candes and Tibshirani (2023), Conformal PID control"
    program = kernel.PID

    def __init__(
        self,
        coverage: float,
        *,
        step: float = 0.1,
        window: int = 100,
        gain: float | None = None,
        saturation: float = 0.2,
    ) -> None:
        self._options = checked(step=step, window=window, gain=gain, saturation=saturation)
        words, size = Section(kernel.PID_HEAD, limits=UNBOUNDED), self._options["window"]
        words.real("SCORES", STATE, "The last scores, as they came.", words=size)
        self._start(coverage, words)

    def _bound(self, s: list[float], rounds: int, delay: int) -> Bound | None:
        return conformal_pid(rounds, s[kernel.SATURATION], delay=delay)


@interval_methods.add("saocp")
class StronglyAdaptive(IntervalMethod):
    """A new scale-free learner in each round, with a life of its own; bets decide whom to trust.

    Parameters
    ----------
    scale
        The largest score; None takes the largest so far, and leaves the regret unmeasured.

    Notes
    -----
    At most four learners live at a time for each power of two in the number of rounds, so that
    a round takes time proportional to its logarithm, and memory is fixed.  A corrected outcome
    is counted anew, and in the losses; what the learners made of it cannot be undone.
    """

    guarantee = "pinball regret <= 15 D sqrt(k (ln T + 1)) on every interval of k rounds"
    assumption = "scores in [0, D], D = scale"
    reference = "Bhatnagar, Wang, Xiong and Bai (2023), Improved online conformal prediction"
    program = kernel.SAOCP

    def __init__(self, coverage: float, *, scale: float | None = None) -> None:
        self._options = checked(scale=scale)
        self._start(coverage, kernel.SAOCP_WORDS)
        kernel.hire(self._fresh, 0, 1, 0.0)

    def record(self, delay: int) -> Record:
        """Return the regret to the best of 33 fixed radii, and its bound if scores kept to it."""
        s = self._seat.part()
        rounds, scale = int(s[kernel.ROUNDS]), s[kernel.SCALE]
        if scale == 0.0:
            return Record("regret", None, None)
        rivals = s[kernel.RIVALS : kernel.RIVALS + kernel.RIVAL_COUNT]
        regret = (s[kernel.OWN_LOSS] - min(rivals)) / rounds
        kept = s[kernel.LOW] >= 0.0 and s[kernel.HIGH] <= scale and not delay
        return Record("regret", regret, saocp(rounds, scale) if kept else None, scale)


@interval_methods.add("sf_ogd")
class ScaleFree(IntervalMethod):
    """Steps of ``scale / sqrt(3 G)``, where G adds up the squares of error less target.

    Parameters
    ----------
    scale
        What the largest score is taken to be; None takes the largest so far.
    """

    guarantee = "|coverage - target| falls as 1/sqrt(T); from the steps that were made"
    reference = "Bhatnagar, Wang, Xiong and Bai (2023), Improved online conformal prediction"
    program = kernel.SF_OGD

    def __init__(self, coverage: float, *, scale: float | None = None) -> None:
        self._options = checked(scale=scale)
        self._start(coverage)
