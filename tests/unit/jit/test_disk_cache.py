"""Compiled code on disk: found by the next process, renewed when the source changes."""

import textwrap

import pytest

FIT = """
    import sys
    import numpy as np
    from polyfm import FMRegressor
    from polyfm._jit import compile_count
    X = np.random.default_rng(0).normal(size=(30, 4))
    y = X[:, 0] * X[:, 1]
    model = FMRegressor(max_iter=2, random_state=0).fit(X, y)
    first = compile_count()
    for changed in (
        dict(alpha=3.0), dict(beta=0.5), dict(rank=3), dict(rank=11), dict(learning_rate=0.02),
        dict(max_iter=3), dict(order=3, fit_lower="explicit"), dict(random_state=7),
        dict(n_jobs=1), dict(order=1), dict(fit_intercept=False), dict(init_scale=0.1),
    ):
        model.set_params(**changed).fit(X, y).predict(X)
    print(first, compile_count() - first)
"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("jit")


def test_first_process_compiles_once(run_python, cache):
    first, later = map(int, run_python(FIT, POLYFM_JIT_CACHE=str(cache)).split())
    assert first > 0
    # Only prediction comes on top of the first fit, once, whatever the hyper-parameters.
    assert later <= 1
    assert any(cache.iterdir())


def test_next_process_compiles_nothing(run_python, cache):
    assert run_python(FIT, POLYFM_JIT_CACHE=str(cache)) == "0 0"


def test_other_hyper_parameters_compile_nothing(random):
    from polyfm import FMRegressor
    from polyfm._jit import compile_count

    X = random.normal(size=(30, 4))
    y = X[:, 0] * X[:, 1]
    model = FMRegressor(max_iter=1, random_state=0)
    model.fit(X, y).predict(X)
    before = compile_count()
    model.set_params(alpha=0.1, rank=5, order=4, learning_rate=0.01, max_iter=2, beta=1.0)
    model.fit(X[:20], y[:20]).predict(X)
    assert compile_count() == before


OWN_LOSS = """
    from typing import NamedTuple
    from polyfm.losses import contract

    class Stretched(NamedTuple):
        factor: float = 1.0

    @contract.value.implements(Stretched)
    def value(loss, y, p):
        return {constant} * loss.factor * abs(y - p)
"""
EVALUATE = """
    import sys
    sys.path.insert(0, sys.argv[1])
    import numpy as np
    import own_loss
    from polyfm._jit import compile_count
    from polyfm.losses.evaluate import mean_loss
    y, p = np.array([1.0, 2.0]), np.array([2.0, 4.0])
    print(mean_loss(own_loss.Stretched(2.0), y, p, np.ones(2)), compile_count())
"""


def test_changed_loss_of_the_user_is_compiled_anew(run_python, tmp_path):
    def evaluate(constant):
        source = textwrap.dedent(OWN_LOSS).format(constant=constant)
        (tmp_path / "own_loss.py").write_text(source)
        printed = run_python(
            EVALUATE, tmp_path, POLYFM_JIT_CACHE=str(tmp_path / "jit"), PYTHONDONTWRITEBYTECODE="1"
        )
        value, n_compiled = printed.split()
        return float(value), int(n_compiled)

    assert evaluate("1.0") == (3.0, 1)
    assert evaluate("1.0") == (3.0, 0)
    assert evaluate("10.0") == (30.0, 1)
    # Both stay on disk: programs with and without a loss of their own share the folder.
    assert evaluate("1.0") == (3.0, 0)


def test_folder_that_cannot_be_written_means_no_cache(run_python, tmp_path):
    (tmp_path / "file").write_text("in the way")
    script = """
        import numpy as np
        from polyfm._jit import compile_count
        from polyfm.losses import Squared
        from polyfm.losses.evaluate import mean_loss
        print(mean_loss(Squared(), np.zeros(2), np.ones(2), np.ones(2)), compile_count())
    """
    for _ in range(2):
        folder = str(tmp_path / "file" / "jit")
        value, _n_compiled = run_python(script, POLYFM_JIT_CACHE=folder).split()
        assert float(value) == 0.5
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_cache_folder_can_be_chosen(monkeypatch, tmp_path):
    from polyfm._jit.cache import cache_folder

    monkeypatch.setenv("POLYFM_JIT_CACHE", str(tmp_path / "one"))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "two"))
    assert cache_folder() == tmp_path / "one"
    monkeypatch.delenv("POLYFM_JIT_CACHE")
    assert cache_folder() == tmp_path / "two"
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    assert cache_folder().parts[-2:] == ("polyfm", "jit")
