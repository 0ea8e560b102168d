"""Graphs whose nodes have features: Cora, Citeseer, NIPS co-authors, drugs and their targets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from polyfm.data import load_svmlight
from polyfm.datasets.bundle import Indices
from polyfm.datasets.home import Source, find

__all__ = [
    "LinkBundle",
    "fetch_citeseer",
    "fetch_cora",
    "fetch_drug_targets",
    "fetch_nips_coauthors",
]

CORA = Source(
    "link_features/cora",
    (("edges.csv",), ("features.svm",)),
    "https://github.com/kimiyoung/planetoid (ind.cora.*, written as text)",
)
CITESEER = Source(
    "link_features/citeseer",
    (("edges.csv",), ("features.svm",)),
    "https://github.com/kimiyoung/planetoid (ind.citeseer.*, written as text)",
)
NIPS = Source(
    "nips12_coauthor",
    (("edges.csv",),),
    "https://github.com/upperr/DLSM (nips12.mat, matrix B, written as text)",
)
_TARGETS_PAGE = "https://github.com/stephenliu0423/PyDTI (datasets)"
_N_NIPS_AUTHORS = 2037  # 140 of them wrote alone, so the links do not tell

TARGET_FAMILIES = ("nr", "gpcr", "ic", "e")


@dataclass(frozen=True, repr=False)
class LinkBundle:
    """A graph: two kinds of nodes (or twice the same), their features, and who is linked.

    Attributes
    ----------
    left, right : scipy.sparse.csr_matrix of shape (n_nodes, n_features)
        Features of the nodes, one row per node; the same object where the graph has nodes of one
        kind. Without columns where the set has no features.
    links : ndarray of int64 of shape (n_links, 2)
        Row of `left`, row of `right`; sorted, each link once. Nodes of one kind: the smaller first.
    left_names, right_names : ndarray of str
        Names of the nodes.
    symmetric : bool
        Whether the nodes are of one kind and links have no direction.
    DESCR : str
        What it is, where it comes from and on which terms.
    """

    left: sp.csr_matrix
    right: sp.csr_matrix
    links: Indices
    left_names: NDArray[np.str_]
    right_names: NDArray[np.str_]
    symmetric: bool
    DESCR: str

    @property
    def n_pairs(self) -> int:
        """Number of pairs that could be linked."""
        n_left, n_right = int(self.left.shape[0]), int(self.right.shape[0])
        return n_left * (n_left - 1) // 2 if self.symmetric else n_left * n_right

    def __repr__(self) -> str:
        return (
            f"LinkBundle({self.left.shape[0]} x {self.right.shape[0]} nodes, {len(self.links)} "
            f"links, {self.left.shape[1]} + {self.right.shape[1]} features)"
        )


def fetch_cora(*, dtype: DTypeLike = np.float32, download: bool = True) -> LinkBundle:
    """Cora: 2,708 papers, the 1,433 words they may contain, 5,278 citations between them.

    Parameters
    ----------
    dtype : dtype, default=numpy.float32
        Type of the features.
    download : bool, default=True
        Whether the network may be used; there is no direct download of this set.

    Returns
    -------
    LinkBundle
        Undirected, without repeated citations and citations of itself.

    Raises
    ------
    DatasetNotFoundError
        If the files are not here.

    Notes
    -----
    The files are ``edges.csv`` (a line ``a,b``, then a pair of node numbers per line, from 0) and
    ``features.svm`` (a line per node in svmlight format; its label is not used).

    References
    ----------
    P. Sen et al., "Collective Classification in Network Data", AI Magazine 29(3), 2008.
    """
    return _citations(find(CORA, download=download), dtype, "Cora", 1433)


def fetch_citeseer(*, dtype: DTypeLike = np.float32, download: bool = True) -> LinkBundle:
    """Citeseer: 3,327 papers, the 3,703 words they may contain, 4,552 citations between them.

    Parameters
    ----------
    dtype : dtype, default=numpy.float32
        Type of the features.
    download : bool, default=True
        Whether the network may be used; there is no direct download of this set.

    Returns
    -------
    LinkBundle
        Undirected, without repeated citations and citations of itself; 15 papers have no words.

    Raises
    ------
    DatasetNotFoundError
        If the files are not here.

    Notes
    -----
    The files are those of :func:`fetch_cora`.

    References
    ----------
    P. Sen et al., "Collective Classification in Network Data", AI Magazine 29(3), 2008.
    """
    return _citations(find(CITESEER, download=download), dtype, "Citeseer", 3703)


def fetch_nips_coauthors(*, dtype: DTypeLike = np.float32, download: bool = True) -> LinkBundle:
    """NIPS 0 to 12: 2,037 authors, 3,134 pairs of whom have written a paper together.

    Parameters
    ----------
    dtype : dtype, default=numpy.float32
        Type of the (empty) matrix of features.
    download : bool, default=True
        Whether the network may be used; there is no direct download of this set.

    Returns
    -------
    LinkBundle
        Undirected. Authors have neither features nor names in this set; 140 have no link.

    Raises
    ------
    DatasetNotFoundError
        If the file is not here.

    Notes
    -----
    The file ``edges.csv`` has a line ``a,b``, then a pair of author numbers per line, from 0.
    """
    links = _pairs(find(NIPS, download=download)["edges.csv"], _N_NIPS_AUTHORS)
    return _one_kind(
        sp.csr_matrix((_N_NIPS_AUTHORS, 0), dtype=dtype),
        links,
        "NIPS volumes 0 to 12, co-authors; from the repository of DLSM, no terms stated.\n",
    )


def fetch_drug_targets(
    family: str = "gpcr", *, dtype: DTypeLike = np.float32, download: bool = True
) -> LinkBundle:
    """Drugs and the proteins of one family that they act on, with similarities as features.

    Parameters
    ----------
    family : {"nr", "gpcr", "ic", "e"}, default="gpcr"
        Nuclear receptors (54 drugs, 26 targets, 90 links), G-protein-coupled receptors (223, 95,
        635), ion channels (210, 204, 1,476) or enzymes (445, 664, 2,926).
    dtype : dtype, default=numpy.float32
        Type of the features.
    download : bool, default=True
        Whether the network may be used; there is no direct download of this set.

    Returns
    -------
    LinkBundle
        `left` holds the drugs' similarities to all drugs (SIMCOMP of the chemical structures),
        `right` the targets' to all targets (normalised Smith-Waterman score of the sequences).
        Where the latter file is missing the targets have no features.

    Raises
    ------
    DatasetNotFoundError
        If the files are not here.
    ValueError
        If there is no such family, or the files do not fit together.

    References
    ----------
    Y. Yamanishi et al., "Prediction of drug-target interaction networks from the integration of
    chemical and genomic spaces", Bioinformatics 24(13), 2008.
    """
    if family not in TARGET_FAMILIES:
        raise ValueError(f"family must be one of {', '.join(TARGET_FAMILIES)}, got {family!r}.")
    paths = find(_drug_source(family), download=download)
    targets, drugs, linked = _table(paths[f"{family}_admat_dgc.txt"])
    _, _, drug_similarity = _table(paths[f"{family}_simmat_dc.txt"])
    similar = paths[f"{family}_admat_dgc.txt"].with_name(f"{family}_simmat_dg.txt")
    target_similarity = _table(similar)[2] if similar.is_file() else np.empty((len(targets), 0))
    if (len(drug_similarity), len(target_similarity)) != (len(drugs), len(targets)):
        raise ValueError(f"{similar.parent}: the similarities are not those of {family}_admat_dgc.")
    return LinkBundle(
        left=sp.csr_matrix(drug_similarity, dtype=dtype),
        right=sp.csr_matrix(target_similarity, dtype=dtype),
        links=np.argwhere(linked.T > 0).astype(np.int64),
        left_names=drugs,
        right_names=targets,
        symmetric=False,
        DESCR="Drug-target interactions of Yamanishi et al. 2008, academic use.\n",
    )


def _drug_source(family: str) -> Source:
    names = (f"{family}_admat_dgc.txt", f"{family}_simmat_dc.txt")
    return Source("dti_yamanishi2008", tuple((name,) for name in names), _TARGETS_PAGE)


def _citations(paths: dict[str, Path], dtype: DTypeLike, name: str, n_features: int) -> LinkBundle:
    X, _ = load_svmlight(paths["features.svm"], n_features=n_features, zero_based=True, dtype=dtype)
    links = _pairs(paths["edges.csv"], X.shape[0])
    return _one_kind(X, links, f"{name}: papers, words and citations; no terms stated.\n")


def _one_kind(X: sp.csr_matrix, links: Indices, words: str) -> LinkBundle:
    names = np.arange(X.shape[0]).astype(str)
    return LinkBundle(X, X, links, names, names, symmetric=True, DESCR=words)


def _pairs(path: Path, n_nodes: int) -> Indices:
    """Read lines ``a,b`` below a heading; each pair once, sorted, the smaller number first."""
    lines = path.read_text("ascii").split()[1:]
    pairs = np.array([line.split(",") for line in lines], dtype=np.int64).reshape(-1, 2)
    if pairs.size and not 0 <= pairs.min() <= pairs.max() < n_nodes:
        raise ValueError(f"{path}: nodes have the numbers 0 to {n_nodes - 1}, got {pairs.max()}.")
    pairs = np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)
    return pairs


def _table(path: Path) -> tuple[NDArray[np.str_], NDArray[np.str_], NDArray[np.float64]]:
    """Read a tab-separated matrix with names: those of the rows, of the columns, the numbers."""
    lines = path.read_text("ascii").splitlines()
    rows = [line.split("\t") for line in lines[1:] if line]
    columns = lines[0].split("\t")[1:]
    numbers = np.array([row[1:] for row in rows], dtype=np.float64)
    return np.array([row[0] for row in rows]), np.array(columns), numbers
