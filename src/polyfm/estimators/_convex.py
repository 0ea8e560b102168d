"""What the two convex factorization machines have in common."""

from __future__ import annotations

import time
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from polyfm.data.source import as_source, is_source
from polyfm.estimators import _from_sources, _parts
from polyfm.estimators._convex_online import LARGEST_BATCH, ONLINE, STRUCTURE, OnlineConvex
from polyfm.estimators._numbers import check_number
from polyfm.estimators._out_of_core import whole
from polyfm.estimators._transaction import all_or_nothing
from polyfm.estimators._validation import Labelled
from polyfm.losses import Squared
from polyfm.losses import contract as losses
from polyfm.progress import Progress
from polyfm.solvers._convex import Point, Problem
from polyfm.solvers.conditional_gradient import METHODS, REFITS, ConvexFit
from polyfm.solvers.convex_learner import ConvexLearner, layout_of

_SWITCHES = ("diagonal", "fit_linear", "fit_intercept", "warm_start")


class ConvexFM(OnlineConvex):
    """Base of the convex factorization machines: fitted by a convex solver."""

    order = 2

    @property
    def kernel(self) -> str:
        """How features combine, in the words of other factorization machines."""
        return "polynomial" if self.diagonal else "anova"

    def fit(  # type: ignore[override]
        self, X: Any, y: Any = None, sample_weight: Any = None
    ) -> Self:
        """Learn from labelled rows.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features), or source of rows
            Features, numbers of any type in any scipy format. Or where rows with targets come
            from, such as a :class:`polyfm.data.Dataset`: they are read into memory.
        y : array of shape (n_rows,)
            Targets; None for a source, which has them.
        sample_weight : array of shape (n_rows,), optional
            Weights >= 0 of the rows' losses: a weight of 2 is the row twice.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For input that cannot be learnt from; the message names the argument and the place.
        DivergenceError
            When the objective becomes infinite. The estimator is then as it was before.
        KeyboardInterrupt
            On Ctrl-C. An estimator that was fitted before stays as it was; one that was not keeps
            what it has learnt so far.
        """
        if is_source(X):
            _from_sources.check_alone(self, y=y, sample_weight=sample_weight)
            X, y, sample_weight = whole(as_source(X))
        return self._fit_convex(X, y, sample_weight)

    def _check_parameters(self) -> None:
        _check_parameters(self)

    @property
    def size_(self) -> Any:
        """The penalty ``beta`` or the bound ``trace`` that was used, of each output."""
        if not self.__sklearn_is_fitted__():
            raise AttributeError(f"{type(self).__name__} has no fitted attributes before fit.")
        sizes = np.array([learner.size for learner in self._learners])
        return float(sizes[0]) if len(sizes) == 1 else sizes

    @all_or_nothing
    def _fit_convex(self, X: Any, y: Any, sample_weight: Any) -> Self:
        self._check_parameters()
        loss = _parts.find_loss(self)
        fitted_before = self.__sklearn_is_fitted__()
        warm = bool(self.warm_start) and fitted_before
        rows = self._check_labelled(X, y, sample_weight, reset=not warm)
        self._check_convex_loss(loss, rows.targets)
        if self.method == ONLINE:
            self._fit_online(loss, rows, warm=warm, fitted_before=fitted_before)
            return self
        if warm:
            self._check_same_structure()
        else:
            self._begin(loss, self._measured_scale(loss, rows))
        fits = self._fits(rows, warm=warm)
        with self._threads():
            self._run(fits, rows.n_rows, fitted_before=fitted_before)
        return self

    def _check_convex_loss(self, loss: Any, targets: NDArray[np.float64]) -> None:
        self._check_loss(loss, targets)
        if not np.isfinite(losses.curvature(loss)):
            raise ValueError(
                f"loss={self.loss!r} has no bounded curvature, which convex solvers need."
            )
        if self.method == "hazan" and not isinstance(loss, Squared):
            raise ValueError(
                f"method='hazan' is for loss='squared', got loss={self.loss!r}: use "
                "method='greedy'."
            )

    def _check_same_structure(self) -> None:
        for name in STRUCTURE:
            before, value = self._structure[name], getattr(self, name)
            if value != before:
                raise ValueError(
                    f"{name} has changed from {before!r} to {value!r} since the last fit, so "
                    "training cannot go on from it: call fit with warm_start=False to start anew."
                )

    def _fits(self, rows: Labelled, *, warm: bool) -> list[ConvexFit]:
        """Return the solver of each output."""
        matrix = rows.matrix if rows.n_rows == rows.matrix.shape[0] else rows.matrix[rows.numbers]
        matrix = matrix.astype(np.float64, copy=False)
        targets = self._scale.to_scaled(rows.targets)
        d = matrix.shape[1]
        start = check_random_state(self.random_state).normal(size=(d, 1))
        fits = []
        for k in range(targets.shape[1]):
            problem = Problem.of(
                matrix,
                np.ascontiguousarray(targets[:, k]),
                np.ascontiguousarray(rows.weight),
                self._scale.scaled(self._loss),
                float(self.alpha),
                diagonal=bool(self.diagonal),
                fit_linear=bool(self.fit_linear),
                fit_intercept=bool(self.fit_intercept),
            )
            before = self._learners[k] if warm else None
            point = Point.zero(d) if before is None else before.point.in_unit(1.0 / problem.unit)
            size = METHODS[self.method].size_in_unit(problem, self._size(before))
            fits.append(
                METHODS[self.method](
                    problem, size, int(self.max_rank), float(self.tol), start, self.refit, point
                )
            )
        return fits

    def _size(self, before: ConvexLearner | None) -> float | None:
        """Return the penalty or bound asked for; None leaves it to the data."""
        asked = self.trace if self.method == "hazan" else self.beta
        if asked != "auto":
            return float(asked)
        return None if before is None else before.size

    def _run(self, fits: list[ConvexFit], n_rows: int, *, fitted_before: bool) -> None:
        """Let the outputs take their steps side by side, until all are done."""
        progress = Progress(int(self.verbose))
        history = {name: list(values) for name, values in self.history_.items()}
        n_done = 0
        try:
            while n_done < self.max_iter and not all(fit.done for fit in fits):
                started = time.perf_counter()
                for fit in fits:
                    if not fit.done:
                        fit.step()
                n_done += 1
                entry = self._entry(fits, n_rows, time.perf_counter() - started)
                for name, value in entry.items():
                    history.setdefault(name, []).append(value)
                progress.epoch(n_done, int(self.max_iter), entry)
        except KeyboardInterrupt:
            if not fitted_before:
                self._adopt_fits(fits, history, n_done)
                self._kept = dict(self.__dict__)
            raise
        self._adopt_fits(fits, history, n_done)

    def _entry(self, fits: list[ConvexFit], n_rows: int, seconds: float) -> dict[str, float]:
        unit = self._scale.loss_unit(self._loss) / n_rows
        return {
            "loss": unit * sum(fit.loss for fit in fits),
            "objective": unit * sum(fit.objective for fit in fits),
            "duality_gap": unit * sum(fit.gap for fit in fits),
            "rank": sum(fit.point.rank for fit in fits),
            "seconds": seconds,
        }

    def _adopt_fits(
        self, fits: list[ConvexFit], history: dict[str, list[float]], n_done: int
    ) -> None:
        """Make what the solvers have found the fitted model."""
        points = [fit.result() for fit in fits]
        rank = max(point.rank for point in points)
        self._layout = layout_of(rank, diagonal=bool(self.diagonal))
        self._learners = [
            ConvexLearner.of(point, fit.size_outside(), self._layout)
            for point, fit in zip(points, fits, strict=True)
        ]
        self.history_, self.n_iter_ = history, n_done


