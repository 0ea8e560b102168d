"""Checkpoints of long trainings: saved now and then, and taken up again."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np

from polyfm.estimators._numbers import check_number

_FREE = ("max_iter", "verbose", "n_jobs")
"""Parameters that may change when a training goes on."""


class Checkpoint:
    """Where and how often a training from a dataset, file or stream saves what it has done.

    Parameters
    ----------
    path : path
        The file. It is a model file, which predicts as the model did at that time, and is replaced
        as a whole: whenever the process is killed, there is the former checkpoint or the new one.
    rows : int, optional
        Rows to learn from one checkpoint to the next, at the end of a batch.
    seconds : float, optional
        Seconds from one to the next; 600 if neither is given. Whichever is due first.
    resume : bool, default=True
        Whether to go on from ``path`` where there is such a file, instead of anew. A training that
        goes on comes to the same bits as one that was never stopped (``n_jobs=1``).

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range.

    Examples
    --------
    >>> import polyfm
    >>> checkpoint = polyfm.Checkpoint("run.polyfm", rows=1_000_000)
    >>> polyfm.FMClassifier().fit(dataset, checkpoint=checkpoint)  # doctest: +SKIP
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        rows: int | None = None,
        seconds: float | None = None,
        resume: bool = True,
    ) -> None:
        if rows is not None:
            check_number("rows", rows, Integral, least=1)
        if seconds is not None:
            check_number("seconds", seconds, Real, above=0)
        self.path, self.rows, self.resume = Path(path), rows, resume
        self.seconds = 600.0 if rows is None and seconds is None else seconds

    def __repr__(self) -> str:
        return f"Checkpoint({str(self.path)!r}, rows={self.rows}, seconds={self.seconds})"


class Keeper:
    """Saves a training when it is due.

    Parameters
    ----------
    checkpoint : Checkpoint
    model : estimator
        What is saved.
    state : callable
        Returns what else is needed to go on: numbers, texts, arrays, and lists and dicts of these.
    """

    def __init__(
        self, checkpoint: Checkpoint, model: Any, state: Callable[[], dict[str, Any]]
    ) -> None:
        self._checkpoint, self._model, self._state = checkpoint, model, state
        self._rows, self._since = 0, time.monotonic()

    def after(self, n_rows: int) -> None:
        """Take in that some rows were learnt."""
        self._rows += n_rows
        every, seconds = self._checkpoint.rows, self._checkpoint.seconds
        due = every is not None and self._rows >= every
        if due or (seconds is not None and time.monotonic() - self._since >= seconds):
            self.save()

    def save(self) -> None:
        """Save now."""
        from polyfm.persistence.files import write_model

        write_model(self._model, self._checkpoint.path, training=self._state())
        self._rows, self._since = 0, time.monotonic()


def resumed(checkpoint: Checkpoint | None, model: Any, identity: Any) -> dict[str, Any] | None:
    """Give a model what a checkpoint holds; return the state, or None where there is nothing.

    Raises
    ------
    ValueError
        If the checkpoint belongs to another training.
    """
    if checkpoint is None or not checkpoint.resume or not checkpoint.path.exists():
        return None
    from polyfm.persistence.files import read_model

    path = checkpoint.path
    saved, state = read_model(path)
    if state is None:
        raise ValueError(
            f"{path} is a model file, but no checkpoint: name another file, or say resume=False."
        )
    if type(saved) is not type(model):
        raise ValueError(f"{path} is a checkpoint of a {type(saved).__name__}.")
    _check_same(path, saved, model)
    if state["identity"] != identity:
        raise ValueError(
            f"{path} is a checkpoint of a training from other rows: say resume=False to start anew."
        )
    own = model.get_params(deep=False)
    model._forget()
    model.__dict__.update({n: v for n, v in vars(saved).items() if n not in own})
    return state


def as_checkpoint(value: Any) -> Checkpoint | None:
    """Return a checkpoint of what users give: one, or a path.

    Raises
    ------
    TypeError
        For anything else.
    """
    if value is None or isinstance(value, Checkpoint):
        return value
    if isinstance(value, str | os.PathLike):
        return Checkpoint(value)
    raise TypeError(f"checkpoint must be a Checkpoint or a path, got {value!r}.")


def _are_equal(a: Any, b: Any) -> bool:
    """Say whether two values of a parameter are the same."""
    if isinstance(a, np.random.RandomState) and isinstance(b, np.random.RandomState):
        a, b = (str(random.get_state(legacy=False)["state"]["key"].tolist()) for random in (a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_are_equal(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple | np.ndarray) or isinstance(b, list | tuple | np.ndarray):
        return np.array_equal(np.asarray(a, dtype=object), np.asarray(b, dtype=object))
    return bool(a == b)


def _check_same(path: Path, saved: Any, model: Any) -> None:
    now = model.get_params(deep=False)
    for name, before in saved.get_params(deep=False).items():
        if name not in _FREE and not _are_equal(before, now[name]):
            raise ValueError(
                f"{path} is a checkpoint of a training with {name}={before!r}, and it is "
                f"{now[name]!r} now: a training goes on with the same parameters only; say "
                "resume=False to start anew."
            )
