"""The loop over epochs: progress, history, stopping, and the best parameters kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from polyfm.data.rows import Rows
from polyfm.exceptions import DivergenceError
from polyfm.progress import Progress
from polyfm.solvers._best import BestWeights
from polyfm.solvers.monitor import Clock, Stopper
from polyfm.solvers.stochastic import StochasticLearner

_HOPELESS = 100.0


@dataclass(frozen=True)
class Validation:
    """How to judge a model between epochs."""

    name: str
    """Of the metric, for the history."""
    score: Callable[[], float]
    """Judges the present parameters."""
    maximize: bool


@dataclass
class Training:
    """Trains one learner per class, epoch by epoch.

    Parameters
    ----------
    learners : list of StochasticLearner
        Changed in place.
    rows : list of Rows
        The training rows with each learner's targets.
    null_losses : list of float
        Mean loss of the best constant prediction of each learner, or of its start if that is
        worse: the yardstick of progress and of divergence.
    loss_unit : float
        What a loss of 1 of the learners is in the unit of the history.
    max_iter, n_iter_no_change : int
        Epochs at most, and without improvement before an early end.
    tol : float
        Improvement that counts, as a share of the loss of the best constant prediction.
    validation : Validation or None
        What decides about stopping and about the best epoch; the training loss if None.
    stop_early : bool
        Whether validation decides, or is only written down.
    progress : Progress
        Where epochs are reported.
    """

    learners: list[StochasticLearner]
    rows: list[Rows]
    null_losses: list[float]
    loss_unit: float
    max_iter: int
    tol: float
    n_iter_no_change: int
    shuffle: bool
    validation: Validation | None
    stop_early: bool
    progress: Progress
    history: dict[str, list[float]] = field(default_factory=dict)
    n_epochs: int = 0
    best_epoch: int = 0
    best_score: float = np.nan
    _best: list[BestWeights] = field(default_factory=list)

    def run(self) -> None:
        """Train. An interrupt leaves what was learnt so far."""
        decided = self.validation is not None and self.stop_early
        stopper = Stopper(
            self.n_iter_no_change,
            self._tolerance(decided),
            decided and self.validation is not None and self.validation.maximize,
        )
        clock = Clock()
        for epoch in range(1, self.max_iter + 1):
            loss = self._epoch(epoch)
            value = self._record(epoch, loss, clock)
            self.n_epochs = epoch
            # The learners' loss decides in their own unit, which cannot overflow.
            is_best = stopper.update(value if decided else loss)
            if decided and is_best:
                self._keep_best()
            if stopper.should_stop:
                break
        for learner in self.learners:
            learner.check_finite()
        for best in self._best:
            best.put_back()
        self.best_epoch = stopper.best_epoch
        self.best_score = stopper.best if decided else stopper.best * self.loss_unit
        self.progress.close()

    def _keep_best(self) -> None:
        if not self._best:
            self._best = [learner.best_weights() for learner in self.learners]
        for best in self._best:
            best.take()

    def _tolerance(self, decided: bool) -> float:
        if self.tol <= 0:
            return 0.0 if decided else -np.inf
        if decided and self.validation is not None and self.validation.name != "loss":
            return self.tol
        unit = self.loss_unit if decided else 1.0
        return self.tol * unit * float(np.sum(self.null_losses))

    def _epoch(self, epoch: int) -> float:
        total = 0.0
        for k, (learner, rows) in enumerate(zip(self.learners, self.rows, strict=True)):
            report = self.progress.within(epoch, k, len(self.learners))
            loss = learner.epoch(rows, shuffle=self.shuffle, report=report)
            limit = _HOPELESS * max(self.null_losses[k], 1e-3)
            if not loss < limit:
                raise DivergenceError(
                    f"training diverged in epoch {epoch}: the mean loss is {loss:.3g} where a "
                    f"constant prediction or the start has {self.null_losses[k]:.3g}. "
                    f"{learner.advice()}"
                )
            total += loss
        return total

    def _record(self, epoch: int, loss: float, clock: Clock) -> float:
        """Write down the epoch; return the validation's value, or NaN."""
        n_rows = sum(rows.n_rows for rows in self.rows)
        seconds = clock.lap()
        entry = {
            "loss": loss * self.loss_unit,
            "seconds": seconds,
            "rows_per_second": n_rows / seconds,
        }
        value = np.nan
        if self.validation is not None:
            value = self.validation.score()
            entry[f"validation_{self.validation.name}"] = value
        for name, number in entry.items():
            self.history.setdefault(name, []).append(number)
        self.progress.epoch(epoch, self.max_iter, entry)
        clock.lap()
        return value
