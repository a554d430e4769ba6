"""What a binary stream is: everything but its state."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter
from struct import Struct
from typing import Any, Final

import numpy as np

from calibrant.calibrators import Calibrator
from calibrant.calibrators.arena import Arena
from calibrant.calibrators.base import MAX_BUCKETS, MAX_PRIOR
from calibrant.calibrators.layout import Layout, layout_of
from calibrant.core import check
from calibrant.core.arrays import Reals, Words
from calibrant.core.ticket import Issuer
from calibrant.errors import InvalidInput, InvalidType
from calibrant.kernels import bodies, scores
from calibrant.kernels import layout as word
from calibrant.kernels.alone import Sizes
from calibrant.kernels.anchor import CAUTION, DOUBT
from calibrant.kernels.coin import name_of
from calibrant.kernels.compile import available, compiled
from calibrant.kernels.rounds import Program, assemble
from calibrant.kernels.tables import seat_rows
from calibrant.recalibrate.body import Body
from calibrant.recalibrate.body_lists import Lists, suits
from calibrant.recalibrate.secret import COIN_CODES, OLD, SAFE, block_key, told_fingerprint
from calibrant.registry import calibrators
from calibrant.transforms import Transform

MAX_OPEN: Final = 1 << 22
SECRETS: Final = Struct("<qq")
MANY: Final = 256
"""The keys of more rows than these are made by machine code if there is a compiler."""
FEW: Final = 8
"""Words that are read one by one faster than as a slice."""
LOSS_CODES: Final = {
    "squared": scores.SQUARED,
    "log": scores.LOG,
    "misclassification": scores.MISCLASSIFICATION,
    "spherical": scores.SPHERICAL,
}


@dataclass(frozen=True)
class Spec:
    """Rule, buckets and loss, the transform and the budget if there are any, and the coins.

    A spec is a value: parsed once, and shared by any number of rows.  Its layout says what the
    words of a row are, and its program works on them.
    """

    rule: Calibrator
    buckets: int
    prior: int
    loss: str
    transform: Transform | None = None
    raw_safe: float | None = None
    coins: str = SAFE

    def __post_init__(self) -> None:
        check.whole(self.buckets, "buckets", low=1, high=MAX_BUCKETS)
        check.whole(self.prior, "prior", high=MAX_PRIOR)
        check.choice(self.loss, "loss", tuple(LOSS_CODES))
        check.choice(self.coins, "coins", tuple(COIN_CODES))

    @functools.cached_property
    def layout(self) -> Layout:
        """The words of a row, and of what all rows share."""
        code = LOSS_CODES[self.loss]
        return layout_of(
            self.rule,
            self.buckets,
            self.prior,
            loss=code,
            transform=self.transform,
            epsilon=self.raw_safe,
            coins=COIN_CODES[self.coins],
        )

    @functools.cached_property
    def program(self) -> Program:
        """The steps that work on a row."""
        kernel = None if self.transform is None else self.transform.kernel
        return assemble(self.rule.kernels, kernel, self.raw_safe is not None)

    @functools.cached_property
    def steps(self) -> Program:
        """The same with plain single steps for this layout."""
        layout, shared = self.layout, self.layout.shared
        edges, first = int(shared[word.EDGES]), layout.blocks
        end = layout.transform or len(layout.fresh)
        marks = shared.view(np.float64)[edges : edges + self.buckets].tolist()
        starts = range(first, end, layout.stride)
        grid = int(shared[word.CELLS]), int(shared[word.TABLE])
        rest = layout.stride, len(layout.fresh), LOSS_CODES[self.loss]
        return self.program.alone(Sizes(tuple(marks), tuple(starts), *grid, *rest))

    @property
    def centres(self) -> Reals:
        """The middles of the buckets, where the prior is."""
        return (np.arange(self.buckets) * 2 + 1) / (2 * self.buckets)

    @functools.cached_property
    def capacity(self) -> int:
        """Rounds beyond which a gap could leave 63 bits."""
        return int(self.layout.shared[word.CAPACITY])

    @property
    def kept(self) -> int:
        """Words that the transform keeps of a round whose outcome is yet to come."""
        return 0 if self.transform is None else self.transform.kernel.kept

    @property
    def slots(self) -> int:
        """How many features of a round an expert reads, as the last of those words."""
        return 0 if self.transform is None else self.transform.kernel.told

    @property
    def caution(self) -> float:
        """After how many crowds of late outcomes the last stage believes these by half, at most."""
        tells = self.transform is not None and self.transform.kernel.alike is not None
        return DOUBT if tells else CAUTION

    @property
    def swaps(self) -> bool:
        """Whether the transform may ask for the first grid after a swap of models."""
        return self.transform is not None and self.transform.kernel.wide is not None

    @functools.cached_property
    def left(self) -> tuple[slice, slice | None, bool]:
        """Where a step leaves advice and law, if there is one, for tickets; whether neither."""
        shared, full = self.layout.shared, self.rule.kernels.full_support
        advice, law = int(shared[word.ADVICE]), int(shared[word.SCRATCH])
        told = slice(law, law + self.rule.lattice.cells) if full else None
        return slice(advice, advice + self.kept), told, not self.kept and told is None

    @functools.cached_property
    def features(self) -> slice:
        """Which words of the advice are what was known besides."""
        stop = self.left[0].stop
        return slice(stop - self.slots, stop)

    @functools.cached_property
    def keep(self) -> Callable[[Any], tuple[int, ...]]:
        """What reads the advice of a step into a tuple; a few words without making a slice."""
        part = self.left[0]
        places = range(part.start, part.stop)
        return itemgetter(*places) if 1 < len(places) <= FEW else lambda words: tuple(words[part])

    @functools.cached_property
    def fields(self) -> str:
        """What the desk keeps of a ticket: place, weight, raw, time, clock, mixed, and advice."""
        return "qdddqd" + "q" * self.kept

    def issuer(self, secret: bytes) -> Issuer:
        """Return what the tickets of the row with that secret have in common."""
        return Issuer(told_fingerprint(secret, self._told), *self._issues)

    @functools.cached_property
    def _told(self) -> bytes:
        """What a ticket depends on besides the secret."""
        shape: list[Any] = [] if self.transform is None else [self.transform.description]
        shape += [] if self.coins == OLD else [self.coins]
        told = self.rule.name, self.rule.parameters, self.buckets, self.prior, *shape
        return repr(told).encode()

    @functools.cached_property
    def _issues(self) -> tuple[Any, ...]:
        """What all issuers of this spec have in common."""
        full, mixes = self.rule.kernels.full_support, self.transform is not None
        values = tuple(self.rule.lattice.values.tolist())
        return self.rule.lattice, full, mixes, self.kept, values

    def seat(self, row: Words, secret: bytes) -> None:
        """Write a secret, and the keys that follow from it, into a row."""
        words = np.frombuffer(secret, "<i8").astype(np.int64)
        self.seat_at(row, np.zeros(1, np.int64), words.reshape(1, 2))

    def seat_at(self, flat: Words, places: Words, secrets: Words) -> None:
        """Write secrets, two words each, and the keys that follow, into rows of an array."""
        flat[places[:, None] + np.arange(word.SECRET, word.SECRET + 2)] = secrets
        if self.coins != OLD and len(places) > MANY and available():
            machine, first = compiled(seat_rows, "seats", nogil=True), self.layout.blocks + word.KEY
            numbers, halves = np.arange(self.buckets, dtype=np.uint64), secrets.view(np.uint64)
            machine(flat.view(np.uint64), places, halves, numbers, first, self.layout.stride)
            return
        if self.coins == OLD:
            told = [words.astype("<i8").tobytes() for words in secrets]
            keys: Any = [[block_key(s, j, OLD) for j in range(self.buckets)] for s in told]
        else:
            low, high = np.ascontiguousarray(secrets).view(np.uint64).T[:, :, None]
            keys = name_of(low, high, np.arange(self.buckets, dtype=np.uint64)).view(np.int64)
        blocks = self.layout.blocks + word.KEY + self.layout.stride * np.arange(self.buckets)
        flat[places[:, None] + blocks] = keys

    def arena(self, secret: bytes) -> Arena:
        """Return an arena of one row with that secret, before its first round."""
        flat = self.layout.alone.copy()
        self.seat(flat[self.layout.row :], secret)
        return Arena(self.layout, flat)

    def arena_of(self, secret: bytes, words: list[Any] | Words) -> Arena:
        """Return an arena of one row, to which that secret belongs, given as a list or array."""
        first = self.layout.row + word.SECRET
        words[first : first + 2] = SECRETS.unpack(secret)
        return self.arena_with(words)[0]

    def arena_with(self, words: list[Any] | Words) -> tuple[Arena, bytes]:
        """Return an arena of one row with its secret, given as a list or array, and the secret."""
        layout = self.layout
        first, at = layout.row + word.SECRET, layout.row + layout.blocks + word.KEY
        secret = SECRETS.pack(*words[first : first + 2])
        for j in range(self.buckets):
            words[at + j * layout.stride] = block_key(secret, j, self.coins)
        if isinstance(words, list):
            return Arena(layout, listed=words), secret
        return Arena(layout, words), secret

    @property
    def ready(self) -> Program | None:
        """The compiled single steps, once a stream has compiled them."""
        machine = self.program.__dict__.get("machine")
        return None if machine is None else machine.__dict__.get("ready")

    def compile(self) -> Program | None:
        """Compile the single steps, once; return them, or None where there is no compiler."""
        machine = self.program.machine
        if machine is not None and self.ready is None:
            bodies.machine()
            machine.__dict__["ready"] = machine.steps(self.layout.alone.copy(), self.layout.row)
        return self.ready

    def is_made(self) -> bool:
        """Say whether the single steps have their machine code, in this process or on disk."""
        return self.ready is not None or (self.program.is_made() and bodies.is_made())

    @functools.cached_property
    def body(self) -> Body:
        """How rows are stored."""
        return Body(self.layout, len(self.rule.kernels.head), len(self.rule.kernels.cell))

    @functools.cached_property
    def lists(self) -> Lists | None:
        """How single rows are stored by plain Python, where this is as simple as it expects."""
        return Lists(self.body) if suits(self.body) else None

    @functools.cached_property
    def shapes(self) -> dict[tuple[str, int, str | None, int], tuple[bytes, Any]]:
        """Beginnings of stored states, written once for all rows, and their digests.

        By kind, cap on open tickets, where secrets come from, and number of arrays.
        """
        return {}

    @functools.cached_property
    def settings(self) -> dict[str, Any]:
        """The spec as JSON-ready data."""
        told = {
            "method": self.rule.name,
            "parameters": self.rule.parameters,
            "buckets": self.buckets,
            "prior": self.prior,
            "loss": self.loss,
            "coins": self.coins,
        }
        if self.transform is not None:
            safe = None if self.raw_safe is None else self.raw_safe.hex()
            told |= {"transform": self.transform.description, "raw_safe": safe}
        return told

    def account(self, row: Words) -> tuple[Words, Words]:
        """Return rounds and ones of each bucket (row) and grid point (column) of a row."""
        counts, ones = self.accounts(row[None])
        return counts[0], ones[0]

    def accounts(self, rows: Words) -> tuple[Words, Words]:
        """Return the same of many rows."""
        layout, rule = self.layout, self.rule
        part = slice(layout.blocks, layout.transform or len(layout.fresh))
        gained = (rows[:, part] - layout.fresh[part]).reshape(
            len(rows), self.buckets, layout.stride
        )
        return rule.tallies_of(gained, int(layout.shared[word.SCALE]))


@functools.lru_cache(maxsize=256)
def shared_spec(spec: Spec) -> Spec:
    """Return the one spec that all streams with equal settings share."""
    return spec


def made_rule(method: str | Calibrator, parameters: dict[str, Any]) -> Calibrator:
    """Return a calibrator given itself, or its name and parameters."""
    if isinstance(method, Calibrator):
        if parameters:
            listed = ", ".join(parameters)
            raise InvalidInput(f"parameters must be given to the calibrator itself, got {listed}")
        return method
    made = calibrators.get(method)
    known = {field.name for field in dataclasses.fields(made)}
    for name in parameters:
        if name not in known:
            listed = ", ".join(sorted(known))
            raise InvalidType(f"parameters of {method} must be among {listed}, got {name!r}")
    rule: Calibrator = made(**parameters)
    return rule
