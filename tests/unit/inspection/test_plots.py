from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from polyfm import FMRegressor
from polyfm.inspection import interaction_matrix, plot_interactions, plot_learning_curves

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

X = np.random.default_rng(0).normal(size=(100, 5))
Y = X[:, 0] * X[:, 1]


@pytest.fixture(scope="module")
def model() -> FMRegressor:
    return FMRegressor(max_iter=4, early_stopping=True, random_state=0).fit(X, Y)


@pytest.fixture(autouse=True)
def close() -> Any:
    yield
    plt.close("all")


def test_curves_of_one_model(model: Any) -> None:
    ax = plot_learning_curves(model)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["training", "validation", "kept"]
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), model.history_["loss"])
    np.testing.assert_array_equal(ax.lines[1].get_ydata(), model.history_["validation_loss"])
    assert ax.lines[2].get_xdata()[0] == model.best_iteration_


def test_curves_of_several(model: Any) -> None:
    _, own = plt.subplots()
    ax = plot_learning_curves({"a": model, "b": {"loss": [3.0, 2.0]}}, ax=own)
    assert ax is own
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["a, training", "a, validation", "b, training", "kept"]
    assert len(plot_learning_curves([model, model]).get_legend().get_texts()) == 5


def test_no_epochs() -> None:
    with pytest.raises(ValueError, match="no epochs"):
        plot_learning_curves({"loss": []})


def test_heat_map(model: Any) -> None:
    ax = plot_interactions(model, [3, 0, 1], feature_names=list("vwxyz"))
    np.testing.assert_array_equal(ax.images[0].get_array(), interaction_matrix(model, [3, 0, 1]))
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["y", "v", "w"]
    assert len(ax.texts) == 6


def test_without_matplotlib(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for plot in (lambda: plot_learning_curves(model), lambda: plot_interactions(model, [0, 1])):
        with pytest.raises(ImportError, match=r"pip install 'polyfm\[plot\]'"):
            plot()
