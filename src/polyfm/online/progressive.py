"""Progressive validation: each row is predicted before it is learnt."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from polyfm.data.batches import Batch
from polyfm.inspection.plots import _axes
from polyfm.online.metrics import METRICS, Sums
from polyfm.online.streams import iter_batches


@dataclass
class ProgressiveResult:
    """What progressive validation has found.

    Attributes
    ----------
    total : dict of str to float
        The metrics over all rows that were predicted.
    windows : list of dict
        For each window: ``"rows"``, how many rows of the stream had gone by at its end; the
        metrics over its rows; ``"nonzeros"`` of the model; ``"seconds"`` since the start.
    n_rows : int
        Rows that were learnt.
    n_predicted : int
        Rows that were predicted before.
    seconds : float
        Time, reading included.
    interrupted : bool
        Whether Ctrl-C ended it before the stream did.
    """

    total: dict[str, float]
    windows: list[dict[str, float]]
    n_rows: int
    n_predicted: int
    seconds: float
    interrupted: bool = False

    @property
    def rows_per_second(self) -> float:
        """Rows read, predicted and learnt in a second."""
        return self.n_rows / max(self.seconds, 1e-9)

    def to_frame(self) -> Any:
        """Return the windows as a pandas frame; it needs pandas."""
        import pandas as pd

        return pd.DataFrame(self.windows)

    def plot(self, metric: str | None = None, ax: Any = None) -> Any:
        """Draw a metric over the windows and in total; it needs matplotlib.

        Parameters
        ----------
        metric : str, optional
            Which; the first if None.
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure if None.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ValueError
            For a metric that was not asked for.
        """
        metric = next(iter(self.total)) if metric is None else metric
        if metric not in self.total:
            raise ValueError(f"metric={metric!r} was not measured, only {list(self.total)}.")
        ax = _axes(ax, (7.0, 4.0))
        ax.plot(
            [window["rows"] for window in self.windows],
            [window[metric] for window in self.windows],
            label="each window",
        )
        ax.axhline(self.total[metric], color="0.5", linestyle="--", linewidth=1, label="all rows")
        ax.set(xlabel="rows", ylabel=metric.replace("_", " "))
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False)
        return ax


@dataclass
class Progressive:
    """Progressive validation that can be left and taken up again.

    Parameters
    ----------
    model : estimator with ``partial_fit``
        Changed in place.
    metrics : sequence of str, optional
        ``"rmse"``, ``"mae"``; ``"log_loss"``, ``"auc"``, ``"accuracy"``; those of the task if None.
    window : int
        Rows of a window.
    classes : sequence, optional
        All labels, for a classifier that is not fitted.
    """

    model: Any
    metrics: Sequence[str] | None
    window: int
    classes: Any = None
    n_rows: int = 0
    seconds: float = 0.0
    windows: list[dict[str, float]] = field(default_factory=list)
    _total: Sums = field(init=False)
    _window: Sums = field(init=False)

    def __post_init__(self) -> None:
        task = "classification" if is_classifier(self.model) else "regression"
        names = METRICS[task] if self.metrics is None else tuple(self.metrics)
        unknown = [name for name in names if name not in METRICS[task]]
        if unknown:
            raise ValueError(
                f"metrics: {unknown[0]!r} is none for {task}; there are {', '.join(METRICS[task])}."
            )
        if self.window < 1:
            raise ValueError(f"window must be at least 1, got {self.window}.")
        if self.metrics is None and task == "classification" and self._several():
            names = tuple(name for name in names if name != "auc")
        self._total, self._window = Sums(names), Sums(names)

    def _several(self) -> bool:
        """Say whether there are more than two classes, as far as that is known."""
        known = getattr(self.model, "classes_", () if self.classes is None else self.classes)
        return len(known) > 2

    def take(self, batch: Batch) -> bool:
        """Predict and learn a batch; return whether a window has ended."""
        started = time.perf_counter()
        before = self.n_rows // self.window
        if self.model.__sklearn_is_fitted__():
            self._judge(batch)
        self._learn(batch)
        self.n_rows += batch.n_rows
        self.seconds += time.perf_counter() - started
        ended = self.n_rows // self.window > before
        if ended:
            self.close_window()
        return ended

    def _learn(self, batch: Batch) -> None:
        more = {} if batch.weight is None else {"sample_weight": batch.weight}
        if self.classes is not None and not self.model.__sklearn_is_fitted__():
            more["classes"] = np.asarray(self.classes)
        self.model.partial_fit(batch.X, batch.targets, **more)

    def _judge(self, batch: Batch) -> None:
        weight = np.ones(batch.n_rows) if batch.weight is None else batch.weight
        y: NDArray[Any]
        if not is_classifier(self.model):
            y, output = np.asarray(batch.targets, dtype=np.float64), self.model.predict(batch.X)
        else:
            y, output = self._codes(batch.targets), self.model.predict_proba(batch.X)
        for sums in (self._total, self._window):
            sums.add(y, output.astype(np.float64), weight)

    def _codes(self, labels: NDArray[Any]) -> NDArray[np.int64]:
        """Return the places of labels among the classes."""
        classes = list(self.model.classes_)
        if "auc" in self._total.metrics and len(classes) != 2:
            raise ValueError(f"metrics: 'auc' is for two classes, but there are {len(classes)}.")
        places = {label: place for place, label in enumerate(classes)}
        unknown = [label for label in labels.tolist() if label not in places]
        if unknown:
            raise ValueError(f"y contains the label {unknown[0]!r}, which is none of {classes}.")
        return np.array([places[label] for label in labels.tolist()], dtype=np.int64)

    def close_window(self) -> None:
        """End the present window, if any of its rows was predicted."""
        if self._window.n_rows:
            entry = {"rows": self.n_rows, **self._window.values()}
            self.windows.append(
                {**entry, "nonzeros": count_nonzero(self.model), "seconds": self.seconds}
            )
        self._window = Sums(self._total.metrics)

    def result(self, interrupted: bool = False) -> ProgressiveResult:
        """Return what was found so far."""
        windows = list(self.windows)
        total, n_predicted = self._total.values(), self._total.n_rows
        return ProgressiveResult(
            total, windows, self.n_rows, n_predicted, self.seconds, interrupted
        )

    def state(self) -> dict[str, Any]:
        """Return all but the model, as JSON can hold it."""
        # JSON has no NaN, which the AUC of a single class is.
        windows = [{k: v if v == v else None for k, v in w.items()} for w in self.windows]
        return {
            "n_rows": self.n_rows, "seconds": self.seconds, "windows": windows,
            "total": self._total.state(), "window": self._window.state(), "size": self.window,
        }  # fmt: skip

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what :meth:`state` has told."""
        self.n_rows, self.seconds = int(state["n_rows"]), float(state["seconds"])
        self.windows = [
            {k: float("nan") if v is None else v for k, v in w.items()} for w in state["windows"]
        ]
        self.window = int(state["size"])
        self._total, self._window = Sums.of_state(state["total"]), Sums.of_state(state["window"])


