"""What a certificate says of draws that somebody may foresee."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

FORESEEN: Final = (
    "seeded: anyone who knows the seed can predict the draws; no bound holds against them"
)


@dataclass(frozen=True, kw_only=True)
class Seeded:
    """A record that knows whether its draws follow from a seed.

    Attributes
    ----------
    seeded
        Whether a seed was given, which others may know or guess; None where that is not known, or
        nothing is drawn.
    """

    seeded: bool | None = None

    def foreseen(self, holds: bool | None) -> list[str]:
        """Return the line that says so, if there is one to say, and a promise that it is about.

        >>> Seeded(seeded=True).foreseen(True)
        ['  seeded: anyone who knows the seed can predict the draws; no bound holds against them']
        """
        return [f"  {FORESEEN}"] if self.seeded and holds is not None else []
