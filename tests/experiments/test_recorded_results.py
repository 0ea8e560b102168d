"""The figures of docs/results.md, within what a change of rounding may move them."""

import os
from pathlib import Path

import pytest

from polyfm.experiments import EXPERIMENTS

FOLDERS = {
    "movielens-100k": "movielens-100k",
    "movielens-1m": "movielens-1m",
    "frappe": "frappe",
    "criteo": "criteo",
}


def results(name):
    """Run an experiment; return its first figure by all the words before it."""
    home = os.environ.get("POLYFM_DATA")
    folder = FOLDERS.get(name)
    if folder is not None and (home is None or not (Path(home) / folder).is_dir()):
        pytest.skip(f"POLYFM_DATA holds no {folder}")
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
