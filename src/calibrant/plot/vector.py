"""The SVG text of a drawing: stable ids, and colours that follow the page.

Matplotlib names shapes by random ids unless a global setting is changed; renaming
them in order of appearance makes the file depend on its content only.
"""

from __future__ import annotations

import re
from html import escape
from typing import Final

from calibrant.plot.palette import LIGHT

NAME: Final = re.compile(r'(?<=\bid=")[^"]+')
MENTION: Final = re.compile(r'(?<=\bid=")[^"]+|(?<=#)[A-Za-z_][\w.-]*')
USED: Final = re.compile(r'(?:href="|url\()#([^")]+)')
UNUSED: Final = re.compile(r' id="([^"]+)"')
COLOUR: Final = re.compile(r"#[0-9a-f]{6}\b")
OPENING: Final = re.compile(r"<svg\b[^>]*>")
BOX: Final = re.compile(r'viewBox="([^"]+)"')
NOISE: Final = re.compile(r"<metadata>.*?</metadata>\s*|<!--.*?-->\s*", re.DOTALL)
ROLES: Final = {colour: role for role, colour in LIGHT.items()}


def settled(svg: str, prefix: str = "i") -> str:
    """Return ``svg`` with its ids renamed to ``prefix`` and a number, in order of appearance.

    >>> settled('<g id="m3f1"/><use href="#m3f1"/>')
    '<g id="i0"/><use href="#i0"/>'
    """
    names = dict.fromkeys(NAME.findall(svg))
    fresh = {name: f"{prefix}{place}" for place, name in enumerate(names)}
    return MENTION.sub(lambda found: fresh.get(found[0], found[0]), svg)


def inline(svg: str, name: str, title: str, description: str) -> str:
    """Return ``svg`` as an element for a page, its colours left to the page's variables.

    Parameters
    ----------
    svg
        What matplotlib wrote.
    name
        Prefix of the image's ids; must differ between the images of a page.
    title, description
        What a screen reader says.
    """
    drawn = NOISE.sub("", settled(svg[svg.index("<svg") :], f"{name}-"))
    used = set(USED.findall(drawn))
    drawn = UNUSED.sub(lambda found: found[0] if found[1] in used else "", drawn)
    drawn = COLOUR.sub(_variable, drawn)
    return OPENING.sub(lambda found: _opening(found[0], name, title, description), drawn, count=1)


def _variable(found: re.Match[str]) -> str:
    role = ROLES.get(found[0])
    return found[0] if role is None else f"var(--{role}, {found[0]})"


def _opening(tag: str, name: str, title: str, description: str) -> str:
    box = BOX.search(tag)
    size = box[1] if box else "0 0 100 100"
    names = f"{name}-title {name}-description"
    return (
        f'<svg xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="{size}" role="img" '
        f'aria-labelledby="{names}">'
        f'<title id="{name}-title">{escape(title)}</title>'
        f'<desc id="{name}-description">{escape(description)}</desc>'
    )
