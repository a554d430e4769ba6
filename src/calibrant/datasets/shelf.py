"""Where the files of real streams lie, where they come from, and what they must be.

Files travel on three shelves: inside the package, and beside it in the repository those under the
GPL and those under CC BY-SA.  Texts of others do not travel: whoever needs them fetches them.
"""

from __future__ import annotations

import csv
import hashlib
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from calibrant.errors import InvalidInput, MissingData

HERE: Final = Path(__file__).parent
REPOSITORY: Final = HERE.parents[2]
SHELVES: Final = {
    "wheel": HERE / "streams",
    "gpl": REPOSITORY / "data" / "gpl",
    "cc-by-sa": REPOSITORY / "data" / "cc-by-sa",
}
"""Directories of files that travel; the last two are there in a clone and in the sdist."""
ELSEWHERE: Final = "CALIBRANT_DATA"
"""Setting that names a directory which is looked at first."""
FETCHED: Final = "CALIBRANT_FETCHED"
"""Setting that names where fetched files are kept, instead of the cache of the user."""
RAW: Final = "https://raw.githubusercontent.com/"


@dataclass(frozen=True)
class Source:
    """Where a folder of files comes from, and under which licence it may be passed on."""

    licence: str
    origin: str
    note: str = ""
    shelf: str = "wheel"


_STUDY = "github.com/TimoDimi/replication_DGJ20 at 193cf2f"
_DRIFT = "github.com/AIgen/df-posthoc-calibration at 55e9cb4"
SOURCES: Final = {
    "fivethirtyeight": Source(
        "CC BY 4.0",
        "FiveThirtyEight, github.com/fivethirtyeight/checking-our-work-data at f6d5b2e",
        "games and elections; teams are left out, candidates are codes",
    ),
    "solar_flares": Source(
        "CC0", f"doi:10.7910/DVN/HYP74O through {_STUDY}", "18 forecasters, 731 days"
    ),
    "llm_mmlu_pro": Source(
        "MIT",
        "github.com/Linwei94/LLM-Calibration-Study at ddc349e",
        "confidences of six language models in their answers to 12,032 questions",
    ),
    "llm_multiple_choice": Source(
        "MIT",
        "github.com/bplaut/llm-calibration-and-correctness-prediction at c176fdd",
        "probabilities of five language models on five sets of questions",
    ),
    "free917": Source(
        "BSD-3-Clause",
        "rankers of this project over questions of Cai and Yates (2013)",
        "forecasts are bundled; questions (Apache-2.0, github.com/percyliang/sempre at 876338f) "
        "and schema (CC BY 4.0, github.com/sivareddyg/graph-parser at 10adad6) are text: fetch "
        "them",
    ),
    "drift_streams": Source(
        "CC BY 4.0",
        f"UCI Machine Learning Repository (data sets 222, 350, 193) through {_DRIFT} (MIT)",
        "customers are anonymous; words are codes; the licence is as other users quote UCI's pages",
    ),
    "recidivism": Source(
        "CC0",
        f"doi:10.7910/DVN/KT20FE through {_STUDY}",
        "1,000 anonymous defendants; a sensitive subject, to be used with care",
    ),
    "image_logits": Source(
        "Apache-2.0 and MIT",
        "github.com/EFS-OpenSource/calibration-framework at 2a3db8d (Apache-2.0), "
        f"ResNet-50 from {_DRIFT} (MIT)",
        "probabilities and logits of four networks for 10,000 images each; no images",
    ),
    "genotypes": Source(
        "BSD-3-Clause",
        "simulated by this project with msprime",
        "3,443 simulated subjects; real ones (HapMap 3, from a repository under GPL-3, "
        "github.com/gabraham/flashpca at b8044f1) are too large to bundle: fetch them",
    ),
    "spf_recession": Source(
        "public; compiled under GPL-3",
        f"Survey of Professional Forecasters, Philadelphia Fed, through {_STUDY}",
        "probabilities of recession 1968 to 2019",
        shelf="gpl",
    ),
    "weather_pop": Source(
        "GPL-2 or newer (Niamey: GPL-3)",
        "R packages isodistrreg at 17546ce, verification at 39e90b9, reliabilitydiag at d26495e",
        "probabilities and ensembles of rain and icing",
        shelf="gpl",
    ),
    "forecastbench": Source(
        "CC BY-SA 4.0",
        "github.com/forecastingresearch/forecastbench-datasets at 9abcac9",
        "prices of prediction markets; questions are left out",
        shelf="cc-by-sa",
    ),
}
"""Every folder of files, by name."""

