"""The default: experts first, calibrate last."""

from __future__ import annotations

import functools
from typing import Any, ClassVar, Final, Self

import numpy as np

from calibrant._renamed import former
from calibrant.bounds.horizon import natural_grid
from calibrant.calibrators import Calibrator
from calibrant.calibrators.refining import NESTED, Refining
from calibrant.core import check
from calibrant.core.ticket import Ticket
from calibrant.errors import InvalidInput
from calibrant.losses import LossLike, get_loss, registered_name, require_proper
from calibrant.recalibrate.chain import Chain
from calibrant.recalibrate.context import Known
from calibrant.recalibrate.delivery import Pending
from calibrant.recalibrate.late import Played
from calibrant.recalibrate.promise import FAILURE
from calibrant.recalibrate.recalibrator import Recalibrator
from calibrant.recalibrate.run import Run
from calibrant.recalibrate.secret import secret_of
from calibrant.recalibrate.sizing import rule_with, sized_chain
from calibrant.recalibrate.spec import Spec, made_rule, shared_spec
from calibrant.registry import calibrators
from calibrant.transforms import (
    Context,
    ExpertMixture,
    HatMeans,
    History,
    Identity,
    OnlinePlatt,
    Transform,
)

EXPERTS: Final[tuple[Transform, ...]] = (
    Identity(),
    History(),
    OnlinePlatt(gamma=0.3, rho=10.0, clip=1e-3, memory=500.0),
    OnlinePlatt(gamma=0.3, rho=3.0, clip=1e-3, memory=100.0),
    HatMeans(cells=20),
    HatMeans(cells=20, memory=50.0),
    HatMeans(cells=1, scale="logit"),
    HatMeans(cells=1, scale="logit", memory=100.0),
)
"""A line on the log-odds that looks back, two that forget, and corrections of any shape."""
START: Final = (5.5, 1.0, 1.0, 1.0, 1.2, 1.5, 1.0, 1.0)
"""Much of the first weights is the raw forecast's: it is right until something speaks against."""
RATES: Final = {"squared": 1.7}
"""How fast weights follow: less than the bound allows, for short streams are mostly chance."""
SHARES: Final = {"squared": 6e-4, "log": 3e-5}
"""Less under the log loss, where each round pays for what it gives back in full."""

forecast, sample_one, learn_one = (
    Recalibrator.forecast,
    Recalibrator.sample_one,
    Recalibrator.learn_one,
)
"""Found here without a look at the class: these calls are the shortest there are."""


