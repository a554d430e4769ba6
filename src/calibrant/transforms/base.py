"""What every transform is: parameters, a kernel, the words of a fresh state; and one at work."""

from __future__ import annotations

import abc
import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self, TypeAlias

import numpy as np

from calibrant.core import check
from calibrant.core.arrays import Mask, Reals, Words
from calibrant.core.codec import Document
from calibrant.core.limits import limits_of_state, refuse_outside
from calibrant.core.stateful import Stateful
from calibrant.errors import CorruptState, InvalidType
from calibrant.kernels.compile import SHORT
from calibrant.kernels.transforms.kernel import Kernel
from calibrant.registry import transforms

Ratio: TypeAlias = tuple[int, int, int, float]
"""A word, and which it follows from: the second over the sum of the third and a number."""
State: TypeAlias = list[Any]
"""Words of a state: floats where a word is a real, ints elsewhere."""
Check: TypeAlias = Callable[[Any, str], Any]
"""Return a parameter of that name as it is kept, or refuse it."""


def rules(**checks: Check) -> dict[str, Check]:
    """Return what each parameter must be, by name."""
    return checks


@dataclass(frozen=True)
class Transform(abc.ABC):
    """A rule that turns the raw forecast of a round into another, and learns from the outcome.

    A transform is a value: parameters, and nothing that changes.  What it learns is in its
    state, which :meth:`fresh` begins and :attr:`kernel` works on; :meth:`online` puts both
    together.

    Notes
    -----
    ``notes`` is how many of the last words of a state are notes; those of the parts of a
    composite lie inside, and :meth:`note_positions` knows them all.  ``checks`` says what
    parameters must be, and ``fixed`` which words never change.
    """

    name: ClassVar[str]
    reference: ClassVar[str]
    guarantee: ClassVar[str] = "none"
    assumption: ClassVar[str] = "none"
    cost: ClassVar[str] = "O(1) a round"
    checks: ClassVar[dict[str, Check]] = {}
    fixed: ClassVar[tuple[int, ...]] = ()

    def __post_init__(self) -> None:
        self._set(**{name: rule(getattr(self, name), name) for name, rule in self.checks.items()})

    @property
    @abc.abstractmethod
    def kernel(self) -> Kernel:
        """The functions that predict and learn."""

    @property
    def notes(self) -> int:
        """How many notes a state ends with: words that need not be kept."""
        return 0

    @abc.abstractmethod
    def fresh(self) -> State:
        """Return the words of a state that has seen nothing."""

    @property
    def size(self) -> int:
        """Number of words of a state."""
        return len(self.fresh())

    def note_positions(self) -> list[int]:
        """Return which words of a state are notes, which may be set to zero at any time."""
        size = self.size
        return list(range(size - self.notes, size))

    def constants(self) -> list[int]:
        """Return which words of a state never change, such as parameters and positions."""
        return list(self.fixed)

    def limits(self) -> dict[int, tuple[float, float]]:
        """Return between which numbers a word must be that says where to go on."""
        return {}

    def ratios(self) -> list[Ratio]:
        """Return which words follow from two others, and need not be stored."""
        return []

    def inverses(self) -> list[tuple[int, int]]:
        """Return where inverses of sums start that need not be stored, and where the sums do.

        Three words each, as :func:`calibrant.kernels.transforms.platt.inverted` makes them.
        """
        return []

    def twins(self) -> dict[int, int]:
        """Return for some words another one that is often the same."""
        return {}

    def sums(self) -> dict[int, int]:
        """Return for some words the own word of a row that is often the same."""
        return {}

    def apart(self) -> tuple[list[tuple[int, int]], dict[int, int]]:
        """Return runs of reals that plain steps find in an array, and positions without these.

        Runs are given by where they start and end.  In a list, a word that says where it is takes
        the place of each, so that words which hold positions have others.
        """
        return [], {}

    def verify(self, words: Words) -> None:
        """Refuse a stored state with which the kernel would go astray."""
        words_of = self.fresh()
        real = real_in(words_of)
        fresh = flat_of(words_of, real)
        if len(words) != len(fresh):
            raise CorruptState(f"state must have {len(fresh)} words, got {len(words)}")
        refuse_outside(words, fresh, real, *limits_of_state(self, real, fresh))

    def online(self) -> Online:
        """Return the transform at work on a fresh state."""
        return Online(self)

    @property
    def parameters(self) -> dict[str, Any]:
        """All parameters by name, ready for JSON; transforms among them as descriptions."""
        return {f.name: _plain(getattr(self, f.name)) for f in dataclasses.fields(self)}

    @property
    def description(self) -> dict[str, Any]:
        """Name and parameters, from which :func:`from_description` makes the transform again."""
        return {"name": self.name, "parameters": self.parameters}

    @classmethod
    def from_parameters(cls, parameters: dict[str, Any]) -> Self:
        """Return the transform with these :attr:`parameters`; those left out have defaults."""
        known = {field.name for field in dataclasses.fields(cls)}
        for name in parameters:
            if name not in known:
                listed = ", ".join(sorted(known)) or "none"
                raise InvalidType(f"parameters of {cls.name} must be among {listed}, got {name!r}")
        return cls(**{name: _revived(value) for name, value in parameters.items()})

    def __reduce__(self) -> tuple[Any, ...]:
        return from_description, (self.description,)

    def _set(self, **values: Any) -> None:
        """Replace parameters by their checked values, while the object is being made."""
        for name, value in values.items():
            object.__setattr__(self, name, value)


