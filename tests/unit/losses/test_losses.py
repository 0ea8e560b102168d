"""Values by hand, far margins, best constants, and sums over many rows."""

import math

import numpy as np
import pytest
from scipy.special import expit

from polyfm._registry import find_spec, named_specs
from polyfm.losses import Huber, Logistic, Poisson, Quantile, Squared, SquaredHinge
from polyfm.losses import contract as losses
from polyfm.losses.evaluate import mean_loss
from polyfm.losses.quantile import weighted_quantile
from polyfm.testing import plain


@pytest.mark.parametrize(
    ("loss", "y", "p", "value", "gradient"),
    [
        (Squared(), 3.0, 5.0, 2.0, 2.0),
        (Logistic(), 1.0, 0.0, math.log(2), -0.5),
        (Logistic(), -1.0, 2.0, math.log1p(math.exp(2.0)), 1 / (1 + math.exp(-2.0))),
        (SquaredHinge(), 1.0, 0.5, 0.25, -1.0),
        (SquaredHinge(), -1.0, -2.0, 0.0, 0.0),
        (Huber(2.0), 0.0, 1.0, 0.5, 1.0),
        (Huber(2.0), 0.0, -5.0, 8.0, -2.0),
        (Poisson(), 2.0, 0.0, 1.0, -1.0),
        (Quantile(0.9), 1.0, 0.0, 0.9, -0.9),
        (Quantile(0.9), 0.0, 1.0, 0.1, 0.1),
        (Quantile(0.9), 1.0, 1.0, 0.0, 0.0),
    ],
)
def test_by_hand(loss, y, p, value, gradient):
    assert losses.value(loss, y, p) == pytest.approx(value, rel=1e-12)
    assert losses.gradient(loss, y, p) == pytest.approx(gradient, rel=1e-12)


@pytest.mark.parametrize("margin", [-1e4, -1e100, -1e300])
def test_logistic_of_hopeless_margin(margin):
    for y in (-1.0, 1.0):
        assert losses.value(Logistic(), y, y * margin) == -margin
        assert losses.gradient(Logistic(), y, y * margin) == -y


@pytest.mark.parametrize("margin", [40.0, 1e4, 1e300])
def test_logistic_of_safe_margin(margin):
    assert losses.value(Logistic(), 1.0, margin) == pytest.approx(math.exp(-margin), rel=1e-9)
    assert losses.gradient(Logistic(), 1.0, margin) == pytest.approx(-math.exp(-margin), rel=1e-9)


def test_poisson_goes_on_as_a_straight_line():
    top = math.exp(700.0)
    assert losses.value(Poisson(), 3.0, 701.0) == pytest.approx(2 * top)
    assert losses.gradient(Poisson(), 3.0, 1e300) == pytest.approx(top)
    assert losses.value(Poisson(), 3.0, -1e300) == 3e300


def test_compiled_losses_keep_far_margins():
    y, p = np.array([1.0, -1.0]), np.array([-1e4, 1e4])
    assert mean_loss(Logistic(), y, p, np.ones(2)) == 1e4


@pytest.mark.parametrize("loss", [Squared(), Huber(0.5), Quantile(0.2), Logistic()], ids=str)
def test_mean_loss(random, loss):
    y, p = np.sign(random.normal(size=50)), random.normal(size=50)
    weight = random.uniform(size=50)
    values = [losses.value(loss, a, b) for a, b in zip(y, p, strict=True)]
    wanted = np.average(values, weights=weight)
    plain_mean = plain(mean_loss)(loss, y, p, weight)
    assert plain_mean == pytest.approx(wanted, rel=1e-12)
    assert plain(mean_loss)(loss, y, p, 3 * weight) == pytest.approx(wanted, rel=1e-12)


def test_best_constants(random):
    y, weight = random.normal(size=101), random.uniform(0.5, 1.5, size=101)
    assert losses.best_constant(Squared(), y, weight) == pytest.approx(
        np.average(y, weights=weight)
    )
    assert losses.best_constant(Quantile(0.5), y, np.ones(101)) == np.median(y)
    counts = random.poisson(3.0, size=50).astype(float)
    assert losses.best_constant(Poisson(), counts, np.ones(50)) == pytest.approx(
        np.log(counts.mean())
    )


@pytest.mark.parametrize("loss", [Logistic(), SquaredHinge(), Poisson()], ids=str)
def test_best_constant_of_a_single_kind_of_target_is_finite(loss):
    for y in (np.ones(5), np.zeros(5) if isinstance(loss, Poisson) else -np.ones(5)):
        assert np.isfinite(losses.best_constant(loss, y, np.ones(5)))


def test_weighted_quantile():
    y = np.array([3.0, 1.0, 2.0])
    assert weighted_quantile(y, np.array([1.0, 1.0, 1.0]), 0.5) == 2.0
    assert weighted_quantile(y, np.array([10.0, 1.0, 1.0]), 0.5) == 3.0
    assert weighted_quantile(y, np.array([0.0, 1.0, 1.0]), 0.99) == 2.0


def test_inverse_links():
    raw = np.array([-2.0, 0.0, 3.0])
    assert np.allclose(losses.inverse_link(Logistic(), raw), expit(raw))
    assert np.allclose(losses.inverse_link(SquaredHinge(), raw), [0.0, 0.5, 1.0])
    assert np.allclose(losses.inverse_link(Poisson(), raw), np.exp(raw))


@pytest.mark.parametrize(
    ("loss", "bad", "words"),
    [
        (Logistic(), [0.0, 1.0], "-1 and 1"),
        (SquaredHinge(), [0.0, 1.0], "-1 and 1"),
        (Poisson(), [-1.0, 2.0], ">= 0"),
    ],
)
def test_targets_that_do_not_fit(loss, bad, words):
    assert words in losses.invalid_targets(loss, np.array(bad))


def test_names_are_found_and_others_refused():
    known = named_specs("polyfm.losses")
    assert find_spec("squared_hinge", known, "loss", losses.value) == SquaredHinge()
    assert find_spec(Huber(3.0), known, "loss", losses.value) == Huber(3.0)
    with pytest.raises(ValueError, match="loss='hinge' is not known; choose one of 'huber'"):
        find_spec("hinge", known, "loss", losses.value)
    with pytest.raises(TypeError, match="loss must be a name or a spec with an implementation"):
        find_spec(3, known, "loss", losses.value)


def test_a_spec_without_implementation_is_named():
    with pytest.raises(TypeError, match=r"value\(\) has no implementation for tuple; it knows"):
        losses.value((), 0.0, 0.0)
