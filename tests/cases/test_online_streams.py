"""Publicly reported faults of other programs: streams, and learning by FTRL-Proximal.

The number in a test's name is that of the report; each says what must happen here instead.
"""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from polyfm import (
    FMRegressor,
    FTRLClassifier,
    FTRLRegressor,
    HierarchicalFMClassifier,
    HierarchicalFMRegressor,
    load_model,
    save_model,
)

LEARNERS = [FTRLRegressor, HierarchicalFMRegressor, FTRLClassifier, HierarchicalFMClassifier]


def sums(model):
    """Weights, and the sums z and n they come from, of all features."""
    p = model._learners[0].model.parameters
    return np.concatenate([p.bias.ravel(), p.linear.ravel(), p.table.ravel()])


@pytest.mark.parametrize("cls", LEARNERS)
@pytest.mark.parametrize("rate", [0, -0.1, np.nan, np.inf])
def test_case_022_rates_that_divide_by_zero(cls, rate):
    """Four equal rows and alpha = 0 of the rule: refused by name, nothing is learnt."""
    model = cls(learning_rate=rate)
    with pytest.raises(ValueError, match="learning_rate must be finite, > 0"):
        model.fit(np.ones((4, 1)), [0, 1, 1, 1])
    with pytest.raises(ValueError, match="learning_rate"):
        model.partial_fit(np.ones((4, 1)), [0, 1, 1, 1])
    assert not hasattr(model, "coef_")


@pytest.mark.parametrize("cls", [FTRLClassifier, FTRLRegressor])
def test_case_022_no_damping_would_divide_by_zero(cls):
    """beta = 0 makes the first rate infinite: refused by name."""
    with pytest.raises(ValueError, match="damping must be finite, > 0"):
        cls(damping=0).fit(np.ones((4, 1)), [0, 1, 1, 1])


def test_case_026_a_hashed_matrix_leaves_finite_sums():
    """Rows of tf-idf hashed to 2**20 columns, many factors: weights, z and n are finite."""
    random = np.random.default_rng(0)
    n_rows, n_terms = 500, 40
    indices = np.sort(random.integers(0, 2**20, (n_rows, n_terms)), axis=1)
    values = random.exponential(0.3, (n_rows, n_terms))
    indptr = np.arange(0, n_rows * n_terms + 1, n_terms)
    X = sp.csr_matrix((values.ravel(), indices.ravel(), indptr), shape=(n_rows, 2**20))
    y = 10 * random.normal(size=n_rows)
    options = {"rank": 16, "learning_rate": 0.01, "alpha": 0.1, "beta": 0.1, "random_state": 0}
    model = FMRegressor(solver="ftrl", max_features=2**20, **options)
    for _ in range(3):
        model.partial_fit(X.astype(np.float32), y)
    assert np.isfinite(sums(model)).all()
    assert np.isfinite(model.predict(X)).all()


def test_case_101_columns_beyond_those_learnt():
    """A row with ids far beyond those learnt is predicted by the ids that are known."""
    model = FTRLRegressor(max_features=20_000).partial_fit(np.eye(10), np.arange(10.0))
    far = sp.csr_matrix((np.ones(2), ([0, 0], [3, 15_896])), shape=(1, 15_897))
    assert model.predict(far)[0] == model.predict(np.eye(10)[3:4])[0]
    assert model.n_features_in_ == 10


def test_case_131_ever_new_names():
    """A hundred thousand names that come once: the model stays at its 4,096 columns."""
    model = FTRLClassifier(max_features=4096)
    sizes = []
    for part in range(5):
        events = [{"id": f"{part}-{k}", "kind": f"{k % 7}"} for k in range(20_000)]
        model.partial_fit(events, [k % 7 > 3 for k in range(20_000)], classes=[False, True])
        sizes.append(len(pickle.dumps(model)))
    assert model.n_features_in_ == 4096
    assert max(sizes) - min(sizes) < 100  # some counters get longer
    assert max(sizes) < 4096 * 4 * 8 + 20_000
    assert model.predict_one({"id": "unknown", "kind": "5"})
    assert not model.predict_one({"id": "unknown", "kind": "0"})


def test_case_131_a_bound_on_columns():
    """More columns than may be: refused with the name of the bound, the model goes on."""
    model = FTRLRegressor(max_features=100).partial_fit(np.eye(50), np.ones(50))
    before = sums(model)
    with pytest.raises(ValueError, match=r"101 columns, but max_features=100: raise"):
        model.partial_fit(np.eye(101), np.ones(101))
    np.testing.assert_array_equal(sums(model), before)
    assert model.partial_fit(np.eye(100), np.ones(100)).n_features_in_ == 100


def test_case_131_columns_one_by_one():
    """Room doubles: of 3,000 columns one by one, few make all others move to another place."""
    model, moves, place = FTRLRegressor(max_features=10_000), 0, 0
    for k in range(1, 3001):
        model.partial_fit(sp.csr_matrix(([1.0], ([0], [k - 1])), shape=(1, k)), [1.0])
        now = model._learners[0].model.parameters.linear.ctypes.data
        moves, place = moves + (now != place), now
    assert model.coef_.shape == (3000,) and (model.coef_ != 0).all()
    assert moves <= 14


@pytest.mark.parametrize("cls", LEARNERS)
def test_case_147_sums_go_on(cls, tmp_path):
    """Day 1, a file or a pickle, day 2: the same z and n as without a break."""
    random = np.random.default_rng(0)
    X = random.normal(size=(100, 4))
    y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)
    whole = cls(random_state=0).partial_fit(X[:50], y[:50])
    save_model(whole, tmp_path / "day1.polyfm")
    copies = [load_model(tmp_path / "day1.polyfm"), pickle.loads(pickle.dumps(whole))]
    whole.partial_fit(X[50:], y[50:])
    for copy in copies:
        copy.partial_fit(X[50:], y[50:])
        np.testing.assert_array_equal(sums(copy), sums(whole))
        assert copy.t_ == whole.t_ == 100


def test_case_149_noise_stays_at_zero():
    """A long stationary stream: features of pure noise stay at exactly 0 under an L1 penalty."""
    random = np.random.default_rng(0)
    model = FTRLClassifier(penalty="l1", alpha=30.0, learning_rate=0.1)
    shares = []
    for _ in range(20):
        X = sp.random(5000, 200, 0.01, "csr", random_state=random)
        X.data[:] = 1.0
        signal = (random.random((5000, 3)) < 0.5).astype(float)
        y = signal @ [1.5, -1.5, 1.0] + random.logistic(size=5000) > 0
        model.partial_fit(sp.hstack([signal, X], format="csr"), y, classes=[False, True])
        shares.append(np.mean(model.coef_[3:] == 0))
    assert (model.coef_[:3] != 0).all()
    assert min(shares) > 0.9
    assert shares[-1] > 0.9
