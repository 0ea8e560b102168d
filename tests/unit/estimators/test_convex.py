"""Convex machines: the optimum, however it is written down, and the way there."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression, Ridge

from polyfm import (
    ConvexFMClassifier,
    ConvexFMRegressor,
    ModelFileError,
    load_model,
    save_model,
)
from polyfm.cli import main
from polyfm.inspection import interaction_matrix, interaction_weight, strongest_interactions
from polyfm.losses import Huber, Logistic, Squared, SquaredHinge
from polyfm.losses import contract as losses
from polyfm.solvers import _linear_block
from polyfm.solvers._convex import Point, Problem
from polyfm.solvers.conditional_gradient import Greedy, Hazan

ALPHA, BETA = 0.7, 6.0
N, D = 60, 6


def rows(n: int = N, d: int = D, seed: int = 0) -> tuple[NDArray[Any], NDArray[Any]]:
    """Rows with a planted interaction of either sign, targets of mean 0 and spread 1."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    y = X[:, 0] + 2.0 * X[:, 1] * X[:, 2] - 1.5 * X[:, 3] * X[:, 4] + 0.3 * random.normal(size=n)
    return X, (y - y.mean()) / y.std()


def problem_of(loss: Any, *, diagonal: bool = False, d: int = D, n: int = N) -> Problem:
    X, y = rows(n, d)
    if isinstance(loss, Logistic | SquaredHinge):
        y = np.where(y > 0, 1.0, -1.0)
    return Problem.of(
        sp.csr_matrix(X), y, np.ones(n), loss, ALPHA,
        diagonal=diagonal, fit_linear=True, fit_intercept=True,
    )  # fmt: skip


def greedy(
    problem: Problem,
    *,
    tol: float = 1e-8,
    refit: str = "full",
    beta: float = BETA,
    **options: Any,
) -> Greedy:
    start = np.random.default_rng(options.pop("seed", 0)).normal(size=(problem.n_features, 1))
    size = problem.penalty(beta)
    zero = Point.zero(problem.n_features)
    return Greedy(problem, size, options.pop("max_rank", 200), tol, start, refit, zero)


def finished(fit: Any, steps: int = 300) -> Any:
    for _ in range(steps):
        fit.step()
        if fit.done:
            return fit
    raise AssertionError(f"no end in {steps} steps: the gap is {fit.gap / fit.objective:.2g}")


def values(loss: Any, y: NDArray[Any], f: NDArray[Any]) -> float:
    return sum(losses.value(loss, *pair) for pair in zip(y, f, strict=True))


def slopes_of(loss: Any, y: NDArray[Any], f: NDArray[Any]) -> NDArray[Any]:
    return np.array([losses.gradient(loss, *pair) for pair in zip(y, f, strict=True)])


class Dense(NamedTuple):
    """The problem written down with all of the d x d matrix Z."""

    loss: Any
    diagonal: bool
    X: NDArray[Any]
    y: NDArray[Any]

    def quadratic(self, Z: NDArray[Any]) -> NDArray[Any]:
        whole = np.einsum("ij,jk,ik->i", self.X, Z, self.X)
        return whole if self.diagonal else 0.5 * (whole - self.X**2 @ np.diag(Z))

    def gradient(self, slopes: NDArray[Any]) -> NDArray[Any]:
        G = np.einsum("i,ij,ik->jk", slopes, self.X, self.X)
        return G if self.diagonal else 0.5 * (G - np.diag(np.diag(G)))

    def smooth(self, b: float, w: NDArray[Any], Z: NDArray[Any]) -> tuple[float, NDArray[Any]]:
        f = b + self.X @ w + self.quadratic(Z)
        return values(self.loss, self.y, f) + 0.5 * ALPHA * w @ w, slopes_of(self.loss, self.y, f)

    def objective(self, b: float, w: NDArray[Any], Z: NDArray[Any]) -> float:
        return self.smooth(b, w, Z)[0] + BETA * np.abs(np.linalg.eigvalsh(Z)).sum()


