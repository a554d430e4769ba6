"""Make the files of ``calibrant.datasets`` from the originals: figures alone, compressed.

Run as ``python -m benchmarks.pack ORIGINALS``, where ORIGINALS holds a folder for each source as
its authors published it.  Names of people and teams, questions and identifiers are left out or
become codes that sort as the originals do.  Files under the GPL and CC BY-SA go to ``data``, all
others into the package; ``src/calibrant/datasets/files.csv`` lists every file with its digest.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import pathlib
import sys
import zipfile
from collections.abc import Callable, Iterable

import numpy as np

from calibrant.datasets.shelf import SHELVES, SOURCES

Rows = list[dict[str, str]]
Change = Callable[[Rows], Rows]

GAMES = ("season", "date", "prob1", "prob1_outcome")
ELECTIONS = (
    "election_date", "forecast_date", "forecast_type", "state", "candidate", "probwin",
    "probwin_outcome",
)  # fmt: skip
MARKETS = (
    "forecast_due_date", "freeze_date", "resolution_date", "source", "id", "crowd_probability",
    "resolved_to",
)  # fmt: skip
ANSWERS = (
    "t", "split", "dense_p", "dense_correct", "lex_p", "lex_correct", "lex_oof_p",
    "lex_oof_correct",
)  # fmt: skip
SURVEY = (
    "DATE.FC.due", "ID", "INDUSTRY", "DATE.issued", "FC.Horizon", "Prob.Forecast",
    "gdp.last.recess", "gdp.first.recess",
)  # fmt: skip
DEFENDANTS = (
    "logitpredprobs", "gbmpredprobs", "mturkpredprobs", "compaspredprobs.linear",
    "two_year_recid", "race", "sex", "age",
)  # fmt: skip
_LLM = ("Meta-Llama-3.1-8B-Instruct-Turbo", "Qwen2.5-7B-Instruct", "claude-3-haiku-20240307",
        "deepseek-chat", "gpt-4.1-nano", "gpt-4o-mini-2024-07-18")  # fmt: skip
_SETS = ("arc", "hellaswag", "mmlu", "truthfulqa", "winogrande")
PACKED = (
    *(f"fivethirtyeight/{name}_games.csv.gz" for name in ("nba", "nfl", "nhl", "wnba")),
    "fivethirtyeight/governors_elections.csv.gz",
    "fivethirtyeight/president_election_night.csv.gz",
    "solar_flares/flares_C1.csv.gz",
    "solar_flares/flares_M1.csv.gz",
    *(f"llm_mmlu_pro/{name}.csv.gz" for name in _LLM),
    *(f"llm_multiple_choice/{name}.csv.gz" for name in _SETS),
    "free917/free917_forecasts.csv.gz",
    *(f"drift_streams/{name}.csv.gz" for name in ("bank", "credit_default", "fetal_health")),
    "recidivism/recid.csv.gz",
    "image_logits/cifar10_resnet50_logits.npz",
    "image_logits/lenet-5-cifar-10.npz",
    "image_logits/wideresnet-16-4-cifar-10.npz",
    "image_logits/wideresnet-16-4-cifar-100_f16.npz",
    "genotypes/t1d_sim_3443x4655.npz",
    "spf_recession/spf_recession_probabilities.csv.gz",
    *(f"weather_pop/{name}.csv.gz" for name in ("aviation_icing", "frankfurt_ecmwf",
      "monsoon_ensemble", "niamey_2016", "tampere_pop_2003")),
    "forecastbench/forecastbench_markets.csv.gz",
)  # fmt: skip
"""Files that travel, in the order of the list."""
UNUSED = ("val_logits", "val_labels", "causal_gene")


def only(*names: str, coded: Iterable[str] = ()) -> Change:
    """Return what keeps these columns, and writes some as codes."""
    return lambda rows: code([{name: row[name] for name in names} for row in rows], coded)


def without(*names: str, coded: Iterable[str] = ()) -> Change:
    """Return what leaves these columns out, and writes some as codes."""
    kept = lambda row: {name: text for name, text in row.items() if name not in names}  # noqa: E731
    return lambda rows: code([kept(row) for row in rows], coded)


def code(rows: Rows, names: Iterable[str]) -> Rows:
    """Replace the words of some columns by letters and numbers that sort alike."""
    for name in names:
        words = sorted({row[name] for row in rows})
        codes = {word: f"{name[0]}{k:0{len(str(len(words)))}}" for k, word in enumerate(words)}
        for row in rows:
            row[name] = codes[row[name]]
    return rows


BANK = ("job", "marital", "education", "default", "housing", "loan", "contact", "month", "poutcome")
CHANGES: dict[str, Change] = {
    **{f"fivethirtyeight/{league}_games": only(*GAMES) for league in ("nba", "nfl", "nhl", "wnba")},
    "fivethirtyeight/governors_elections": only(*ELECTIONS, coded=["candidate"]),
    "fivethirtyeight/president_election_night": only(*ELECTIONS, coded=["candidate"]),
    "forecastbench/forecastbench_markets": only(*MARKETS, coded=["id"]),
    "free917/free917_forecasts": only(*ANSWERS),
    "spf_recession/spf_recession_probabilities": only(*SURVEY),
    "recidivism/recid": only(*DEFENDANTS),
    "drift_streams/bank": without("ID", coded=BANK),
    "drift_streams/credit_default": without("ID"),
}


def main(originals: str) -> None:
    """Write all files, and their list."""
    fetched = [line for line in _listed() if line["shelf"] == "fetch"]
    made = [packed(pathlib.Path(originals), name) for name in PACKED]
    with open(SHELVES["wheel"].parent / "files.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, ["file", "shelf", "bytes", "sha256"], lineterminator="\n")
        writer.writeheader()
        writer.writerows([*made, *fetched])
    print(f"{len(made)} files, {sum(int(line['bytes']) for line in made):,} bytes")


def _listed() -> Rows:
    with open(SHELVES["wheel"].parent / "files.csv", newline="") as file:
        return list(csv.DictReader(file))


def packed(originals: pathlib.Path, name: str) -> dict[str, str]:
    """Write one file; return its line in the list."""
    shelf = SOURCES[name.partition("/")[0]].shelf
    place = SHELVES[shelf] / name
    place.parent.mkdir(parents=True, exist_ok=True)
    body = arrays(originals / name) if name.endswith(".npz") else table(originals, name)
    place.write_bytes(body)
    digest = hashlib.sha256(body).hexdigest()
    return {"file": name, "shelf": shelf, "bytes": str(len(body)), "sha256": digest}


def table(originals: pathlib.Path, name: str) -> bytes:
    """Return a table of figures, packed; the time of packing does not change it."""
    stem = name.removesuffix(".csv.gz")
    packed = originals / name
    text = gzip.decompress(packed.read_bytes()) if packed.exists() else (
        originals / f"{stem}.csv").read_bytes()  # fmt: skip
    rows = list(csv.DictReader(io.StringIO(text.decode("utf-8-sig"), newline="")))
    rows = CHANGES.get(stem, lambda rows: rows)(rows)
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return gzip.compress(out.getvalue().encode(), compresslevel=9, mtime=0)


def arrays(place: pathlib.Path) -> bytes:
    """Return the arrays of a file that are used, each in a member of its own."""
    out = io.BytesIO()
    with np.load(place) as found, zipfile.ZipFile(out, "w", zipfile.ZIP_LZMA) as members:
        for name in (name for name in found if name not in UNUSED):
            body = io.BytesIO()
            np.save(body, found[name], allow_pickle=False)
            told = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            told.compress_type = zipfile.ZIP_LZMA
            members.writestr(told, body.getvalue())
    return out.getvalue()


if __name__ == "__main__":
    main(sys.argv[1])
