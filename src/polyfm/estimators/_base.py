"""What the estimators of factorized models have in common: fitting, scores, fitted attributes."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags, check_random_state
from sklearn.utils.metaestimators import available_if

from polyfm.data._examine import is_binary
from polyfm.data.dataset import Dataset
from polyfm.data.rows import Rows, as_rows, read_only, row_numbers
from polyfm.data.source import as_source, is_source
from polyfm.data.validation import check_weights
from polyfm.estimators import _from_sources, _parts
from polyfm.estimators._columns import columns_of, first_columns
from polyfm.estimators._exports import Exported, export
from polyfm.estimators._target import TargetScale
from polyfm.estimators._transaction import all_or_nothing
from polyfm.estimators._validation import (
    ROWS_FOR_EARLY_STOPPING,
    Held,
    Labelled,
    Metric,
    find_metric,
    validation_of,
)
from polyfm.estimators.checkpoints import Checkpoint, as_checkpoint
from polyfm.losses import contract as losses
from polyfm.losses.evaluate import mean_loss
from polyfm.models.layout import Layout
from polyfm.progress import Progress
from polyfm.solvers.learner import Learner, Settings
from polyfm.solvers.training import Training

_LEARNT = (
    "_class_factors", "_hashed_into", "_layout", "_learners", "_learnt_with", "_loss", "_n_terms",
    "_scale", "_structure", "_waiting", "_zero_based",
)  # fmt: skip
"""What fitting leaves on an estimator besides its public attributes."""


class BaseFM(BaseEstimator):
    """Base of the estimators whose model is a bias, a linear term and a sum of kernels."""

    _learners: list[Any]
    _scale: TargetScale
    _layout: Layout
    _structure: dict[str, Any]
    _n_terms: float
    _loss: Any
    max_features: int | None = None
    """Without a parameter of this name, a model has the columns of its first rows."""
    _shares_weights = False
    """Whether features that were never learnt have a part in predictions, by weights they share."""

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
        checkpoint: Checkpoint | str | None = None,
        max_memory: int | str | None = None,
    ) -> Self:
        """Learn from labelled rows.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features), or source of rows
            Features, numbers of any type in any scipy format. Or where rows with targets come
            from: a :class:`polyfm.data.Dataset`, a :class:`polyfm.data.Source`, paths of files, or
            an iterator of batches (X, y) or (X, y, weight).
        y : array of shape (n_rows,)
            Targets; None for a source, which has them.
        sample_weight : array of shape (n_rows,), optional
            Weights >= 0 of the rows' losses. Rows of weight 0 are left out.
        X_val, y_val, sample_weight_val : optional
            Rows to judge each epoch by, instead of a share of the training rows. ``X_val`` can be
            a source, too.
        checkpoint : Checkpoint or path, optional
            Where training from a source saves what it has done, and goes on from.
        max_memory : int or str, optional
            What training from a source may take, in bytes or as in "2GB": parameters, copies and
            rows in memory.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For input that cannot be learnt from; the message names the argument and the place.
        DivergenceError
            When predictions become infinite; the message names the epoch and what to do. The
            estimator is then as it was before.
        KeyboardInterrupt
            On Ctrl-C, within a second. An estimator that was fitted before stays as it was; one
            that was not keeps what it has learnt so far.
        MemoryError
            When training would take more than ``max_memory``.

        Notes
        -----
        Rows of a source are learnt in parts, which another thread reads meanwhile. With
        ``max_iter=1`` files and streams are learnt as they come, if the number of columns is known
        (``max_features``, or ``n_features`` of the source); what is left to the data is read off
        the first batch then. Otherwise they are first written to a temporary dataset. Its blocks
        of 1,024 rows come in a new random order in each epoch, and what is left to the data is read
        off 65,536 rows from all over it. Up to 100,000 rows are held out.
        """
        if is_source(X):
            _from_sources.check_alone(self, y=y, sample_weight=sample_weight)
            judges, kept = (X_val, y_val, sample_weight_val), as_checkpoint(checkpoint)
            return self._fit_source(as_source(X), judges, kept, max_memory)
        if checkpoint is not None or max_memory is not None:
            name = "checkpoint" if checkpoint is not None else "max_memory"
            raise ValueError(f"{name} is for rows from a source, as a Dataset; X is in memory.")
        X_val, y_val, sample_weight_val = _from_sources.judges_of(
            (X_val, y_val, sample_weight_val), None
        )
        return self._fit(X, y, sample_weight, X_val, y_val, sample_weight_val)

    @all_or_nothing
    def _fit_source(self, source: Any, *options: Any) -> Self:
        fitted_before = self.__sklearn_is_fitted__()
        try:
            _from_sources.fit_source(self, source, *options)
        except KeyboardInterrupt:
            if not fitted_before and hasattr(self, "t_"):
                self._kept = dict(self.__dict__)
            raise
        return self

    def _forget(self) -> None:
        """Drop everything that was learnt or read off rows."""
        for name in set(vars(self)) - set(self.get_params(deep=False)):
            # Frameworks may have left notes of their own on the object.
            if name in _LEARNT or (name.endswith("_") and not name.startswith("_")):
                delattr(self, name)

    def _meet_targets(self, dataset: Dataset) -> None:
        """Take in what a look at all targets of a dataset tells."""

    def _end_waiting(self) -> None:
        """Begin to learn what rows of a stream were kept waiting for."""

    @all_or_nothing
    def _fit(
        self, X: Any, y: Any, sample_weight: Any, X_val: Any, y_val: Any, sample_weight_val: Any
    ) -> Self:
        self._check_parameters()
        loss = _parts.find_loss(self)
        metric = find_metric(self._scoring, loss, self._metrics)
        fitted_before = self.__sklearn_is_fitted__()
        warm = bool(self.warm_start) and fitted_before
        rows = self._check_labelled(X, y, sample_weight, reset=not warm)
        self._check_loss(loss, rows.targets)
        held = self._hold_out(rows, X_val, y_val, sample_weight_val)
        if not warm:
            self._create(loss, held.train, streaming=False)
        else:
            # Learners change in place: spare those that are kept if this fails.
            self._learners = [learner.copy() for learner in self._learners]
            self._go_on(loss, held.train.n_rows)
            self._widen()
        self._train(loss, metric, held, warm=warm, fitted_before=fitted_before)
        return self

    @available_if(_parts.learns_row_by_row)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from some more rows, each once and in their order.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features), or source of rows
            Features; or where rows with targets come from, as for :meth:`fit`.
        y : array of shape (n_rows,)
            Targets; None for a source, which has them.
        sample_weight : array of shape (n_rows,), optional
            Weights >= 0. Rows of weight 0 change nothing, not even a counter.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For input that cannot be learnt from. The estimator is then as it was before.
        DivergenceError
            When predictions become infinite. The estimator is then as it was before.

        Notes
        -----
        What the parameters leave to the data ("auto", the scale of the target, the units of the
        columns) is read off the first batch.
        """
        if is_source(X):
            _from_sources.check_alone(self, y=y, sample_weight=sample_weight)
            _from_sources.partial_fit_source(self, as_source(X))
            return self
        return self._partial_fit(X, y, sample_weight)

    @all_or_nothing
    def _partial_fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        self._check_parameters()
        loss = _parts.find_loss(self)
        first = not self.__sklearn_is_fitted__()
        rows = self._check_labelled(X, y, sample_weight, reset=first, streaming=True)
        self._check_loss(loss, rows.targets)
        if rows.n_rows == 0:
            if not first:
                self.n_features_in_ = self._learners[0].model.n_features
            return self
        if first:
            self._create(loss, rows, streaming=True)
        else:
            self._go_on(loss, rows.n_rows)
            self._widen()
        self._learn_streamed(rows)
        self.t_ = self._learners[0].n_visits
        return self

    def _learn_streamed(self, rows: Labelled) -> None:
        """Learn rows of a stream, each once, and remember how to undo it."""
        parts = list(zip(self._learners, self._solver_rows(rows), strict=True))
        undo = [learner.checkpoint(part) for learner, part in parts if self._keeps_undo]
        # What was done last is undone first.
        self._undo = [*undo, *self.__dict__.get("_undo", ())]
        for learner, part in parts:
            learner.add_and_learn(part)

    def _widen(self) -> None:
        """Give the learners the columns that the latest rows have brought."""
        for learner in self._learners:
            if learner.model.n_features < self.n_features_in_:
                undo = learner.widen(int(self.n_features_in_), int(self.max_features or 0))
                self._undo = [undo, *self.__dict__.get("_undo", ())]

    def _check_parameters(self) -> None:
        """Raise a ValueError or TypeError that names the first parameter that is impossible."""
        _parts.check_parameters(self)

    def _find_max_iter(self, n_rows: int) -> int:
        """Return how often some rows are visited at most."""
        return int(self.max_iter)

    def _create(self, loss: Any, rows: Labelled, *, streaming: bool) -> None:
        """Make fresh learners, one per column of targets."""
        layout = _parts.find_layout(self)
        matrix, targets, weight = rows.matrix, rows.targets, rows.weight
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        measured = self._measures(streaming)
        self._scale = TargetScale()
        if measured:
            self._scale = TargetScale.of(loss, targets[:, 0], weight, bool(self.fit_intercept))
        self._layout, self._structure, self._loss = layout, _parts.structure_of(self), loss
        self._n_terms = rows.mean_terms
        settings = self._settings(loss, rows.n_rows, seed)
        learner = self._find_learner()
        room = {} if self.max_features is None else {"most_features": int(self.max_features)}
        self._learners = [
            learner.create(
                layout,
                replace(settings, seed=seed + k),
                n_features=matrix.shape[1],
                start=self._start(loss, targets[:, k], weight, measured),
                units=measured and (streaming or not is_binary(read_only(matrix.data))),
                dtype=matrix.dtype,
                **room,
            )
            for k in range(targets.shape[1])
        ]
        self.history_: dict[str, list[float]] = {}

    _keeps_undo = True
    """Whether a batch that fails leaves the model as it was, or whoever learns it sees to that."""
    _measures_stream = False
    """Whether the first batch of a stream stands for all rows, as in ``fit``."""

    def _measures(self, streaming: bool) -> bool:
        """Say whether target and columns are brought to units that the first rows have."""
        return True

    @property
    def _solver(self) -> Any:
        """The solver by name or spec, as the parameters stand."""
        return self.solver

    def _find_learner(self) -> type[Learner]:
        """Return the class of learner that the parameters ask for."""
        return _parts.find_learner(self)

    def _settings(self, loss: Any, n_rows: int, seed: int) -> Settings:
        return _parts.find_settings(
            self,
            self._scale.scaled(loss),
            self._layout,
            n_rows=n_rows,
            n_features=int(self.n_features_in_),
            n_terms=self._n_terms,
            seed=seed,
        )

    def _go_on(self, loss: Any, n_rows: int) -> None:
        """Let the learners go on with the present parameters, as far as these may change.

        Raises
        ------
        ValueError
            When one that shapes the model has changed.
        """
        _parts.check_same_structure(self, self._structure)
        settings = self._settings(loss, n_rows, seed=0)
        self._learners = [learner.renewed(settings) for learner in self._learners]

    def _start(
        self,
        loss: Any,
        target: NDArray[np.float64],
        weight: NDArray[np.float64],
        measured: bool,
    ) -> float | None:
        """Return the best constant prediction in the solver's unit, None without a bias."""
        if not self.fit_intercept:
            return None
        if self._scale.applies or not measured:
            return 0.0
        return float(losses.best_constant(loss, target, weight))

    def _solver_rows(self, rows: Labelled) -> list[Rows]:
        """Wrap rows for the solver, once per learner, targets in its unit."""
        matrix = rows.matrix.astype(self._dtype, copy=False)
        shared = as_rows(matrix, None, rows.all_weights, rows.numbers)
        scaled = self._scale.to_scaled(rows.all_targets)
        return [shared.with_target(scaled[:, k]) for k in range(scaled.shape[1])]

    @property
    def _dtype(self) -> np.dtype[Any]:
        dtype: np.dtype[Any] = self._learners[0].model.parameters.linear.dtype
        return dtype

    def _hold_out(self, rows: Labelled, X_val: Any, y_val: Any, sample_weight_val: Any) -> Held:
        """Split off, or check, the rows that judge each epoch."""
        if (X_val is None) != (y_val is None):
            missing = "y_val" if y_val is None else "X_val"
            raise ValueError(f"X_val and y_val go together, but {missing} was not given.")
        if X_val is not None:
            judges = self._check_labelled(
                X_val, y_val, sample_weight_val, reset=False, judging=True
            )
            return Held(rows, judges)
        if sample_weight_val is not None:
            raise ValueError("sample_weight_val was given without X_val and y_val.")
        wanted = self.early_stopping
        if wanted == "auto":
            wanted = rows.n_rows >= ROWS_FOR_EARLY_STOPPING
        if not wanted:
            return Held(rows)
        random = check_random_state(self.random_state)
        fraction = float(self.validation_fraction)
        return Held.split(rows, fraction, random, self._labels_to_stratify(rows.targets))

    def _train(
        self, loss: Any, metric: Metric, held: Held, *, warm: bool, fitted_before: bool
    ) -> None:
        rows = self._solver_rows(held.train)
        for learner, part in zip(self._learners, rows, strict=True):
            learner.set_rows(part)
        self._run_training(self._training(loss, metric, held, rows, warm=warm), fitted_before)

    def _training(
        self, loss: Any, metric: Metric, held: Held, rows: list[Rows], *, warm: bool
    ) -> Training:
        """Return the training of the learners on some rows, before its first epoch."""
        validation = None
        if held.validation is not None:
            validation = validation_of(
                self._scoring, metric, held.validation, self._raw_scores_of,
                lambda raw: losses.inverse_link(loss, raw),
            )  # fmt: skip
        return Training(
            self._learners,
            rows,
            held.train.n_rows,
            null_losses=[
                self._yardstick(learner, part, warm)
                for learner, part in zip(self._learners, rows, strict=True)
            ],
            loss_unit=self._scale.loss_unit(loss),
            max_iter=self._find_max_iter(held.train.n_rows),
            tol=float(self.tol),
            n_iter_no_change=int(self.n_iter_no_change),
            shuffle=bool(self.shuffle),
            validation=validation,
            stop_early=bool(self.early_stopping),
            progress=Progress(int(self.verbose)),
            history={name: list(values) for name, values in self.history_.items()},
        )

    def _run_training(self, training: Training, fitted_before: bool) -> None:
        """Train, and take in what that has led to."""
        try:
            training.run()
        except KeyboardInterrupt:
            if not fitted_before:
                self._adopt(training)
                self._kept = dict(self.__dict__)
            raise
        self._adopt(training)
        solver = type(self._learners[0])
        self._learners, self._layout = solver.tidied(self._learners, self._layout)

    def _yardstick(self, learner: Learner, rows: Rows, warm: bool) -> float:
        """Return the mean loss that training has to beat: that of a constant, or of the start."""
        loss = learner.settings.loss
        target = rows.target[rows.numbers].astype(np.float64)
        weight = rows.weight[rows.numbers].astype(np.float64)
        best = losses.best_constant(loss, target, weight) if self.fit_intercept else 0.0
        reference = mean_loss(loss, target, np.full(len(target), best), weight)
        if warm:
            start = learner.model.scores(rows).astype(np.float64)
            reference = max(reference, mean_loss(loss, target, start, weight))
        return reference * float(weight.mean())

    def _adopt(self, training: Training) -> None:
        self.history_ = training.history
        self.n_iter_ = training.n_epochs
        self.best_iteration_ = training.best_epoch
        self.best_score_ = training.best_score
        self.t_ = self._learners[0].n_visits

    def _raw_scores(self, X: Any) -> NDArray[Any]:
        """Return the raw predictions in the target's unit, one column per learner."""
        self._check_is_fitted()
        return self._raw_scores_of(columns_of(self, X, reset=False, learning=False))

    def _raw_scores_of(
        self, matrix: sp.csr_matrix, numbers: NDArray[Any] | None = None
    ) -> NDArray[Any]:
        rows = as_rows(matrix.astype(self._dtype, copy=False), numbers=numbers)
        n_jobs = _parts.n_threads(self.n_jobs)
        scores = [learner.model.scores(rows, n_jobs) for learner in self._learners]
        raw = self._scale.from_scaled(np.stack(scores, axis=1))
        if not np.isfinite(raw).all():
            raise ValueError(_overflow_message(rows, raw))
        return raw

    def _check_labelled(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        *,
        reset: bool,
        streaming: bool = False,
        judging: bool = False,
        weighing: bool = True,
    ) -> Labelled:
        """Check labelled rows and leave out those of weight 0.

        ``judging`` says that they bring no new columns, and are not what class weights hang on;
        ``weighing=False`` says the latter alone.

        Raises
        ------
        ValueError
            When no row is left and there should be one.
        """
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} requires y to be passed, but the target y is None."
            )
        matrix = columns_of(self, X, reset=reset, learning=not judging)
        weight = check_weights(sample_weight, matrix)
        if not streaming and not weight.any():
            raise ValueError("Every sample weight is zero: there is nothing to learn.")
        targets, weight = self._check_targets(
            y,
            matrix.shape[0],
            weight,
            reset=reset,
            streaming=streaming,
            judging=judging or not weighing,
        )
        rows = _meant(matrix, targets, weight)
        if not streaming and rows.n_rows == 0:
            raise ValueError("Every row has the weight zero by class_weight: nothing to learn.")
        return rows

    def _stored_labelled(
        self, X: sp.csr_matrix, y: NDArray[Any], weight: NDArray[np.float64] | None, *, new: bool
    ) -> Labelled:
        """Return what :meth:`_check_labelled` makes of rows of a dataset to learn from.

        Their matrix is known to be in order. Targets and weights are, too, unless they are ``new``.
        """
        matrix = X
        if self.max_features is not None:
            matrix = first_columns(X, int(self.n_features_in_))
        if not new:
            weight = np.ones(len(y)) if weight is None else weight
            return _meant(matrix, *self._known_targets(y, weight))
        weight = check_weights(weight, matrix)
        of_rows = self._check_targets(
            y, len(weight), weight, reset=False, streaming=True, judging=True
        )
        return _meant(matrix, *of_rows)

    @abstractmethod
    def _known_targets(
        self, y: NDArray[Any], weight: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return what :meth:`_check_targets` has made of targets and weights before."""

    @abstractmethod
    def _check_targets(
        self,
        y: Any,
        n_rows: int,
        weight: NDArray[np.float64],
        *,
        reset: bool,
        streaming: bool,
        judging: bool,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return targets as solvers see them, (n_rows, n_learners), and the rows' weights."""

    @abstractmethod
    def _check_loss(self, loss: Any, targets: NDArray[np.float64]) -> None:
        """Raise a ValueError for a loss that does not fit the task or the targets."""

    @property
    def _scoring(self) -> str:
        return "loss" if self.scoring is None else str(self.scoring)

    @property
    @abstractmethod
    def _metrics(self) -> dict[str, Metric]:
        """The metrics that fit the task, besides the loss."""

    def _labels_to_stratify(self, targets: NDArray[np.float64]) -> NDArray[Any] | None:
        """Return the labels by which a split is stratified, or None."""
        return None

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_learners")

    def _check_is_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet: call fit or partial_fit "
                "before this method."
            )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @property
    def _exported(self) -> Exported:
        if not self.__sklearn_is_fitted__():
            # So that hasattr answers False, as for any attribute that fit will set.
            raise AttributeError(f"{type(self).__name__} has no fitted attributes before fit.")
        free_weights = bool(self._structure["fit_weights"])
        return export(self._learners, self._layout, self._scale, free_weights)

    @property
    def _expansion(self) -> tuple[Exported, Layout]:
        """The model as weighted kernels, for inspection."""
        return self._exported, self._layout

    @property
    def intercept_(self) -> Any:
        """Bias: a float, or an array of shape (n_classes,)."""
        return self._exported.intercept

    @property
    def coef_(self) -> NDArray[Any]:
        """Linear weights, (n_features,) or (n_classes, n_features)."""
        return self._exported.coef

    @property
    def factors_(self) -> dict[int, NDArray[Any]]:
        """Factors by degree, (n_features, rank) or (n_classes, n_features, rank) each.

        The key is the degree; the highest one where a matrix serves several degrees, and 0 for the
        all-subsets kernel.
        """
        return self._exported.factors

    @property
    def dummy_factors_(self) -> dict[int, NDArray[Any]]:
        """Factors of the dummy features, (n_dummies, rank), by degree; see ``fit_lower``."""
        return self._exported.dummy_factors

    @property
    def weights_(self) -> dict[int, NDArray[Any]]:
        """Weights lambda of the bases, (rank,), by degree as in ``factors_``."""
        return self._exported.weights

    @property
    def degree_weights_(self) -> NDArray[Any]:
        """Weights theta of the degrees 1 to ``order``, (order,); 0 where a degree has no part."""
        return self._exported.degree_weights


def _meant(
    matrix: sp.csr_matrix, targets: NDArray[np.float64], weight: NDArray[np.float64]
) -> Labelled:
    """Return rows, those of weight 0 not among those meant."""
    rows = Labelled(matrix, targets, weight, row_numbers(len(weight)))
    return rows if weight.all() else rows._replace(numbers=rows.numbers[weight > 0])


def _overflow_message(rows: Rows, raw: NDArray[Any]) -> str:
    row = int(rows.numbers[np.flatnonzero(~np.isfinite(raw).all(axis=1))[0]])
    values = np.abs(rows.values[rows.indptr[row] : rows.indptr[row + 1]])
    return (
        f"The prediction of row {row} is not a finite number: its largest value, "
        f"{values.max(initial=0.0):.6g}, is far beyond those the model has learnt from."
    )
