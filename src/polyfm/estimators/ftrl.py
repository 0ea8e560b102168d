"""Linear models by FTRL-Proximal."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyfm.estimators._numbers import check_number
from polyfm.estimators._streamed import Streamed
from polyfm.estimators.fm import FMClassifier, FMRegressor
from polyfm.solvers.learner import Settings
from polyfm.updates import FTRLProximal


class FTRL(Streamed):
    """Base of the linear models: a factorization machine of order 1."""

    damping: float
    # What a model without factors leaves to the others.
    order = 1
    rank = 0
    kernel = "anova"
    fit_lower: str | None = None
    fit_linear = True
    fit_weights: bool | str = False
    beta: Any = 0.0
    init_scale: float | str = 1.0

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("damping", self.damping, Real, above=0)

    def _settings(self, loss: Any, n_rows: int, seed: int) -> Settings:
        settings = super()._settings(loss, n_rows, seed)
        return replace(settings, rule=FTRLProximal(settings.rule.learning_rate, self.damping, 0.0))

    @property
    def learning_rates_(self) -> NDArray[np.float64]:
        """Present learning rate of each weight, (n_features,) or (n_classes, n_features).

        In the unit of the standardised target and column, if ``fit`` came first.
        """
        self._exported  # noqa: B018  # says that there is none before fit
        return self._rates_of("linear")


class FTRLRegressor(FTRL, FMRegressor):
    r"""Linear regression by FTRL-Proximal.

    .. math:: f(x) = b + \langle w, x \rangle

    is learnt from one row after the other. With g the gradient of the loss of a row with respect to
    a weight, each weight of a feature of the row moves by

    .. math:: \sigma = \frac{\sqrt{n + g^2} - \sqrt n}{\eta}, \quad
        z \leftarrow z + g - \sigma w, \quad n \leftarrow n + g^2, \quad
        w = \begin{cases} 0 & |z| \le \lambda_1 \\
        -\dfrac{z - \mathrm{sgn}(z) \lambda_1}{(d + \sqrt n) / \eta + \lambda_2} &
        \text{else} \end{cases}

    with the ``learning_rate`` :math:`\eta`, the ``damping`` d, and
    :math:`\lambda_1 = \alpha \rho, \lambda_2 = \alpha (1 - \rho)` where :math:`\rho` is 0 for
    ``penalty="l2"``, 1 for ``"l1"`` and ``l1_ratio`` for ``"elasticnet"``. Each weight has a rate
    of its own, which falls with the gradients it has seen; weights whose evidence stays below
    :math:`\lambda_1` are exactly 0. The bias has no penalty.

    Parameters
    ----------
    loss : str or spec, default="squared"
        ``"squared"``, ``"huber"``, ``"quantile"`` or ``"poisson"``; a spec such as
        ``Huber(delta=2.0)`` sets more, in the unit of the target.
    learning_rate : float, default=0.1
        :math:`\eta`, about the longest step of a weight (often called alpha).
    damping : float, default=1.0
        d > 0 (often called beta): the larger, the shorter the first steps.
    alpha : float, array or dict, default=1.0
        Penalty, once for all rows of the stream, as it is added to the sum of the losses. An
        array has one value per field (see ``fields``), a dict maps fields to values; fields that
        it leaves out have 1.0.
    penalty : {"l2", "l1", "elasticnet"}, default="l2"
        :math:`\frac12 w^2`, :math:`|w|`, or a mixture of both.
    l1_ratio : float, default=0.5
        Share of the L1 penalty in ``"elasticnet"``.
    fields : array of shape (n_features,), optional
        The field of each column, for penalties per field: numbers from 0, -1 for a column that has
        the mean over the fields; or names, for which ``alpha`` is a dict. Without it each column is
        a field of its own.
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
        Seed of order and hold-out. Without these, nothing is random.
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
        Weights.
    learning_rates_ : ndarray of shape (n_features,)
        The rate :math:`\eta / (d + \sqrt n)` that each weight has come to.
    counts_ : ndarray of shape (n_features,)
        In how many rows each column was.
    history_ : dict of str to list of float
        Per epoch of ``fit``: ``"loss"``, the mean loss of each row just before it was learnt
        (for the first epoch this is the progressive loss); ``"validation_..."``; ``"seconds"`` and
        ``"rows_per_second"``.
    n_iter_, t_ : int
        Epochs of the last fit, rows visited in all.
    best_iteration_, best_score_ : int, float
        The epoch whose weights were kept and its score, if validation decided.
    n_features_in_, feature_names_in_ : int, ndarray
        As in scikit-learn.

    Notes
    -----
    A stream of ``partial_fit`` is taken as it is: weights start at 0, and rows one by one give the
    same model as any batches of them. Its targets and columns should
    be of size 1 or so: a weight moves by ``learning_rate`` at most.
    ``fit`` knows all rows: squared, Huber and quantile loss are learnt on the standardised
    target, and columns in their own units, so that parameters fit targets and columns of any size.
    A ``partial_fit`` after it keeps these units.

    The penalty is paid once. With several epochs it weighs as much less against the losses as
    there are epochs.

    References
    ----------
    McMahan et al., "Ad Click Prediction: a View from the Trenches", KDD 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfm import FTRLRegressor
    >>> X = np.random.default_rng(0).normal(size=(500, 5))
    >>> y = 3 * X[:, 0] - 2 * X[:, 1]
    >>> FTRLRegressor().fit(X, y).score(X, y) > 0.95
    True
    """

    def __init__(
        self,
        *,
        loss: Any = "squared",
        learning_rate: float = 0.1,
        damping: float = 1.0,
        alpha: Any = 1.0,
        penalty: str = "l2",
        l1_ratio: float = 0.5,
        fields: Any = None,
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
        self.loss = loss
        self.learning_rate = learning_rate
        self.damping = damping
        self.alpha = alpha
        self.penalty = penalty
        self.l1_ratio = l1_ratio
        self.fields = fields
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


class FTRLClassifier(FTRL, FMClassifier):
    r"""Linear classification by FTRL-Proximal.

    .. math:: f(x) = b + \langle w, x \rangle

    is learnt from one row after the other. With g the gradient of the loss of a row with respect to
    a weight, each weight of a feature of the row moves by

    .. math:: \sigma = \frac{\sqrt{n + g^2} - \sqrt n}{\eta}, \quad
        z \leftarrow z + g - \sigma w, \quad n \leftarrow n + g^2, \quad
        w = \begin{cases} 0 & |z| \le \lambda_1 \\
        -\dfrac{z - \mathrm{sgn}(z) \lambda_1}{(d + \sqrt n) / \eta + \lambda_2} &
        \text{else} \end{cases}

    with the ``learning_rate`` :math:`\eta`, the ``damping`` d, and
    :math:`\lambda_1 = \alpha \rho, \lambda_2 = \alpha (1 - \rho)` where :math:`\rho` is 0 for
    ``penalty="l2"``, 1 for ``"l1"`` and ``l1_ratio`` for ``"elasticnet"``. Each weight has a rate
    of its own, which falls with the gradients it has seen; weights whose evidence stays below
    :math:`\lambda_1` are exactly 0. The bias has no penalty.

    Parameters
    ----------
    loss : str or spec, default="logistic"
        ``"logistic"`` or ``"squared_hinge"``.
    learning_rate : float, default=0.1
        :math:`\eta`, about the longest step of a weight (often called alpha).
    damping : float, default=1.0
        d > 0 (often called beta): the larger, the shorter the first steps.
    alpha : float, array or dict, default=1.0
        Penalty, once for all rows of the stream, as it is added to the sum of the losses. An
        array has one value per field (see ``fields``), a dict maps fields to values; fields that
        it leaves out have 1.0.
    penalty : {"l2", "l1", "elasticnet"}, default="l2"
        :math:`\frac12 w^2`, :math:`|w|`, or a mixture of both.
    l1_ratio : float, default=0.5
        Share of the L1 penalty in ``"elasticnet"``.
    fields : array of shape (n_features,), optional
        The field of each column, for penalties per field: numbers from 0, -1 for a column that has
        the mean over the fields; or names, for which ``alpha`` is a dict. Without it each column is
        a field of its own.
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
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes; ``"balanced"`` is for ``fit`` only.
    shuffle : bool, default=False
        Whether each epoch of ``fit`` visits the rows in a new random order, or in the given one.
    random_state : int, RandomState or None, default=None
        Seed of order and hold-out. Without these, nothing is random.
    n_jobs : int, optional
        Threads of predictions, -1 for all cores. Learning takes one: it is the same to the last
        bit every time.
    warm_start : bool, default=False
        Whether ``fit`` goes on from the last fit.
    verbose : int, default=0
        0 is silent, 1 writes a line per epoch.

    Attributes
    ----------
    intercept_ : float or ndarray of shape (n_classes,)
        Bias.
    coef_ : ndarray of shape (n_features,) or (n_classes, n_features)
        Weights.
    learning_rates_ : ndarray of shape (n_features,) or (n_classes, n_features)
        The rate :math:`\eta / (d + \sqrt n)` that each weight has come to.
    counts_ : ndarray of shape (n_features,)
        In how many rows each column was.
    history_ : dict of str to list of float
        Per epoch of ``fit``: ``"loss"``, the mean loss of each row just before it was learnt
        (for the first epoch this is the progressive loss); ``"validation_..."``; ``"seconds"`` and
        ``"rows_per_second"``.
    n_iter_, t_ : int
        Epochs of the last fit, rows visited in all.
    best_iteration_, best_score_ : int, float
        The epoch whose weights were kept and its score, if validation decided.
    classes_ : ndarray of shape (n_classes,)
        Labels. More than two are learnt one against the rest.
    n_features_in_, feature_names_in_ : int, ndarray
        As in scikit-learn.

    Notes
    -----
    A stream of ``partial_fit`` is taken as it is: weights start at 0, and rows one by one give the
    same model as any batches of them. Its columns should be of size
    1 or so: a weight moves by ``learning_rate`` at most.
    ``fit`` knows all rows: the bias starts at the classes' shares, and columns are learnt in
    their own units.
    A ``partial_fit`` after it keeps these units.

    The penalty is paid once. With several epochs it weighs as much less against the losses as
    there are epochs.

    References
    ----------
    McMahan et al., "Ad Click Prediction: a View from the Trenches", KDD 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfm import FTRLClassifier
    >>> X = np.random.default_rng(0).normal(size=(500, 5))
    >>> y = 3 * X[:, 0] - 2 * X[:, 1] > 0
    >>> FTRLClassifier().fit(X, y).score(X, y) > 0.95
    True
    """

    def __init__(
        self,
        *,
        loss: Any = "logistic",
        learning_rate: float = 0.1,
        damping: float = 1.0,
        alpha: Any = 1.0,
        penalty: str = "l2",
        l1_ratio: float = 0.5,
        fields: Any = None,
        fit_intercept: bool = True,
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
        self.loss = loss
        self.learning_rate = learning_rate
        self.damping = damping
        self.alpha = alpha
        self.penalty = penalty
        self.l1_ratio = l1_ratio
        self.fields = fields
        self.fit_intercept = fit_intercept
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