def slow_twin(dense: Dense, steps: int) -> tuple[float, NDArray[Any], NDArray[Any]]:
    """Accelerated proximal gradient on b, w and the whole matrix."""
    X = dense.X
    pairs = np.einsum("ij,ik->ijk", X, X)
    if not dense.diagonal:
        pairs = 0.5 * (pairs - np.einsum("ij,jk->ijk", X**2, np.eye(X.shape[1])))
    A = np.hstack([np.ones((len(X), 1)), X, pairs.reshape(len(X), -1)])
    step = 1.0 / (losses.curvature(dense.loss) * np.linalg.norm(A, 2) ** 2 + ALPHA)
    d = X.shape[1]
    v = ahead = np.zeros(1 + d + d * d)
    t = 1.0
    for _ in range(steps):
        b, w, Z = ahead[0], ahead[1 : 1 + d], ahead[1 + d :].reshape(d, d)
        _, slopes = dense.smooth(b, w, Z)
        new_b = b - step * slopes.sum()
        new_w = w - step * (X.T @ slopes + ALPHA * w)
        lam, V = np.linalg.eigh(Z - step * dense.gradient(slopes))
        lam = np.sign(lam) * np.maximum(np.abs(lam) - step * BETA, 0.0)
        new = np.concatenate([[new_b], new_w, ((V * lam) @ V.T).ravel()])
        if (ahead - new) @ (new - v) > 0:
            t = 1.0
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
        v, ahead, t = new, new + (t - 1.0) / following * (new - v), following
    return float(v[0]), v[1 : 1 + d], v[1 + d :].reshape(d, d)


def matrix_of(point: Point) -> NDArray[Any]:
    return (point.bases * point.weights) @ point.bases.T


@pytest.mark.parametrize(("refit", "tol"), [("diagonal", 5e-5), ("full", 1e-9)])
@pytest.mark.parametrize("diagonal", [False, True])
def test_equals_the_slow_twin_on_the_whole_matrix(refit: str, tol: float, diagonal: bool) -> None:
    X, y = rows(80, 8)
    dense = Dense(Squared(), diagonal, X, y)
    b, w, Z = slow_twin(dense, 6000)
    fit = finished(
        greedy(problem_of(Squared(), diagonal=diagonal, d=8, n=80), tol=tol, refit=refit)
    )
    point = fit.result()
    own = dense.objective(point.bias, point.linear, matrix_of(point))
    assert own == pytest.approx(dense.objective(b, w, Z), rel=max(1e-8, tol))
    twin, found = (dense.quadratic(M) + X @ v + c for M, v, c in
                   ((Z, w, b), (matrix_of(point), point.linear, point.bias)))  # fmt: skip
    np.testing.assert_allclose(found, twin, atol=5e-3)


@pytest.mark.parametrize("loss", [Logistic(), SquaredHinge(), Huber(0.5)], ids=str)
def test_other_losses_equal_the_slow_twin(loss: Any) -> None:
    problem = problem_of(loss)
    dense = Dense(loss, False, rows()[0], problem.target)
    fit = finished(greedy(problem, tol=1e-7))
    point = fit.result()
    own = dense.objective(point.bias, point.linear, matrix_of(point))
    assert own == pytest.approx(dense.objective(*slow_twin(dense, 1500)), rel=1e-6)


@pytest.mark.parametrize("loss", [Squared(), Logistic(), SquaredHinge(), Huber(0.5)], ids=str)
@pytest.mark.parametrize(("refit", "tol"), [("diagonal", 1e-4), ("full", 1e-6)])
def test_the_objective_never_rises_and_the_gap_closes(loss: Any, refit: str, tol: float) -> None:
    fit = greedy(problem_of(loss), tol=tol, refit=refit)
    objectives, bounds = [], []
    while not fit.done:
        fit.step()
        objectives.append(fit.objective)
        bounds.append(fit.objective - fit.gap)
        assert len(objectives) < 300
    assert (np.diff(objectives) <= 1e-12 * objectives[0]).all()
    assert (np.diff(bounds) >= -1e-12 * objectives[0]).all()
    # A lower bound is one for every objective, that of the end included.
    assert max(bounds) <= objectives[-1] <= max(bounds) * (1 + 2 * tol)
    assert len(objectives) > 3


