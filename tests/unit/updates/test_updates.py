"""Steps of the update rules against calculations by hand."""

import numpy as np
import pytest

from polyfm.penalties import L2, ElasticNet
from polyfm.updates import SGD, AdaGrad
from polyfm.updates.contract import begin, n_planes, rate, step, unit_rate


def moved(rule, penalty, weight, gradients, share=1.0, unit=1.0):
    memory = np.zeros(n_planes(rule))
    begin(rule, penalty, memory, 0, 1, 1, weight, unit, share)
    for t, g in enumerate(gradients):
        size = rate(rule, float(t)) * unit_rate(rule, unit)
        step(rule, penalty, memory, 0, 1, 1, g, size, share)
    return memory


def test_sgd_by_hand():
    # 1 - 0.1 * 2 = 0.8, shrunk by 1 + 0.1 * 0.5; then the same again.
    one = 0.8 / 1.05
    assert moved(SGD(0.1), L2(0.5), 1.0, [2.0])[0] == pytest.approx(one)
    two = (one + 0.1) / 1.05
    assert moved(SGD(0.1), L2(0.5), 1.0, [2.0, -1.0])[0] == pytest.approx(two)


def test_sgd_shares_of_the_penalty():
    full = moved(SGD(0.1), L2(0.5), 1.0, [0.0], share=1.0)[0]
    assert full == pytest.approx(1 / 1.05)
    assert moved(SGD(0.1), L2(0.5), 1.0, [0.0], share=0.25)[0] == pytest.approx(1 / 1.0125)


def test_sgd_schedules():
    assert rate(SGD(0.1), 1e6) == 0.1
    assert rate(SGD(0.1, 1.0, 0.25), 15.0) == pytest.approx(0.05)
    assert rate(SGD(0.1, 0.01, 1.0), 100.0) == pytest.approx(0.05)


def test_adagrad_by_hand():
    rule = AdaGrad(0.1, 7.0)
    weight, squares = moved(rule, L2(0.0), 1.0, [3.0])
    assert squares == 16.0
    assert weight == pytest.approx(1.0 - 0.1 * 3.0 / 4.0)
    weight, squares = moved(rule, ElasticNet(2.0, 0.0), 1.0, [3.0], share=0.5)
    assert weight == pytest.approx(0.925 - 0.1 / 4.0 * 2.0 * 0.5)


def test_adagrad_in_another_unit():
    # A column of tens: gradients are ten times as large, weights a tenth.
    here = moved(AdaGrad(0.1, 2.0), L2(0.0), 1.0, [3.0, -1.0])[0]
    there = moved(AdaGrad(0.1, 2.0), L2(0.0), 0.1, [30.0, -10.0], unit=0.1)[0]
    assert there * 10 == pytest.approx(here, rel=1e-12)


@pytest.mark.parametrize("rule", [SGD(0.1), AdaGrad(0.1)], ids=["sgd", "adagrad"])
def test_l1_reaches_zero_and_stays(rule):
    memory = moved(rule, ElasticNet(1.0, 0.0), 0.05, [0.0] * 5)
    assert memory[0] == 0.0
