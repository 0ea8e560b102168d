"""FTRL-Proximal once more, slowly and readably, from the formulas of the papers."""

import numpy as np


class Coordinates:
    """Some coordinates with their sums z and n, and one rate rule ``curvature(n)`` = 1 / eta.

    ``start`` is where they start, or the centre that they are drawn to from the start on.
    """

    def __init__(self, start, curvature, l1, l2, bound=np.inf, *, is_centre=False):
        self.curvature, self.l1, self.l2, self.bound = curvature, l1, l2, bound
        v = np.array(start, dtype=float)
        self.n = np.zeros_like(v)
        self.z = -self.curvature(self.n) * v
        if not is_centre:
            # The z that gives just this start.
            self.z = self.z - l2 * v - l1 * np.sign(v)

    @property
    def v(self):
        """The weights, from z and n alone."""
        shrunk = self.z - np.sign(self.z) * self.l1
        v = np.where(np.abs(self.z) <= self.l1, 0.0, -shrunk / (self.curvature(self.n) + self.l2))
        return np.clip(v, -self.bound, self.bound)

    def step(self, g, touched=True):
        sigma = self.curvature(self.n + g * g) - self.curvature(self.n)
        z = self.z + g - sigma * self.v
        self.z = np.where(touched, z, self.z)
        self.n = np.where(touched, self.n + g * g, self.n)


def slope(loss, y, f):
    return f - y if loss == "squared" else -y / (1.0 + np.exp(y * f))


class LinearTwin:
    """A bias and a linear term."""

    def __init__(self, d, curvature, l1, l2, loss):
        self.bias = Coordinates([0.0], curvature, 0.0, 0.0)
        self.linear = Coordinates(np.zeros(d), curvature, l1, l2)
        self.loss = loss

    def learn(self, x, y):
        g = slope(self.loss, y, self.bias.v[0] + self.linear.v @ x)
        self.bias.step(np.array([g]))
        self.linear.step(g * x, x != 0)


class PairTwin:
    r"""A bias, a linear term if wanted, and :math:`\sum_f \lambda_f A^2(V_f, x)`, in batches.

    A context is no more than a first column of ones. If ``V`` is ``by_evidence`` the centre that
    factors are drawn to, this column pays no penalty.
    """

    def __init__(self, V, curvature, l1, l2, loss, *, linear=None, weights=None, by_evidence=False):
        self.bias = Coordinates([0.0], curvature, 0.0, 0.0)
        pays = np.ones((len(V), 1))
        pays[0] = 0.0 if by_evidence else 1.0
        self.V = Coordinates(V, curvature, l1 * pays, l2 * pays, is_centre=by_evidence)
        self.linear = None if linear is None else Coordinates(np.zeros(len(V)), curvature, *linear)
        self.fits_weights = weights is not None
        start = np.ones(V.shape[1]) if weights is None else weights
        self.weights = Coordinates(start, curvature, 0.0, 0.0, bound=1.0)
        self.loss = loss

    def learn(self, X, Y, mean=False):
        V, lam, size = self.V.v, self.weights.v, len(X) if mean else 1
        w = np.zeros(len(V)) if self.linear is None else self.linear.v
        of_bias, of_linear, of_factors, of_weights = 0.0, np.zeros_like(w), np.zeros_like(V), 0.0
        for x, y in zip(X, Y, strict=True):
            q = x @ V
            kernels = 0.5 * (q**2 - (x**2) @ V**2)
            g = slope(self.loss, y, self.bias.v[0] + w @ x + lam @ kernels)
            of_bias = of_bias + g
            of_linear = of_linear + g * x
            of_factors = of_factors + g * lam * (x[:, None] * (q - x[:, None] * V))
            of_weights = of_weights + g * kernels
        touched = (X != 0).any(axis=0)
        self.bias.step(np.array([of_bias / size]))
        self.V.step(of_factors / size, touched[:, None])
        if self.linear is not None:
            self.linear.step(of_linear / size, touched)
        if self.fits_weights:
            self.weights.step(of_weights / size)
