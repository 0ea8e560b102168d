"""Convex factorization machines of degree 2."""

from __future__ import annotations

from typing import Any

from polyfm.estimators._convex import ConvexFM
from polyfm.estimators.fm import FMClassifier, FMRegressor


class ConvexFMRegressor(ConvexFM, FMRegressor):
    r"""Convex factorization machine for regression.

    .. math:: f(x) = b + \langle w, x \rangle + \sum_s \lambda_s A^2(p_s, x), \qquad
        Z = \sum_s \lambda_s p_s p_s^\top, \quad \|p_s\| = 1

    A penalty on the size of the matrix Z, not on its factors, makes the problem convex: there is no
    rank to choose, no learning rate, and the result does not depend on a start. ``"greedy"``
    minimises

    .. math:: \sum_i s_i \, \ell(y_i, f(x_i)) + \frac{\alpha}{2} \|w\|^2 + \beta \|Z\|_*

    with the weights s of the rows and the nuclear norm, the sum of the absolute eigenvalues.
    ``"hazan"`` minimises squared loss and the penalty of w over the positive semidefinite Z with
    trace :math:`\le \eta`. The bias is not penalised. Z is kept as weighted bases, which are found
    one by one as eigenvectors of the gradient, until a bound on what is left to gain is small.
    ``"online"`` learns row by row, all of the model within one ball; see Notes.

    Parameters
    ----------
    method : {"greedy", "hazan", "online"}, default="greedy"
        Greedy coordinate descent on a nuclear norm, for any loss with bounded curvature;
        conditional gradient (Hazan's algorithm) under a bound of the trace, for squared loss; or
        online conditional gradient, also for streams of ``partial_fit``.
    alpha : float, default=1.0
        Penalty of the linear term, for ``"greedy"`` and ``"hazan"``.
    beta : float or "auto", default="auto"
        Penalty of Z for ``"greedy"``, above 0. ``"auto"`` is a quarter of the spectral norm that
        the gradient would have if the linear model left nothing but noise, about
        :math:`\sigma \max_j \big(\sum_i s_i x_{ij}^2 (\|x_i\|^2 - x_{ij}^2)\big)^{1/2}` with the
        root mean square :math:`\sigma` of the loss' slopes; with the diagonal twice
        :math:`\sigma \max_j \big(\sum_i s_i x_{ij}^2 \|x_i\|^2\big)^{1/2}`.
    trace : float or "auto", default="auto"
        The bound :math:`\eta` for ``"hazan"`` and :math:`\delta` for ``"online"``, above 0.
        ``"auto"`` is five times the weight that the first basis would have on its own; a stream
        reads it off its first batch.
    diagonal : bool, default=False
        Whether features combine with themselves, too, as in a polynomial network:
        :math:`\langle p_s, x \rangle^2` in place of :math:`A^2(p_s, x)`.
    refit : {"diagonal", "full"}, default="diagonal"
        What ``"greedy"`` refits when the bases have changed: their weights, or all of Z in their
        span, which takes fewer and more expensive iterations.
    loss : str or spec, default="squared"
        ``"squared"`` or ``"huber"``; a spec such as ``Huber(delta=2.0)`` sets more, in the unit of
        the target.
    fit_linear : bool, default=True
        Whether there is a linear term.
    fit_intercept : bool, default=True
        Whether there is a bias.
    max_rank : int, default=100
        Bases at most; a limit of time and memory, which are proportional to it. The penalty
        decides about the rank.
    max_iter : int, default=100
        Iterations at most, each of which brings one basis (up to four with ``refit="full"``);
        passes over the rows for ``"online"``.
    batch_size : int, default=10
        Rows of a round of ``"online"``, which takes one eigenvector.
    learning_rate : float, default=10.0
        How much gradients weigh in ``"online"``, :math:`\gamma` in the Notes: 1 is what the regret
        bound asks for, larger ones are faster on most data.
    tol : float, default=1e-4
        Training ends when the duality gap is at most ``tol`` times the objective; for ``"online"``
        when three passes have gained at most ``tol`` times the loss of the first.
    random_state : int, RandomState or None, default=None
        Seed of the start of the search for eigenvectors. The result depends on it as far as ``tol``
        allows.
    n_jobs : int, optional
        Threads of predictions and of dense linear algebra, -1 for all cores.
    warm_start : bool, default=False
        Whether ``fit`` goes on from the last fit.
    verbose : int, default=0
        0 is silent, 1 writes a line per iteration.

    Attributes
    ----------
    intercept_ : float
        Bias.
    coef_ : ndarray of shape (n_features,)
        Linear weights.
    factors_ : dict of int to ndarray of shape (n_features, rank)
        Orthonormal bases p, with the key 2.
    weights_ : dict of int to ndarray of shape (rank,)
        Their weights :math:`\lambda`, in falling order of size, with the key 2.
    size_ : float
        The penalty ``beta`` or the bound ``trace`` that was used.
    history_ : dict of str to list of float
        Per iteration: ``"loss"``, the mean loss; ``"objective"``, with the penalties divided by the
        number of rows; ``"duality_gap"``, a bound on how far the objective is from its least
        value, in its unit; ``"rank"``, the number of bases in use; ``"seconds"``. For
        ``"online"``, per pass: ``"loss"``, the mean loss of each row just before it was learnt;
        ``"rank"``; ``"seconds"``.
    n_iter_ : int
        Iterations of the last fit.
    t_ : int
        Rows visited by ``"online"``.
    n_features_in_, feature_names_in_ : int, ndarray
        As in scikit-learn.

    Notes
    -----
    Learning works in double precision, on the target minus its best constant, divided by its
    spread: penalties and ``trace`` are those for a target of spread 1. ``history_`` and the other
    attributes are in the target's unit. Columns of very different size should be scaled, as one
    penalty is for all. Features that were in no training row have no part in any prediction.

    An iteration takes some tens of products of X with a vector, and time and memory in proportion
    to rows times rank. No matrix of features by features is formed for more than 64 features.

    *Online.* With :math:`\hat{x} = (x, 1)` the whole model is one symmetric matrix,

    .. math:: f(x) = \tfrac12 \hat{x}^\top C \hat{x}, \qquad
        C = \begin{pmatrix} Z & w \\ w^\top & 2 b \end{pmatrix}, \qquad \|C\|_* \le \delta,

    where without ``diagonal`` the squares of features are left out, as in the other methods. After
    the t-th round C goes the share :math:`\min(1, 2 / \sqrt t)` of the way to
    :math:`-\delta \, \mathrm{sgn}(\lambda) u u^\top`, with the eigenpair of the largest
    :math:`|\lambda|` of :math:`\eta_t \sum_s G_s + 2 C`, the gradients G of all rounds so far, and
    :math:`\eta_t = \gamma \delta / t^{1/4} (\sum_s g_s^2)^{1/2}` with their Frobenius norms
    g. Rounds of more rows have less noise in their gradients. Nothing is random. The state is
    bounded by ``max_rank``: C has at most twice as many bases, and is then cut to the largest
    ``max_rank``; so is the sum of gradients, whose latest ``max_rank`` rows or so are kept as they
    are, and whose diagonal is exact. With fewer features than ``max_rank`` nothing is lost.
    ``alpha``, ``beta`` and ``refit`` have no part in it. ``fit`` divides X by the root mean square
    length of its rows, and :math:`\delta` bounds the matrix in this unit. A stream is learnt as it
    is: rows one by one give the same model as any batches of them, if ``trace`` is a number.

    References
    ----------
    Blondel, Fujino, Ueda, "Convex Factorization Machines", ECML PKDD 2015.
    Yamada et al., "Convex Factorization Machine for Toxicogenomics Prediction", KDD 2017.
    Lin, Zhang, Zhang, Zhu, "Online Compact Convexified Factorization Machine", WWW 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfm import ConvexFMRegressor
    >>> X = np.random.default_rng(0).normal(size=(500, 5))
    >>> y = 3 * X[:, 0] + 2 * X[:, 1] * X[:, 2]
    >>> ConvexFMRegressor(random_state=0).fit(X, y).score(X, y) > 0.95
    True
    """

    def __init__(
        self,
        *,
        method: str = "greedy",
        alpha: float = 1.0,
        beta: float | str = "auto",
        trace: float | str = "auto",
        diagonal: bool = False,
        refit: str = "diagonal",
        loss: Any = "squared",
        fit_linear: bool = True,
        fit_intercept: bool = True,
        max_rank: int = 100,
        max_iter: int = 100,
        batch_size: int = 10,
        learning_rate: float = 10.0,
        tol: float = 1e-4,
        random_state: Any = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.method = method
        self.alpha = alpha
        self.beta = beta
        self.trace = trace
        self.diagonal = diagonal
        self.refit = refit
        self.loss = loss
        self.fit_linear = fit_linear
        self.fit_intercept = fit_intercept
        self.max_rank = max_rank
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.verbose = verbose


class ConvexFMClassifier(ConvexFM, FMClassifier):
    r"""Convex factorization machine for classification.

    .. math:: f(x) = b + \langle w, x \rangle + \sum_s \lambda_s A^2(p_s, x), \qquad
        Z = \sum_s \lambda_s p_s p_s^\top, \quad \|p_s\| = 1

    A penalty on the size of the matrix Z, not on its factors, makes the problem convex: there is no
    rank to choose, no learning rate, and the result does not depend on a start. It is

    .. math:: \sum_i s_i \, \ell(y_i, f(x_i)) + \frac{\alpha}{2} \|w\|^2 + \beta \|Z\|_*

    with the weights s of the rows and the nuclear norm, the sum of the absolute eigenvalues. The
    bias is not penalised. Z is kept as weighted bases, which are found one by one as eigenvectors
    of the gradient, until a bound on what is left to gain is small. ``method="online"`` learns row
    by row, all of the model within one ball; see Notes.

    Parameters
    ----------
    method : {"greedy", "online"}, default="greedy"
        Greedy coordinate descent on a nuclear norm, or online conditional gradient, also for
        streams of ``partial_fit``. (The other method of :class:`polyfm.ConvexFMRegressor` is for
        squared loss.)
    alpha : float, default=1.0
        Penalty of the linear term, for ``"greedy"``.
    beta : float or "auto", default="auto"
        Penalty of Z for ``"greedy"``, above 0. ``"auto"`` is a quarter of the spectral norm that
        the gradient would have if the linear model left nothing but noise, about
        :math:`\sigma \max_j \big(\sum_i s_i x_{ij}^2 (\|x_i\|^2 - x_{ij}^2)\big)^{1/2}` with the
        root mean square :math:`\sigma` of the loss' slopes; with the diagonal twice
        :math:`\sigma \max_j \big(\sum_i s_i x_{ij}^2 \|x_i\|^2\big)^{1/2}`.
    trace : float or "auto", default="auto"
        The bound :math:`\delta` for ``"online"``, above 0. ``"auto"`` is five times the weight that
        the first basis would have on its own; a stream reads it off its first batch.
    diagonal : bool, default=False
        Whether features combine with themselves, too, as in a polynomial network:
        :math:`\langle p_s, x \rangle^2` in place of :math:`A^2(p_s, x)`.
    refit : {"diagonal", "full"}, default="diagonal"
        What is refitted when the bases have changed: their weights, or all of Z in their
        span, which takes fewer and more expensive iterations.
    loss : str or spec, default="logistic"
        ``"logistic"`` or ``"squared_hinge"``.
    fit_linear : bool, default=True
        Whether there is a linear term.
    fit_intercept : bool, default=True
        Whether there is a bias.
    max_rank : int, default=100
        Bases at most; a limit of time and memory, which are proportional to it. The penalty
        decides about the rank.
    max_iter : int, default=100
        Iterations at most, each of which brings one basis (up to four with ``refit="full"``);
        passes over the rows for ``"online"``.
    batch_size : int, default=10
        Rows of a round of ``"online"``, which takes one eigenvector.
    learning_rate : float, default=10.0
        How much gradients weigh in ``"online"``, :math:`\gamma` in the Notes: 1 is what the regret
        bound asks for, larger ones are faster on most data.
    tol : float, default=1e-4
        Training ends when the duality gap is at most ``tol`` times the objective; for ``"online"``
        when three passes have gained at most ``tol`` times the loss of the first.
    random_state : int, RandomState or None, default=None
        Seed of the start of the search for eigenvectors. The result depends on it as far as ``tol``
        allows.
    n_jobs : int, optional
        Threads of predictions and of dense linear algebra, -1 for all cores.
    warm_start : bool, default=False
        Whether ``fit`` goes on from the last fit.
    verbose : int, default=0
        0 is silent, 1 writes a line per iteration.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, multiplied with those of the rows.

    Attributes
    ----------
    intercept_ : float or ndarray of shape (n_classes,)
        Bias.
    coef_ : ndarray of shape (n_features,) or (n_classes, n_features)
        Linear weights.
    factors_ : dict of int to ndarray of shape (n_features, rank) or (n_classes, n_features, rank)
        Orthonormal bases p, with the key 2; zeros where a class has fewer than another.
    weights_ : dict of int to ndarray of shape (rank,) or (n_classes, rank)
        Their weights :math:`\lambda`, in falling order of size, with the key 2.
    size_ : float or ndarray of shape (n_classes,)
        The penalty ``beta`` or the bound ``trace`` that was used.
    history_ : dict of str to list of float
        Per iteration, summed over the models of several classes: ``"loss"``, the mean loss;
        ``"objective"``, with the penalties divided by the number of rows; ``"duality_gap"``, a
        bound on how far the objective is from its least value, in its unit; ``"rank"``, the
        number of bases in use; ``"seconds"``. For ``"online"``, per pass: ``"loss"``, the mean
        loss of each row just before it was learnt; ``"rank"``; ``"seconds"``.
    n_iter_ : int
        Iterations of the last fit.
    t_ : int
        Rows visited by ``"online"``.
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    n_features_in_, feature_names_in_ : int, ndarray
        As in scikit-learn.

    Notes
    -----
    Two classes share one model, whose score is that of ``classes_[1]``; more have one each, against
    the rest. Learning works in double precision. Columns of very different size should be scaled,
    as one penalty is for all. Features that were in no training row have no part in any prediction.

    An iteration takes some tens of products of X with a vector, and time and memory in proportion
    to rows times rank. No matrix of features by features is formed for more than 64 features.

    *Online.* With :math:`\hat{x} = (x, 1)` the whole model is one symmetric matrix,

    .. math:: f(x) = \tfrac12 \hat{x}^\top C \hat{x}, \qquad
        C = \begin{pmatrix} Z & w \\ w^\top & 2 b \end{pmatrix}, \qquad \|C\|_* \le \delta,

    where without ``diagonal`` the squares of features are left out, as in the other methods. After
    the t-th round C goes the share :math:`\min(1, 2 / \sqrt t)` of the way to
    :math:`-\delta \, \mathrm{sgn}(\lambda) u u^\top`, with the eigenpair of the largest
    :math:`|\lambda|` of :math:`\eta_t \sum_s G_s + 2 C`, the gradients G of all rounds so far, and
    :math:`\eta_t = \gamma \delta / t^{1/4} (\sum_s g_s^2)^{1/2}` with their Frobenius norms
    g. Rounds of more rows have less noise in their gradients. Nothing is random. The state is
    bounded by ``max_rank``: C has at most twice as many bases, and is then cut to the largest
    ``max_rank``; so is the sum of gradients, whose latest ``max_rank`` rows or so are kept as they
    are, and whose diagonal is exact. With fewer features than ``max_rank`` nothing is lost.
    ``alpha``, ``beta`` and ``refit`` have no part in it. ``fit`` divides X by the root mean square
    length of its rows, and :math:`\delta` bounds the matrix in this unit. A stream is learnt as it
    is: rows one by one give the same model as any batches of them, if ``trace`` is a number.

    References
    ----------
    Blondel, Fujino, Ueda, "Convex Factorization Machines", ECML PKDD 2015.
    Lin, Zhang, Zhang, Zhu, "Online Compact Convexified Factorization Machine", WWW 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfm import ConvexFMClassifier
    >>> X = np.random.default_rng(0).choice([-1.0, 1.0], size=(500, 4))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same", "different")
    >>> ConvexFMClassifier(random_state=0).fit(X, y).score(X, y)
    1.0
    """

    def __init__(
        self,
        *,
        method: str = "greedy",
        alpha: float = 1.0,
        beta: float | str = "auto",
        trace: float | str = "auto",
        diagonal: bool = False,
        refit: str = "diagonal",
        loss: Any = "logistic",
        fit_linear: bool = True,
        fit_intercept: bool = True,
        max_rank: int = 100,
        max_iter: int = 100,
        batch_size: int = 10,
        learning_rate: float = 10.0,
        tol: float = 1e-4,
        random_state: Any = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
        verbose: int = 0,
        class_weight: Any = None,
    ) -> None:
        self.method = method
        self.alpha = alpha
        self.beta = beta
        self.trace = trace
        self.diagonal = diagonal
        self.refit = refit
        self.loss = loss
        self.fit_linear = fit_linear
        self.fit_intercept = fit_intercept
        self.max_rank = max_rank
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.verbose = verbose
        self.class_weight = class_weight
