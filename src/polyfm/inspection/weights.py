"""Weights of given combinations of features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyfm.inspection._expansion import (
    blocks_of,
    coefficients_of,
    intercept_of,
    resolve_features,
    resolve_outputs,
    weight_in,
)
from polyfm.kernels import Polynomial


def interaction_weight(
    model: Any,
    features: Sequence[int | str],
    class_index: int | None = None,
    *,
    feature_names: Sequence[str] | None = None,
) -> Any:
    r"""Weight of the product of some distinct features in the prediction.

    The raw prediction is a polynomial,
    :math:`f(x) = \sum_{S} W_S \prod_{j \in S} x_j`, over all sets S of features that the model
    covers. This is :math:`W_S`:

    .. math:: W_{j_1 \dots j_q} = \sum_s c_s \, p_{j_1 s} \cdots p_{j_q s}

    where c is :math:`\lambda \theta_q` for a plain ANOVA kernel. Of a single feature it is its
    linear weight (and what dummy features or an inhomogeneous kernel add to it), of no feature the
    prediction for an empty row.

    Parameters
    ----------
    model : FMRegressor or FMClassifier
        A fitted estimator.
    features : sequence of int or str
        Columns, by number or by name, any number of them.
    class_index : int, optional
        The output, for more than two classes: a place in ``classes_``. None returns all.
    feature_names : sequence of str, optional
        Names of the columns; those seen in ``fit`` if None.

    Returns
    -------
    float or ndarray of shape (n_classes,)
        In the unit of the target, or of the raw score.

    Raises
    ------
    ValueError
        For features that do not exist or occur twice.
    TypeError
        For a kernel from outside the package.

    Notes
    -----
    A ``"polynomial"`` kernel of degree m also has powers of features. The weight here is that of
    the product of the first powers, with the m! orders in which it arises.

    References
    ----------
    Blondel, Fujino, Ueda, Ishihata, "Higher-Order Factorization Machines", NIPS 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfm import FMRegressor
    >>> from polyfm.inspection import interaction_weight
    >>> X = np.random.default_rng(0).choice([-1.0, 1.0], size=(2000, 3))
    >>> model = FMRegressor(random_state=0, beta=0.01).fit(X, 2 * X[:, 0] * X[:, 1])
    >>> round(interaction_weight(model, [0, 1]), 1)
    2.0
    """
    outputs = resolve_outputs(model, class_index)
    columns = resolve_features(model, features, feature_names)
    weights = [_weight(model, columns, output) for output in outputs]
    return weights[0] if len(weights) == 1 else np.array(weights)


def _weight(model: Any, columns: list[int], output: int) -> float:
    total = weight_in(blocks_of(model, len(columns), output), columns)
    if not columns:
        total += intercept_of(model, output)
    if len(columns) == 1:
        total += float(coefficients_of(model, output)[columns[0]])
    return total


def interaction_matrix(
    model: Any,
    features: Sequence[int | str] | None = None,
    class_index: int = 0,
    *,
    feature_names: Sequence[str] | None = None,
) -> NDArray[np.float64]:
    """Weights of all pairs of some features.

    Parameters
    ----------
    model : FMRegressor or FMClassifier
        A fitted estimator.
    features : sequence of int or str, optional
        Columns, by number or by name; all n of them if None, which takes 8 n² bytes.
    class_index : int, default=0
        The output, for more than two classes.
    feature_names : sequence of str, optional
        Names of the columns; those seen in ``fit`` if None.

    Returns
    -------
    ndarray of shape (n, n)
        Symmetric. The diagonal holds the weights of squares: 0, but for a ``"polynomial"`` kernel.

    Raises
    ------
    ValueError
        For features that do not exist or occur twice.
    """
    (output,) = resolve_outputs(model, class_index)
    every = range(int(model.n_features_in_))
    columns = resolve_features(model, list(every if features is None else features), feature_names)
    matrix = np.zeros((len(columns), len(columns)))
    for factors, coefficients in blocks_of(model, 2, output):
        own = factors[columns].astype(np.float64)
        matrix += (own * coefficients) @ own.T
    # A square arises in one order where a product of two features arises in two.
    squares = 0.5 if isinstance(model._layout.kernel, Polynomial) else 0.0
    np.fill_diagonal(matrix, squares * np.diagonal(matrix))
    return matrix
