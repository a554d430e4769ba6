"""Pages made from templates, with the style sheet and the colours that all share."""

from __future__ import annotations

from typing import Any

from calibrant.errors import MissingExtra
from calibrant.plot.canvas import DARK, LIGHT


def filled(who: str, package: str, template: str, *, extra: str = "plot", **values: Any) -> str:
    """Return a package's template with values in their places.

    Parameters
    ----------
    who
        Who needs jinja2, to be told where it is not installed.
    package, template
        Where the template lies; this package's templates can be included.
    extra
        What installs jinja2.
    **values
        What it asks for, beside the colours.
    """
    try:
        from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
    except ModuleNotFoundError as error:
        told = f'{who} jinja2, which is not installed: pip install "calibrant[{extra}]"'
        raise MissingExtra(told) from error
    made = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("calibrant.report")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    ).get_template(template)
    return made.render(light=_variables(LIGHT), dark=_variables(DARK), **values)


def _variables(colours: dict[str, str]) -> str:
    return " ".join(f"--{role}: {colour};" for role, colour in colours.items())