@pytest.mark.parametrize("loss", [Squared(), Logistic(), SquaredHinge(), Huber(0.5)], ids=str)
@pytest.mark.parametrize("diagonal", [False, True])
def test_optimality_condition(loss: Any, diagonal: bool) -> None:
    problem = problem_of(loss, diagonal=diagonal)
    point = finished(greedy(problem, tol=1e-8)).result()
    dense = Dense(loss, diagonal, rows()[0], problem.target)
    _, slopes = dense.smooth(point.bias, point.linear, matrix_of(point))
    G = dense.gradient(slopes)
    assert np.abs(np.linalg.eigvalsh(G)).max() <= BETA * (1 + 1e-3)
    # Where Z has an eigenvalue, G has beta with the other sign.
    p, lam = point.bases, point.weights
    large = np.abs(lam) > 1e-3 * np.abs(lam).max()
    assert large.any()
    inner = np.einsum("js,jk,ks->s", p, G, p)[large]
    np.testing.assert_allclose(inner, -BETA * np.sign(lam[large]), rtol=0.01)
    np.testing.assert_allclose(dense.X.T @ slopes, -ALPHA * point.linear, atol=1e-3)
    assert abs(slopes.sum()) < 1e-3


def lifted_optimum(dense: Dense, random: np.random.Generator) -> float:
    """Minimise (28): factors U and V, half of each squared norm."""
    X, y, d = dense.X, dense.y, dense.X.shape[1]

    def objective(v: NDArray[Any]) -> tuple[float, NDArray[Any]]:
        b, w, U, V = v[0], v[1 : 1 + d], *v[1 + d :].reshape(2, d, d)
        e = b + X @ w + dense.quadratic(0.5 * (U @ V.T + V @ U.T)) - y
        G = dense.gradient(e)
        value = 0.5 * e @ e + 0.5 * ALPHA * w @ w + 0.5 * BETA * (v[1 + d :] @ v[1 + d :])
        parts = [
            [e.sum()],
            X.T @ e + ALPHA * w,
            (G @ V + BETA * U).ravel(),
            (G @ U + BETA * V).ravel(),
        ]
        return value, np.concatenate(parts)

    return best_of_starts(objective, 1 + d + 2 * d * d, random)


def direct_optimum(dense: Dense, random: np.random.Generator) -> float:
    """Minimise (29): d bases of either sign, lambda = 1 and -1."""
    X, y, d = dense.X, dense.y, dense.X.shape[1]
    signs = np.repeat([1.0, -1.0], d)

    def objective(v: NDArray[Any]) -> tuple[float, NDArray[Any]]:
        b, w, P = v[0], v[1 : 1 + d], v[1 + d :].reshape(d, 2 * d)
        e = b + X @ w + dense.quadratic((P * signs) @ P.T) - y
        value = 0.5 * e @ e + 0.5 * ALPHA * w @ w + BETA * (P**2).sum()
        slopes = 2.0 * (dense.gradient(e) @ P) * signs + 2.0 * BETA * P
        return value, np.concatenate([[e.sum()], X.T @ e + ALPHA * w, slopes.ravel()])

    return best_of_starts(objective, 1 + d + 2 * d * d, random)


def best_of_starts(objective: Any, size: int, random: np.random.Generator) -> float:
    options = {"maxiter": 5000, "maxfun": 10_000, "ftol": 1e-14, "gtol": 1e-8}
    return min(
        minimize(
            objective, random.normal(size=size), jac=True, method="L-BFGS-B", options=options
        ).fun
        for _ in range(3)
    )


@pytest.mark.parametrize("diagonal", [False, True], ids=["anova", "polynomial"])
def test_lifted_direct_and_convex_problems_have_one_optimum(
    diagonal: bool, random: np.random.Generator
) -> None:
    dense = Dense(Squared(), diagonal, *rows())
    fit = finished(greedy(problem_of(Squared(), diagonal=diagonal), tol=1e-8))
    convex = fit.objective
    assert fit.point.rank >= 2
    assert lifted_optimum(dense, random) == pytest.approx(convex, rel=1e-6)
    assert direct_optimum(dense, random) == pytest.approx(convex, rel=1e-6)


