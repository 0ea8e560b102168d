"""Projective quadratic regression for regression and classification."""

from __future__ import annotations

from typing import Any

from polyfm.estimators._pqr import ProjectiveQuadratic
from polyfm.estimators.fm import FMClassifier, FMRegressor


class PQRRegressor(ProjectiveQuadratic, FMRegressor):
    r"""Projective quadratic regression: a convex model of interactions, learnt online.

    .. math:: f(x) = b + \langle w, x \rangle + \sum_{i < j \in H} p_{ij} x_i x_j
        + \Bigl( \sum_{i \in H} q_i x_i \Bigr) \Bigl( \sum_{j \in L} x_j \Bigr)

    H are the ``order`` most frequent features, L are all others: pairs of frequent features have
    weights of their own, a frequent feature has one weight for its crosses with all infrequent
    ones, and pairs of infrequent features have none. So the model is linear in a row's expansion,
    which is made on the fly, and weights of pairs take memory once a training row has held them.
    It minimises

    .. math:: \sum_i s_i \, \ell(y_i, f(x_i)) + \alpha \, \Omega(w)
        + \beta \, (\Omega(p) + \Omega(q))

    with the weights s of the rows, row by row; the bias is not penalised. All weights but
    the bias of a ``fit`` start at 0, and what is learnt depends on the rows and their order alone.

    Parameters
    ----------
    order : int or "auto", default=1000
        Number k of frequent features; 0 is a linear model. ``"auto"`` tries 4,000 (or all
        features, if fewer), halves of it down to a 32nd, and 0, all in one pass; see Notes.
    frequent : array of int, optional
        Columns of H, the most frequent first; of more than ``order`` the first ones count. Without
        it features are counted.
    warmup : int, default=10000
        In how many rows ``partial_fit`` counts features before it chooses H; see Notes.
    n_sample : int, optional
        In how many of the training rows, drawn at random, ``fit`` counts features; in all, if None.
    loss : str or spec, default="squared"
        ``"squared"``, ``"huber"``, ``"quantile"`` or ``"poisson"``; a spec such as
        ``Quantile(0.9)``.
    solver : {"ftrl", "sgd"}, default="ftrl"
        FTRL-Proximal, with a rate for each weight that falls with its gradients and exact zeros
        under an L1 penalty; or online gradient descent with a proximal step, with the rate
        :math:`\eta / (1 + t)^q` after t rows for all.
    alpha : float, default=1.0
        Penalty of the linear term.
    beta : float, default=1.0
        Penalty of the weights of crosses.
    penalty : {"l2", "l1", "elasticnet"}, default="l2"
        :math:`\Omega(v) = \frac12 v^2`, :math:`|v|`, or a mixture.
    l1_ratio : float, default=0.5
        Share of the L1 penalty in ``"elasticnet"``: :math:`\lambda_1` is this share of ``alpha``
        or ``beta``, and :math:`\lambda_2` the rest.
    learning_rate : float, default=0.1
        Step size :math:`\eta`, in the unit of the standardised target, if ``fit`` or a warm-up
        came first.
    damping : float, default=1.0
        With ``"ftrl"`` the rate is :math:`\eta / (c + \sqrt n)`, where n sums squared gradients;
        this is c. It damps the first steps.
    power_t : float, default=0.5
        The exponent q of ``"sgd"``.
    fit_intercept : bool, default=True
        Whether there is a bias.
    max_features : int, optional
        How many columns there may come to be. With it ``partial_fit`` takes rows with columns that
        are new, columns without training have no weight in predictions, and rows can be
        dictionaries and frames, whose names are hashed to this many columns. Without it all rows
        have the columns of the first ones.
    max_iter : int or "auto", default="auto"
        How often ``fit`` goes over the rows at most. ``"auto"`` visits 100,000 rows in all, but
        each at least once and at most 100 times. ``partial_fit`` always visits each row once.
    tol : float, default=1e-3
        A pass is an improvement if the loss falls by more than ``tol`` times the loss of the best
        constant prediction; 0 goes on to ``max_iter``, unless validation stops earlier.
    n_iter_no_change : int, default=3
        Passes without improvement after which training ends.
    early_stopping : bool or "auto", default="auto"
        Whether rows are held out to decide when to stop and which pass's parameters to keep.
        ``"auto"`` does so from 1,000 rows on, unless there is a single pass.
    validation_fraction : float, default=0.1
        Share of the rows held out.
    scoring : str, optional
        What the held-out rows are judged by: ``"loss"`` (the default), ``"rmse"`` or
        ``"mae"``.
    shuffle : bool, default=False
        Whether each pass of ``fit`` visits the rows in a new random order, or in their own.
    random_state : int, RandomState or None, default=None
        Seed of sample, hold-out and shuffling. Learning itself has no randomness.
    warm_start : bool, default=False
        Whether ``fit`` goes on from the last fit, with the same H.
    verbose : int, default=0
        0 is silent, 1 writes a line per pass.

    Attributes
    ----------
    intercept_ : float
        Bias.
    coef_ : ndarray of shape (n_features,)
        Linear weights w.
    order_ : int
        Number of frequent features.
    frequent_features_ : ndarray of shape (order_,)
        Columns of H, the most frequent first.
    pair_weights_ : scipy.sparse.coo_array of shape (n_features, n_features)
        Weights of pairs that are not 0: p_ij at (i, j), i < j.
    shared_weights_ : ndarray of shape (order_,)
        Weights q of each frequent feature's crosses with all infrequent ones.
    learning_rates_ : ndarray of shape (n_features,)
        The rate that each linear weight has come to.
    history_ : dict of str to list of float
        Per pass: ``"loss"``, the mean loss of each row just before it was learnt;
        ``"validation_..."``; ``"seconds"`` and ``"rows_per_second"``.
    n_iter_ : int
        Passes of the last fit.
    best_iteration_, best_score_ : int, float
        The pass whose parameters were kept and its score, if validation decided; else the one
        with the least training loss.
    t_ : int
        Rows visited.
    n_features_in_, feature_names_in_ : int, ndarray
        As in scikit-learn.

    See Also
    --------
    FMRegressor : Learns factors of all features, which generalise to pairs that no row has held.

    Notes
    -----
    *Counting in a stream.* ``partial_fit`` learns the first ``warmup`` rows as a linear model,
    which predicts in the meantime, and keeps them. When it has that many, it counts features in
    them, chooses H, starts anew and learns them in their order, now with crosses. So the model is
    the same as if H had been known from the start, and however rows are cut into batches. The
    offset and scale of the target are measured in these rows, too. Where H is given, or
    ``order=0``, there is no such phase, and a stream's targets are learnt in their own unit.

    *Choosing the order.* A pair belongs to the model of each order above the rank of its less
    frequent feature. ``order="auto"`` learns all candidates side by side in a single pass. What is
    compared is the loss of each row just before it is learnt, over the second half of the pass
    (in the first half large orders are still beginners); the best goes on alone. In a stream it is
    the second half of the first :math:`10 \cdot` ``warmup`` rows, and until these are learnt the
    best so far predicts. The pass takes the time and memory of all candidates together; each is,
    bit for bit, the model of its order alone.

    *Penalties.* FTRL weighs the whole penalty against the sum of all gradients of a weight. With
    ``"sgd"`` a weight pays a v-th part of its penalty at its v-th visit. Either way the objective
    is the loss of all rows visited so far and the penalty once, so a second pass counts twice.

    Weights of pairs lie in pages of eight pairs, 16 bytes each (32 in double precision), which are
    allocated when a row first holds one of the eight. Rows of single precision are learnt in single
    precision.

    *Units.* ``fit`` learns columns of values other than 1 divided by the root mean square of their
    non-zeros (the sum over L by that of all of L), and so does a stream after its warm-up;
    penalties are on these weights. The bias then starts at the best constant prediction. A stream
    without warm-up is learnt as it is, from 0.

    References
    ----------
    Ma, "Projective Quadratic Regression for Online Learning", AAAI 2020. Its expansion (12) is
    meant as here: each pair once, no squares, one weight for all infrequent partners, a bias.
    McMahan et al., "Ad Click Prediction: a View from the Trenches", KDD 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfm import PQRRegressor
    >>> X = np.random.default_rng(0).choice([-1.0, 1.0], size=(500, 4))
    >>> y = X[:, 0] * X[:, 1] - X[:, 2]
    >>> round(PQRRegressor(random_state=0).fit(X, y).score(X, y), 2)
    1.0
    """

    def __init__(
        self,
        *,
        order: Any = 1000,
        frequent: Any = None,
        warmup: int = 10_000,
        n_sample: int | None = None,
        loss: Any = "squared",
        solver: str = "ftrl",
        alpha: float = 1.0,
        beta: float = 1.0,
        penalty: str = "l2",
        l1_ratio: float = 0.5,
        learning_rate: float = 0.1,
        damping: float = 1.0,
        power_t: float = 0.5,
        fit_intercept: bool = True,
        max_features: int | None = None,
        max_iter: Any = "auto",
        tol: float = 1e-3,
        n_iter_no_change: int = 3,
        early_stopping: bool | str = "auto",
        validation_fraction: float = 0.1,
        scoring: str | None = None,
        shuffle: bool = False,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.order = order
        self.frequent = frequent
        self.warmup = warmup
        self.n_sample = n_sample
        self.loss = loss
        self.solver = solver
        self.alpha = alpha
        self.beta = beta
        self.penalty = penalty
        self.l1_ratio = l1_ratio
        self.learning_rate = learning_rate
        self.damping = damping
        self.power_t = power_t
        self.fit_intercept = fit_intercept
        self.max_features = max_features
        self.max_iter = max_iter
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.scoring = scoring
        self.shuffle = shuffle
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose


class PQRClassifier(ProjectiveQuadratic, FMClassifier):
    r"""Projective quadratic regression for classes: a convex model, learnt online.

    .. math:: f(x) = b + \langle w, x \rangle + \sum_{i < j \in H} p_{ij} x_i x_j
        + \Bigl( \sum_{i \in H} q_i x_i \Bigr) \Bigl( \sum_{j \in L} x_j \Bigr)

    H are the ``order`` most frequent features, L are all others: pairs of frequent features have
    weights of their own, a frequent feature has one weight for its crosses with all infrequent
    ones, and pairs of infrequent features have none. So the model is linear in a row's expansion,
    which is made on the fly, and weights of pairs take memory once a training row has held them.
    It minimises

    .. math:: \sum_i s_i \, \ell(y_i, f(x_i)) + \alpha \, \Omega(w)
        + \beta \, (\Omega(p) + \Omega(q))

    with the weights s of the rows, row by row; the bias is not penalised. All weights but
    the bias of a ``fit`` start at 0, and what is learnt depends on the rows and their order alone.

    Parameters
    ----------
    order : int or "auto", default=1000
        Number k of frequent features; 0 is a linear model. ``"auto"`` tries 4,000 (or all
        features, if fewer), halves of it down to a 32nd, and 0, all in one pass; see Notes.
    frequent : array of int, optional
        Columns of H, the most frequent first; of more than ``order`` the first ones count. Without
        it features are counted.
    warmup : int, default=10000
        In how many rows ``partial_fit`` counts features before it chooses H; see Notes.
    n_sample : int, optional
        In how many of the training rows, drawn at random, ``fit`` counts features; in all, if None.
    loss : str or spec, default="logistic"
        ``"logistic"`` or ``"squared_hinge"``.
    solver : {"ftrl", "sgd"}, default="ftrl"
        FTRL-Proximal, with a rate for each weight that falls with its gradients and exact zeros
        under an L1 penalty; or online gradient descent with a proximal step, with the rate
        :math:`\eta / (1 + t)^q` after t rows for all.
    alpha : float, default=1.0
        Penalty of the linear term.
    beta : float, default=1.0
        Penalty of the weights of crosses.
    penalty : {"l2", "l1", "elasticnet"}, default="l2"
        :math:`\Omega(v) = \frac12 v^2`, :math:`|v|`, or a mixture.
    l1_ratio : float, default=0.5
        Share of the L1 penalty in ``"elasticnet"``: :math:`\lambda_1` is this share of ``alpha``
        or ``beta``, and :math:`\lambda_2` the rest.
    learning_rate : float, default=0.1
        Step size :math:`\eta`, in the unit of the standardised target, if ``fit`` or a warm-up
        came first.
    damping : float, default=1.0
        With ``"ftrl"`` the rate is :math:`\eta / (c + \sqrt n)`, where n sums squared gradients;
        this is c. It damps the first steps.
    power_t : float, default=0.5
        The exponent q of ``"sgd"``.
    fit_intercept : bool, default=True
        Whether there is a bias.
    max_features : int, optional
        How many columns there may come to be. With it ``partial_fit`` takes rows with columns that
        are new, columns without training have no weight in predictions, and rows can be
        dictionaries and frames, whose names are hashed to this many columns. Without it all rows
        have the columns of the first ones.
    max_iter : int or "auto", default="auto"
        How often ``fit`` goes over the rows at most. ``"auto"`` visits 100,000 rows in all, but
        each at least once and at most 100 times. ``partial_fit`` always visits each row once.
    tol : float, default=1e-3
        A pass is an improvement if the loss falls by more than ``tol`` times the loss of the best
        constant prediction; 0 goes on to ``max_iter``, unless validation stops earlier.
    n_iter_no_change : int, default=3
        Passes without improvement after which training ends.
    early_stopping : bool or "auto", default="auto"
        Whether rows are held out to decide when to stop and which pass's parameters to keep.
        ``"auto"`` does so from 1,000 rows on, unless there is a single pass.
    validation_fraction : float, default=0.1
        Share of the rows held out.
    scoring : str, optional
        What the held-out rows are judged by: ``"loss"`` (the default), ``"roc_auc"`` (two classes
        only) or ``"accuracy"``.
    shuffle : bool, default=False
        Whether each pass of ``fit`` visits the rows in a new random order, or in their own.
    random_state : int, RandomState or None, default=None
        Seed of sample, hold-out and shuffling. Learning itself has no randomness.
    warm_start : bool, default=False
        Whether ``fit`` goes on from the last fit, with the same H.
    verbose : int, default=0
        0 is silent, 1 writes a line per pass.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, multiplied with those of the rows.

    Attributes
    ----------
    intercept_ : float or ndarray of shape (n_classes,)
        Bias.
    coef_ : ndarray of shape (n_features,) or (n_classes, n_features)
        Linear weights w.
    order_ : int
        Number of frequent features.
    frequent_features_ : ndarray of shape (order_,)
        Columns of H, the most frequent first.
    pair_weights_ : scipy.sparse.coo_array of shape (n_features, n_features), or list of these
        Weights of pairs that are not 0: p_ij at (i, j), i < j.
    shared_weights_ : ndarray of shape (order_,) or (n_classes, order_)
        Weights q of each frequent feature's crosses with all infrequent ones.
    learning_rates_ : ndarray of shape (n_features,) or (n_classes, n_features)
        The rate that each linear weight has come to.
    history_ : dict of str to list of float
        Per pass: ``"loss"``, the mean loss of each row just before it was learnt;
        ``"validation_..."``; ``"seconds"`` and ``"rows_per_second"``.
    n_iter_ : int
        Passes of the last fit.
    best_iteration_, best_score_ : int, float
        The pass whose parameters were kept and its score, if validation decided; else the one
        with the least training loss.
    t_ : int
        Rows visited.
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    n_features_in_, feature_names_in_ : int, ndarray
        As in scikit-learn.

    See Also
    --------
    FMClassifier : Learns factors of all features, which generalise to pairs that no row has held.

    Notes
    -----
    *Counting in a stream.* ``partial_fit`` learns the first ``warmup`` rows as a linear model,
    which predicts in the meantime, and keeps them. When it has that many, it counts features in
    them, chooses H, starts anew and learns them in their order, now with crosses. So the model is
    the same as if H had been known from the start, and however rows are cut into batches. Where H
    is given, or ``order=0``, there is no such phase.

    *Choosing the order.* A pair belongs to the model of each order above the rank of its less
    frequent feature. ``order="auto"`` learns all candidates side by side in a single pass. What is
    compared is the loss of each row just before it is learnt, over the second half of the pass
    (in the first half large orders are still beginners); the best goes on alone. In a stream it is
    the second half of the first :math:`10 \cdot` ``warmup`` rows, and until these are learnt the
    best so far predicts. The pass takes the time and memory of all candidates together; each is,
    bit for bit, the model of its order alone.

    *Penalties.* FTRL weighs the whole penalty against the sum of all gradients of a weight. With
    ``"sgd"`` a weight pays a v-th part of its penalty at its v-th visit. Either way the objective
    is the loss of all rows visited so far and the penalty once, so a second pass counts twice.

    Weights of pairs lie in pages of eight pairs, 16 bytes each (32 in double precision), which are
    allocated when a row first holds one of the eight. Rows of single precision are learnt in single
    precision.

    *Units.* ``fit`` learns columns of values other than 1 divided by the root mean square of their
    non-zeros (the sum over L by that of all of L), and so does a stream after its warm-up;
    penalties are on these weights. The bias then starts at the best constant prediction. A stream
    without warm-up is learnt as it is, from 0.

    References
    ----------
    Ma, "Projective Quadratic Regression for Online Learning", AAAI 2020. Its expansion (12) is
    meant as here: each pair once, no squares, one weight for all infrequent partners, a bias.
    McMahan et al., "Ad Click Prediction: a View from the Trenches", KDD 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfm import PQRClassifier
    >>> X = np.random.default_rng(0).choice([-1.0, 1.0], size=(500, 4))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same", "different")
    >>> PQRClassifier(random_state=0).fit(X, y).score(X, y)
    1.0
    """

    def __init__(
        self,
        *,
        order: Any = 1000,
        frequent: Any = None,
        warmup: int = 10_000,
        n_sample: int | None = None,
        loss: Any = "logistic",
        solver: str = "ftrl",
        alpha: float = 1.0,
        beta: float = 1.0,
        penalty: str = "l2",
        l1_ratio: float = 0.5,
        learning_rate: float = 0.1,
        damping: float = 1.0,
        power_t: float = 0.5,
        fit_intercept: bool = True,
        max_features: int | None = None,
        max_iter: Any = "auto",
        tol: float = 1e-3,
        n_iter_no_change: int = 3,
        early_stopping: bool | str = "auto",
        validation_fraction: float = 0.1,
        scoring: str | None = None,
        shuffle: bool = False,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
        class_weight: Any = None,
    ) -> None:
        self.order = order
        self.frequent = frequent
        self.warmup = warmup
        self.n_sample = n_sample
        self.loss = loss
        self.solver = solver
        self.alpha = alpha
        self.beta = beta
        self.penalty = penalty
        self.l1_ratio = l1_ratio
        self.learning_rate = learning_rate
        self.damping = damping
        self.power_t = power_t
        self.fit_intercept = fit_intercept
        self.max_features = max_features
        self.max_iter = max_iter
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.scoring = scoring
        self.shuffle = shuffle
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.class_weight = class_weight
