"""Dataframes in, dataframes out: pandas, Polars, PyArrow tables and DuckDB relations alike.

>>> import polars
>>> from calibrant.frames import replay
>>> frame = polars.DataFrame({"raw": [0.83, 0.79, 0.91], "happened": [1, 0, 1]})
>>> replay(frame, raw="raw", outcome="happened", seed=7).columns
['raw', 'happened', 'forecast', 'mean']
"""

from calibrant.errors import needing

with needing("calibrant.frames needs narwhals, which is not installed", "frames"):
    from calibrant.frames.replay import replay

__all__ = ["replay"]
