"""Every estimator that learns streams passes the checks of streams; wrong ones do not."""

import numpy as np
import pytest
from sklearn.base import clone

from polyfm import FTRLRegressor, estimators
from polyfm.testing import check_online, online_estimators
from polyfm.testing._online import _SPACE, CHECKS

ESTIMATORS = list(online_estimators())


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_stream(estimator, check):
    check(clone(estimator).set_params(max_features=_SPACE))


def test_every_estimator_with_growing_columns_is_checked():
    kinds = {type(estimator).__name__ for estimator in ESTIMATORS}
    every = [getattr(estimators, name)() for name in estimators.__all__]
    assert kinds == {type(e).__name__ for e in every if "max_features" in e.get_params()}
    assert len(kinds) >= 8


class Forgetful(FTRLRegressor):
    def learn_one(self, x, y, weight=1.0):
        return super().learn_one({name: value for name, value in x.items() if name != "age"}, y)


class Greedy(FTRLRegressor):
    def learn_one(self, x, y, weight=1.0):
        super().learn_one(x, y, weight)
        x.clear()
        return self


class Careless(FTRLRegressor):
    def predict(self, X):
        self._learners[0].model.parameters.bias[0, 0] += 1e-9
        return super().predict(X)


@pytest.mark.parametrize(
    ("estimator", "words"),
    [(Forgetful(), "one by one"), (Greedy(), "events were changed"), (Careless(), "differ")],
)
def test_faults_are_found(estimator, words):
    with pytest.raises(AssertionError, match=words):
        check_online(estimator)


def test_the_checks_take_any_estimator_of_streams():
    check_online(FTRLRegressor(learning_rate=np.float64(0.2)))