def test_the_result_does_not_depend_on_the_start() -> None:
    # More features than are handled by a dense eigenvalue solver, so that there is a start.
    random = np.random.default_rng(1)
    X = sp.random(400, 90, 0.1, random_state=np.random.RandomState(2), format="csr")
    dense = X.toarray()
    y = dense[:, 0] + 9.0 * dense[:, 1:40].sum(axis=1) * dense[:, 40:].sum(axis=1)
    y += 0.1 * random.normal(size=400)
    options = {"beta": 2.0, "refit": "full", "tol": 1e-5}
    models = [ConvexFMRegressor(random_state=k, **options).fit(X, y) for k in (0, 1)]
    again = ConvexFMRegressor(random_state=0, **options).fit(X, y)
    np.testing.assert_array_equal(models[0].predict(X), again.predict(X))
    assert len(models[0].weights_[2]) > 1
    assert (models[0].predict(X) != models[1].predict(X)).any()
    for model in models:
        assert model.history_["duality_gap"][-1] <= 1e-5 * model.history_["objective"][-1]
    objectives = [model.history_["objective"][-1] for model in models]
    assert objectives[0] == pytest.approx(objectives[1], rel=1e-5)
    np.testing.assert_allclose(models[0].predict(X), models[1].predict(X), atol=2e-3 * y.std())


def test_full_refit_gets_at_least_as_far_as_the_diagonal_one() -> None:
    problem = problem_of(Squared())
    fits = {refit: greedy(problem, tol=0.0, refit=refit) for refit in ("diagonal", "full")}
    for _ in range(8):
        for fit in fits.values():
            fit.step()
        assert fits["full"].objective <= fits["diagonal"].objective * (1 + 1e-9)


def hazan(trace: float, tol: float) -> Hazan:
    problem = problem_of(Squared())
    size = Hazan.size_in_unit(problem, trace)
    start = np.ones((D, 1))
    return Hazan(problem, size, 300, tol, start, "diagonal", Point.zero(D))


@pytest.mark.parametrize("trace", [0.5, 3.0])
def test_hazan_stays_within_the_trace_and_descends(trace: float) -> None:
    fit = hazan(trace, 0.0)
    dense = Dense(Squared(), False, *rows())
    objectives, bounds = [], []
    for _ in range(60):
        fit.step()
        point = fit.result()
        assert (point.weights >= 0).all()
        assert point.weights.sum() <= trace * (1 + 1e-9)
        value, _ = dense.smooth(point.bias, point.linear, matrix_of(point))
        assert fit.objective == pytest.approx(value, rel=1e-9)
        objectives.append(fit.objective)
        bounds.append(fit.objective - fit.gap)
    assert (np.diff(objectives) <= 1e-12 * objectives[0]).all()
    assert max(bounds) <= min(objectives)
    # The method's rate is 1 / t.
    assert fit.gap < 0.1 * (objectives[0] - objectives[-1])


def test_hazan_finds_the_constrained_optimum() -> None:
    trace = 1.0
    fit = finished(hazan(trace, 1e-3), 1000)
    dense = Dense(Squared(), False, *rows())
    d = D

    def objective(v: NDArray[Any]) -> tuple[float, NDArray[Any]]:
        b, w, U = v[0], v[1 : 1 + d], v[1 + d :].reshape(d, d)
        size = (U**2).sum()
        scale = trace / max(size, trace)  # beyond the bound U is scaled back
        e = b + dense.X @ w + dense.quadratic(scale * U @ U.T) - dense.y
        slope = 2.0 * scale * (dense.gradient(e) @ U)
        if size > trace:
            slope -= U * (slope * U).sum() / size
        value = 0.5 * e @ e + 0.5 * ALPHA * w @ w
        return value, np.concatenate([[e.sum()], dense.X.T @ e + ALPHA * w, slope.ravel()])

    best = best_of_starts(objective, 1 + d + d * d, np.random.default_rng(0))
    assert fit.objective == pytest.approx(best, rel=1e-3)
    assert fit.objective - fit.gap <= best * (1 + 1e-9)


def test_a_rank_limit_is_kept() -> None:
    fit = greedy(problem_of(Squared()), tol=1e-8, max_rank=2)
    finished(fit)
    assert fit.point.rank <= 2
    assert fit.gap > 1e-3 * fit.objective


