"""Many games at once: the same players, one game for each seed."""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from calibrant.calibrators import Calibrator
from calibrant.core import check
from calibrant.core.arrays import Reals, Words
from calibrant.errors import InvalidInput
from calibrant.kernels import games
from calibrant.kernels.compile import available
from calibrant.recalibrate import Recalibrator
from calibrant.recalibrate.secret import block_key, secret_of
from calibrant.simulate.adversary import Adversary, BuiltInAdversary, get_adversary
from calibrant.simulate.board import new_board, views
from calibrant.simulate.coins import Coins, key_for
from calibrant.simulate.forecaster import BuiltInForecaster, Forecaster, get_forecaster
from calibrant.simulate.play import Progress, play_to

SHORT = 20_000
"""Rounds in all up to which the compiler is not started: compiling would take longer.  A round
of an all-pairs rule counts for as many as the rule has pairs."""

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
        rows = _followed(pool.map(one_game, numbers), len(numbers), progress)
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
    fast = available() and marks[-1] * many * _effort(model.calibrator) > SHORT
    return _kernel_game(model, forecaster, adversary, marks, fast), fast


def _effort(rule: Calibrator) -> int:
    """Return about how many times as long as a two-point rule's a plain round takes."""
    return rule.lattice.cells**2 if rule.kernels.full_support else 1


def _kernel_game(
    model: Recalibrator,
    forecaster: BuiltInForecaster,
    adversary: BuiltInAdversary,
    marks: tuple[int, ...],
    fast: bool,
) -> OneGame:
    rule = model.calibrator.kernels
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
    secret, buckets = secret_of(seed, None), range(model.buckets)
    centres = [Fraction(2 * j + 1, 2 * model.buckets) for j in buckets]
    keys = [block_key(secret, j) for j in buckets]
    return model.calibrator.flat(model.buckets, prior=model.prior, centres=centres, keys=keys)


def _followed(rows: Iterable[Reals], total: int, progress: Progress | None) -> list[Reals]:
    done: list[Reals] = []
    for row in rows:
        done.append(row)
        if progress is not None:
            progress(len(done), total)
    return done


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
        raise InvalidInput("seeds must be one at least, got none")
    return numbers
