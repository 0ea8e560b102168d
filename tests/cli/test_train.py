from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import N, Run

from polyfm import FMClassifier, FMRegressor, load_pipeline
from polyfm.cli import _flags
from polyfm.cli._encoding import numeric
from polyfm.cli._files import STDIN
from polyfm.data import load_svmlight
from polyfm.data.frames import read_table


def test_tells_what_it_does_and_saves(run: Run, folder: Path) -> None:
    result = run("train", folder / "all.csv", "--target", "rating", "--model", "m.polyfm")
    assert result.code == 0 and result.out == ""
    assert f"{N} rows" in result.err and "regression" in result.err
    assert "epoch   1/100" in result.err and "saved to m.polyfm" in result.err
    saved = load_pipeline("m.polyfm")
    assert isinstance(saved.model, FMRegressor) and saved.model.verbose == 0
    assert saved.notes == {"format": "csv", "target": "rating", "task": "regression"}
    assert saved.encoder.field_names_ == ["user", "film", "seconds", "liked"]


def test_the_same_command_gives_the_same_model(run: Run, folder: Path) -> None:
    for name in "ab":
        run("train", folder / "all.svm", "--model", name, "--max-iter", 2, "--quiet")
    X = load_svmlight(folder / "all.svm")[0]
    a, b = (load_pipeline(name).model.decision_function(X) for name in "ab")
    np.testing.assert_array_equal(a, b)


def test_quiet_writes_nothing(run: Run, folder: Path) -> None:
    result = run(
        "train", folder / "all.svm", "--model", "m", "--max-iter", 1, "--tol", 0, "--quiet"
    )
    assert result == (0, "", "")


def test_flags_reach_the_estimator(run: Run, folder: Path) -> None:
    given = (
        "--order 3 --rank 5 --fit-lower none --no-fit-linear --alpha 0.5 --beta auto --tol 0 "
        "--early-stopping true --validation-fraction 0.2 --scoring roc_auc --max-iter 2 "
        "--class-weight balanced --n-jobs 1"
    )
    result = run("train", folder / "all.svm", "--model", "m", *given.split())
    assert result.code == 0
    model = load_pipeline("m").model
    wanted = {"order": 3, "rank": 5, "fit_lower": None, "fit_linear": False, "alpha": 0.5}
    wanted |= {"beta": "auto", "early_stopping": True, "validation_fraction": 0.2, "n_jobs": 1}
    wanted |= {"scoring": "roc_auc", "class_weight": "balanced", "random_state": 0}
    assert {name: getattr(model, name) for name in wanted} == wanted
    assert "validation roc auc" in result.err


def test_every_parameter_has_a_flag_with_help(run: Run) -> None:
    result = run("train", "--help")
    assert result.code == 0 and "examples:" in result.out
    for estimator in (FMRegressor, FMClassifier):
        for name in estimator().get_params():
            flag = f"--{name.replace('_', '-')}"
            assert (flag in result.out) == (name not in _flags._HIDDEN), flag
    text = " ".join(result.out.split())
    assert "Highest degree m >= 1 of the interactions; 1 is a linear model. (default: 2)" in text
    assert "(default: squared) For classification:" in text
    assert "spec" not in text and "``" not in text and ":math:" not in text


def test_flags_follow_the_docstring() -> None:
    class Estimator:
        """One.

        Parameters
        ----------
        depth, width : int, default=3
            How ``deep``
            it is: :math:`\\sqrt{k}`.
        mode : {"a", "b", None}, default="a"
            One of some.

        Attributes
        ----------
        other_ : int
            No parameter.
        """

        def __init__(self, depth: int = 3, width: int = 3, mode: str = "a") -> None: ...

    told = _flags.documented(Estimator)
    assert list(told) == ["depth", "width", "mode"]
    assert told["width"].text == "How deep it is: sqrt(k)."
    assert told["mode"].kind.startswith("{")

    class Silent:
        """Two."""

        def __init__(self, depth: int = 3) -> None: ...

    with pytest.raises(ValueError, match="does not document its parameter 'depth'"):
        _flags.documented(Silent)


