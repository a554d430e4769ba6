"""The paper's five-step protocol, played between three parties."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from calibrant.core import check
from calibrant.core.arrays import Reals
from calibrant.kernels import games
from calibrant.recalibrate import Recalibrator
from calibrant.simulate.adversary import Adversary, get_adversary
from calibrant.simulate.announcement import Announcement, Book, History
from calibrant.simulate.board import views
from calibrant.simulate.coins import Coins, key_for
from calibrant.simulate.forecaster import Forecaster, get_forecaster
from calibrant.simulate.record import Record

Progress = Callable[[int, int], None]
"""Called with what is done and what there is to do."""


def play(
    recalibrator: Recalibrator,
    forecaster: Forecaster | str,
    adversary: Adversary | str,
    rounds: int,
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> Record:
    """Play so many rounds of online recalibration.

    In each round (1) the adversary reveals features, (2) the forecaster makes a raw
    forecast, (3) the recalibrator announces a mixture, (4) the adversary, who sees all
    of that and the past, chooses the outcome, and only then is the draw looked at;
    (5) forecaster and recalibrator learn.

    Parameters
    ----------
    recalibrator
        The recalibrator, which learns in place; give a fresh one for a fresh game.
    forecaster, adversary
        Objects, or names from ``forecasters.names()`` and ``adversaries.names()``.  If one of
        them fails, or says what it may not, the recalibrator is left as before the game.
    rounds
        How many rounds to play.
    seed
        The seed of the adversary's and the forecaster's coins.  The draws depend on the
        recalibrator's own seed.
    progress
        Called a hundred times with the rounds played and ``rounds``.

    References
    ----------
    Kuleshov and Ermon (2017), section "Online recalibration".

    Examples
    --------
    >>> recalibrator = Recalibrator(resolution=10, buckets=10, seed=1)
    >>> record = play(recalibrator, "noise", "threshold", 1000)
    >>> record.c1 < 0.03, recalibrator.rounds
    (True, 1000)
    """
    total = check.whole(rounds, "rounds", low=1)
    parties = get_forecaster(forecaster), get_adversary(adversary)
    before = recalibrator.to_bytes()
    try:
        book, results = play_to([total], recalibrator, *parties, seed, progress)
    except Exception:
        recalibrator.__setstate__(before)
        raise
    return Record(
        raw=book.raw,
        forecast=recalibrator.calibrator.lattice.values[book.drawn],
        mean=book.mean,
        outcomes=book.outcomes,
        pseudo_c1=float(results[0, 2]),
        pseudo_c2=float(results[0, 3]),
        certificate=recalibrator.certificate(),
    )


def play_to(
    marks: Sequence[int],
    recalibrator: Recalibrator,
    forecaster: Forecaster,
    adversary: Adversary,
    seed: int,
    progress: Progress | None = None,
) -> tuple[Book, Reals]:
    """Play to the last of ``marks``; return all rounds, and a row of measures at each mark."""
    total, results = marks[-1], np.empty((len(marks), games.COLUMNS))
    often, rows = max(1, total // 100), dict(zip(marks, results, strict=True))
    table = _Table(recalibrator, forecaster, adversary, seed, total)
    for done in range(1, total + 1):
        table.play_round()
        if done in rows:
            games.measure(*views(table.book.board), rows[done].data, 0)
        if progress is not None and (done % often == 0 or done == total):
            progress(done, total)
    return table.book, results


class _Table:
    """The three parties at one table, and the book of what they did."""

    def __init__(
        self,
        recalibrator: Recalibrator,
        forecaster: Forecaster,
        adversary: Adversary,
        seed: int,
        rounds: int,
    ) -> None:
        self.recalibrator, self.forecaster, self.adversary = recalibrator, forecaster, adversary
        self.nature_key, self.own_key = key_for(seed, "nature"), key_for(seed, "forecaster")
        self.state = forecaster.start()
        self.book = Book(recalibrator.calibrator.lattice, rounds)
        self.history = History(self.book)

    def play_round(self) -> None:
        """Play the five steps of one round."""
        t = self.book.rounds
        nature, own = Coins(self.nature_key, t), Coins(self.own_key, t)
        # 1. Nature reveals features.
        features = self.adversary.reveal(nature)
        # 2. The forecaster makes a raw forecast.
        raw = check.probability(self.forecaster.forecast(self.state, features, own))
        # 3. The recalibrator announces a mixture.  The ticket, which knows the draw, stays here.
        ticket = self.recalibrator.forecast(raw)
        announcement = Announcement(features, raw, ticket.mixture, self.history)
        # 4. Nature chooses the outcome.
        outcome = check.outcome(self.adversary.choose(announcement, nature))
        # 5. Both learn, and the draw becomes history.
        self.state = self.forecaster.learn(self.state, features, outcome)
        self.recalibrator.observe(ticket, outcome)
        self.book.add(raw, announcement.mixture, ticket.index, outcome)
