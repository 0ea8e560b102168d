"""The unit of the target: learning works on targets of size 1, users see their own unit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyfm.losses import contract as losses
from polyfm.losses.averages import weighted_mean


@dataclass(frozen=True)
class TargetScale:
    r"""Learning sees :math:`(y - o) / s`; a raw prediction f becomes :math:`o + s f`.

    So one learning rate, start and penalty serves ratings, prices and microseconds alike.
    """

    offset: float = 0.0
    scale: float = 1.0
    applies: bool = False
    """Whether the loss allows it. A count's log link, for one, does not."""

    @classmethod
    def of(
        cls, loss: Any, y: NDArray[np.float64], weight: NDArray[np.float64], intercept: bool
    ) -> TargetScale:
        """Measure the best constant and the root mean square distance from it.

        Without an intercept the offset stays 0.

        Raises
        ------
        ValueError
            When the targets spread too far for their differences to be finite.
        """
        if losses.scaled(loss, 1.0) is None:
            return cls()
        offset = losses.best_constant(loss, y, weight) if intercept else 0.0
        with np.errstate(over="ignore"):
            distance = np.abs(y - offset)
        largest = float(distance.max(initial=0.0))
        if not np.isfinite(largest) or not np.isfinite(offset):
            raise ValueError("y spreads over more than the largest finite number: scale it down.")
        if largest == 0.0:
            return cls(offset, 1.0, True)
        scale = largest * float(np.sqrt(weighted_mean((distance / largest) ** 2, weight)))
        return cls(offset, scale if scale > 0 else 1.0, True)

    def scaled(self, loss: Any) -> Any:
        """Return the loss for scaled targets."""
        return losses.scaled(loss, self.scale) if self.applies else loss

    def loss_unit(self, loss: Any) -> float:
        """Return what a loss of 1 on scaled targets is on the original ones."""
        if not self.applies:
            return 1.0
        one = losses.value(self.scaled(loss), 0.0, 1.0)
        return float(losses.value(loss, 0.0, self.scale) / one)

    def to_scaled(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Map targets to what learning sees."""
        return (y - self.offset) / self.scale

    def from_scaled(self, scores: NDArray[Any]) -> NDArray[Any]:
        """Map raw predictions of a learner to the target's unit."""
        if not self.applies:
            return scores
        # In double precision: an offset may be far larger than what is learnt around it.
        return np.asarray(scores.astype(np.float64) * self.scale + self.offset)
