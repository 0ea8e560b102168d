"""What the solvers see, and how users' data gets there."""

from polyfm.data.batches import Batch
from polyfm.data.dataset import Dataset, DatasetError, DatasetWriter
from polyfm.data.encoders import OneHotFieldEncoder
from polyfm.data.encoding import encode
from polyfm.data.hashing_encoder import HashingEncoder
from polyfm.data.lines import TextFormatError
from polyfm.data.report import ReadReport
from polyfm.data.source import Source
from polyfm.data.table_streams import iter_csv, iter_parquet
from polyfm.data.tabular import load_csv, load_parquet
from polyfm.data.text import iter_libffm, iter_svmlight, load_libffm, load_svmlight
from polyfm.data.vocabulary_encoder import VocabularyEncoder
from polyfm.data.vw import VWRows, iter_vw, load_vw

__all__ = [
    "Batch",
    "Dataset",
    "DatasetError",
    "DatasetWriter",
    "HashingEncoder",
    "OneHotFieldEncoder",
    "ReadReport",
    "Source",
    "TextFormatError",
    "VWRows",
    "VocabularyEncoder",
    "encode",
    "iter_csv",
    "iter_libffm",
    "iter_parquet",
    "iter_svmlight",
    "iter_vw",
    "load_csv",
    "load_libffm",
    "load_parquet",
    "load_svmlight",
    "load_vw",
]