@pytest.mark.parametrize(
    ("text", "value"),
    [("none", None), ("True", True), ("false", False), ("3", 3), ("1e-3", 1e-3), ("auto", "auto")],
)
def test_values_of_flags(text: str, value: Any) -> None:
    assert _flags.value_of(text) == value
    assert type(_flags.value_of(text)) is type(value)


@pytest.mark.parametrize(
    ("target", "options", "kind"),
    [
        ("liked", [], FMClassifier),
        ("rating", [], FMRegressor),
        ("user", [], FMRegressor),
        ("user", ["--task", "classification"], FMClassifier),
    ],
)
def test_task(run: Run, folder: Path, target: str, options: list[str], kind: type) -> None:
    words = ["--target", target, "--model", "m", "--max-iter", 1, *options]
    assert run("train", folder / "all.csv", *words).code == 0
    assert type(load_pipeline("m").model) is kind


def test_labels_keep_their_type(liked: Path, clicks: Path) -> None:
    assert load_pipeline(liked).model.classes_.tolist() == ["no", "yes"]
    assert repr(load_pipeline(clicks).model.classes_.tolist()) == "[-1, 1]"


def columns(**values: Any) -> Any:
    return read_table({name: np.asarray(column) for name, column in values.items()}).columns


def test_robust_encoding_of_numbers() -> None:
    n = np.arange(100)
    table = columns(
        code=n % 20, stamp=n, half=n / 2, gaps=np.where(n < 50, np.nan, n % 5), text=["a"] * 100
    )
    expected = {"code": "category", "stamp": "bin", "half": "bin", "gaps": "category"}
    assert numeric([], table) == expected
    assert numeric(["half=standardize", "bin"], table) == {
        **dict.fromkeys(expected, "bin"),
        "half": "standardize",
    }
    assert numeric(["auto"], table) == expected
    with pytest.raises(ValueError, match="must be one of"):
        numeric(["half=log"], table)
    with pytest.raises(ValueError, match="'nope'"):
        numeric(["nope=bin"], table)


def test_encoding_flags(run: Run, folder: Path) -> None:
    Path("s.csv").write_text("tags,x,y\n" + "a|b,1.5,1\nb|c,2.5,2\n|,0.5,4\n" * 20)
    words = "--target y --task regression --sets tags=| --numeric x=passthrough --min-count 2"
    assert run("train", "s.csv", "--model", "m", *words.split(), "--max-iter", 1).code == 0
    names = load_pipeline("m").encoder.get_feature_names_out().tolist()
    assert "x" in names and {"tags=a", "tags=b", "tags=c"} <= set(names)


def test_validation_file(run: Run, folder: Path) -> None:
    words = ["--target", "liked", "--model", "m", "--validation", folder / "test.csv"]
    result = run("train", folder / "all.csv", *words)
    assert result.code == 0 and "validation_loss" in result.err
    words = ["--model", "s", "--validation", folder / "all.svm", "--max-iter", 2]
    assert "validation_loss" in run("train", folder / "all.svm", *words).err
    words = ["--target", "liked", "--model", "m", "--validation", folder / "all.svm"]
    assert "another kind of format" in run("train", folder / "all.csv", *words).err


def test_libffm_and_zero_based_indices(run: Run, folder: Path) -> None:
    assert run("train", folder / "all.ffm", "--model", "m", "--max-iter", 2).code == 0
    saved = load_pipeline("m")
    assert saved.notes["zero_based"] is True and saved.model.n_features_in_ == 21
    assert run("evaluate", folder / "all.ffm", "--model", "m").code == 0


