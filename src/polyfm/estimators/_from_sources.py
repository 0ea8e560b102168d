"""``fit`` and ``partial_fit`` for rows that come from a dataset, from files or from a stream."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from polyfm.data.dataset import Dataset
from polyfm.data.prefetch import prefetched
from polyfm.data.source import Batches, Source, as_source, is_source
from polyfm.estimators import _out_of_core, _parts
from polyfm.estimators._out_of_core import PartReader
from polyfm.estimators._validation import Held, Labelled, find_metric
from polyfm.estimators.checkpoints import Checkpoint, Keeper, resumed
from polyfm.solvers.parts import PartwiseLoop
from polyfm.solvers.training import Training

AnySource = Dataset | Source | Batches
_LEAST_FOR_EARLY_STOPPING = 1_000


def check_alone(estimator: Any, **others: Any) -> None:
    """Raise a ValueError where targets or weights are given beside a source that has its own."""
    for name, value in others.items():
        if value is not None:
            raise ValueError(
                f"{type(estimator).__name__} takes {name} from the rows' source; it was given "
                "besides."
            )


def partial_fit_source(estimator: Any, source: AnySource, **options: Any) -> None:
    """Learn all rows of a source, each once, batch by batch; another thread reads ahead."""
    batches = prefetched(_batches(source))
    for number, batch in enumerate(batches):
        try:
            estimator.partial_fit(batch.X, batch.targets, batch.weight, **options)
        except (ValueError, TypeError) as error:
            raise type(error)(f"Batch {number} of {_name(source)}: {error}") from error
        options = {}


def _batches(source: AnySource, skip: int = 0) -> Any:
    if isinstance(source, Dataset):
        return source.iter_batches(_out_of_core.rows_of_a_part(source), skip)
    return source.batches(skip)


def _name(source: AnySource) -> str:
    return str(source.path) if isinstance(source, Dataset) else source.name


def fit_source(
    estimator: Any,
    source: AnySource,
    X_val: Any,
    y_val: Any,
    sample_weight_val: Any,
    checkpoint: Checkpoint | None,
    max_memory: Any,
) -> None:
    """Fit an estimator to the rows of a source."""
    limit = _out_of_core.parse_size(max_memory)
    X_val, y_val, sample_weight_val = judges_of(X_val, y_val, sample_weight_val)
    if not _parts.learns_row_by_row(estimator):
        _fit_whole(estimator, source, X_val, y_val, sample_weight_val, checkpoint, limit)
        return
    if not isinstance(source, Dataset) and _out_of_core.learns_in_one_pass(estimator, source):
        check_alone(estimator, X_val=X_val)
        _fit_stream(estimator, source, checkpoint, limit)
        return
    with _out_of_core.as_dataset(source) as dataset:
        fit = _DatasetFit(estimator, dataset, checkpoint, limit)
        fit.run(X_val, y_val, sample_weight_val)


def judges_of(X_val: Any, y_val: Any, sample_weight_val: Any) -> tuple[Any, Any, Any]:
    """Return the rows that judge epochs, which may lie in a source, too."""
    if X_val is None or not is_source(X_val):
        return X_val, y_val, sample_weight_val
    batch = _out_of_core.whole(as_source(X_val))
    return batch.X, batch.targets, batch.weight


def _fit_whole(
    estimator: Any,
    source: AnySource,
    X_val: Any,
    y_val: Any,
    sample_weight_val: Any,
    checkpoint: Checkpoint | None,
    limit: int | None,
) -> None:
    """Fit rows in memory, for solvers that need all of them at once."""
    if checkpoint is not None:
        raise ValueError(
            f"solver={estimator.solver!r} needs all rows at once and has no checkpoints."
        )
    with _out_of_core.as_dataset(source) as dataset:
        if limit is not None and dataset.n_bytes > limit:
            raise MemoryError(
                f"solver={estimator.solver!r} needs all rows at once: {dataset.n_bytes / 1e9:.2f} "
                f"GB, more than max_memory={limit / 1e9:.2f} GB. A solver that learns row by row, "
                "such as 'adagrad', reads them in parts."
            )
        rows = dataset.rows(0, dataset.n_rows)
        estimator._fit(rows.X, rows.targets, rows.weight, X_val, y_val, sample_weight_val)


def _fit_stream(
    estimator: Any, source: Source | Batches, checkpoint: Checkpoint | None, limit: int | None
) -> None:
    """Learn the rows of a stream, each once, with a fresh model."""
    identity, fitted_before = {"stream": source.identity()}, estimator.__sklearn_is_fitted__()
    state = resumed(checkpoint, estimator, identity)
    if state is None and not (estimator.warm_start and estimator.__sklearn_is_fitted__()):
        estimator._forget()
    elif state is None:
        # Learners change in place: spare those that are kept if this fails.
        estimator._learners = [learner.copy() for learner in estimator._learners]
    n_rows = 0 if state is None else int(state["rows"])
    keeper = None
    if checkpoint is not None:
        keeper = Keeper(checkpoint, estimator, lambda: {"identity": identity, "rows": n_rows})
    batches = source.batches(n_rows)
    try:
        for batch in prefetched(batches) if source.reads_ahead else batches:
            _learn_batch(estimator, batch, n_rows, source.name)
            n_rows += batch.n_rows
            if limit is not None and _out_of_core.bytes_of(estimator._learners) > limit:
                raise MemoryError(
                    f"after {n_rows:,} rows the parameters take more than "
                    f"max_memory={limit / 1e9:.2f} GB: hash to fewer columns, or lower rank."
                )
            if keeper is not None:
                keeper.after(batch.n_rows)
    except KeyboardInterrupt:
        if not fitted_before and n_rows:
            estimator._kept = dict(estimator.__dict__)
        raise
    if n_rows == 0:
        raise ValueError(f"{source.name} has no rows.")
    estimator.n_iter_ = 1
    if keeper is not None:
        keeper.save()


def _learn_batch(estimator: Any, batch: Any, n_before: int, name: str) -> None:
    try:
        estimator.partial_fit(batch.X, batch.targets, batch.weight)
    except (ValueError, TypeError) as error:
        place = f", after the first {n_before:,} rows" if n_before else ""
        raise type(error)(f"{name}{place}: {error}") from error


class _DatasetFit:
    """The epochs of one estimator over one dataset."""

    def __init__(
        self, estimator: Any, dataset: Dataset, checkpoint: Checkpoint | None, limit: int | None
    ) -> None:
        if dataset.n_rows == 0 or not dataset.has_targets:
            what = "rows" if dataset.n_rows == 0 else "targets"
            raise ValueError(f"{dataset.path} has no {what}.")
        self.estimator, self.dataset = estimator, dataset
        self.checkpoint, self.limit = checkpoint, limit
        self.identity = {"rows": dataset.fingerprint}

    def run(self, X_val: Any, y_val: Any, sample_weight_val: Any) -> None:
        """Fit."""
        me = self.estimator
        me._check_parameters()
        loss = _parts.find_loss(me)
        metric = find_metric(me._scoring, loss, me._metrics)
        fitted_before = me.__sklearn_is_fitted__()
        warm = bool(me.warm_start) and fitted_before
        share = 0.0
        if X_val is None:
            share = _out_of_core.share_to_hold(me, self.dataset.n_rows, _LEAST_FOR_EARLY_STOPPING)
        state = resumed(self.checkpoint, me, self.identity)
        seed = int(check_random_state(me.random_state).randint(np.iinfo(np.int32).max))
        seed = seed if state is None else int(state["seed"])
        part_rows = _out_of_core.rows_of_a_part(self.dataset)
        reader = PartReader(me, self.dataset, seed, share, bool(me.shuffle), part_rows)
        rows = self._begin(reader, loss, warm, state)
        _out_of_core.check_memory(me, reader, self.limit)
        held = Held(rows)
        if X_val is not None:
            held = me._hold_out(rows, X_val, y_val, sample_weight_val)
        elif share:
            held = Held(rows, reader.held())
        if state is None:
            for k, learner in enumerate(me._learners):
                learner.set_parts(reader.in_order(k))
        self._train(reader, loss, metric, held, warm, fitted_before, state)

    def _begin(
        self, reader: PartReader, loss: Any, warm: bool, state: dict[str, Any] | None
    ) -> Labelled:
        """Make learners from a look at some rows, or let those that there are go on."""
        me, batch = self.estimator, reader.look()
        fresh = not warm and state is None
        if fresh:
            me._forget()
            me._meet_targets(self.dataset)
        rows: Labelled = me._check_labelled(
            batch.X, batch.targets, batch.weight, reset=fresh, streaming=True, weighing=False
        )
        if rows.n_rows == 0:
            raise ValueError("Every sample weight that was looked at is zero: nothing to learn.")
        me._check_loss(loss, rows.targets)
        n_rows = max(int(self.dataset.n_rows * (1.0 - reader.held_share)), 1)
        if fresh:
            me._create(loss, rows, streaming=False)
        elif state is None:
            # Learners change in place: spare those that are kept if this fails.
            me._learners = [learner.copy() for learner in me._learners]
            me._end_waiting()
        me._go_on(loss, n_rows)
        return rows

    def _train(
        self,
        reader: PartReader,
        loss: Any,
        metric: Any,
        held: Held,
        warm: bool,
        fitted_before: bool,
        state: dict[str, Any] | None,
    ) -> None:
        me = self.estimator
        loop = PartwiseLoop(reader.read, bool(me.shuffle))
        training = me._training(loss, metric, held, me._solver_rows(held.train), warm=warm)
        training.rows, training.loop = [], loop
        training.n_rows = int(me._learners[0].n_rows)
        training.max_iter = me._find_max_iter(training.n_rows)
        if state is not None:
            training.restore(state["training"])
            loop.part, loop.n_rows = int(state["part"]), int(state["n_rows"])
            loop.sums = np.asarray(state["sums"], dtype=np.float64)
        keeper = None
        if self.checkpoint is not None:
            keeper = Keeper(self.checkpoint, me, lambda: self._state(training, loop, reader.seed))
            loop.after_part = keeper.after
        if state is None or not state["is_over"]:
            me._run_training(training, fitted_before)
        if keeper is not None:
            loop.is_over = True
            keeper.save()

    def _state(self, training: Training, loop: PartwiseLoop, seed: int) -> dict[str, Any]:
        self.estimator._adopt(training)
        return {
            "identity": self.identity,
            "seed": seed,
            "part": loop.part,
            "n_rows": loop.n_rows,
            "sums": loop.sums,
            "is_over": loop.is_over,
            "training": training.state(),
        }
