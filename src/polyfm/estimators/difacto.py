"""Factorization machines with factors on demand."""

from __future__ import annotations

from typing import Any

from polyfm.estimators._difacto import MemoryAdaptive
from polyfm.estimators.fm import FMClassifier, FMRegressor


class DiFactoRegressor(MemoryAdaptive, FMRegressor):
    r"""Factorization machine for regression with factors for frequent features.

    .. math:: f(x) = b + \langle w, x \rangle + \frac12 \sum_f \Bigl[
        \bigl( \textstyle\sum_i v_{if} x_i \bigr)^2 - \sum_i v_{if}^2 x_i^2 \Bigr]

    The interactions run over the features that have factors, and a weight :math:`w_i` other than 0.
    A feature gets ``ranks[0]`` factors when it has been in more than ``thresholds[0]`` rows and its
    weight is not 0, ``ranks[1]`` when it has been in more than ``thresholds[1]``, and so on; those
    it has stay as they are. Two features of unequal ranks interact through the factors that both
    have. Until then factors take no memory: most features of click logs are too rare to learn any.

    A row moves its features' weights by FTRL-Proximal with an L1 penalty, which makes exact zeros,
    and their factors by AdaGrad,

    .. math:: n \leftarrow n + h^2, \quad v \leftarrow v - \frac{\eta_v}{c_v + \sqrt n} \, h, \quad
        h = s \Bigl( \ell'(y, f(x)) \, x_i \bigl( \textstyle\sum_j v_{jf} x_j - v_{if} x_i \bigr)
        + \beta v_{if} \Bigr)

    with the weight s of the row. So the objective is

    .. math:: \sum_t s_t \Bigl( \ell(y_t, f(x_t)) + \frac12 \sum_{i \in t} (\lambda_2 w_i^2
        + \beta \|v_i\|^2) \Bigr) + \lambda_1 \|w\|_1

    in which a feature's penalty grows with the number of its rows.

    Parameters
    ----------
    ranks : tuple of int, default=(4, 16)
        Numbers of factors, rising from group to group.
    thresholds : tuple of int, default=(10, 1000)
        The count above which a feature belongs to each group, rising.
    loss : str or spec, default="squared"
        ``"squared"``, ``"huber"``, ``"quantile"`` or ``"poisson"``; a spec such as
        ``Huber(delta=2.0)`` sets more, in the unit of the target.
    alpha : float, default=1.0
        Penalty of the linear weights.
    penalty : {"l1", "l2", "elasticnet"}, default="l1"
        :math:`\lambda_1` is ``alpha`` for ``"l1"``, 0 for ``"l2"`` and ``alpha * l1_ratio`` for
        ``"elasticnet"``; :math:`\lambda_2` is the rest of ``alpha``. The L1 penalty is weighed once
        against the sum of all gradients, the other is paid for each row with the feature.
    l1_ratio : float, default=0.5
        Share of the L1 penalty in ``"elasticnet"``.
    beta : float, default=0.01
        Penalty :math:`\beta` of factors, for each row with the feature.
    learning_rate : float, default=0.1
        About the longest step of a linear weight, :math:`\eta`: its rate is
        :math:`\eta / (c + \sqrt n)`, where n sums squared gradients.
    damping : float, default=1.0
        c > 0: the larger, the shorter the first steps.
    factor_learning_rate : float, default=0.1
        About the longest step of a factor, :math:`\eta_v`, whose rate is
        :math:`\eta_v / (c_v + \sqrt n)`.
    factor_damping : float, default=1.0
        :math:`c_v > 0`: the larger, the shorter the first steps of factors.
    init_scale : float, default=0.05
        Factors start uniformly distributed between minus and plus this number; they depend on the
        seed and the feature alone, not on when they are allocated.
    fit_intercept : bool, default=True
        Whether there is a bias. It has no penalty.
    max_features : int, optional
        How many columns there may come to be. With it ``partial_fit`` takes rows with columns that
        are new, columns without training have no weight in predictions, and rows can be
        dictionaries and frames, whose names are hashed to this many columns. Without it all rows
        have the columns of the first ones.
    max_iter : int or "auto", default="auto"
        How often ``fit`` goes over the rows at most. ``"auto"`` visits 100,000 rows in all, but
        each at least once and at most 100 times. ``partial_fit`` always visits each row once.
    tol : float, default=1e-3
        An epoch is an improvement if the loss falls by more than ``tol`` times the loss of the
        best constant prediction; 0 goes on to ``max_iter``, unless validation stops earlier.
    n_iter_no_change : int, default=3
        Epochs without improvement after which ``fit`` ends.
    early_stopping : bool or "auto", default="auto"
        Whether ``fit`` holds out rows to decide when to stop and which epoch's weights to keep.
        ``"auto"`` does so from 1,000 rows on, if there is more than one epoch.
    validation_fraction : float, default=0.1
        Share of the rows held out.
    scoring : str, optional
        What the held-out rows are judged by: ``"loss"`` (the default), ``"rmse"`` or ``"mae"``.
    shuffle : bool, default=False
        Whether each epoch of ``fit`` visits the rows in a new random order, or in the given one.
    random_state : int, RandomState or None, default=None
        Seed of the factors' start, the order and the hold-out.
    n_jobs : int, optional
        Threads of predictions, -1 for all cores. Learning takes one: it is the same to the last
        bit every time.
    warm_start : bool, default=False
        Whether ``fit`` goes on from the last fit.
    verbose : int, default=0
        0 is silent, 1 writes a line per epoch.

    Attributes
    ----------
    intercept_ : float
        Bias.
    coef_ : ndarray of shape (n_features,)
        Linear weights w.
    ranks_ : ndarray of shape (n_features,)
        How many factors each feature has, 0 for none.
    counts_ : ndarray of shape (n_features,)
        In how many rows each feature was: in the first epoch of each ``fit`` and in streams.
    learning_rates_ : ndarray of shape (n_features,)
        The rate :math:`\eta / (c + \sqrt n)` that each linear weight has come to.
    n_factors_ : int
        How many factors have been allocated, over all features.
    factors_ : dict of int to ndarray of shape (n_features, rank)
        The factors with the key 2, made dense when they are asked for: 0 where a feature has none,
        and in features whose weight is 0, as theirs are not used.
    history_ : dict of str to list of float
        Per epoch of ``fit``: ``"loss"``, the mean loss of each row just before it was learnt;
        ``"validation_..."``; ``"seconds"`` and ``"rows_per_second"``.
    n_iter_, t_ : int
        Epochs of the last fit, rows visited in all.
    best_iteration_, best_score_ : int, float
        The epoch whose weights were kept and its score, if validation decided.
    n_features_in_, feature_names_in_ : int, ndarray
        As in scikit-learn.

    See Also
    --------
    FMRegressor : Factors of one rank for all features.

    Notes
    -----
    *When factors come.* A row counts its features once it is predicted, and after its update each
    of them with enough rows and a weight other than 0 has its factors. A weight that falls to 0
    later puts them aside: they keep their values and their memory, but neither predict nor learn
    until it is other than 0 again. In the epochs of ``fit`` after the first nothing is counted.

    *Memory.* 12 bytes for each feature's weight, 8 for its count and 8 for each group's place, and
    8 for each factor there is (24, 8, 8 and 16 in double precision).

    *Units.* A stream of ``partial_fit`` is learnt as it is, from 0, and rows one by one give the
    same model as any batches of them. ``fit`` knows all rows: squared, Huber and quantile loss are
    learnt on the standardised target, and columns of values other than 1 divided by the root mean
    square of their non-zeros; penalties are on these weights.

    References
    ----------
    Li, Liu, Smola, Wang, "DiFacto: Distributed Factorization Machines", WSDM 2016.
    McMahan et al., "Ad Click Prediction: a View from the Trenches", KDD 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfm import DiFactoRegressor
    >>> X = np.random.default_rng(0).choice([-1.0, 1.0], size=(1000, 4))
    >>> y = X[:, 0] + X[:, 1] + 2 * X[:, 0] * X[:, 1]
    >>> DiFactoRegressor(random_state=0).fit(X, y).score(X, y) > 0.95
    True
    """

    def __init__(
        self,
        *,
        ranks: Any = (4, 16),
        thresholds: Any = (10, 1000),
        loss: Any = "squared",
        alpha: float = 1.0,
        penalty: str = "l1",
        l1_ratio: float = 0.5,
        beta: float = 0.01,
        learning_rate: float = 0.1,
        damping: float = 1.0,
        factor_learning_rate: float = 0.1,
        factor_damping: float = 1.0,
        init_scale: float = 0.05,
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
        n_jobs: int | None = None,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.ranks = ranks
        self.thresholds = thresholds
        self.loss = loss
        self.alpha = alpha
        self.penalty = penalty
        self.l1_ratio = l1_ratio
        self.beta = beta
        self.learning_rate = learning_rate
        self.damping = damping
        self.factor_learning_rate = factor_learning_rate
        self.factor_damping = factor_damping
        self.init_scale = init_scale
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
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.verbose = verbose


class DiFactoClassifier(MemoryAdaptive, FMClassifier):
    r"""Factorization machine for classification with factors for frequent features.

    .. math:: f(x) = b + \langle w, x \rangle + \frac12 \sum_f \Bigl[
        \bigl( \textstyle\sum_i v_{if} x_i \bigr)^2 - \sum_i v_{if}^2 x_i^2 \Bigr]

    The interactions run over the features that have factors, and a weight :math:`w_i` other than 0.
    A feature gets ``ranks[0]`` factors when it has been in more than ``thresholds[0]`` rows and its
    weight is not 0, ``ranks[1]`` when it has been in more than ``thresholds[1]``, and so on; those
    it has stay as they are. Two features of unequal ranks interact through the factors that both
    have. Until then factors take no memory: most features of click logs are too rare to learn any.

    A row moves its features' weights by FTRL-Proximal with an L1 penalty, which makes exact zeros,
    and their factors by AdaGrad,

    .. math:: n \leftarrow n + h^2, \quad v \leftarrow v - \frac{\eta_v}{c_v + \sqrt n} \, h, \quad
        h = s \Bigl( \ell'(y, f(x)) \, x_i \bigl( \textstyle\sum_j v_{jf} x_j - v_{if} x_i \bigr)
        + \beta v_{if} \Bigr)

    with the weight s of the row. So the objective is

    .. math:: \sum_t s_t \Bigl( \ell(y_t, f(x_t)) + \frac12 \sum_{i \in t} (\lambda_2 w_i^2
        + \beta \|v_i\|^2) \Bigr) + \lambda_1 \|w\|_1

    in which a feature's penalty grows with the number of its rows.

    Parameters
    ----------
    ranks : tuple of int, default=(4, 16)
        Numbers of factors, rising from group to group.
    thresholds : tuple of int, default=(10, 1000)
        The count above which a feature belongs to each group, rising.
    loss : str or spec, default="logistic"
        ``"logistic"`` or ``"squared_hinge"``.
    alpha : float, default=1.0
        Penalty of the linear weights.
    penalty : {"l1", "l2", "elasticnet"}, default="l1"
        :math:`\lambda_1` is ``alpha`` for ``"l1"``, 0 for ``"l2"`` and ``alpha * l1_ratio`` for
        ``"elasticnet"``; :math:`\lambda_2` is the rest of ``alpha``. The L1 penalty is weighed once
        against the sum of all gradients, the other is paid for each row with the feature.
    l1_ratio : float, default=0.5
        Share of the L1 penalty in ``"elasticnet"``.
    beta : float, default=0.01
        Penalty :math:`\beta` of factors, for each row with the feature.
    learning_rate : float, default=0.1
        About the longest step of a linear weight, :math:`\eta`: its rate is
        :math:`\eta / (c + \sqrt n)`, where n sums squared gradients.
    damping : float, default=1.0
        c > 0: the larger, the shorter the first steps.
    factor_learning_rate : float, default=0.1
        About the longest step of a factor, :math:`\eta_v`, whose rate is
        :math:`\eta_v / (c_v + \sqrt n)`.
    factor_damping : float, default=1.0
        :math:`c_v > 0`: the larger, the shorter the first steps of factors.
    init_scale : float, default=0.05
        Factors start uniformly distributed between minus and plus this number; they depend on the
        seed and the feature alone, not on when they are allocated.
    fit_intercept : bool, default=True
        Whether there is a bias. It has no penalty.
    max_features : int, optional
        How many columns there may come to be. With it ``partial_fit`` takes rows with columns that
        are new, columns without training have no weight in predictions, and rows can be
        dictionaries and frames, whose names are hashed to this many columns. Without it all rows
        have the columns of the first ones.
    max_iter : int or "auto", default="auto"
        How often ``fit`` goes over the rows at most. ``"auto"`` visits 100,000 rows in all, but
        each at least once and at most 100 times. ``partial_fit`` always visits each row once.
    tol : float, default=1e-3
        An epoch is an improvement if the loss falls by more than ``tol`` times the loss of the
        best constant prediction; 0 goes on to ``max_iter``, unless validation stops earlier.
    n_iter_no_change : int, default=3
        Epochs without improvement after which ``fit`` ends.
    early_stopping : bool or "auto", default="auto"
        Whether ``fit`` holds out rows to decide when to stop and which epoch's weights to keep.
        ``"auto"`` does so from 1,000 rows on, if there is more than one epoch.
    validation_fraction : float, default=0.1
        Share of the rows held out.
    scoring : str, optional
        What the held-out rows are judged by: ``"loss"`` (the default), ``"roc_auc"`` or
        ``"accuracy"``.
    shuffle : bool, default=False
        Whether each epoch of ``fit`` visits the rows in a new random order, or in the given one.
    random_state : int, RandomState or None, default=None
        Seed of the factors' start, the order and the hold-out.
    n_jobs : int, optional
        Threads of predictions, -1 for all cores. Learning takes one: it is the same to the last
        bit every time.
    warm_start : bool, default=False
        Whether ``fit`` goes on from the last fit.
    verbose : int, default=0
        0 is silent, 1 writes a line per epoch.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes; ``"balanced"`` is for ``fit`` only.

    Attributes
    ----------
    intercept_ : float or ndarray of shape (n_classes,)
        Bias.
    coef_ : ndarray of shape (n_features,) or (n_classes, n_features)
        Linear weights w.
    ranks_ : ndarray of shape (n_features,) or (n_classes, n_features)
        How many factors each feature has, 0 for none.
    counts_ : ndarray of shape (n_features,)
        In how many rows each feature was: in the first epoch of each ``fit`` and in streams.
    learning_rates_ : ndarray of shape (n_features,) or (n_classes, n_features)
        The rate :math:`\eta / (c + \sqrt n)` that each linear weight has come to.
    n_factors_ : int
        How many factors have been allocated, over all features and classes.
    factors_ : dict of int to ndarray of shape (n_features, rank) or (n_classes, n_features, rank)
        The factors with the key 2, made dense when they are asked for: 0 where a feature has none,
        and in features whose weight is 0, as theirs are not used.
    history_ : dict of str to list of float
        Per epoch of ``fit``: ``"loss"``, the mean loss of each row just before it was learnt;
        ``"validation_..."``; ``"seconds"`` and ``"rows_per_second"``.
    n_iter_, t_ : int
        Epochs of the last fit, rows visited in all.
    best_iteration_, best_score_ : int, float
        The epoch whose weights were kept and its score, if validation decided.
    classes_ : ndarray of shape (n_classes,)
        Labels. More than two are learnt one against the rest.
    n_features_in_, feature_names_in_ : int, ndarray
        As in scikit-learn.

    See Also
    --------
    FMClassifier : Factors of one rank for all features.

    Notes
    -----
    *When factors come.* A row counts its features once it is predicted, and after its update each
    of them with enough rows and a weight other than 0 has its factors. A weight that falls to 0
    later puts them aside: they keep their values and their memory, but neither predict nor learn
    until it is other than 0 again. In the epochs of ``fit`` after the first nothing is counted.

    *Memory.* 12 bytes for each feature's weight, 8 for its count and 8 for each group's place, and
    8 for each factor there is (24, 8, 8 and 16 in double precision).

    *Units.* A stream of ``partial_fit`` is learnt as it is, from 0, and rows one by one give the
    same model as any batches of them. ``fit`` knows all rows: squared, Huber and quantile loss are
    learnt on the standardised target, and columns of values other than 1 divided by the root mean
    square of their non-zeros; penalties are on these weights.

    References
    ----------
    Li, Liu, Smola, Wang, "DiFacto: Distributed Factorization Machines", WSDM 2016.
    McMahan et al., "Ad Click Prediction: a View from the Trenches", KDD 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfm import DiFactoClassifier
    >>> X = np.random.default_rng(0).choice([-1.0, 1.0], size=(1000, 4))
    >>> y = X[:, 0] + X[:, 1] + 2 * X[:, 0] * X[:, 1] > 0
    >>> DiFactoClassifier(random_state=0).fit(X, y).score(X, y) > 0.95
    True
    """

    def __init__(
        self,
        *,
        ranks: Any = (4, 16),
        thresholds: Any = (10, 1000),
        loss: Any = "logistic",
        alpha: float = 1.0,
        penalty: str = "l1",
        l1_ratio: float = 0.5,
        beta: float = 0.01,
        learning_rate: float = 0.1,
        damping: float = 1.0,
        factor_learning_rate: float = 0.1,
        factor_damping: float = 1.0,
        init_scale: float = 0.05,
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
        n_jobs: int | None = None,
        warm_start: bool = False,
        verbose: int = 0,
        class_weight: Any = None,
    ) -> None:
        self.ranks = ranks
        self.thresholds = thresholds
        self.loss = loss
        self.alpha = alpha
        self.penalty = penalty
        self.l1_ratio = l1_ratio
        self.beta = beta
        self.learning_rate = learning_rate
        self.damping = damping
        self.factor_learning_rate = factor_learning_rate
        self.factor_damping = factor_damping
        self.init_scale = init_scale
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
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.verbose = verbose
        self.class_weight = class_weight
