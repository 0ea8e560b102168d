"""Polynomial networks: learnt products of linear functions."""

from __future__ import annotations

from typing import Any

from polyfm.estimators._network import PolynomialNetwork
from polyfm.estimators.fm import FMClassifier, FMRegressor


class PolynomialNetworkRegressor(PolynomialNetwork, FMRegressor):
    r"""Polynomial network for regression: a sum of products of m linear functions.

    .. math:: f(x) = b + \langle w, x \rangle + \sum_{s=1}^r \prod_{t=1}^m \langle u_s^t, x \rangle

    for ``lifted=True`` and ``kernel="polynomial"``: every monomial of degree m can have a weight of
    its own, of either sign. It is learnt by coordinate descent on

    .. math:: \sum_i s_i \, \ell(y_i, f(x_i)) + \frac{\alpha}{2} \|w\|^2
        + \frac{\beta}{2} \sum_t \|U^t\|^2

    with the weights s of the rows; the bias is not penalised. The objective is convex in each
    coordinate and never rises. With ``lifted=False`` the model is
    :math:`b + \langle w, x \rangle + \sum_s \lambda_s \langle p_s, x \rangle^m`, learnt as by
    :class:`polyfm.FMRegressor`.

    Parameters
    ----------
    order : int, default=2
        Degree m >= 1; 1 is a linear model.
    rank : int, default=8
        Number r of bases. Lifted, each has m vectors of factors.
    kernel : {"polynomial", "anova"}, default="polynomial"
        ``"polynomial"`` multiplies features with themselves, too; ``"anova"`` multiplies distinct
        features only: with :math:`\frac{1}{m!} \sum_{j_1, \dots, j_m \text{ distinct}
        \prod_t u^t_{j_t s} x_{j_t}` in place of the product above.
    lifted : bool, default=True
        Whether the factors of a product are different vectors, or equal ones with a weight.
    fit_lower : {"augment", None}, default="augment"
        Whether dummy features of value 1 bring in the lower degrees: one for the polynomial
        kernel, m - 1 for the ANOVA kernel, or m - 2 beside a linear term.
    fit_linear : bool, default=True
        Whether there is a linear term of its own.
    fit_intercept : bool, default=True
        Whether there is a bias.
    fit_weights : bool, default=True
        Whether the weights lambda of the direct form are learnt; the lifted form has none.
    loss : str or spec, default="squared"
        ``"squared"`` or ``"huber"``; the direct form also takes ``"quantile"`` and ``"poisson"``,
        whose curvature has no bound. A spec such as ``Huber(delta=2.0)`` sets more.
    solver : {"auto", "cd", "adagrad", "sgd", "ftrl", "lbfgs"}, default="auto"
        ``"auto"`` is coordinate descent for the lifted form and AdaGrad for the direct one.
    alpha : float, array or dict, default=1.0
        Penalty of the linear term. An array has one value per field (see ``fields``), a dict
        maps fields to values; fields that it leaves out have 1.0.
    beta : float, "auto", array or dict, default="auto"
        Penalty of the factors. ``"auto"`` is :math:`2 \sqrt{r N}` with N the mean number of
        non-zeros of a row. An array or dict as for ``alpha`` may hold ``"auto"``, too.
    fields : array of shape (n_features,), optional
        The field of each column, for penalties per field: numbers from 0, -1 for a column that
        has the mean over the fields; or names, for which penalties are a dict. Without it each
        column is a field of its own.
    learning_rate : float, default=0.1
        Step size of the solvers that learn row by row; coordinate descent needs none.
    max_iter : int, default=100
        Epochs at most.
    tol : float, default=1e-3
        An epoch is an improvement if the objective (row by row: the loss) falls by more than
        ``tol`` times the loss of the best constant prediction; 0 goes on to ``max_iter``, unless
        validation stops earlier.
    n_iter_no_change : int, default=3
        Epochs without improvement after which training ends.
    early_stopping : bool or "auto", default="auto"
        Whether rows are held out to decide when to stop and which epoch's parameters to keep.
        ``"auto"`` does so from 1,000 rows on.
    validation_fraction : float, default=0.1
        Share of the rows held out.
    scoring : str, optional
        What the held-out rows are judged by: ``"loss"`` (the default), ``"rmse"`` or ``"mae"``.
    init_scale : float or "auto", default="auto"
        Standard deviation of the factors at the start, for a column whose typical value is 1.
        ``"auto"`` lets the lifted term start with a tenth of the target's standard deviation.
    random_state : int, RandomState or None, default=None
        Seed of start and hold-out (and of the order of rows, where one is drawn).
    n_jobs : int, optional
        Threads of predictions and, for ``"adagrad"`` and ``"sgd"``, of learning; -1 for all cores.
    warm_start : bool, default=False
        Whether ``fit`` goes on from the last fit: 5 + 5 epochs are 10.
    verbose : int, default=0
        0 is silent, 1 writes a line per epoch.

    Attributes
    ----------
    intercept_ : float
        Bias.
    coef_ : ndarray of shape (n_features,)
        Linear weights.
    lifted_factors_ : ndarray of shape (order, n_features, rank)
        Factors of the lifted form.
    lifted_dummy_factors_ : ndarray of shape (order, n_dummies, rank)
        Factors of its dummy features.
    factors_, dummy_factors_, weights_ : dict of int to ndarray
        Factors (n_features, rank), those of the dummy features, and weights (rank,) of the direct
        form, by degree. A lifted model has them after :meth:`to_direct`.
    degree_weights_ : ndarray of shape (order,)
        Weights of the degrees of the direct form.
    history_ : dict of str to list of float
        Per epoch: ``"loss"``, the mean loss; ``"objective"``, with the penalty, where the solver
        knows it; ``"validation_..."``; ``"seconds"`` and ``"rows_per_second"``.
    n_iter_ : int
        Epochs of the last fit.
    best_iteration_, best_score_ : int, float
        The epoch whose parameters were kept and its score, if validation decided; else the one
        with the least objective or training loss.
    t_ : int
        Rows visited.
    n_features_in_, feature_names_in_ : int, ndarray
        As in scikit-learn.

    Notes
    -----
    Learning works on the target minus its best constant, divided by its spread: penalties are those
    for a target of spread 1. Factors and predictions of a lifted model are in double precision.
    Features that were in no training row have factors and weights of 0.

    References
    ----------
    Blondel, Ishihata, Fujino, Ueda, "Polynomial Networks and Factorization Machines: New Insights
    and Efficient Training Algorithms", ICML 2016.
    Livni, Shalev-Shwartz, Shamir, "On the Computational Efficiency of Training Neural Networks",
    NIPS 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfm import PolynomialNetworkRegressor
    >>> X = np.random.default_rng(0).normal(size=(500, 5))
    >>> y = X[:, 0] ** 2 - 2 * X[:, 1] * X[:, 2]
    >>> PolynomialNetworkRegressor(random_state=0).fit(X, y).score(X, y) > 0.95
    True
    """

    def __init__(
        self,
        *,
        order: int = 2,
        rank: int = 8,
        kernel: str = "polynomial",
        lifted: bool = True,
        fit_lower: str | None = "augment",
        fit_linear: bool = True,
        fit_intercept: bool = True,
        fit_weights: bool = True,
        loss: Any = "squared",
        solver: Any = "auto",
        alpha: Any = 1.0,
        beta: Any = "auto",
        fields: Any = None,
        learning_rate: float = 0.1,
        max_iter: int = 100,
        tol: float = 1e-3,
        n_iter_no_change: int = 3,
        early_stopping: bool | str = "auto",
        validation_fraction: float = 0.1,
        scoring: str | None = None,
        init_scale: float | str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.order = order
        self.rank = rank
        self.kernel = kernel
        self.lifted = lifted
        self.fit_lower = fit_lower
        self.fit_linear = fit_linear
        self.fit_intercept = fit_intercept
        self.fit_weights = fit_weights
        self.loss = loss
        self.solver = solver
        self.alpha = alpha
        self.beta = beta
        self.fields = fields
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.scoring = scoring
        self.init_scale = init_scale
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.verbose = verbose


class PolynomialNetworkClassifier(PolynomialNetwork, FMClassifier):
    r"""Polynomial network for classification: a sum of products of m linear functions.

    .. math:: f(x) = b + \langle w, x \rangle + \sum_{s=1}^r \prod_{t=1}^m \langle u_s^t, x \rangle

    for ``lifted=True`` and ``kernel="polynomial"``: every monomial of degree m can have a weight of
    its own, of either sign. It is learnt by coordinate descent on

    .. math:: \sum_i s_i \, \ell(y_i, f(x_i)) + \frac{\alpha}{2} \|w\|^2
        + \frac{\beta}{2} \sum_t \|U^t\|^2

    with the weights s of the rows; the bias is not penalised. The objective is convex in each
    coordinate and never rises. With ``lifted=False`` the model is
    :math:`b + \langle w, x \rangle + \sum_s \lambda_s \langle p_s, x \rangle^m`, learnt as by
    :class:`polyfm.FMClassifier`.

    Parameters
    ----------
    order : int, default=2
        Degree m >= 1; 1 is a linear model.
    rank : int, default=8
        Number r of bases. Lifted, each has m vectors of factors.
    kernel : {"polynomial", "anova"}, default="polynomial"
        ``"polynomial"`` multiplies features with themselves, too; ``"anova"`` multiplies distinct
        features only: with :math:`\frac{1}{m!} \sum_{j_1, \dots, j_m \text{ distinct}
        \prod_t u^t_{j_t s} x_{j_t}` in place of the product above.
    lifted : bool, default=True
        Whether the factors of a product are different vectors, or equal ones with a weight.
    fit_lower : {"augment", None}, default="augment"
        Whether dummy features of value 1 bring in the lower degrees: one for the polynomial
        kernel, m - 1 for the ANOVA kernel, or m - 2 beside a linear term.
    fit_linear : bool, default=True
        Whether there is a linear term of its own.
    fit_intercept : bool, default=True
        Whether there is a bias.
    fit_weights : bool, default=True
        Whether the weights lambda of the direct form are learnt; the lifted form has none.
    loss : str or spec, default="logistic"
        ``"logistic"`` or ``"squared_hinge"``.
    solver : {"auto", "cd", "adagrad", "sgd", "ftrl", "lbfgs"}, default="auto"
        ``"auto"`` is coordinate descent for the lifted form and AdaGrad for the direct one.
    alpha : float, array or dict, default=1.0
        Penalty of the linear term. An array has one value per field (see ``fields``), a dict
        maps fields to values; fields that it leaves out have 1.0.
    beta : float, "auto", array or dict, default="auto"
        Penalty of the factors. ``"auto"`` is :math:`2 \sqrt{r N}` with N the mean number of
        non-zeros of a row. An array or dict as for ``alpha`` may hold ``"auto"``, too.
    fields : array of shape (n_features,), optional
        The field of each column, for penalties per field: numbers from 0, -1 for a column that
        has the mean over the fields; or names, for which penalties are a dict. Without it each
        column is a field of its own.
    learning_rate : float, default=0.1
        Step size of the solvers that learn row by row; coordinate descent needs none.
    max_iter : int, default=100
        Epochs at most.
    tol : float, default=1e-3
        An epoch is an improvement if the objective (row by row: the loss) falls by more than
        ``tol`` times the loss of the best constant prediction; 0 goes on to ``max_iter``, unless
        validation stops earlier.
    n_iter_no_change : int, default=3
        Epochs without improvement after which training ends.
    early_stopping : bool or "auto", default="auto"
        Whether rows are held out to decide when to stop and which epoch's parameters to keep.
        ``"auto"`` does so from 1,000 rows on.
    validation_fraction : float, default=0.1
        Share of the rows held out.
    scoring : str, optional
        What the held-out rows are judged by: ``"loss"`` (the default), ``"roc_auc"`` (two classes
        only) or ``"accuracy"``.
    init_scale : float or "auto", default="auto"
        Standard deviation of the factors at the start, for a column whose typical value is 1.
        ``"auto"`` lets the lifted term start with a tenth of the target's standard deviation.
    random_state : int, RandomState or None, default=None
        Seed of start and hold-out (and of the order of rows, where one is drawn).
    n_jobs : int, optional
        Threads of predictions and, for ``"adagrad"`` and ``"sgd"``, of learning; -1 for all cores.
    warm_start : bool, default=False
        Whether ``fit`` goes on from the last fit: 5 + 5 epochs are 10.
    verbose : int, default=0
        0 is silent, 1 writes a line per epoch.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, multiplied with those of the rows.

    Attributes
    ----------
    intercept_ : float or ndarray of shape (n_classes,)
        Bias.
    coef_ : ndarray of shape (n_features,) or (n_classes, n_features)
        Linear weights.
    lifted_factors_ : ndarray of shape (order, n_features, rank) or (n_classes, ...)
        Factors of the lifted form.
    lifted_dummy_factors_ : ndarray of shape (order, n_dummies, rank)
        Factors of its dummy features.
    factors_, dummy_factors_, weights_ : dict of int to ndarray
        Factors (n_features, rank), those of the dummy features, and weights (rank,) of the direct
        form, by degree. A lifted model has them after :meth:`to_direct`.
    degree_weights_ : ndarray of shape (order,)
        Weights of the degrees of the direct form.
    history_ : dict of str to list of float
        Per epoch: ``"loss"``, the mean loss; ``"objective"``, with the penalty, where the solver
        knows it; ``"validation_..."``; ``"seconds"`` and ``"rows_per_second"``.
    n_iter_ : int
        Epochs of the last fit.
    best_iteration_, best_score_ : int, float
        The epoch whose parameters were kept and its score, if validation decided; else the one
        with the least objective or training loss.
    t_ : int
        Rows visited.
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    n_features_in_, feature_names_in_ : int, ndarray
        As in scikit-learn.

    Notes
    -----
    Two classes share one model, whose score is that of ``classes_[1]``; more have one each, against
    the rest. Factors and predictions of a lifted model are in double precision. Features that were
    in no training row have factors and weights of 0.

    References
    ----------
    Blondel, Ishihata, Fujino, Ueda, "Polynomial Networks and Factorization Machines: New Insights
    and Efficient Training Algorithms", ICML 2016.
    Livni, Shalev-Shwartz, Shamir, "On the Computational Efficiency of Training Neural Networks",
    NIPS 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfm import PolynomialNetworkClassifier
    >>> X = np.random.default_rng(0).normal(size=(500, 4))
    >>> y = np.where(X[:, 0] ** 2 > X[:, 1] * X[:, 2], "large", "small")
    >>> PolynomialNetworkClassifier(random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        *,
        order: int = 2,
        rank: int = 8,
        kernel: str = "polynomial",
        lifted: bool = True,
        fit_lower: str | None = "augment",
        fit_linear: bool = True,
        fit_intercept: bool = True,
        fit_weights: bool = True,
        loss: Any = "logistic",
        solver: Any = "auto",
        alpha: Any = 1.0,
        beta: Any = "auto",
        fields: Any = None,
        learning_rate: float = 0.1,
        max_iter: int = 100,
        tol: float = 1e-3,
        n_iter_no_change: int = 3,
        early_stopping: bool | str = "auto",
        validation_fraction: float = 0.1,
        scoring: str | None = None,
        init_scale: float | str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
        verbose: int = 0,
        class_weight: Any = None,
    ) -> None:
        self.order = order
        self.rank = rank
        self.kernel = kernel
        self.lifted = lifted
        self.fit_lower = fit_lower
        self.fit_linear = fit_linear
        self.fit_intercept = fit_intercept
        self.fit_weights = fit_weights
        self.loss = loss
        self.solver = solver
        self.alpha = alpha
        self.beta = beta
        self.fields = fields
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.scoring = scoring
        self.init_scale = init_scale
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.verbose = verbose
        self.class_weight = class_weight