_QUESTIONS = "percyliang/sempre/876338fdbcb47f947969a02a9a12137ecd7203e5/freebase/data/"
_SCHEMA = "sivareddyg/graph-parser/10adad68826b0f4c62923a09fc40c3978a17f245/data/freebase/schema/"
_HAPMAP = "gabraham/flashpca/b8044f13607a072125828547684fde8b081d6191/HapMap3/"
ADDRESSES: Final = {
    **{
        f"free917/free917.{part}.examples.canonicalized.json": RAW
        + f"{_QUESTIONS}free917.{part}.examples.canonicalized.json"
        for part in ("train", "test")
    },
    "free917/freebase_schema.txt": f"{RAW}{_SCHEMA}all_domains_schema.txt",
    **{f"genotypes/hapmap3.{end}": f"{RAW}{_HAPMAP}data.{end}" for end in ("bed", "bim", "fam")},
    "genotypes/hapmap3_relationships_w_pops.txt": f"{RAW}{_HAPMAP}relationships_w_pops_121708.txt",
}
"""Where files are fetched from that do not travel."""


@dataclass(frozen=True)
class File:
    """One file of the list: its shelf, its size and its digest."""

    name: str
    shelf: str
    size: int
    sha256: str

    def fits(self, body: bytes) -> bool:
        """Say whether these bytes are the file.

        >>> File("empty", "wheel", 0, hashlib.sha256().hexdigest()).fits(b"")
        True
        """
        return hashlib.sha256(body).hexdigest() == self.sha256


@cache
def files() -> dict[str, File]:
    """Return the list of files: those that travel, then those to be fetched.

    >>> len(files()), files()["recidivism/recid.csv.gz"].shelf
    (43, 'wheel')
    """
    with open(HERE / "files.csv", newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    return {
        row["file"]: File(row["file"], row["shelf"], int(row["bytes"]), row["sha256"])
        for row in rows
    }


def fetched() -> Path:
    """Return the directory of fetched files: ``$CALIBRANT_FETCHED``, or one in the user's cache."""
    if given := os.environ.get(FETCHED):
        return Path(given)
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "calibrant" / "data"


def path(name: str, data: str | Path | None = None) -> Path:
    """Return where a file or folder of the list is.

    Parameters
    ----------
    name
        Such as ``"recidivism/recid.csv.gz"``; without ``.gz`` where the file is not packed.
    data
        Directory to look in, and nowhere else.  By default ``$CALIBRANT_DATA`` if it is set and
        holds the file, then the shelves, then what was fetched.

    Examples
    --------
    >>> path("solar_flares/flares_M1.csv.gz").name
    'flares_M1.csv.gz'
    >>> path("solar_flares/flares_M1.csv.gz", "nowhere")
    Traceback (most recent call last):
    calibrant.errors.MissingData: nowhere/solar_flares/flares_M1.csv.gz: not there
    """
    if data is not None:
        if (found := _inside(Path(data), name)) is None:
            raise MissingData(f"{Path(data, name)}: not there")
        return found
    given = os.environ.get(ELSEWHERE)
    places = [*([Path(given)] if given else []), *SHELVES.values(), fetched()]
    for place in places:
        if (found := _inside(place, name)) is not None:
            return found
    raise MissingData(f"{name}: not there; {_advice(name)}")


def there(name: str, data: str | Path | None = None) -> Path | None:
    """Return where :func:`path` finds a file or folder, or None where it is missing."""
    try:
        return path(name, data)
    except MissingData:
        return None


def _inside(place: Path, name: str) -> Path | None:
    """Return the file in a directory, packed or not."""
    whole = place / name
    plain = whole.with_suffix("") if whole.suffix == ".gz" else Path(f"{whole}.gz")
    return next((each for each in (whole, plain) if each.exists()), None)


def _advice(name: str) -> str:
    """Say how to get a file."""
    folder = name.partition("/")[0]
    if any(each.startswith(name) for each in ADDRESSES):
        return f"python -m calibrant.datasets fetch {folder}"
    if folder not in SOURCES:
        raise InvalidInput(f"name must begin with one of {', '.join(SOURCES)}, got {name!r}")
    told = f"{SOURCES[folder].licence}, from {SOURCES[folder].origin}"
    place = f"data/{SOURCES[folder].shelf}"
    return f"{place} of a clone of the repository has it ({told}): set {ELSEWHERE} to {place}"
