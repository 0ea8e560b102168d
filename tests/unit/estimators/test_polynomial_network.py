"""Polynomial networks as estimators."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import polyfm
from polyfm import PolynomialNetworkClassifier, PolynomialNetworkRegressor
from polyfm.inspection import interaction_matrix, interaction_weight
from polyfm.losses import Huber


@pytest.fixture
def X(random):
    return random.normal(size=(300, 6))


def square(X):
    return X[:, 0] ** 2 - 2 * X[:, 1] * X[:, 2] + X[:, 3] + 5


def cubic(X):
    return X[:, 0] * X[:, 1] * X[:, 2] - X[:, 3] ** 2 * X[:, 4] + X[:, 5]


@pytest.mark.parametrize(("order", "target"), [(2, square), (3, cubic)])
def test_planted_terms_are_found(random, order, target):
    X, new = random.normal(size=(600, 8)), random.normal(size=(600, 8))
    model = PolynomialNetworkRegressor(order=order, random_state=0).fit(X, target(X))
    assert model.score(new, target(new)) > 0.95


def test_planted_products_of_distinct_features_are_found(random):
    X, new = random.normal(size=(600, 8)), random.normal(size=(600, 8))

    def target(X):
        return X[:, 0] * X[:, 1] * X[:, 2] - 2 * X[:, 3] * X[:, 4] * X[:, 5] + X[:, 6]

    model = PolynomialNetworkRegressor(order=3, kernel="anova", beta=1.0, random_state=0)
    model.fit(X, target(X))
    assert model.score(new, target(new)) > 0.95


def test_direct_form_by_adagrad(X):
    model = PolynomialNetworkRegressor(lifted=False, random_state=0).fit(X, square(X))
    assert model.score(X, square(X)) > 0.9
    assert model.factors_[2].shape == (6, 8)
    assert model.dummy_factors_[2].shape == (1, 8)
    assert (model.weights_[2] < 0).any()
    assert not hasattr(model, "lifted_factors_")
    assert model.to_direct() is model
    model.partial_fit(X[:5], square(X[:5]))


def test_direct_form_equals_a_factorization_machine_with_the_polynomial_kernel(X):
    given = {"random_state": 0, "max_iter": 5, "beta": 1.0}
    network = PolynomialNetworkRegressor(lifted=False, **given).fit(X, square(X))
    machine = polyfm.FMRegressor(
        kernel="polynomial", fit_lower="augment", fit_weights=True, **given
    ).fit(X, square(X))
    assert np.array_equal(network.predict(X), machine.predict(X))


def test_direct_form_by_lbfgs(X):
    model = PolynomialNetworkRegressor(lifted=False, solver="lbfgs", random_state=0)
    assert model.fit(X, square(X)).score(X, square(X)) > 0.9


def test_attributes_make_the_prediction(X):
    model = PolynomialNetworkRegressor(order=3, random_state=0, max_iter=5).fit(X, cubic(X))
    assert model.lifted_factors_.shape == (3, 6, 8)
    assert model.lifted_dummy_factors_.shape == (3, 1, 8)
    dots = np.einsum("nd,mdr->nmr", X, model.lifted_factors_) + model.lifted_dummy_factors_[:, 0]
    expected = model.intercept_ + X @ model.coef_ + dots.prod(axis=1).sum(axis=1)
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-9, atol=1e-10)
    for name in ("factors_", "dummy_factors_", "weights_", "degree_weights_"):
        assert not hasattr(model, name)
    assert not hasattr(model, "partial_fit")


@pytest.mark.parametrize("kernel", ["polynomial", "anova"])
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_direct_form_of_a_lifted_model_predicts_the_same(X, order, kernel):
    model = PolynomialNetworkRegressor(
        order=order, kernel=kernel, random_state=0, max_iter=4, rank=3, beta=0.1
    ).fit(X, square(X))
    direct = model.to_direct()
    np.testing.assert_allclose(direct.predict(X), model.predict(X), rtol=1e-10, atol=1e-10)
    assert not direct.lifted
    assert direct.get_params()["rank"] == (0 if order == 1 else {2: 6, 3: 12, 4: 24}[order])
    with pytest.raises(ValueError, match="not be trained"):
        direct.set_params(warm_start=True).fit(X, square(X))


def test_eigenbases_are_orthonormal_and_sorted(X):
    model = PolynomialNetworkRegressor(rank=2, random_state=0).fit(X, square(X))
    direct = model.to_direct()
    p = np.vstack([direct.factors_[2], direct.dummy_factors_[2]])
    np.testing.assert_allclose(p.T @ p, np.eye(4), atol=1e-12)
    sizes = np.abs(direct.weights_[2])
    assert (np.diff(sizes) <= 0).all()
    u, v = model.lifted_factors_
    matrix = direct.factors_[2] * direct.weights_[2] @ direct.factors_[2].T
    np.testing.assert_allclose(matrix, (u @ v.T + v @ u.T) / 2, atol=1e-12)


def test_more_bases_than_features_make_no_more_eigenbases(random):
    X = random.normal(size=(100, 2))
    model = PolynomialNetworkRegressor(rank=8, fit_lower=None, random_state=0).fit(X, X[:, 0] ** 2)
    direct = model.to_direct()
    assert direct.weights_[2].shape == (2,)
    np.testing.assert_allclose(direct.predict(X), model.predict(X), rtol=1e-10, atol=1e-10)


def test_equal_factors_equal_the_direct_model(X):
    model = PolynomialNetworkRegressor(order=3, kernel="anova", random_state=0, max_iter=1)
    model.fit(X, cubic(X))
    table = model._learners[0].model.parameters.table
    table[...] = table[:, :, :1]
    machine = polyfm.FMRegressor(
        order=3, fit_lower="augment", solver="lbfgs", random_state=0, max_iter=1
    ).fit(X, cubic(X))
    p = machine._learners[0].model.parameters
    p.table[:, 0] = table[:, :, 0]
    p.linear[:, 0] = model._learners[0].model.parameters.linear
    p.bias[0] = model._learners[0].model.parameters.bias
    np.testing.assert_allclose(machine.predict(X), model.predict(X), rtol=1e-10)


def test_inspection_of_lifted_models(X):
    model = PolynomialNetworkRegressor(rank=4, beta=0.1, random_state=0).fit(X, square(X))
    assert interaction_weight(model, [1, 2]) == pytest.approx(-2.0, abs=0.05)
    assert interaction_weight(model, [3]) == pytest.approx(1.0, abs=0.05)
    matrix = interaction_matrix(model)
    assert matrix[0, 0] == pytest.approx(1.0, abs=0.05)
    empty = np.zeros((1, 6))
    assert interaction_weight(model, []) == pytest.approx(float(model.predict(empty)[0]))
    third = PolynomialNetworkRegressor(order=3, rank=2, random_state=0).fit(X, cubic(X))
    e = np.eye(6)
    corners = [(s, e[list(s)].sum(axis=0)) for s in ((0, 1, 2), (0, 1), (0, 2), (1, 2))]
    corners += [((j,), e[j]) for j in range(3)] + [((), np.zeros(6))]
    # For the ANOVA kernel the weight is an alternating sum over corners.
    third.set_params(kernel="anova").fit(X, cubic(X))
    signs = [(-1.0) ** (3 - len(s)) for s, _ in corners]
    values = third.predict(np.array([x for _, x in corners]))
    assert interaction_weight(third, [0, 1, 2]) == pytest.approx(float(signs @ values), abs=1e-9)


def test_objective_never_rises_and_is_written_down(X):
    model = PolynomialNetworkRegressor(order=3, tol=0, max_iter=30, random_state=0)
    history = model.fit(X, cubic(X)).history_
    assert len(history["objective"]) == model.n_iter_ == 30
    assert (np.diff(history["objective"]) <= 1e-12).all()
    assert (np.array(history["loss"]) < history["objective"]).all()
    expected = np.mean((model.predict(X) - cubic(X)) ** 2) / 2
    assert history["loss"][-1] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("kernel", ["polynomial", "anova"])
def test_warm_start_goes_on(X, kernel):
    given = {"kernel": kernel, "tol": 0, "random_state": 3}
    once = PolynomialNetworkRegressor(max_iter=10, **given).fit(X, square(X))
    twice = PolynomialNetworkRegressor(max_iter=5, warm_start=True, **given).fit(X, square(X))
    first = twice.predict(X)
    twice.fit(X, square(X))
    assert not np.allclose(first, twice.predict(X))
    np.testing.assert_allclose(twice.predict(X), once.predict(X), rtol=1e-9)
    with pytest.raises(ValueError, match="lifted has changed"):
        twice.set_params(lifted=False).fit(X, square(X))


def test_dense_sparse_and_single_precision_agree(X):
    model = PolynomialNetworkRegressor(random_state=0, max_iter=5)
    X = np.where(X > 0.5, X, 0.0)
    expected = model.fit(X, square(X)).predict(X)
    for kind in (sp.csc_matrix, sp.coo_array, sp.lil_matrix):
        assert np.array_equal(clone(model).fit(kind(X), square(X)).predict(kind(X)), expected)
    single = clone(model).fit(X.astype(np.float32), square(X))
    np.testing.assert_allclose(single.predict(X), expected, rtol=1e-4, atol=1e-4)


def test_order_of_rows_and_columns_plays_no_part(X):
    model = PolynomialNetworkRegressor(random_state=0, tol=0, max_iter=4)
    expected = model.fit(X, square(X)).predict(X)
    again = clone(model).fit(X[::-1], square(X)[::-1])
    np.testing.assert_allclose(again.predict(X), expected, rtol=1e-9)


def test_weights_are_repetitions(X, random):
    weight = random.integers(0, 4, size=300)
    model = PolynomialNetworkClassifier(order=3, random_state=0)
    y = np.digitize(square(X), [3, 6])
    weighted = clone(model).fit(X, y, sample_weight=weight)
    repeated = clone(model).fit(X.repeat(weight, axis=0), y.repeat(weight))
    assert weighted.n_iter_ == repeated.n_iter_
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-6)


def test_classifiers(X):
    y = np.where(square(X) > 5, "high", "low")
    for loss in ("logistic", "squared_hinge"):
        model = PolynomialNetworkClassifier(loss=loss, random_state=0).fit(X, y)
        assert model.score(X, y) > 0.9
        assert isinstance(model.intercept_, float)
    several = PolynomialNetworkClassifier(random_state=0).fit(X, np.digitize(square(X), [3, 5, 7]))
    assert several.score(X, np.digitize(square(X), [3, 5, 7])) > 0.6
    assert several.lifted_factors_.shape == (4, 2, 6, 8)
    assert several.coef_.shape == (4, 6)
    assert several.intercept_.shape == (4,)
    np.testing.assert_allclose(
        several.to_direct().decision_function(X), several.decision_function(X), atol=1e-10
    )


def test_huber_loss_bears_outliers(X, random):
    y = square(X)
    y[::25] += 500
    given = {"random_state": 0, "init_scale": 0.3}
    huber = PolynomialNetworkRegressor(loss=Huber(1.0), beta=0.1, **given).fit(X, y)
    squared = PolynomialNetworkRegressor(**given).fit(X, y)
    assert huber.score(X, square(X)) > squared.score(X, square(X)) + 0.2


def test_early_stopping_keeps_the_best_epoch(random):
    X = random.normal(size=(1200, 6))
    y = square(X) + 3 * random.normal(size=1200)
    model = PolynomialNetworkRegressor(
        rank=20, beta=1e-6, random_state=0, tol=0, max_iter=25, scoring="rmse", n_iter_no_change=25
    ).fit(X, y)
    scores = model.history_["validation_rmse"]
    assert len(scores) == 25
    assert model.best_score_ == min(scores)
    assert model.best_iteration_ == int(np.argmin(scores)) + 1 < 25
    held = PolynomialNetworkRegressor(
        rank=20, beta=1e-6, random_state=0, tol=0, max_iter=25, scoring="rmse", n_iter_no_change=25
    ).fit(X[:1000], y[:1000], X_val=X[1000:], y_val=y[1000:])
    rmse = np.sqrt(np.mean((held.predict(X[1000:]) - y[1000:]) ** 2))
    assert held.best_score_ == pytest.approx(rmse) == min(held.history_["validation_rmse"])


def test_penalties_per_field(X):
    model = PolynomialNetworkRegressor(
        fields=[0, 0, 0, 1, 1, 1], beta=[0.01, 1e7], alpha=[0.01, 1e7], random_state=0
    ).fit(X, square(X))
    assert np.abs(model.lifted_factors_[:, :3]).max() > 0.1
    assert np.abs(model.lifted_factors_[:, 3:]).max() < 1e-3
    assert np.abs(model.coef_[3:]).max() < 1e-3


def test_columns_without_entries(X):
    X = np.hstack([X, np.zeros((300, 1))])
    model = PolynomialNetworkRegressor(random_state=0, beta=0, alpha=0).fit(X, square(X))
    assert not model.lifted_factors_[:, 6].any()
    seen = X.copy()
    seen[:, 6] = 9.0
    assert np.array_equal(model.predict(seen), model.predict(X))


@pytest.mark.parametrize("include_state", [True, False])
@pytest.mark.parametrize("lifted", [True, False])
def test_files(X, tmp_path, lifted, include_state):
    y = np.digitize(square(X), [3, 6])
    model = PolynomialNetworkClassifier(lifted=lifted, order=3, random_state=0, max_iter=3)
    model.fit(X, y)
    polyfm.save_model(model, tmp_path / "m.polyfm", include_state=include_state)
    loaded = polyfm.load_model(tmp_path / "m.polyfm")
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert loaded.get_params() == model.get_params()
    if lifted and include_state:
        model.set_params(warm_start=True).fit(X, y)
        loaded.set_params(warm_start=True).fit(X, y)
        assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))
    if lifted:
        direct = model.to_direct()
        polyfm.save_model(direct, tmp_path / "d.polyfm")
        again = polyfm.load_model(tmp_path / "d.polyfm")
        assert np.array_equal(again.predict_proba(X), direct.predict_proba(X))


def test_a_file_of_the_wrong_shape_is_refused(X, tmp_path):
    model = PolynomialNetworkRegressor(random_state=0, max_iter=1).fit(X, square(X))
    learner = model._learners[0]
    short = learner.model.parameters._replace(table=np.zeros((5, 8, 2)))
    object.__setattr__(learner.model, "parameters", short)
    polyfm.save_model(model, tmp_path / "m.polyfm")
    with pytest.raises(polyfm.ModelFileError, match=r"table has shape \(5, 8, 2\)"):
        polyfm.load_model(tmp_path / "m.polyfm")


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"kernel": "all-subsets"}, ValueError, "kernel of a polynomial network"),
        ({"fit_lower": "explicit"}, ValueError, "fit_lower of a polynomial network"),
        ({"lifted": "yes"}, TypeError, "lifted must be True or False"),
        ({"solver": "adagrad"}, ValueError, "lifted=False"),
        ({"solver": "newton"}, ValueError, "lifted=False"),
        ({"loss": "poisson"}, ValueError, "no bounded curvature"),
        ({"loss": "quantile"}, ValueError, "no bounded curvature"),
        ({"loss": "logistic"}, ValueError, "for classes"),
        ({"lifted": False, "solver": "newton"}, ValueError, "solver='newton'"),
        ({"order": 0}, ValueError, "order"),
        ({"beta": -1.0}, ValueError, "beta"),
    ],
)
def test_errors_name_the_parameter(X, given, error, words):
    with pytest.raises(error, match=words):
        PolynomialNetworkRegressor(**given).fit(X, np.abs(square(X)))


def test_an_unfitted_network_says_so(X):
    model = PolynomialNetworkRegressor()
    for call in (model.predict, lambda X: model.to_direct()):
        with pytest.raises(NotFittedError):
            call(X)
    for name in ("coef_", "intercept_", "lifted_factors_", "factors_"):
        assert not hasattr(model, name)


def test_an_interrupt_keeps_what_was_learnt(X, monkeypatch):
    from polyfm.solvers.lifted_descent import Descent

    epoch, calls = Descent.epoch, []

    def interrupted(self, report=None):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return epoch(self, report)

    monkeypatch.setattr(Descent, "epoch", interrupted)
    model = PolynomialNetworkRegressor(random_state=0, tol=0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, square(X))
    assert model.n_iter_ == 3
    assert np.isfinite(model.predict(X)).all()
