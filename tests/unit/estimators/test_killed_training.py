"""Training that is killed at random moments, twenty times, ends in the bits of one that was not."""

import os
import subprocess
import sys

import pytest

_SCRIPT = """
import os, random, signal, sys, time
import numpy as np, scipy.sparse as sp
import polyfm
from polyfm.data import Dataset
from polyfm.estimators import _out_of_core
from polyfm.estimators.checkpoints import Checkpoint

_out_of_core._PART_ROWS = 2048
folder, kind = sys.argv[1:]
path = os.path.join(folder, "run.polyfm")
random_ = np.random.default_rng(0)
n, d, m = 40_000, 500, 8
columns = np.sort(random_.integers(0, d, (n, m)), axis=1)
X = sp.csr_matrix((np.ones(n * m, np.float32), columns.ravel(), np.arange(0, n * m + 1, m)), (n, d))
y = (X @ random_.normal(size=d) + random_.normal(size=n) > 0).astype(int)
dataset = Dataset.write(os.path.join(folder, "rows"), [(X, y)])

def new():
    cls, settings = {
        "fm": (polyfm.FMClassifier, {"max_iter": 12, "rank": 4, "tol": 0.0}),
        "pqr": (polyfm.PQRClassifier, {"max_iter": 8, "order": 60, "tol": 0.0}),
    }[kind]
    return cls(random_state=0, **settings)

whole = new().fit(dataset)
started = time.perf_counter()
whole = new().fit(dataset)
seconds = time.perf_counter() - started
chance, kills = random.Random(kind), 0
while kills < 20:
    pid = os.fork()
    if pid == 0:
        new().fit(dataset, checkpoint=Checkpoint(path, rows=4000))
        os._exit(0)
    deadline = time.monotonic() + chance.uniform(0.02, 0.3) * seconds
    while time.monotonic() < deadline:
        time.sleep(0.001)
    os.kill(pid, signal.SIGKILL)
    killed = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0
    kills += killed
    if not killed:
        os.unlink(path)
resumed = new().fit(dataset, checkpoint=Checkpoint(path, rows=4000))
assert np.array_equal(whole.decision_function(X), resumed.decision_function(X))
assert whole.history_["loss"] == resumed.history_["loss"]
assert polyfm.load_model(path).t_ == whole.t_
left = [name for name in os.listdir(folder) if name not in ("rows", "run.polyfm")]
assert all(name.endswith(".part") for name in left), left
print(kills)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.parametrize("kind", ["fm", "pqr"])
def test_killed_twenty_times(kind, tmp_path):
    command = [sys.executable, "-c", _SCRIPT, str(tmp_path), kind]
    result = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == ["20"]