def test_predict_only_is_smaller(run: Run, folder: Path) -> None:
    for name, words in (("a", []), ("b", ["--predict-only"])):
        run("train", folder / "all.svm", "--model", name, "--max-iter", 1, *words)
    assert Path("b").stat().st_size < Path("a").stat().st_size
    with pytest.raises(ValueError, match="include_state=False"):
        load_pipeline("b").model.partial_fit(*load_svmlight(folder / "all.svm"))


def test_from_standard_input(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (folder / "all.csv").open() as stream:
        monkeypatch.setattr("sys.stdin", stream)
        words = ["--target", "liked", "--model", "m", "--max-iter", 1, "--quiet"]
        assert run("train", STDIN, *words).code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("nope.csv --target y --model m", "nope.csv: No such file"),
        ("{}/all.csv --model m", "by --target"),
        ("{}/all.csv --target nope --model m", "no column 'nope'"),
        ("{}/all.csv --target liked --model gone/m", "gone: there is no such folder"),
        ("{}/all.csv --target liked --model .", "is a folder"),
        ("{}/all.csv --target liked --model m --order 0", "order must be"),
        ("{}/all.csv --target liked --model m --loss huber", "loss='huber'"),
        ("{}/all.csv --target rating --model m --class-weight balanced", "is for classification"),
        ("{}/all.csv --target liked --model m --sets film", "--sets takes COLUMN=VALUE"),
        ("{}/all.csv --target liked --model m --separator ab", "--separator"),
        ("{}/all.csv --target film --task regression --model m", "y must hold numbers"),
        ("{}/all.svm --model m --zero-based maybe", "--zero-based"),
        ("{}/all.csv --target liked", "required: --model"),
        ("{}/all.csv --target liked --model m --bogus", "unrecognized arguments: --bogus"),
        ("{}/words --target liked --model m", "cannot tell the format"),
    ],
)
def test_errors_take_one_line(
    run: Run, folder: Path, liked: Path, words: str, message: str
) -> None:
    (folder / "words").write_text("neither rows nor columns\n")
    result = run("train", *(word.replace("{}", str(folder)) for word in words.split()))
    assert result.code == 2 and result.out == ""
    last = result.err.splitlines()[-1]
    assert last.startswith("polyfm") and message in last
    assert "Traceback" not in result.err
    assert not Path("m").exists()


def test_debug_shows_where(run: Run) -> None:
    with pytest.raises(FileNotFoundError):
        run("train", "nope.csv", "--target", "y", "--model", "m", "--debug")


def interrupted_after(n_epochs: int) -> Any:
    def fit(self: Any, X: Any, y: Any, **kwargs: Any) -> None:
        if n_epochs:
            self._fit(X, y, None, None, None, None)
        raise KeyboardInterrupt

    return fit


@pytest.mark.parametrize("n_epochs", [0, 2])
def test_interrupt_says_what_was_saved(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, n_epochs: int
) -> None:
    monkeypatch.setattr(FMClassifier, "fit", interrupted_after(n_epochs))
    words = ["--model", "m", "--max-iter", 2, "--tol", 0]
    result = run("train", folder / "all.svm", *words)
    assert result.code == 130
    last = result.err.splitlines()[-1]
    if n_epochs:
        assert "after epoch 2 was saved to m" in last
        assert load_pipeline("m").model.n_iter_ == 2
    else:
        assert "no model was saved" in last and not Path("m").exists()


def test_no_input_is_overwritten(run: Run, folder: Path, liked: Path) -> None:
    before = (folder / "all.csv").read_bytes()
    for words in (
        ["train", folder / "all.csv", "--target", "liked", "--model", folder / "all.csv"],
        ["predict", folder / "all.csv", "--model", liked, "--output", folder / "all.csv"],
        ["predict", folder / "all.csv", "--model", liked, "--output", liked],
    ):
        result = run(*words)
        assert result.code == 2
        assert "is read by this command: write to another file" in result.err
    assert (folder / "all.csv").read_bytes() == before
