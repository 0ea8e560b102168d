"""Whatever happens to the files of a dataset, or while it is written, no wrong row is read."""

from __future__ import annotations

import errno
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import scipy.sparse as sp

from polyfm import FMClassifier
from polyfm.data import Dataset, DatasetError, DatasetWriter, _sections
from polyfm.data.rows import canonical_csr


def a_matrix(n_rows, seed=0):
    X = sp.random(n_rows, 50, 0.2, "csr", dtype=np.float32, random_state=seed)
    return canonical_csr(X)


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    path = tmp_path_factory.mktemp("damage") / "d"
    X, y = a_matrix(200), np.arange(200) % 3
    Dataset.write(
        path, [(X, y, 1.0 + y)], shard_rows=120, fields=np.arange(50) % 4,
        feature_names=[f"column {j}" for j in range(50)], attachments={"encoder": b"12345"},
    )  # fmt: skip
    return path


def copied(original, tmp_path):
    path = tmp_path / "d"
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(original, path)
    return path


def read_all(path):
    """Open and verify; return all that can be read."""
    dataset = Dataset(path)
    dataset.verify()
    whole = dataset.rows(0, dataset.n_rows)
    arrays = [whole.X.indptr, whole.X.indices, whole.X.data, whole.y, whole.weight, dataset.fields]
    return [array.tobytes() for array in arrays]


FILES = ("shard-00000.pfm", "shard-00001.pfm", "columns.pfm", "manifest.json", "attached-encoder")


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_cut_off_is_refused(original, tmp_path, name):
    path = copied(original, tmp_path)
    whole = (path / name).read_bytes()
    random = np.random.default_rng(0)
    lengths = {0, 1, 63, 64, 1023, 1024, len(whole) - 64, len(whole) - 1}
    lengths |= set(random.integers(0, len(whole), 60).tolist())
    for length in sorted(n for n in lengths if 0 <= n < len(whole)):
        (path / name).write_bytes(whole[:length])
        with pytest.raises(DatasetError) as caught:
            read_all(path)
        assert str(path) in str(caught.value)
    (path / name).write_bytes(whole + b"\0")
    with pytest.raises(DatasetError):
        read_all(path)


@pytest.mark.parametrize("name", FILES)
def test_a_changed_byte_is_found(original, tmp_path, name):
    path = copied(original, tmp_path)
    whole = (path / name).read_bytes()
    random = np.random.default_rng(1)
    expected = read_all(path)
    for place in [*range(0, min(len(whole), 200), 7), *random.integers(0, len(whole), 150)]:
        damaged = bytearray(whole)
        damaged[place] ^= 1 << int(random.integers(8))
        (path / name).write_bytes(damaged)
        try:
            found = read_all(path)
        except DatasetError:
            continue
        # White space of the manifest says nothing.
        assert name == "manifest.json"
        assert found == expected
        assert json.loads(bytes(damaged)) == json.loads(whole)


def test_rows_of_a_damaged_shard_are_never_out_of_bounds(original, tmp_path):
    """Row ends are looked at without verify: compiled code would follow them anywhere."""
    path = copied(original, tmp_path)
    shard = path / "shard-00000.pfm"
    ends = Dataset(path).shards[0].file.section("indptr")
    whole = shard.read_bytes()
    place = whole.index(ends.tobytes())
    damaged = bytearray(whole)
    damaged[place + 8 * 50 + 5] ^= 0x40
    shard.write_bytes(damaged)
    with pytest.raises(DatasetError, match="a row ends before it starts"):
        Dataset(path).rows(0, 10)


@pytest.mark.parametrize("name", ["shard-00001.pfm", "columns.pfm", "attached-encoder"])
def test_a_missing_file_is_told(original, tmp_path, name):
    path = copied(original, tmp_path)
    (path / name).unlink()
    with pytest.raises(DatasetError, match=name):
        read_all(path)


def test_a_file_of_another_dataset_is_refused(original, tmp_path):
    path = copied(original, tmp_path)
    Dataset.write(tmp_path / "other", [(a_matrix(200, seed=1), np.zeros(200))], shard_rows=120)
    shutil.copy(tmp_path / "other" / "shard-00000.pfm", path / "shard-00000.pfm")
    with pytest.raises(DatasetError, match="not the file that the manifest describes"):
        Dataset(path)


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b"\xff\xfe", b"[" * 100_000])
def test_foreign_manifests_are_refused(tmp_path, content):
    (tmp_path / "manifest.json").write_bytes(content)
    with pytest.raises(DatasetError, match=r"manifest.json"):
        Dataset(tmp_path)


