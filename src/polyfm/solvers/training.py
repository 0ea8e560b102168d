"""The loop over epochs: progress, history, stopping, and the best parameters kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from polyfm.data.rows import Rows
from polyfm.exceptions import DivergenceError
from polyfm.progress import Progress
from polyfm.solvers._best import BestWeights
from polyfm.solvers.monitor import Stopper

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
    learners : list of Learner, of one kind
        Changed in place.
    rows : list of Rows
        The training rows with each learner's targets; empty where ``loop`` brings them.
    n_rows : int
        Number of the training rows.
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
    loop : callable, optional
        Runs the epochs; what the kind of learner does with rows in memory if None.
    """

    learners: Sequence[Any]
    rows: list[Rows]
    n_rows: int
    null_losses: list[float]
    loss_unit: float
    max_iter: int
    tol: float
    n_iter_no_change: int
    shuffle: bool
    validation: Validation | None
    stop_early: bool
    progress: Progress
    loop: Callable[[Training], None] | None = None
    history: dict[str, list[float]] = field(default_factory=dict)
    n_epochs: int = 0
    _best: list[BestWeights] = field(default_factory=list)
    _stopper: Stopper = field(init=False)
    _lap: float = field(init=False)

    def __post_init__(self) -> None:
        maximize = self._decided and self.validation is not None and self.validation.maximize
        self._stopper = Stopper(self.n_iter_no_change, self._tolerance(), maximize)

    def run(self) -> None:
        """Train. An interrupt leaves what was learnt so far."""
        self._lap = time.perf_counter()
        (self.loop or type(self.learners[0]).train)(self)
        for learner in self.learners:
            learner.check_finite()
        for best in self._best:
            best.put_back()
        self.progress.close()

    def state(self) -> dict[str, Any]:
        """Return what is needed to go on with these learners."""
        return {
            "history": self.history,
            "n_epochs": self.n_epochs,
            "stopper": vars(self._stopper),
            "best": [best.state() for best in self._best],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a :meth:`state`; the learners are as they were."""
        self.history, self.n_epochs = dict(state["history"]), int(state["n_epochs"])
        vars(self._stopper).update(state["stopper"])
        self._best = [learner.best_weights() for learner in self.learners if state["best"]]
        for best, kept in zip(self._best, state["best"], strict=True):
            best.restore(kept)

    @property
    def best_epoch(self) -> int:
        """The epoch with the best score, from 1; 0 before the first has ended."""
        return self._stopper.best_epoch

    @property
    def best_score(self) -> float:
        """The best score so far."""
        return self._stopper.best * (1.0 if self._decided else self.loss_unit)

    def report(self, k: int) -> Callable[[int, int], None] | None:
        """Return what is to be told how far the k-th learner is in the present epoch."""
        return self.progress.within(self.n_epochs + 1, k, len(self.learners))

    def end_epoch(self, losses: list[float], objectives: list[float] | None = None) -> bool:
        """Take in what an epoch has led to; return whether training ends.

        Parameters
        ----------
        losses : list of float
            Mean loss of each learner.
        objectives : list of float, optional
            Mean loss and penalty of each learner, for solvers that know it. It then says when to
            stop, unless validation does.

        Raises
        ------
        DivergenceError
            When a loss is no number, or far above that of a constant prediction.
        """
        self.n_epochs += 1
        self._check(losses)
        value = self._record(losses, objectives)
        # The learners' loss decides in their own unit, which cannot overflow.
        is_best = self._stopper.update(
            value if self._decided else sum(losses if objectives is None else objectives)
        )
        if self._decided and is_best:
            self._keep_best()
        return self._stopper.should_stop or self.n_epochs >= self.max_iter

    @property
    def _decided(self) -> bool:
        """Whether validation decides when to stop."""
        return self.validation is not None and self.stop_early

    def _keep_best(self) -> None:
        if not self._best:
            self._best = [learner.best_weights() for learner in self.learners]
        for best in self._best:
            best.take()

    def _tolerance(self) -> float:
        if self.tol <= 0:
            return 0.0 if self._decided else -np.inf
        if self._decided and self.validation is not None and self.validation.name != "loss":
            return self.tol
        unit = self.loss_unit if self._decided else 1.0
        return self.tol * unit * float(np.sum(self.null_losses))

    def _check(self, losses: list[float]) -> None:
        for learner, loss, null_loss in zip(self.learners, losses, self.null_losses, strict=True):
            if not loss < _HOPELESS * max(null_loss, 1e-3):
                raise DivergenceError(
                    f"training diverged in epoch {self.n_epochs}: the mean loss is {loss:.3g} "
                    f"where a constant prediction or the start has {null_loss:.3g}. "
                    f"{learner.advice()}"
                )

    def _record(self, losses: list[float], objectives: list[float] | None) -> float:
        """Write down the epoch; return the validation's value, or NaN."""
        n_rows = self.n_rows * len(self.learners)
        seconds = time.perf_counter() - self._lap
        entry = {"loss": sum(losses) * self.loss_unit}
        if objectives is not None:
            entry["objective"] = sum(objectives) * self.loss_unit
        entry |= {"seconds": seconds, "rows_per_second": n_rows / seconds}
        value = np.nan
        if self.validation is not None:
            value = self.validation.score()
            entry[f"validation_{self.validation.name}"] = value
        for name, number in entry.items():
            self.history.setdefault(name, []).append(number)
        self.progress.epoch(self.n_epochs, self.max_iter, entry)
        self._lap = time.perf_counter()
        return value
