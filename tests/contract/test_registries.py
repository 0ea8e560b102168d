"""Every piece that polyfm exports keeps its contract."""

import pytest

from polyfm import kernels, losses, penalties, updates
from polyfm.kernels.pairs import Pairs
from polyfm.testing import check_kernel, check_loss, check_penalty, check_solver, check_update

LOSSES = [getattr(losses, name)() for name in losses.__all__]
KERNELS = [getattr(kernels, name)() for name in kernels.__all__]


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_loss(loss):
    check_loss(loss)


@pytest.mark.parametrize(
    "loss", [losses.Huber(0.1), losses.Huber(50.0), losses.Quantile(0.05), losses.Quantile(0.9)]
)
def test_loss_with_other_parameters(loss):
    check_loss(loss)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_kernel(kernel):
    check_kernel(kernel, compiled=True)


@pytest.mark.parametrize(
    "kernel",
    [kernels.ANOVA(1), kernels.ANOVA(3), kernels.ANOVA(6), kernels.Polynomial(1),
     kernels.Polynomial(5), Pairs()],
    ids=str,
)  # fmt: skip
def test_kernel_of_another_degree(kernel):
    check_kernel(kernel, compiled=False)


@pytest.mark.parametrize(
    "penalty",
    [getattr(penalties, name)() for name in penalties.__all__]
    + [penalties.L2(0.3), penalties.ElasticNet(0.4, 0.0), penalties.ElasticNet(0.4, 2.0)],
    ids=str,
)
def test_penalty(penalty):
    check_penalty(penalty)


@pytest.mark.parametrize(
    "rule",
    [updates.SGD(), updates.SGD(0.1, 1.0, 0.25), updates.SGD(0.1, 0.01, 1.0),
     updates.AdaGrad(), updates.AdaGrad(0.05, 5.0),
     updates.FTRLProximal(), updates.FTRLProximal(0.3, 0.0, 2.0), updates.FTRLProximal(0.1, 1, 0.5),
     updates.FTRLPower(), updates.FTRLPower(0.5, 1.0, 0.8), updates.FTRLPower(0.5, 2.0, 1.0)],
    ids=str,
)  # fmt: skip
def test_update(rule):
    check_update(rule)


def test_every_update_rule_is_checked():
    assert set(updates.__all__) == {"SGD", "AdaGrad", "FTRLPower", "FTRLProximal"}


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_solver_with_every_loss(loss):
    check_solver(loss=loss, order=3)
