"""Loaders on small files in the official formats, and on the real ones where they are there."""

import os
from pathlib import Path

import numpy as np
import pytest

from polyfm import datasets
from polyfm.datasets import home

HOME = os.environ.get("POLYFM_DATA")


def real(*folders):
    here = HOME is not None and all((Path(HOME) / folder).is_dir() for folder in folders)
    return pytest.mark.skipif(not here, reason=f"POLYFM_DATA holds no {', '.join(folders)}")


@pytest.fixture
def small(tmp_path, monkeypatch):
    monkeypatch.setenv("POLYFM_DATA", str(tmp_path))
    monkeypatch.setenv("POLYFM_CACHE", str(tmp_path / "cache"))

    def write(folder, files):
        (tmp_path / folder).mkdir(parents=True)
        for name, text in files.items():
            (tmp_path / folder / name).write_text(text, encoding="latin-1")

    return write


def names_of(bundle, row):
    return bundle.feature_names[bundle.X[row].indices].tolist()


def check_shape(bundle):
    n_rows, n_columns = bundle.X.shape
    assert len(bundle.y) == n_rows
    assert len(bundle.fields) == len(bundle.feature_names) == n_columns
    assert len(set(bundle.feature_names)) == n_columns
    assert set(bundle.fields) == set(range(len(bundle.field_names)))
    assert bundle.X.has_canonical_format
    for train, test in bundle.splits.values():
        assert not set(train) & set(test)
        assert max([*train, *test]) < n_rows
    for column in bundle.frame.values():
        assert len(column) == n_rows


GENRES = ["unknown", "Action", "Comedy"]
SMALL_100K = {
    "u.data": "2\t10\t3\t100\n1\t10\t5\t101\n1\t20\t1\t102\n2\t20\t4\t103\n",
    "u.user": "1|24|M|writer|85711\n2|53|F|other|T8H1N\n",
    "u.item": ("10|Caf\xe9 (1995)|01-Jan-1995||http://x|0|1|1\n20|unknown||||1|0|0\n"),
    "u.genre": "\n".join(f"{name}|{i}" for i, name in enumerate(GENRES)) + "\n\n",
    **{
        f"{name}.{part}": text
        for name in ("u1", "u2", "u3", "u4", "u5", "ua", "ub")
        for part, text in (
            ("base", "1\t10\t5\t101\n1\t20\t1\t102\n2\t20\t4\t103\n"),
            ("test", "2\t10\t3\t100\n"),
        )
    },
}


def test_movielens_100k_ids(small):
    small("movielens-100k", SMALL_100K)
    bundle = datasets.fetch_movielens_100k(download=False)
    check_shape(bundle)
    assert bundle.feature_names.tolist() == ["user=1", "user=2", "item=10", "item=20"]
    expected = [[0, 1, 1, 0], [1, 0, 1, 0], [1, 0, 0, 1], [0, 1, 0, 1]]
    np.testing.assert_array_equal(bundle.X.toarray(), expected)
    assert bundle.y.tolist() == [3, 5, 1, 4]
    assert bundle.frame["timestamp"].tolist() == [100, 101, 102, 103]
    assert list(bundle.splits) == ["u1", "u2", "u3", "u4", "u5", "ua", "ub"]
    train, test = bundle.splits["u3"]
    assert (train.tolist(), test.tolist()) == ([1, 2, 3], [0])


def test_movielens_100k_side_features(small):
    small("movielens-100k", SMALL_100K)
    bundle = datasets.fetch_movielens_100k(side_features=True, dtype=np.float64)
    check_shape(bundle)
    sides = ["age", "gender", "occupation", "zip"]
    assert bundle.field_names == ["user", *sides, "item", "genres", "year"]
    people = ["user=2", "age=(38.5, inf]", "gender=F", "occupation=other", "zip=T8"]
    assert names_of(bundle, 0)[0] == people[0]
    assert names_of(bundle, 0)[2:5] == people[2:]
    film = ["item=10", "genres=Action", "genres=Comedy", "year=1995"]
    assert names_of(bundle, 0)[5:] == film
    assert bundle.X[0].data[-3:].tolist() == [0.5, 0.5, 1]
    assert names_of(bundle, 2)[5:] == ["item=20", "genres=unknown", "year=<missing>"]


def test_movielens_without_ids(small):
    small("movielens-100k", SMALL_100K)
    bundle = datasets.fetch_movielens_100k(ids=False, side_features=True)
    assert "user" not in bundle.field_names
    assert "item" not in bundle.field_names
    with pytest.raises(ValueError, match="leave nothing to learn from"):
        datasets.fetch_movielens_100k(ids=False)


def test_movielens_links(small):
    small("movielens-100k", SMALL_100K)
    bundle = datasets.fetch_movielens_links()
    check_shape(bundle)
    assert bundle.y.tolist() == [-1, 1, -1, -1]
    assert set(bundle.X.data) == {1}
    people = ["user=1", "age=20", "gender=M", "occupation=writer", "zip=8"]
    film = ["item=10", "genres=Action", "genres=Comedy", "year=2000"]
    assert names_of(bundle, 1) == people + film
    assert names_of(bundle, 2)[-1] == "year=<missing>"


