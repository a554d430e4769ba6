"""River's classifiers and regressors, recalibrated as they learn."""

from __future__ import annotations

import inspect
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, Final, Self

from river import base, conf

from calibrant.core import check
from calibrant.errors import InvalidType
from calibrant.integrations.features import Names, Scored, ToldStream, names_of, yes_no
from calibrant.integrations.labels import Announced, First, LabelStreams, Scores, Streams
from calibrant.integrations.shared import Shared, SharedLabels, Store, check_alone
from calibrant.regression import ConformalInterval


class RecalibratedClassifier(base.Wrapper, base.Classifier):
    """Recalibrate the probabilities of any River classifier while it learns.

    The wrapped model's score is read before the model learns the outcome, and a recalibrator
    learns which probability such scores deserve.  Works for yes and no (True and False, or 1
    and 0) and for any other labels, which may turn up at any time: these are corrected and
    calibrated together by :class:`calibrant.classes.ClassCalibrant`, where a new label counts as
    one that was there from the start and never came.

    Parameters
    ----------
    classifier
        The model to wrap; a pipeline is fine.
    method
        ``"calibrant"``, the default of this package (:class:`calibrant.Calibrant`), or the
        name of a calibrator for :class:`calibrant.Recalibrator`, such as ``"foster_hart"``.
    seed
        What the draws depend on; None takes entropy from the system.
    context
        Names of features that one more expert of :class:`calibrant.Calibrant` reads besides the
        score: numbers and strings, where a name that is missing or None is not known.  Labels
        are yes and no.
    store
        Where a stream lies that several processes share: a :class:`calibrant.client.Client`, the
        address of a service that asks for no token, or a :class:`calibrant.Journal` without keys.
        The stream must be there, with a method, options and coins of its own.  Labels are yes
        and no.
    stream
        Which stream of a service.
    **options
        Further settings of that class: ``resolution``, ``buckets``, ``prior``, ``loss``, ...

    Notes
    -----
    `predict_proba_one` gives the mean: sharp, steady, and without a promise against
    an adversary.  `sample_proba_one` gives the draw, which carries the guarantee if its
    outcome is learned before the next round.  Neither changes anything.  Where outcomes come
    late, `learn_one` reads the score again; to have the very forecast learned that was announced,
    take it with `forecast_one` and give it to `learn_one`.

    With a store, each process has its own wrapped model, and what is learned about scores is in
    the stream alone: clones, copies and pickles share it.  `forecast_one` tells the id, with which
    any process may give the outcome to `learn_one`.  `sample_proba_one` is refused: a draw that
    somebody looked at and did not announce would be known before its round.

    Numba, if it is installed, takes over after 20,000 rounds, or when `compile` is called.

    References
    ----------
    Kuleshov and Ermon (2017), "Estimating Uncertainty Online Against an Adversary".

    Examples
    --------
    >>> from river import datasets, evaluate, linear_model, metrics, preprocessing
    >>> model = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    >>> model = RecalibratedClassifier(model, seed=7)
    >>> evaluate.progressive_val_score(datasets.Phishing().take(500), model, metrics.LogLoss())
    LogLoss: ...
    """

    # What was pickled before there were these has none.
    context: str | Sequence[Hashable] | None = None
    _names: Names = ()
    store: Store = None
    stream = "main"

    def __init__(
        self,
        classifier: base.Classifier,
        method: str = "calibrant",
        seed: int | None = None,
        *,
        context: str | Sequence[Hashable] | None = None,
        store: Store = None,
        stream: str = "main",
        **options: Any,
    ) -> None:
        self.classifier = classifier
        self.method = method
        self.seed = seed
        self.context = context
        self.store = store
        self.stream = stream
        self.options = options
        self._names = names_of(context)
        self._streams = self._made()
        self._read: tuple[Any, Scores, First] | None = None

    def _made(self) -> Streams:
        own = self.method, self.seed, self.options
        if self.store is not None:
            told = {"context": self.context} if self._names else {}
            check_alone(self.method, self.options | told)
            return SharedLabels(Shared(self.store, self.stream))
        return ToldStream(self._names, *own) if self._names else LabelStreams(*own)

    @property
    def _wrapped_model(self) -> base.Classifier:
        return self.classifier

    @property
    def _multiclass(self) -> bool:
        # No expert reads the context of more than two classes.
        return not self._names and super()._multiclass

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        from river import linear_model, naive_bayes, preprocessing

        linear = preprocessing.StandardScaler() | linear_model.LogisticRegression()
        yield {"classifier": linear, "seed": 1}
        yield {"classifier": naive_bayes.GaussianNB(), "method": "foster_hart"}

    def predict_proba_one(self, x: Any, **kwargs: Any) -> Scores:
        """Return the expected probability of each label, as plain floats."""
        score = self._scored(x, kwargs)
        mean, first = self._streams.look(score, True)
        # Learning the same features next need not ask the model again.
        self._read = None if kwargs or type(x) is not dict else (x.copy(), score, first)
        return mean

    def sample_proba_one(self, x: Any, **kwargs: Any) -> Scores:
        """Return the drawn probability of each label: the forecast that carries the guarantee.

        The same until something is learned.
        """
        return self._streams.look(self._scored(x, kwargs), False)[0]

    def forecast_one(self, x: Any, **kwargs: Any) -> Announced:
        """Announce a forecast whose outcome may come late, and keep a ticket for it.

        Give it to :meth:`learn_one` with the outcome.
        """
        return self._streams.forecast(self._scored(x, kwargs))

    def _scored(self, x: Any, kwargs: dict[str, Any]) -> Any:
        """Return the model's score, beside what is known of these features if that is read."""
        ask = self.classifier.predict_proba_one
        # River spends less on a round than on ten calls: nothing is passed on for nothing.
        score = ask(x, **kwargs) if kwargs else ask(x)
        return Scored.of(score, x, self._names) if self._names else score

    def learn_one(
        self, x: Any, y: Any, announced: Announced | str | None = None, **kwargs: Any
    ) -> None:
        """Learn an outcome: the recalibrator from the score before, and the wrapped model.

        Parameters
        ----------
        x, y
            Features and label.
        announced
            What :meth:`forecast_one` gave for these features, if there was such a call; in a
            shared stream its id is enough.
        **kwargs
            For the wrapped model.
        """
        learn = self.classifier.learn_one
        if announced is not None:
            self._observe(announced, y)
            learn(x, y, **kwargs)
        else:
            read, stored = self._read, self.store is not None
            if read is not None and read[0] == x:
                _, score, first = read
            else:
                score = self._scored(x, {})
                first = self._streams.first(score)
            if self._names:
                yes_no(y)
            if stored:
                # First: a store may be away, and then this call may be made again.
                self._streams.learn(first, score, y)
            learn(x, y, **kwargs) if kwargs else learn(x, y)
            if not stored:
                self._streams.learn(first, score, y)
        self._read = None

    def _observe(self, announced: Announced | str, y: Any) -> None:
        if isinstance(self._streams, SharedLabels) and isinstance(announced, str):
            self._streams.observe(announced, y)
        else:
            self._streams.observe(_checked(announced), y)

    def compile(self) -> Self:
        """Let Numba compile the steps now rather than after 20,000 rounds."""
        self._streams.compile()
        return self

    @property
    def recalibrators(self) -> dict[Any, Any]:
        """The recalibrator by label: for certificates, and for a look in a notebook.

        Of yes and no it is that of True.  Other labels have one in common, with the labels in
        the order of its classes; its last class stands for labels that never came.  Of a shared
        stream it is a copy, as it is now.
        """
        return self._streams.engines()

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_read": None}


