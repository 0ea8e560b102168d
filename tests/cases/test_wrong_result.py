"""Publicly reported faults of other programs: numbers that look right and are not.

The number in a test's name is that of the report; each says what must happen here instead.
"""

import inspect
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from recompute import from_formula, one_hot, parameters
from scipy.special import expit
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, r2_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from polyfm import FMClassifier, FMRegressor

HERE = pathlib.Path(__file__).parent


def table(n_rows=300, n_columns=6, seed=0):
    """Columns of numbers, a target with one linear and one interaction term, and labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns))
    y = 1.0 + X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=n_rows)
    return X, y, (y > 1.0).astype(int)


def test_case_031_one_sigmoid():
    """P is the sigmoid of the score, taken once: not all above 0.5, and 0.1 on average."""
    labels = np.resize([0] * 9 + [1], 100)
    X = np.eye(2)[labels]
    model = FMClassifier(random_state=0).fit(X, labels)
    p = model.predict_proba(X)[:, 1]
    np.testing.assert_allclose(p, expit(model.decision_function(X)), rtol=1e-12)
    assert abs(p.mean() - 0.1) < 0.02
    assert p[labels == 0].max() < 0.1
    assert p[labels == 1].min() > 0.5


def test_case_033_gradients_are_those_of_the_loss():
    """Every parameter moves by the central difference of the loss: all losses, orders 1 to 4."""
    result = subprocess.run(
        [sys.executable, str(HERE / "gradients.py")],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    assert int(result.stdout) == 4 * 6


def test_case_034_each_penalty_acts_on_its_own_block():
    """beta leaves a model without factors alone, alpha leaves the factors, neither the bias."""
    X, y, labels = table()
    plain = FMClassifier(rank=0, beta=0, random_state=0).fit(X, labels)
    other = FMClassifier(rank=0, beta=100, random_state=0).fit(X, labels)
    np.testing.assert_array_equal(parameters(plain), parameters(other))

    heavy = FMRegressor(alpha=1e9, beta=0.1, random_state=0).fit(X, y)
    assert np.abs(heavy.coef_).max() < 1e-6
    assert np.abs(heavy.factors_[2]).max() > 0.1

    rare = labels * (X[:, 3] > 0)
    constant = FMClassifier(alpha=1e9, beta=1e9, tol=0, random_state=0).fit(X, rare)
    assert np.abs(constant.coef_).max() < 1e-6
    assert abs(constant.predict_proba(X)[0, 1] - rare.mean()) < 0.02


def test_case_035_threads_do_not_shrink_parameters():
    """Four threads give coefficients of the size that one gives."""
    X, y, _ = table(1000)
    one = FMRegressor(random_state=0, max_iter=20, tol=0).fit(X, y)
    four = FMRegressor(random_state=0, max_iter=20, tol=0, n_jobs=4).fit(X, y)
    ratio = np.linalg.norm(four.coef_) / np.linalg.norm(one.coef_)
    assert 0.9 < ratio < 1.1
    assert np.corrcoef(one.predict(X), four.predict(X))[0, 1] > 0.99


def test_case_037_bias_and_linear_term_are_there():
    """y = 10 + x0 is learnt by the defaults; switches take bias and linear term away."""
    X = np.random.default_rng(0).normal(size=(50, 3))
    y = 10 + X[:, 0]
    model = FMRegressor(random_state=0).fit(X, y)
    assert model.score(X, y) > 0.99
    assert abs(model.intercept_ - 10) < 0.1
    assert abs(model.coef_[0] - 1) < 0.1
    assert (FMRegressor(fit_linear=False, random_state=0).fit(X, y).coef_ == 0).all()
    without = FMRegressor(fit_intercept=False, random_state=0).fit(X, y)
    assert without.intercept_ == 0
    assert without.predict(np.zeros((1, 3))) == 0


def test_case_037_no_intercept_and_a_far_target():
    """Targets that hardly differ, and no bias: not taken for a divergence.

    The columns cannot express the target, and a model without bias cannot either.
    """
    X = np.random.default_rng(0).normal(size=(50, 3))
    y = 1000.0 + X[:, 0]
    model = FMRegressor(fit_intercept=False, random_state=0).fit(X, y)
    assert model.intercept_ == 0
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize("order", [2, 3])
def test_case_039_scores_from_exported_parameters(order):
    """All pairs of 5 users and 4 items: bias, weights and factors give the predictions."""
    users, items = np.repeat(np.arange(5), 4), np.tile(np.arange(4), 5)
    X = one_hot(users, items, widths=[5, 4])
    X = sp.hstack([X, sp.csr_matrix(np.linspace(-1, 2, 20)[:, None])], format="csr")
    y = 3.0 + (users * items) % 3
    model = FMRegressor(order=order, beta=0.1, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.predict(X), from_formula(model, X), rtol=1e-10)
    assert np.abs(model.predict(X) - model.intercept_ - X @ model.coef_).max() > 0.1
    labels = (y > 3).astype(int)
    model = FMClassifier(order=order, beta=0.1, random_state=0).fit(X, labels)
    scores = model.decision_function(X)
    np.testing.assert_allclose(scores, from_formula(model, X), rtol=1e-10, atol=1e-12)


def documented_defaults(cls):
    """The default values that a docstring promises; optional ones are None."""
    text = inspect.getdoc(cls).split("Attributes\n")[0]
    entries = re.findall(r"^(\w+) : (.+)$", text, re.MULTILINE)
    values = {}
    for name, description in entries:
        found = re.search(r"default=(.+)$", description)
        values[name] = eval(found[1]) if found else None
        assert found or "optional" in description, name
    return values


@pytest.mark.parametrize("cls", [FMRegressor, FMClassifier])
def test_case_041_documented_defaults_are_the_defaults(cls):
    """Passing what the documentation says is the default changes no bit."""
    X, _, labels = table()
    documented = documented_defaults(cls)
    assert set(documented) == set(cls().get_params())
    given = {**documented, "random_state": 3}
    default = cls(random_state=3).fit(X, labels)
    explicit = cls(**given).fit(X, labels)
    np.testing.assert_array_equal(parameters(default), parameters(explicit))
    beta = 2 * np.sqrt(8 * X.shape[1])
    spelt_out = cls(random_state=3, beta=beta).fit(X, labels)
    np.testing.assert_array_equal(parameters(default), parameters(spelt_out))


def test_case_042_rows_do_not_depend_on_their_batch():
    """A row alone, in a batch, or in another order has the same prediction, bit for bit."""
    X, y, _ = table()
    model = FMRegressor(random_state=0).fit(X, y)
    together = model.predict(X[:7])
    alone = [model.predict(X[i : i + 1])[0] for i in range(7)]
    assert len(set(together)) == 7
    np.testing.assert_array_equal(together, alone)
    np.testing.assert_array_equal(model.predict(X[6::-1]), together[::-1])


def test_case_043_fitting_and_nothing_else_changes_parameters():
    """predict leaves every number as it is; every number of a row's features moves in training."""
    X, y, _ = table()
    model = FMRegressor(random_state=0).partial_fit(X[:10], y[:10])
    before = parameters(model)
    first = model.predict(X)
    np.testing.assert_array_equal(model.predict(X), first)
    model.score(X, y)
    np.testing.assert_array_equal(parameters(model), before)
    model.partial_fit(X[10:20], y[10:20])
    assert (parameters(model) != before).all()


