"""Play one game round by round, or many at once, and measure what came of it."""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from calibrant.calibrators import Calibrator
from calibrant.core import check
from calibrant.core.arrays import Bits, Reals, Words
from calibrant.errors import InvalidInput
from calibrant.kernels import games
from calibrant.kernels.compile import SHORT, available
from calibrant.losses import LossLike, get_loss
from calibrant.recalibrate import Certificate, Recalibrator
from calibrant.recalibrate.secret import secret_of
from calibrant.simulate.adversary import Adversary, BuiltInAdversary, get_adversary
from calibrant.simulate.board import Announcement, Book, Coins, History, key_for, new_board, views
from calibrant.simulate.forecaster import BuiltInForecaster, Forecaster, get_forecaster

SERIES = ("forecast", "mean", "raw")


@dataclass(frozen=True, eq=False)
class Record:
    """All rounds of one game.

    Attributes
    ----------
    raw
        The raw forecasts.
    forecast
        The drawn forecasts: the calibrated ones.
    mean
        The means of the announced mixtures.
    outcomes
        0 or 1 each.
    pseudo_c1, pseudo_c2
        Calibration errors of the mixtures, each value counted with its probability.
    certificate
        The recalibrator's own account at the end, with the theorems beside it.

    Examples
    --------
    >>> from calibrant import Recalibrator
    >>> from calibrant.simulate import play
    >>> recalibrator = Recalibrator(resolution=10, buckets=10, seed=1)
    >>> record = play(recalibrator, "informed", "bernoulli", 300)
    >>> len(record), float(record.running_c1[-1]) == record.c1
    (300, True)
    """

    raw: Reals
    forecast: Reals
    mean: Reals
    outcomes: Bits
    pseudo_c1: float
    pseudo_c2: float
    certificate: Certificate

    def __len__(self) -> int:
        return len(self.raw)

    @functools.cached_property
    def running_c1(self) -> Reals:
        """C1 of the draws after each round."""
        before, after, _ = self._gaps
        return self._averaged(np.abs(after) - np.abs(before))

    @functools.cached_property
    def running_c2(self) -> Reals:
        """C2 of the draws after each round."""
        before, after, count = self._gaps
        return self._averaged(after**2 / count - before**2 / np.maximum(count - 1.0, 1.0))

    def running_loss(self, series: str = "forecast", loss: LossLike = "squared") -> Reals:
        """Return the mean loss after each round, of ``"forecast"``, ``"mean"`` or ``"raw"``."""
        chosen = getattr(self, check.choice(series, "series", SERIES))
        return self._averaged(get_loss(loss)(self.outcomes, chosen))

    @property
    def c1(self) -> float:
        """C1 of the draws at the end."""
        return float(self.running_c1[-1])

    @property
    def c2(self) -> float:
        """C2 of the draws at the end."""
        return float(self.running_c2[-1])

    @property
    def loss(self) -> float:
        """Mean squared loss of the draws."""
        return float(self.running_loss("forecast")[-1])

    @property
    def mean_loss(self) -> float:
        """Mean squared loss of the means."""
        return float(self.running_loss("mean")[-1])

    @property
    def raw_loss(self) -> float:
        """Mean squared loss of the raw forecasts."""
        return float(self.running_loss("raw")[-1])

    def __str__(self) -> str:
        return (
            f"{len(self)} rounds: C1 {self.c1:.5f}, C2 {self.c2:.6f}, squared loss "
            f"{self.loss:.5f}, raw {self.raw_loss:.5f}"
        )

    @functools.cached_property
    def _gaps(self) -> Reals:
        """Three rows: the gap of each round's value before it, after it, and the visits so far."""
        order = np.argsort(self.forecast, kind="stable")
        value, y = self.forecast[order], self.outcomes[order]
        first = np.searchsorted(value, value)
        ones = np.concatenate([[0.0], np.cumsum(y)])
        before, count = ones[:-1] - ones[first], np.arange(len(y)) - first + 1.0
        gaps = np.stack([before - (count - 1.0) * value, before + y - count * value, count])
        return gaps[:, np.argsort(order)]

    def _averaged(self, added: Reals) -> Reals:
        return np.cumsum(added) / np.arange(1, len(added) + 1)


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
    """Play that many rounds of online recalibration.

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
    drawn = recalibrator.calibrator.lattice.values[book.drawn]
    errors = float(results[0, 2]), float(results[0, 3])
    told = *errors, recalibrator.certificate()
    return Record(book.raw, drawn, book.mean, book.outcomes, *told)


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
    keys, state = [key_for(seed, player) for player in ("nature", "forecaster")], forecaster.start()
    book = Book(recalibrator.calibrator.lattice, total)
    history = History(book)
    for t in range(total):
        nature, own = Coins(keys[0], t), Coins(keys[1], t)
        # 1. Nature reveals features.
        features = adversary.reveal(nature)
        # 2. The forecaster makes a raw forecast.
        raw = check.probability(forecaster.forecast(state, features, own))
        # 3. The recalibrator announces a mixture.  The ticket, which knows the draw, stays here.
        ticket = recalibrator.forecast(raw)
        announcement = Announcement(features, raw, ticket.mixture, history)
        # 4. Nature chooses the outcome.
        outcome = check.outcome(adversary.choose(announcement, nature))
        # 5. Both learn, and the draw becomes history.
        state = forecaster.learn(state, features, outcome)
        recalibrator.observe(ticket, outcome)
        book.add(raw, announcement.mixture, ticket.index, outcome)
        if t + 1 in rows:
            games.measure(*views(book.board), rows[t + 1].data, 0)
        if progress is not None and ((t + 1) % often == 0 or t + 1 == total):
            progress(t + 1, total)
    return book, results


BuiltIn: TypeAlias = tuple[BuiltInForecaster, BuiltInAdversary]
OneGame: TypeAlias = Callable[[int], Reals]
"""Takes a seed, returns a row of measures for each mark."""


@dataclass(frozen=True, eq=False)
class Games:
    """Errors and losses of many games, one row for each seed, one column for each mark.

    Attributes
    ----------
    seeds, checkpoints
        What rows and columns stand for.
    c1, c2
        Calibration errors of the draws.
    pseudo_c1, pseudo_c2
        Calibration errors of the announced mixtures.
    loss, mean_loss, raw_loss
        Mean squared losses of draws, means and raw forecasts.
    """

    seeds: tuple[int, ...]
    checkpoints: tuple[int, ...]
    c1: Reals
    c2: Reals
    pseudo_c1: Reals
    pseudo_c2: Reals
    loss: Reals
    mean_loss: Reals
    raw_loss: Reals

    def __len__(self) -> int:
        return len(self.seeds)


def play_many(
    method: str | Calibrator = "foster_hart",
    forecaster: Forecaster | str = "constant",
    adversary: Adversary | str = "threshold",
    *,
    rounds: int,
    seeds: int | Iterable[int],
    checkpoints: Sequence[int] | None = None,
    buckets: int = 1,
    prior: int = 1,
    threads: int | None = None,
    progress: Progress | None = None,
    **parameters: Any,
) -> Games:
    """Play one game for each seed, compiled and in parallel where that is possible.

    The game of seed ``s`` is, bit for bit, ``play(Recalibrator(method, ..., seed=s),
    forecaster, adversary, rounds, seed=s)``.

    Parameters
    ----------
    method, buckets, prior, **parameters
        As for :class:`calibrant.Recalibrator`; by default a calibrator alone.
    forecaster, adversary
        As for :func:`play`.  Games between ready-made ones other than ``linear`` and
        ``logistic`` are compiled where Numba is installed; all others are played one
        by one.
    rounds
        Rounds of each game.
    seeds
        The seeds, or how many: 0, 1, ...
    checkpoints
        After which rounds to measure, increasing; at the end by default.
    threads
        How many games to play at a time; by default one for each processor.
    progress
        Called after each game with the games played and the games there are.

    Examples
    --------
    >>> games = play_many("foster_hart", adversary="bernoulli", rounds=400, seeds=5)
    >>> games.c2.shape, bool((games.c2 < 0.05).all())
    ((5, 1), True)
    """
    marks, numbers = _marks(rounds, checkpoints), _seeds(seeds)
    parties = get_forecaster(forecaster), get_adversary(adversary)
    made = functools.partial(Recalibrator, method, buckets=buckets, prior=prior, **parameters)
    workers = check.whole(threads, "threads", low=1) if threads is not None else os.cpu_count()
    one_game, fast = _one_game(made, *parties, marks, len(numbers))
    with ThreadPoolExecutor(workers if fast else 1) as pool:
        rows = []
        for row in pool.map(one_game, numbers):
            rows.append(row)
            if progress is not None:
                progress(len(rows), len(numbers))
    table = np.stack(rows).reshape(len(numbers), len(marks), games.COLUMNS)
    return Games(numbers, marks, *np.ascontiguousarray(table.transpose(2, 0, 1)))


def _one_game(
    made: Callable[..., Recalibrator],
    forecaster: Forecaster,
    adversary: Adversary,
    marks: tuple[int, ...],
    many: int,
) -> tuple[OneGame, bool]:
    """Return what plays the game of a seed, and whether it is compiled."""
    if not (isinstance(forecaster, BuiltInForecaster) and isinstance(adversary, BuiltInAdversary)):
        return lambda seed: play_to(marks, made(seed=seed), forecaster, adversary, seed)[1], False
    # One answer in plain Python, for the errors that a kernel cannot raise.
    forecaster.forecast(None, adversary.reveal(Coins(0, 0)), Coins(0, 0))
    model = made(seed=0)
    rule = model.calibrator
    # About how many times as long as a two-point rule's a plain round takes.
    effort = rule.lattice.cells**2 if rule.kernels.full_support else 1
    fast = available() and marks[-1] * many * effort > SHORT
    return _kernel_game(model, (forecaster, adversary), marks, fast), fast


def _kernel_game(model: Recalibrator, pair: BuiltIn, marks: tuple[int, ...], fast: bool) -> OneGame:
    (forecaster, adversary), rule = pair, model.calibrator.kernels
    game = games.compiled_game_of(rule) if fast else games.game_of(rule)

    def one_game(seed: int) -> Reals:
        flat, board = _fresh_state(model, seed), new_board(model.calibrator.lattice)
        adversary.sit_down(board, Coins(key_for(seed, "nature"), 0))
        forecaster.sit_down(board, Coins(key_for(seed, "forecaster"), 0))
        results = np.empty(len(marks) * games.COLUMNS)
        if fast:
            both = flat, flat.view(np.float64), board, board.view(np.float64)
            game(*both, np.array(marks, np.int64), results)
        else:
            game(*views(flat), *views(board), marks, results.data)
        return results

    return one_game


def _fresh_state(model: Recalibrator, seed: int) -> Words:
    """Return the state in which a recalibrator like ``model`` with that seed starts."""
    return model.spec.arena(secret_of(seed, None)).flat()


def _marks(rounds: Any, checkpoints: Sequence[int] | None) -> tuple[int, ...]:
    last = check.whole(rounds, "rounds", low=1)
    given = [last] if checkpoints is None else checkpoints
    marks = tuple(check.whole(mark, "checkpoints", low=1, high=last) for mark in given)
    if not marks or any(a >= b for a, b in itertools.pairwise(marks)):
        raise InvalidInput(f"checkpoints must be increasing and not empty, got {checkpoints!r}")
    return marks


def _seeds(seeds: int | Iterable[int]) -> tuple[int, ...]:
    given = seeds if isinstance(seeds, Iterable) else range(check.whole(seeds, "seeds", low=1))
    numbers = tuple(check.whole(seed, "seeds", low=-(1 << 127), high=1 << 127) for seed in given)
    if not numbers:
        raise InvalidInput("seeds must be at least one, got none")
    return numbers
