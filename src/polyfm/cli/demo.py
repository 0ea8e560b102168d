"""``polyfm demo``."""

from __future__ import annotations

import argparse
import contextlib
import math
import re
import shutil
import sys
import time
from typing import Any, NamedTuple, TextIO

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score

from polyfm.cli._files import check_writable
from polyfm.cli._models import say
from polyfm.datasets import DatasetBundle, load_adult
from polyfm.estimators import FMClassifier
from polyfm.inspection import Interaction, plot_learning_curves, strongest_interactions

_EPILOG = """example:
  polyfm demo

The data are those of load_adult (census of 1994, CC BY 4.0): 48,842 persons, and whether they earn
more than 50,000 dollars a year. The first run compiles for some seconds; later ones do not.
"""
_ORDERS = (1, 2, 3)
_SHOWN_ORDER = 2
_LEAST_ROWS = 300
_FEW_ROWS = 100
_LEFT = 34


class Result(NamedTuple):
    """One line of the table."""

    name: str
    log_loss: float
    auc: float
    seconds: float


class StatusLine:
    """A text stream that shows the last line written, in place, and only on a terminal."""

    def __init__(self, stream: TextIO, label: str) -> None:
        self._stream = stream
        self._label = label
        self._drawn = 0

    def isatty(self) -> bool:
        """Whether anybody sees it."""
        return self._stream.isatty()

    def write(self, text: str) -> int:
        """Show the text in place of the last."""
        line = text.strip()
        if line and self.isatty():
            width = shutil.get_terminal_size().columns - 1
            self._show(f"{self._label}{line}"[:width])
        return len(text)

    def flush(self) -> None:
        """Do nothing: what is shown is shown."""

    def clear(self) -> None:
        """Take the line away."""
        if self._drawn:
            self._show("")
            self._stream.write("\r")
            self._stream.flush()

    def _show(self, line: str) -> None:
        self._stream.write("\r" + line.ljust(self._drawn))
        self._stream.flush()
        self._drawn = len(line)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add description and arguments."""
    parser.description = (
        "Train factorization machines of order 1, 2 and 3 on the Adult census data, compare them\n"
        "with logistic regression, name the strongest interactions and plot the learning curves."
    )
    parser.epilog = _EPILOG
    parser.add_argument(
        "--plot",
        default="polyfm-demo.png",
        metavar="PNG",
        help="where to save the learning curves (default: %(default)s)",
    )


def run(args: argparse.Namespace) -> None:
    """Show what the package does."""
    check_writable(args.plot)
    adult = load_adult()
    X, _, y, y_test = adult.split("test")
    print("Adult census data: does a person earn more than 50,000 dollars a year?")
    print(f"{len(y):,} rows to learn from, {len(y_test):,} to test on, {X.shape[1]} features\n")
    models = {order: FMClassifier(order=order, random_state=0, verbose=1) for order in _ORDERS}
    _compile(args, X, y)
    results = [_measure(args, "logistic regression (scikit-learn)", _rival(), adult)]
    results += [_measure(args, f"polyfm, order {m}", models[m], adult) for m in _ORDERS]
    _print_table(results)
    _print_interactions(models[_SHOWN_ORDER], adult)
    _plot(args, models)


def _rival() -> Any:
    return LogisticRegression(max_iter=1000)


def _compile(args: argparse.Namespace, X: Any, y: Any) -> None:
    """Have everything compiled, so that training times are those of training."""
    line = StatusLine(sys.stderr, "")
    if not args.quiet:
        line.write("compiling, once per machine ...")
    started = time.perf_counter()
    try:
        FMClassifier(max_iter=1).fit(X[:_FEW_ROWS], y[:_FEW_ROWS]).predict(X[:_FEW_ROWS])
    finally:
        line.clear()
    say(args, f"compiled or loaded in {time.perf_counter() - started:.1f} s")


def _measure(args: argparse.Namespace, name: str, model: Any, adult: DatasetBundle) -> Result:
    X, X_test, y, y_test = adult.split("test")
    line = StatusLine(sys.stderr, f"{name}: ")
    if not args.quiet:
        line.write("training ...")
    started = time.perf_counter()
    try:
        with contextlib.redirect_stdout(_Null() if args.quiet else line):
            model.fit(X, y)
    finally:
        line.clear()
    seconds = time.perf_counter() - started
    p = model.predict_proba(X_test)[:, 1].astype(np.float64)
    epochs = np.max(model.n_iter_)
    say(args, f"{name}: {seconds:.1f} s, {epochs} {'epochs' if 'polyfm' in name else 'steps'}")
    return Result(name, float(log_loss(y_test, p)), float(roc_auc_score(y_test, p)), seconds)


class _Null(StatusLine):
    """A stream that shows nothing."""

    def __init__(self) -> None:
        super().__init__(sys.stderr, "")

    def isatty(self) -> bool:
        """Nobody sees it."""
        return False


def _print_table(results: list[Result]) -> None:
    print(f"\n{'on the test rows':<{_LEFT}}  log loss     AUC  seconds")
    for result in results:
        print(
            f"{result.name:<{_LEFT}}  {result.log_loss:8.4f}  {result.auc:6.4f}  "
            f"{result.seconds:7.1f}"
        )


def _print_interactions(model: Any, adult: DatasetBundle) -> None:
    rows, _ = adult.splits["test"]
    found = strongest_interactions(
        model,
        X=adult.X[rows],
        min_count=_LEAST_ROWS,
        fields=adult.fields,
        feature_names=list(adult.feature_names),
    )
    print(
        f"\nthe strongest interactions of order {_SHOWN_ORDER}, beyond what each feature says by "
        f"itself\n(of those in {_LEAST_ROWS} rows or more)"
    )
    pairs = [_in_words(interaction) for interaction in found]
    left = max(len(first) for first, _ in pairs)
    right = max(len(second) for _, second in pairs)
    for (first, second), interaction in zip(pairs, found, strict=True):
        verb = "raises" if interaction.weight > 0 else "lowers"
        print(
            f"{first:<{left}}  x  {second:<{right}}  {interaction.weight:+.2f}  "
            f"{verb} income above 50K"
        )


def _in_words(interaction: Interaction) -> tuple[str, str]:
    first, second = (_condition(name) for name in interaction.names)
    return first, second


def _condition(name: str) -> str:
    """Return ``sex=Male`` as "sex = Male", ``age=(25.0, 30.0]`` as "age in (25, 30]"."""
    field, _, value = name.partition("=")
    bounds = re.fullmatch(r"\((.+), (.+)\]", value)
    if bounds is None:
        return f"{field} = {value}"
    low, high = float(bounds[1]), float(bounds[2])
    if math.isinf(low):
        return f"{field} <= {high:.10g}"
    return f"{field} > {low:.10g}" if math.isinf(high) else f"{field} in ({low:.10g}, {high:.10g}]"


def _plot(args: argparse.Namespace, models: dict[int, Any]) -> None:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print("\nno plot of the learning curves: it needs matplotlib, pip install 'polyfm[plot]'")
        return
    figure = Figure(figsize=(7.5, 4.5), layout="constrained")
    ax = plot_learning_curves(
        {f"order {order}": model for order, model in models.items()}, ax=figure.subplots()
    )
    ax.set_ylabel("log loss")
    ax.set_title("Adult: learning curves of factorization machines", loc="left", fontsize="medium")
    figure.savefig(args.plot, dpi=150)
    print(f"\nlearning curves saved to {args.plot}")