def test_case_045_interactions_are_symmetric():
    """A row with the values 1 and 2 is one with the values 2 and 1, in training and prediction."""
    pairs = np.array([[1, 2], [1, 0], [0, 0], [2, 1], [2, 0]])
    y = np.array([1, -1, -1, 1, -1])

    def rows(pairs):
        data = np.ones(pairs.size)
        indptr = np.arange(0, pairs.size + 1, 2)
        return sp.csr_matrix((data, pairs.ravel(), indptr), (len(pairs), 3))

    model = FMClassifier(random_state=0).fit(rows(pairs), y)
    mirrored = FMClassifier(random_state=0).fit(rows(pairs[:, ::-1].copy()), y)
    np.testing.assert_array_equal(parameters(model), parameters(mirrored))
    scores = model.decision_function(rows(np.array([[1, 2], [2, 1]])))
    assert scores[0] == scores[1]


def test_case_046_loading_applies_nothing_twice(tmp_path):
    """Saved, loaded, given the same parameters again: the same predictions, and no term twice."""
    from polyfm import load_model, save_model

    X, y, _ = table()
    model = FMRegressor(order=3, fit_lower="augment", random_state=0).fit(X, y)
    save_model(model, tmp_path / "model.polyfm")
    other = load_model(tmp_path / "model.polyfm")
    for _ in range(2):
        other.set_params(**model.get_params())
        np.testing.assert_array_equal(other.predict(X), model.predict(X))
    assert other.factors_[3].shape == model.factors_[3].shape == (6, 8)
    save_model(other, tmp_path / "again.polyfm")
    np.testing.assert_array_equal(
        load_model(tmp_path / "again.polyfm").predict(X), model.predict(X)
    )


