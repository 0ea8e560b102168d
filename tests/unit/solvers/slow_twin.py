"""Stochastic learning once more, slowly and readably: what the compiled epoch must equal."""

import numpy as np

from polyfm.kernels import reference


def loss_slope(name, y, f):
    return f - y if name == "squared" else -y / (1.0 + np.exp(y * f))


def shrink(v, l1, l2, step):
    return np.sign(v) * np.maximum(np.abs(v) - step * l1, 0.0) / (1.0 + step * l2)


class Twin:
    """A model whose every parameter is a plain array, stepped one row at a time.

    ``p`` maps the names bias, linear (d,), table (d + dummies, k), weights (k,), theta (m,) to the
    start; ``penalty`` maps them to (l1, l2).
    """

    def __init__(self, kernel, p, degrees, *, loss, rule, penalty, learnt, visits, units, n_rows):
        self.kernel, self.degrees, self.loss, self.rule = kernel, degrees, loss, rule
        self.p = {name: np.array(block, dtype=float) for name, block in p.items()}
        self.penalty, self.learnt = penalty, learnt
        self.n_dummies = len(p["table"]) - len(p["linear"])
        # A column pays its penalty in as many shares as it has visits, a dummy at every row.
        share = np.append(1.0 / np.maximum(visits, 1), np.full(self.n_dummies, 1.0 / n_rows))
        unit = np.append(units, np.ones(self.n_dummies))
        d = len(p["linear"])
        self.share = {"bias": 1 / n_rows, "linear": share[:d], "table": share[:, None],
                      "weights": 1 / n_rows, "theta": 1 / n_rows}  # fmt: skip
        self.unit = {"bias": 1.0, "linear": unit[:d], "table": unit[:, None],
                     "weights": 1.0, "theta": 1.0}  # fmt: skip
        self.squares = {
            name: np.broadcast_to(
                rule.get("initial", 0.0) / np.square(self.unit[name]), np.shape(b)
            )
            for name, b in self.p.items()
        }
        self.t = 0

    def score_and_slopes(self, x):
        """Return f(x) and d f / d parameters, every kernel enumerated."""
        p, inputs = self.p, np.append(x, np.ones(self.n_dummies))
        on = np.flatnonzero(inputs)
        slopes = {name: np.zeros_like(block) for name, block in p.items()}
        f = p["bias"][0] + p["linear"] @ x
        slopes["bias"], slopes["linear"] = np.ones_like(p["bias"]), x.copy()
        for s in range(p["table"].shape[1]):
            terms = list(p["table"][on, s] * inputs[on])
            theta = list(p["theta"] * self.degrees[:, s])
            value = reference.value(self.kernel, terms, theta)
            f = f + p["weights"][s] * value
            slopes["weights"][s] = value
            inner = reference.slopes(self.kernel, terms, theta)
            slopes["table"][on, s] = p["weights"][s] * np.array(inner) * inputs[on]
            for t in range(len(theta)):
                one = [float(u == t) * self.degrees[t, s] for u in range(len(theta))]
                share = reference.value(self.kernel, terms, one)
                slopes["theta"][t] += p["weights"][s] * share
        return float(f), slopes, np.append(x != 0, np.ones(self.n_dummies, bool))

    def learn(self, x, y, weight):
        f, slopes, seen = self.score_and_slopes(x)
        outer = weight * loss_slope(self.loss, y, f)
        for name in self.learnt:
            g = outer * slopes[name]
            rate, squares = self.rule["rate"](self.t), self.squares[name]
            if self.rule["name"] == "sgd":
                step = rate * np.square(self.unit[name]) * np.ones_like(g)
            else:
                squares = squares + g**2
                step = rate * self.unit[name] / np.sqrt(squares)
            moved = self.prox(name, self.p[name] - step * g, step * self.share[name])
            visited = self.visited(name, seen)
            self.p[name] = np.where(visited, moved, self.p[name])
            self.squares[name] = np.where(visited, squares, self.squares[name])
        self.t += 1

    def prox(self, name, v, step):
        if name == "weights":
            return np.clip(v, -1.0, 1.0)
        return shrink(v, *self.penalty[name], step)

    def visited(self, name, seen):
        """Return which parameters a row touches: those of its features, and all shared ones."""
        if name == "linear":
            return seen[: len(self.p["linear"])]
        if name == "table":
            return seen[:, None]
        free = np.ones(self.p[name].shape, dtype=bool)
        if name == "theta":
            free[: self.learnt["theta"]] = False
        return free
