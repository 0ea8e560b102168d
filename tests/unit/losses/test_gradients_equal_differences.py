"""The derivative of every loss in every kind of parameter, through every kernel and layout."""

import numpy as np
import pytest

from polyfm import kernels, losses
from polyfm.kernels import contract as kernel_contract
from polyfm.losses import contract
from polyfm.models.factorized import Factorized
from polyfm.models.layout import lay_out
from polyfm.testing._models import (
    enumerated_scores,
    first_shared_degree,
    model_of,
    read_gradient,
)

LOSSES = [*(getattr(losses, name)() for name in losses.__all__), losses.Huber(10.0)]
MODELS = {
    "anova 2": (kernels.ANOVA(), 2, "explicit", False),
    "anova 4 explicit": (kernels.ANOVA(), 4, "explicit", False),
    "anova 3 augmented": (kernels.ANOVA(), 3, "augment", False),
    "anova 3 alone": (kernels.ANOVA(), 3, None, False),
    "inhomogeneous anova 3": (kernels.ANOVA(), 3, None, True),
    "polynomial 3 explicit": (kernels.Polynomial(), 3, "explicit", False),
    "polynomial 2 augmented": (kernels.Polynomial(), 2, "augment", False),
    "all-subsets": (kernels.AllSubsets(), 2, None, False),
}
X = [
    np.array([1.0, -2.0, 0.0, 0.5, 1.5]),
    np.array([0.0, -0.5, 60.0, 1e-3, -1e-3]),
    np.array([0.0, 0.0, 0.0, -1.0, 0.0]),
    np.zeros(5),
]


def test_all_kernels_are_in_the_table():
    assert {type(m[0]).__name__ for m in MODELS.values()} == set(kernels.__all__)


def build(name, random):
    kernel, order, lower, inhomogeneous = MODELS[name]
    layout = lay_out(kernel, order, 2, lower=lower, linear=True, inhomogeneous=inhomogeneous)
    table = 0.2 * random.normal(size=(5 + layout.n_dummies, layout.rank))
    # A factor of 0, and one whose all-subsets factor 1 + p x is 0 in the first row.
    table[0, 0], table[1, 0] = 0.0, 0.5
    return model_of(
        layout.kernel,
        table,
        bias=0.3,
        linear=0.1 * random.normal(size=5),
        lam=random.uniform(0.5, 1.0, layout.rank),
        theta=random.uniform(0.5, 1.0, kernel_contract.n_degree_weights(layout.kernel)),
        degrees=layout.degrees,
        n_dummies=layout.n_dummies,
    )


def loss_at(model, parameters, loss, x, y):
    moved = Factorized(model.kernel, {}, parameters, model.n_dummies)
    return contract.value(loss, y, enumerated_scores(moved, x[None])[0])


def differences(model, loss, x, y):
    """Return d loss / d parameters by central differences of the enumerated model."""
    p, inputs = model.parameters, np.append(x, np.ones(model.n_dummies))
    gradient = {}
    for name in ("bias", "linear", "table", "weights", "theta"):
        block = getattr(p, name)
        gradient[name] = np.zeros_like(block)
        for place in np.ndindex(block.shape):
            # The larger the input, the shorter the step that keeps the score close.
            size = np.abs(inputs[place[0]]) if name in ("linear", "table") else 1.0
            step = 1e-5 / max(size, 1.0)
            moved = [block.copy(), block.copy()]
            moved[0][place] += step
            moved[1][place] -= step
            above, below = (loss_at(model, p._replace(**{name: m}), loss, x, y) for m in moved)
            gradient[name][place] = (above - below) / (2 * step)
    # Where bases are bound to degrees, the weights of the degrees are not learnt.
    gradient["theta"][:, : first_shared_degree(model)] = 0.0
    return gradient


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("name", MODELS)
def test_gradient(random, name, loss):
    model = build(name, random)
    # Far from the kinks of the quantile, Huber and hinge losses.
    y = 1.0 if not contract.invalid_targets(loss, np.array([1.0])) else -1.0
    y = 5.3 if not contract.invalid_targets(loss, np.array([5.3])) else y
    for x in X:
        read = read_gradient(model, x, y, loss=loss, interpreted=True)
        for block, wanted in differences(model, loss, x, y).items():
            got = getattr(read, block)
            scale = 1.0 + np.abs(wanted).max(initial=0.0)
            assert np.allclose(got, wanted, rtol=1e-6, atol=1e-6 * scale), (block, x)


@pytest.mark.parametrize("name", MODELS)
def test_compiled_gradient_is_the_plain_one(random, name):
    model = build(name, random)
    for x in X:
        compiled, interpreted = read_gradient(model, x), read_gradient(model, x, interpreted=True)
        for block, plain_block in zip(compiled, interpreted, strict=True):
            assert np.array_equal(block, plain_block)
