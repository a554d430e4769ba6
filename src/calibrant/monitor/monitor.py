"""Tests of calibration by betting, in constant memory."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core import check
from calibrant.core.arrays import Bits, Reals, Words
from calibrant.core.codec import Document
from calibrant.core.gate import Gate
from calibrant.core.stateful import Migration, Stateful, untold
from calibrant.errors import InvalidInput
from calibrant.kernels import evidence as kernel
from calibrant.kernels.compile import SHORT, available, compiled


@dataclass(frozen=True)
class Evidence:
    """Evidence against the forecasts so far.

    Attributes
    ----------
    now
        The money that a gambler has who started with 1 and bet against the forecasts at
        the forecasts' own odds; stays near or below 1 as long as the forecasts are right.
    highest
        The most money that the gambler ever had, at least 1.
    at
        After how many rounds the gambler had most.
    """

    now: float
    highest: float
    at: int

    @property
    def p_value(self) -> float:
        """An anytime-valid p-value: 1 over the highest evidence.

        >>> Evidence(3.0, 50.0, 812).p_value
        0.02
        """
        return 1.0 / self.highest


@dataclass(frozen=True)
class Change:
    """A change for the worse that the change alarm has found.

    Attributes
    ----------
    since
        How many rounds there were before the change: an estimate.
    after
        After how many rounds the alarm rang.
    bucket
        The bucket that gave the change away, or None if the stream as a whole did.
    remedy
        What would have made the forecasts better: ``"odds x 2"`` or ``"odds ^ 1/2"`` (they
        were over-confident), or ``"odds"`` of one bucket.
    """

    since: int
    after: int
    bucket: int | None
    remedy: str


@dataclass(frozen=True)
class BucketEvidence:
    """What happened in one bucket.

    Attributes
    ----------
    low, high
        The ends of the bucket.
    rounds
        Rounds whose forecast was in the bucket.
    forecast, frequency
        Mean forecast and mean outcome; not a number if the bucket is empty.
    evidence
        Evidence against the bucket's forecasts, now.
    flagged
        Whether the bucket's evidence ever reached the number of buckets over alpha.
    """

    low: float
    high: float
    rounds: int
    forecast: float
    frequency: float
    evidence: float
    flagged: bool


KIND: Final = "monitor"
MAX_BUCKETS: Final = 1000
MAX_LAG: Final = 1000
LARGEST: Final = 709.0
"""Evidence is told up to e to this power, which is about the largest number."""
SETTINGS: Final = ("alpha", "buckets", "run_length", "tolerance", "clip", "lag", "stakes")
STAKES: Final = ("grid", "learned")


class Monitor(Stateful):
    """Follow forecasts and outcomes, and ring when the forecasts cannot be right.

    A gambler bets against every forecast at the odds that the forecast itself offers.  If
    the forecasts are right, nobody can win money at them; so the gambler's wealth is
    evidence, and it may be looked at after every round.

    Parameters
    ----------
    alpha
        The chance, at most, that the alarm ever rings although the forecasts are right.
    buckets
        Number of intervals of forecasts that are also judged apart.
    run_length
        Rounds, at least, that pass on average before the change alarm rings although the
        forecasts are right.
    tolerance
        How far a forecast may be from the chance of its outcome and still count as right.
    clip
        A forecast below this is read as "at most this", and one above ``1 - clip`` as "at
        least that": one surprise at a forecast of 0 is worth at most 1/clip.
    lag
        An outcome is known before the forecast that is made so many rounds later; 1 if
        outcomes are known before the next forecast.
    stakes
        ``"grid"``: most of the stake is on a grid of fixed alternatives, which finds errors
        that all forecasts share sooner.  ``"learned"``: none, as in earlier versions.

    Notes
    -----
    *Right* means that given everything known when it was made, a forecast was the chance
    of its outcome, up to ``tolerance``.  That is more than calibration: against an
    adversary, or where forecasts ignore what is known, a stream with no calibration error
    at all can be found out.

    The gambler plays six games.  In each bucket: a constant rate, learned as
    (ones + 1/2)/(rounds + 1), and a shift of the log-odds, learned by Newton steps, half
    the stake each.  Over all: the mean of the buckets' wealth (6/20 of the stake), their
    product and a line in log-odds, learned as in online Platt scaling (1/20 each), and
    16 fixed lines (12/20): slopes from 1/2 to 3/2, odds times 4/9 to 9/4, or both.  Before every
    round each of these gives away a share of its money, one over 2000 more than there were
    rounds, and all get the same of it: no line is ruined by a long right time.  Every factor
    has mean at most 1 given the past, so the wealth is a supermartingale that starts at 1, and by
    Ville's inequality the chance that it ever reaches 1/alpha is at most alpha.  ``clip`` and
    ``tolerance`` only enlarge the set of chances under which this holds.

    The change alarm follows 14 fixed alternatives for the whole stream and 4 for each bucket.
    For each it keeps the largest product of betting factors over all rounds at which the
    bets could have begun (a CUSUM), and it rings when one of them, weighted, reaches
    ``run_length``.  The sum of those products over all beginnings is an e-detector: its mean
    grows by at most 1 a round.  Hence the mean time to a false alarm is at least ``run_length``,
    and the chance of one within T rounds at most T/run_length.

    With a ``lag`` above 1 the outcomes of overlapping rounds may depend on one another, so
    ``lag`` gamblers take turns: each has seen the outcome of its last bet before it
    makes the next.  ``evidence`` is then that of the richest, divided by ``lag``, which keeps
    the guarantee of the alarm; the change alarm's threshold is doubled, which keeps its own.

    Safe to call from several threads: every call holds the monitor's gate.  Rounds count in the
    order in which they come, so threads that race decide that order by chance.

    References
    ----------
    Shafer and Vovk, *Game-Theoretic Foundations for Probability and Finance* (2019).
    Krichevsky and Trofimov, IEEE Trans. Inf. Theory 27 (1981): the constant rate.
    Shin, Ramdas and Rinaldo, "E-detectors" (2022): the change alarm.
    Arnold, Henzi and Ziegel (2023) and the corrigendum to Henzi and Ziegel (2022): lags.

    Examples
    --------
    >>> monitor = Monitor(alpha=0.01)
    >>> for outcome in [1, 0, 0, 1, 0, 0, 0, 1, 0, 0] * 10:
    ...     monitor.update(0.8, outcome)
    >>> monitor.alarm, monitor.alarm_after, monitor.since
    (True, 16, 1)
    >>> monitor
    Monitor(alpha=0.01, buckets=20, rounds=100, alarm after 16 rounds)
    """

    kind: ClassVar = KIND
    version: ClassVar[int] = 2
    migrations: ClassVar[dict[int, Migration]] = {1: untold(2, stakes="learned")}

    __slots__ = ("_before", "_chains", "_gate", "_rounds", "_settings")

    def __init__(
        self,
        alpha: float = 0.01,
        *,
        buckets: int = 20,
        run_length: float = 1e6,
        tolerance: float = 0.0,
        clip: float = 1e-6,
        lag: int = 1,
        stakes: str = "grid",
    ) -> None:
        self._settings: dict[str, Any] = {
            "alpha": between(alpha, "alpha", 1e-100, 0.5),
            "buckets": check.whole(buckets, "buckets", low=1, high=MAX_BUCKETS),
            "run_length": between(run_length, "run_length", 1.0, 1e100),
            "tolerance": between(tolerance, "tolerance", 0.0, 0.5),
            "clip": between(clip, "clip", 1e-12, 0.1),
            "lag": check.whole(lag, "lag", low=1, high=MAX_LAG),
            "stakes": check.choice(stakes, "stakes", STAKES),
        }
        self._before = self._rounds = 0
        self._chains = self._fresh()
        self._gate = Gate()

    def _fresh(self) -> list[list[float]]:
        """Return one state for each gambler."""
        s, lag = self._settings, self._settings["lag"]
        limit = math.log(lag / s["alpha"])
        change_limit = s["run_length"] * (1.0 if lag == 1 else 2.0)
        sizes = s["buckets"], s["tolerance"], s["clip"]
        grid = s["stakes"] == "grid"
        return [kernel.fresh(*sizes, limit, change_limit, grid) for _ in range(lag)]

    # ------------------------------------------------------------------ rounds

    def update(self, forecast: float, outcome: int) -> None:
        """Add one round, in the order in which the forecasts were made."""
        value = check.probability(forecast, "forecast")
        told = check.outcome(outcome)
        with self._gate:
            k = (self._rounds - self._before) % len(self._chains)
            chain = self._chains[k].copy()
            kernel.follow(chain, value, told)
            # No call between these, here and below: an interrupted round counts wholly or not.
            self._chains[k], self._rounds = chain, self._rounds + 1

    def update_many(
        self, forecasts: ArrayLike, outcomes: ArrayLike, *, compile: bool | None = None
    ) -> None:
        """Add many rounds in order; exactly the same as one :meth:`update` for each.

        ``compile`` says whether to use a compiler, by default for long batches; no result changes.
        """
        values = check.probabilities(forecasts, "forecasts")
        told = check.outcomes(outcomes)
        check.same_length(forecasts=values, outcomes=told)
        with self._gate:
            self._follow(values, told, compile)

    def _follow(self, values: Reals, told: Bits, compile: bool | None = None) -> None:
        chains, lag = list(self._chains), len(self._chains)
        for start in range(min(lag, len(values))):
            k = (self._rounds - self._before + start) % lag
            chains[k] = _followed(chains[k], values[start::lag], told[start::lag], compile)
        self._chains, self._rounds = chains, self._rounds + len(values)

    def skip(self, rounds: int) -> None:
        """Pass over rounds before the first that is judged, such as those of a method that learns.

        Only the count of rounds goes on.  How many to skip must not depend on what they bring.
        """
        passed = check.whole(rounds, "rounds")
        with self._gate:
            if judged := self._rounds - self._before:
                raise InvalidInput(f"skip must come before the first round, got {judged} rounds")
            self._rounds = self._before = self._rounds + passed

    def restart(self) -> None:
        """Forget all evidence and begin anew, after a change that was dealt with.

        Rounds are counted on.  Every restart has the guarantees of a new monitor.
        """
        with self._gate:
            self._chains, self._before = self._fresh(), self._rounds

    def _kept(self) -> tuple[Any, ...]:
        """Return what a round changes, to be put back."""
        return list(self._chains), self._rounds, self._before

    def _put_back(self, kept: tuple[Any, ...]) -> None:
        self._chains, self._rounds, self._before = kept

    # ---------------------------------------------------------------- findings

    @property
    def rounds(self) -> int:
        """Rounds so far."""
        with self._gate:
            return self._rounds

    @property
    def alpha(self) -> float:
        """The chance of a false alarm, at most."""
        return float(self._settings["alpha"])

    @property
    def alarm(self) -> bool:
        """Whether the alarm has rung: the evidence was once 1/alpha or more."""
        return self.alarm_after is not None

    @property
    def alarm_after(self) -> int | None:
        """After how many rounds the alarm rang, or None."""
        with self._gate:
            return self._alarm_after()

    @property
    def evidence(self) -> Evidence:
        """The evidence now and at its highest, and the round of the highest."""
        with self._gate:
            return self._evidence()

    def _evidence(self) -> Evidence:
        lag = len(self._chains)
        now = max(chain[kernel.NOW] for chain in self._chains)
        k = max(range(lag), key=lambda k: self._chains[k][kernel.HIGHEST])
        highest = math.exp(min(self._chains[k][kernel.HIGHEST], LARGEST)) / lag
        at = int(self._chains[k][kernel.HIGHEST_AT])
        if highest <= 1.0:
            return Evidence(math.exp(min(now, LARGEST)) / lag, 1.0, self._before)
        return Evidence(math.exp(min(now, LARGEST)) / lag, highest, self._number(k, at))

    @property
    def change(self) -> Change | None:
        """The first change that the change alarm found, or None."""
        with self._gate:
            return self._change()

    def _change(self) -> Change | None:
        after, k = min(self._moments(kernel.CHANGE), default=(0, 0))
        if not after:
            return None
        leader = int(self._chains[k][kernel.LEADER])
        since = self._number(k, self._chains[k][kernel.SINCE]) - 1
        bucket = leader - kernel.SUMS if leader >= kernel.SUMS else None
        return Change(since, after, bucket, _remedy(leader))

    @property
    def since(self) -> int | None:
        """How many rounds there were before the forecasts went wrong: an estimate.

        The change alarm's, if it has rung; if only the alarm has, the beginning of the run
        of bets that has won most by now.  None if neither has.
        """
        with self._gate:
            if (change := self._change()) is not None:
                return change.since
            return None if self._alarm_after() is None else self._best_beginning()

    def table(self) -> list[BucketEvidence]:
        """Return what happened in each bucket.

        The chance that a bucket is ever flagged although the forecasts are right is at
        most alpha over all buckets.
        """
        with self._gate:
            return [self._row(j) for j in range(self._settings["buckets"])]

    def _row(self, j: int) -> BucketEvidence:
        size, lag = self._settings["buckets"], len(self._chains)
        at = kernel.blocks_at(size) + j * kernel.STRIDE
        blocks = [chain[at : at + kernel.STRIDE] for chain in self._chains]
        count, ones, total = (
            math.fsum(block[word] for block in blocks)
            for word in (kernel.COUNT, kernel.ONES, kernel.TOTAL)
        )
        top = max(block[kernel.TOP] for block in blocks)
        return BucketEvidence(
            low=j / size,
            high=(j + 1) / size,
            rounds=int(count),
            forecast=total / count if count else math.nan,
            frequency=ones / count if count else math.nan,
            evidence=max(block[kernel.WEIGHT] for block in blocks) / lag,
            flagged=top >= math.log(size * lag / self.alpha),
        )

    def _alarm_after(self) -> int | None:
        return min(self._moments(kernel.ALARM), default=(None, 0))[0]

    def _best_beginning(self) -> int:
        found = [(value, -self._number(k, start)) for k, value, start in self._sums()]
        return -max(found)[1] - 1

    def _sums(self) -> Iterator[tuple[int, float, float]]:
        """Yield gambler, weighted value and beginning of every sum that is under way."""
        size = self._settings["buckets"]
        shares = 2.0 * kernel.SUMS, 2.0 * kernel.PER_BUCKET * size
        own = kernel.sums_at(size)
        places = [(own + 2 * k, shares[0]) for k in range(kernel.SUMS)]
        for j in range(size):
            first = kernel.blocks_at(size) + j * kernel.STRIDE + kernel.LOCAL_SUMS
            places += [(first + 2 * k, shares[1]) for k in range(kernel.PER_BUCKET)]
        for k, chain in enumerate(self._chains):
            yield from ((k, chain[at] / share, chain[at + 1]) for at, share in places if chain[at])

    def _moments(self, word: int) -> list[tuple[int, int]]:
        """Return the rounds that the gamblers' states name in a word, where a state names one."""
        chains = enumerate(self._chains)
        return [(self._number(k, chain[word]), k) for k, chain in chains if chain[word] > 0]

    def _number(self, chain: int, turn: float) -> int:
        """Return how many rounds there were up to a gambler's ``turn``, counted from 1."""
        return self._before + chain + (int(turn) - 1) * len(self._chains) + 1

    # ------------------------------------------------------------------- state

    def __repr__(self) -> str:
        defaults = Monitor.__init__.__kwdefaults__ or {}
        named = ["alpha", "buckets", *(n for n, v in defaults.items() if self._settings[n] != v)]
        told = ", ".join(f"{name}={_shown(self._settings[name])}" for name in dict.fromkeys(named))
        with self._gate:
            rounds, after = self._rounds, self._alarm_after()
        state = "no alarm" if after is None else f"alarm after {after} rounds"
        return f"Monitor({told}, rounds={rounds}, {state})"

    def _document(self) -> Document:
        with self._gate:
            counts = {"rounds": self._rounds, "before": self._before}
            chains = np.array(self._chains).reshape(-1).view("i8")
        return Document(KIND, {**self._settings, **counts}, {"chains": chains}, self.version)

    def _restore(self, document: Document) -> None:
        s = document.settings
        Monitor.__init__(self, **{name: s[name] for name in SETTINGS})
        self._rounds = check.whole(s["rounds"], "rounds")
        self._before = check.whole(s["before"], "before", high=self._rounds)
        self._chains = _checked(document.arrays["chains"], self._fresh())


