"""What all tests share."""

import os
import subprocess
import sys
import textwrap

import hypothesis
import numpy as np
import pytest

# The same examples in every run, and no complaint about the one that pays for a compilation.
hypothesis.settings.register_profile(
    "reproducible", derandomize=True, deadline=None, max_examples=50, database=None
)
hypothesis.settings.load_profile("reproducible")


@pytest.fixture
def random():
    return np.random.default_rng(0)


@pytest.fixture
def run_python():
    """Run a script in a process of its own and return what it printed."""

    def run(script, *args, **environment):
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(script), *map(str, args)],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run