def _check_parameters(estimator: ConvexFM) -> None:
    """Raise a ValueError or TypeError that names the first parameter with an impossible value."""
    p: Any = estimator
    for name, known in (("method", (*METHODS, ONLINE)), ("refit", REFITS)):
        if not isinstance(getattr(p, name), str) or getattr(p, name) not in known:
            raise ValueError(f"{name} must be one of {tuple(known)}, got {getattr(p, name)!r}.")
    for name in ("max_iter", "max_rank"):
        check_number(name, getattr(p, name), Integral, least=1)
    check_number("batch_size", p.batch_size, Integral, least=1, most=LARGEST_BATCH)
    check_number("learning_rate", p.learning_rate, Real, above=0)
    for name in ("alpha", "tol", "verbose"):
        check_number(name, getattr(p, name), Real, least=0)
    for name in ("beta", "trace"):
        value = getattr(p, name)
        if isinstance(value, str) and value != "auto":
            raise ValueError(f"{name} must be 'auto' or a number > 0, got {value!r}.")
        if not isinstance(value, str):
            check_number(name, value, Real, above=0)
    for name in _SWITCHES:
        if not isinstance(getattr(p, name), bool | np.bool_):
            raise TypeError(f"{name} must be True or False, got {getattr(p, name)!r}.")
