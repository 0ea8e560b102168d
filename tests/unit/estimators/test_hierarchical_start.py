"""How factors start: exactly, or by evidence, which makes an L1 penalty choose features."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from polyfm import HierarchicalFMClassifier, HierarchicalFMRegressor, load_model, save_model

RELEVANT = [0, 1, 2, 3, 4]


@pytest.fixture(scope="module")
def planted():
    """Rows of 200 features, of which five have main effects, and two of these an interaction."""
    random = np.random.default_rng(0)
    X = sp.random(3000, 200, density=0.1, format="csr", random_state=0, data_rvs=np.ones)
    X = X.astype(float).tolil()
    X[:, RELEVANT] = random.random((3000, 5)) < 0.5
    X = X.tocsr()
    main = X[:, RELEVANT] @ np.array([2.0, -2.0, 1.5, -1.5, 2.0])
    y = main + 2.0 * (X[:, 0].multiply(X[:, 1])).toarray().ravel() - 1.5
    return X, y + 0.3 * random.normal(size=3000)


def fitted(planted, beta, **given):
    X, y = planted
    settings = {"rank": 4, "penalty": "l1", "max_iter": 4, "tol": 0, "random_state": 0, **given}
    return HierarchicalFMRegressor(beta=beta, **settings).fit(X, y)


def share_of_zeros(model):
    return model.check_assumptions().zero_share


def test_a_stronger_lasso_keeps_what_matters(planted):
    models = [fitted(planted, beta) for beta in (0.0, 10.0, 40.0, 100.0)]
    shares = [share_of_zeros(model) for model in models]
    assert shares[0] == 0.0
    assert (np.diff(shares) > 0).all()
    assert shares[-1] > 0.9
    for model in models[1:]:
        assert model.check_assumptions().holds
        assert (model.main_effects_[RELEVANT] != 0).all()
        assert model.score(*planted) > 0.88
        V = model.factors_[2]
        pairs = V @ V.T
        np.fill_diagonal(pairs, 0.0)
        assert ((pairs == 0).all(axis=1) | (model.main_effects_ != 0)).all()
    for model in models[1:3]:
        V = model.factors_[2]
        assert V[0] @ V[1] > 1.0


def test_an_exact_start_keeps_hardly_any_feature_at_zero(planted):
    model = fitted(planted, 100.0, start="exact")
    assert share_of_zeros(model) < 0.1
    assert share_of_zeros(fitted(planted, 100.0, start="evidence")) > 0.9


@pytest.mark.parametrize("size", [1, 16])
def test_the_context_stays_when_nothing_else_does(planted, size):
    X, y = planted
    given = dict(rank=4, penalty="l1", random_state=0, batch_size=size)
    start = HierarchicalFMRegressor(start="exact", **given).partial_fit(X, y, np.full(3000, 1e-14))
    model = HierarchicalFMRegressor(beta=1e6, **given).partial_fit(X, y)
    assert not model.factors_[2].any()
    assert np.allclose(model.context_, start.context_, rtol=1e-12)
    assert share_of_zeros(model) == 1.0
    # Evidence is kept: features come in as soon as the penalty lets them.
    model.set_params(beta=1.0).partial_fit(X, y)
    assert (model.main_effects_[RELEVANT] != 0).all()


@pytest.mark.parametrize(
    ("given", "by_evidence"),
    [
        (dict(penalty="l1"), True),
        (dict(penalty="l2"), False),
        (dict(penalty="elasticnet"), True),
        (dict(penalty="elasticnet", l1_ratio=0.0), False),
        (dict(penalty="l1", start="exact"), False),
        (dict(penalty="l2", start="evidence"), True),
    ],
)
def test_auto_is_by_evidence_where_there_is_a_lasso(planted, given, by_evidence):
    X, y = planted
    nothing = (X, y, np.full(3000, 1e-14))
    make = dict(rank=2, beta=20.0, random_state=0)
    exact = HierarchicalFMRegressor(start="exact", **make).partial_fit(*nothing)
    model = HierarchicalFMRegressor(**make, **given).partial_fit(*nothing)
    u = exact.factors_[2]
    ratio = {"l1": 1.0, "l2": 0.0, "elasticnet": given.get("l1_ratio", 0.5)}[given["penalty"]]
    shrunk = np.maximum(np.abs(10.0 * u) - 20.0 * ratio, 0.0) / (10.0 + 20.0 * (1.0 - ratio))
    wanted = np.sign(u) * shrunk if by_evidence else u
    assert np.allclose(model.factors_[2], wanted, rtol=1e-9, atol=1e-12)


def test_columns_in_units_of_their_own_start_alike(planted):
    """Without a penalty both starts are the same, whatever the columns' unit."""
    X, y = planted
    scaled = X @ sp.diags(2.0 ** np.random.default_rng(1).integers(-5, 6, X.shape[1]))
    given = dict(penalty="l2", max_iter=1)
    models = [fitted((scaled, y), 0.0, start=start, **given) for start in ("exact", "evidence")]
    assert np.allclose(models[0].factors_[2], models[1].factors_[2], rtol=1e-8, atol=1e-10)


def through_file(model, folder):
    save_model(model, folder / "m.polyfm")
    return load_model(folder / "m.polyfm")


def through_pickle(model, folder):
    return pickle.loads(pickle.dumps(model))


@pytest.mark.parametrize("way", [through_file, through_pickle])
@pytest.mark.parametrize("size", [1, 16])
def test_going_on_after_storage_is_the_same_to_the_bit(planted, tmp_path, way, size):
    X, y = planted
    label = y > 0
    given = dict(rank=3, penalty="l1", beta=3.0, batch_size=size, random_state=0)
    whole = HierarchicalFMClassifier(**given).partial_fit(
        X[:1504], label[:1504], classes=[False, True]
    )
    half = way(whole, tmp_path)
    for model in (whole, half):
        model.partial_fit(X[1504:], label[1504:])
    assert 0.0 < share_of_zeros(whole) < 1.0
    for one, other in zip(whole._learners, half._learners, strict=True):
        for a, b in zip(one.model.parameters, other.model.parameters, strict=True):
            assert np.array_equal(a, b)


def test_features_that_come_later_start_by_evidence(planted):
    X, y = planted
    given = dict(rank=3, penalty="l1", beta=40.0, max_features=300, random_state=0)
    model = HierarchicalFMRegressor(**given).partial_fit(X[:1000, :50], y[:1000])
    model.partial_fit(X[1000:], y[1000:])
    late = model.factors_[2][50:200]
    assert 0.5 < (~late.any(axis=1)).mean() < 1.0


def test_the_start_cannot_change_midway(planted):
    X, y = planted
    model = HierarchicalFMRegressor(penalty="l1", random_state=0).partial_fit(X, y)
    with pytest.raises(ValueError, match="start has changed from 'auto' to 'exact'"):
        model.set_params(start="exact").partial_fit(X, y)


@pytest.mark.parametrize("start", ["random", None, 0.1])
def test_an_unknown_start_is_refused(planted, start):
    with pytest.raises(ValueError, match=r"start must be one of .'auto', 'exact', 'evidence'"):
        HierarchicalFMRegressor(start=start).fit(*planted)
