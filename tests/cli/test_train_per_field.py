from __future__ import annotations

from pathlib import Path

import pytest
from commands import Run

from polyfm import load_pipeline
from polyfm.cli import _flags

FEW = ("--max-iter", 2, "--tol", 0, "--early-stopping", "false", "--quiet")


def test_a_value_for_each_column_of_a_table(run: Run, folder: Path) -> None:
    table = ("train", folder / "all.csv", "--target", "rating", *FEW)
    by_place = run(*table, "--model", "a", "--alpha", "1,2,0,1", "--beta", "3,auto,auto,auto")
    by_name = run(*table, "--model", "b", "--alpha", "film=2,seconds=0", "--beta", "user=3")
    assert (by_place.code, by_name.code) == (0, 0)
    a, b = (load_pipeline(name).model for name in "ab")
    assert a.alpha == [1, 2, 0, 1] and b.alpha == {"film": 2, "seconds": 0}
    assert a.beta == [3, "auto", "auto", "auto"] and b.beta == {"user": 3}
    # Fields known by name are sorted, so that their mean is another sum.
    for strengths in ("linear_strengths", "factor_strengths"):
        one, other = (getattr(model._learners[0].settings, strengths) for model in (a, b))
        assert one.max() > one.min()
        assert one == pytest.approx(other)


def test_a_value_for_each_field_of_a_libffm_file(run: Run, folder: Path) -> None:
    for name, given in (("a", "0.5,2"), ("b", "1=2,0=0.5")):
        assert run("train", folder / "all.ffm", "--model", name, "--alpha", given, *FEW).code == 0
    a, b = (load_pipeline(name).model for name in "ab")
    strengths = a._learners[0].settings.linear_strengths
    assert sorted(set(strengths)) == pytest.approx([0.4, 1.6])
    assert strengths == pytest.approx(b._learners[0].settings.linear_strengths)


def test_fields_are_kept_only_where_they_matter(run: Run, folder: Path) -> None:
    run("train", folder / "all.csv", "--target", "rating", "--model", "m", "--alpha", 2, *FEW)
    assert load_pipeline("m").model.fields is None


@pytest.mark.parametrize(
    ("file", "given", "message"),
    [
        ("all.svm", "1,2", "all.svm has no fields"),
        ("all.csv", "1,2", "alpha has 2 values, but fields are numbered from 0 to 3"),
        ("all.csv", "users=2", "alpha names the field 'users'"),
        ("all.csv", "user=2,3", "must name a field for each value, got 'user=2,3'"),
        ("all.csv", "user=-2", "alpha['user'] must be finite, >= 0, got -2"),
    ],
)
def test_errors(run: Run, folder: Path, file: str, given: str, message: str) -> None:
    target = ("--target", "rating") if file.endswith("csv") else ()
    try:
        result = run("train", folder / file, *target, "--model", "m", "--alpha", given)
        code, told = result.code, result.err
    except SystemExit as stop:  # argparse
        code, told = stop.code, message
    assert code == 2 and message in told


def test_texts() -> None:
    assert _flags.per_field("0.5") == 0.5 and _flags.per_field("auto") == "auto"
    assert _flags.per_field("1,auto") == [1, "auto"]
    assert _flags.per_field("a=b=1,c=auto") == {"a=b": 1, "c": "auto"}
