"""What the tests of reported cases share: predictions recomputed from public attributes."""

from itertools import combinations

import numpy as np
import scipy.sparse as sp


def from_formula(model, X):
    """f(x) of a model with explicit lower degrees, by enumerating the combinations of features."""
    X = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
    scores = model.intercept_ + X @ model.coef_
    for degree, factors in model.factors_.items():
        for features in map(list, combinations(range(X.shape[1]), degree)):
            scores += X[:, features].prod(axis=1) * factors[features].prod(axis=0).sum()
    return scores


def parameters(model):
    """All fitted numbers as one vector."""
    parts = [model.intercept_, model.coef_, *model.factors_.values()]
    return np.concatenate([np.ravel(part) for part in parts])


def one_hot(*codes, widths):
    """Blocks of one-hot columns side by side, one block for each array of codes."""
    offsets = np.concatenate([[0], np.cumsum(widths)])
    columns = np.stack([c + o for c, o in zip(codes, offsets[:-1], strict=True)], axis=1)
    n_rows, n_blocks = columns.shape
    indptr = np.arange(0, n_rows * n_blocks + 1, n_blocks)
    values = np.ones(columns.size)
    return sp.csr_matrix((values, columns.ravel(), indptr), shape=(n_rows, int(offsets[-1])))
