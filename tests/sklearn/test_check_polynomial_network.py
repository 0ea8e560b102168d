"""scikit-learn's own checks of the polynomial networks."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from polyfm import PolynomialNetworkClassifier, PolynomialNetworkRegressor

_REASON = (
    "AdaGrad visits rows in a random order and pays penalties in as many shares as a column has "
    "rows: a weighted row and repeated rows have the same objective, but not the same path to it"
)


def _expected_failures(estimator):
    if estimator.lifted:
        return {}
    return {
        "check_sample_weight_equivalence_on_dense_data": _REASON,
        "check_sample_weight_equivalence_on_sparse_data": _REASON,
    }


@parametrize_with_checks(
    [
        PolynomialNetworkRegressor(),
        PolynomialNetworkClassifier(),
        PolynomialNetworkRegressor(kernel="anova"),
        PolynomialNetworkRegressor(lifted=False),
        PolynomialNetworkClassifier(lifted=False),
    ],
    expected_failed_checks=_expected_failures,
)
def test_check_estimator(estimator, check):
    check(estimator)
