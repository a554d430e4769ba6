"""A mixture of experts, each of them a transform; the raw forecast itself is one."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from calibrant.core import check
from calibrant.core.limits import refuse_large
from calibrant.errors import InvalidInput, InvalidType
from calibrant.kernels import bits, crowd, swaps
from calibrant.kernels.layout import MIXED_LOSS, RAW_LOSS, REAL
from calibrant.kernels.portable import log
from calibrant.kernels.transforms import hats, identity, mixture, parts
from calibrant.kernels.transforms.kernel import Kernel
from calibrant.registry import transforms
from calibrant.transforms.base import Ratio, State, Transform, shifted
from calibrant.transforms.buckets import BucketMeans, HatMeans, constants_of_bank, fresh_bank
from calibrant.transforms.online_platt import OnlinePlatt


@transforms.add("identity")
@dataclass(frozen=True)
class Identity(Transform):
    """Announce the raw forecast as it is.

    Useful as an expert in a mixture, which then never falls far behind the raw forecasts.

    Notes
    -----
    No promise of its own.

    Examples
    --------
    >>> Identity().online().predict_one(0.3)
    0.3
    """

    kernel = identity.KERNEL
    reference = "none"
    guarantee = "none"
    assumption = "none"
    cost = "O(1) a round, no memory"

    def fresh(self) -> State:
        """Return no words."""
        return []


EXPERTS: Final[tuple[Transform, ...]] = (
    Identity(),
    OnlinePlatt(),
    BucketMeans(prior=1.0),
    BucketMeans(memory=300.0, prior=1.0),
    BucketMeans(memory=50.0, prior=1.0),
)
WEIGHT: Final = (0.0, 1.0 + 2.0**-50)
"""Limits of weights: where an expert has all of it, rounding may take it above 1."""
FORMS: Final = {
    ("squared", "substitution"): (mixture.substitution, 2.0),
    ("squared", "mean"): (mixture.mean, 0.5),
    ("log", "mean"): (mixture.bayes, 1.0),
}
"""By loss and form: the functions, and the largest eta for which the bound holds."""


@dataclass(frozen=True)
class Standing:
    """How the experts of a mixture stand.

    Attributes
    ----------
    weights
        The experts' weights, which add up to one.
    losses
        The experts' cumulative losses.
    loss
        The mixture's own cumulative loss.
    """

    weights: tuple[float, ...]
    losses: tuple[float, ...]
    loss: float


@transforms.add("mixture")
@dataclass(frozen=True)
class ExpertMixture(Transform):
    """Weigh several transforms by how well they did, and announce what their weights amount to.

    After each round an expert's weight is multiplied by exp(-eta loss), and a small share of
    all weights returns to the first weights, so that an expert that was bad for long can come back.

    Parameters
    ----------
    experts
        The transforms; with :class:`~calibrant.transforms.Identity` among them the mixture
        stays close to the raw forecast at least.
    share
        Which part of the weights is spread in each round, in proportion to the first weights.
    start
        The first weights, one for each expert; equal ones by default.
    eta
        The rate; by default the largest for which the bound holds.
    loss
        ``"squared"`` or ``"log"``.
    form
        ``"substitution"`` (squared loss: eta up to 2) or ``"mean"``, the weighted mean (squared
        loss: eta up to 1/2; log loss: eta is 1).
    alike
        Whether it is followed how much outcomes that wait together are alike.  Where they are,
        experts learn less of each.
    swaps
        Whether raw forecasts are watched for a swap of models.  After one a last stage whose cells
        split draws from its first grid for a while.

    Notes
    -----
    For every expert and every sequence of outcomes, the mixture's cumulative loss is at most the
    expert's plus [-ln w - (T - 1) ln(1 - share)] / eta, with w the expert's first weight, 1/K
    if all are equal; see :func:`calibrant.bounds.mixture`, also
    for comparison with a sequence of experts.  The weighted mean with a larger eta has
    no such bound.

    Neighbours among the experts that are bucket means with the same buckets share
    one loop; this changes nothing but the time it takes.

    References
    ----------
    Vovk (1990), "Aggregating strategies"; Herbster and Warmuth (1998), "Tracking the best
    expert"; Kivinen and Warmuth (1999), "Averaging expert predictions".

    Examples
    --------
    >>> transform = ExpertMixture((Identity(), BucketMeans()))
    >>> online = transform.online()
    >>> for _ in range(50):
    ...     online.learn_one(0.9, 0)
    >>> online.predict_one(0.9) < 0.001
    True
    >>> [round(loss, 2) for loss in transform.standing(online.words).losses]
    [40.5, 0.81]
    """

    reference = "Vovk 1990; Herbster and Warmuth 1998"
    guarantee = "loss <= every expert's + [-ln w - (T-1) ln(1-share)]/(eta T), w first weight"
    assumption = "none"
    cost = "that of the experts, and O(K) a round"

    experts: tuple[Transform, ...] = EXPERTS
    share: float = 1e-4
    start: tuple[float, ...] | None = None
    eta: float | None = None
    loss: str = "squared"
    form: str | None = None
    alike: bool = False
    swaps: bool = False

    def __post_init__(self) -> None:
        loss = check.choice(self.loss, "loss", ("squared", "log"))
        usual = "substitution" if loss == "squared" else "mean"
        options = tuple(form for known, form in FORMS if known == loss)
        form = usual if self.form is None else check.choice(self.form, "form", options)
        self._set(
            experts=_checked(self.experts),
            share=check.real(self.share, "share", low=0.0, high=0.5, rule="a number in [0, 0.5]"),
            start=_start(self.start, len(_checked(self.experts))),
            eta=_rate(self.eta, loss, FORMS[loss, form][1]),
            form=form,
            alike=_flag(self.alike, "alike"),
            swaps=_flag(self.swaps, "swaps"),
        )

    @functools.cached_property
    def kernel(self) -> Kernel:
        """The functions of this very mixture."""
        told = self._form, self.alike, self.swaps
        return mixture.make_mixture(tuple(_part(g) for g in self._groups), *told)

    @property
    def parameters(self) -> dict[str, Any]:
        """All parameters; the last two only if true, for descriptions were without them once."""
        told = super().parameters
        without = {name for name in ("alike", "swaps") if not getattr(self, name)}
        return {name: told[name] for name in told if name not in without}

    @property
    def notes(self) -> int:
        """The experts' forecasts and what goes with them."""
        # Two words more, which nobody reads, keep others where they stand in states of old.
        return 3 * bits.lanes(len(self.experts)) + (0 if self.alike else 2)

    def fresh(self) -> State:
        """Return equal weights, and every expert's fresh state."""
        count, groups = len(self.experts), self._groups
        states: list[State] = []
        for group in groups:
            states.append(_fresh(group))
            refuse_large(sum(map(len, states)))
        eta = self.eta or 1.0
        third = swaps.FRESH if self.swaps else 0.5 / eta
        head = [1.0 - self.share, -eta, third, 0.0]
        due = [1.0] * (count + 1) if self.loss == "log" else []
        first = self.start or ()
        shares = [self.share * weight for weight in first]
        shared: State = [*first, *[0.0] * count, *shares, *due, *self._sums]
        starts = [start for start, _ in self._placed()]
        body = [word for state in states for word in state]
        return [*head, self._own + len(body), *starts, *shared, *body, *[0.0] * self.notes]

    def note_positions(self) -> list[int]:
        """Return the mixture's own notes and those of its experts."""
        found = super().note_positions()
        for start, group in self._placed():
            found += [start + position for position in group[0].note_positions()]
        return found

    def constants(self) -> list[int]:
        """Return the mixture's own parameters and positions, and its experts' constants."""
        count, weights = len(self.experts), mixture.PARTS + len(self._groups)
        own = mixture.WATCH if self.swaps else mixture.LOSS
        found = [*range(own), *range(mixture.NOTES, weights)]
        found += range(weights + 2 * count, weights + 3 * count)
        for start, group in self._placed():
            members = tuple(e for e in group if isinstance(e, BucketMeans))
            inner = constants_of_bank(members) if members else group[0].constants()
            found += [start + place for place in inner]
        return found

    def limits(self) -> dict[int, tuple[float, float]]:
        """Return the limits of weights and losses, and those of the experts."""
        count, at = len(self.experts), mixture.PARTS + len(self._groups)
        losses = [mixture.LOSS, *range(at + count, at + 2 * count)]
        found: dict[int, tuple[float, float]] = dict.fromkeys(losses, (REAL[0], math.inf))
        own = self._own - len(self._sums)
        found |= dict.fromkeys([*range(at, at + count), *range(at + 3 * count, own)], WEIGHT)
        if self.alike:
            found[own + crowd.SQUARES] = (0.0, REAL[1])
        if self.swaps:
            found[mixture.WATCH] = (0, swaps.MOST)
        for start, group in self._placed():
            found |= shifted(group[0], start)[1]
        return found

    def ratios(self) -> list[Ratio]:
        """Return the words of the experts that follow from two others."""
        return [
            (start + place, start + above, start + below, plus)
            for start, group in self._placed()
            for place, above, below, plus in group[0].ratios()
        ]

    def inverses(self) -> list[tuple[int, int]]:
        """Return the inverses that experts keep, and their sums."""
        placed = [(start, group[0].inverses()) for start, group in self._placed()]
        return [(start + a, start + b) for start, found in placed for a, b in found]

    def twins(self) -> dict[int, int]:
        """Return the words of experts that differ from an earlier one in their memory alone.

        They are the same until there is something to forget.
        """
        found: dict[int, int] = {}
        first: dict[Any, int] = {}
        for start, (expert, *_) in self._placed():
            if isinstance(expert, HatMeans):
                known = first.setdefault(expert.knots, start)
                if known != start:
                    found |= {start + k: known + k for k in range(hats.KNOTS, expert.size)}
        return found

    def sums(self) -> dict[int, int]:
        """Return the losses of the mixture and of the raw forecast, which a row sums up too."""
        losses = mixture.PARTS + len(self._groups) + len(self.experts)
        found = {mixture.LOSS: MIXED_LOSS}
        if Identity() in self.experts:
            found[losses + self.experts.index(Identity())] = RAW_LOSS
        return found

    def apart(self) -> tuple[list[tuple[int, int]], dict[int, int]]:
        """Return the knots of experts, and where the parts and the notes start without these."""
        runs, starts, gone = list[tuple[int, int]](), dict[int, int](), 0
        for place, (start, (expert, *_)) in enumerate(self._placed(), mixture.PARTS):
            starts[place] = start - gone
            if isinstance(expert, HatMeans):
                runs.append((start + hats.KNOTS, start + expert.size))
                gone += expert.size - hats.KNOTS - 1
        return runs, starts | {mixture.NOTES: self.size - self.notes - gone}

    def standing(self, words: Sequence[Any]) -> Standing:
        """Return weights and losses from the words of a state."""
        count, at = len(self.experts), mixture.PARTS + len(self._groups)
        weights = tuple(words[at : at + count])
        losses = [*words[at + count : at + 2 * count], words[mixture.LOSS]]
        if self.loss == "log":
            due = words[at + 3 * count : at + 4 * count + 1]
            losses = [loss - log(left) for loss, left in zip(losses, due, strict=True)]
        return Standing(weights, tuple(losses[:-1]), losses[-1])

    def _placed(self) -> Iterator[tuple[int, tuple[Transform, ...]]]:
        """Yield the groups, each with where its words start."""
        start = self._own
        for group in self._groups:
            yield start, group
            start += len(_fresh(group))

    @property
    def _own(self) -> int:
        """Words before the experts' states."""
        sizes = len(self._groups), len(self.experts), self.loss == "log"
        return mixture.sums_at(*sizes) + len(self._sums)

    @property
    def _sums(self) -> tuple[float, ...]:
        """The first words by which it is followed how much outcomes are alike."""
        return crowd.FIRST if self.alike else ()

    @property
    def _form(self) -> mixture.Forms:
        return FORMS[self.loss, self.form or ""][0]

    @functools.cached_property
    def _groups(self) -> list[tuple[Transform, ...]]:
        """The experts, with neighbours that share their buckets together."""
        numbered = enumerate(self.experts)
        return [tuple(e for _, e in group) for _, group in groupby(numbered, _shared)]


