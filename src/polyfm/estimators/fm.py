"""Factorization machines of any order."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import assert_all_finite, compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from polyfm.data.dataset import Dataset
from polyfm.data.source import as_source, is_source
from polyfm.data.validation import check_length, check_real_target
from polyfm.estimators import _from_sources, _parts
from polyfm.estimators._base import BaseFM
from polyfm.estimators._events import LabelEvents, NumberEvents
from polyfm.estimators._transaction import all_or_nothing
from polyfm.estimators._validation import CLASSIFICATION_METRICS, REGRESSION_METRICS, Metric
from polyfm.losses import Logistic, SquaredHinge
from polyfm.losses import contract as losses


class FMRegressor(RegressorMixin, NumberEvents, BaseFM):
    r"""Factorization machine for regression, of any order.

    .. math:: f(x) = b + \langle w, x \rangle + \sum_{t=2}^m \sum_{s=1}^k A^t(p_s^{(t)}, x),
        \qquad A^t(p, x) = \sum_{j_1 < \dots < j_t} \prod_{r=1}^t p_{j_r} x_{j_r}

    It is learnt row by row by minimising

    .. math:: \sum_i s_i \, \ell(y_i, f(x_i)) + \alpha \, \Omega(w) + \beta \, \Omega(P)

    with the weights s of the rows; the bias is not penalised. (Papers that minimise the mean loss
    have penalties of :math:`\alpha / n`.)

    Parameters
    ----------
    order : int, default=2
        Highest degree m >= 1 of the interactions; 1 is a linear model.
    rank : int, default=8
        Number k of bases (latent factors) of each matrix of factors.
    kernel : str or spec, default="anova"
        How features combine: ``"anova"`` (each combination of distinct features once),
        ``"inhomogeneous-anova"`` (one matrix of factors for all degrees), ``"all-subsets"``
        (combinations of every size; ``order`` plays no part) or ``"polynomial"`` (features combine
        with themselves, too). A spec is an object of your own, see :mod:`polyfm.kernels`.
    fit_lower : {"explicit", "augment", None}, default="explicit"
        How ``"anova"`` and ``"polynomial"`` kernels cover the degrees from 2 to m - 1: each by a
        matrix of its own, by dummy features of value 1 that share the matrix, or not at all.
    fit_linear : bool, default=True
        Whether there is a linear term.
    fit_intercept : bool, default=True
        Whether there is a bias.
    fit_weights : {False, True, "signs"}, default=False
        Whether the weights are learnt: those of the bases (within [-1, 1] of their scale, or with
        ``"cd"`` under a lasso, and bases of weight 0 are dropped at the end), or for
        ``"inhomogeneous-anova"`` those of the degrees, relative to the lowest. ``"signs"`` keeps
        them at 1 and -1 in turn, which bases of even degree need to be free in sign: a sum of
        squares alone is never negative.
    loss : str or spec, default="squared"
        ``"squared"``, ``"huber"``, ``"quantile"`` or ``"poisson"``; a spec such as
        ``Huber(delta=2.0)`` sets more, in the unit of the target.
    solver : {"adagrad", "sgd", "ftrl", "cd", "lbfgs"} or spec, default="adagrad"
        ``"adagrad"``, ``"sgd"`` and ``"ftrl"`` learn row by row. ``"ftrl"`` (FTRL-Proximal)
        pays each penalty once, whatever the number of epochs, makes exact zeros with
        ``penalty="l1"``, and learns on one thread. ``"cd"`` is coordinate descent: column
        by column, each step the exact minimum (for losses other than the squared one, of an upper
        bound), no learning rate, an objective that never rises; not for ``kernel="polynomial"``.
        ``"lbfgs"`` moves all parameters at once by the gradient of all rows (L-BFGS), no learning
        rate, an objective that never rises; for ``penalty="l2"`` and losses without corners (all
        but ``"quantile"``). A spec of :mod:`polyfm.updates` such as ``AdaGrad(0.1, 5.0)`` learns
        row by row and brings its own learning rate.
    alpha : float, array or dict, default=1.0
        Penalty of the linear term. An array has one value per field (see ``fields``), a dict
        maps fields to values; fields that it leaves out have 1.0.
    beta : float, "auto", array or dict, default="auto"
        Penalty of the factors. ``"auto"`` is :math:`2 \sqrt{k N}` with N the mean number of
        non-zeros of a row: the more terms meet, the stronger. An array or dict as for ``alpha``
        may hold ``"auto"``, too, which is what fields have that a dict leaves out. Parameters of
        no field (dummy features, weights of degrees) have the mean over the fields.
    fields : array of shape (n_features,), optional
        The field of each column, for penalties per field: numbers from 0, as ``fields_`` of
        :class:`polyfm.data.OneHotFieldEncoder` and ``fields`` of a data set give them, -1 for a
        column that has the mean over the fields; or names, for which penalties are a dict.
        Without it each column is a field of its own.
    penalty : {"l2", "l1", "elasticnet"}, default="l2"
        :math:`\Omega(v) = \frac12 v^2`, :math:`|v|`, or a mixture.
    l1_ratio : float, default=0.5
        Share of the L1 penalty in ``"elasticnet"``.
    learning_rate : float, default=0.1
        Step size, in the unit of the standardised target and column.
    schedule : {"constant", "invscaling", "optimal"}, default="constant"
        How the step of ``"sgd"`` falls with the rows t seen: not, as
        :math:`\eta / (1 + t)^q`, or as :math:`\eta / (1 + \eta \alpha t / n)`.
    power_t : float, default=0.25
        The exponent q of ``"invscaling"``.
    max_features : int, optional
        How many columns there may come to be. With it ``partial_fit`` takes rows with columns that
        are new, columns without training have no weight in predictions, and rows can be
        dictionaries and frames, whose names are hashed to this many columns. Without it all rows
        have the columns of the first ones.
    max_iter : int, default=100
        Epochs at most.
    tol : float, default=1e-3
        An epoch is an improvement if the loss falls by more than ``tol`` times the loss of the
        best constant prediction; 0 goes on to ``max_iter``, unless validation stops earlier.
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
        ``"auto"`` makes the terms of degree t start with :math:`0.005^{2/t}` standard deviations of
        the target in all.
    block_size : int, default=8
        How many factors of a feature ``"cd"`` learns together, 1 to 8. Fewer need more sweeps.
    shuffle : bool, default=True
        Whether each epoch visits the rows in a new random order.
    random_state : int, RandomState or None, default=None
        Seed of start, order and hold-out. With an int and ``n_jobs=1`` a fit is reproducible bit
        for bit.
    n_jobs : int, optional
        Threads, -1 for all cores. More than one share the parameters without locks: fast, but
        not reproducible bit for bit. Predictions do not depend on it.
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
    factors_ : dict of int to ndarray of shape (n_features, rank)
        Factors by degree; the highest degree where a matrix serves several, 0 for all-subsets.
    dummy_factors_ : dict of int to ndarray of shape (n_dummies, rank)
        Factors of the dummy features, see ``fit_lower``.
    weights_ : dict of int to ndarray of shape (rank,)
        Weights of the bases.
    degree_weights_ : ndarray of shape (order,)
        Weights of the degrees; 0 for a degree without part.
    history_ : dict of str to list of float
        Per epoch: ``"loss"``, the mean loss of each row just before it was learnt (it is measured
        while the parameters move, unlike the validation); ``"validation_..."``; ``"seconds"`` and
        ``"rows_per_second"``.
    n_iter_ : int
        Epochs of the last fit.
    best_iteration_, best_score_ : int, float
        The epoch whose parameters were kept and its score, if validation decided; else the one
        with the least training loss.
    t_ : int
        Rows visited.
    n_features_in_, feature_names_in_ : int, ndarray
        As in scikit-learn.

    Notes
    -----
    Features that were in no training row have factors and weights of 0: they change no prediction.

    Squared, Huber and quantile loss are learnt on the target minus its best constant, divided by
    its spread s: penalties and ``learning_rate`` are those for a target of spread 1. The loss of
    the objective above is then that of the standardised target; fitted attributes and
    ``history_`` are in the target's unit.

    References
    ----------
    Rendle, "Factorization Machines", ICDM 2010.
    Blondel, Fujino, Ueda, Ishihata, "Higher-Order Factorization Machines", NIPS 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfm import FMRegressor
    >>> X = np.random.default_rng(0).normal(size=(500, 5))
    >>> y = 3 * X[:, 0] + 2 * X[:, 1] * X[:, 2]
    >>> FMRegressor(random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        *,
        order: int = 2,
        rank: int = 8,
        kernel: Any = "anova",
        fit_lower: str | None = "explicit",
        fit_linear: bool = True,
        fit_intercept: bool = True,
        fit_weights: bool | str = False,
        loss: Any = "squared",
        solver: Any = "adagrad",
        alpha: Any = 1.0,
        beta: Any = "auto",
        fields: Any = None,
        penalty: str = "l2",
        l1_ratio: float = 0.5,
        learning_rate: float = 0.1,
        schedule: str = "constant",
        power_t: float = 0.25,
        max_features: int | None = None,
        max_iter: int = 100,
        tol: float = 1e-3,
        n_iter_no_change: int = 3,
        early_stopping: bool | str = "auto",
        validation_fraction: float = 0.1,
        scoring: str | None = None,
        init_scale: float | str = "auto",
        block_size: int = 8,
        shuffle: bool = True,
        random_state: Any = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.order = order
        self.rank = rank
        self.kernel = kernel
        self.fit_lower = fit_lower
        self.fit_linear = fit_linear
        self.fit_intercept = fit_intercept
        self.fit_weights = fit_weights
        self.loss = loss
        self.solver = solver
        self.alpha = alpha
        self.beta = beta
        self.fields = fields
        self.penalty = penalty
        self.l1_ratio = l1_ratio
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.power_t = power_t
        self.max_features = max_features
        self.max_iter = max_iter
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.scoring = scoring
        self.init_scale = init_scale
        self.block_size = block_size
        self.shuffle = shuffle
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.verbose = verbose

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the target.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
            For ``loss="poisson"`` the expected count, :math:`e^{f(x)}`; else :math:`f(x)`.
        """
        raw = self._raw_scores(X)[:, 0]
        return np.asarray(losses.inverse_link(self._loss, raw))

    def _check_targets(
        self,
        y: Any,
        n_rows: int,
        weight: NDArray[np.float64],
        *,
        reset: bool,
        streaming: bool,
        judging: bool,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return self._known_targets(check_real_target(y, n_rows), weight)

    def _known_targets(
        self, y: NDArray[Any], weight: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return y.astype(np.float64, copy=False)[:, None], weight

    def _check_loss(self, loss: Any, targets: NDArray[np.float64]) -> None:
        if isinstance(loss, Logistic | SquaredHinge):
            raise ValueError(f"loss={self.loss!r} is for classes: use FMClassifier.")
        problem = losses.invalid_targets(loss, targets) if targets.size else ""
        if problem:
            raise ValueError(f"{problem}, got {targets.min():.6g}.")

    @property
    def _metrics(self) -> dict[str, Metric]:
        return REGRESSION_METRICS


class FMClassifier(ClassifierMixin, LabelEvents, BaseFM):
    r"""Factorization machine for classification, of any order.

    .. math:: f(x) = b + \langle w, x \rangle + \sum_{t=2}^m \sum_{s=1}^k A^t(p_s^{(t)}, x),
        \qquad A^t(p, x) = \sum_{j_1 < \dots < j_t} \prod_{r=1}^t p_{j_r} x_{j_r}

    It is learnt row by row by minimising

    .. math:: \sum_i s_i \, \ell(y_i, f(x_i)) + \alpha \, \Omega(w) + \beta \, \Omega(P)

    with the weights s of the rows; the bias is not penalised. (Papers that minimise the mean loss
    have penalties of :math:`\alpha / n`.)

    Parameters
    ----------
    order : int, default=2
        Highest degree m >= 1 of the interactions; 1 is a linear model.
    rank : int, default=8
        Number k of bases (latent factors) of each matrix of factors.
    kernel : str or spec, default="anova"
        How features combine: ``"anova"`` (each combination of distinct features once),
        ``"inhomogeneous-anova"`` (one matrix of factors for all degrees), ``"all-subsets"``
        (combinations of every size; ``order`` plays no part) or ``"polynomial"`` (features combine
        with themselves, too). A spec is an object of your own, see :mod:`polyfm.kernels`.
    fit_lower : {"explicit", "augment", None}, default="explicit"
        How ``"anova"`` and ``"polynomial"`` kernels cover the degrees from 2 to m - 1: each by a
        matrix of its own, by dummy features of value 1 that share the matrix, or not at all.
    fit_linear : bool, default=True
        Whether there is a linear term.
    fit_intercept : bool, default=True
        Whether there is a bias.
    fit_weights : {False, True, "signs"}, default=False
        Whether the weights are learnt: those of the bases (within [-1, 1] of their scale, or with
        ``"cd"`` under a lasso, and bases of weight 0 are dropped at the end), or for
        ``"inhomogeneous-anova"`` those of the degrees, relative to the lowest. ``"signs"`` keeps
        them at 1 and -1 in turn, which bases of even degree need to be free in sign: a sum of
        squares alone is never negative.
    loss : str or spec, default="logistic"
        ``"logistic"`` or ``"squared_hinge"``.
    solver : {"adagrad", "sgd", "ftrl", "cd", "lbfgs"} or spec, default="adagrad"
        ``"adagrad"``, ``"sgd"`` and ``"ftrl"`` learn row by row. ``"ftrl"`` (FTRL-Proximal)
        pays each penalty once, whatever the number of epochs, makes exact zeros with
        ``penalty="l1"``, and learns on one thread. ``"cd"`` is coordinate descent: column
        by column, each step the exact minimum (for losses other than the squared one, of an upper
        bound), no learning rate, an objective that never rises; not for ``kernel="polynomial"``.
        ``"lbfgs"`` moves all parameters at once by the gradient of all rows (L-BFGS), no learning
        rate, an objective that never rises; for ``penalty="l2"`` and losses without corners (all
        but ``"quantile"``). A spec of :mod:`polyfm.updates` such as ``AdaGrad(0.1, 5.0)`` learns
        row by row and brings its own learning rate.
    alpha : float, array or dict, default=1.0
        Penalty of the linear term. An array has one value per field (see ``fields``), a dict
        maps fields to values; fields that it leaves out have 1.0.
    beta : float, "auto", array or dict, default="auto"
        Penalty of the factors. ``"auto"`` is :math:`2 \sqrt{k N}` with N the mean number of
        non-zeros of a row: the more terms meet, the stronger. An array or dict as for ``alpha``
        may hold ``"auto"``, too, which is what fields have that a dict leaves out. Parameters of
        no field (dummy features, weights of degrees) have the mean over the fields.
    fields : array of shape (n_features,), optional
        The field of each column, for penalties per field: numbers from 0, as ``fields_`` of
        :class:`polyfm.data.OneHotFieldEncoder` and ``fields`` of a data set give them, -1 for a
        column that has the mean over the fields; or names, for which penalties are a dict.
        Without it each column is a field of its own.
    penalty : {"l2", "l1", "elasticnet"}, default="l2"
        :math:`\Omega(v) = \frac12 v^2`, :math:`|v|`, or a mixture.
    l1_ratio : float, default=0.5
        Share of the L1 penalty in ``"elasticnet"``.
    learning_rate : float, default=0.1
        Step size, in the unit of the standardised target and column.
    schedule : {"constant", "invscaling", "optimal"}, default="constant"
        How the step of ``"sgd"`` falls with the rows t seen: not, as
        :math:`\eta / (1 + t)^q`, or as :math:`\eta / (1 + \eta \alpha t / n)`.
    power_t : float, default=0.25
        The exponent q of ``"invscaling"``.
    max_features : int, optional
        How many columns there may come to be. With it ``partial_fit`` takes rows with columns that
        are new, columns without training have no weight in predictions, and rows can be
        dictionaries and frames, whose names are hashed to this many columns. Without it all rows
        have the columns of the first ones.
    max_iter : int, default=100
        Epochs at most.
    tol : float, default=1e-3
        An epoch is an improvement if the loss falls by more than ``tol`` times the loss of the
        best constant prediction; 0 goes on to ``max_iter``, unless validation stops earlier.
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
        ``"auto"`` makes the terms of degree t start with :math:`0.005^{2/t}` standard deviations of
        the target in all.
    block_size : int, default=8
        How many factors of a feature ``"cd"`` learns together, 1 to 8. Fewer need more sweeps.
    shuffle : bool, default=True
        Whether each epoch visits the rows in a new random order.
    random_state : int, RandomState or None, default=None
        Seed of start, order and hold-out. With an int and ``n_jobs=1`` a fit is reproducible bit
        for bit.
    n_jobs : int, optional
        Threads, -1 for all cores. More than one share the parameters without locks: fast, but
        not reproducible bit for bit. Predictions do not depend on it.
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
    factors_ : dict of int to ndarray of shape (n_features, rank) or (n_classes, n_features, rank)
        Factors by degree; the highest degree where a matrix serves several, 0 for all-subsets.
    dummy_factors_ : dict of int to ndarray of shape (n_dummies, rank)
        Factors of the dummy features, see ``fit_lower``.
    weights_ : dict of int to ndarray of shape (rank,)
        Weights of the bases.
    degree_weights_ : ndarray of shape (order,)
        Weights of the degrees; 0 for a degree without part.
    history_ : dict of str to list of float
        Per epoch: ``"loss"``, the mean loss of each row just before it was learnt (it is measured
        while the parameters move, unlike the validation); ``"validation_..."``; ``"seconds"`` and
        ``"rows_per_second"``.
    n_iter_ : int
        Epochs of the last fit.
    best_iteration_, best_score_ : int, float
        The epoch whose parameters were kept and its score, if validation decided; else the one
        with the least training loss.
    t_ : int
        Rows visited.
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    n_features_in_, feature_names_in_ : int, ndarray
        As in scikit-learn.

    Notes
    -----
    Two classes share one model, whose score is that of ``classes_[1]``; more have one each, against
    the rest. Features that were in no training row have factors and weights of 0: they change no
    prediction.

    References
    ----------
    Rendle, "Factorization Machines", ICDM 2010.
    Blondel, Fujino, Ueda, Ishihata, "Higher-Order Factorization Machines", NIPS 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfm import FMClassifier
    >>> X = np.random.default_rng(0).choice([-1.0, 1.0], size=(500, 4))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same", "different")
    >>> FMClassifier(random_state=0).fit(X, y).score(X, y)
    1.0
    """

    def __init__(
        self,
        *,
        order: int = 2,
        rank: int = 8,
        kernel: Any = "anova",
        fit_lower: str | None = "explicit",
        fit_linear: bool = True,
        fit_intercept: bool = True,
        fit_weights: bool | str = False,
        loss: Any = "logistic",
        solver: Any = "adagrad",
        alpha: Any = 1.0,
        beta: Any = "auto",
        fields: Any = None,
        penalty: str = "l2",
        l1_ratio: float = 0.5,
        learning_rate: float = 0.1,
        schedule: str = "constant",
        power_t: float = 0.25,
        max_features: int | None = None,
        max_iter: int = 100,
        tol: float = 1e-3,
        n_iter_no_change: int = 3,
        early_stopping: bool | str = "auto",
        validation_fraction: float = 0.1,
        scoring: str | None = None,
        init_scale: float | str = "auto",
        block_size: int = 8,
        shuffle: bool = True,
        random_state: Any = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
        verbose: int = 0,
        class_weight: Any = None,
    ) -> None:
        self.order = order
        self.rank = rank
        self.kernel = kernel
        self.fit_lower = fit_lower
        self.fit_linear = fit_linear
        self.fit_intercept = fit_intercept
        self.fit_weights = fit_weights
        self.loss = loss
        self.solver = solver
        self.alpha = alpha
        self.beta = beta
        self.fields = fields
        self.penalty = penalty
        self.l1_ratio = l1_ratio
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.power_t = power_t
        self.max_features = max_features
        self.max_iter = max_iter
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.scoring = scoring
        self.init_scale = init_scale
        self.block_size = block_size
        self.shuffle = shuffle
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.verbose = verbose
        self.class_weight = class_weight

    @available_if(_parts.learns_row_by_row)  # type: ignore[untyped-decorator]
    def partial_fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, classes: Any = None
    ) -> Self:
        """Learn from some more rows, each once and in their order.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features), or source of rows
            Features; or where rows with labels come from, as for :meth:`fit`.
        y : array of shape (n_rows,)
            Labels; None for a source, which has them.
        sample_weight : array of shape (n_rows,), optional
            Weights >= 0. Rows of weight 0 change nothing, not even a counter.
        classes : array of shape (n_classes,), optional
            All labels that will ever come. Needed in the first call if its ``y`` lacks some.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For input that cannot be learnt from, such as an unknown label. The estimator is then
            as it was before.
        DivergenceError
            When predictions become infinite. The estimator is then as it was before.

        Notes
        -----
        What the parameters leave to the data ("auto", the units of the columns) is read off the
        first batch.
        """
        if is_source(X):
            _from_sources.check_alone(self, y=y, sample_weight=sample_weight)
            _from_sources.partial_fit_source(self, as_source(X), classes=classes)
            return self
        return self._partial_fit_classes(X, y, sample_weight, classes)

    @all_or_nothing
    def _partial_fit_classes(self, X: Any, y: Any, sample_weight: Any, classes: Any) -> Self:
        if self.class_weight == "balanced":
            raise ValueError(
                "class_weight='balanced' is not supported by partial_fit, which does not know the "
                "share of each class: give class_weight as a dict."
            )
        if classes is not None:
            self._announce(np.unique(classes))
        return self._partial_fit(X, y, sample_weight)

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Return the raw predictions f(x).

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_classes)
            With two classes the score of ``classes_[1]``, else one column per class.
        """
        raw = self._raw_scores(X)
        return raw[:, 0] if raw.shape[1] == 1 else raw

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the label.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
            Labels out of ``classes_``.
        """
        raw = self._raw_scores(X)
        best = (raw[:, 0] > 0).astype(np.intp) if raw.shape[1] == 1 else raw.argmax(axis=1)
        return np.asarray(self.classes_[best])

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Predict the probability of each label.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Columns in the order of ``classes_``, each inside (0, 1). With more than two classes
            the one-against-rest probabilities are divided by their sum.
        """
        return self._probabilities(self._raw_scores(X))

    def _probabilities(self, raw: NDArray[Any]) -> NDArray[Any]:
        smallest = np.finfo(raw.dtype).eps
        p = np.clip(losses.inverse_link(self._loss, raw), smallest, 1.0 - smallest)
        if p.shape[1] == 1:
            return np.hstack([1.0 - p, p])
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    def _check_targets(
        self,
        y: Any,
        n_rows: int,
        weight: NDArray[np.float64],
        *,
        reset: bool,
        streaming: bool,
        judging: bool,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        labels = self._check_labels(y, n_rows)
        if reset and not (streaming and hasattr(self, "classes_")):
            self._set_classes(np.unique(labels[weight > 0]))
        codes = self._codes(labels, weight > 0)
        if self.class_weight is not None and not judging:
            self._class_factors = self._balance(labels[weight > 0])
        return self._coded(codes, weight)

    def _known_targets(
        self, y: NDArray[Any], weight: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return self._coded(self._codes(y, weight > 0), weight)

    def _coded(
        self, codes: NDArray[np.intp], weight: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the targets of each learner, and the rows' weights with those of the classes."""
        if self.class_weight is not None:
            weight = weight * self._class_factors[codes]
        n_learners = 1 if len(self.classes_) == 2 else len(self.classes_)
        positive = np.arange(n_learners) if n_learners > 1 else np.array([1])
        return np.where(codes[:, None] == positive, 1.0, -1.0), weight

    def _meet_targets(self, dataset: Dataset) -> None:
        names = dataset.label_names
        if names is not None and self.class_weight is None and not dataset.has_weights:
            self._set_classes(np.unique(names))
            return
        labels = np.asarray(dataset.targets)
        if dataset.weights is not None:
            labels = labels[dataset.weights > 0]
        self._set_classes(np.unique(labels))
        if self.class_weight is not None:
            self._class_factors = self._balance(labels)

    def _balance(self, labels: NDArray[Any]) -> NDArray[np.float64]:
        """Return the weight of each class, which training rows decide if it is "balanced"."""
        factors = compute_class_weight(self.class_weight, classes=self.classes_, y=labels)
        if not (np.isfinite(factors).all() and (factors >= 0).all()):
            raise ValueError(f"class_weight must be finite and >= 0, got {self.class_weight!r}.")
        return np.asarray(factors)

    def _check_labels(self, y: Any, n_rows: int) -> NDArray[Any]:
        if np.asarray(y).dtype.kind == "f":
            # First, since the next check casts, which NumPy warns of where it finds NaN.
            assert_all_finite(y, input_name="y")
        if np.asarray(y).dtype.kind == "O":
            _refuse_missing(np.asarray(y).ravel())
        check_classification_targets(y)
        labels = column_or_1d(y, warn=True)
        check_length("y", len(labels), n_rows)
        return np.asarray(labels)

    def _announce(self, classes: NDArray[Any]) -> None:
        """Take in the classes that partial_fit is told of."""
        if not self.__sklearn_is_fitted__():
            self._set_classes(classes)
        elif not np.array_equal(classes, self.classes_):
            raise ValueError(
                f"classes={list(classes)} differ from those of the first call, "
                f"{list(self.classes_)}."
            )

    def _set_classes(self, classes: NDArray[Any]) -> None:
        if len(classes) < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least two classes, got {list(classes)}. "
                "partial_fit takes a batch of one class if classes= names them all."
            )
        self.classes_ = classes

    def _codes(self, labels: NDArray[Any], counts: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Return each label's place in ``classes_``; rows that do not count may have any label."""
        kinds = {self.classes_.dtype.kind, labels.dtype.kind}
        if len(self.classes_) == 2 and kinds <= set("biuf"):
            places = np.asarray(labels == self.classes_[1], dtype=np.intp)  # without a search
        else:
            places = np.clip(np.searchsorted(self.classes_, labels), 0, len(self.classes_) - 1)
        unknown = np.flatnonzero((self.classes_[places] != labels) & counts)
        if unknown.size:
            raise ValueError(
                f"y contains the label {labels[unknown[0]]!r} in row {unknown[0]}, which is not "
                f"among the classes {list(self.classes_)}."
            )
        return places

    def _check_loss(self, loss: Any, targets: NDArray[np.float64]) -> None:
        if not isinstance(loss, Logistic | SquaredHinge):
            raise ValueError(f"loss={self.loss!r} is for numbers: use FMRegressor.")

    def _labels_to_stratify(self, targets: NDArray[np.float64]) -> NDArray[Any] | None:
        return targets.argmax(axis=1) if targets.shape[1] > 1 else targets[:, 0]

    @property
    def _metrics(self) -> dict[str, Metric]:
        return CLASSIFICATION_METRICS


def _refuse_missing(labels: NDArray[Any]) -> None:
    """Raise a ValueError for the first label that is None or NaN."""
    for row, label in enumerate(labels):
        if label is None or label != label:
            raise ValueError(f"y has no label in row {row} (it is {label!r}): leave such rows out.")
