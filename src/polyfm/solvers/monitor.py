"""When to stop, and which epoch was the best."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass
class Stopper:
    """Says when to stop: after ``patience`` epochs in a row without an improvement.

    Parameters
    ----------
    patience : int
        Epochs without improvement to bear with, >= 1.
    tol : float
        An improvement is one by more than ``tol``, in the unit of the watched value.
    maximize : bool
        Whether larger is better.
    """

    patience: int
    tol: float = 0.0
    maximize: bool = False
    best: float = field(init=False, default=np.nan)
    best_epoch: int = field(init=False, default=0)
    n_epochs: int = field(init=False, default=0)
    _n_bad: int = field(init=False, default=0)
    _mark: float = field(init=False, default=np.inf)

    def update(self, value: float) -> bool:
        """Take in the value after one more epoch; return whether it is the best so far."""
        self.n_epochs += 1
        cost = -value if self.maximize else value
        best_cost = -self.best if self.maximize else self.best
        is_best = bool(np.isnan(self.best) or cost < best_cost)
        if is_best:
            self.best, self.best_epoch = value, self.n_epochs
        if cost < self._mark - self.tol:
            self._mark, self._n_bad = cost, 0
        else:
            self._n_bad += 1
        return is_best

    @property
    def should_stop(self) -> bool:
        """Whether patience has run out."""
        return self._n_bad >= self.patience
