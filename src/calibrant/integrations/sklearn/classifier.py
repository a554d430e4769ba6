"""A classifier whose probabilities are recalibrated as it learns."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from itertools import compress
from numbers import Integral
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import check_cv, cross_val_predict
from sklearn.utils import check_random_state, column_or_1d, get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from calibrant.core.arrays import Reals, Words
from calibrant.errors import InvalidInput
from calibrant.integrations.live import Engine, engine_for, pairs, preview_rows
from calibrant.integrations.live import learn_rows as learn_alone
from calibrant.integrations.shared import Shared, Store, check_alone, no_draws
from calibrant.integrations.sklearn.rows import (
    aligned,
    as_table,
    columns_of,
    keys_of,
    response_of,
    scores_of,
)
from calibrant.recalibrate.context import Known


def numbered(y: NDArray[Any], classes: NDArray[Any]) -> Words:
    """Return labels as numbers of columns; raise if one is no known class.

    >>> numbered(np.array(["c", "a"]), np.array(["a", "b", "c"])).tolist()
    [2, 0]
    """
    strange = ~np.isin(y, classes)
    if strange.any():
        told = f"y must hold classes among {classes.tolist()}, got {y[strange][0].item()!r}"
        raise ValueError(told)
    return np.searchsorted(classes, y).astype(np.int64)


Numbers: TypeAlias = Words
Rounds: TypeAlias = tuple[Reals, Numbers, Known]


class Announcement(NamedTuple):
    """Rows that were announced in a store, and wait for their outcomes.

    Attributes
    ----------
    ids
        Their names, under which outcomes are told.
    sample
        The drawn probabilities: what to announce against an adversary.
    mean
        The expected probabilities: sharper, and without the guarantee.
    """

    ids: list[str]
    sample: Reals
    mean: Reals


class OnlineCalibratedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Calibrate a classifier once, and go on calibrating with every batch that comes.

    ``fit`` learns from out-of-fold scores, as ``CalibratedClassifierCV`` does; ``partial_fit``
    then scores each batch before anything learns from it, and lets recalibrator and estimator
    learn.  An estimator without ``partial_fit`` stays as it was fitted first, and a
    ``FrozenEstimator`` is never fitted at all; the recalibrator goes on alone.

    Parameters
    ----------
    estimator : estimator instance, default=None
        The classifier; by default ``SGDClassifier(loss="log_loss")``.
    method : str, default="calibrant"
        ``"calibrant"``, the default of this package (:class:`calibrant.Calibrant`), or the
        name of a calibrator for :class:`calibrant.Recalibrator`, such as ``"foster_hart"``.
    context : str, int or array-like of these, default=None
        Columns of ``X``, by name or by number, that one more expert of :class:`calibrant.Calibrant`
        reads besides the score: numbers and strings; nan and None are not known.  There are two
        classes.
    cv : int or splitter, default=5
        How ``fit`` gets scores that the estimator was not fitted on; not used if it is frozen.
    options : dict, default=None
        Further settings of the recalibrator: ``resolution``, ``buckets``, ``loss``, ...
    random_state : int, RandomState instance or None, default=None
        What the draws depend on, and the default estimator.
    store : Client, str or Journal, default=None
        Where a stream lies that several processes share: a :class:`calibrant.client.Client`, the
        address of a service that asks for no token, or a :class:`calibrant.Journal` without keys.
        The stream must be there, with a method, options and coins of its own.  There are two
        classes.
    stream : str, default="main"
        Which stream of a service.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels.
    estimator_ : estimator
        The fitted estimator.
    recalibrator_ : Recalibrator, ClassCalibrant or Shared
        What was learned about its scores: certificate, state, and a picture in notebooks.  With a
        store it is the way there, and ``recalibrator_.state()`` a copy of the recalibrator.
    n_features_in_ : int
        If the estimator knows it.
    feature_names_in_ : ndarray
        If the estimator knows them.

    Notes
    -----
    ``predict_proba`` gives the mean: deterministic, sharp, without a promise against an
    adversary.  ``sample_proba`` gives the draw, which carries the guarantee for a row whose
    outcome is learned before the next row is asked for.  Rows are rounds in their order.
    Sample weights go to the estimator; rows of weight 0 are no rounds.

    With a store, ``fit`` and ``partial_fit`` add rounds to the stream, and nothing in it is
    forgotten: clones, copies and pickles share it.  ``forecast`` announces rows and tells their
    ids, and ``observe`` takes the outcomes, in any process and at any time.  ``sample_proba`` is
    refused: a draw that somebody looked at and did not announce would be known before its round.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = make_classification(2_000, random_state=0)
    >>> model = OnlineCalibratedClassifier(GaussianNB(), random_state=7).fit(X[:1000], y[:1000])
    >>> model = model.partial_fit(X[1000:], y[1000:])
    >>> model.recalibrator_.rounds, model.predict_proba(X[:3]).shape
    (2000, (3, 2))
    """

    # What was pickled before there were these has none.
    context: Any = None
    store: Store = None
    stream = "main"

    def __init__(
        self,
        estimator: Any = None,
        *,
        method: str = "calibrant",
        context: Any = None,
        cv: Any = 5,
        options: dict[str, Any] | None = None,
        random_state: Any = None,
        store: Store = None,
        stream: str = "main",
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.context = context
        self.cv = cv
        self.options = options
        self.random_state = random_state
        self.store = store
        self.stream = stream

    # ----------------------------------------------------------------- learning

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> Self:
        """Fit the estimator, and calibrate it on scores of rows that it was not fitted on.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights for the estimator; rows of weight 0 are no rounds.
        **fit_params : dict
            For the estimator's ``fit``.
        """
        X, y, sample_weight = _checked(X, y, sample_weight)
        self._begin(X, y, np.unique(y), sample_weight, fit_params)
        return self

    def _begin(
        self, X: Any, y: Any, classes: NDArray[Any], sample_weight: Any, given: dict[str, Any]
    ) -> None:
        """Fit the estimator, or take it as it is, and a new recalibrator."""
        engine, outcomes = self._engine(classes), numbered(y, classes)
        fitted, table = self._firstscores_of(X, y, classes, sample_weight, given)
        learn_rows(engine, *self._counted(X, table, outcomes, sample_weight))
        self._keep(fitted, engine, classes)

    def _firstscores_of(
        self, X: Any, y: Any, classes: NDArray[Any], sample_weight: Any, given: dict[str, Any]
    ) -> tuple[Any, Reals]:
        """Return the estimator, fitted, and scores that it did not learn from."""
        estimator = self._get_estimator()
        if isinstance(estimator, FrozenEstimator):
            check_is_fitted(estimator)
            return estimator, scores_of(estimator, X, classes)
        seen, params = np.unique(y), self._params("fit", sample_weight, given)
        if len(seen) < 2:
            raise ValueError(f"y must hold at least two classes, got one class: {seen.tolist()}")
        fitted, name = clone(estimator), response_of(estimator)
        folds = check_cv(self.cv, y, classifier=True)
        held_out = cross_val_predict(fitted, X, y, cv=folds, method=name, params=params)
        return fitted.fit(X, y, **params), aligned(as_table(name, held_out), seen, classes)

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        sample_weight: Any = None,
        **partial_fit_params: Any,
    ) -> Self:
        """Score a batch, then let recalibrator and estimator learn from it.

        Parameters
        ----------
        X, y : array-like
            Features and labels, in the order of time.
        classes : array-like of shape (n_classes,), default=None
            All classes that can come; needed in the first call, unless the estimator is frozen.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights for the estimator; rows of weight 0 are no rounds.
        **partial_fit_params : dict
            For the estimator's ``partial_fit``.
        """
        X, y, sample_weight = _checked(X, y, sample_weight)
        known, given = self._known(classes), partial_fit_params
        if hasattr(self, "estimator_"):
            outcomes, table = numbered(y, known), scores_of(self.estimator_, X, known)
            rounds = self._counted(X, table, outcomes, sample_weight)
            shared = self.store is not None
            if shared:
                # First: a store may be away, and then this call may be made again.
                learn_rows(self.recalibrator_, *rounds)
            self._teach(self.estimator_, X, y, sample_weight, given)
            if not shared:
                learn_rows(self.recalibrator_, *rounds)
        elif _learns_along(estimator := self._get_estimator()):
            # Nobody has learned anything yet that could be scored.
            numbered(y, known)
            engine, fresh = self._engine(known), clone(estimator)
            self._teach(fresh, X, y, sample_weight, given | {"classes": known})
            self._keep(fresh, engine, known)
        else:
            self._begin(X, y, known, sample_weight, given)
        return self

    def _teach(self, estimator: Any, X: Any, y: Any, weights: Any, given: dict[str, Any]) -> None:
        """Let the estimator learn a batch, if it can."""
        if _learns_along(estimator):
            classes = {name: given.pop(name) for name in ("classes",) if name in given}
            params = self._params("partial_fit", weights, given)
            estimator.partial_fit(X, y, **classes, **params)

    def _known(self, classes: Any) -> NDArray[Any]:
        """Return all classes: those of earlier calls, those given, or a frozen estimator's."""
        given = None if classes is None else np.unique(column_or_1d(classes))
        if hasattr(self, "classes_"):
            if given is not None and not np.array_equal(given, self.classes_):
                told = f"the same as in earlier calls, {self.classes_.tolist()}"
                raise ValueError(f"classes must be {told}, got {given.tolist()}")
            return np.asarray(self.classes_)
        if given is not None:
            return given
        if isinstance(self.estimator, FrozenEstimator):
            return np.asarray(self.estimator.classes_)
        raise ValueError("classes must be passed on the first call to partial_fit.")

    # -------------------------------------------------------------- forecasting

    def predict_proba(self, X: Any) -> Reals:
        """Return the expected probability of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            The same for the same rows until something is learned.
        """
        check_is_fitted(self)
        rows = scores_of(self.estimator_, X, self.classes_)
        return mean_rows(self.recalibrator_, rows, columns_of(X, self.context))

    def sample_proba(self, X: Any) -> Reals:
        """Return the drawn probability of each class: the forecast that carries the guarantee.

        Each row is drawn as the very next round, with a coin of its own; the same until
        something is learned.
        """
        check_is_fitted(self)
        if isinstance(self.recalibrator_, Shared):
            raise no_draws("forecast")
        rows = scores_of(self.estimator_, X, self.classes_)
        return preview_rows(self.recalibrator_, rows, columns_of(X, self.context))[0]

    def forecast(self, X: Any, ids: Sequence[str] | None = None) -> Announcement:
        """Announce rows in the store, whose outcomes may come late.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        ids : list of str, default=None
            Names of the forecasts; to ask the same again under a name gives the same answer.  By
            default random ones.
        """
        shared = self._shared()
        made = shared.announce(scores_of(self.estimator_, X, self.classes_)[:, 1].tolist(), ids)
        drawn = pairs(np.array([one.value for one in made]))
        mean = pairs(np.array([one.mean for one in made]))
        return Announcement([one.id for one in made], drawn, mean)

    def observe(self, ids: Sequence[str], y: Any) -> Self:
        """Tell the outcomes of rows that were announced, here or elsewhere.

        The same outcome again does no harm, and another one is refused.

        Parameters
        ----------
        ids : list of str
            Names of the forecasts.
        y : array-like of shape (n_samples,)
            Labels.
        """
        shared = self._shared()
        shared.tell(list(ids), numbered(column_or_1d(y), self.classes_).tolist())
        return self

    def _shared(self) -> Shared:
        check_is_fitted(self)
        if not isinstance(self.recalibrator_, Shared):
            raise InvalidInput("store must be given to announce forecasts, got None")
        return self.recalibrator_

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class with the highest expected probability."""
        chances = self.predict_proba(X)
        return np.asarray(self.classes_[chances.argmax(axis=1)])

    # ------------------------------------------------------------------ manners

    def get_metadata_routing(self) -> MetadataRouter:
        """Return which metadata goes where: to ``fit`` and ``partial_fit`` of the estimator."""
        both = MethodMapping().add(caller="fit", callee="fit")
        both.add(caller="partial_fit", callee="partial_fit")
        router = MetadataRouter(owner=self).add_self_request(self)
        return router.add(estimator=self._get_estimator(), method_mapping=both)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self._get_estimator()).input_tags.sparse
        # No expert reads the context of more than two classes.
        tags.classifier_tags.multi_class = self.context is None
        return tags

    def _get_estimator(self) -> Any:
        if self.estimator is None:
            return SGDClassifier(loss="log_loss", random_state=self.random_state)
        return self.estimator

    def _engine(self, classes: NDArray[Any]) -> Engine | Shared:
        keys, options = keys_of(self.context), dict(self.options or {})
        if keys and len(classes) > 2:
            told = "Only binary classification is supported. The type of the target is multiclass"
            raise ValueError(f"{told}: context must be None for classes {classes.tolist()}")
        if self.store is not None:
            check_alone(self.method, options | ({"context": self.context} if keys else {}))
            if len(classes) > 2:
                told = f"y must hold two classes where there is a store, got {classes.tolist()}"
                raise ValueError(told)
            return Shared(self.store, self.stream)
        seed = self.random_state
        if seed is not None and not isinstance(seed, Integral):
            seed = int(check_random_state(seed).randint(1 << 31))
        return engine_for(max(len(classes), 2), self.method, seed, options, len(keys))

    def _counted(self, X: Any, table: Reals, outcomes: Numbers, weights: Any) -> Rounds:
        """Return scores, outcomes and context of rows, but for those of weight 0."""
        context = columns_of(X, self.context)
        if weights is None:
            return table, outcomes, context
        kept = np.asarray(weights) != 0
        if context is not None:
            context = {name: list(compress(column, kept)) for name, column in context.items()}
        return table[kept], outcomes[kept], context

    def _params(self, caller: str, sample_weight: Any, given: dict[str, Any]) -> dict[str, Any]:
        """Return what goes to the estimator's method of that name."""
        if get_config()["enable_metadata_routing"]:
            routed = process_routing(self, caller, sample_weight=sample_weight, **given)
            return dict(routed.estimator[caller])
        if sample_weight is None:
            return given
        accepted = inspect.signature(getattr(self._get_estimator(), caller)).parameters
        if "sample_weight" not in accepted:
            name = type(self._get_estimator()).__name__
            raise TypeError(f"sample_weight must be None: {name}.{caller} takes none")
        return given | {"sample_weight": sample_weight}

    def _keep(self, estimator: Any, engine: Engine | Shared, classes: NDArray[Any]) -> None:
        self.estimator_, self.recalibrator_, self.classes_ = estimator, engine, classes
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(estimator, name):
                setattr(self, name, getattr(estimator, name))


def learn_rows(
    engine: Engine | Shared, rows: Reals, outcomes: Numbers, context: Known = None
) -> None:
    """Play rows in their order, wherever the recalibrator is."""
    if isinstance(engine, Shared):
        engine.learn(rows[:, 1].tolist(), outcomes.tolist())
    else:
        learn_alone(engine, rows, outcomes, context)


def mean_rows(engine: Engine | Shared, rows: Reals, context: Known = None) -> Reals:
    """Return the mean of every row as the very next round, wherever the recalibrator is."""
    if isinstance(engine, Shared):
        return pairs(np.clip(engine.means(rows[:, 1].tolist()), 0.0, 1.0))
    return preview_rows(engine, rows, context)[1]


def _checked(X: Any, y: Any, sample_weight: Any) -> tuple[Any, NDArray[Any], Any]:
    check_classification_targets(y)
    X, y, sample_weight = indexable(X, y, sample_weight)
    return X, np.asarray(column_or_1d(y, warn=True)), sample_weight


def _learns_along(estimator: Any) -> bool:
    return not isinstance(estimator, FrozenEstimator) and hasattr(estimator, "partial_fit")
