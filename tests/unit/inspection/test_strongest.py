"""The search for the strongest interactions equals sorting all of them."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from polyfm import FMRegressor
from polyfm.inspection import Interaction, interaction_weight, strongest_interactions
from polyfm.inspection import _search as search_module
from polyfm.inspection._search import Best, Search

D = 14
RANDOM = np.random.default_rng(3)
X = sp.csr_matrix((RANDOM.random((150, D)) < 0.3).astype(float))
Y = np.asarray(X[:, [0]].multiply(X[:, [5]]).sum(axis=1)).ravel() + RANDOM.normal(size=150)
FIELDS = np.arange(D) // 3


@pytest.fixture(scope="module")
def model() -> FMRegressor:
    model = FMRegressor(order=4, rank=3, max_iter=3, beta=0.01, init_scale=0.5, random_state=0)
    return model.fit(X, Y)


def everything(model: Any, degree: int, allowed: Any = lambda c: True) -> list[Any]:
    rows = [c for c in combinations(range(D), degree) if allowed(c)]
    return sorted(rows, key=lambda c: -abs(interaction_weight(model, c)))


def apart(features: Any) -> bool:
    return len({int(FIELDS[j]) for j in features}) == len(features)


def count(features: Any) -> int:
    return int((X[:, list(features)].toarray() != 0).all(axis=1).sum())


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_equals_sorting_all(model: Any, degree: int) -> None:
    found = strongest_interactions(model, top=12, degree=degree)
    assert [row.features for row in found] == everything(model, degree)[:12]
    assert found.exact
    for row in found:
        assert row.weight == pytest.approx(interaction_weight(model, row.features), rel=1e-12)
        assert row.count is None


@pytest.mark.parametrize("degree", [2, 3])
def test_fields_are_kept_apart(model: Any, degree: int) -> None:
    found = strongest_interactions(model, top=9, degree=degree, fields=FIELDS)
    assert [row.features for row in found] == everything(model, degree, apart)[:9]


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_only_what_occurs_often_enough(model: Any, degree: int) -> None:
    least = {1: 45, 2: 14, 3: 5}[degree]
    found = strongest_interactions(model, top=8, degree=degree, X=X, min_count=least)
    expected = everything(model, degree, lambda c: count(c) >= least)
    assert len(expected) > 0
    assert [row.features for row in found] == expected[:8]
    assert [row.count for row in found] == [count(row.features) for row in found]


def test_counts_say_what_was_never_seen_together(model: Any) -> None:
    rows = X.copy().tolil()
    rows[:, 7] = 0
    found = strongest_interactions(model, top=91, X=rows.tocsr())
    unseen = [row for row in found if 7 in row.features]
    assert len(unseen) == D - 1
    assert all(row.count == 0 and "never seen together" in str(row) for row in unseen)


def test_more_than_there_are(model: Any) -> None:
    assert len(strongest_interactions(model, top=1000)) == D * (D - 1) // 2
    assert strongest_interactions(model, degree=5) == []
    assert strongest_interactions(FMRegressor(rank=0, max_iter=1).fit(X, Y)) == []


def test_kernels_with_several_blocks_and_signs() -> None:
    for options in (
        {"kernel": "all-subsets"},
        {"order": 3, "fit_lower": "augment"},
        {"order": 3, "fit_lower": "augment", "fit_linear": False},
        {"order": 3, "kernel": "inhomogeneous-anova"},
        {"order": 3, "fit_weights": True},
        {"order": 3, "kernel": "polynomial"},
    ):
        model = FMRegressor(rank=3, max_iter=2, beta=0.01, random_state=0, **options).fit(X, Y)
        found = strongest_interactions(model, top=5)
        assert [row.features for row in found] == everything(model, 2)[:5]
        singles = strongest_interactions(model, top=4, degree=1)
        assert [row.features for row in singles] == everything(model, 1)[:4]
        for row in singles:
            assert row.weight == pytest.approx(interaction_weight(model, row.features), rel=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"top": 0}, "top must be an integer >= 1"),
        ({"degree": 0}, "degree must be"),
        ({"min_count": -1}, "min_count must be"),
        ({"min_count": 2}, "min_count needs X"),
        ({"fields": [0, 1]}, "fields has shape"),
        ({"X": np.ones((3, 2))}, "X has 2 columns"),
        ({"class_index": 1}, "class_index"),
    ],
)
def test_impossible_requests(model: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        strongest_interactions(model, **options)


def test_prints_as_a_table(model: Any) -> None:
    found = strongest_interactions(model, top=3, X=X, feature_names=[f"f{j}" for j in range(D)])
    lines = str(found).splitlines()
    assert len(lines) == 3 and all("  x  f" in line and " rows)" in line for line in lines)
    row = Interaction((0, 1), ("a=b", "c"), -0.25, 1200)
    assert str(row) == "a=b  x  c  -0.25  (1,200 rows)"


def run(factors: Any, signs: Any, degree: int, top: int, budget: float = np.inf) -> Any:
    order = np.argsort(-np.linalg.norm(factors, axis=1), kind="stable")
    search = Search(factors[order], signs, Best(top, degree), None, None, 0, budget)
    exact = search.run()
    return np.abs(search.best.weights), exact


def brute(factors: Any, signs: Any, degree: int, top: int) -> Any:
    weights = [
        abs(signs @ factors[list(c)].prod(axis=0))
        for c in combinations(range(len(factors)), degree)
    ]
    return np.sort(weights)[::-1][:top]


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    d=st.integers(4, 25),
    k=st.integers(1, 4),
    degree=st.integers(2, 4),
    top=st.integers(1, 8),
)
def test_search_equals_enumeration(seed: int, d: int, k: int, degree: int, top: int) -> None:
    random = np.random.default_rng(seed)
    factors = random.normal(size=(d, k)) * random.exponential(size=(d, 1)) ** 2
    signs = random.choice([-1.0, 1.0], size=k)
    found, exact = run(factors, signs, degree, top)
    assert exact
    np.testing.assert_allclose(found, brute(factors, signs, degree, top), rtol=1e-12)


def test_small_tiles_and_batches_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    factors = RANDOM.normal(size=(60, 3))
    signs = np.array([1.0, -1.0, 1.0])
    whole, _ = run(factors, signs, 3, 10)
    monkeypatch.setattr(search_module, "_TILE", 50)
    monkeypatch.setattr(search_module, "_BATCH", 7)
    np.testing.assert_allclose(run(factors, signs, 3, 10)[0], whole, rtol=1e-12)


def test_a_spent_budget_is_told_and_still_finds_good_ones() -> None:
    factors = RANDOM.normal(size=(300, 6))
    signs = np.ones(6)
    found, exact = run(factors, signs, 3, 5, budget=1000)
    best, _ = run(factors, signs, 3, 5)
    assert not exact
    assert found[0] > 0.5 * best[0]


def test_pruning_looks_at_few_of_many_pairs() -> None:
    # 20,000 features make 200 million pairs; their norms fall as those of real features do.
    d = 20_000
    factors = RANDOM.normal(size=(d, 8)) / np.arange(1, d + 1)[:, None] ** 0.5
    found, exact = run(factors, np.ones(8), 2, 10, budget=5e6)
    assert exact and len(found) == 10


def test_says_when_the_budget_was_spent(model: Any) -> None:
    found = strongest_interactions(model, degree=3, budget=1)
    assert not found.exact and "budget" in str(found).splitlines()[-1]