def test_without_interactions_it_is_ridge_regression() -> None:
    X, y = rows()
    model = ConvexFMRegressor(beta=1e6, alpha=ALPHA).fit(X, 5.0 + 3.0 * y)
    ridge = Ridge(alpha=ALPHA).fit(X, 5.0 + 3.0 * y)
    assert model.n_iter_ == 1
    assert model.factors_[2].shape == (D, 0)
    np.testing.assert_allclose(model.coef_, ridge.coef_, rtol=1e-9)
    assert model.intercept_ == pytest.approx(ridge.intercept_, rel=1e-9)
    np.testing.assert_allclose(model.predict(X), ridge.predict(X), rtol=1e-9)


def test_without_interactions_it_is_logistic_regression() -> None:
    X, y = rows()
    model = ConvexFMClassifier(beta=1e6, alpha=ALPHA).fit(X, y > 0)
    logistic = LogisticRegression(C=1.0 / ALPHA, tol=1e-10, max_iter=1000).fit(X, y > 0)
    np.testing.assert_allclose(model.coef_, logistic.coef_[0], rtol=1e-5)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_many_features_without_interactions(fit_intercept: bool) -> None:
    # More than are factorised: conjugate gradients and L-BFGS in the unit of each column.
    X = sp.random(500, 400, 0.05, random_state=np.random.RandomState(0), format="csr")
    y = X @ np.linspace(-1, 1, 400) + 3.0
    options = {"fit_intercept": fit_intercept}
    model = ConvexFMRegressor(beta=1e6, alpha=ALPHA, **options).fit(X, y)
    ridge = Ridge(alpha=ALPHA, tol=1e-12, **options).fit(X, y)
    np.testing.assert_allclose(model.coef_, ridge.coef_, atol=1e-6)
    classifier = ConvexFMClassifier(beta=1e6, alpha=ALPHA, **options).fit(X, y > 3.0)
    logistic = LogisticRegression(C=1.0 / ALPHA, tol=1e-10, max_iter=2000, **options)
    np.testing.assert_allclose(classifier.coef_, logistic.fit(X, y > 3.0).coef_[0], atol=1e-5)


@pytest.mark.parametrize("options", [{}, {"method": "hazan"}, {"refit": "full"}, {"loss": "huber"}])
def test_defaults_beat_a_linear_model_on_planted_interactions(options: dict[str, Any]) -> None:
    X, y = rows(400, 10, seed=3)
    model = ConvexFMRegressor(random_state=0, max_iter=40, **options).fit(X[:200], y[:200])
    linear = Ridge().fit(X[:200], y[:200])
    assert linear.score(X[200:], y[200:]) < 0.3
    assert model.score(X[200:], y[200:]) > 0.75


def test_defaults_beat_a_linear_classifier() -> None:
    X, y = rows(800, 8, seed=4)
    labels = np.array(["low", "middle", "high"])[np.digitize(y, [-0.5, 0.5])]
    model = ConvexFMClassifier(random_state=0, max_iter=30).fit(X[:400], labels[:400])
    linear = LogisticRegression().fit(X[:400], labels[:400])
    assert model.score(X[400:], labels[400:]) > linear.score(X[400:], labels[400:]) + 0.15
    proba = model.predict_proba(X[400:])
    assert proba.shape == (400, 3)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert model.factors_[2].shape[:2] == (3, 8)
    assert model.size_.shape == (3,)


@pytest.mark.parametrize("diagonal", [False, True])
def test_attributes_make_the_prediction(diagonal: bool) -> None:
    X, y = rows()
    y = 20.0 + 5.0 * y
    model = ConvexFMRegressor(diagonal=diagonal, random_state=0).fit(X, y)
    P, lam = model.factors_[2], model.weights_[2]
    np.testing.assert_allclose(P.T @ P, np.eye(len(lam)), atol=1e-9)
    assert (np.diff(np.abs(lam)) <= 0).all()
    atoms = (X @ P) ** 2 if diagonal else 0.5 * ((X @ P) ** 2 - X**2 @ P**2)
    by_hand = model.intercept_ + X @ model.coef_ + atoms @ lam
    np.testing.assert_allclose(model.predict(X), by_hand, rtol=1e-9)
    matrix = interaction_matrix(model)
    Z = (P * lam) @ P.T
    np.testing.assert_allclose(matrix[0, 1], (2.0 if diagonal else 1.0) * Z[0, 1])
    assert interaction_weight(model, [0, 1]) == pytest.approx(matrix[0, 1])


