"""Lifted models by their definition, and coordinate descent on them in plain loops."""

import itertools
import math

import numpy as np


def lifted_values(kernel, factors, X):
    """Return the lifted kernel of (m, d) factors for each row, by enumeration."""
    m, d = factors.shape
    if kernel == "polynomial":
        return np.prod([X @ factors[t] for t in range(m)], axis=0)
    terms = [X * factors[t] for t in range(m)]
    total = np.zeros(len(X))
    for places in itertools.permutations(range(d), m):
        total += math.prod(terms[t][:, j] for t, j in enumerate(places))
    return total / math.factorial(m)


def lifted_slopes(kernel, factors, X, slot, j):
    """Return the derivative by one factor for each row: that of the terms which it is in."""
    m, d = factors.shape
    others = [t for t in range(m) if t != slot]
    if kernel == "polynomial":
        return X[:, j] * np.prod([X @ factors[t] for t in others], axis=0)
    terms = {t: X * factors[t] for t in others}
    total = np.zeros(len(X))
    for places in itertools.permutations([c for c in range(d) if c != j], m - 1):
        total += math.prod(terms[t][:, c] for t, c in zip(others, places, strict=True))
    return X[:, j] * total / math.factorial(m)


LOSSES = {
    "squared": (lambda y, p: (p - y) ** 2 / 2, lambda y, p: p - y, 1.0),
    "huber": (
        lambda y, p: (p - y) ** 2 / 2 if abs(p - y) < 0.7 else 0.7 * (abs(p - y) - 0.35),
        lambda y, p: float(np.clip(p - y, -0.7, 0.7)),
        1.0,
    ),
    "logistic": (
        lambda y, p: math.log1p(math.exp(-y * p)),
        lambda y, p: -y / (1 + math.exp(y * p)),
        0.25,
    ),
    "squared_hinge": (
        lambda y, p: max(0.0, 1 - y * p) ** 2,
        lambda y, p: -2 * y * max(0.0, 1 - y * p),
        2.0,
    ),
}
"""Value, derivative, curvature bound."""


class SlowLifted:
    """A model whose every prediction is worked out anew from its definition."""

    def __init__(self, kernel, n_dummies, bias, linear, factors):
        self.kernel, self.n_dummies = kernel, n_dummies
        self.bias, self.linear = bias, linear.copy()
        # (r, m, q + d) with the dummy features first.
        self.factors = factors.copy()

    def predict(self, X):
        whole = np.hstack([np.ones((len(X), self.n_dummies)), X])
        return sum(
            (lifted_values(self.kernel, u, whole) for u in self.factors),
            self.bias + X @ self.linear,
        )

    def objective(self, X, y, weight, loss, alpha, beta):
        value = LOSSES[loss][0]
        scores = self.predict(X)
        data = sum(w * value(t, p) for w, t, p in zip(weight, y, scores, strict=True))
        return data + alpha / 2 * (self.linear**2).sum() + beta / 2 * (self.factors**2).sum()

    def _step(self, X, y, weight, loss, slopes, strength, present):
        _, derivative, bound = LOSSES[loss]
        scores = self.predict(X)
        pulls = np.array([w * derivative(t, p) for w, t, p in zip(weight, y, scores, strict=True)])
        bend = bound * weight @ slopes**2 + strength
        return -(pulls @ slopes + strength * present) / bend if bend > 0 else 0.0

    def sweep(self, X, y, weight, loss, alpha, beta, *, fit_intercept=True, fit_linear=True):
        """Visit bias, linear term, bases, slots, features and dummy features in this order."""
        n, d = X.shape
        if fit_intercept:
            self.bias += self._step(X, y, weight, loss, np.ones(n), 0.0, 0.0)
        for j in range(d if fit_linear else 0):
            if X[:, j].any():
                step = self._step(X, y, weight, loss, X[:, j], alpha, self.linear[j])
                self.linear[j] += step
        whole = np.hstack([np.ones((n, self.n_dummies)), X])
        q = self.n_dummies
        for factors in self.factors:
            for slot in range(factors.shape[0]):
                for j in [*range(q, q + d), *range(q)]:
                    if not whole[:, j].any():
                        continue
                    slopes = lifted_slopes(self.kernel, factors, whole, slot, j)
                    step = self._step(X, y, weight, loss, slopes, beta, factors[slot, j])
                    factors[slot, j] += step