def test_paths_without_a_dataset_are_told(tmp_path):
    with pytest.raises(DatasetError, match="no such dataset"):
        Dataset(tmp_path / "none")
    with pytest.raises(DatasetError, match=r"has no manifest.json"):
        Dataset(tmp_path)
    (tmp_path / "rows.svm").write_text("1 1:1\n")
    with pytest.raises(DatasetError, match="is a file; a dataset is a folder"):
        Dataset(tmp_path / "rows.svm")


def test_newer_versions_are_told(original, tmp_path):
    path = copied(original, tmp_path)
    content = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(json.dumps({**content, "version": 99}))
    with pytest.raises(DatasetError, match="format version 99 is newer"):
        Dataset(path)


class FullDisk(io.FileIO):
    """A file on a disk that has room for so many bytes more, over all files."""

    room = 0

    def write(self, data):
        FullDisk.room -= len(memoryview(data))
        if FullDisk.room < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(data)


@pytest.mark.parametrize("room", [0, 1000, 2000, 5000, 12_000, 20_000])
def test_a_full_disk_leaves_what_was_there(original, tmp_path, monkeypatch, room):
    path = copied(original, tmp_path)
    before = read_all(path)
    FullDisk.room = room
    monkeypatch.setattr(_sections, "open_for_writing", lambda path: FullDisk(path, "x+"))
    with pytest.raises(OSError, match="No space left") as caught:
        Dataset.write(path, [(a_matrix(100, seed=k), None) for k in range(6)], overwrite=True)
    assert caught.value.errno == errno.ENOSPC
    assert read_all(path) == before
    assert os.listdir(tmp_path) == ["d"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write all")
def test_a_folder_that_may_not_be_written(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(PermissionError):
            Dataset.write(tmp_path / "d", [])
    finally:
        tmp_path.chmod(0o700)


def test_a_dataset_that_may_only_be_read(original, tmp_path):
    path = copied(original, tmp_path)
    for file in path.iterdir():
        file.chmod(0o400)
    path.chmod(0o500)
    try:
        assert read_all(path) == read_all(original)
    finally:
        path.chmod(0o700)


WRITERS = """
    import os
    import sys
    import numpy as np
    import scipy.sparse as sp
    from polyfm.data import Dataset

    def batches(n):
        for k in range(n):
            X = sp.random(64, 50, 0.2, "csr", dtype=np.float32, random_state=100 + k)
            print(k, flush=True)
            yield X, np.full(64, float(k))
        print("all", flush=True)

    def write():
        Dataset.write(sys.argv[1], batches(6), shard_rows=100, overwrite=True)
        print("written", flush=True)

    list(batches(0))
    Dataset.write(sys.argv[1] + ".warm", batches(1))
    for _ in sys.stdin:
        child = os.fork()
        if not child:
            print("child", os.getpid(), flush=True)
            while True:
                write()
        os.waitpid(child, 0)
        print("\\ndead", flush=True)
"""


def killed_writers(path, n, random):
    """Let one writer after the other begin; kill each after so many lines of its output."""
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(WRITERS), str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as parent:  # fmt: skip
        for _ in range(n):
            parent.stdin.write("go\n")
            parent.stdin.flush()
            child = int(next(line.split()[1] for line in parent.stdout if line.startswith("child")))
            for _ in range(int(random.integers(1, 30))):
                assert parent.stdout.readline()
            os.kill(child, signal.SIGKILL)
            assert any(line == "dead\n" for line in parent.stdout)
            yield
        parent.stdin.close()
        parent.wait(timeout=60)


def expected_rows():
    parts = [
        sp.random(64, 50, 0.2, "csr", dtype=np.float32, random_state=100 + k) for k in range(6)
    ]
    return canonical_csr(sp.vstack(parts).tocsr())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="writers are forked, to be quick")
def test_a_killed_writer_never_leaves_half_a_dataset(tmp_path):
    path = tmp_path / "d"
    former = canonical_csr(a_matrix(30))
    Dataset.write(path, [(former, np.arange(30.0))])
    new = expected_rows()
    for _ in killed_writers(path, 30, np.random.default_rng(0)):
        dataset = Dataset(path)
        dataset.verify()
        X = dataset.rows(0, dataset.n_rows).X
        expected = former if dataset.n_rows == 30 else new
        assert X.shape == expected.shape
        assert abs(X - expected).nnz == 0
    assert dataset.n_rows == new.shape[0]
    # One without a lock was killed before it had one, or just before the end; age tells then.
    for draft in tmp_path.glob(".*.partial-*"):
        if not (draft / "writer.lock").exists():
            os.utime(draft, (0, 0))
    Dataset.write(path, [(former, None)], overwrite=True)
    assert sorted(os.listdir(tmp_path)) == ["d", "d.warm"]


def test_a_draft_is_removed_when_its_writer_is_dead(tmp_path):
    path = tmp_path / "d"
    stale = tmp_path / ".d.partial-1"
    stale.mkdir()
    (stale / "writer.lock").touch()
    with DatasetWriter(tmp_path / "e"):
        assert stale.exists()  # it is of another name
    with DatasetWriter(path) as writer:
        assert not stale.exists()
        assert (tmp_path / f".d.partial-{os.getpid()}").exists()
        writer.finish()
    assert Dataset(path).n_rows == 0


def test_a_former_dataset_that_lost_its_name_is_pointed_to(original, tmp_path):
    path = copied(original, tmp_path)
    path.rename(tmp_path / ".d.former")
    with pytest.raises(DatasetError, match=r"rename .*\.d\.former"):
        Dataset(path)


def test_without_an_exchange_of_folders(original, tmp_path, monkeypatch):
    """As on systems that can only rename."""
    monkeypatch.setattr("polyfm.data._folders._renameat2", lambda: None)
    path = copied(original, tmp_path)
    new = Dataset.write(path, [(a_matrix(7), None)], overwrite=True)
    assert new.n_rows == 7
    assert os.listdir(tmp_path) == ["d"]


def with_section(path, name, place, number):
    """Write a number into a section of the first shard."""
    shard = path / "shard-00000.pfm"
    entry = _sections.SectionFile(shard)._entries[name]
    numbers = np.memmap(shard, entry.dtype, "r+", entry.offset, entry.size // int(entry.dtype[2]))
    numbers[place] = number
    numbers.flush()


@pytest.mark.parametrize(
    ("section", "number", "problem"),
    [
        ("indices", 60, "column numbers in rows 0 to 99 are not sorted, or too large"),
        ("indices", -3, "column numbers in rows 0 to 99 are not sorted, or too large"),
        ("values", np.nan, "values in rows 0 to 99 are zero or not finite"),
        ("values", 0.0, "values in rows 0 to 99 are zero or not finite"),
        ("labels", np.nan, "the target of row 7 is nan"),
        ("labels", 0.5, "the target of row 7 is 0.5"),
        ("labels", 1e300, "the target of row 7 is 1e+300"),
        ("weights", np.nan, "the weight of row 7 is nan"),
        ("weights", -1.0, "the weight of row 7 is -1.0"),
    ],
)
def test_rows_that_were_never_written_name_the_shard(original, tmp_path, section, number, problem):
    path = copied(original, tmp_path)
    with_section(path, section, 7, number)
    dataset = Dataset(path)
    with pytest.raises(DatasetError) as caught:
        list(dataset.iter_batches(100))
    assert str(caught.value).startswith(f"{path / 'shard-00000.pfm'}: is damaged ({problem}")
    assert "verify()" in str(caught.value)
    with pytest.raises(DatasetError):
        dataset.take([(120, 150), (0, 20)])
    with pytest.raises(DatasetError):
        dataset.verify()
    if section in ("labels", "weights"):
        with pytest.raises(DatasetError, match="of row 7 is"):
            getattr(dataset, {"labels": "targets"}.get(section, section))


@pytest.mark.parametrize(
    ("y", "number"),
    [
        (np.arange(20) % 2 == 0, 2.0),
        (np.arange(20) % 2 == 0, np.nan),
        (np.array(["a", "b"] * 10), 2),
        (np.array(["a", "b"] * 10), -1),
        (np.arange(20) / 3, np.inf),
    ],
)
def test_targets_of_every_kind_are_looked_at(tmp_path, y, number):
    Dataset.write(tmp_path / "d", [(a_matrix(20), y)])
    assert Dataset(tmp_path / "d").targets.tolist() == y.tolist()
    with_section(tmp_path / "d", "labels", 3, number)
    with pytest.raises(DatasetError, match="the target of row 3 is"):
        Dataset(tmp_path / "d").rows(2, 5)
    assert Dataset(tmp_path / "d").rows(4, 20).y.tolist() == y[4:].tolist()


def test_an_estimator_tells_of_the_damaged_shard(original, tmp_path):
    path = copied(original, tmp_path)
    with_section(path, "indices", 7, 60)
    with pytest.raises(DatasetError, match=r"shard-00000\.pfm: is damaged"):
        FMClassifier(max_iter=1).fit(Dataset(path))