def test_the_strongest_interactions_are_the_planted_ones() -> None:
    X, y = rows(300)
    model = ConvexFMRegressor(random_state=0).fit(X, y)
    found = strongest_interactions(model, top=2)
    assert [one.features for one in found] == [(1, 2), (3, 4)]
    assert found[0].weight > 0 > found[1].weight


def test_unit_of_columns_and_target() -> None:
    X, y = rows()
    options = {"random_state": 0, "tol": 1e-8}
    plain = ConvexFMRegressor(alpha=1.0, beta=2.0, **options).fit(X, y)
    scaled = ConvexFMRegressor(alpha=1e4, beta=2e4, **options).fit(100.0 * X, 7.0 * y + 3.0)
    np.testing.assert_allclose(scaled.predict(100.0 * X), 7.0 * plain.predict(X) + 3.0, rtol=1e-6)
    auto = [ConvexFMRegressor(random_state=0).fit(c * X, y).size_ for c in (1.0, 10.0)]
    # The slopes' size hardly changes with a penalty of linear weights that is relatively smaller.
    assert auto[1] == pytest.approx(100.0 * auto[0], rel=0.01)


@pytest.mark.parametrize("size", [1e-140, 1e140])
def test_extreme_values_give_finite_models(size: float) -> None:
    X, y = rows()
    model = ConvexFMRegressor(random_state=0, max_iter=5).fit(size * X, y)
    assert np.isfinite(model.predict(size * X)).all()
    assert np.isfinite(model.history_["objective"]).all()


def test_warm_start_goes_on() -> None:
    X, y = rows()
    straight = ConvexFMRegressor(random_state=0, tol=0.0, max_iter=12).fit(X, y)
    halves = ConvexFMRegressor(random_state=0, tol=0.0, max_iter=6, warm_start=True).fit(X, y)
    middle = halves.history_["objective"][-1]
    halves.fit(X, y)
    assert len(halves.history_["objective"]) == 12
    assert halves.size_ == straight.size_
    assert halves.history_["objective"][6] <= middle * (1 + 1e-9)
    assert halves.history_["objective"][-1] == pytest.approx(
        straight.history_["objective"][-1], rel=0.01
    )
    with pytest.raises(ValueError, match="diagonal has changed"):
        halves.set_params(diagonal=True).fit(X, y)


@pytest.mark.parametrize("include_state", [True, False])
def test_model_files_keep_every_bit(tmp_path: Any, include_state: bool) -> None:
    X, y = rows()
    labels = np.digitize(y, [-0.5, 0.5])
    for model in (
        ConvexFMRegressor(random_state=0, max_iter=5, diagonal=True).fit(X, y),
        ConvexFMClassifier(random_state=0, max_iter=5, warm_start=True).fit(X, labels),
    ):
        save_model(model, tmp_path / "m.polyfm", include_state=include_state)
        loaded = load_model(tmp_path / "m.polyfm")
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
        np.testing.assert_array_equal(loaded.weights_[2], model.weights_[2])
        assert loaded.history_ == model.history_
    np.testing.assert_array_equal(loaded.fit(X, labels).coef_, model.fit(X, labels).coef_)


