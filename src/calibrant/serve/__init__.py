"""The service: streams behind HTTP, each answer on disk before it is given."""

from calibrant.errors import MissingExtra, requirement

try:
    from calibrant.serve.app import make_app
    from calibrant.serve.options import Options
except ModuleNotFoundError as error:
    told = f"calibrant.serve needs {error.name}, which is not installed"
    raise MissingExtra(f"{told}: pip install {requirement('serve')}") from error

__all__ = ["Options", "make_app"]
