"""``fit`` and ``partial_fit`` for rows that come from a dataset, from files or from a stream."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from polyfm.data.dataset import Dataset
from polyfm.data.prefetch import prefetched
from polyfm.data.source import Batches, Source, as_source, is_source
from polyfm.estimators import _out_of_core, _parts
from polyfm.estimators._out_of_core import PartReader, in_words
from polyfm.estimators._validation import Held, Labelled, find_metric
from polyfm.estimators.checkpoints import Checkpoint, Keeper, resumed
from polyfm.solvers.parts import PartwiseLoop
from polyfm.solvers.training import Training

AnySource = Dataset | Source | Batches


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
    _know_base(estimator, source)
    batches, n_rows = _batches(source), 0
    for batch in batches if isinstance(source, Batches) else prefetched(batches):
        _learn_batch(estimator, batch, n_rows, _name(source), **options)
        n_rows += batch.n_rows
        options = {}
    if n_rows == 0:
        raise ValueError(f"{_name(source)} has no rows.")
    _keep_base(estimator, source)


def _batches(source: AnySource, skip: int = 0) -> Any:
    if isinstance(source, Dataset):
        return source.iter_batches(_out_of_core.rows_of_a_part(source), skip)
    return source.batches(skip)


def _name(source: AnySource) -> str:
    return str(source.path) if isinstance(source, Dataset) else source.name


def _know_base(estimator: Any, source: AnySource) -> None:
    """Let a file count columns from where those did that a model has learnt from."""
    if isinstance(source, Source):
        source.starts_like(getattr(estimator, "_zero_based", None))


def _keep_base(estimator: Any, source: AnySource) -> None:
    """Remember where a file counted its columns from."""
    if isinstance(source, Source) and source.has_base:
        estimator._zero_based = source.zero_based is True


def fit_source(
    estimator: Any,
    source: AnySource,
    judges: tuple[Any, Any, Any],
    checkpoint: Checkpoint | None,
    max_memory: Any,
) -> None:
    """Fit an estimator to the rows of a source."""
    limit = _out_of_core.parse_size(max_memory)
    if estimator.warm_start:
        _know_base(estimator, source)
    by_rows = _parts.learns_row_by_row(estimator)
    if checkpoint is not None and not by_rows:
        raise ValueError(
            f"solver={estimator.solver!r} needs all rows at once and has no checkpoints."
        )
    if (
        by_rows
        and not isinstance(source, Dataset)
        and _out_of_core.learns_in_one_pass(estimator, source)
    ):
        if any(part is not None for part in judges):
            raise ValueError(
                "X_val, y_val and sample_weight_val judge epochs, but rows of a stream are learnt "
                "once, as they come: leave them out, or convert the rows to a Dataset."
            )
        _fit_stream(estimator, source, checkpoint, limit)
    else:
        with _out_of_core.as_dataset(source) as dataset:
            base = source.zero_based is True if isinstance(source, Source) else None
            judges = judges_of(judges, base)
            if by_rows:
                _DatasetFit(estimator, dataset, checkpoint, limit).run(*judges)
            else:
                _fit_whole(estimator, dataset, judges, limit)
    _keep_base(estimator, source)


def judges_of(judges: tuple[Any, Any, Any], zero_based: bool | None) -> tuple[Any, Any, Any]:
    """Return the rows that judge epochs, which may lie in a source, too.

    ``zero_based`` is how the rows to learn from count columns, where they are of a file.
    """
    X_val, y_val, sample_weight_val = judges
    if X_val is None or not is_source(X_val):
        return judges
    if y_val is not None or sample_weight_val is not None:
        raise ValueError(
            "X_val is a source, which has its own targets and weights: leave y_val out."
        )
    source = as_source(X_val)
    if isinstance(source, Source):
        source.starts_like(zero_based)
    batch = _out_of_core.whole(source)
    return batch.X, batch.targets, batch.weight


def _fit_whole(
    estimator: Any, dataset: Dataset, judges: tuple[Any, Any, Any], limit: int | None
) -> None:
    """Fit rows in memory, for solvers that need all of them at once."""
    if limit is not None and dataset.n_bytes > limit:
        raise MemoryError(
            f"solver={estimator.solver!r} needs all rows at once: {in_words(dataset.n_bytes)}, "
            f"more than max_memory={in_words(limit)}. A solver that learns row by row, such as "
            "'adagrad', reads them in parts."
        )
    rows = dataset.rows(0, dataset.n_rows)
    estimator._fit(rows.X, rows.targets, rows.weight, *judges)


def _fit_stream(
    estimator: Any, source: Source | Batches, checkpoint: Checkpoint | None, limit: int | None
) -> None:
    """Learn the rows of a stream, each once, with a fresh model."""
    if checkpoint is not None:
        _check_can_go_on(source)
    identity = {"stream": source.identity()}
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
    # Without a checkpoint, nobody goes on from a batch that was learnt in part.
    estimator._measures_stream, estimator._keeps_undo = True, checkpoint is not None
    try:
        for batch in prefetched(batches) if source.reads_ahead else batches:
            _learn_batch(estimator, batch, n_rows, source.name)
            n_rows += batch.n_rows
            _check_size(estimator, n_rows, limit)
            if keeper is not None:
                keeper.after(batch.n_rows)
    except KeyboardInterrupt:
        if keeper is not None and n_rows:
            keeper.save()
        raise
    finally:
        del estimator._measures_stream, estimator._keeps_undo
    if n_rows == 0:
        raise ValueError(f"{source.name} has no rows.")
    estimator.n_iter_ = 1
    if keeper is not None:
        keeper.save()


def _check_can_go_on(source: Source | Batches) -> None:
    """Raise a ValueError for rows that cannot be had a second time, or not as the same columns."""
    if not source.is_repeatable:
        raise ValueError(
            f"{source.name} is read once, so that a training cannot go on from a checkpoint: give "
            "a path, a Source or a Dataset."
        )
    if getattr(getattr(source, "encoder", None), "growing", False):
        raise ValueError(
            "a checkpoint does not hold a vocabulary that grows: fit the encoder first and set "
            "growing=False, or convert the rows to a Dataset."
        )


def _check_size(estimator: Any, n_rows: int, limit: int | None) -> None:
    if limit is not None and _out_of_core.bytes_of(estimator._learners) > limit:
        raise MemoryError(
            f"after {n_rows:,} rows the parameters take more than max_memory={in_words(limit)}: "
            "hash to fewer columns, or lower rank."
        )


def _learn_batch(estimator: Any, batch: Any, n_before: int, name: str, **options: Any) -> None:
    try:
        estimator.partial_fit(batch.X, batch.targets, batch.weight, **options)
    except (ValueError, TypeError) as error:
        place = f", after the first {n_before:,} rows" if n_before else ""
        message = f"{name}{place}: {error}"
        if "classes" in str(error):
            message += (
                " A stream tells its classes by its first batch: name them all in "
                "partial_fit(source, classes=...), shuffle the file, or convert it to a Dataset."
            )
        raise type(error)(message) from error


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
            share = _out_of_core.share_to_hold(me, self.dataset.n_rows)
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
        me._widen()
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
        if state is not None and state["is_over"]:
            self._check_is_over(training, int(state["max_iter"]))
        else:
            me._run_training(training, fitted_before)
        if keeper is not None:
            loop.is_over = True
            keeper.save()

    def _check_is_over(self, training: Training, before: int) -> None:
        """Raise a ValueError where a training has ended that is to go on for longer."""
        if training.n_epochs == before != training.max_iter:
            raise ValueError(
                f"{self.checkpoint} is of a training that ended after max_iter={before} epochs, "
                f"and max_iter is {training.max_iter} now: load the model and fit it with "
                "warm_start=True to go on, or say resume=False to start anew."
            )

    def _state(self, training: Training, loop: PartwiseLoop, seed: int) -> dict[str, Any]:
        self.estimator._adopt(training)
        return {
            "identity": self.identity,
            "seed": seed,
            "part": loop.part,
            "n_rows": loop.n_rows,
            "sums": loop.sums,
            "is_over": loop.is_over,
            "max_iter": training.max_iter,
            "training": training.state(),
        }
