"""Experiments on polynomial networks: what they say about their tables, and what they learn on."""

import os
from pathlib import Path

import numpy as np
import pytest

from polyfm.experiments import budgets, networks
from polyfm.experiments.regression_sets import (
    Parts,
    held_out,
    regression_sets,
    rmse,
    side_by_side,
    tuned,
)


class Constant:
    """Predicts its own constant."""

    def __init__(self, constant):
        self.constant = constant

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.full(len(X), self.constant)


@pytest.fixture
def parts():
    X = np.arange(20.0)[:, None]
    y = np.full(20, 3.0)
    return Parts(X, y, X[:4], y[:4] + 1.0)


def test_the_error_is_that_of_the_test_rows(parts):
    assert rmse(Constant(3.0), parts) == pytest.approx(1.0)


def test_the_penalty_is_chosen_without_the_test_rows(parts):
    assert tuned(Constant, (2.0, 3.0, 4.0), parts) == 3.0


def test_a_fifth_of_the_training_rows_is_held_out(parts):
    inner = held_out(parts)
    assert (len(inner.X), len(inner.X_test)) == (16, 4)
    together = np.sort(np.concatenate([inner.X, inner.X_test]), axis=0)
    assert np.array_equal(together, parts.X)


def test_side_by_side_keeps_the_order():
    assert side_by_side(lambda value: -value, range(9)) == [-value for value in range(9)]


def test_regression_sets_are_scaled_by_their_training_rows():
    home = os.environ.get("POLYFM_DATA")
    if home is None or not (Path(home) / "regression_arff").is_dir():
        pytest.skip("POLYFM_DATA holds no regression_arff")
    sets = regression_sets()
    assert list(sets) == ["abalone", "cadata", "cpusmall", "diabetes"]
    assert [each.X.shape[1] for each in sets.values()] == [10, 8, 12, 10]
    for each in sets.values():
        assert each.X.min() == -1 and each.X.max() == 1
        assert np.abs(each.X_test).max() <= 1


def recommender_rows(a, h):
    return [
        {"data": data, "model": f"{letter}^2", "RMSE": error}
        for letter, errors in (("A", a), ("H", h))
        for data, error in zip(("one", "two"), errors, strict=True)
    ]


@pytest.mark.parametrize(
    ("a", "words"),
    [((1.0, 1.0), "2 of 2 comparisons: confirmed."),
     ((1.0, 3.0), "1 of 2 comparisons: refuted on two, m = 2."),
     ((3.0, 3.0), "0 of 2 comparisons: refuted.")],
)  # fmt: skip
def test_recommender_verdict(a, words):
    assert words in networks.recommender_verdict(recommender_rows(a, (2.0, 2.0)))


def test_weights_verdict():
    errors = {"1": (1.0, 1.5), "learnt": (1.0, 1.0)}
    rows = [
        {"data": data, "model": f"{kernel}, weights {label}", "RMSE": error}
        for kernel in ("A^2", "H^2")
        for label, pair in errors.items()
        for data, error in zip(("one", "two"), pair, strict=True)
    ]
    words = networks.weights_verdict(rows)
    assert "with A^2 on 1 of 2 data sets (worst: 1.500 times the error, two)" in words


def test_budgets_verdict():
    rows = [
        {"data": "one", "degree": 2, "model": f"{letter}^2", "k = 6": low, "k = 12": high,
         "k = 24": high, "k = 48": high}
        for letter, low, high in (("A", 2.0, 1.0), ("H", 1.0, 2.0))
    ]  # fmt: skip
    words = budgets.verdict(rows)
    assert "1 of 1 at k = 6" in words
    assert "0 of 1 at k = 48" in words


@pytest.mark.parametrize("degree", [2, 3])
def test_equal_budgets_are_equal_numbers_of_parameters(degree):
    random = np.random.default_rng(0)
    X = random.uniform(-1, 1, (60, 5))
    y = X[:, 0] * X[:, 1]
    makes = budgets._models(5, degree)
    for name in (f"A^{degree}", f"H^{degree}"):
        model = makes[name](6, 0.1).set_params(max_iter=1).fit(X, y)
        assert model.lifted_factors_.size == 6 * 5
    for name in ("Nystroem", "random features"):
        assert makes[name](6, 0.1).fit(X, y)[-1].coef_.size == 6
