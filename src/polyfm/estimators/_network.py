"""What the two polynomial networks have in common."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from polyfm.estimators import _parts
from polyfm.estimators._base import BaseFM
from polyfm.estimators._direct_form import direct_form
from polyfm.estimators._exports import Exported
from polyfm.models.layout import Layout
from polyfm.solvers.learner import Learner, Settings
from polyfm.solvers.lifted_descent import LiftedLearner, refuse_unbounded

_SPREAD = 0.3
"""Standard deviation of the lifted term at the start, in units of the target's."""


class PolynomialNetwork(BaseFM):
    """Base of the polynomial networks: lifted by coordinate descent, or direct as a FM."""

    lifted: bool
    # What the direct form leaves to FMRegressor and FMClassifier.
    penalty = "l2"
    l1_ratio = 0.5
    schedule = "constant"
    power_t = 0.25
    shuffle = True
    block_size = 8

    @property
    def _solver(self) -> Any:
        if isinstance(self.solver, str) and self.solver == "auto":
            return "cd" if self.lifted else "adagrad"
        return self.solver

    def _find_learner(self) -> type[Learner]:
        return LiftedLearner if self.lifted else super()._find_learner()

    def _fit(
        self, X: Any, y: Any, sample_weight: Any, X_val: Any, y_val: Any, sample_weight_val: Any
    ) -> Self:
        self._check_network()
        return super()._fit(X, y, sample_weight, X_val, y_val, sample_weight_val)

    def _partial_fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        self._check_network()
        return super()._partial_fit(X, y, sample_weight)

    def _fit_source(self, source: Any, *options: Any) -> Self:
        self._check_network()
        return super()._fit_source(source, *options)

    def _check_network(self) -> None:
        """Raise a ValueError for parameters that other factorization machines have."""
        choices = {"kernel": ("polynomial", "anova"), "fit_lower": ("augment", None)}
        for name, allowed in choices.items():
            value = getattr(self, name)
            if not (value is None or isinstance(value, str)) or value not in allowed:
                raise ValueError(
                    f"{name} of a polynomial network must be one of {allowed}, got {value!r}."
                )
        if not isinstance(self.lifted, bool | np.bool_):
            raise TypeError(f"lifted must be True or False, got {self.lifted!r}.")
        if self.lifted and self._solver != "cd":
            raise ValueError(
                f"solver={self.solver!r} learns the direct form: give lifted=False with it. The "
                "lifted form is learnt by coordinate descent (solver='auto' or 'cd')."
            )

    def _check_loss(self, loss: Any, targets: NDArray[np.float64]) -> None:
        super()._check_loss(loss, targets)  # type: ignore[safe-super]  # a FM's comes next
        if self.lifted:
            refuse_unbounded(loss, self.loss)

    def _settings(self, loss: Any, n_rows: int, seed: int) -> Settings:
        settings = super()._settings(loss, n_rows, seed)
        if not self.lifted or self.init_scale != "auto":
            return settings
        layout = self._layout
        n_terms = max(self._n_terms + layout.n_dummies, 1.0)
        scale = _start_scale(layout, n_terms, self.kernel == "anova")
        return replace(settings, start_scales=np.full(layout.rank, scale))

    @property
    def _expansion(self) -> tuple[Exported, Layout]:
        return self.to_direct()._expansion if self._is_lifted else super()._expansion

    @property
    def _is_lifted(self) -> bool:
        """Whether there is a fitted model and it is lifted."""
        return self.__sklearn_is_fitted__() and bool(self._structure["lifted"])

    def to_direct(self) -> Self:
        r"""Return the same model in direct form, :math:`\sum_s \lambda_s K(p_s, x)`.

        A lifted model of degree 2 is :math:`M = \frac12 (U V^\top + V U^\top)`, whose
        eigendecomposition gives at most 2 r bases of length 1. One of higher degree is written
        by polarisation, for each basis

        .. math:: \mathrm{Sym}(u^1 \otimes \dots \otimes u^m) = \frac{1}{2^{m-1} m!}
            \sum_{\epsilon_2, \dots, \epsilon_m = \pm 1} \epsilon_2 \cdots \epsilon_m
            (u^1 + \epsilon_2 u^2 + \dots + \epsilon_m u^m)^{\otimes m}.

        Returns
        -------
        estimator
            A fitted estimator of the same class with ``lifted=False`` and the attributes
            ``factors_``, ``dummy_factors_`` and ``weights_``. It predicts the same up to rounding
            and cannot be trained further. A model that is direct already is returned as it is.

        References
        ----------
        Blondel, Ishihata, Fujino, Ueda, "Polynomial Networks and Factorization Machines",
        ICML 2016.
        """
        self._check_is_fitted()
        if not self._is_lifted:
            return self
        learners, layout = direct_form(self._learners, self._layout, self._structure)
        parameters = self.get_params(deep=False)
        changed = {"lifted": False, "solver": "auto", "fit_weights": True, "rank": layout.rank}
        direct = type(self)(**{**parameters, **changed})
        kept = {name: value for name, value in vars(self).items() if name not in parameters}
        direct.__dict__.update(kept)
        direct._learners, direct._layout = learners, layout
        direct._structure = _parts.structure_of(direct)
        return direct

    def _lifted_tables(self, name: str) -> NDArray[Any]:
        """Return the factors of all outputs, (m, d + q, r) or with a first axis for classes."""
        if not self._is_lifted:
            raise AttributeError(
                f"{type(self).__name__} has no {name}: it is not fitted, or with lifted=False."
            )
        tables = np.stack([learner.model.parameters.table for learner in self._learners])
        factors = np.moveaxis(tables, 3, 1) * self._scale.scale ** (1.0 / tables.shape[3])
        return np.asarray(factors[0] if len(factors) == 1 else factors)

    def _direct_part(self, name: str) -> Any:
        if not self.__sklearn_is_fitted__() or self._is_lifted:
            raise AttributeError(
                f"{type(self).__name__} has no {name}_: it is not fitted, or lifted. The direct "
                "form of a lifted model is what its method to_direct returns."
            )
        return getattr(super()._exported, name)

    @property
    def lifted_factors_(self) -> NDArray[Any]:
        """Factors of each slot, (order, n_features, rank) or (n_classes, ...)."""
        return self._lifted_tables("lifted_factors_")[..., : self.n_features_in_, :]

    @property
    def lifted_dummy_factors_(self) -> NDArray[Any]:
        """Factors of the dummy features of each slot, (order, n_dummies, rank)."""
        return self._lifted_tables("lifted_dummy_factors_")[..., self.n_features_in_ :, :]

    @property
    def intercept_(self) -> Any:
        """Bias: a float, or an array of shape (n_classes,)."""
        if not self._is_lifted:
            return super().intercept_
        bias = np.array([learner.model.parameters.bias[0] for learner in self._learners])
        intercept = self._scale.from_scaled(bias)
        return float(intercept[0]) if len(intercept) == 1 else intercept

    @property
    def coef_(self) -> NDArray[Any]:
        """Linear weights, (n_features,) or (n_classes, n_features)."""
        if not self._is_lifted:
            return super().coef_
        coef = np.stack([learner.model.parameters.linear for learner in self._learners])
        coef *= self._scale.scale
        return coef[0] if len(coef) == 1 else coef

    @property
    def factors_(self) -> dict[int, NDArray[Any]]:
        """Factors of the direct form by degree; see :meth:`to_direct`."""
        factors: dict[int, NDArray[Any]] = self._direct_part("factors")
        return factors

    @property
    def dummy_factors_(self) -> dict[int, NDArray[Any]]:
        """Factors of the dummy features of the direct form, by degree."""
        factors: dict[int, NDArray[Any]] = self._direct_part("dummy_factors")
        return factors

    @property
    def weights_(self) -> dict[int, NDArray[Any]]:
        """Weights lambda of the bases of the direct form, by degree."""
        weights: dict[int, NDArray[Any]] = self._direct_part("weights")
        return weights

    @property
    def degree_weights_(self) -> NDArray[Any]:
        """Weights of the degrees of the direct form: 1 for the highest alone."""
        weights: NDArray[Any] = self._direct_part("degree_weights")
        return weights


def _start_scale(layout: Layout, n_terms: float, distinct: bool) -> float:
    r"""Return the standard deviation of factors with which the lifted term starts at its spread.

    A row of N ones has :math:`r N^m \sigma^{2m}` as the term's variance for the polynomial
    kernel, and :math:`r \frac{1}{m!} \binom{N}{m} \sigma^{2m}` for the ANOVA kernel.
    """
    m, r = len(layout.degrees), max(layout.rank, 1)
    ways = [max(n_terms - i, 1.0) / (i + 1.0) ** 2 if distinct else n_terms for i in range(m)]
    log_ways = sum(map(math.log, ways))
    return math.exp((2.0 * math.log(_SPREAD) - math.log(r) - log_ways) / (2.0 * m))
