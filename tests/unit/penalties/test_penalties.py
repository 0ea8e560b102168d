"""Proximal operators by hand and by their optimality condition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyfm.penalties import L2, Box, ElasticNet
from polyfm.penalties.contract import prox, value

points = st.floats(-1e6, 1e6)
strengths = st.floats(0.0, 1e3)
steps = st.floats(0.0, 1e3)


@given(points, strengths, steps)
def test_l2_is_stationary(v, strength, step):
    u = prox(L2(strength), v, step)
    assert u * (1.0 + step * strength) == pytest.approx(v, rel=1e-12, abs=1e-12)


@given(points, strengths, strengths, steps)
def test_elastic_net_is_stationary(v, l1, l2, step):
    u = float(prox(ElasticNet(l1, l2), v, step))
    # 0 must be a subgradient of step * penalty(u) + (u - v)^2 / 2.
    rest = v - u * (1.0 + step * l2)
    tolerance = 1e-9 * (1.0 + abs(v) + step * l1)
    if u == 0.0:
        assert abs(rest) <= step * l1 + tolerance
    else:
        assert rest == pytest.approx(np.sign(u) * step * l1, abs=tolerance)


@given(points, points, steps)
def test_prox_never_spreads_two_points(v, w, step):
    for penalty in (L2(0.7), ElasticNet(0.3, 0.2), Box(2.0)):
        gap = abs(prox(penalty, v, step) - prox(penalty, w, step))
        assert gap <= abs(v - w) * (1 + 1e-12) + 1e-9


@given(st.lists(points, min_size=8, max_size=8), steps)
def test_lanes_are_eight_scalars(v, step):
    for penalty in (L2(0.7), ElasticNet(0.3, 0.2), Box(2.0)):
        together = prox(penalty, np.array(v), step)
        assert list(together) == [float(prox(penalty, one, step)) for one in v]


def test_l1_makes_zeros():
    assert prox(ElasticNet(1.0, 0.0), 0.05, 0.1) == 0.0
    assert prox(ElasticNet(1.0, 0.0), -0.05, 0.1) == 0.0
    assert prox(ElasticNet(1.0, 0.0), 0.25, 0.1) == pytest.approx(0.15)
    assert prox(ElasticNet(1.0, 1.0), -2.0, 1.0) == -0.5


def test_box_clips():
    assert [float(prox(Box(2.0), v, 0.3)) for v in (-5.0, 0.5, 5.0)] == [-2.0, 0.5, 2.0]


def test_values():
    v = np.array([-2.0, 0.0, 3.0])
    assert np.allclose(value(L2(0.5), v), [1.0, 0.0, 2.25])
    assert np.allclose(value(ElasticNet(0.5, 0.0), v), [1.0, 0.0, 1.5])
    assert list(value(Box(2.0), v)) == [0.0, 0.0, np.inf]
