"""Where columns have penalties of their own, epochs equal those of a twin with these penalties."""

from dataclasses import replace

import numpy as np
import pytest
from test_epoch_equals_slow_twin import N_FEATURES, Pair, learn_plainly

LINEAR = np.array([0.0, 0.5, 1.0, 2.0, 20.0])
FACTORS = np.array([3.0, 0.0, 40.0, 1.0, 0.2])


def pair_with_strengths(kernel, rule, penalty, kind, linear, factors):
    pair = Pair(kernel, rule, "squared", penalty, kind)
    settings = pair.learner.settings
    pair.learner.settings = replace(settings, linear_strengths=linear, factor_strengths=factors)
    pair.learner.set_rows(pair.rows)
    if linear is not None:
        pair.twin.share["linear"] = pair.twin.share["linear"] * linear
    if factors is not None:
        n_dummies = len(pair.twin.share["table"]) - N_FEATURES
        share = pair.twin.share["table"] * np.append(factors, np.ones(n_dummies))[:, None]
        pair.twin.share["table"] = share
    return pair


@pytest.mark.parametrize("kernel", ["anova 3 augmented, lambda", "inhomogeneous anova 3, theta"])
@pytest.mark.parametrize("rule", ["adagrad", "sgd"])
@pytest.mark.parametrize("penalty", ["l2", "elastic net"])
@pytest.mark.parametrize("kind", ["dense", "one-hot"])
@pytest.mark.parametrize(
    ("linear", "factors"), [(LINEAR, FACTORS), (LINEAR, None), (None, FACTORS)]
)
def test_plainly(kernel, rule, penalty, kind, linear, factors):
    pair = pair_with_strengths(kernel, rule, penalty, kind, linear, factors)
    pair.run(learn_plainly)
    pair.assert_equal()


@pytest.mark.parametrize("kind", ["dense", "one-hot"])
def test_compiled(kind):
    pair = pair_with_strengths("anova 2, lambda", "adagrad", "l2", kind, LINEAR, FACTORS)
    pair.run(lambda learner, rows, order: learner.learn(rows, order))
    pair.assert_equal()


def test_the_strengths_make_a_difference():
    """So that equality above is no equality of two models that ignore them."""
    pairs = [
        pair_with_strengths("anova 2, lambda", "adagrad", "l2", "dense", linear, factors)
        for linear, factors in [(None, None), (LINEAR, None), (None, FACTORS)]
    ]
    for pair in pairs:
        pair.run(learn_plainly)
    without, linear, factors = (pair.learner.model.parameters for pair in pairs)
    assert not np.allclose(without.linear[:, 0], linear.linear[:, 0], atol=1e-4)
    assert not np.allclose(without.table, factors.table, atol=1e-4)
