"""Fitting rows that do not lie in memory: datasets, files and streams."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from polyfm.data._examine import look_at_values
from polyfm.data.batches import Batch
from polyfm.data.dataset import Dataset
from polyfm.data.lines import TextFormatError, starts_at_zero
from polyfm.data.prefetch import prefetched
from polyfm.data.rows import Rows, largest_value, read_only
from polyfm.data.source import Batches, Source
from polyfm.estimators._validation import ROWS_FOR_EARLY_STOPPING, Labelled
from polyfm.solvers._random import mark_share

_BLOCK = 1024
"""Rows that stay together when the rows of a dataset are shuffled."""
_PART_ROWS, _PART_ENTRIES = 1 << 17, 1 << 22
_LOOK_ROWS = 65_536
_MOST_HELD = 100_000
"""Rows held out at most: they stay in memory."""
_SMALL_FILE = 64 << 20
"""Bytes of text below which the number of passes is decided by counting the rows."""


def learns_in_one_pass(estimator: Any, source: Source | Batches) -> bool:
    """Say whether rows can be learnt as they are read: once, and in a space that is known."""
    once = estimator.max_iter == 1 or (
        estimator.max_iter == "auto" and _size_of(source) >= _SMALL_FILE
    )
    return once and (estimator.max_features is not None or source.n_features is not None)


def _size_of(source: Source | Batches) -> int:
    if isinstance(source, Batches):
        return 0
    paths = source.path if isinstance(source.path, list | tuple) else [source.path]
    return sum(
        Path(p).stat().st_size for p in paths if isinstance(p, str | Path) and Path(p).is_file()
    )


@contextlib.contextmanager
def as_dataset(source: Dataset | Source | Batches) -> Iterator[Dataset]:
    """Provide a source's rows as a dataset, a temporary one if they are none yet."""
    if isinstance(source, Dataset):
        yield source
        return
    with tempfile.TemporaryDirectory(prefix="polyfm-") as folder:
        yield _converted(source, Path(folder) / "rows")


def _converted(source: Source | Batches, path: Path) -> Dataset:
    try:
        return _written(source, path)
    except TextFormatError as error:
        if not starts_at_zero(error) or source.zero_based != "auto" or not source.is_repeatable:
            raise
    # Only the index 0 of some later row has told that columns are counted from 0.
    source.zero_based = True
    return _written(source, path)


def _written(source: Source | Batches, path: Path) -> Dataset:
    dataset = Dataset.write(path, source.batches(), n_features=source.n_features)
    if dataset.n_rows == 0:
        raise ValueError(f"{source.name} has no rows.")
    return dataset


def whole(source: Dataset | Source | Batches) -> Batch:
    """Return all rows of a source, in memory."""
    with as_dataset(source) as dataset:
        return dataset.rows(0, dataset.n_rows)  # maps stay when a temporary file goes


