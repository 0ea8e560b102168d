"""Single events, as dictionaries: learning and predicting them without the checks of a batch."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Mapping
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if

from polyfm.data.hashing import hash_rows
from polyfm.data.rows import row_numbers
from polyfm.estimators import _parts
from polyfm.estimators._columns import columns_of, first_columns
from polyfm.estimators._transaction import all_or_nothing
from polyfm.estimators._validation import Labelled
from polyfm.losses import contract as losses

_FIRST = row_numbers(1)
Event = Mapping[str, Any]


def _takes_events(estimator: Any) -> bool:
    """Say whether an estimator learns row by row and can have columns for any names."""
    return "max_features" in _names(estimator.__class__) and _parts.learns_row_by_row(estimator)


@functools.cache
def _names(estimator: Hashable) -> tuple[str, ...]:
    """Return the names of the parameters of a class; it takes long to find out."""
    me: Any = estimator
    return tuple(me._get_param_names())


class Events:
    """What learning and predicting single events takes, whatever the target."""

    max_features: int | None
    n_features_in_: int
    _learners: list[Any]
    _loss: Any
    _learnt_with: tuple[Any, ...]

    def _learn_one(self, x: Event, y: Any, weight: float, **more: Any) -> Self:
        """Learn one event: as ``partial_fit`` where there is something to check, else at once."""
        me: Any = self
        if not (me.__sklearn_is_fitted__() and self._is_ready() and weight > 0.0 and not more):
            me.partial_fit([x], [y], sample_weight=[weight], **more)
            self._learnt_with = self._parameters_now()
            return self
        matrix = hash_rows([x], self.max_features)  # type: ignore[arg-type]
        self._learn_event(matrix, *self._event_target(y, weight))
        return self

    def _is_ready(self) -> bool:
        """Say whether an event can be learnt with no more checks than those of its own."""
        if self.max_features != self.n_features_in_:
            return False
        before, now = self.__dict__.get("_learnt_with", ()), self._parameters_now()
        return len(before) == len(now) and all(a is b for a, b in zip(before, now, strict=True))

    def _parameters_now(self) -> tuple[Any, ...]:
        me: Any = self
        return tuple([getattr(self, name) for name in _names(me.__class__)])

    @all_or_nothing
    def _learn_event(self, matrix: sp.csr_matrix, target: NDArray[Any], weight: float) -> None:
        me: Any = self
        if not weight > 0.0:
            return
        rows = Labelled(matrix, target, np.array([weight]), _FIRST)
        self._learners = [learner.renewed(learner.settings) for learner in self._learners]
        me._learn_streamed(rows)
        me.t_ = self._learners[0].n_visits

    def _event_target(self, y: Any, weight: float) -> tuple[NDArray[Any], float]:
        """Return the target as learners see it, (1, n_learners), and the event's weight."""
        raise NotImplementedError

    def _raw_score_of(self, x: Event) -> NDArray[Any]:
        """Return the raw predictions of one event, (n_learners,)."""
        me: Any = self
        me._check_is_fitted()
        if self.max_features is None:
            matrix = columns_of(self, [x], reset=False, learning=False)
        else:
            matrix = hash_rows([x], self.max_features)
        raw = me._raw_scores_of(first_columns(matrix, self.n_features_in_))
        return np.asarray(raw[0])


