"""Judging models on streams: progressive validation and regret."""

from polyfm.data.batches import Batch
from polyfm.online.progressive import Progressive, ProgressiveResult, progressive_validation
from polyfm.online.regret import Regret, regret
from polyfm.online.streams import iter_batches

__all__ = [
    "Batch",
    "Progressive",
    "ProgressiveResult",
    "Regret",
    "iter_batches",
    "progressive_validation",
    "regret",
]