def test_movielens_demographics(small):
    small("movielens-100k", SMALL_100K)
    bundle = datasets.fetch_movielens_demographics()
    check_shape(bundle)
    assert bundle.field_names == ["age", "gender", "occupation", "zip", "genres"]
    assert set(bundle.X.data) == {1}
    assert names_of(bundle, 0)[3] == "zip=T8H1N"
    with pytest.raises(ValueError, match="size must be '100k' or '1m', got '10m'"):
        datasets.fetch_movielens_demographics("10m")


SMALL_1M = {
    "users.dat": "1::F::1::10::48067\n2::M::56::16::70072\n3::M::25::15::55117\n",
    "movies.dat": "5::Fa\xdfbinder: X (1980)::Drama|War\n7::No Year::Comedy\n9::Z (1969)::War\n",
}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ratings.dat", "2::5::4::11\n1::7::3::-1\n1::5::2::13\n"),
        ("ratings.csv", "user,movie,rating,timestamp\n2,5,4,11\n1,7,3,\n1,5,2,13\n"),
    ],
)
def test_movielens_1m(small, name, text):
    small("movielens-1m", {**SMALL_1M, name: text})
    bundle = datasets.fetch_movielens_1m(side_features=True)
    check_shape(bundle)
    assert bundle.y.tolist() == [4, 3, 2]
    assert bundle.frame["timestamp"].tolist() == [11, -1, 13]
    assert "user=3" not in bundle.feature_names  # has rated nothing
    assert names_of(bundle, 0) == [
        *("user=2", "age=56", "gender=M", "occupation=16", "zip=70"),
        *("item=5", "genres=Drama", "genres=War", "year=1980"),
    ]
    assert names_of(bundle, 1)[5:] == ["item=7", "genres=Comedy", "year=<missing>"]


def test_every_loader_says_what_to_do_when_nothing_is_there(small, monkeypatch):
    def offline(url, timeout):
        raise home.URLError("no network")

    monkeypatch.setattr(home, "urlopen", offline)
    loaders = [name for name in datasets.__all__ if name.startswith("fetch_")]
    assert len(loaders) == 17
    for name in loaders:
        with pytest.raises(
            datasets.DatasetNotFoundError, match=r"get .* from https://.*POLYFM_DAT"
        ):
            getattr(datasets, name)()


def test_frappe_small(small):
    row = " ".join(f"{2 * j}:1" for j in range(10))
    other = " ".join(f"{2 * j + 1}:1" for j in range(10))
    files = {"frappe.train.libfm": f"1 {row}\n-1 {other}\n", "frappe.test.libfm": f"-1 {row}\n"}
    small("frappe", {**files, "frappe.validation.libfm": f"1 {other}\n"})
    bundle = datasets.fetch_frappe()
    check_shape(bundle)
    assert bundle.y.tolist() == [1, -1, 1, -1]
    assert bundle.splits["test"][1].tolist() == [3]
    assert bundle.splits["validation"][1].tolist() == [2]
    assert bundle.fields.tolist() == np.repeat(np.arange(10), 2).tolist()
    assert names_of(bundle, 0)[:2] == ["user=0", "item=0"]
    assert "rebuilt" not in bundle.DESCR


def test_criteo_place_decides_about_the_field(small):
    """Index 13 is the last number in one place and a category in the next."""
    numbers = " ".join(f"{j}:0.5" for j in range(1, 14))
    rows = [f"1 {numbers} 13:1 " + " ".join(f"{100 * j}:1" for j in range(1, 26))]
    rows.append(f"0 {numbers.replace('0.5', '0')} 14:1 " + rows[0].split(" 13:1 ")[1])
    small("criteo/mini_libsvm", {"tr.mini.libsvm": rows[0], "va.mini.libsvm": rows[1]})
    bundle = datasets.fetch_criteo_mini()
    check_shape(bundle)
    assert bundle.X.shape == (2, 13 + 27)
    assert names_of(bundle, 0)[12:15] == ["I13", "C1=13", "C2=100"]
    assert names_of(bundle, 1)[:2] == ["C1=14", "C2=100"]
    assert bundle.X[0].data.tolist() == [0.5] * 13 + [1] * 26


def test_california_layouts(small, tmp_path):
    row = "-122.2,37.9,41,880,129,322,126,8.3,452600\n-122.3,37.8,21,70,11,24,11,8.4,358500\n"
    rows = "".join(row for _ in range(5))
    small("regression_arff", {"cal.housing.arff": "%\n@relation x\n\n@data\n" + rows + "\n"})
    arff = datasets.fetch_california_housing()
    check_shape(arff)
    assert arff.y[:2].tolist() == [4.526, 3.585]
    (tmp_path / "regression_arff" / "cal_housing.data").write_text(rows)
    plain = datasets.fetch_california_housing()
    np.testing.assert_array_equal(plain.X.toarray(), arff.X.toarray())


