"""What every solver of a factorized model has in common."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from polyfm.data.rows import Rows, as_rows
from polyfm.exceptions import DivergenceError
from polyfm.models._score import Parameters
from polyfm.models.factorized import Factorized, aligned_zeros
from polyfm.models.layout import Layout
from polyfm.solvers._best import BestWeights
from polyfm.solvers._epoch import Penalties, Switches
from polyfm.solvers._start import start_block
from polyfm.updates import contract as updates

if TYPE_CHECKING:
    from polyfm.solvers.training import Training

Report = Callable[[int, int], None]
"""Called between slices with the number of rows done and to do in this pass."""


@dataclass(frozen=True)
class Settings:
    """What is to be learnt, and how."""

    loss: Any
    rule: Any
    penalties: Penalties
    switches: Switches
    start_scales: NDArray[np.float64]
    """(k,): standard deviation of each basis at the start, for a column of ones."""
    seed: int
    n_jobs: int = 1
    signs: bool = False
    """Whether the weights of the bases start as 1 and -1 in turn, or all as 1."""
    block_size: int = 8
    """Factors of a feature that coordinate descent learns together."""
    batch_size: int = 1
    """Rows whose gradients make a step of a learner of batches."""
    batch_mean: bool = False
    """Whether a batch's gradient is the mean over its rows, or their sum."""
    linear_strengths: NDArray[np.float64] | None = None
    """(d,): what the penalty of each column's linear weight is multiplied by; None for ones."""
    factor_strengths: NDArray[np.float64] | None = None
    """(d,): what the penalty of each column's factors is multiplied by; None for ones."""


@dataclass
class Learner(ABC):
    """A factorized model in the making: parameters, what the solver remembers, and counters."""

    model: Factorized
    settings: Settings
    n_visits: int = 0
    """Rows visited, over all epochs; the argument of the rate schedule."""
    n_rows: int = 0
    """Rows of the objective: those of the data set, or those streamed so far."""
    n_epochs: int = 0

    @classmethod
    @abstractmethod
    def create(
        cls,
        layout: Layout,
        settings: Settings,
        *,
        n_features: int,
        start: float | None,
        units: bool,
        dtype: DTypeLike,
    ) -> Self:
        """Allocate a model and start everything but the rows of its features.

        ``start`` is what the model predicts for a row without non-zeros, by its bias; None for a
        model without one. ``units`` says whether columns need a unit of their own, as their
        values are not all 1.
        """

    @abstractmethod
    def set_rows(self, rows: Rows) -> None:
        """Make ``rows`` the whole objective, and start the features that are new in them."""

    @staticmethod
    @abstractmethod
    def train(training: Training) -> None:
        """Run epochs until :meth:`Training.end_epoch` says that training ends."""

    @abstractmethod
    def advice(self) -> str:
        """Say in words what helps against divergence."""

    @staticmethod
    def tidied(learners: list[Any], layout: Layout) -> tuple[list[Any], Layout]:
        """Return learners without what training has found to be of no use, and their layout."""
        return learners, layout

    @property
    @abstractmethod
    def n_planes(self) -> int:
        """How many numbers are kept for a coordinate; the column that counts visits follows."""

    def renewed(self, settings: Settings) -> Self:
        """Return a learner of the same model that goes on with other settings but its own seed."""
        learner = replace(self, settings=replace(settings, seed=self.settings.seed))
        # A memory-mapped model can be read only.
        return learner if self.model.parameters.table.flags.writeable else learner.copy()

    def copy(self) -> Self:
        """Return a learner that may change without changing this one."""
        blocks = []
        for block in self.model.parameters:
            aligned = aligned_zeros(block.shape, block.dtype)
            aligned[...] = block
            blocks.append(aligned)
        model = replace(self.model, parameters=Parameters(*blocks))
        return replace(self, model=model)

    def best_weights(self) -> BestWeights:
        """Return room for a copy of the weights, which can be written back."""
        keeps_sums = self.settings.rule is not None and updates.sums_gradients(self.settings.rule)
        n_kept = self.n_planes if keeps_sums else 1
        return BestWeights(self.model.parameters, self.n_planes, n_kept)

    def check_finite(self, features: NDArray[np.int64] | None = None) -> None:
        """Raise a DivergenceError if a parameter, of the given features or at all, is not finite.

        Learning stops at the first prediction that is not finite. This finds what the last rows
        did to parameters that no later row has used.
        """
        p = self.model.parameters
        if features is not None:
            p = p._replace(linear=p.linear[features], table=p.table[features])
        for name, block in zip(p._fields, p, strict=True):
            with np.errstate(invalid="ignore", over="ignore"):
                # A sum takes one look at each number, but that of finite ones may overflow.
                if np.isfinite(block.sum()):
                    continue
                extremes = (block.min(initial=0.0), block.max(initial=0.0))
            if not np.isfinite(extremes).all():
                raise DivergenceError(
                    f"training diverged in epoch {self.n_epochs + 1}: {name} parameters are no "
                    f"longer finite. {self.advice()}"
                )


def new_model(
    layout: Layout, settings: Settings, rule: Any, blocks: dict[str, NDArray[Any]], n_features: int
) -> Factorized:
    """Return a model whose features have not started: the bias is 0, weights are 1 or signs.

    Parameters
    ----------
    rule : NamedTuple
        The update rule that says how many planes there are and how they start.
    blocks : dict
        The large blocks, "linear" and "table".
    """
    n_planes, dtype = updates.n_planes(rule), blocks["table"].dtype
    m, k = layout.degrees.shape
    penalties = settings.penalties
    parameters = Parameters(
        bias=np.zeros((n_planes, 1), dtype),
        weights=np.zeros((n_planes, k), dtype),
        theta=np.zeros((n_planes, m), dtype),
        degrees=layout.degrees.astype(dtype),
        **blocks,
    )
    signs = np.where(np.arange(k) % 2, -1.0, 1.0) if settings.signs else np.ones(k)
    start_block(rule, penalties.bias, parameters.bias, np.zeros(1))
    start_block(rule, penalties.weights, parameters.weights, signs)
    start_block(rule, penalties.theta, parameters.theta, np.ones(m))
    return Factorized(layout.kernel, layout.columns, parameters, layout.n_dummies)


def start_bias(model: Factorized, rule: Any, penalty: Any, start: float) -> None:
    """Start the bias so that a row without non-zeros is predicted as ``start``.

    Kernels and dummy features may predict something of an empty row themselves.
    """
    empty = sp.csr_matrix((1, model.n_features), dtype=model.parameters.table.dtype)
    own = float(model.scores(as_rows(empty))[0])
    start_block(rule, penalty, model.parameters.bias, np.array([start - own]))


def allocate(
    shapes: dict[str, tuple[int, ...]], dtype: DTypeLike, n_more: int
) -> dict[str, NDArray[Any]]:
    """Allocate the large blocks with some more rows, or say in a MemoryError what they take."""
    try:
        return {
            name: aligned_zeros((n_rows + n_more, *rest), dtype)
            for name, (n_rows, *rest) in shapes.items()
        }
    except MemoryError:
        size = sum(math.prod(shape) for shape in shapes.values()) * np.dtype(dtype).itemsize
        raise MemoryError(
            f"The parameters of {shapes['linear'][0]} columns take {size / 2**30:.1f} GiB, more "
            "than there is. A single stray id makes so many columns: hash ids to fewer (for "
            "example FeatureHasher), drop rare ones (OneHotFieldEncoder(min_count=...)), lower "
            "rank or order, or pass float32."
        ) from None