def real_in(words: State) -> Mask:
    """Say which words are reals."""
    return np.array([type(word) is float for word in words], bool)


def flat_of(words: State, real: Mask) -> Words:
    """Return words as an array, reals by their bits."""
    plain, flat = np.array(words, object), np.zeros(len(words), np.int64)
    flat[~real] = plain[~real].astype(np.int64)
    flat.view(np.float64)[real] = plain[real].astype(np.float64)
    return flat


def shifted(part: Transform, start: int) -> tuple[list[int], dict[int, tuple[float, float]]]:
    """Return constants and limits of a part of a composite that starts at ``start``."""
    constants = [start + place for place in part.constants()]
    return constants, {start + place: limit for place, limit in part.limits().items()}


def from_description(description: dict[str, Any]) -> Transform:
    """Return the transform that a description names, with the parameters given there.

    >>> from_description({"name": "online_platt", "parameters": {"gamma": 0.5}}).gamma
    0.5
    """
    made: Any = transforms.get(description["name"])
    transform: Transform = made.from_parameters(description["parameters"])
    return transform


def _plain(value: Any) -> Any:
    if isinstance(value, Transform):
        return value.description
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return None if value == math.inf else value


def _revived(value: Any) -> Any:
    if isinstance(value, dict):
        return from_description(value)
    if isinstance(value, list):
        return tuple(_revived(item) for item in value)
    return value


KIND: Final = "transform"
NOTHING: Final = -1.0
"""No raw forecast."""


