"""Plots; they need matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from polyfm.inspection._expansion import names_of, resolve_features
from polyfm.inspection.weights import interaction_matrix

_COLOURS = ("#2166ac", "#d6604d", "#1b7837", "#762a83", "#b35806", "#01665e")
_MOST_WITH_NUMBERS = 12


def plot_learning_curves(models_or_history: Any, ax: Any = None) -> Any:
    """Draw the loss of each epoch: on validation rows where there are any, and while training.

    Parameters
    ----------
    models_or_history : estimator, history, or dict or list of them
        Fitted estimators, or their ``history_``. The keys of a dict become labels.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure if None.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    ValueError
        If there is no epoch to draw.

    Notes
    -----
    The training loss of a row is measured just before the row is learnt, while parameters move. A
    dot marks the epoch whose parameters were kept.
    """
    ax = _axes(ax, (7.0, 4.2))
    curves = _named(models_or_history)
    for i, (label, source) in enumerate(curves.items()):
        _draw_curves(ax, label, source, _COLOURS[i % len(_COLOURS)], several=len(curves) > 1)
    if any(line.get_marker() == "o" for line in ax.lines):
        ax.plot([], [], "o", color="0.4", markersize=7, markeredgecolor="white", label="kept")
    ax.set_xlabel("epoch")
    ax.set_ylabel("loss")
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color="0.9", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.legend(frameon=False, fontsize="small")
    return ax


def _named(source: Any) -> dict[str, Any]:
    if isinstance(source, Mapping) and "loss" not in source:
        return {str(key): value for key, value in source.items()}
    if isinstance(source, list | tuple):
        return {f"model {i}": item for i, item in enumerate(source, 1)}
    return {"": source}


def _draw_curves(ax: Any, label: str, source: Any, colour: str, *, several: bool) -> None:
    history = source if isinstance(source, Mapping) else source.history_
    if not history.get("loss"):
        raise ValueError(f"the history{f' of {label!r}' if label else ''} has no epochs to draw.")
    # Another metric than the loss would need another axis.
    curves = {"training": history["loss"], "validation": history.get("validation_loss")}
    for kind, values in curves.items():
        if values is None:
            continue
        training = kind == "training"
        ax.plot(
            np.arange(1, len(values) + 1),
            values,
            color=colour if several or not training else "0.45",
            linestyle="--" if training else "-",
            linewidth=1.2 if training else 2.0,
            alpha=0.75 if training else 1.0,
            label=f"{label}, {kind}" if label else kind,
        )
    _mark_best(ax, source, curves["validation"] or curves["training"], colour)


def _mark_best(ax: Any, source: Any, values: Sequence[float], colour: str) -> None:
    epoch = getattr(source, "best_iteration_", 0)
    if 1 <= epoch <= len(values):
        ax.plot(epoch, values[epoch - 1], "o", color=colour, markersize=7, markeredgecolor="white")


def plot_interactions(
    model: Any,
    features: Sequence[int | str],
    ax: Any = None,
    *,
    class_index: int = 0,
    feature_names: Sequence[str] | None = None,
) -> Any:
    """Draw the weights of all pairs of some features as a heat map.

    Parameters
    ----------
    model : FMRegressor or FMClassifier
        A fitted estimator.
    features : sequence of int or str
        Columns, by number or by name; some dozens at most are readable.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure if None.
    class_index : int, default=0
        The output, for more than two classes.
    feature_names : sequence of str, optional
        Names of the columns; those seen in ``fit`` if None.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    ValueError
        For features that do not exist or occur twice.
    """
    weights = interaction_matrix(model, features, class_index, feature_names=feature_names)
    names = names_of(model, feature_names)
    labels = [names[j] for j in resolve_features(model, features, feature_names)]
    n = len(labels)
    side = 3.5 + 0.35 * n
    ax = _axes(ax, (side + 0.8, side))
    limit = float(np.abs(weights).max(initial=0.0)) or 1.0
    image = ax.imshow(weights, cmap="RdBu_r", vmin=-limit, vmax=limit)
    ax.figure.colorbar(image, ax=ax, shrink=0.8, label="weight of the pair")
    ax.set_xticks(range(n), labels, rotation=45, ha="right", rotation_mode="anchor")
    ax.set_yticks(range(n), labels)
    ax.tick_params(length=0, labelsize="small")
    if n <= _MOST_WITH_NUMBERS:
        _write_numbers(ax, weights, limit)
    return ax


def _write_numbers(ax: Any, weights: Any, limit: float) -> None:
    for i, j in np.ndindex(*weights.shape):
        if i != j:
            colour = "white" if abs(weights[i, j]) > 0.6 * limit else "0.2"
            text = f"{weights[i, j]:.2g}"
            ax.text(j, i, text, ha="center", va="center", color=colour, fontsize="x-small")


def _axes(ax: Any, size: tuple[float, float]) -> Any:
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot as plt
    except ImportError:
        raise ImportError("plots need matplotlib: pip install 'polyfm[plot]'") from None
    return plt.subplots(figsize=size, layout="constrained")[1]
