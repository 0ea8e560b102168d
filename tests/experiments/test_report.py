"""Tables of results."""

import csv
import io

import pytest

from polyfm.experiments import EXPERIMENTS, Report


@pytest.fixture
def report():
    table = Report("A title", ("model", "loss", "epochs"), notes=["A note."])
    table.add("short", 0.5, "7")
    table.add("a longer name", 12.34567, "10")
    return table


def test_text_is_aligned(report):
    lines = report.to_text().splitlines()
    assert lines[0] == "A title"
    assert lines[4:] == [
        "short           0.5000       7",
        "a longer name  12.3457      10",
        "- A note.",
    ]


def test_csv_keeps_all_digits(report):
    rows = list(csv.reader(io.StringIO(report.to_csv())))
    assert rows == [["model", "loss", "epochs"], ["short", "0.5", "7"],
                    ["a longer name", "12.34567", "10"]]  # fmt: skip


def test_markdown(report):
    lines = report.to_markdown().splitlines()
    assert lines[2:5] == [
        "| model | loss | epochs |",
        "| --- | ---: | ---: |",
        "| short | 0.5000 | 7 |",
    ]


def test_a_row_must_fit(report):
    with pytest.raises(ValueError, match="2 cells for 3 columns"):
        report.add("one", 2.0)


def test_every_experiment_says_what_it_measures():
    assert all(experiment.__doc__ for experiment in EXPERIMENTS.values())
