"""What the solvers see, and how users' data gets there."""

from polyfm.data.batches import Batch
from polyfm.data.dataset import Dataset, DatasetError, DatasetWriter
from polyfm.data.encoders import OneHotFieldEncoder
from polyfm.data.tabular import load_csv, load_parquet
from polyfm.data.text import TextFormatError, load_libffm, load_svmlight

__all__ = [
    "Batch",
    "Dataset",
    "DatasetError",
    "DatasetWriter",
    "OneHotFieldEncoder",
    "TextFormatError",
    "load_csv",
    "load_libffm",
    "load_parquet",
    "load_svmlight",
]
