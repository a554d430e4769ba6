"""The live page: streams watched in a browser, drawn on the server, pushed as they change.

``app(source)`` is the page as an ASGI application, to be mounted in any other; it needs the extra
``serve``.  A :class:`Source` says what there is to see; :class:`Memory` is one for streams of this
process.
"""

from calibrant.live.app import Door, app, routes
from calibrant.live.memory import Memory, Stream
from calibrant.live.pages import Pages
from calibrant.live.source import Board, Source

__all__ = ["Board", "Door", "Memory", "Pages", "Source", "Stream", "app", "routes"]