def test_case_047_prediction_is_deterministic():
    """Five times the same input, five times the same bits, whatever the random state does."""
    X, _, labels = table()
    model = FMClassifier(random_state=np.random.RandomState(0)).fit(X, labels)
    for _ in range(4):
        np.testing.assert_array_equal(model.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("seed", range(3))
def test_case_049_one_row_one_pair(seed):
    """A row with two ones and target 1, only the pair to explain it: the factors' product is 1."""
    model = FMRegressor(
        rank=1, fit_intercept=False, fit_linear=False, beta=0, tol=0, init_scale=0.1,
        max_iter=1000, random_state=seed,
    )  # fmt: skip
    v = model.fit(np.ones((1, 2)), [1.0]).factors_[2][:, 0]
    assert v[0] * v[1] == pytest.approx(1.0, abs=1e-3)
    assert model.intercept_ == 0
    assert (model.coef_ == 0).all()


def test_case_050_one_definition_of_prediction():
    """fit and predict in one go, in a pipeline, or apart: the same numbers, which score judges."""
    X, y, _ = table()
    X_test, y_test, _ = table(seed=1)
    scaled, scaled_test = X / np.abs(X).max(axis=0), X_test / np.abs(X).max(axis=0)
    model = FMRegressor(random_state=0).fit(scaled, y)
    apart = model.predict(scaled_test)
    together = FMRegressor(random_state=0).fit(scaled, y).predict(scaled_test)
    np.testing.assert_array_equal(together, apart)
    piped = make_pipeline(MaxAbsScaler(), FMRegressor(random_state=0)).fit(X, y)
    np.testing.assert_allclose(piped.predict(X_test), apart, rtol=1e-12)
    assert model.score(scaled_test, y_test) == r2_score(y_test, apart)


def test_case_051_training_and_validation_figures():
    """The training rows as validation rows: the figure is that of the parameters as they are.

    The training loss of the history is another number by design and documented so: each row's loss
    just before the row was learnt. Both are checked against their definitions.
    """
    X, y, _ = table()
    model = FMRegressor(max_iter=3, tol=0, shuffle=False, random_state=0)
    model.fit(X, y, X_val=X, y_val=y)
    for epoch, value in enumerate(model.history_["validation_loss"], start=1):
        same = FMRegressor(max_iter=epoch, tol=0, shuffle=False, random_state=0)
        residual = y - same.set_params(early_stopping=False).fit(X, y).predict(X)
        assert value == pytest.approx(0.5 * np.mean(residual**2), rel=1e-9)
    assert "just before it was learnt" in " ".join(FMRegressor.__doc__.split())


def test_case_051_training_loss_is_progressive():
    """The first epoch's training loss is the mean over rows scored before they are learnt."""
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 1.0], size=(60, 6))
    labels = (X[:, 0] * X[:, 1] > 0).astype(int)
    options = {"alpha": 0, "beta": 0, "fit_intercept": False, "random_state": 0}
    whole = FMClassifier(max_iter=1, shuffle=False, **options).fit(X, labels)
    stream = FMClassifier(**options).partial_fit(X[:1], labels[:1], classes=[0, 1])
    total = np.log(2)  # The start predicts nothing, or hardly anything, for the first row.
    for x, label in zip(X[1:], labels[1:], strict=True):
        total += np.logaddexp(0, (1 - 2 * label) * stream.decision_function([x])[0])
        stream.partial_fit([x], [label])
    assert whole.history_["loss"][0] == pytest.approx(total / 60, abs=0.02 / 60)
    assert abs(log_loss(labels, whole.predict_proba(X)) - total / 60) > 0.01


def test_case_053_history_of_a_classifier():
    """The log loss of the history is that of the returned probabilities."""
    X, _, labels = table()
    X_test, _, labels_test = table(seed=1)
    model = FMClassifier(early_stopping=False, max_iter=7, tol=0, random_state=0)
    model.fit(X, labels, X_val=X_test, y_val=labels_test)
    expected = log_loss(labels_test, model.predict_proba(X_test))
    assert model.history_["validation_loss"][-1] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("scoring", ["rmse", "mae", "loss"])