def _shared(numbered: tuple[int, Transform]) -> tuple[str, int]:
    number, expert = numbered
    if isinstance(expert, BucketMeans):
        return "buckets", expert.buckets
    return "alone", number


def _part(group: tuple[Transform, ...]) -> parts.Part:
    return parts.single(group[0].kernel) if len(group) == 1 else parts.bank(len(group))


def _fresh(group: tuple[Transform, ...]) -> State:
    members = tuple(e for e in group if isinstance(e, BucketMeans))
    return fresh_bank(members) if members else group[0].fresh()


def _checked(experts: Any) -> tuple[Transform, ...]:
    listed = tuple(experts) if isinstance(experts, (list, tuple)) else (None,)
    if not listed:
        raise InvalidInput("experts must be at least one transform, got none")
    for expert in listed:
        if not isinstance(expert, Transform):
            raise InvalidType(f"experts must be a tuple of transforms, got {experts!r}")
    reading = sum(expert.kernel.slots > 0 for expert in listed)
    if reading > 1:
        raise InvalidInput(f"experts must have at most one that reads context, got {reading}")
    return listed


def _start(start: Any, count: int) -> tuple[float, ...]:
    if start is None:
        return (1.0 / count,) * count
    listed = tuple(start) if isinstance(start, (list, tuple)) else ()
    if len(listed) != count:
        raise InvalidInput(f"start must be a weight for each of {count} experts, got {start!r}")
    weights = [check.real(w, "start", low=1e-9, rule="weights above 0") for w in listed]
    total = math.fsum(weights)
    return tuple(weight / total for weight in weights)


def _flag(value: Any, name: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidType(f"{name} must be True or False, got {value!r}")
    return value


def _rate(eta: float | None, loss: str, most: float) -> float:
    if eta is None:
        return most
    rule = f"a number above 0 and at most {most}" if loss == "squared" else "1 for the log loss"
    return check.real(eta, "eta", low=1e-12 if loss == "squared" else 1.0, high=most, rule=rule)
