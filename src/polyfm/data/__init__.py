"""What the solvers see, and how users' data gets there."""

from polyfm.data.batches import Batch
from polyfm.data.dataset import Dataset, DatasetError, DatasetWriter
from polyfm.data.encoders import OneHotFieldEncoder
from polyfm.data.hashing_encoder import HashingEncoder
from polyfm.data.tabular import load_csv, load_parquet
from polyfm.data.text import TextFormatError, load_libffm, load_svmlight
from polyfm.data.vocabulary_encoder import VocabularyEncoder

__all__ = [
    "Batch",
    "Dataset",
    "DatasetError",
    "DatasetWriter",
    "HashingEncoder",
    "OneHotFieldEncoder",
    "TextFormatError",
    "VocabularyEncoder",
    "load_csv",
    "load_libffm",
    "load_parquet",
    "load_svmlight",
]