def test_case_054_history_of_a_regressor(scoring):
    """The error of the history is that of the returned predictions, in the target's unit."""
    X, y, _ = table()
    X_test, y_test, _ = table(seed=1)
    y, y_test = 100 * y, 100 * y_test
    model = FMRegressor(early_stopping=False, scoring=scoring, max_iter=7, tol=0, random_state=0)
    residual = y_test - model.fit(X, y, X_val=X_test, y_val=y_test).predict(X_test)
    expected = {
        "rmse": np.sqrt(np.mean(residual**2)),
        "mae": np.mean(np.abs(residual)),
        "loss": 0.5 * np.mean(residual**2),
    }[scoring]
    assert model.history_[f"validation_{scoring}"][-1] == pytest.approx(expected, rel=1e-6)


def test_case_055_the_best_epoch_is_the_model():
    """After early stopping, the validation rows have the score written down as the best."""
    X, _, labels = table(80, 30)
    X_val, _, labels_val = table(80, 30, seed=1)
    model = FMClassifier(
        alpha=0, beta=0.01, init_scale=0.3, early_stopping=True, n_iter_no_change=5, random_state=0
    )
    model.fit(X, labels, X_val=X_val, y_val=labels_val)
    values = model.history_["validation_loss"]
    assert model.best_iteration_ < model.n_iter_
    assert model.best_score_ == min(values) == values[model.best_iteration_ - 1]
    kept = log_loss(labels_val, model.predict_proba(X_val))
    assert kept == pytest.approx(model.best_score_, rel=1e-9)


def test_case_057_a_linear_model_is_logistic_regression():
    """Without factors the AUC is scikit-learn's, and with falling steps the weights are, too.

    A stochastic solver stops near the optimum, not at it: 0.01 is asked for, not 0.001.
    """
    X, y = make_classification(2000, 20, random_state=0)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    exact = LogisticRegression(C=1.0, tol=1e-8, max_iter=1000).fit(X, y)
    best = roc_auc_score(y, exact.decision_function(X))
    model = FMClassifier(rank=0, random_state=0).fit(X, y)
    assert abs(roc_auc_score(y, model.decision_function(X)) - best) < 0.002
    model = FMClassifier(
        order=1, solver="sgd", schedule="optimal", tol=0, max_iter=300, early_stopping=False,
        random_state=0,
    ).fit(X, y)  # fmt: skip
    assert abs(roc_auc_score(y, model.decision_function(X)) - best) < 0.0005
    np.testing.assert_allclose(model.coef_, exact.coef_[0], atol=0.01)
    assert model.intercept_ == pytest.approx(exact.intercept_[0], abs=0.01)


def test_case_058_factors_do_no_harm():
    """Without interactions in the data, an FM ranks new rows about as well as a linear model.

    50 dense columns have 1,225 pairs and 4,000 rows cannot rule all of them out: a reasonable
    penalty for that is stronger than the default, which is made for sparse rows.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 50))
    y = np.where(rng.random(5000) < expit(0.3 * X @ rng.normal(size=50)), "yes", "no")
    auc = {}
    for name, options in {"linear": {"rank": 0}, "fm": {"beta": 200.0}}.items():
        model = FMClassifier(random_state=0, **options).fit(X[:4000], y[:4000])
        assert model.classes_.tolist() == ["no", "yes"]
        auc[name] = roc_auc_score(y[4000:] == "yes", model.predict_proba(X[4000:])[:, 1])
    assert auc["linear"] > 0.8
    assert auc["fm"] > auc["linear"] - 0.005


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"rank": 5, "solver": "sgd", "learning_rate": 0.01, "init_scale": 0.1,
         "alpha": 0, "beta": 0, "max_iter": 1000},
    ],
)  # fmt: skip
def test_case_059_separable_one_hot_rows(options):
    """20 categorical columns, one category decides: learnt, by default and by slow plain SGD."""
    rng = np.random.default_rng(0)
    widths = [6] * 13 + [7] * 6 + [6]
    codes = [rng.integers(0, width, 2000) for width in widths]
    X, y = one_hot(*codes, widths=widths), codes[4] == 2
    assert X.shape == (2000, 126)
    assert FMClassifier(random_state=0, **options).fit(X, y).score(X, y) > 0.99
