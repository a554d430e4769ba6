"""What goes in and out, as types: the interface's document is made of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias, TypeVar

from msgspec import NODEFAULT, UNSET, Meta, Struct, UnsetType, defstruct, field
from msgspec.structs import fields

from calibrant.summary import kinds

# Not of dots alone, which mean something else in an address.
Name = Annotated[
    str, Meta(pattern=r"^(?!\.{1,2}$)[A-Za-z0-9_.-]{1,64}$", description="Name of a stream.")
]
Id = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=256,
        description="The caller's name for a forecast, up to 256 bytes of UTF-8 without control "
        "characters.  What was reported under an id is remembered for ever.",
    ),
]
Probability = Annotated[float, Meta(ge=0, le=1)]
Label = Annotated[str, Meta(min_length=1, max_length=256)]
Raw = (
    Probability
    | Annotated[
        list[Probability],
        Meta(max_length=1000, description="A probability for each class; they sum to 1."),
    ]
)
Drawn = float | list[float]
Outcome = (
    Annotated[int, Meta(ge=0, le=1)]
    | Annotated[str, Meta(max_length=256, description="The name of a class, where there are some.")]
)
Key = str | Annotated[int, Meta(ge=-(1 << 53), le=1 << 53)]


HOLDS: Final[dict[str, Any]] = {
    "text": str,
    "texts": list[Label],
    "real": float,
    "reals": list[float],
}
"""What the fields may hold that kinds declare."""
Field: TypeAlias = tuple[Any, ...]
T = TypeVar("T", bound=Struct)


def declared(of: Callable[[Any], list[Field]], after: str) -> Callable[[type[T]], type[T]]:
    """Give a struct, behind one of its fields, those that the services of kinds declare."""
    services = [kind.service for kind in reversed([*kinds]) if kind.service is not None]
    more = [each for service in services for each in of(service)]

    def add(made: type[T]) -> type[T]:
        own = [_field(each) for each in fields(made)]
        at = 1 + [name for name, *_ in own].index(after)
        told: Any = {"forbid_unknown_fields": made.__struct_config__.forbid_unknown_fields}
        told |= {"module": __name__, "namespace": {"__doc__": made.__doc__}, "kw_only": True}
        grown: Any = defstruct(made.__name__, [*own[:at], *more, *own[at:]], **told)
        return grown  # type: ignore[no-any-return]

    return add


def _field(told: Any) -> Field:
    if told.default_factory is not NODEFAULT:
        return told.name, told.type, field(default_factory=told.default_factory)
    return (told.name, told.type) if told.required else (told.name, told.type, told.default)


def _settings(service: Any) -> list[Field]:
    told = service.settings.items()
    made = {name: Annotated[HOLDS[holds], Meta(**true)] for name, (holds, true) in told}
    return [(name, each | None, None) for name, each in made.items()]


def _answers(service: Any) -> list[Field]:
    return [(name, HOLDS[holds] | UnsetType, UNSET) for name, holds in service.answers.items()]


@declared(_settings, after="keyed")
class StreamIn(Struct, forbid_unknown_fields=True):
    """What a stream shall be."""

    method: Annotated[str, Meta(description="A calibrator's name, or `calibrant`.")] = "calibrant"
    resolution: Annotated[int, Meta(ge=1, le=1000)] | None = None
    buckets: Annotated[int, Meta(ge=1, le=1000)] | None = None
    loss: str = "squared"
    raw_safe: Annotated[float, Meta(gt=0, le=1)] | None = None
    parameters: Annotated[
        dict[str, float | int | str],
        Meta(
            description="Those of the method, by name: `half_life` and `unit` of `fading`, which "
            "forgets."
        ),
    ] = {}
    keyed: bool = False
    reveal: Annotated[
        Literal["forecast", "outcome"],
        Meta(
            description="When the draw is revealed: with the forecast, or, after a commitment "
            "to it, with the outcome."
        ),
    ] = "forecast"
    horizon: Annotated[
        int, Meta(ge=1, le=1 << 40, description="Newer forecasts after which one expires.")
    ] = 1_000_000
    unknown: Annotated[
        Literal["refuse", "keep"],
        Meta(description="What to do with an outcome whose forecast has not been made yet."),
    ] = "refuse"
    most_open: Annotated[int, Meta(ge=1, le=1 << 40)] | None = None
    keep: (
        Annotated[float, Meta(gt=0, description="Seconds after which ids may be purged.")] | None
    ) = None
    alarm: Annotated[
        float, Meta(gt=0, lt=1, description="Largest probability of ever raising a false alarm.")
    ] = 0.05
    patience: Annotated[
        int,
        Meta(
            ge=1,
            le=1_000_000,
            description="Newer forecasts after which the alarm stops waiting for an outcome.",
        ),
    ] = 1000
    seed: (
        Annotated[int, Meta(description="Makes draws repeatable, at the cost of their secrecy.")]
        | None
    ) = None


class StreamOut(Struct):
    """A stream as it is."""

    name: str
    settings: dict[str, Any]
    issued: int
    learned: int
    open: int
    early: int
    sequence: int
    deleted: bool = False


class ForecastIn(Struct, forbid_unknown_fields=True):
    """A raw forecast."""

    id: Id
    raw: Raw
    key: Key | None = None
    time: float | None = None
    groups: Annotated[list[Label], Meta(max_length=1000)] = []


class Mixture(Struct):
    """The points that could have been drawn, with their probabilities."""

    values: list[float]
    weights: list[float]


@declared(_answers, after="sequence")
class ForecastOut(Struct, kw_only=True):
    """A calibrated forecast: the draw carries the promise, the mean is sharper and does not.

    With classes, forecast and mean are lists, the first class is named with its probability, as
    drawn and on average, and the mixture is of that; classwise has the draw of each class.  Where
    the draw is told with the outcome, there is a commitment in its place.
    """

    id: str
    forecast: Drawn | UnsetType = UNSET
    mean: Drawn
    mixture: Mixture
    sequence: int
    commitment: str | UnsetType = UNSET


class OutcomeIn(Struct, forbid_unknown_fields=True):
    """What happened."""

    id: Id
    outcome: Outcome
    time: float | None = None


@declared(lambda of: [each for each in _answers(of) if each[0] in of.draws], after="salt")
class Revealed(Struct):
    """A draw that there was a commitment to, with the salt that proves it."""

    forecast: Drawn
    salt: str


class OutcomeOut(Struct):
    """What became of an outcome."""

    id: str
    status: Literal["learned", "early", "repeated"]
    sequence: int
    revealed: Revealed | UnsetType = UNSET


class CorrectionIn(Struct, forbid_unknown_fields=True):
    """What happened instead."""

    outcome: Outcome


class CorrectionOut(Struct):
    """A corrected outcome."""

    id: str
    status: Literal["corrected", "repeated"]
    outcome: int | str
    sequence: int


@declared(_answers, after="groups")
class Known(Struct, kw_only=True):
    """A forecast and what became of it; see ForecastOut."""

    id: str
    raw: Drawn
    forecast: Drawn | UnsetType = UNSET
    mean: Drawn
    mixture: Mixture
    status: Literal["open", "learned", "corrected", "expired"]
    sequence: int
    key: Key | None = None
    time: float | None = None
    outcome: int | str | None = None
    groups: list[str | int] | UnsetType = UNSET
    commitment: str | UnsetType = UNSET
    salt: str | UnsetType = UNSET


class Gone(Struct):
    """A forecast whose outcome is not waited for any more."""

    id: str
    status: Literal["expired", "repeated"]
    sequence: int


class KeyOut(Struct):
    """What was measured in a key's stream, and what is promised."""

    key: Key
    rounds: int
    open: int
    c1: float | None
    c2: float | None
    promised: float | None
    holds: bool


