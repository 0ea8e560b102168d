"""Data sets: one that ships with the package, and loaders for well-known others."""

from polyfm.datasets.adult import load_adult
from polyfm.datasets.bundle import DatasetBundle
from polyfm.datasets.clicks import (
    fetch_a9a,
    fetch_amazon_access,
    fetch_avazu_mini,
    fetch_criteo_mini,
    fetch_frappe,
)
from polyfm.datasets.home import DatasetNotFoundError
from polyfm.datasets.links import (
    LinkBundle,
    fetch_citeseer,
    fetch_cora,
    fetch_drug_targets,
    fetch_nips_coauthors,
)
from polyfm.datasets.movielens import (
    fetch_movielens_1m,
    fetch_movielens_100k,
    fetch_movielens_demographics,
    fetch_movielens_links,
)
from polyfm.datasets.others import fetch_california_housing, fetch_lastfm
from polyfm.datasets.regression import fetch_abalone, fetch_cpu_small

__all__ = [
    "DatasetBundle",
    "DatasetNotFoundError",
    "LinkBundle",
    "fetch_a9a",
    "fetch_abalone",
    "fetch_amazon_access",
    "fetch_avazu_mini",
    "fetch_california_housing",
    "fetch_citeseer",
    "fetch_cora",
    "fetch_cpu_small",
    "fetch_criteo_mini",
    "fetch_drug_targets",
    "fetch_frappe",
    "fetch_lastfm",
    "fetch_movielens_1m",
    "fetch_movielens_100k",
    "fetch_movielens_demographics",
    "fetch_movielens_links",
    "fetch_nips_coauthors",
    "load_adult",
]
