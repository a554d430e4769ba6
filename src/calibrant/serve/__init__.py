"""The service: streams behind HTTP, each answer on disk before it is given."""

from calibrant.errors import needing

with needing("calibrant.serve needs {}, which is not installed", "serve"):
    from calibrant.serve.app import make_app
    from calibrant.serve.options import Options

__all__ = ["Options", "make_app"]
