"""The figures of docs/results.md, within what a change of rounding may move them."""

import os
from pathlib import Path

import numpy as np
import pytest

from polyfm.datasets import fetch_criteo_mini, fetch_movielens_1m
from polyfm.experiments import EXPERIMENTS, descent, hierarchy, links, unseen
from polyfm.experiments.link_draws import films

FOLDERS = {
    "movielens-100k": "movielens-100k",
    "movielens-1m": "movielens-1m",
    "frappe": "frappe",
    "criteo": "criteo",
}


def need(folder):
    """Skip the test where a data set is not to be had."""
    home = os.environ.get("POLYFM_DATA")
    if home is None or not (Path(home) / folder).is_dir():
        pytest.skip(f"POLYFM_DATA holds no {folder}")


def results(name):
    """Run an experiment; return its first figure by all the words before it."""
    if name in FOLDERS:
        need(FOLDERS[name])
    rows = {}
    for row in EXPERIMENTS[name]().rows:
        words = [cell for cell in row if isinstance(cell, str)]
        figure = next(cell for cell in row if isinstance(cell, float))
        rows[tuple(words[: list(row).index(figure)])] = figure
    return rows


def test_movielens_100k():
    rmse = results("movielens-100k")
    assert rmse["user, item", "order 2"] < 0.925
    assert rmse["and side features", "order 2"] < 0.920
    all_rows = "order 2, 15 epochs on all training rows"
    assert rmse["user, item", all_rows] < 0.915
    assert rmse["and side features", all_rows] < 0.915
    assert rmse["user, item", "order 2"] < rmse["user, item", "order 1"] - 0.02


def test_movielens_1m():
    rmse = results("movielens-1m")
    assert rmse["user, item", "order 2"] < 0.862
    assert rmse["user, item", "order 2, 15 epochs on all training rows"] < 0.850


def test_adult():
    loss = results("adult")
    for order in ("order 2", "order 3"):
        assert loss[(order,)] < loss[("logistic regression",)] - 0.001


def test_frappe():
    loss = results("frappe")
    assert loss[("order 3",)] < loss[("order 2",)] < loss[("order 1",)]
    assert loss[("order 3",)] < 0.21


def test_criteo():
    loss = results("criteo")
    for order in ("order 1", "order 2", "order 3"):
        assert loss[(order,)] < 0.49


def test_links_of_order_3_with_ids():
    need("movielens-100k")
    problem = films(ids=True)
    make = next(make for name, make, *_ in links._models(problem) if name == "HOFM, order 3")
    # The strongest candidates are those that the experiment chooses.
    areas = [links._auc(make(**problem.penalties[-1]), problem.draw(seed)) for seed in range(5)]
    assert np.mean(areas) > 0.786


def test_rank_32_on_movielens_1m():
    need("movielens-1m")
    bundle = fetch_movielens_1m()
    settings = dict(descent._beta_by_count(bundle, "random"))["15 at the mean"]
    assert descent._error(*bundle.split("random"), 32, settings) < 0.846


def test_strong_hierarchy_with_few_features():
    need("criteo")
    X, X_test, y, y_test = fetch_criteo_mini().split()
    rows = hierarchy.Task("Criteo", X, y, X_test, y_test, labels=True)
    make = hierarchy._models(True)["SHFM"]
    settings = dict(learning_rate=0.1, beta=30.0, penalty="l1", init_scale=0.2)
    course = hierarchy._learn(make(**settings), hierarchy._in_random_order(rows), 8)
    assert min(course.scores) < 0.49
    assert course.assumptions[course.best].zero_share > 0.97
    assert all(found.orthogonal_share < 1e-4 for found in course.assumptions)


def test_unseen_pairs():
    machine, kernel = unseen._measured(unseen._draw(0.3, 0))
    assert machine[0] > 0.9
    assert machine[1] > 0.1
    assert np.isnan(kernel[0])
    assert kernel[1] == 0
    assert machine[2] < kernel[2] / 5
