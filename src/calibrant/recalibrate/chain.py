"""The certificate of a chain: experts, their mixture, and the calibrator that comes last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from calibrant import bounds
from calibrant._renamed import former
from calibrant.bounds.game import PATHWISE
from calibrant.kernels.crowd import GUESS
from calibrant.recalibrate.certificate import Certificate
from calibrant.transforms import ExpertMixture, Identity, Transform

NEAR: Final = 1e-9
"""By how much two sums of the same losses differ at most, a round."""
FINE: Final = 4e-5
"""The same where tickets kept what experts said, to 15 bits."""
REASON: Final = "outcomes came late or were corrected"


@dataclass(frozen=True)
class Link:
    """The mixture beside one of its experts.

    Attributes
    ----------
    expert
        Which one.
    weight
        Its weight in the next round.
    loss, regret
        Its mean loss, and how much the mixture's exceeds it.
    bound
        What the theorem says about the regret; None where outcomes were late, or corrected: for
        one by one there is none, see docs/theory/late.md.
    """

    expert: str
    weight: float
    loss: float
    regret: float
    bound: float | None

    @property
    def holds(self) -> bool | None:
        """Whether the regret is below its bound, up to rounding; None without one."""
        return None if self.bound is None else self.regret <= self.bound + 1e-9

    def __str__(self) -> str:
        told = "" if self.bound is None else f" <= {self.bound:.5f}"
        return (
            f"{self.expert}: weight {self.weight:.3f}, loss {self.loss:.5f}, "
            f"regret {self.regret:+.5f}{told}"
        )


@dataclass(frozen=True)
class Budget:
    """What was spent of the losses that the raw forecast may be exceeded by.

    Attributes
    ----------
    epsilon
        What each outcome adds, which is the largest mean excess ever.
    rounds, fallbacks
        Outcomes learned, and in how many of these rounds the raw forecast was announced.
    excess, charged
        Sum of the announced forecasts' losses beyond the raw ones', and of the raw ones'.
    c2_bound
        What the theorem still says about C2 of the rounds in which the draw was announced, in
        this run; None where that is nothing.
    """

    epsilon: float
    rounds: int
    fallbacks: int
    excess: float
    charged: float
    c2_bound: float | None = None

    aside = former("Budget.aside", "fallbacks")

    @property
    def holds(self) -> bool:
        """Whether the mean excess is within the budget, up to rounding."""
        return self.excess <= self.epsilon * self.rounds + 1e-9

    def __str__(self) -> str:
        mean = self.excess / self.rounds if self.rounds else 0.0
        told = f"loss beyond raw {mean:+.5f} <= {self.epsilon:g} surely"
        if self.fallbacks:
            told += (
                f"; raw forecast announced in {self.fallbacks} of {self.rounds} rounds: "
                "the promise of calibration is withdrawn"
            )
        if self.fallbacks and self.c2_bound is not None:
            told += f" (C2 of the other {self.rounds - self.fallbacks}: <= {self.c2_bound:.5f})"
        return told


@dataclass(frozen=True)
class Chain(Certificate):
    """A record of all links, from the raw forecast to the draw.

    Attributes
    ----------
    mixed_loss, mixed_regret
        Mean loss of the mixed forecast, and how much the draw's exceeds it:
        the regret of the certificate's theorems.
    links
        The mixture beside each expert; empty where the transform is no mixture.  Under late
        outcomes these are losses of what experts said when the outcome came.
    budget
        What was spent of it, if there is one.  Once the raw forecast was announced in its name no
        theorem about calibration is quoted, ``c1`` and ``c2`` are of the other rounds, and
        losses of all.
    """

    mixed_loss: float
    mixed_regret: float
    links: tuple[Link, ...]
    budget: Budget | None = None

    @property
    def holds(self) -> bool | None:
        """Whether all that is promised of this run was kept.

        None if nothing is promised of the draws yet, whatever the mixture kept.
        """
        measured = {"C1": self.c1, "C2": self.c2, "regret": self.mixed_regret}
        checks = self.compared(measured) + ([] if self.budget is None else [self.budget.holds])
        links = [each.holds for each in self.links if each.holds is not None]
        return all([*checks, *links]) if checks else None

    def promised(self, quantity: str) -> float | None:
        """Return the bound on what was measured in this run, regret to the raw forecast included.

        None where a bound would say nothing.
        """
        found = super().promised(quantity)
        if quantity != "regret":
            return found
        if self.budget is not None:
            return self.budget.epsilon
        raw = [each.bound for each in self.links if each.expert == "identity"]
        own = [bound for bound in raw if bound is not None]
        total = None if found is None or not own else found + min(own)
        return total if total is not None and total < self.most_regret else None

    middle_loss = former("Chain.middle_loss", "mixed_loss")
    middle_regret = former("Chain.middle_regret", "mixed_regret")

    @property
    def raw_bound(self) -> float | None:
        """Bound on the regret to the raw forecast: that to the mixture, and the mixture's own.

        With a budget it is no larger than that, whatever happens.
        """
        if self.budget is not None:
            return self.budget.epsilon
        last = self.bound("regret")
        raw = [each.bound for each in self.links if each.expert == "identity"]
        own = [bound for bound in raw if bound is not None]
        return None if last is None or not own else last + min(own)

    def details(self) -> str:
        """Return all that is known, link by link: more than ``str`` tells."""
        lines = [
            super().details(),
            f"  {self.loss_name} loss of the mixed forecast {self.mixed_loss:.5f}, "
            f"regret to it {self.mixed_regret:+.5f}; beside each expert, {self._linked}:",
        ]
        return "\n".join([*lines, *(f"    {each}" for each in self.links)])

    @property
    def _linked(self) -> str:
        return f"without a bound, for {REASON}" if self._unbound else PATHWISE

    @property
    def _unbound(self) -> bool:
        return any(each.bound is None for each in self.links)

    def _measured(self) -> str:
        return f"{super()._measured()}, mixed {self.mixed_loss:.5f}"

    def _promise(self) -> str:
        if self.budget is None and self._unbound and self.promised("C2") is not None:
            return f"{super()._promise()}; the mixture's own loss has no bound, for {REASON}"
        if self.budget is None or self.rounds == 0:
            return super()._promise()
        if self.budget.fallbacks:
            return str(self.budget)
        return f"{self.budget}; {super()._promise()}"


def link(
    made: Certificate,
    transform: Transform,
    words: Sequence[Any],
    mixed: float,
    budget: Budget | None = None,
    missing: int = 0,
) -> Chain:
    """Add the links before the last one to a certificate.

    So many outcomes were ``missing`` at a time, if weights depended on that.
    """
    if budget is not None and budget.fallbacks:
        budget = replace(budget, c2_bound=made.promised("C2"))
        made = _withdrawn(made, budget)
    mean = mixed / made.rounds if made.rounds else 0.0
    regret = made.loss - mean if made.rounds else 0.0
    kept = {field.name: getattr(made, field.name) for field in fields(Certificate)}
    links: tuple[Link, ...] = ()
    if isinstance(transform, ExpertMixture):
        links = _links(transform, words, made, mixed, missing)
    return Chain(**kept, mixed_loss=mean, mixed_regret=regret, links=links, budget=budget)


def _withdrawn(made: Certificate, budget: Budget) -> Certificate:
    """Tell losses of all rounds, fallbacks included, and quote no theorem."""
    raw, more = budget.charged / budget.rounds, budget.excess / budget.rounds
    losses = replace(made, loss=raw + more, raw_loss=raw, regret=more)
    return replace(losses, rounds=budget.rounds, bounds=(), sure=())


def _links(
    transform: ExpertMixture, words: Sequence[Any], made: Certificate, mixed: float, missing: int
) -> tuple[Link, ...]:
    rounds = made.rounds
    if rounds == 0:
        return ()
    standing, first = transform.standing(words), transform.start or ()
    # Experts do not unlearn, so their theorem is about what was told before any correction.
    pairs = [(standing.loss, mixed)]
    for expert, loss in zip(transform.experts, standing.losses, strict=True):
        pairs += [(loss, made.raw_loss * rounds)] if isinstance(expert, Identity) else []
    off = (FINE if missing else NEAR) * rounds
    corrected = any(abs(told - stands) > off for told, stands in pairs)

    def bound(start: float) -> float | None:
        sizes = rounds, len(first), transform.share, transform.eta or 1.0
        if made.delay or corrected:
            return None
        # Weights moved less while those that never came were counted.
        slow = min(rounds, GUESS) if missing else 0
        return float(bounds.mixture(*sizes, start=start)) + slow / rounds

    rows = zip(transform.experts, standing.weights, standing.losses, first, strict=True)
    return tuple(
        Link(_title(expert), weight, loss / rounds, (standing.loss - loss) / rounds, bound(start))
        for expert, weight, loss, start in rows
    )


def _title(expert: Transform) -> str:
    if isinstance(expert, Identity):
        return expert.name
    default = type(expert)()
    told = [
        f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in expert.parameters.items()
        if value != default.parameters.get(name)
    ]
    return f"{expert.name}({', '.join(told)})" if told else expert.name
