"""The command line as a process: pipes, Ctrl-C, cost of the import, the demo."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polyfm import load_model
from polyfm.cli import demo, main
from polyfm.persistence.container import read_container

POLYFM = [sys.executable, "-m", "polyfm.cli"]


def start(*words: object, **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*POLYFM, *map(str, words)], text=True, stderr=subprocess.PIPE, **options
    )


def test_importing_the_command_line_is_cheap() -> None:
    heavy = "{'sklearn', 'numba', 'scipy', 'numpy', 'pandas', 'matplotlib'}"
    program = f"import sys, polyfm.cli; print({heavy} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"


def test_a_pipe(folder: Path, clicks: Path) -> None:
    done = subprocess.run(
        [*POLYFM, "predict", "-", "--model", str(clicks)],
        input=(folder / "all.svm").read_bytes(),
        capture_output=True,
        check=True,
    )
    lines = done.stdout.decode().splitlines()
    assert lines[0] == "prediction" and set(lines[1:]) == {"-1", "1"}
    assert done.stderr == b""


@pytest.mark.skipif(os.name == "nt", reason="no such signal")
def test_a_reader_that_goes_away(folder: Path, clicks: Path, tmp_path: Path) -> None:
    (tmp_path / "long.svm").write_text((folder / "all.svm").read_text() * 200)
    with start(
        "predict", "long.svm", "--model", clicks, "--proba", stdout=subprocess.PIPE, cwd=tmp_path
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr is not None and process.stderr.read() == ""
        assert process.wait() == 141


@pytest.mark.skipif(os.name == "nt", reason="no such signal")
def test_ctrl_c_saves_what_was_learnt(folder: Path, tmp_path: Path) -> None:
    words = ["train", folder / "all.svm", "--model", "m.polyfm", "--tol", 0, "--max-iter", 10**7]
    with start(*words, cwd=tmp_path) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if re.match(r"epoch +3/", line):
                break
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read().splitlines()
        assert process.wait() == 130, rest
    assert "Traceback" not in "".join(rest)
    saved = re.fullmatch(
        r"polyfm train: interrupted: the model as it was after epoch (\d+) was saved to m.polyfm",
        rest[-1],
    )
    assert saved is not None, rest
    assert load_model(tmp_path / "m.polyfm").n_iter_ == int(saved[1])


def small_adult() -> Any:
    from dataclasses import replace

    from polyfm.datasets import load_adult

    adult = load_adult()
    train, test = adult.splits["test"]
    return replace(adult, splits={"test": (train[:3000], test[:1000])})


def test_demo(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(demo, "load_adult", small_adult)
    monkeypatch.setattr(demo, "_LEAST_ROWS", 20)
    assert main(["demo", "--plot", "curves.png"]) == 0
    out, err = capsys.readouterr()
    table = re.findall(r"^(.*\S)  +(0\.\d{4})  (0\.\d{4})  +\d+\.\d$", out, re.MULTILINE)
    assert [row[0] for row in table] == [
        "logistic regression (scikit-learn)",
        *(f"polyfm, order {m}" for m in (1, 2, 3)),
    ]
    assert all(float(row[1]) < 0.5 and float(row[2]) > 0.8 for row in table)
    assert len(re.findall(r"  x  .*[+-]\d\.\d\d  (raises|lowers) income above 50K", out)) == 10
    assert "learning curves saved to curves.png" in out
    assert Path("curves.png").read_bytes().startswith(b"\x89PNG")
    assert "polyfm, order 3: " in err


def test_demo_without_matplotlib(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setattr(demo, "load_adult", small_adult)
    assert main(["demo", "--quiet"]) == 0
    out, err = capsys.readouterr()
    assert "pip install 'polyfm[plot]'" in out and err == ""


def test_conditions_in_words() -> None:
    assert demo._condition("sex=Male") == "sex = Male"
    assert demo._condition("age=(25.0, 30.0]") == "age in (25, 30]"
    assert demo._condition("gain=(-inf, 0.0]") == "gain <= 0"
    assert demo._condition("age=(58, inf]") == "age > 58"


class Terminal:
    def __init__(self) -> None:
        self.text = ""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None:
        pass


def test_the_status_line_stays_in_place() -> None:
    terminal = Terminal()
    line = demo.StatusLine(terminal, "order 2: ")  # type: ignore[arg-type]
    line.write("epoch 10\n")
    line.write("epoch 2")
    line.clear()
    shown = terminal.text.split("\r")
    assert shown[1] == "order 2: epoch 10" and shown[2] == "order 2: epoch 2 "
    assert "\n" not in terminal.text and shown[3].strip() == "" and shown[-1] == ""


@pytest.mark.skipif(os.name == "nt", reason="no such signal")
@pytest.mark.parametrize("kind", ["fm", "difacto"])
def test_a_stream_that_is_killed_goes_on(kind: str, folder: Path, tmp_path: Path) -> None:
    rows = tmp_path / "long.svm"
    rows.write_text((folder / "all.svm").read_text() * 60)
    words = ["online", str(rows), "--model", kind, "--batch-size", "50", "--quiet"]
    saved = ["--checkpoint", str(tmp_path / "run.polyfm"), "--every", "200"]
    assert main([*words, "--output", str(tmp_path / "whole.polyfm")]) == 0
    process = start(*words, *saved, stdout=subprocess.DEVNULL)
    while process.poll() is None and not (tmp_path / "run.polyfm").exists():
        pass
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    again = [*words, *saved, "--resume", "--output", str(tmp_path / "resumed.polyfm")]
    assert main(again) == 0
    whole, resumed = (read_container(tmp_path / f"{x}.polyfm")[0] for x in ("whole", "resumed"))
    assert whole.keys() == resumed.keys()
    for name, numbers in whole.items():
        np.testing.assert_array_equal(resumed[name], numbers, err_msg=name)