def progressive_validation(
    model: Any,
    stream: Any,
    metrics: Sequence[str] | None = None,
    *,
    window: int = 10_000,
    batch_size: int = 1000,
    classes: Any = None,
    verbose: int = 0,
    **reading: Any,
) -> ProgressiveResult:
    """Judge a model by a stream: predict each batch first, learn it then.

    So every row is a test row once, and no row is held out.

    Parameters
    ----------
    model : estimator with ``partial_fit``
        It learns the stream, from where it stands.
    stream : path, tuple of arrays, or iterable of batches
        As :func:`polyfm.online.iter_batches` takes it.
    metrics : sequence of str, optional
        ``"rmse"`` and ``"mae"`` for regression; ``"log_loss"``, ``"auc"`` (two classes) and
        ``"accuracy"`` for classification. All of the task if None.
    window : int, default=10000
        Rows over which metrics are taken apart from those over all rows. It ends with a batch.
    batch_size : int, default=1000
        Rows that are predicted by the same model before it learns them. 1 is the strict form, and
        the slowest.
    classes : sequence, optional
        All labels, where the first batch may lack one.
    verbose : int, default=0
        0 is silent, 1 writes a line per window.
    **reading
        How to read a file: ``target``, ``numbers``, ``layout``, ``separator``, ``zero_based``,
        ``skip``.

    Returns
    -------
    ProgressiveResult
        After Ctrl-C, what there was until then, with ``interrupted`` set.

    Raises
    ------
    ValueError
        For a batch that cannot be learnt, or a metric that is none of the task.

    Notes
    -----
    The first batch of a model that is not fitted is learnt but not predicted. The AUC counts rows
    in bins 1/2048 wide of the logit; those of one bin are ties.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfm import FTRLRegressor
    >>> from polyfm.online import progressive_validation
    >>> X = np.random.default_rng(0).normal(size=(5000, 3))
    >>> found = progressive_validation(FTRLRegressor(), (X, X[:, 0]), window=1000, batch_size=50)
    >>> found.windows[-1]["rmse"] < found.windows[0]["rmse"]
    True
    """
    run = Progressive(model, metrics, window, classes)
    try:
        for batch in iter_batches(stream, batch_size, **reading):
            if run.take(batch) and verbose and run.windows:
                sys.stdout.write(line_of(run.windows[-1]) + "\n")
    except KeyboardInterrupt:
        return run.result(interrupted=True)
    run.close_window()
    return run.result()


def line_of(window: dict[str, float]) -> str:
    """Return the words for a window."""
    numbers = [f"{name} {value:.5f}" for name, value in window.items() if name not in _COUNTS]
    rows, seconds = window["rows"], max(window["seconds"], 1e-9)
    return "  ".join(
        [
            f"{int(rows):>12,} rows",
            *numbers,
            f"{int(window['nonzeros']):,} non-zeros",
            f"{rows / seconds:,.0f} rows/s",
        ]
    )


_COUNTS = ("rows", "nonzeros", "seconds")


def count_nonzero(model: Any) -> int:
    """Return how many of a model's weights are not 0; biases count where it counts itself."""
    if hasattr(model, "count_nonzero"):
        return int(model.count_nonzero())
    blocks = [model.coef_, *model.factors_.values()]
    return sum(int(np.count_nonzero(block)) for block in blocks)
