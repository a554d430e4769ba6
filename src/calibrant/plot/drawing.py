"""Numbers first, ink second: what all plots have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from calibrant.errors import InvalidInput
from calibrant.plot.canvas import as_axes, dress, legend_above, new_axes, own_font

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Drawing(ABC):
    """The numbers of a plot, and the axes of the picture once there is one.

    Attributes
    ----------
    ax
        The axes; None until :meth:`draw` was called.
    """

    size: ClassVar[tuple[float, float]] = (4.6, 3.1)
    entry_width: ClassVar[float] = 1.6

    ax: Axes | None = field(default=None, kw_only=True, repr=False)

    @property
    def figure(self) -> Figure:
        """The figure that holds the axes."""
        if self.ax is None:
            raise InvalidInput(f"{type(self).__name__} must be drawn first: call draw()")
        return cast("Figure", self.ax.figure)

    def draw(self, ax: Axes | None = None, *, size: tuple[float, float] | None = None) -> Self:
        """Return the same numbers, drawn.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw, in the caller's own fonts and frame; without it on a new
            figure that no pyplot knows of.
        size : tuple of float, optional
            Width and height of the new figure in inches.
        """
        if ax is not None:
            target = as_axes(ax)
            legend_above(target, self._ink(target), self.entry_width)
        else:
            target = new_axes(size or self.size)
            legend_above(target, self._ink(target), self.entry_width, **own_font())
            dress(target)
        return replace(self, ax=target)

    @abstractmethod
    def _ink(self, ax: Axes) -> list[Any]:
        """Draw on ``ax``; return what belongs into the legend."""


def named(source: Any) -> dict[str, Any]:
    """Return ``source`` by name of series: itself if it is a mapping, else as the forecast."""
    if not isinstance(source, Mapping):
        return {"forecast": source}
    if not source:
        raise InvalidInput(f"series must be at least one, got {source!r}")
    return {str(key): value for key, value in source.items()}
