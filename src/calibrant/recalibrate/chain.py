"""The certificate of a chain: experts, their mixture, and the calibrator that comes last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from calibrant import bounds
from calibrant.recalibrate.certificate import Certificate
from calibrant.transforms import Identity, Mixture, Transform

__all__ = ["Chain", "Link", "link"]


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
        What the theorem says about the regret.
    """

    expert: str
    weight: float
    loss: float
    regret: float
    bound: float

    @property
    def holds(self) -> bool:
        """Whether the regret is below its bound, up to rounding."""
        return self.regret <= self.bound + 1e-9


@dataclass(frozen=True)
class Chain(Certificate):
    """A record of all links, from the raw forecast to the draw.

    Attributes
    ----------
    middle_loss, middle_regret
        Mean loss of what stands in front (the mixture), and how much the draw's exceeds it:
        the regret of the certificate's theorems.
    links
        The mixture beside each expert; empty where no mixture stands in front.  Under late
        outcomes these are losses of what experts said when the outcome came.
    """

    middle_loss: float
    middle_regret: float
    links: tuple[Link, ...]

    @property
    def holds(self) -> bool | None:
        """Whether every measured number is below its bounds; None without a bound."""
        measured = {"C1": self.c1, "C2": self.c2, "regret": self.middle_regret}
        checks = self.compared(measured) + [each.holds for each in self.links]
        return all(checks) if checks else None

    @property
    def raw_bound(self) -> float | None:
        """Bound on the regret to the raw forecast: that to the mixture, and the mixture's own."""
        last = self.bound("regret")
        own = [each.bound for each in self.links if each.expert == "identity"]
        return None if last is None or not own or self.delay else last + min(own)

    def __str__(self) -> str:
        lines = [
            super().__str__(),
            f"  {self.loss_name} loss in front {self.middle_loss:.5f}, "
            f"regret to it {self.middle_regret:+.5f}",
        ]
        for each in self.links:
            lines.append(
                f"    {each.expert}: weight {each.weight:.3f}, loss {each.loss:.5f}, "
                f"regret {each.regret:+.5f} <= {each.bound:.5f}"
            )
        if self.raw_bound is not None:
            lines.append(f"  regret to the raw forecast {self.regret:+.5f} <= {self.raw_bound:.5f}")
        return "\n".join(lines)


def link(made: Certificate, front: Transform, words: Sequence[Any], passed: float) -> Chain:
    """Add the links before the last one to a certificate."""
    mean = passed / made.rounds if made.rounds else 0.0
    regret = made.loss - mean if made.rounds else 0.0
    kept = {field.name: getattr(made, field.name) for field in fields(Certificate)}
    links = _links(front, words, made.rounds) if isinstance(front, Mixture) else ()
    return Chain(**kept, middle_loss=mean, middle_regret=regret, links=links)


def _links(front: Mixture, words: Sequence[Any], rounds: int) -> tuple[Link, ...]:
    if rounds == 0:
        return ()
    standing = front.standing(words)
    first = front.start or ()
    rows = zip(front.experts, standing.weights, standing.losses, first, strict=True)
    return tuple(
        Link(
            _title(expert),
            weight,
            loss / rounds,
            (standing.loss - loss) / rounds,
            float(bounds.mixture(rounds, len(first), front.share, front.eta or 1.0, start=start)),
        )
        for expert, weight, loss, start in rows
    )


def _title(expert: Transform) -> str:
    if isinstance(expert, Identity):
        return expert.name
    default = type(expert)()
    told = [
        f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in expert.parameters.items()
        if value != default.parameters[name]
    ]
    return f"{expert.name}({', '.join(told)})" if told else expert.name