class NumberEvents(Events):
    """Single events with numbers as targets."""

    @available_if(_takes_events)  # type: ignore[untyped-decorator]
    def learn_one(self, x: Event, y: float, weight: float = 1.0) -> Self:
        """Learn from one event.

        Parameters
        ----------
        x : dict of str to number, str or None
            The event, which is not changed. Names are hashed to ``max_features`` columns; a text
            counts as a name of its own.
        y : float
            Target.
        weight : float, default=1.0
            Weight >= 0 of the event's loss.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For an event that cannot be learnt from. The estimator is then as it was before.
        DivergenceError
            When predictions become infinite. The estimator is then as it was before.
        """
        return self._learn_one(x, y, weight)

    @available_if(_takes_events)  # type: ignore[untyped-decorator]
    def predict_one(self, x: Event) -> float:
        """Predict the target of one event.

        Parameters
        ----------
        x : dict of str to number, str or None
            The event, which is not changed. Names that were never learnt play no part.

        Returns
        -------
        float

        Raises
        ------
        NotFittedError
            Before anything has been learnt.
        """
        raw = self._raw_score_of(x)
        return float(losses.inverse_link(self._loss, raw[0]))

    def _event_target(self, y: Any, weight: float) -> tuple[NDArray[Any], float]:
        me: Any = self
        target = np.array([[y]], dtype=np.float64)
        if not np.isfinite(target[0, 0]):
            raise ValueError(f"The target of an event must be a finite number, got {y!r}.")
        me._check_loss(self._loss, target)
        return target, weight


class LabelEvents(Events):
    """Single events with labels as targets."""

    classes_: NDArray[Any]

    @available_if(_takes_events)  # type: ignore[untyped-decorator]
    def learn_one(self, x: Event, y: Any, weight: float = 1.0, *, classes: Any = None) -> Self:
        """Learn from one event.

        Parameters
        ----------
        x : dict of str to number, str or None
            The event, which is not changed. Names are hashed to ``max_features`` columns; a text
            counts as a name of its own.
        y : label
            One of ``classes``.
        weight : float, default=1.0
            Weight >= 0 of the event's loss.
        classes : array of shape (n_classes,), optional
            All labels that will ever come; needed in the first call.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For an event that cannot be learnt from. The estimator is then as it was before.
        DivergenceError
            When predictions become infinite. The estimator is then as it was before.
        """
        me: Any = self
        known = me.__sklearn_is_fitted__() and np.array_equal(classes, self.classes_)
        if classes is None or known:
            return self._learn_one(x, y, weight)
        return self._learn_one(x, y, weight, classes=classes)

    @available_if(_takes_events)  # type: ignore[untyped-decorator]
    def predict_one(self, x: Event) -> Any:
        """Predict the label of one event.

        Parameters
        ----------
        x : dict of str to number, str or None
            The event, which is not changed. Names that were never learnt play no part.

        Returns
        -------
        label
            One of ``classes_``.

        Raises
        ------
        NotFittedError
            Before anything has been learnt.
        """
        raw = self._raw_score_of(x)
        return _plain(self.classes_[int(raw[0] > 0) if len(raw) == 1 else int(raw.argmax())])

    @available_if(_takes_events)  # type: ignore[untyped-decorator]
    def predict_proba_one(self, x: Event) -> dict[Any, float]:
        """Predict the probability of each label of one event.

        Parameters
        ----------
        x : dict of str to number, str or None
            The event, which is not changed. Names that were never learnt play no part.

        Returns
        -------
        dict of label to float
            In the order of ``classes_``; the sum is 1.

        Raises
        ------
        NotFittedError
            Before anything has been learnt.
        """
        me: Any = self
        shares = me._probabilities(self._raw_score_of(x)[np.newaxis])[0]
        return {_plain(label): float(p) for label, p in zip(self.classes_, shares, strict=True)}

    def _event_target(self, y: Any, weight: float) -> tuple[NDArray[Any], float]:
        me: Any = self
        code = np.flatnonzero(self.classes_ == y)
        if code.size == 0:
            raise ValueError(f"The label {y!r} is not among the classes {list(self.classes_)}.")
        if me.class_weight is not None:
            weight = weight * float(me._class_factors[code[0]])
        n_learners = len(self._learners)
        positive = np.arange(n_learners) if n_learners > 1 else np.array([1])
        return np.where(code[0] == positive, 1.0, -1.0)[np.newaxis], weight


def _plain(label: Any) -> Any:
    """Return a label as Python has it."""
    return label.item() if isinstance(label, np.generic) else label