def test_the_command_line_inspects_a_model(
    tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    model = ConvexFMRegressor(random_state=0).fit(*rows(300))
    save_model(model, tmp_path / "m.polyfm")
    assert main(["inspect", str(tmp_path / "m.polyfm"), "--degree", "2", "--top", "1"]) == 0
    told = capsys.readouterr().out
    assert f"rank         {len(model.weights_[2])} per matrix" in told
    assert "x1  x  x2" in told


def test_inconsistent_model_files_are_refused(tmp_path: Any) -> None:
    X, y = rows()
    model = ConvexFMRegressor(random_state=0, max_iter=5).fit(X, y)
    parameters = model._learners[0].model.parameters
    broken = parameters._replace(weights=parameters.weights[:, :-1])
    object.__setattr__(model._learners[0].model, "parameters", broken)
    save_model(model, tmp_path / "m.polyfm")
    with pytest.raises(ModelFileError, match="weights has shape"):
        load_model(tmp_path / "m.polyfm")


def test_an_interrupt_leaves_what_was_learnt(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = rows()
    whole = ConvexFMRegressor(random_state=0, max_iter=3, tol=0.0).fit(X, y)
    improve, calls = Greedy._improve, []

    def interrupted(self: Greedy) -> None:
        calls.append(0)
        if len(calls) == 3:
            raise KeyboardInterrupt
        improve(self)

    monkeypatch.setattr(Greedy, "_improve", interrupted)
    model = ConvexFMRegressor(random_state=0, tol=0.0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.n_iter_ == 3
    np.testing.assert_array_equal(model.predict(X), whole.predict(X))


def test_features_without_a_row_have_no_part() -> None:
    X, y = rows(120, 80)
    X[:, 7] = 0.0
    model = ConvexFMRegressor(random_state=0, max_iter=5).fit(X, y)
    assert model.coef_[7] == 0.0
    assert len(model.weights_[2]) > 0
    assert (model.factors_[2][7] == 0.0).all()


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_targets_without_interactions(loss: str) -> None:
    X, _ = rows()
    constant = ConvexFMRegressor(loss=loss).fit(X, np.full(N, 4.0))
    np.testing.assert_allclose(constant.predict(X), 4.0)
    empty = ConvexFMRegressor(loss=loss).fit(sp.csr_matrix((N, D)), X[:, 0])
    assert np.isfinite(empty.predict(X)).all()
    linear = ConvexFMRegressor(alpha=0.0, loss=loss).fit(X, X @ np.arange(D) + 1.0)
    np.testing.assert_allclose(linear.predict(X), X @ np.arange(D) + 1.0, rtol=1e-5)


def test_switches() -> None:
    X, y = rows()
    model = ConvexFMRegressor(fit_linear=False, fit_intercept=False, random_state=0).fit(X, y + 1)
    assert not model.coef_.any()
    assert model.intercept_ == 0.0
    assert model.predict(np.zeros((1, D)))[0] == 0.0
    assert not hasattr(model, "partial_fit")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "newton"}, "method must be one of"),
        ({"refit": "half"}, "refit must be one of"),
        ({"beta": 0.0}, "beta must be finite, > 0"),
        ({"beta": "much"}, "beta must be 'auto' or a number"),
        ({"trace": -1.0}, "trace must be finite, > 0"),
        ({"alpha": -1.0}, "alpha must be finite, >= 0"),
        ({"max_rank": 0}, "max_rank must be finite, >= 1"),
        ({"loss": "quantile"}, "no bounded curvature"),
        ({"loss": "logistic"}, "is for classes"),
        ({"loss": "huber", "method": "hazan"}, "method='hazan' is for loss='squared'"),
    ],
)
def test_impossible_parameters(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ConvexFMRegressor(**options).fit(*rows())


def test_switches_must_be_truth_values() -> None:
    with pytest.raises(TypeError, match="diagonal must be True or False"):
        ConvexFMRegressor(diagonal="no").fit(*rows())  # type: ignore[arg-type]


def test_progress(capsys: pytest.CaptureFixture[str]) -> None:
    ConvexFMRegressor(verbose=1, max_iter=3, tol=0.0).fit(*rows())
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert "epoch 3/3" in lines[2]
    assert "duality_gap" in lines[2]


@pytest.mark.parametrize("make", [ConvexFMRegressor, ConvexFMClassifier])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_linear_block_is_solved_alike_for_few_and_many_features(
    monkeypatch: pytest.MonkeyPatch, make: Any, fit_intercept: bool
) -> None:
    """By eigenvectors, by a Cholesky factor, and by conjugate gradients or plain L-BFGS."""
    random = np.random.default_rng(0)
    X = sp.random(400, 40, 0.1, random_state=0, format="csr")
    y = X @ random.normal(size=40) + random.normal(size=400)
    y = y if make is ConvexFMRegressor else (y > 0).astype(int)
    scores = []
    for small, medium in ((256, 4096), (0, 4096), (0, 0)):
        monkeypatch.setattr(_linear_block, "_SMALL", small)
        monkeypatch.setattr(_linear_block, "_MEDIUM", medium)
        model = make(alpha=0.5, beta=1e6, max_iter=3, fit_intercept=fit_intercept).fit(X, y)
        scores.append(model.coef_)
    np.testing.assert_allclose(scores[1], scores[0], rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(scores[2], scores[0], rtol=1e-4, atol=1e-5)