@real("movielens-100k")
def test_movielens_100k_real():
    bundle = datasets.fetch_movielens_100k()
    check_shape(bundle)
    assert bundle.X.shape == (100_000, 943 + 1_682)
    assert np.bincount(bundle.y.astype(int)).tolist() == [0, 6110, 11370, 27145, 34174, 21201]
    tests = np.concatenate([bundle.splits[f"u{k}"][1] for k in range(1, 6)])
    assert np.array_equal(np.sort(tests), np.arange(100_000))
    lines = (Path(HOME) / "movielens-100k" / "u2.test").read_text().splitlines()
    frame = np.stack([bundle.frame[n] for n in ("user", "item", "rating", "timestamp")], axis=1)
    expected = {tuple(map(int, line.split())) for line in lines}
    assert {tuple(row) for row in frame[bundle.splits["u2"][1]].tolist()} == expected


@real("movielens-100k")
def test_movielens_links_real():
    bundle = datasets.fetch_movielens_links(ids=False)
    check_shape(bundle)
    assert np.bincount(bundle.fields).tolist() == [7, 2, 21, 19, 19, 10]
    assert (bundle.y == 1).sum() == 21_201
    assert datasets.fetch_movielens_links().X.shape == (100_000, 2_703)


@real("movielens-100k")
@real("movielens-1m")
@pytest.mark.parametrize(("size", "width"), [("100k", 898), ("1m", 3487)])
def test_movielens_demographics_real(size, width):
    assert datasets.fetch_movielens_demographics(size).X.shape[1] == width


@real("movielens-1m")
def test_movielens_1m_real():
    bundle = datasets.fetch_movielens_1m()
    assert bundle.X.shape in [(1_000_065, 6_040 + 3_661), (1_000_209, 6_040 + 3_706)]
    assert bundle.X.nnz == 2 * bundle.X.shape[0]


@real("frappe")
def test_frappe_real():
    bundle = datasets.fetch_frappe()
    check_shape(bundle)
    assert bundle.X.shape == (288_609, 5_382)
    assert np.bincount(bundle.fields).tolist() == [957, 4082, 7, 7, 2, 3, 2, 9, 80, 233]
    assert sorted(np.unique(bundle.y).tolist()) == [-1, 1]
    log = (Path(HOME) / "frappe" / "frappe.csv").read_text("utf-8").splitlines()
    used = {tuple(np.delete(line.split("\t"), 2)) for line in log[1:]}
    test = bundle.splits["test"][1]
    rows = test[bundle.y[test] == 1][:500]
    values = [tuple(name.split("=", 1)[1] for name in names_of(bundle, row)) for row in rows]
    assert set(values) <= used  # every app that was used stands in the log, under these names


@real("criteo")
def test_criteo_real():
    bundle = datasets.fetch_criteo_mini()
    check_shape(bundle)
    _, _, y, y_va = bundle.split()
    assert (y.sum(), y_va.sum()) == (2_172, 2_323)


@real("avazu", "amazon_access", "hetrec2011-lastfm")
def test_categorical_sets_real():
    avazu, amazon = datasets.fetch_avazu_mini(), datasets.fetch_amazon_access()
    lastfm = datasets.fetch_lastfm()
    for bundle in (avazu, amazon, lastfm):
        check_shape(bundle)
    assert (avazu.X.shape, avazu.y.sum()) == ((15_000, 7_917), 2_559)
    assert avazu.frame["hour"][0] == "02"
    assert (amazon.X.shape, amazon.y.sum()) == ((32_769, 15_626), 30_872)
    assert lastfm.X.shape == (92_834, 1_892 + 17_632)
    np.testing.assert_array_equal(lastfm.y, np.log1p(lastfm.frame["plays"]))


@real("classification_libsvm")
def test_a9a_real():
    """The fields are right if no row has two features of one field."""
    bundle = datasets.fetch_a9a()
    check_shape(bundle)
    assert bundle.X.shape == (32_561 + 16_281, 123)
    rows = np.repeat(np.arange(bundle.X.shape[0]), np.diff(bundle.X.indptr))
    pairs = rows * 14 + bundle.fields[bundle.X.indices]
    assert len(np.unique(pairs)) == len(pairs)
    _, _, y, y_test = bundle.split("test")
    assert ((y == 1).sum(), (y_test == 1).sum()) == (7_841, 3_846)


@real("regression_arff")
def test_california_real():
    bundle = datasets.fetch_california_housing()
    check_shape(bundle)
    assert bundle.X.shape == (20_640, 8)
    assert 2.06 < bundle.y.mean() < 2.08
    train = bundle.X[bundle.splits["random"][0]].toarray()
    np.testing.assert_allclose(train.std(axis=0), 1, rtol=1e-4)
