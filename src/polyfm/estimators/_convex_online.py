"""How a convex factorization machine learns from one row after the other."""

from __future__ import annotations

import time
from contextlib import nullcontext
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from polyfm.data.rows import Rows, as_rows
from polyfm.estimators import _parts
from polyfm.estimators._base import BaseFM
from polyfm.estimators._target import TargetScale
from polyfm.estimators._validation import Labelled
from polyfm.progress import Progress
from polyfm.solvers._convex import root_mean_square_length
from polyfm.solvers.monitor import Stopper
from polyfm.solvers.online_conditional_gradient import (
    Form,
    OnlineConvexLearner,
    OnlineSettings,
    finish,
    measured_size,
)

ONLINE = "online"
LARGEST_BATCH = 10_000
"""Products of each row of a round with each other are worked out."""
_PATIENCE = 3
"""Passes without improvement after which a fit ends."""
STRUCTURE = ("method", "diagonal", "fit_linear", "fit_intercept", "loss")


class OnlineConvex(BaseFM):
    """Base of the convex factorization machines: what ``method="online"`` does."""

    method: str
    diagonal: bool
    fit_linear: bool
    trace: Any
    batch_size: int
    max_rank: int
    learning_rate: float

    @property
    def _solver(self) -> str:
        # What learns from all rows at once is told by this name.
        return ONLINE if self.method == ONLINE else "cd"

    def _create(self, loss: Any, rows: Labelled, *, streaming: bool) -> None:
        """Make fresh learners, one per column of targets."""
        self._begin(loss, TargetScale() if streaming else self._measured_scale(loss, rows))
        settings, d = self._online_settings(), int(rows.matrix.shape[1])
        unit = 1.0
        if not streaming:
            matrix = rows.matrix[rows.numbers].astype(np.float64, copy=False)
            unit = root_mean_square_length(matrix, rows.weight)
        self._learners = [
            OnlineConvexLearner.create(d, self._ball(part, d, settings, unit), settings, unit)
            for part in self._parts_of(rows)
        ]
        self._layout = finish(self._learners)

    def _begin(self, loss: Any, scale: TargetScale) -> None:
        """Set what is the same for all methods."""
        self._scale, self._loss = scale, loss
        self._structure = {name: getattr(self, name) for name in STRUCTURE}
        # What the unit of the target goes into, when attributes are shown.
        self._structure["fit_weights"] = True
        self.history_: dict[str, list[float]] = {}

    def _measured_scale(self, loss: Any, rows: Labelled) -> TargetScale:
        intercept = bool(self.fit_intercept)
        return TargetScale.of(loss, rows.targets[:, 0], rows.weight, intercept)

    def _parts_of(self, rows: Labelled) -> list[Rows]:
        """Wrap rows for the learners, in double precision."""
        matrix = rows.matrix.astype(np.float64, copy=False)
        shared = as_rows(matrix, None, rows.all_weights, rows.numbers)
        scaled = self._scale.to_scaled(rows.all_targets)
        return [shared.with_target(scaled[:, k]) for k in range(scaled.shape[1])]

    def _ball(self, part: Rows, n_features: int, settings: OnlineSettings, unit: float) -> float:
        if self.trace != "auto":
            return float(self.trace)
        return measured_size(part, n_features, settings, unit)

    def _online_settings(self) -> OnlineSettings:
        form = Form(bool(self.diagonal), bool(self.fit_linear), bool(self.fit_intercept))
        loss = self._scale.scaled(self._loss)
        return OnlineSettings(
            loss, form, int(self.batch_size), int(self.max_rank), float(self.learning_rate)
        )

    def _go_on(self, loss: Any, n_rows: int) -> None:
        _parts.check_unchanged(self._structure, {name: getattr(self, name) for name in STRUCTURE})
        if not all(isinstance(learner, OnlineConvexLearner) for learner in self._learners):
            raise ValueError(
                "this model was saved with include_state=False, so it can predict but not be "
                "trained further: call fit with warm_start=False to train it anew, or save the "
                "trained model with include_state=True."
            )
        settings = self._online_settings()
        self._learners = [
            learner.renewed(settings, learner.size if self.trace == "auto" else float(self.trace))
            for learner in self._learners
        ]

    def _learn_streamed(self, rows: Labelled) -> None:
        with self._threads():
            super()._learn_streamed(rows)
            self._layout = finish(self._learners)

    def _threads(self) -> Any:
        """Keep dense linear algebra to the threads asked for: idle ones of BLAS go on spinning."""
        n = _parts.n_threads(self.n_jobs)
        return threadpool_limits(n, user_api="blas") if self.n_jobs != -1 else nullcontext()

    def _fit_online(self, loss: Any, rows: Labelled, *, warm: bool, fitted_before: bool) -> None:
        """Go over the rows until a pass gains little."""
        if warm:
            self._go_on(loss, rows.n_rows)
        else:
            self._create(loss, rows, streaming=False)
        for learner in self._learners:
            learner.n_rows = rows.n_rows
        self.history_ = {name: list(values) for name, values in self.history_.items()}
        self.n_iter_ = 0
        try:
            with self._threads():
                self._run_passes(self._parts_of(rows))
        except KeyboardInterrupt:
            if not fitted_before:
                self._end_fit()
                self._kept = dict(self.__dict__)
            raise
        self._end_fit()

    def _end_fit(self) -> None:
        self._layout = finish(self._learners)
        self.t_ = self._learners[0].n_visits

    def _run_passes(self, parts: list[Rows]) -> None:
        progress = Progress(int(self.verbose))
        stopper = None
        while self.n_iter_ < self.max_iter and not (stopper and stopper.should_stop):
            started = time.perf_counter()
            pairs = zip(self._learners, parts, strict=True)
            loss = sum(learner.epoch(part) for learner, part in pairs)
            stopper = stopper or Stopper(_PATIENCE, float(self.tol) * loss, maximize=False)
            stopper.update(loss)
            self.n_iter_ += 1
            entry = {
                "loss": loss * self._scale.loss_unit(self._loss),
                "rank": sum(len(learner.matrix.weights) for learner in self._learners),
                "seconds": time.perf_counter() - started,
            }
            for name, value in entry.items():
                self.history_.setdefault(name, []).append(value)
            progress.epoch(self.n_iter_, int(self.max_iter), entry)
        progress.close()