class Calibrant(Recalibrator):
    """Follow the best of several ways to correct a forecast, and calibrate the result.

    The raw forecast goes to a mixture of experts (itself among them), which follows whichever
    does best at present; what the mixture says is the input of Algorithm 1, which comes last
    because mixing destroys calibration and calibrating restores it.

    Parameters
    ----------
    experts
        The transforms that are mixed, or one transform that is taken as it is.
    share
        Which part of the experts' weights returns to their first weights in each round; 6e-4 by
        default, 3e-5 under the log loss.
    context
        Whether one more expert reads the ``context`` passed to :meth:`forecast`: True, or the
        number of hash slots, a power of two; 1,024 by default.
    loss
        ``"squared"`` or ``"log"``: under which experts are compared and the certificate reads.
    raw_safe
        A budget: at no time may the announced forecasts have lost more than this beyond the raw
        ones, on average over the outcomes learned.  A draw whose worst case does not fit any
        more falls back to the raw forecast, which is announced instead.  None for no budget.
    method, resolution, grid, buckets, prior, **parameters
        The last stage, as in :class:`Recalibrator`; its rule must learn from the draw alone.
        By default one bucket with the rule ``"refining"``, which is pulled towards what the
        experts say for as long as hedging does not beat them, on a grid that is fine at both
        ends and follows the stream.  The grids ``"midpoints"``, ``"logit"`` and ``"arcsine"`` lack
        points of their coarser versions, so with them it is ``"anchored"``, the default of earlier
        versions.  The paper's own rule, ``method="foster_hart"``, needs more buckets and a prior.
    seed, key, secret, max_open
        As in :class:`Recalibrator`.

    Notes
    -----
    Three theorems make a chain, and :meth:`certificate` shows it: the drawn forecasts are
    calibrated whatever the outcomes; their loss exceeds the mixture's by little; the mixture's
    exceeds that of any expert, the raw forecast included, by little.

    A late outcome is learned when it comes: by the last stage for the draw that was announced, by
    the mixture for what its experts said then (kept to 15 bits), as one of 1 + d if d others wait
    at a time, and by the experts for what they would say now, with 1/sqrt(1 + d) of the step.  They
    take less where errors show that outcomes that wait together are alike, since these carry
    little more information than one.  The number d is estimated from the stream so far, and does
    not depend on the outcome.  A correction is made in the last stage; experts do not unlearn.

    Examples
    --------
    >>> model = Calibrant(seed=7)
    >>> ticket = model.forecast(0.83)
    >>> 0.0 <= ticket.value <= 1.0, round(ticket.mixed, 6)
    (True, 0.83)
    >>> _ = model.observe(ticket, 1)
    >>> model.rounds
    1
    """

    kind: ClassVar = "calibrant"

    __slots__ = ()

    def __init__(
        self,
        experts: Transform | tuple[Transform, ...] | None = None,
        *,
        share: float | None = None,
        context: bool | int = False,
        loss: str = "squared",
        raw_safe: float | None = None,
        method: str | Calibrator | None = None,
        buckets: int = 1,
        prior: int = 1,
        seed: int | None = None,
        key: str | int | None = None,
        secret: bytes | None = None,
        max_open: int = 1_000_000,
        **parameters: Any,
    ) -> None:
        check.choice(loss, "loss", ("squared", "log"))
        method = _last_stage(parameters) if method is None else method
        if isinstance(method, str) and calibrators.get(method)().grid == Calibrator.grid:
            # Under the log loss a draw of 0 or 1 may cost everything.
            parameters = {"grid": natural_grid(get_loss(loss))} | parameters
        rule = made_rule(method, parameters)
        transform = _transform(experts, share, loss, context, _splits(rule))
        if rule.weighted or rule.kernels.full_support:
            raise InvalidInput(f"method must be one that learns from its draws alone, got {rule!r}")
        spec = Spec(rule, buckets, prior, loss, transform, _budget(raw_safe))
        self._begin(shared_spec(spec), secret_of(seed, key, secret), max_open)

    @classmethod
    def from_epsilon(
        cls, epsilon: float, loss: LossLike = "squared", method: str = "anchored", **options: Any
    ) -> Self:
        """Choose a resolution with which the regret to raw forecasts tends to at most ``epsilon``.

        What the options say is kept, and refused if the target cannot be met with it.

        >>> Calibrant.from_epsilon(0.001, seed=1).calibrator.resolution
        22
        """
        name = registered_name(require_proper(loss)) or str(loss)
        splits = _splits(rule_with(method, options))
        told = options.get("share"), name, options.get("context", False), splits
        transform = _transform(options.get("experts"), *told)
        return cls(method=method, **sized_chain(epsilon, name, method, transform, options))

    # ----------------------------------------------------------- what may be told besides

    def forecast(
        self, raw: float, *, id: str | None = None, time: check.When = None, context: Known = None
    ) -> Ticket:
        """Announce a calibrated forecast for a raw one, and keep a ticket for its outcome.

        Parameters
        ----------
        raw, id, time
            As in :meth:`calibrant.Recalibrator.forecast`.
        context
            What is known besides, numbers and strings by name, where an expert reads it.
        """
        if self._reads is context:
            # What is not passed on costs nothing.
            if id is None and time is None:
                return forecast(self, raw)
            return forecast(self, raw, id=id, time=time)
        value, name, when = check.probability(raw), *self._named(id, time)
        told = self._features(context)
        with self._gate:
            self._rows.tell(told)
            return self._open_ticket(value, name, when)

    def _take_back(self, number: int, most: int) -> None:
        self._withdraw(number)

    def sample_one(self, raw: float, *, context: Known = None) -> float:
        """Return the draw that the next round with this raw forecast would announce.

        Changes nothing; :meth:`learn_one` with the same raw forecast and context makes it a round.
        """
        if self._reads is context:
            return sample_one(self, raw)
        if self._timed:
            raise self._no_time("sample_one, which takes none")
        return self._sample_with(check.probability(raw), context)

    predict_one = sample_one
    """An older name for it."""

    def predict_mean_one(self, raw: float, *, context: Known = None) -> float:
        """Return the mean that the next round with this raw forecast would announce.

        Changes nothing, and notes nothing; the mean has no guarantee of its own.
        """
        told = None if self._reads is context else self._features(context)
        return self._mean_one(check.probability(raw), told)

    def learn_one(self, raw: float, outcome: int, *, context: Known = None) -> None:
        """Make a round of the last :meth:`sample_one` with this raw forecast and context.

        Without one, the round is drawn now.  Refused if a forecast in the same bucket
        came between: the announced draw would no longer be this round's.
        """
        if self._reads is context:
            learn_one(self, raw, outcome)
            return
        if self._timed:
            raise self._no_time("learn_one, which takes none")
        self._learn_with(check.probability(raw), check.outcome(outcome), context)

    def replay(
        self,
        raw: Any,
        outcomes: Any,
        *,
        context: Known = None,
        available: Any = None,
        time: Any = None,
        carry: Pending | None = None,
    ) -> Run:
        """Play a whole batch of rounds, exactly as the calls one by one would.

        Parameters
        ----------
        raw, outcomes, available, time, carry
            As in :meth:`calibrant.Recalibrator.replay`.
        context
            Columns of features by name, as :meth:`forecast` takes them one by one.
        """
        return self._replay(raw, outcomes, available, time, carry, context)

    def play(
        self, kind: Any, id: Any, x: Any, time: Any = None, *, context: Known = None
    ) -> Played:
        """Play a log of forecasts and outcomes in its order, as the calls one by one would.

        Parameters
        ----------
        kind, id, x, time
            As in :meth:`calibrant.Recalibrator.play`.
        context
            Columns of features by name, a row for each event; those of outcomes are not looked at.
        """
        return self._play_log(kind, id, x, time, context)

    def forecast_many(
        self, raw: Any, *, id: Any = None, time: Any = None, context: Known = None
    ) -> Played:
        """Announce many forecasts, one after the other, and keep a ticket for each."""
        values = check.probabilities(raw)
        return self._play_log(np.zeros(len(values), np.int64), id, values, time, context)

    # ------------------------------------------------------------------ facts

    @property
    def transform(self) -> Transform:
        """The transform that raw forecasts go through first."""
        assert self._spec.transform is not None
        return self._spec.transform

    front = former("Calibrant.front", "transform")

    @property
    def raw_safe(self) -> float | None:
        """The budget of losses beyond the raw forecast's, on average; None for none."""
        return self._spec.raw_safe

    def certificate(self, failure: float = FAILURE) -> Chain:
        """Return what was measured so far, and the chain of theorems beside it."""
        made = super().certificate(failure)
        assert isinstance(made, Chain)
        return made

    def __repr__(self) -> str:
        told = super().__repr__().removeprefix("Recalibrator(")
        return f"Calibrant({self.transform!r}, {told}"


