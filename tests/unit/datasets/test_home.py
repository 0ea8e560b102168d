import hashlib
import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from polyfm.datasets import home
from polyfm.datasets.home import DatasetNotFoundError, Download, Source, cache_folder, find

FILES = (("a.txt", "a.rebuilt.txt"), ("b.txt",))


@pytest.fixture(autouse=True)
def empty_homes(tmp_path, monkeypatch):
    monkeypatch.setenv("POLYFM_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("POLYFM_CACHE", str(tmp_path / "cache"))


def put(folder, **texts):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name.replace('_', '.')}").write_text(text)


def zipped(path, members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return path


def source(*paths, digest=""):
    downloads = tuple(Download(path.as_uri(), digest) for path in paths)
    return Source("some-set", FILES, "https://example.org/set", downloads)


def test_data_home_comes_before_the_cache(tmp_path):
    put(cache_folder() / "some-set", a_txt="cache", b_txt="cache")
    assert find(source())["a.txt"].read_text() == "cache"
    put(tmp_path / "data" / "some-set", a_txt="home", b_txt="home")
    assert find(source())["a.txt"].read_text() == "home"


def test_alternative_names_and_incomplete_folders(tmp_path):
    put(tmp_path / "data" / "some-set", a_rebuilt_txt="x")
    with pytest.raises(DatasetNotFoundError):
        find(source())
    put(tmp_path / "data" / "some-set", b_txt="y")
    found = find(source())
    assert found["a.txt"].name == "a.rebuilt.txt"


def test_not_found_says_in_one_line_what_to_do():
    with pytest.raises(DatasetNotFoundError) as caught:
        find(source())
    message = str(caught.value)
    assert "\n" not in message
    for part in ("some-set", "a.txt, b.txt", "https://example.org/set", "POLYFM_DATA"):
        assert part in message
    assert str(cache_folder() / "some-set") in message


def test_download_unpacks_flat_into_the_cache(tmp_path, capsys):
    members = {"set/a.txt": "A", "set/deep/b.txt": "B", "set/other.txt": "-", "../evil.txt": "-"}
    archive = zipped(tmp_path / "set.zip", members)
    found = find(source(archive))
    folder = cache_folder() / "some-set"
    assert {name: path.read_text() for name, path in found.items()} == {"a.txt": "A", "b.txt": "B"}
    assert sorted(p.name for p in folder.iterdir()) == ["a.txt", "b.txt"]
    assert [p.name for p in folder.parent.iterdir()] == ["some-set"]  # nothing left behind
    out, err = capsys.readouterr()
    assert out == ""
    assert "set.zip [" in err
    assert "100%" in err


def test_second_call_does_not_download(tmp_path, monkeypatch):
    archive = zipped(tmp_path / "set.zip", {"a.txt": "A", "b.txt": "B"})
    first = find(source(archive))
    monkeypatch.setattr(home, "urlopen", None)
    assert find(source(archive)) == first


def test_tar_archives_and_single_files(tmp_path):
    tar_path, single = tmp_path / "set.tgz", tmp_path / "b.txt"
    with tarfile.open(tar_path, "w:gz") as archive:
        entry = tarfile.TarInfo("set/a.txt")
        entry.size = 1
        archive.addfile(entry, io.BytesIO(b"A"))
    single.write_text("B")
    found = find(source(tar_path, single))
    assert (found["a.txt"].read_text(), found["b.txt"].read_text()) == ("A", "B")


def test_checksum(tmp_path):
    archive = zipped(tmp_path / "set.zip", {"a.txt": "A", "b.txt": "B"})
    with pytest.raises(DatasetNotFoundError, match=r"md5 is .* expected 00"):
        find(source(archive, digest="md5:00"))
    assert list(cache_folder().iterdir()) == []  # the damaged file is gone
    right = hashlib.sha256(archive.read_bytes()).hexdigest()
    assert find(source(archive, digest=f"sha256:{right}"))


def test_archive_without_the_files(tmp_path):
    archive = zipped(tmp_path / "set.zip", {"a.txt": "A"})
    with pytest.raises(DatasetNotFoundError, match="the download lacks files"):
        find(source(archive))


def test_network_down(tmp_path):
    with pytest.raises(DatasetNotFoundError, match=r"download failed .*; get a\.txt"):
        find(source(tmp_path / "absent.zip"))


def test_download_forbidden(tmp_path):
    archive = zipped(tmp_path / "set.zip", {"a.txt": "A", "b.txt": "B"})
    with pytest.raises(DatasetNotFoundError, match="not found"):
        find(source(archive), download=False)


class Answer(io.BytesIO):
    """A server's answer that may promise more than it sends."""

    headers: dict[str, str]


@pytest.mark.parametrize("promised", [b"", b"999"])
def test_connection_breaks_off(tmp_path, monkeypatch, promised):
    archive = zipped(tmp_path / "set.zip", {"a.txt": "A", "b.txt": "B"})
    answer = Answer(archive.read_bytes())
    answer.headers = {"Content-Length": promised.decode()} if promised else {}
    monkeypatch.setattr(home, "urlopen", lambda url, timeout: answer)
    if promised:
        with pytest.raises(DatasetNotFoundError, match=r"broke off after \d+ of 999 bytes"):
            find(source(archive))
        assert list(cache_folder().iterdir()) == []
    else:  # a server that does not say the size is fine
        assert find(source(archive))


@pytest.mark.parametrize(
    ("platform", "variable", "tail"),
    [
        ("linux", "XDG_CACHE_HOME", ("polyfm", "datasets")),
        ("win32", "LOCALAPPDATA", ("polyfm", "datasets")),
        ("darwin", "HOME", ("Library", "Caches", "polyfm", "datasets")),
    ],
)
def test_cache_folder_of_each_platform(monkeypatch, tmp_path, platform, variable, tail):
    monkeypatch.delenv("POLYFM_CACHE")
    monkeypatch.setattr(home.sys, "platform", platform)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setenv(variable, str(tmp_path))
    assert cache_folder() == tmp_path.joinpath(*tail)
