"""Real streams to try things on: forecasts and outcomes as they came.

>>> from calibrant import Calibrant, datasets
>>> games = datasets.load_games("wnba")
>>> games
<Dataset 538 wnba: 450 rounds, groups season, CC BY 4.0>
>>> len(Calibrant(seed=1).replay(games.raw, games.outcomes).mean)
450

``python -m calibrant.datasets`` lists what is there, with licences; ``fetch`` gets what does not
travel with the package.
"""

from calibrant.datasets.fetch import fetch
from calibrant.datasets.loaders import (
    Dataset,
    language_models,
    load_drift,
    load_drifting_table,
    load_elections,
    load_ensemble,
    load_flares,
    load_games,
    load_icing,
    load_images,
    load_language_model,
    load_markets,
    load_multiple_choice,
    load_questions,
    load_rain,
    load_recessions,
    load_recidivism,
)
from calibrant.datasets.shelf import SOURCES, Source, files, path

__all__ = [
    "SOURCES",
    "Dataset",
    "Source",
    "fetch",
    "files",
    "language_models",
    "load_drift",
    "load_drifting_table",
    "load_elections",
    "load_ensemble",
    "load_flares",
    "load_games",
    "load_icing",
    "load_images",
    "load_language_model",
    "load_markets",
    "load_multiple_choice",
    "load_questions",
    "load_rain",
    "load_recessions",
    "load_recidivism",
    "path",
]
