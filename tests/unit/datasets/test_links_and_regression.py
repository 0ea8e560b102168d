"""Graphs and regression sets: small files, and the real ones where they are there."""

import os
from pathlib import Path

import numpy as np
import pytest

from polyfm import datasets

HOME = os.environ.get("POLYFM_DATA")


def real(folder):
    here = HOME is not None and (Path(HOME) / folder).is_dir()
    return pytest.mark.skipif(not here, reason=f"POLYFM_DATA holds no {folder}")


@pytest.fixture
def small(tmp_path, monkeypatch):
    monkeypatch.setenv("POLYFM_DATA", str(tmp_path))
    monkeypatch.setenv("POLYFM_CACHE", str(tmp_path / "cache"))

    def write(folder, files):
        (tmp_path / folder).mkdir(parents=True)
        for name, text in files.items():
            (tmp_path / folder / name).write_text(text)

    return write


def check(bundle, n_links):
    links = bundle.links
    assert links.shape == (n_links, 2)
    assert len(np.unique(links, axis=0)) == n_links
    assert links.min() >= 0
    assert (links.max(axis=0) < (bundle.left.shape[0], bundle.right.shape[0])).all()
    assert len(bundle.left_names) == bundle.left.shape[0]
    assert len(bundle.right_names) == bundle.right.shape[0]
    assert not bundle.symmetric or (links[:, 0] < links[:, 1]).all()


@pytest.mark.parametrize("name", ["cora", "citeseer"])
def test_citations(small, name):
    edges = "a,b\n2,0\n0,1\n1,0\n2,2\n"
    small(f"link_features/{name}", {"edges.csv": edges, "features.svm": "3 0:1 7:1\n1\n2 5:1\n"})
    bundle = getattr(datasets, f"fetch_{name}")(dtype=np.float64)
    check(bundle, 2)
    assert bundle.links.tolist() == [[0, 1], [0, 2]]
    assert bundle.left is bundle.right
    assert bundle.left.dtype == np.float64
    assert [row.indices.tolist() for row in bundle.left] == [[0, 7], [], [5]]
    assert bundle.n_pairs == 3


def test_a_link_to_no_node(small):
    small("link_features/cora", {"edges.csv": "a,b\n0,2\n", "features.svm": "1 0:1\n1 1:1\n"})
    with pytest.raises(ValueError, match="numbers 0 to 1, got 2"):
        datasets.fetch_cora()


def test_coauthors_have_no_features(small):
    small("nips12_coauthor", {"edges.csv": "a,b\n3,2036\n"})
    bundle = datasets.fetch_nips_coauthors()
    check(bundle, 1)
    assert bundle.left.shape == (2037, 0)


TARGETS = {
    "nr_admat_dgc.txt": "\tD1\tD2\tD3\nhsa1\t0\t1\t0\nhsa2\t1\t1\t0\n",
    "nr_simmat_dc.txt": "\tD1\tD2\tD3\nD1\t1\t.5\t0\nD2\t.5\t1\t0\nD3\t0\t0\t1\n",
}


def test_drug_targets(small, tmp_path):
    small("dti_yamanishi2008", TARGETS)
    bundle = datasets.fetch_drug_targets("nr")
    check(bundle, 3)
    assert bundle.links.tolist() == [[0, 1], [1, 0], [1, 1]]
    assert bundle.left_names.tolist() == ["D1", "D2", "D3"]
    assert bundle.right_names.tolist() == ["hsa1", "hsa2"]
    np.testing.assert_array_equal(bundle.left.toarray(), [[1, 0.5, 0], [0.5, 1, 0], [0, 0, 1]])
    assert bundle.right.shape == (2, 0)
    assert (bundle.symmetric, bundle.n_pairs) == (False, 6)
    more = tmp_path / "dti_yamanishi2008" / "nr_simmat_dg.txt"
    more.write_text("\thsa1\thsa2\nhsa1\t1\t.25\nhsa2\t.25\t1\n")
    assert datasets.fetch_drug_targets("nr").right.toarray().tolist() == [[1, 0.25], [0.25, 1]]
    more.write_text("\thsa1\nhsa1\t1\n")
    with pytest.raises(ValueError, match="similarities are not those of nr_admat_dgc"):
        datasets.fetch_drug_targets("nr")
    with pytest.raises(ValueError, match="one of nr, gpcr, ic, e, got 'dna'"):
        datasets.fetch_drug_targets("dna")


@pytest.mark.parametrize("name", ["abalone.arff", "abalone.data"])
def test_abalone(small, name):
    head = "% text\n@relation 'a'\n@attribute 'Sex' {M, F}\n@data\n" if "arff" in name else ""
    rows = "M,1,2,3,4,5,6,7,15\nF,2,2,3,4,5,6,7,9\n" * 5
    small("regression_arff", {name: head + rows})
    bundle = datasets.fetch_abalone(numeric="passthrough", dtype=np.float64)
    assert bundle.y.tolist() == [15, 9] * 5
    assert bundle.feature_names[:3].tolist() == ["sex=F", "sex=M", "length"]
    assert bundle.X.toarray()[:2, :3].tolist() == [[0, 1, 1], [1, 0, 2]]


def test_a_row_of_another_length(small):
    small("regression_arff", {"cpu.small.arff": "@data\n1, 2\n"})
    with pytest.raises(ValueError, match="rows have 13 cells, got 2"):
        datasets.fetch_cpu_small()


@real("link_features")
def test_citations_real():
    cora, citeseer = datasets.fetch_cora(), datasets.fetch_citeseer()
    check(cora, 5278)
    check(citeseer, 4552)
    assert (cora.left.shape, citeseer.left.shape) == ((2708, 1433), (3327, 3703))
    assert set(cora.left.data) == {1}
    assert np.count_nonzero(np.diff(citeseer.left.indptr) == 0) == 15


@real("nips12_coauthor")
def test_coauthors_real():
    bundle = datasets.fetch_nips_coauthors()
    check(bundle, 3134)
    assert bundle.left.shape[0] - len(np.unique(bundle.links)) == 140


@real("dti_yamanishi2008")
@pytest.mark.parametrize(
    ("family", "n_drugs", "n_targets", "n_links"),
    [("nr", 54, 26, 90), ("gpcr", 223, 95, 635), ("ic", 210, 204, 1476), ("e", 445, 664, 2926)],
)
def test_drug_targets_real(family, n_drugs, n_targets, n_links):
    bundle = datasets.fetch_drug_targets(family)
    check(bundle, n_links)
    assert bundle.left.shape == (n_drugs, n_drugs)
    assert bundle.right.shape[0] == n_targets
    assert 0 <= bundle.left.data.min() <= bundle.left.data.max() == 1


@real("regression_arff")
def test_regression_sets_real():
    abalone, cpu = datasets.fetch_abalone(), datasets.fetch_cpu_small()
    assert (abalone.X.shape, cpu.X.shape) == ((4177, 3 + 7), (8192, 12))
    assert (abalone.y.min(), abalone.y.max()) == (1, 29)
    assert (cpu.y.min(), cpu.y.max()) == (0, 99)
