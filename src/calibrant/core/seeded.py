"""What a certificate says of draws that somebody may foresee."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

FORESEEN: Final = (
    "seeded: whoever knows the seed foresees the draws, and no bound holds against them"
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

    @property
    def foreseen(self) -> list[str]:
        """The line that says so, if there is one to say.

        >>> Seeded(seeded=True).foreseen
        ['  seeded: whoever knows the seed foresees the draws, and no bound holds against them']
        """
        return [f"  {FORESEEN}"] if self.seeded else []