def between(value: Any, name: str, low: float, high: float) -> float:
    """Return a number, if it is from ``low`` to ``high``."""
    rule = f"a number from {low:g} to {high:g}".replace("e+", "e")
    return check.real(value, name, low=low, high=high, rule=rule)


def _shown(value: Any) -> str:
    return repr(value) if isinstance(value, str) else f"{value:g}"


def _followed(
    chain: list[float], forecasts: Reals, outcomes: Bits, compile: bool | None
) -> list[float]:
    """Return a gambler's state after more rounds, compiled if they are many or it is asked for."""
    if (len(forecasts) > SHORT if compile is None else compile) and available():
        array = np.array(chain)
        run = compiled(kernel.follow_many, "evidence", nogil=True)
        run(array, np.ascontiguousarray(forecasts), np.ascontiguousarray(outcomes))
        return list(array.tolist())
    after = list(chain)
    kernel.follow_many(after, forecasts.tolist(), outcomes.tolist())
    return after


def _remedy(leader: int) -> str:
    if leader < kernel.SHIFTED:
        return f"odds x {kernel.SHIFTS[leader]:.3g}"
    if leader < kernel.SUMS:
        return f"odds ^ {kernel.SLOPES[leader - kernel.SHIFTED]}"
    return "odds"


MOMENTS: Final = [kernel.HIGHEST_AT, kernel.ALARM, kernel.CHANGE, kernel.SINCE]
"""Words that name a round."""
MOST_ROUNDS: Final = 2.0**53
"""Beyond that, reals do not count on."""