def _checked(announced: Any) -> Announced:
    if not isinstance(announced, Announced):
        raise InvalidType(f"announced must be what forecast_one gave, got {announced!r}")
    return announced


METHOD: Final[str] = inspect.signature(ConformalInterval).parameters["method"].default


class RecalibratedRegressor(base.Wrapper, base.Regressor):
    """Give any River regressor intervals that cover what they promise, also under drift.

    The wrapped model's prediction is read before the model learns the outcome, and a
    conformal method learns how far above and below it the outcomes lie.  Predictions stay the
    model's; where these are off to one side, an interval need not hold its prediction.

    Parameters
    ----------
    regressor
        The model to wrap; a pipeline is fine.
    confidence_level
        Which part of outcomes should be inside.
    method
        The name of a method of :class:`calibrant.regression.ConformalInterval`, whose default is
        the default here.
    **options
        Options of the method.

    Notes
    -----
    The coverage tends to the level for any sequence of outcomes, in the long run and not given
    what is known in a round; ``interval.certificate()`` has the bound.  Where outcomes come late,
    `learn_one` reads the prediction again.

    References
    ----------
    Gibbs and Candes (2021), "Adaptive conformal inference under distribution shift".
    Zaffran et al. (2022), "Adaptive conformal predictions for time series".

    Examples
    --------
    >>> from river import datasets, linear_model, preprocessing, stats
    >>> model = preprocessing.StandardScaler() | linear_model.LinearRegression(intercept_lr=0.1)
    >>> model = RecalibratedRegressor(model, confidence_level=0.9)
    >>> covered = stats.Mean()
    >>> for x, y in datasets.TrumpApproval():
    ...     covered.update(y in model.predict_one(x, with_interval=True))
    ...     model.learn_one(x, y)
    >>> round(covered.get(), 2)
    0.9
    """

    def __init__(
        self,
        regressor: base.Regressor,
        confidence_level: float = 0.9,
        method: str = METHOD,
        **options: Any,
    ) -> None:
        self.regressor = regressor
        self.confidence_level = confidence_level
        self.method = method
        self.options = options
        self._interval = ConformalInterval(method, coverage=confidence_level, seed=0, **options)

    @property
    def _wrapped_model(self) -> base.Regressor:
        return self.regressor

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        from river import linear_model, preprocessing

        yield {"regressor": preprocessing.StandardScaler() | linear_model.LinearRegression()}

    @property
    def interval(self) -> ConformalInterval:
        """What was learned about the model's errors."""
        return self._interval

    def predict_one(self, x: Any, with_interval: bool = False, **kwargs: Any) -> Any:
        """Return the wrapped model's prediction, or an interval around it.

        Parameters
        ----------
        x
            A dictionary of features.
        with_interval
            Whether to return a ``river.conf.Interval`` instead of a number.
        **kwargs
            For the wrapped model.
        """
        centre = self.regressor.predict_one(x, **kwargs)
        if not with_interval:
            return centre
        low, high = self._interval.predict_one(float(centre))
        # Ends that cross mean that even a point covers too much.
        low, high = (low, high) if low <= high else (centre, centre)
        return conf.Interval(lower=low, upper=high)

    def learn_one(self, x: Any, y: float, **kwargs: Any) -> None:
        """Learn an outcome: its distance to the prediction before, and the wrapped model."""
        told = check.real(y, "y")
        centre = check.real(self.regressor.predict_one(x), "prediction")
        self.regressor.learn_one(x, y, **kwargs)
        # Not learn_one: rounds of outcomes that come late may overlap.
        self._interval.observe(self._interval.forecast(centre), told)
