"""Whether a model read from a file is one: compiled code does not check the shapes it is given."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyfm._jit.records import RECORD, SHORT_RECORD
from polyfm.estimators._target import TargetScale
from polyfm.kernels import contract as kernels
from polyfm.models._pqr_score import PAGE
from polyfm.models.difacto import NONE, DiFacto
from polyfm.models.factorized import Factorized
from polyfm.models.layout import Layout
from polyfm.models.lifted import Lifted
from polyfm.models.pqr import PQR, count_blocks
from polyfm.persistence.container import ModelFileError
from polyfm.persistence.frozen import FrozenDiFactoLearner, FrozenLearner, FrozenPQRLearner
from polyfm.solvers.convex_learner import ConvexLearner
from polyfm.solvers.learner import Learner
from polyfm.solvers.memory_adaptive import DiFactoLearner
from polyfm.solvers.online_conditional_gradient import OnlineConvexLearner
from polyfm.solvers.projective import PQRLearner


def check_consistent(model: Any) -> None:
    """Raise a ModelFileError where the parts of an estimator do not fit together."""
    if not isinstance(model._learners, list) or not model._learners:
        raise ModelFileError("the file holds no learner.")
    if not isinstance(model._scale, TargetScale):
        raise ModelFileError("the file holds no scale of the target.")
    n_classes = len(getattr(model, "classes_", ()))
    if len(model._learners) != (n_classes if n_classes > 2 else 1):
        raise ModelFileError(f"the file holds {len(model._learners)} learners.")
    for learner in model._learners:
        _check_learner(learner, model._layout, int(model.n_features_in_))


def _check_learner(learner: Any, layout: Layout, n_features: int) -> None:
    if isinstance(learner, ConvexLearner):
        _check_convex(learner, layout, n_features)
    elif isinstance(learner, OnlineConvexLearner):
        _check_convex(learner, layout, n_features)
        _check_online(learner, n_features)
    elif isinstance(learner, PQRLearner):
        for model in [learner.model, *learner.rivals]:
            _check_pqr(model, learner, n_features)
    elif isinstance(learner, DiFactoLearner):
        _check_difacto(learner.model, learner, layout.rank, n_features)
    else:
        _check_learning(learner, layout, n_features)


def _check_learning(learner: Learner, layout: Layout, n_features: int) -> None:
    factorized: Factorized = learner.model
    if layout.n_dummies < 0 or learner.n_rows < 1 or learner.n_visits < 0:
        raise ModelFileError("the file holds a negative number of rows.")
    if isinstance(learner.model, Lifted):
        _check_lifted(learner.model, layout, n_features)
        return
    m, k = layout.degrees.shape
    planes = 1 if isinstance(learner, FrozenLearner) else learner.n_planes
    extras = {0} if isinstance(learner, FrozenLearner) else {1, 2, 4}
    p = factorized.parameters
    shapes = {
        "bias": (planes, 1),
        "table": (n_features + layout.n_dummies, planes, k),
        "weights": (planes, k),
        "theta": (planes, m),
        "degrees": (m, k),
    }
    for name, shape in shapes.items():
        _check_shape(name, getattr(p, name), shape)
    if p.linear.ndim != 2 or p.linear.shape[1] - planes not in extras:
        raise ModelFileError(f"linear has shape {p.linear.shape}.")
    _check_shape("linear", p.linear, (n_features, p.linear.shape[1]))
    _check_shape("start_scales", learner.settings.start_scales, (k,))
    for name in ("linear_strengths", "factor_strengths"):
        strengths = getattr(learner.settings, name)
        if strengths is not None:
            _check_shape(name, strengths, (n_features,))
    if {block.dtype for block in p} not in ({np.dtype(np.float32)}, {np.dtype(np.float64)}):
        raise ModelFileError("the parameters are not of one floating-point type.")
    if kernels.n_degree_weights(factorized.kernel) != m or factorized.n_dummies != layout.n_dummies:
        raise ModelFileError("the kernel does not fit the parameters.")


def _check_convex(learner: Any, layout: Layout, n_features: int) -> None:
    m, k = layout.degrees.shape
    p = learner.model.parameters
    shapes = {
        "bias": (1, 1),
        "linear": (n_features, 1),
        "table": (n_features, 1, k),
        "weights": (1, k),
        "theta": (1, m),
        "degrees": (m, k),
    }
    for name, shape in shapes.items():
        _check_shape(name, getattr(p, name), shape)
    if {block.dtype for block in p} != {np.dtype(np.float64)}:
        raise ModelFileError("the parameters of a convex model are not in double precision.")
    if kernels.n_degree_weights(learner.model.kernel) != m or learner.model.n_dummies:
        raise ModelFileError("the kernel does not fit the parameters.")


def _check_online(learner: OnlineConvexLearner, n_features: int) -> None:
    size, sums = n_features + 1, learner.gradient
    for name, matrix in (("matrix", learner.matrix), ("gradient", sums.former)):
        _check_shape(f"the bases of {name}", matrix.bases, (len(matrix.weights), size))
    n, n_values = len(sums.slopes), len(sums.indices)
    _check_shape("indptr", sums.indptr, (n + 1,))
    _check_shape("values", sums.values, (n_values,))
    for name, array in (("diagonal", sums.diagonal), ("start", learner.start)):
        _check_shape(name, array, (size,))
    floats = (*learner.matrix, *sums.former, sums.values, sums.slopes, sums.diagonal, learner.start)
    if {array.dtype for array in floats} != {np.dtype(np.float64)}:
        raise ModelFileError("the parameters of a convex model are not in double precision.")
    inside = np.all((sums.indices >= 0) & (sums.indices < size))
    rises = np.all(np.diff(sums.indptr) >= 0)
    if not (inside and rises and sums.indptr[0] == 0 and sums.indptr[-1] == n_values):
        raise ModelFileError("the latest rows are no matrix of this width.")


def _check_lifted(model: Lifted, layout: Layout, n_features: int) -> None:
    m, r = layout.degrees.shape
    p = model.parameters
    _check_shape("bias", p.bias, (1,))
    _check_shape("linear", p.linear, (n_features,))
    _check_shape("table", p.table, (n_features + layout.n_dummies, r, m))
    _check_shape("met", p.met, (n_features,))
    if {p.bias.dtype, p.linear.dtype, p.table.dtype} != {np.dtype(np.float64)}:
        raise ModelFileError("the parameters of a lifted model are not in double precision.")
    if kernels.n_degree_weights(model.kernel) != m or model.n_dummies != layout.n_dummies:
        raise ModelFileError("the kernel does not fit the parameters.")


def _check_pqr(model: PQR, learner: PQRLearner, n_features: int) -> None:
    k, capacity, n_pages = len(model.frequent), len(model.blocks), int(model.used[0])
    is_frozen = isinstance(learner, FrozenPQRLearner)
    planes, record, pair = (1, 2, 1) if is_frozen else (learner.n_planes, RECORD, SHORT_RECORD)
    _check_shape("bias", model.bias, (planes,))
    _check_shape("linear", model.linear, (n_features, record))
    _check_shape("pages", model.pages, (capacity, PAGE, pair))
    _check_shape("used", model.used, (1,))
    dtypes = {block.dtype for block in (model.bias, model.linear, model.pages)}
    if dtypes not in ({np.dtype(np.float32)}, {np.dtype(np.float64)}):
        raise ModelFileError("the parameters are not of one floating-point type.")
    if model.units.size:
        _check_shape("units", model.units, (n_features,))
    _check_places(model, n_features)
    blocks = model.blocks[1:n_pages]
    if not 1 <= n_pages <= capacity or np.any((blocks < 1) | (blocks >= count_blocks(k))):
        raise ModelFileError("the pages do not fit the frequent features.")


def _check_places(model: PQR, n_features: int) -> None:
    """Check that each feature has a linear record, and the frequent ones the first, by rank."""
    k, places, factors = len(model.frequent), model.places, model.linear[:, -1]
    if k or places.size:
        _check_shape("places", places, (n_features,))
        is_taken = np.zeros(n_features, dtype=np.bool_)
        if places.dtype == np.int32:
            is_taken[places[(places >= 0) & (places < n_features)]] = True
        if not is_taken.all():
            raise ModelFileError("places does not name each linear weight once.")
        if not np.array_equal(places[model.frequent], np.arange(k)):
            raise ModelFileError("the frequent features do not fit the linear weights.")
    if np.any(factors[:k] != 0.0) or not np.all(factors[k:] > 0.0):
        raise ModelFileError("the frequent features do not fit the linear weights.")


def _check_difacto(model: DiFacto, learner: DiFactoLearner, rank: int, n_features: int) -> None:
    is_frozen = isinstance(learner, FrozenDiFactoLearner)
    planes = 1 if is_frozen else learner.n_planes
    n_groups = len(model.widths)
    _check_shape("bias", model.bias, (planes,))
    _check_shape("linear", model.linear, (n_features, planes))
    _check_shape("counts", model.counts, (n_features,))
    _check_shape("places", model.places, (n_features, n_groups))
    _check_shape("pool", model.pool, (1 if is_frozen else 2, model.pool.shape[-1]))
    _check_shape("used", model.used, (1,))
    _check_shape("thresholds", model.thresholds, (n_groups,))
    if model.units.size:
        _check_shape("units", model.units, (n_features,))
    dtypes = {block.dtype for block in (model.bias, model.linear, model.pool)}
    if dtypes not in ({np.dtype(np.float32)}, {np.dtype(np.float64)}):
        raise ModelFileError("the parameters are not of one floating-point type.")
    counters = (model.counts, model.places, model.used, model.widths, model.thresholds)
    if {block.dtype for block in counters} != {np.dtype(np.int64)}:
        raise ModelFileError("the counts and places are no whole numbers.")
    if model.widths.min(initial=1) < 1 or model.rank != rank:
        raise ModelFileError("the groups of factors do not fit the rank.")
    used, there = int(model.used[0]), model.places != NONE
    outside = (model.places < 0) | (model.places > used - model.widths)
    if not 0 <= used <= model.pool.shape[1] or np.any(outside & there):
        raise ModelFileError("the factors do not fit their places.")


def _check_shape(name: str, array: NDArray[Any], shape: tuple[int, ...]) -> None:
    if array.shape != shape:
        raise ModelFileError(f"{name} has shape {array.shape} where {shape} was expected.")