def _checked(words: Words, fresh: list[list[float]]) -> list[list[float]]:
    """Return the stored states, if they could have come from these fresh ones."""
    stored, start = words.view(np.float64).reshape(len(fresh), -1), np.array(fresh)
    if stored.shape != start.shape or not ((stored < np.inf) | (stored == start)).all():
        raise ValueError("chains of another size, or that are no numbers")
    buckets = int(start[0, kernel.BUCKETS])
    for part in (slice(0, kernel.ROUNDS), slice(kernel.HEADER, kernel.sums_at(buckets))):
        if (stored[:, part] != start[:, part]).any():
            raise ValueError("chains of other settings")
    behind = kernel.size(buckets)
    blocks = stored[:, kernel.blocks_at(buckets) : behind].reshape(len(stored), -1, kernel.STRIDE)
    counts, ones = blocks[..., kernel.COUNT], blocks[..., kernel.ONES]
    if ((blocks[..., kernel.FIRMNESS] < 1.0) | (ones < 0.0) | (ones > counts)).any():
        raise ValueError("buckets that no rounds leave")
    moments, last = stored[:, MOMENTS], stored[:, kernel.ROUNDS, None]
    leader = stored[:, kernel.LEADER]
    if ((moments < 0.0) | (moments > last)).any() or (last > MOST_ROUNDS).any():
        raise ValueError("moments that no rounds reach")
    if ((leader < 0.0) | (leader >= kernel.SUMS + buckets)).any():
        raise ValueError("a sum that there is not")
    if ((stored[:, behind:] < 0.0) | (stored[:, behind:] > kernel.RICHEST)).any():
        raise ValueError("accounts that no rounds leave")
    return stored.tolist()