def _last_stage(parameters: dict[str, Any]) -> str:
    """Return the rule that comes last if none is named: the grid at hand must suit it."""
    return "refining" if parameters.get("grid", "graded") in NESTED else "anchored"


def _splits(rule: Calibrator) -> bool:
    """Say whether the last stage has a first grid to go back to."""
    return isinstance(rule, Refining) and rule.doublings > 0


def _budget(raw_safe: Any) -> float | None:
    if raw_safe is None:
        return None
    return check.real(raw_safe, "raw_safe", low=0.0, rule="a finite number of at least 0")


def _transform(
    experts: Any, share: float | None, loss: str, context: Any = False, splits: bool = False
) -> Transform:
    """Return what comes first; where cells of the last stage split, it watches for swaps."""
    reader = _reader(context)
    if isinstance(experts, Transform):
        if reader:
            told = "experts must be several where one reads context"
            raise InvalidInput(f"{told}, got {experts!r}")
        return experts
    share = SHARES.get(loss, SHARES["squared"]) if share is None else share
    if experts is None:
        made = _usual if type(share) is float else _usual.__wrapped__
        return made(reader, share, loss, splits)
    several = tuple(experts) + reader if reader else experts
    return ExpertMixture(several, share=share, loss=loss, alike=True, swaps=splits)


@functools.lru_cache(32)
def _usual(reader: tuple[Transform, ...], share: float, loss: str, splits: bool) -> Transform:
    """Return the experts that are taken unless others are asked for: the same object each time."""
    start = START + START[1:2] * len(reader)
    experts = EXPERTS + reader
    rate = RATES.get(loss)
    return ExpertMixture(experts, share, start, rate, loss=loss, alike=True, swaps=splits)


def _reader(context: Any) -> tuple[Transform, ...]:
    """Return the expert that reads context, if there is to be one."""
    if context is False:
        return ()
    return (Context() if context is True else Context(places=context),)