@dataclass
class PartReader:
    """Reads a dataset in parts, as the learners of an estimator see its rows.

    Parameters
    ----------
    estimator : BaseFM
        Checks the rows and knows its learners' units.
    dataset : Dataset
    seed : int
        Of the order, and of the choice of rows that are held out.
    held_share : float
        Share of the rows that are held out of the parts.
    shuffle : bool
        Whether each epoch brings the blocks of rows in an order of its own.
    part_rows : int
        Rows of a part, a multiple of the block.
    """

    estimator: Any
    dataset: Dataset
    seed: int
    held_share: float
    shuffle: bool
    part_rows: int
    _are_checked: bool = field(init=False, default=False)
    """Whether every row has passed the estimator's checks: files do not change."""

    def read(self, epoch: int, first_part: int = 0) -> Iterator[list[Rows]]:
        """Yield the parts of an epoch, from one of them on; a thread makes them ready."""
        return self._read(self._order(epoch), first_part)

    def in_order(self, learner: int) -> Iterator[Rows]:
        """Yield all parts in the order of the dataset, as one learner sees them."""
        return (rows_of[learner] for rows_of in self._read(np.arange(self._n_blocks), 0))

    def _read(self, blocks: NDArray[np.int64], first_part: int) -> Iterator[list[Rows]]:
        yield from prefetched(self._parts_of(blocks, first_part))
        self._are_checked = self._are_checked or first_part == 0

    def held(self) -> Labelled:
        """Return the rows that are held out.

        Raises
        ------
        ValueError
            If there are none.
        """
        pieces = [self._held_of(b) for b in np.split(np.arange(self._n_blocks), self._cuts)]
        pieces = [piece for piece in pieces if piece.X.shape[0]]
        if not pieces:
            raise ValueError(
                f"early_stopping holds out a share of {self.held_share:.3g} of {len(self.dataset)} "
                "rows, which is none: give X_val, or set early_stopping=False."
            )
        weights = [np.ones(p.n_rows) if p.weight is None else p.weight for p in pieces]
        X = sp.vstack([piece.X for piece in pieces], format="csr")
        y = np.concatenate([piece.targets for piece in pieces])
        return self._checked(Batch(X, y, np.concatenate(weights)))

    def _held_of(self, blocks: NDArray[np.int64]) -> Batch:
        ranges = self._ranges(blocks)
        return _some(self.dataset.take(ranges), self._are_held(ranges))

    def look(self) -> Batch:
        """Return some rows from all over the dataset, of those that are not held out."""
        blocks = np.arange(self._n_blocks)
        if self.dataset.n_rows > _LOOK_ROWS:
            random = np.random.default_rng(self.seed)
            blocks = np.sort(random.choice(blocks, _LOOK_ROWS // _BLOCK, replace=False))
        ranges = self._ranges(blocks)
        batch = self.dataset.take(ranges)
        return _some(batch, ~self._are_held(ranges)) if self.held_share else batch

    @property
    def _n_blocks(self) -> int:
        return -(-self.dataset.n_rows // _BLOCK)

    @property
    def _cuts(self) -> NDArray[np.int64]:
        """Where the blocks of one part end and those of the next begin."""
        step = self.part_rows // _BLOCK
        return np.arange(step, self._n_blocks, step)

    def _order(self, epoch: int) -> NDArray[np.int64]:
        if not self.shuffle:
            return np.arange(self._n_blocks)
        return np.random.default_rng([self.seed, epoch]).permutation(self._n_blocks)

    def _ranges(self, blocks: NDArray[np.int64]) -> list[tuple[int, int]]:
        """Return the rows of some blocks, neighbours in one range."""
        runs = np.split(blocks, np.flatnonzero(np.diff(blocks) != 1) + 1)
        n = self.dataset.n_rows
        return [(int(r[0]) * _BLOCK, min((int(r[-1]) + 1) * _BLOCK, n)) for r in runs if len(r)]

    def _parts_of(self, blocks: NDArray[np.int64], first_part: int) -> Iterator[list[Rows]]:
        for part in np.split(blocks, self._cuts)[first_part:]:
            yield self.estimator._solver_rows(self._rows_of(np.sort(part)))

    def _rows_of(self, blocks: NDArray[np.int64]) -> Labelled:
        """Return the rows of some blocks; those that are held out are not among those meant."""
        ranges = self._ranges(blocks)
        rows = self._labelled(self.dataset.take(ranges))
        if self.held_share:
            held = self._are_held(ranges)
            rows = rows._replace(numbers=rows.numbers[~held[rows.numbers]])
        return rows

    def _labelled(self, batch: Batch) -> Labelled:
        """Return rows of the dataset, which has looked at their columns itself."""
        me, new = self.estimator, not self._are_checked
        if new and not self._are_moderate(batch.X.data):
            return self._checked(batch)  # which names the value that is too large
        rows: Labelled = me._stored_labelled(batch.X, batch.targets, batch.weight, new=new)
        return rows

    def _are_moderate(self, values: NDArray[Any]) -> bool:
        """Say whether the squares of values can be stored."""
        if all(shard.all_ones for shard in self.dataset.shards):
            return True
        return bool(look_at_values(read_only(values), largest_value(values.dtype))[1] == 0)

    def _checked(self, batch: Batch) -> Labelled:
        rows: Labelled = self.estimator._check_labelled(
            batch.X, batch.targets, batch.weight, reset=False, streaming=True, judging=True
        )
        return rows

    def _are_held(self, ranges: list[tuple[int, int]]) -> NDArray[np.bool_]:
        """Say which rows of some ranges are held out."""
        return _are_held(
            np.concatenate([np.arange(*r) for r in ranges]), self.seed, self.held_share
        )


def _some(batch: Batch, mask: NDArray[np.bool_]) -> Batch:
    """Return the rows of a batch that a mask is true for."""
    weight = None if batch.weight is None else batch.weight[mask]
    return Batch(batch.X[mask], batch.targets[mask], weight)


def _are_held(numbers: NDArray[np.int64], seed: int, share: float) -> NDArray[np.bool_]:
    """Say which rows are held out, by their numbers alone."""
    out = np.empty(len(numbers), dtype=np.bool_)
    mark_share(numbers, seed, share, out)
    return out


def share_to_hold(estimator: Any, n_rows: int) -> float:
    """Return what share of the rows is held out to judge epochs by."""
    wanted = estimator.early_stopping
    if wanted == "auto":
        wanted = n_rows >= ROWS_FOR_EARLY_STOPPING and estimator._find_max_iter(n_rows) > 1
    return min(float(estimator.validation_fraction), _MOST_HELD / n_rows) if wanted else 0.0


def rows_of_a_part(dataset: Dataset) -> int:
    """Return how many rows make a part: fewer where rows are long."""
    mean = max(dataset.nnz / max(dataset.n_rows, 1), 1.0)
    rows = min(_PART_ROWS, int(_PART_ENTRIES / mean))
    return max(rows // _BLOCK, 1) * _BLOCK


def bytes_of(value: Any) -> int:
    """Return the size of all arrays within an object of polyfm's."""
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    if isinstance(value, list | tuple):
        return sum(bytes_of(item) for item in value)
    if type(value).__module__.startswith("polyfm.") and hasattr(value, "__dict__"):
        return sum(bytes_of(item) for item in vars(value).values())
    return 0


def in_words(n_bytes: float) -> str:
    """Return a size with a unit in which it has digits."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= size:
            return f"{n_bytes / size:.3g} {unit}"
    return f"{n_bytes:.0f} bytes"


def parse_size(size: Any) -> int | None:
    """Return a number of bytes of a number or a text such as "1.5GB"; None for None.

    Raises
    ------
    ValueError
        For what is none.
    """
    if size is None:
        return None
    units = {"kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12, "b": 1.0, "": 1.0}
    text = str(size).strip().lower().replace(" ", "")
    number = text.rstrip("kmgtb")
    try:
        n = float(number) * units[text[len(number) :]]
    except (ValueError, KeyError):
        n = -1.0
    if not 0 < n < 2**63:
        raise ValueError(f"max_memory must be bytes or a text such as '2GB', got {size!r}.")
    return int(n)


def check_memory(estimator: Any, reader: PartReader, limit: int | None) -> None:
    """Raise a MemoryError if a training would take more than it may.

    Counted are the parameters, a copy of the best weights, the parts in memory and the rows held
    out, not the interpreter and what other code holds.
    """
    if limit is None:
        return
    dataset = reader.dataset
    model = bytes_of(estimator._learners)
    best = model // 2 if reader.held_share else 0
    per_row = 12.0 * dataset.nnz / max(dataset.n_rows, 1) + 40.0
    held = reader.held_share * dataset.n_rows * per_row
    parts = 4 * reader.part_rows * per_row
    if model + best + held + parts > limit:
        raise MemoryError(
            f"training takes about {in_words(model + best + held + parts)}, of these "
            f"{in_words(model)} for the parameters of {dataset.n_features:,} columns"
            f"{f' and {in_words(best)} for the best of them' if best else ''}, more than "
            f"max_memory={in_words(limit)}: hash to fewer columns, lower rank, set "
            "early_stopping=False, or raise max_memory."
        )
