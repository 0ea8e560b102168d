"""``polyfm reproduce``."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Run

from polyfm import experiments

TABLE = experiments.Report("Nothing", ("model", "loss"), [("none", 0.25)], ["A note."])


@pytest.fixture(autouse=True)
def _one_experiment(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing() -> experiments.Report:
        """Measure nothing."""
        return TABLE

    monkeypatch.setattr(experiments, "EXPERIMENTS", {"nothing": nothing})


def test_without_a_name_it_lists_them(run: Run) -> None:
    assert run("reproduce").out == "nothing             Measure nothing.\n"


def test_prints_the_table(run: Run) -> None:
    assert run("reproduce", "nothing").out == TABLE.to_text() + "\n"
    assert run("reproduce", "nothing", "--markdown").out == TABLE.to_markdown() + "\n"


def test_writes_csv(run: Run, tmp_path: Path) -> None:
    assert run("reproduce", "nothing", "--csv", tmp_path / "t.csv").code == 0
    assert (tmp_path / "t.csv").read_text() == "model,loss\nnone,0.25\n"


def test_unknown_name(run: Run) -> None:
    result = run("reproduce", "everything")
    assert result.code == 2
    assert "no experiment 'everything'; choose one of nothing" in result.err


def test_draws_a_figure(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    drawn = experiments.Report("Drawn", ("model",), draw=lambda figure: figure.subplots())
    monkeypatch.setitem(experiments.EXPERIMENTS, "drawn", lambda: drawn)
    assert run("reproduce", "drawn", "--figure", tmp_path / "f.png").code == 0
    assert (tmp_path / "f.png").read_bytes()[:4] == b"\x89PNG"


def test_an_experiment_without_a_figure(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    result = run("reproduce", "nothing", "--figure", tmp_path / "f.png")
    assert result.code == 2
    assert "has no figure" in result.err


def test_the_long_version(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def long(full: bool = False) -> experiments.Report:
        """Measure long."""
        return experiments.Report("Long" if full else "Short", ("model",), [("a",)])

    monkeypatch.setitem(experiments.EXPERIMENTS, "long", long)
    assert run("reproduce", "long").out.startswith("Short")
    assert run("reproduce", "long", "--full").out.startswith("Long")
    assert "no long version" in run("reproduce", "nothing", "--full").err
