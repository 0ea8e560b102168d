"""Projective quadratic regression as one reads it: an explicit expansion, and a linear model."""

import itertools

import numpy as np

from polyfm.losses import contract as losses


def expansion_index(k, d, a, b):
    """Place of the cross of the a-th and the b-th frequent feature, a < b, in the expanded row."""
    return d + a * (2 * k - a - 1) // 2 + b - a - 1


def expanded(X, frequent):
    """Return the rows [x, x_i x_j of all pairs in H, x_i times the sum over L, 1]."""
    n, d = X.shape
    k = len(frequent)
    rare = np.setdiff1d(np.arange(d), frequent)
    out = np.zeros((n, d + k * (k - 1) // 2 + k + 1))
    out[:, :d] = X
    for a, b in itertools.combinations(range(k), 2):
        out[:, expansion_index(k, d, a, b)] = X[:, frequent[a]] * X[:, frequent[b]]
    for a in range(k):
        out[:, d + k * (k - 1) // 2 + a] = X[:, frequent[a]] * X[:, rare].sum(axis=1)
    out[:, -1] = 1.0
    return out


def units_of(X, frequent, weight):
    """Return the unit of each coordinate: one over root mean squares, and their products."""
    d, k = X.shape[1], len(frequent)
    there = (X != 0) * weight[:, None]
    squares = X**2 * weight[:, None]
    unit = np.sqrt(there.sum(axis=0) / squares.sum(axis=0))
    rare = np.setdiff1d(np.arange(d), frequent)
    low = np.sqrt(there[:, rare].sum() / squares[:, rare].sum())
    units = np.concatenate([unit, np.ones(k * (k - 1) // 2), unit[frequent] * low, [1.0]])
    for a, b in itertools.combinations(range(k), 2):
        units[expansion_index(k, d, a, b)] = unit[frequent[a]] * unit[frequent[b]]
    return units


class Twin:
    """A linear model on expanded rows, by FTRL-Proximal or online gradient descent.

    ``strengths`` holds the L1 and the L2 penalty of each coordinate.
    """

    def __init__(self, loss, strengths, solver, rate, damping=1.0, power=0.5):
        self.loss, self.solver, self.rate, self.damping, self.power = (
            loss, solver, rate, damping, power
        )  # fmt: skip
        self.l1, self.l2 = strengths
        size = len(self.l1)
        self.w, self.z, self.n, self.visits = (np.zeros(size) for _ in range(4))
        self.t = 0

    def start_bias(self, bias):
        self.w[-1], self.z[-1] = bias, -bias * self.damping / self.rate

    def learn(self, rows, target, weight=None):
        weight = np.ones(len(rows)) if weight is None else weight
        for x, y, s in zip(rows, target, weight, strict=True):
            slope = s * losses.gradient(self.loss, y, float(x @ self.w))
            for i in np.flatnonzero(x):
                step = self._ftrl if self.solver == "ftrl" else self._sgd
                step(i, slope * x[i])
            self.t += 1
        return self

    def _ftrl(self, i, g):
        sigma = (np.sqrt(self.n[i] + g * g) - np.sqrt(self.n[i])) / self.rate
        self.z[i] += g - sigma * self.w[i]
        self.n[i] += g * g
        curvature = (self.damping + np.sqrt(self.n[i])) / self.rate + self.l2[i]
        excess = abs(self.z[i]) - self.l1[i]
        self.w[i] = -np.sign(self.z[i]) * excess / curvature if excess > 0 else 0.0

    def _sgd(self, i, g):
        rate = self.rate / (1.0 + self.t) ** self.power
        self.visits[i] += 1
        step = rate / self.visits[i]
        moved = self.w[i] - rate * g
        shrunk = np.sign(moved) * max(abs(moved) - step * self.l1[i], 0.0)
        self.w[i] = shrunk / (1.0 + step * self.l2[i])


def strengths_of(d, k, alpha, beta, ratio):
    """Return L1 and L2 penalties of all coordinates; the bias has none."""
    total = np.concatenate([np.full(d, alpha), np.full(k * (k - 1) // 2 + k, beta), [0.0]])
    return ratio * total, (1.0 - ratio) * total


def coordinates(model):
    """Return what a fitted estimator has learnt in the order of the twin, for scaled targets."""
    learner = model._learners[0]
    frequent, d = model.frequent_features_, model.n_features_in_
    k = len(frequent)
    out = np.zeros(d + k * (k - 1) // 2 + k + 1)
    out[:d] = learner.model.linear_weights()
    place = {feature: a for a, feature in enumerate(frequent)}
    for i, j, weight in zip(*learner.model.pair_weights(), strict=True):
        a, b = sorted((place[i], place[j]))
        out[expansion_index(k, d, a, b)] = weight
    out[d + k * (k - 1) // 2 : -1] = learner.model.shared_weights()
    out[-1] = learner.model.bias[0]
    return out
