"""Strongly hierarchical factorization machines."""

from __future__ import annotations

from typing import Any

from polyfm.estimators._hierarchical import Hierarchical
from polyfm.estimators.fm import FMClassifier, FMRegressor


class HierarchicalFMRegressor(Hierarchical, FMRegressor):
    r"""Strongly hierarchical factorization machine for regression.

    .. math:: f(x) = b + \sum_i \langle v_i \circ \lambda, v_0 \rangle x_i
        + \sum_{i < j} \langle v_i \circ \lambda, v_j \rangle x_i x_j

    Main effects are interactions with a context, a feature that is 1 in every row and has the
    factors :math:`v_0`: there are no linear weights beside the factors. A feature with
    :math:`v_i = 0` has neither a main effect nor interactions; one with interactions has a main
    effect, too (strong hierarchy), unless :math:`v_0 = 0` or :math:`v_i` is orthogonal to it, of
    which :meth:`check_assumptions` tells. An L1 penalty leaves many features without any factor.

    It is learnt by FTRL-Proximal from one row, or one batch of rows, after the other. With g the
    gradient of a factor v,

    .. math:: \frac{1}{\eta_n} = \frac{(\mu + n)^\gamma}{\eta}, \quad
        \sigma = \frac{1}{\eta_{n + g^2}} - \frac{1}{\eta_n}, \quad
        z \leftarrow z + g - \sigma v, \quad n \leftarrow n + g^2, \quad
        v = \begin{cases} 0 & |z| \le \lambda_1 \\
        -\dfrac{z - \mathrm{sgn}(z) \lambda_1}{1 / \eta_n + \lambda_2} & \text{else}
        \end{cases}

    where :math:`\lambda_1 = \beta \rho, \lambda_2 = \beta (1 - \rho)` and :math:`\rho` is 0 for
    ``penalty="l2"``, 1 for ``"l1"`` and ``l1_ratio`` for ``"elasticnet"``. Where all factors are 0,
    the context among them, all gradients are 0; so ``start`` brings in random numbers.

    Parameters
    ----------
    rank : int, default=8
        Number k of factors of each feature.
    fit_weights : {False, True, "signs"}, default=False
        Whether the weights :math:`\lambda` of the factors are 1 (SHFM), learnt within [-1, 1] from
        1 and -1 in turn (SHA2), or kept at 1 and -1 in turn.
    loss : str or spec, default="squared"
        ``"squared"``, ``"huber"``, ``"quantile"`` or ``"poisson"``; a spec such as
        ``Huber(delta=2.0)`` sets more, in the unit of the target.
    learning_rate : float, default=0.1
        :math:`\eta` (alpha in the paper), about the longest step of a factor.
    initial : float, default=1.0
        :math:`\mu > 0`, the squared gradients before the first: they damp the first steps.
    power : float, default=0.5
        :math:`\gamma`, within (0, 1]: how fast rates fall with the squared gradients.
    beta : float, "auto", array or dict, default=1.0
        Penalty of the factors, once for all rows of the stream, as it is added to the sum of the
        losses. ``"auto"`` is :math:`2 \sqrt{k N}` with N the mean number of non-zeros of a row.
        An array has one value per field (see ``fields``), a dict maps fields to values; fields
        that it leaves out have ``"auto"``. The context has the mean over the fields, or none (see
        ``start``).
    penalty : {"l2", "l1", "elasticnet"}, default="l2"
        :math:`\frac12 v^2`, :math:`|v|`, or a mixture of both.
    l1_ratio : float, default=0.5
        Share of the L1 penalty in ``"elasticnet"``.
    fields : array of shape (n_features,), optional
        The field of each column, for penalties per field: numbers from 0, -1 for a column that has
        the mean over the fields; or names, for which ``beta`` is a dict. Without it each column is
        a field of its own.
    fit_intercept : bool, default=True
        Whether there is a bias b, which has no penalty.
    batch_size : int, default=1
        Rows whose gradients make one step. The last batch of an epoch, or of a ``partial_fit``, may
        be smaller.
    batch_gradient : {"sum", "mean"}, default="sum"
        What of the gradients of a batch is g.
    init_scale : float or "auto", default=0.05
        Standard deviation of the factors at the start, for a column whose typical value is 1.
        ``"auto"`` lets the interactions of a row start with 0.005 standard deviations of the
        target in all.
    start : {"auto", "exact", "evidence"}, default="auto"
        What random numbers u do. ``"exact"``: factors start as u, with
        :math:`z = -(1 / \eta_0 + \lambda_2) u - \lambda_1 \mathrm{sgn}(u)`. ``"evidence"``: factors
        are drawn to u in place of 0, :math:`z = -u / \eta_0`, so that they start at what the
        penalty leaves of u, 0 where :math:`|u| \le \lambda_1 \eta_0`; the context starts as u and
        has no penalty. ``"auto"`` is ``"evidence"`` for a penalty with an L1 part, and
        ``"exact"`` for L2 alone.
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
        Whether ``fit`` holds out rows to decide when to stop and which epoch's factors to keep.
        ``"auto"`` does so from 1,000 rows on, if there is more than one epoch.
    validation_fraction : float, default=0.1
        Share of the rows held out.
    scoring : str, optional
        What the held-out rows are judged by: ``"loss"`` (the default), ``"rmse"`` or ``"mae"``.
    shuffle : bool, default=False
        Whether each epoch of ``fit`` visits the rows in a new random order, or in the given one.
    random_state : int, RandomState or None, default=None
        Seed of start, order and hold-out.
    n_jobs : int, optional
        Threads of predictions, -1 for all cores. Learning takes one: with an int as
        ``random_state`` it is the same to the last bit every time.
    warm_start : bool, default=False
        Whether ``fit`` goes on from the last fit.
    verbose : int, default=0
        0 is silent, 1 writes a line per epoch.

    Attributes
    ----------
    intercept_ : float
        Bias.
    main_effects_ : ndarray of shape (n_features,)
        :math:`\langle v_i \circ \lambda, v_0 \rangle`. (``coef_``, the weights of a linear term of
        its own, is 0.)
    factors_ : dict of int to ndarray of shape (n_features, rank)
        The factors v at the key 2.
    context_ : ndarray of shape (rank,)
        The factors :math:`v_0` of the context.
    weights_ : dict of int to ndarray of shape (rank,)
        The weights :math:`\lambda` at the key 2.
    learning_rates_ : ndarray of shape (n_features, rank)
        The rate that each factor has come to.
    counts_ : ndarray of shape (n_features,)
        In how many rows each column was.
    history_ : dict of str to list of float
        Per epoch of ``fit``: ``"loss"``, the mean loss of each row before its batch was learnt
        (for the first epoch this is the progressive loss); ``"validation_..."``; ``"seconds"`` and
        ``"rows_per_second"``.
    n_iter_, t_ : int
        Epochs of the last fit, rows visited in all.
    best_iteration_, best_score_ : int, float
        The epoch whose factors were kept and its score, if validation decided.
    n_features_in_, feature_names_in_ : int, ndarray
        As in scikit-learn.

    Notes
    -----
    A stream of ``partial_fit`` is taken as it is: the bias starts at 0, and rows one by one give
    the same model as any batches of them (with numbers for ``beta`` and ``init_scale``, and
    ``batch_size=1``). Its targets and columns should be of size 1 or so.
    ``fit`` knows all rows: squared, Huber and quantile loss are learnt on the standardised
    target, and columns in their own units, so that parameters fit targets and columns of any size.
    A ``partial_fit`` after it keeps these units.

    The penalty is paid once. With several epochs it weighs as much less against the losses as
    there are epochs.

    An exact start cancels an L1 penalty on the side of zero on which a factor starts: z starts
    beyond it, so a factor stays where it is until gradients move it, however strong the penalty,
    and features of hardly any rows keep small random factors. By evidence, features start at 0 if
    the penalty is strong enough. The gradient of :math:`v_{if}` is
    :math:`\ell' \lambda_f v_{0f} x_i` there, the one of a main effect: a feature comes in once the
    sum of these exceeds :math:`\lambda_1`, and interactions come with it. The context never leaves,
    so it cannot trap the others at 0. A larger ``init_scale`` makes it larger at the start, and
    features come in after fewer rows.

    The paper leaves open how z starts, how batches are summed up, and how bias and weights are
    learnt. Here ``start`` and ``batch_gradient`` say the first two, and n adds up the squares of a
    batch's gradient; bias and weights are learnt by FTRL-Proximal as well.

    References
    ----------
    Guo et al., "Strongly Hierarchical Factorization Machines and ANOVA Kernel Regression", SDM
    2018.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfm import HierarchicalFMRegressor
    >>> X = np.random.default_rng(0).normal(size=(1000, 5))
    >>> y = X[:, 0] + X[:, 1] + 2 * X[:, 0] * X[:, 1]
    >>> model = HierarchicalFMRegressor(random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    >>> model.check_assumptions().holds
    True
    """

    def __init__(
        self,
        *,
        rank: int = 8,
        fit_weights: bool | str = False,
        loss: Any = "squared",
        learning_rate: float = 0.1,
        initial: float = 1.0,
        power: float = 0.5,
        beta: Any = 1.0,
        penalty: str = "l2",
        l1_ratio: float = 0.5,
        fields: Any = None,
        fit_intercept: bool = True,
        batch_size: int = 1,
        batch_gradient: str = "sum",
        init_scale: float | str = 0.05,
        start: str = "auto",
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
        self.rank = rank
        self.fit_weights = fit_weights
        self.loss = loss
        self.learning_rate = learning_rate
        self.initial = initial
        self.power = power
        self.beta = beta
        self.penalty = penalty
        self.l1_ratio = l1_ratio
        self.fields = fields
        self.fit_intercept = fit_intercept
        self.batch_size = batch_size
        self.batch_gradient = batch_gradient
        self.init_scale = init_scale
        self.start = start
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


class HierarchicalFMClassifier(Hierarchical, FMClassifier):
    r"""Strongly hierarchical factorization machine for classification.

    .. math:: f(x) = b + \sum_i \langle v_i \circ \lambda, v_0 \rangle x_i
        + \sum_{i < j} \langle v_i \circ \lambda, v_j \rangle x_i x_j

    Main effects are interactions with a context, a feature that is 1 in every row and has the
    factors :math:`v_0`: there are no linear weights beside the factors. A feature with
    :math:`v_i = 0` has neither a main effect nor interactions; one with interactions has a main
    effect, too (strong hierarchy), unless :math:`v_0 = 0` or :math:`v_i` is orthogonal to it, of
    which :meth:`check_assumptions` tells. An L1 penalty leaves many features without any factor.

    It is learnt by FTRL-Proximal from one row, or one batch of rows, after the other. With g the
    gradient of a factor v,

    .. math:: \frac{1}{\eta_n} = \frac{(\mu + n)^\gamma}{\eta}, \quad
        \sigma = \frac{1}{\eta_{n + g^2}} - \frac{1}{\eta_n}, \quad
        z \leftarrow z + g - \sigma v, \quad n \leftarrow n + g^2, \quad
        v = \begin{cases} 0 & |z| \le \lambda_1 \\
        -\dfrac{z - \mathrm{sgn}(z) \lambda_1}{1 / \eta_n + \lambda_2} & \text{else}
        \end{cases}

    where :math:`\lambda_1 = \beta \rho, \lambda_2 = \beta (1 - \rho)` and :math:`\rho` is 0 for
    ``penalty="l2"``, 1 for ``"l1"`` and ``l1_ratio`` for ``"elasticnet"``. Where all factors are 0,
    the context among them, all gradients are 0; so ``start`` brings in random numbers.

    Parameters
    ----------
    rank : int, default=8
        Number k of factors of each feature.
    fit_weights : {False, True, "signs"}, default=False
        Whether the weights :math:`\lambda` of the factors are 1 (SHFM), learnt within [-1, 1] from
        1 and -1 in turn (SHA2), or kept at 1 and -1 in turn.
    loss : str or spec, default="logistic"
        ``"logistic"`` or ``"squared_hinge"``.
    learning_rate : float, default=0.1
        :math:`\eta` (alpha in the paper), about the longest step of a factor.
    initial : float, default=1.0
        :math:`\mu > 0`, the squared gradients before the first: they damp the first steps.
    power : float, default=0.5
        :math:`\gamma`, within (0, 1]: how fast rates fall with the squared gradients.
    beta : float, "auto", array or dict, default=1.0
        Penalty of the factors, once for all rows of the stream, as it is added to the sum of the
        losses. ``"auto"`` is :math:`2 \sqrt{k N}` with N the mean number of non-zeros of a row.
        An array has one value per field (see ``fields``), a dict maps fields to values; fields
        that it leaves out have ``"auto"``. The context has the mean over the fields, or none (see
        ``start``).
    penalty : {"l2", "l1", "elasticnet"}, default="l2"
        :math:`\frac12 v^2`, :math:`|v|`, or a mixture of both.
    l1_ratio : float, default=0.5
        Share of the L1 penalty in ``"elasticnet"``.
    fields : array of shape (n_features,), optional
        The field of each column, for penalties per field: numbers from 0, -1 for a column that has
        the mean over the fields; or names, for which ``beta`` is a dict. Without it each column is
        a field of its own.
    fit_intercept : bool, default=True
        Whether there is a bias b, which has no penalty.
    batch_size : int, default=1
        Rows whose gradients make one step. The last batch of an epoch, or of a ``partial_fit``, may
        be smaller.
    batch_gradient : {"sum", "mean"}, default="sum"
        What of the gradients of a batch is g.
    init_scale : float or "auto", default=0.05
        Standard deviation of the factors at the start, for a column whose typical value is 1.
        ``"auto"`` lets the interactions of a row start with 0.005 standard deviations of the
        target in all.
    start : {"auto", "exact", "evidence"}, default="auto"
        What random numbers u do. ``"exact"``: factors start as u, with
        :math:`z = -(1 / \eta_0 + \lambda_2) u - \lambda_1 \mathrm{sgn}(u)`. ``"evidence"``: factors
        are drawn to u in place of 0, :math:`z = -u / \eta_0`, so that they start at what the
        penalty leaves of u, 0 where :math:`|u| \le \lambda_1 \eta_0`; the context starts as u and
        has no penalty. ``"auto"`` is ``"evidence"`` for a penalty with an L1 part, and
        ``"exact"`` for L2 alone.
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
        Whether ``fit`` holds out rows to decide when to stop and which epoch's factors to keep.
        ``"auto"`` does so from 1,000 rows on, if there is more than one epoch.
    validation_fraction : float, default=0.1
        Share of the rows held out.
    scoring : str, optional
        What the held-out rows are judged by: ``"loss"`` (the default), ``"roc_auc"`` or
        ``"accuracy"``.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes; ``"balanced"`` is for ``fit`` only.
    shuffle : bool, default=False
        Whether each epoch of ``fit`` visits the rows in a new random order, or in the given one.
    random_state : int, RandomState or None, default=None
        Seed of start, order and hold-out.
    n_jobs : int, optional
        Threads of predictions, -1 for all cores. Learning takes one: with an int as
        ``random_state`` it is the same to the last bit every time.
    warm_start : bool, default=False
        Whether ``fit`` goes on from the last fit.
    verbose : int, default=0
        0 is silent, 1 writes a line per epoch.

    Attributes
    ----------
    intercept_ : float or ndarray of shape (n_classes,)
        Bias.
    main_effects_ : ndarray of shape (n_features,) or (n_classes, n_features)
        :math:`\langle v_i \circ \lambda, v_0 \rangle`. (``coef_``, the weights of a linear term of
        its own, is 0.)
    factors_ : dict of int to ndarray of shape (n_features, rank)
        The factors v at the key 2.
    context_ : ndarray of shape (rank,)
        The factors :math:`v_0` of the context.
    weights_ : dict of int to ndarray of shape (rank,)
        The weights :math:`\lambda` at the key 2.
    learning_rates_ : ndarray of shape (n_features, rank)
        The rate that each factor has come to.
    counts_ : ndarray of shape (n_features,)
        In how many rows each column was.
    history_ : dict of str to list of float
        Per epoch of ``fit``: ``"loss"``, the mean loss of each row before its batch was learnt
        (for the first epoch this is the progressive loss); ``"validation_..."``; ``"seconds"`` and
        ``"rows_per_second"``.
    n_iter_, t_ : int
        Epochs of the last fit, rows visited in all.
    best_iteration_, best_score_ : int, float
        The epoch whose factors were kept and its score, if validation decided.
    classes_ : ndarray of shape (n_classes,)
        Labels. More than two are learnt one against the rest.
    n_features_in_, feature_names_in_ : int, ndarray
        As in scikit-learn.

    Notes
    -----
    A stream of ``partial_fit`` is taken as it is: the bias starts at 0, and rows one by one give
    the same model as any batches of them (with numbers for ``beta`` and ``init_scale``, and
    ``batch_size=1``). Its columns should be of size 1 or so.
    ``fit`` knows all rows: the bias starts at the classes' shares, and columns are learnt in
    their own units.
    A ``partial_fit`` after it keeps these units.

    The penalty is paid once. With several epochs it weighs as much less against the losses as
    there are epochs.

    An exact start cancels an L1 penalty on the side of zero on which a factor starts: z starts
    beyond it, so a factor stays where it is until gradients move it, however strong the penalty,
    and features of hardly any rows keep small random factors. By evidence, features start at 0 if
    the penalty is strong enough. The gradient of :math:`v_{if}` is
    :math:`\ell' \lambda_f v_{0f} x_i` there, the one of a main effect: a feature comes in once the
    sum of these exceeds :math:`\lambda_1`, and interactions come with it. The context never leaves,
    so it cannot trap the others at 0. A larger ``init_scale`` makes it larger at the start, and
    features come in after fewer rows.

    The paper leaves open how z starts, how batches are summed up, and how bias and weights are
    learnt. Here ``start`` and ``batch_gradient`` say the first two, and n adds up the squares of a
    batch's gradient; bias and weights are learnt by FTRL-Proximal as well.

    References
    ----------
    Guo et al., "Strongly Hierarchical Factorization Machines and ANOVA Kernel Regression", SDM
    2018.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfm import HierarchicalFMClassifier
    >>> X = np.random.default_rng(0).normal(size=(1000, 5))
    >>> y = X[:, 0] + X[:, 1] + 2 * X[:, 0] * X[:, 1] > 0
    >>> model = HierarchicalFMClassifier(random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    >>> model.check_assumptions().holds
    True
    """

    def __init__(
        self,
        *,
        rank: int = 8,
        fit_weights: bool | str = False,
        loss: Any = "logistic",
        learning_rate: float = 0.1,
        initial: float = 1.0,
        power: float = 0.5,
        beta: Any = 1.0,
        penalty: str = "l2",
        l1_ratio: float = 0.5,
        fields: Any = None,
        fit_intercept: bool = True,
        batch_size: int = 1,
        batch_gradient: str = "sum",
        init_scale: float | str = 0.05,
        start: str = "auto",
        max_features: int | None = None,
        max_iter: Any = "auto",
        tol: float = 1e-3,
        n_iter_no_change: int = 3,
        early_stopping: bool | str = "auto",
        validation_fraction: float = 0.1,
        scoring: str | None = None,
        class_weight: Any = None,
        shuffle: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.rank = rank
        self.fit_weights = fit_weights
        self.loss = loss
        self.learning_rate = learning_rate
        self.initial = initial
        self.power = power
        self.beta = beta
        self.penalty = penalty
        self.l1_ratio = l1_ratio
        self.fields = fields
        self.fit_intercept = fit_intercept
        self.batch_size = batch_size
        self.batch_gradient = batch_gradient
        self.init_scale = init_scale
        self.start = start
        self.max_features = max_features
        self.max_iter = max_iter
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.scoring = scoring
        self.class_weight = class_weight
        self.shuffle = shuffle
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.verbose = verbose
