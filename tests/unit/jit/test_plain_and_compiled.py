"""Without compilation the library does the same, to the bit."""

import numpy as np
import pytest

from polyfm import FMRegressor
from polyfm._jit import LANES, generic, lanes
from polyfm.kernels import ANOVA
from polyfm.testing import plain
from polyfm.testing._models import model_of, plain_scores, rows_of

FIT = """
    import sys
    import numpy as np
    from polyfm import FMClassifier, FMRegressor
    random = np.random.default_rng(0)
    X = random.normal(size=(25, 5)) * (random.random((25, 5)) < 0.6)
    y = X[:, 0] * X[:, 1] + X[:, 2]
    shared = dict(max_iter=2, rank=3, init_scale=0.1, random_state=0)
    results = {
        "adagrad": FMRegressor(order=3, **shared).fit(X, y).predict(X),
        "augment": FMRegressor(order=3, fit_lower="augment", **shared).fit(X, y).predict(X),
        "stream": FMRegressor(**shared).partial_fit(X, y).predict(X),
        "logistic": FMClassifier(**shared).fit(X, y > 0).decision_function(X),
        "three": FMClassifier(**shared).fit(X, np.digitize(y, [-0.1, 0.1])).decision_function(X),
    }
    np.savez(sys.argv[1], **results)
"""


def test_estimators_without_compilation(run_python, tmp_path):
    run_python(FIT, tmp_path / "compiled.npz")
    run_python(FIT, tmp_path / "plain.npz", NUMBA_DISABLE_JIT="1")
    compiled, interpreted = np.load(tmp_path / "compiled.npz"), np.load(tmp_path / "plain.npz")
    for name in ("adagrad", "augment", "stream"):
        assert np.array_equal(compiled[name], interpreted[name]), name
    # The exponential function of NumPy and that of the compiler may differ in the last digit.
    for name in ("logistic", "three"):
        assert np.allclose(compiled[name], interpreted[name], rtol=1e-12, atol=1e-14), name


@pytest.mark.parametrize("rank", [1, 8, 11])
def test_plain_predictions_are_the_compiled_bits(random, rank):
    model = model_of(ANOVA(3), random.normal(size=(6, rank)), linear=random.normal(size=6))
    rows = rows_of(random.normal(size=(7, 6)))
    assert np.array_equal(plain_scores(model, rows), model.scores(rows))


def test_import_compiles_nothing(run_python):
    script = """
        import polyfm, polyfm.estimators
        from polyfm._jit import compile_count
        from polyfm._jit.cache import _dispatchers
        print(compile_count(), sum(len(d.signatures) for d in _dispatchers))
    """
    assert run_python(script) == "0 0"


class Square(tuple):
    __slots__ = ()


def test_generic_is_dispatched_on_the_class_of_the_spec():
    @generic
    def area(shape, scale):
        """Return the area."""

    area.table[Square] = lambda shape, scale: scale * shape[0] ** 2
    assert area(Square((3,)), 2) == 18
    assert area.__doc__ == "Return the area."
    with pytest.raises(TypeError, match=r"area\(\) has no implementation for tuple; it knows Sq"):
        area((3,), 2)
    # Dispatch is on the exact class, as in compiled code.
    with pytest.raises(TypeError, match="Larger"):
        area(type("Larger", (Square,), {})((3,)), 2)


def test_plain_replaces_what_is_called_inside():
    assert plain(lanes.load) is not lanes.load
    assert np.array_equal(plain(lanes.load)(np.arange(3.0), 1, 2), [1, 2] + [0] * (LANES - 2))


def test_lanes_read_and_write_part_of_a_row():
    memory = np.arange(20.0)
    lanes.store(memory, 2, 3, np.full(LANES, -1.0))
    assert memory[:7].tolist() == [0, 1, -1, -1, -1, 5, 6]
    lanes.store(memory, 7, 1, 5.5)
    assert memory[7] == 5.5
    assert lanes.load_like(1.0, memory, 7, 1) == 5.5
    assert lanes.horizontal_sum(np.arange(8.0)) == 28.0


def test_rank_beyond_a_register_is_no_special_case(random):
    """Bases in other lanes and chunks leave a basis alone."""
    X = random.normal(size=(40, 4))
    y = X[:, 0] * X[:, 1]
    P = random.normal(size=(4, 19))
    whole = model_of(ANOVA(2), P).scores(rows_of(X))
    parts = [model_of(ANOVA(2), P[:, [s]]).scores(rows_of(X)) for s in range(19)]
    assert np.allclose(whole, np.sum(parts, axis=0), rtol=1e-12, atol=1e-12)
    assert np.isfinite(FMRegressor(rank=19, max_iter=2, random_state=0).fit(X, y).score(X, y))
