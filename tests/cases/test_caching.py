"""Publicly reported faults of other programs: copies of data on disk, and the memory they take.

The number in a test's name is that of the report; each says what must happen here instead.
"""

import gc
import os
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from polyfm.data import Batch, Dataset, DatasetError
from polyfm.data.survey import Survey


def batches(n, n_rows=1000, n_entries=20):
    """Yield batches of which one takes about 250 kB."""
    random = np.random.default_rng(0)
    ends = np.arange(n_rows + 1) * n_entries
    for _ in range(n):
        columns = random.integers(0, 100, (n_rows, n_entries)) + 100 * np.arange(n_entries)
        values = random.random(n_rows * n_entries).astype(np.float32) + 1
        yield Batch(sp.csr_matrix((values, columns.ravel(), ends)), np.zeros(n_rows))


def peak_of(call):
    """Return what a call allocates at most at a time, in bytes; mapped files are not counted."""
    gc.collect()
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_case_121_one_stray_id_takes_no_room(tmp_path):
    """A column number of 2**31 - 2 is stored in the bytes of any other."""
    X = sp.csr_matrix(([1.0], [2**31 - 2], [0, 1]), shape=(1, 2**31 - 1))

    def write_and_read():
        dataset = Dataset.write(tmp_path / "d", [(X, None)], overwrite=True)
        assert dataset.rows(0, 1).X.indices.tolist() == [2**31 - 2]
        assert dataset.n_bytes < 10_000

    write_and_read()
    assert peak_of(write_and_read) < 5_000_000


def test_case_123_batches_beyond_the_file(tmp_path):
    """A batch of more rows than there are is all of them, and takes no more memory."""
    dataset = Dataset.write(tmp_path / "d", batches(3))
    (batch,) = dataset.iter_batches(10**12)
    assert batch.n_rows == 3000
    assert peak_of(lambda: list(dataset.iter_batches(10**12))) < 100_000


def test_case_127_opening_leaves_nothing_behind(tmp_path):
    """Neither memory nor open files pile up, whether opening succeeds or not."""
    path = tmp_path / "d"
    Dataset.write(path, batches(3), shard_rows=1000)
    broken = tmp_path / "broken"
    Dataset.write(broken, batches(3), shard_rows=1000)
    (broken / "shard-00002.pfm").write_bytes(b"")

    def open_often(n):
        for _ in range(n):
            list(Dataset(path).iter_batches(700))
            with pytest.raises(DatasetError):
                Dataset(broken)
        gc.collect()

    open_often(5)
    tracemalloc.start()
    try:
        open_often(5)
        before = tracemalloc.get_traced_memory()[0]
        open_often(100)
        assert tracemalloc.get_traced_memory()[0] - before < 100_000
    finally:
        tracemalloc.stop()
    if os.path.isdir("/proc/self/fd"):
        names = [os.readlink(f"/proc/self/fd/{n}") for n in _open_files()]
        assert not any(str(tmp_path) in name for name in names)


def _open_files():
    found = os.listdir("/proc/self/fd")
    return [n for n in found if os.path.lexists(f"/proc/self/fd/{n}")]


def test_case_130_writing_takes_the_memory_of_a_batch(tmp_path):
    """Six times the rows take the same memory, in one shard or in several."""
    Dataset.write(tmp_path / "warm", batches(1))
    few = peak_of(lambda: Dataset.write(tmp_path / "few", batches(16)))
    many = peak_of(lambda: Dataset.write(tmp_path / "many", batches(96)))
    several = peak_of(lambda: Dataset.write(tmp_path / "several", batches(96), shard_rows=7000))
    assert max(many, several) < few + 100_000
    assert Dataset(tmp_path / "many").n_bytes > 5 * few


def test_case_131_a_survey_of_ever_new_columns_is_bounded():
    """What is said of columns beyond the counted ones becomes an estimate, not a growing table."""

    def survey():
        found = Survey()
        for start in range(40):
            columns = (start * 10_000 + np.arange(10_000)) * 10_000_019
            X = sp.csr_matrix(
                (np.ones(10_000, np.float32), columns, np.arange(10_001)), (10_000, 2**42)
            )
            found.add(Batch(X, None))
        assert found.is_folded
        assert 300_000 < found.n_used <= 400_000

    survey()
    assert peak_of(survey) < 160_000_000
