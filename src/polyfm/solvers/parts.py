"""Epochs over rows that do not lie in memory all at once: they come in parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyfm.data.rows import Rows
from polyfm.solvers._random import random_order
from polyfm.solvers._threads import Crew
from polyfm.solvers.training import Training

_MOST_PARTS = 1 << 32
"""Of an epoch: each part of each epoch has an order of its own."""

Reader = Callable[[int, int], Iterator[list[Rows]]]
"""Given an epoch, from 0, and a part of it: returns the parts from there on. A part is some rows
with the targets of each learner in turn."""


@dataclass
class PartwiseLoop:
    """Runs the epochs of a training, part by part, and can be taken up between two parts.

    Parameters
    ----------
    read : callable
        Where the rows come from.
    shuffle : bool
        Whether the rows of a part are learnt in a random order, or in their own.
    after_part : callable, optional
        Told, after each part, how many rows it had.
    is_over : bool
        Whether the training has ended.
    part, n_rows, sums
        Where the epoch stands: parts and rows that are done, and each learner's losses of these.
    """

    read: Reader
    shuffle: bool
    after_part: Callable[[int], None] | None = None
    is_over: bool = False
    part: int = 0
    n_rows: int = 0
    sums: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))

    def __call__(self, training: Training) -> None:
        """Run epochs until the training ends."""
        learners = training.learners
        if not self.sums.size:
            self.sums = np.zeros(len(learners))
        with Crew(learners[0].settings.n_jobs) as crew:
            while True:
                self._epoch(training, crew)
                means = self.sums / max(self.n_rows, 1)
                self.part, self.n_rows, self.sums = 0, 0, np.zeros(len(learners))
                self.is_over = training.end_epoch(means.tolist())
                if self.is_over:
                    return

    def _epoch(self, training: Training, crew: Crew) -> None:
        report, is_first = training.report(0), training.n_epochs == 0
        for rows_of in self.read(training.n_epochs, self.part):
            n_rows = rows_of[0].n_rows
            for k, (learner, rows) in enumerate(zip(training.learners, rows_of, strict=True)):
                order = self._order(rows, learner, crew)
                self.sums[k] += n_rows * learner.visit(rows, order, crew, is_first=is_first)
            self.part += 1
            self.n_rows += n_rows
            if report is not None:
                report(self.n_rows, training.n_rows)
            if self.after_part is not None:
                self.after_part(n_rows)
        for learner in training.learners:
            learner.n_epochs += 1
        type(training.learners[0]).end_pass(training.learners)

    def _order(self, rows: Rows, learner: Any, crew: Crew) -> NDArray[Any]:
        if not self.shuffle:
            return rows.numbers
        number = learner.n_epochs * _MOST_PARTS + self.part
        n_jobs = learner.settings.n_jobs
        return random_order(rows.numbers, learner.settings.seed, number, n_jobs, crew.run)
