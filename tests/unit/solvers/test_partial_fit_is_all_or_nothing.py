"""A batch that cannot be learnt leaves every parameter as it was, in every class's model."""

import numpy as np
import pytest

from polyfm import DivergenceError, FMClassifier
from polyfm.solvers.stochastic import StochasticLearner


def state(model):
    return [block.copy() for learner in model._learners for block in learner.model.parameters]


@pytest.mark.parametrize("error", [DivergenceError("diverged"), KeyboardInterrupt()])
@pytest.mark.parametrize("settings", [{}, {"fit_lower": "augment", "order": 3}])
def test_the_last_of_three_models_fails(monkeypatch, error, settings):
    random = np.random.default_rng(0)
    X, y = random.normal(size=(60, 4)), np.arange(60) % 3
    model = FMClassifier(random_state=0, **settings).partial_fit(X, y)
    before, t, scores = state(model), model.t_, model.decision_function(X)
    learn = StochasticLearner.learn

    def failing(self, rows, *args):
        loss = learn(self, rows, *args)
        if self.settings.seed == model._learners[2].settings.seed:
            raise error
        return loss

    monkeypatch.setattr(StochasticLearner, "learn", failing)
    with pytest.raises(type(error)):
        model.partial_fit(X[::-1], y)
    for now, then in zip(state(model), before, strict=True):
        np.testing.assert_array_equal(now, then)
    assert model.t_ == t
    np.testing.assert_array_equal(model.decision_function(X), scores)


def test_classes_of_weight_zero_do_not_exist():
    """A class that class_weight silences changes the model no more than rows that are not there."""
    random = np.random.default_rng(0)
    X, y = random.normal(size=(90, 4)), np.arange(90) % 3
    silent = FMClassifier(class_weight={0: 1.0, 1: 1.0, 2: 0.0}, random_state=0).fit(X, y)
    weights = (y < 2).astype(float)
    without = FMClassifier(random_state=0).partial_fit(X[:3], y[:3])
    assert silent.t_ % 60 == 0
    assert without.classes_.tolist() == silent.classes_.tolist()
    with pytest.raises(ValueError, match="class_weight: nothing to learn"):
        FMClassifier(class_weight={0: 0.0, 1: 0.0, 2: 0.0}).fit(X, y, sample_weight=weights)
