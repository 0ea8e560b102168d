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
from polyfm.datasets.movielens import fetch_movielens_1m, fetch_movielens_100k
from polyfm.datasets.others import fetch_california_housing, fetch_lastfm

__all__ = [
    "DatasetBundle",
    "DatasetNotFoundError",
    "fetch_a9a",
    "fetch_amazon_access",
    "fetch_avazu_mini",
    "fetch_california_housing",
    "fetch_criteo_mini",
    "fetch_frappe",
    "fetch_lastfm",
    "fetch_movielens_1m",
    "fetch_movielens_100k",
    "load_adult",
]
