"""A factorization machine with factors on demand, written row by row in plain NumPy."""

import numpy as np

from polyfm.losses import contract as losses
from polyfm.solvers._random import symmetric


class Twin:
    """Learns as the definitions say; factors are a list per feature, empty without any."""

    def __init__(self, model, loss, d, *, seed, start=0.0):
        self.model, self.loss, self.seed = model, loss, seed
        self.w, self.z, self.n = (np.zeros(d) for _ in range(3))
        self.counts = np.zeros(d, dtype=int)
        self.V = [np.zeros(0) for _ in range(d)]
        self.squares = [np.zeros(0) for _ in range(d)]
        self.b, self.z_b, self.n_b = start, -start * model.damping / model.learning_rate, 0.0
        share = {"l1": 1.0, "l2": 0.0}.get(model.penalty, model.l1_ratio)
        self.l1, self.l2 = model.alpha * share, model.alpha * (1.0 - share)

    def interaction(self, i, j):
        """Return the weight of a pair: the product over the factors that both have."""
        if self.w[i] == 0 or self.w[j] == 0:
            return 0.0
        k = min(len(self.V[i]), len(self.V[j]))
        return self.V[i][:k] @ self.V[j][:k]

    def score(self, x):
        there = np.flatnonzero(x)
        pairs = sum(self.interaction(i, j) * x[i] * x[j] for i in there for j in there if i < j)
        return self.b + self.w @ x + pairs

    def _ftrl(self, w, z, n, g, l1):
        a, c = self.model.learning_rate, self.model.damping
        sigma = (np.sqrt(n + g * g) - np.sqrt(n)) / a
        z, n = z + g - sigma * w, n + g * g
        w = 0.0 if abs(z) <= l1 else -(z - np.sign(z) * l1) / ((c + np.sqrt(n)) / a)
        return w, z, n

    def _factor_gradient(self, i, x, g, s):
        """Differentiate one pair after the other."""
        slope = s * self.model.beta * self.V[i]
        for j in np.flatnonzero(x):
            if j != i and self.w[j] != 0:
                k = min(len(self.V[i]), len(self.V[j]))
                slope[:k] += g * x[i] * x[j] * self.V[j][:k]
        return slope

    def learn(self, X, y, weight=None, *, counts=True):
        for row, x in enumerate(X):
            self._learn_row(x, y[row], 1.0 if weight is None else weight[row], counts)
        return self

    def _learn_row(self, x, target, s, counts):
        there = np.flatnonzero(x)
        g = s * losses.gradient(self.loss, target, self.score(x))
        slopes = {i: self._factor_gradient(i, x, g, s) for i in there if self.w[i] != 0}
        if self.model.fit_intercept:
            self.b, self.z_b, self.n_b = self._ftrl(self.b, self.z_b, self.n_b, g, 0.0)
        for i in there:
            own = g * x[i] + s * self.l2 * self.w[i]
            self.w[i], self.z[i], self.n[i] = self._ftrl(
                self.w[i], self.z[i], self.n[i], own, self.l1
            )
        for i, h in slopes.items():
            self.squares[i] = self.squares[i] + h * h
            rate = self.model.factor_learning_rate
            self.V[i] = self.V[i] - rate * h / (
                self.model.factor_damping + np.sqrt(self.squares[i])
            )
        for i in there:
            self.counts[i] += counts
            if self.w[i] != 0:
                self._allocate(i)

    def _allocate(self, i):
        entitled = [
            rank
            for rank, threshold in zip(self.model.ranks, self.model.thresholds, strict=True)
            if self.counts[i] > threshold
        ]
        for f in range(len(self.V[i]), max(entitled, default=0)):
            start = symmetric(self.seed, i, f) * self.model.init_scale / np.sqrt(3.0)
            self.V[i] = np.append(self.V[i], start)
            self.squares[i] = np.append(self.squares[i], 0.0)

    @property
    def ranks(self):
        return np.array([len(v) for v in self.V])

    @property
    def factors(self):
        """Those in use, padded with zeros."""
        out = np.zeros((len(self.V), max(self.model.ranks)))
        for i, v in enumerate(self.V):
            if self.w[i] != 0:
                out[i, : len(v)] = v
        return out