class Bucket(Struct):
    """Forecasts in an interval: how many, what was said, what happened, and a band around that."""

    lower: float
    upper: float
    count: int
    mean_forecast: float
    mean_outcome: float
    band_low: float
    band_high: float


class CurveOut(Struct):
    """Reliability of raw, drawn and mean forecasts, in those of 20 buckets that were used."""

    rounds: int
    confidence: float
    raw: list[Bucket]
    forecast: list[Bucket]
    mean: list[Bucket]


class AlarmOut(Struct):
    """An alarm: whose, at the outcome of which forecast it rang, and since when about it is off."""

    name: Literal["raw", "calibrated"]
    number: int
    time: float | None
    issued: int
    since: int
    since_time: float | None


class AlarmsOut(Struct):
    """What the alarms of a stream say."""

    alarm: Annotated[float, Meta(description="Largest probability of ever raising a false alarm.")]
    learning: Annotated[
        int, Meta(description="Rounds in which recalibrated forecasts are not judged.")
    ]
    judged: int
    missing: Annotated[int, Meta(description="Outcomes that were not known in time.")]
    waiting: int
    horizon: Annotated[int, Meta(description="Newer forecasts that an outcome is waited for.")]
    assumptions: Annotated[list[str], Meta(description="What the chance of a false alarm needs.")]
    alarms: list[AlarmOut]


class PreviewOut(Struct):
    """What the next forecast would be drawn from; `fallback` says that it is the raw one."""

    raw: float
    mean: float
    mixture: Mixture
    fallback: bool


class Taken(Struct):
    """A state that was handed over."""

    status: Literal["taken", "repeated"]
    sequence: int


class Health(Struct):
    """Whether the service is alive, or ready."""

    ready: bool
    trouble: str = ""


class Problem(Struct, omit_defaults=True):
    """What went wrong, as in RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    id: str | UnsetType = UNSET
    stored: dict[str, Any] | UnsetType = UNSET
    told: dict[str, Any] | UnsetType = UNSET


class OneOrMany(NamedTuple):
    """Stands for an answer, or for many answers some of which may be problems."""

    type: type[Struct]


ForecastsIn = ForecastIn | list[ForecastIn]
ForecastsOut = OneOrMany(ForecastOut)
OutcomesIn = OutcomeIn | list[OutcomeIn]
OutcomesOut = OneOrMany(OutcomeOut)