class Online(Stateful):
    """A transform and its state.

    Parameters
    ----------
    transform
        The rule.

    Notes
    -----
    Not for several threads at a time.  One by one, in batches and after a restart, plain and
    compiled, the forecasts are the same to the bit.

    Examples
    --------
    >>> from calibrant.transforms import BucketMeans
    >>> online = BucketMeans(buckets=10).online()
    >>> online.predict_one(0.83)
    0.83
    >>> online.learn_one(0.83, 1)
    >>> online.predict_one(0.88), online.rounds
    (1.0, 1)
    """

    kind: ClassVar = KIND

    def __init__(self, transform: Transform) -> None:
        self._transform = transform
        self._predict, self._learn = transform.kernel.predict, transform.kernel.learn
        fresh = transform.fresh()
        self._real = real_in(fresh)
        self._plain: list[Any] | None = fresh
        self._flat = np.zeros(len(fresh), np.int64)
        self._notes = transform.note_positions()
        self._rounds = 0
        self._asked, self._told = NOTHING, 0.0

    @property
    def transform(self) -> Transform:
        """The rule."""
        return self._transform

    @property
    def rounds(self) -> int:
        """Outcomes learned so far."""
        return self._rounds

    @property
    def words(self) -> list[Any]:
        """A copy of the state: floats where a word is a real, ints elsewhere."""
        return list(self._words())

    def predict_one(self, raw: float) -> float:
        """Return the forecast for a raw one; changes nothing."""
        if type(raw) is not float or not 0.0 <= raw <= 1.0:
            raw = check.probability(raw)
        words = self._plain or self._words()
        self._told = self._predict(words, words, 0, raw)
        self._asked = raw
        return self._told

    def learn_one(self, raw: float, outcome: int) -> None:
        """Learn the outcome of a round with that raw forecast."""
        if type(raw) is not float or not 0.0 <= raw <= 1.0:
            raw = check.probability(raw)
        if type(outcome) is not int or not 0 <= outcome <= 1:
            outcome = check.outcome(outcome)
        words = self._plain or self._words()
        # The notes are still those of the last prediction.
        told = self._told if raw == self._asked else self._predict(words, words, 0, raw)
        self._asked = NOTHING
        self._learn(words, words, 0, raw, told, outcome)
        self._rounds += 1

    def interval_one(self, raw: float) -> tuple[float, float]:
        """Return the interval that an interval forecaster announces for a raw forecast."""
        interval = getattr(self._transform, "interval", None)
        if interval is None:
            raise InvalidType(
                f"transform must be one that announces intervals, got {self._transform.name!r}"
            )
        low, high = interval(self._words(), check.probability(raw))
        return low, high

    def replay(self, raw: Any, outcomes: Any) -> Reals:
        """Play a batch of rounds; return the forecasts, each made before its outcome was used."""
        raws, told = check.probabilities(raw), check.outcomes(outcomes)
        check.same_length(raw=raws, outcomes=told)
        forecasts = np.empty(len(raws))
        self._asked = NOTHING
        machine = self._batch_function(len(raws))
        if machine is not None:
            flat = self._array()
            machine(flat, flat.view(np.float64), raws, told, forecasts)
        else:
            words = self._words()
            self._transform.kernel.replay(words, words, raws.tolist(), told.tolist(), forecasts)
        self._rounds += len(raws)
        return forecasts

    def __repr__(self) -> str:
        return f"Online({self._transform!r}, rounds={self._rounds})"

    def _batch_function(self, rounds: int) -> Any:
        """Return the compiled batch if it is worth it: for long ones, or once it exists."""
        kernel = self._transform.kernel
        made = kernel.__dict__.get("machine")
        return made if made is not None or rounds <= SHORT else kernel.machine

    def _words(self) -> list[Any]:
        """Go over to the list, on which plain Python is fast."""
        if self._plain is None:
            reals = self._flat.view(np.float64)
            mixed = np.where(self._real, reals.astype(object), self._flat.astype(object))
            self._plain = mixed.tolist()
        return self._plain

    def _array(self) -> Words:
        """Go over to the array, on which compiled code works."""
        if self._plain is not None:
            self._flat, self._plain = flat_of(self._plain, self._real), None
        return self._flat

    def _document(self) -> Document:
        words = self._array().copy()
        words[self._notes] = 0
        settings = {**self._transform.description, "rounds": self._rounds}
        return Document(KIND, settings, {"words": words})

    def _restore(self, document: Document) -> None:
        Online.__init__(self, from_description(document.settings))
        self._rounds = check.whole(document.settings["rounds"], "rounds")
        words = document.arrays["words"].copy()
        self._transform.verify(words)
        words[self._notes] = 0
        self._flat, self._plain = words, None
