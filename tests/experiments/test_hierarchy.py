"""Experiment shfm: what it measures, on a few rows."""

import numpy as np
import pytest
import scipy.sparse as sp

from polyfm.experiments import EXPERIMENTS, hierarchy
from polyfm.experiments.figures import cells


def small_task(name, labels):
    random = np.random.default_rng(0)
    X = sp.random(400, 60, density=0.2, format="csr", random_state=0, data_rvs=np.ones)
    y = np.asarray(X[:, :3].sum(axis=1)).ravel() - 0.5 + 0.1 * random.normal(size=400)
    target = (y > 0).astype(int) if labels else y
    return hierarchy.Task(name, X[:300], target[:300], X[300:], target[300:], labels)


@pytest.fixture(scope="module")
def report():
    tasks = [small_task("Criteo", labels=True), small_task("Ratings", labels=False)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hierarchy, "_tasks", lambda: iter(tasks))
        patch.setattr(hierarchy, "_WITH_LASSOS", ("Criteo",))
        patch.setattr(hierarchy, "_EPOCHS", 3)
        patch.setattr(hierarchy, "_RATES", (0.1,))
        patch.setattr(hierarchy, "_LASSOS", (0.1, 3.0, 1e4))
        patch.setattr(hierarchy, "_RANKS", (2, 4))
        return EXPERIMENTS["shfm"]()


def test_all_models_are_there(report):
    rows = cells(report)
    ratings = [row["model"] for row in rows if row["data"] == "Ratings"]
    assert ratings == ["GLM", "FM", "A2", "SHFM", "SHA2"]
    assert {row["measure"] for row in rows if row["data"] == "Ratings"} == {"RMSE"}
    criteo = [row["model"] for row in rows if row["data"] == "Criteo"]
    assert criteo[4:10] == [
        "SHFM, L1 0.1", "SHFM, L1 3", "SHFM, L1 10000", "SHFM, L1 100, exact start",
        "SHFM, rank 2", "SHFM, rank 4",
    ]  # fmt: skip
    for row in rows:
        assert row["best"] <= min(row["first"], row["last"])
        assert 1 <= row["best epoch"] <= 3


def test_sparsity_grows_with_the_lasso_by_evidence_alone(report):
    share = {row["model"]: row["v_i = 0"] for row in cells(report) if row["data"] == "Criteo"}
    assert share["SHFM"] == 0.0
    assert share["SHFM, L1 0.1"] < share["SHFM, L1 3"] < share["SHFM, L1 10000"] == 1.0
    assert share["SHFM, L1 100, exact start"] < 0.1
    assert "of the features have v_i = 0" in " ".join(report.notes)


def test_scores_are_of_the_test_rows():
    task = small_task("Criteo", labels=True)
    make = hierarchy._models(True)["SHFM"]
    course = hierarchy._learn(make(learning_rate=0.1, beta=1.0), task, 2)
    model = make(learning_rate=0.1, beta=1.0)
    for score in course.scores:
        model.partial_fit(task.X, task.y, classes=[0, 1])
        proba = model.predict_proba(task.X_test)[np.arange(100), task.y_test]
        assert score == pytest.approx(-np.log(proba).mean())
    assert len(course.assumptions) == 2
    assert course.best == int(np.argmin(course.scores))


def test_the_figure_has_a_panel_for_each_data_set_and_one_for_sparsity(report):
    matplotlib = pytest.importorskip("matplotlib.figure")
    figure = matplotlib.Figure()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hierarchy, "_WITH_LASSOS", ("Criteo",))
        report.draw(figure)
    titles = [panel.get_title() for panel in figure.axes]
    assert titles == ["Criteo", "Ratings", "SHFM with L1"]
    assert len(figure.axes[2].lines[0].get_xdata()) == 3
