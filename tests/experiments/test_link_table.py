"""Experiment hofm-links: its table, on a small graph."""

import numpy as np
import pytest
import scipy.sparse as sp

from polyfm.experiments import links
from polyfm.experiments.link_draws import Draw, Problem
from polyfm.experiments.report import Report


def draw_of(seed):
    """Ten times ten nodes; two are linked if both are even or both are odd."""
    i, j = np.divmod(np.random.default_rng(seed).permutation(100), 10)
    ids = sp.eye_array(10, format="csr", dtype=np.float32)
    X = sp.csr_matrix(sp.hstack([ids[i], ids[j]]))
    y = np.where(i % 2 == j % 2, 1, -1)
    return Draw(X[:60], y[:60], X[60:], y[60:])


@pytest.fixture
def table(monkeypatch):
    monkeypatch.setattr(links, "_KERNELS", {"HOFM, order 2": {"order": 2}})
    report = Report("", ("data", "model", "AUC", "std", "paper", "penalty", "seconds"))
    problem = Problem("small", draw_of, 10, [{"beta": 0.1}, {"beta": 1e6}], 30)
    with np.errstate(all="raise"):
        links.compare(report, problem, 3)
    return {row[1]: row for row in report.rows}


def test_interactions_are_found_where_a_linear_model_sees_none(table):
    assert len(table) == 4
    assert table["HOFM, order 2"][2] > 0.9
    assert table["logistic regression"][2] < 0.7


def test_the_better_penalty_is_chosen(table):
    assert table["HOFM, order 2"][5] == "0.1"
