import pickle
import runpy
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from polyfm.data import OneHotFieldEncoder

EXAMPLE = Path(__file__).parents[3] / "examples" / "rendle_figure1.py"
DATA = {"city": ["b", "a", None, "b"], "age": [30.0, 0.0, 5.0, 7.5]}
FRAMES = [pd.DataFrame, pl.DataFrame, pa.table, dict]


def encode(X, **parameters):
    encoder = OneHotFieldEncoder(**parameters)
    matrix = encoder.fit_transform(X)
    return encoder, matrix.toarray(), encoder.get_feature_names_out().tolist()


def as_rows(columns):
    return [list(row) for row in zip(*columns.values(), strict=True)]


@parametrize_with_checks([OneHotFieldEncoder(), OneHotFieldEncoder(numeric="bin", n_bins=3)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("library", FRAMES)
def test_every_frame_gives_the_same_matrix(library):
    encoder, X, names = encode(library(DATA))
    assert names == ["city=a", "city=b", "city=<missing>", "age"]
    np.testing.assert_array_equal(X, [[0, 1, 0, 30], [1, 0, 0, 0], [0, 0, 1, 5], [0, 1, 0, 7.5]])
    assert encoder.fields_.tolist() == [0, 0, 0, 1]
    assert encoder.field_names_ == ["city", "age"]
    assert encoder.n_features_in_ == 2
    assert encoder.n_features_out_ == 4


def test_output_is_canonical_csr_of_the_asked_type():
    for dtype in (np.float32, np.float64):
        X = OneHotFieldEncoder(dtype=dtype).fit_transform(DATA)
        assert sp.isspmatrix_csr(X)
        assert X.dtype == dtype
        assert X.has_canonical_format
        assert X.nnz == 4 + 3  # the age of 0 is not stored


def test_rows_as_lists_equal_columns():
    _, from_rows, names = encode(as_rows(DATA))
    _, from_frame, _ = encode(DATA)
    np.testing.assert_array_equal(from_rows, from_frame)
    assert names[0] == "x0=a"


def test_array_integers_are_codes_and_floats_numbers():
    _, codes, names = encode(np.array([[7, 1], [3, 1]]))
    assert names == ["x0=3", "x0=7", "x1=1"]
    np.testing.assert_array_equal(codes, [[0, 1, 1], [1, 0, 1]])
    _, numbers, _ = encode(np.array([[7.0, 1.5], [3.0, 0.0]]))
    np.testing.assert_array_equal(numbers, [[7, 1.5], [3, 0]])


def test_frame_integers_pass_and_booleans_are_categories():
    _, X, names = encode(pd.DataFrame({"n": [2, 3], "f": [True, False]}))
    assert names == ["n", "f=False", "f=True"]
    np.testing.assert_array_equal(X, [[2, 0, 1], [3, 1, 0]])


def test_string_arrays():
    _, X, names = encode(np.array([["u", "i"], ["v", "i"]]))
    assert names == ["x0=u", "x0=v", "x1=i"]
    np.testing.assert_array_equal(X, [[1, 0, 1], [0, 1, 1]])


def test_figure_one_of_rendle():
    """Exact values of every block, in the order user, item, rated, time, last."""
    example = runpy.run_path(str(EXAMPLE))
    names = example["encoder"].get_feature_names_out().tolist()
    items = ["NH", "ST", "SW", "TI"]
    assert names == [
        *(f"user={u}" for u in "ABC"),
        *(f"item={i}" for i in items),
        *(f"rated={i}" for i in items),
        "time",
        *(f"last={i}" for i in ["NH", "SW", "TI"]),
    ]
    third, half = 1 / 3, 1 / 2
    a, b, c = [third, 0, third, third], [0, half, half, 0], [0, 0, half, half]
    expected = [
        [1, 0, 0, 0, 0, 0, 1, *a, 13, 0, 0, 0],
        [1, 0, 0, 1, 0, 0, 0, *a, 14, 0, 0, 1],
        [1, 0, 0, 0, 0, 1, 0, *a, 16, 1, 0, 0],
        [0, 1, 0, 0, 0, 1, 0, *b, 5, 0, 0, 0],
        [0, 1, 0, 0, 1, 0, 0, *b, 8, 0, 1, 0],
        [0, 0, 1, 0, 0, 0, 1, *c, 9, 0, 0, 0],
        [0, 0, 1, 0, 0, 1, 0, *c, 12, 0, 0, 1],
    ]
    np.testing.assert_array_equal(example["X"].toarray(), np.array(expected, np.float32))
    fields = [0] * 3 + [1] * 4 + [2] * 4 + [3] + [4] * 3
    assert example["encoder"].fields_.tolist() == fields


def test_unseen_categories_get_no_entry():
    encoder = OneHotFieldEncoder().fit(DATA)
    X = encoder.transform({"city": ["z", "a"], "age": [1.0, 2.0]})
    np.testing.assert_array_equal(X.toarray(), [[0, 0, 0, 1], [1, 0, 0, 2]])


def test_unseen_categories_refused_by_name_row_and_value():
    encoder = OneHotFieldEncoder(handle_unknown="error").fit(DATA)
    with pytest.raises(ValueError, match=r"'city', row 1: category 'z' was not seen"):
        encoder.transform({"city": ["a", "z"], "age": [1.0, 2.0]})


def test_unseen_numbers_as_categories():
    encoder = OneHotFieldEncoder(numeric="category").fit({"id": [4, 9, 4]})
    assert encoder.get_feature_names_out().tolist() == ["id=4", "id=9"]
    X = encoder.transform({"id": [9, 5, 100, -1, 4]}).toarray()
    np.testing.assert_array_equal(X, [[0, 1], [0, 0], [0, 0], [0, 0], [1, 0]])
    with pytest.raises(ValueError, match=r"'id', row 0: category .*5.* was not seen"):
        encoder.set_params(handle_unknown="error").transform({"id": [5]})


@pytest.mark.parametrize(
    ("cells", "again"),
    [([1, 2], ["1", "2"]), (["1", "2"], [1, 2]), ([1, 2], [1.0, 2.0]), ([1.0, 2.0], ["1", "2"])],
)
def test_numbers_and_their_text_are_one_category(cells, again):
    encoder = OneHotFieldEncoder(numeric="category").fit({"id": cells})
    np.testing.assert_array_equal(encoder.transform({"id": again}).toarray(), np.eye(2))


def test_mixed_types_in_one_column():
    cells = ["b", 1, 2.5, True, None, "1", float("nan")]
    _, X, names = encode({"m": cells})
    assert names == ["m=1", "m=2.5", "m=True", "m=b", "m=<missing>"]
    np.testing.assert_array_equal(X.argmax(axis=1), [3, 0, 1, 2, 4, 0, 4])


@pytest.mark.parametrize("library", FRAMES)
def test_missing_cells(library):
    table = library({"c": ["u", None], "n": [1.5, None]})
    _, X, names = encode(table)
    assert names == ["c=u", "c=<missing>", "n", "n=<missing>"]
    np.testing.assert_array_equal(X, [[1, 0, 1.5, 0], [0, 1, 0, 1]])
    _, X, names = encode(table, missing="ignore")
    assert names == ["c=u", "n"]
    np.testing.assert_array_equal(X, [[1, 1.5], [0, 0]])
    with pytest.raises(ValueError, match=r"column 'c', row 1: missing value"):
        encode(table, missing="error")


def test_missing_only_at_transform():
    encoder = OneHotFieldEncoder().fit({"c": ["u", "v"], "n": [1.0, 2.0]})
    new = {"c": [None], "n": [np.nan]}
    assert encoder.transform(new).nnz == 0
    with pytest.raises(ValueError, match="'c', row 0: missing value"):
        encoder.set_params(handle_unknown="error").transform(new)


def test_bins_are_quantile_intervals_closed_on_the_right():
    encoder, X, names = encode({"n": np.arange(1.0, 9.0)}, numeric="bin", n_bins=4)
    assert names == ["n=(-inf, 2.75]", "n=(2.75, 4.5]", "n=(4.5, 6.25]", "n=(6.25, inf]"]
    assert X.sum(axis=0).tolist() == [2, 2, 2, 2]
    outside = encoder.transform({"n": [-100.0, 4.5, 100.0]}).toarray()
    assert outside.argmax(axis=1).tolist() == [0, 1, 3]


def test_bins_of_a_mostly_constant_column():
    _, X, names = encode({"n": [0.0] * 95 + [5.0] * 5}, numeric="bin")
    assert names == ["n=(-inf, 0]", "n=(0, inf]"]
    assert X.sum(axis=0).tolist() == [95, 5]
    _, X, _ = encode({"n": [3.0] * 4}, numeric="bin")
    assert X.tolist() == [[1]] * 4


def test_standardize():
    rng = np.random.default_rng(0)
    encoder, X, _ = encode({"n": rng.normal(5, 3, 500)}, numeric="standardize", dtype=np.float64)
    assert abs(X.mean()) < 1e-12
    assert abs(X.std() - 1) < 1e-12
    assert encoder.transform({"n": [np.nan]}).nnz == 0
    _, constant, _ = encode({"n": [2.0, 2.0]}, numeric="standardize")
    assert constant.tolist() == [[0], [0]]


def test_numeric_per_column_by_name_and_position():
    table = {"a": [1, 2, 3], "b": [1, 2, 3], "c": [1, 2, 3]}
    _, _, names = encode(table, numeric={"a": "category", "b": "bin"}, n_bins=2)
    assert names == ["a=1", "a=2", "a=3", "b=(-inf, 2]", "b=(2, inf]", "c"]
    _, _, names = encode(np.array([[1, 1], [2, 2]]), numeric={1: "passthrough"})
    assert names == ["x0=1", "x0=2", "x1"]


def test_text_column_declared_numeric_is_read_as_numbers():
    _, X, names = encode({"n": ["1.5", "2"]}, numeric={"n": "passthrough"})
    assert names == ["n"]
    assert X.tolist() == [[1.5], [2.0]]
    with pytest.raises(ValueError, match=r"column 'n', row 1: 'two' is not a number"):
        encode({"n": ["1", "two"]}, numeric={"n": "passthrough"})


SETS = [["b", "a"], ["a"], [], None, ["a", "b", "a", "c"]]


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table, dict])
@pytest.mark.parametrize(("norm", "power"), [("l1", 1), ("l2", 0.5), (None, 0)])
def test_sets_from_lists(library, norm, power):
    _, X, names = encode(library({"g": SETS}), set_norm=norm, dtype=np.float64)
    assert names == ["g=a", "g=b", "g=c", "g=<missing>"]
    two, three = 2.0**-power, 3.0**-power
    expected = [[two, two, 0, 0], [1, 0, 0, 0], [0] * 4, [0, 0, 0, 1], [three] * 3 + [0]]
    np.testing.assert_allclose(X, expected, rtol=1e-15)


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_sets_from_text(library):
    table = library({"g": ["b|a", "a", "", None, " a | b|a|c"]})
    _, X, names = encode(table, sets={"g": "|"}, missing="ignore", dtype=np.float64)
    assert names == ["g=a", "g=b", "g=c"]
    expected = [[1 / 2, 1 / 2, 0], [1, 0, 0], [0] * 3, [0] * 3, [1 / 3] * 3]
    np.testing.assert_allclose(X, expected, rtol=1e-15)


def test_sets_of_other_collections():
    cells = [{"a", "b"}, ("a",), frozenset("b"), np.array(["b", "a"])]
    _, X, _ = encode({"g": cells})
    np.testing.assert_array_equal(X, [[0.5, 0.5], [1, 0], [0, 1], [0.5, 0.5]])


def test_unknown_elements_do_not_count_in_the_norm():
    encoder = OneHotFieldEncoder().fit({"g": [["a", "b"]]})
    X = encoder.transform({"g": [["a", "z", "b"], ["z"]]})
    np.testing.assert_array_equal(X.toarray(), [[0.5, 0.5], [0, 0]])
    with pytest.raises(ValueError, match="'z' was not seen"):
        encoder.set_params(handle_unknown="error").transform({"g": [["z"]]})


def test_sets_and_single_values_do_not_mix():
    with pytest.raises(TypeError, match="column 'g', row 1: other cells hold lists or sets"):
        encode({"g": [["a"], "a"]})


def test_min_count():
    table = {"c": ["a", "a", "b"], "n": [7, 7, 8], "g": [["x", "y"], ["x"], []]}
    encoder, X, names = encode(table, min_count=2, numeric={"n": "category"})
    assert names == ["c=a", "n=7", "g=x"]
    np.testing.assert_array_equal(X, [[1, 1, 1], [1, 1, 1], [0, 0, 0]])
    # Rare categories were seen, so strict encoding takes them too.
    assert encoder.set_params(handle_unknown="error").transform(table).nnz == 6


def test_min_count_counts_a_cell_once():
    _, X, names = encode({"g": [["x", "x", "y"], ["y"], None]}, min_count=2, missing="ignore")
    assert names == ["g=y"]
    assert X.tolist() == [[1], [1], [0]]


def test_dictionary_rows_with_sets_missing_and_new_keys():
    rows = [{"u": "a", "g": ["x"]}, {"u": None}, {"n": 0.5}]
    encoder, X, names = encode(rows)
    assert names == ["g=x", "n", "u=a", "u=<missing>"]
    np.testing.assert_array_equal(X, [[1, 0, 1, 0], [0, 0, 0, 1], [0, 0.5, 0, 0]])
    assert encoder.transform([{"other": 3}]).nnz == 0
    with pytest.raises(ValueError, match=r"keys not seen in fit: \['other'\]"):
        encoder.set_params(handle_unknown="error").transform([{"other": 3}])


def test_columns_are_found_by_name():
    encoder = OneHotFieldEncoder().fit(pd.DataFrame(DATA))
    shuffled = pl.DataFrame({"extra": [1] * 4, "age": DATA["age"], "city": DATA["city"]})
    expected = encoder.transform(pd.DataFrame(DATA)).toarray()
    np.testing.assert_array_equal(encoder.transform(shuffled).toarray(), expected)
    with pytest.raises(ValueError, match=r"columns missing from X: \['city'\]"):
        encoder.transform({"age": [1.0]})


def test_array_after_frame_warns_and_goes_by_position():
    encoder = OneHotFieldEncoder().fit(DATA)
    with pytest.warns(UserWarning, match="X has no feature names"):
        X = encoder.transform([["b", 3.0]])
    np.testing.assert_array_equal(X.toarray(), [[0, 1, 0, 3]])


def test_row_order_does_not_matter():
    rng = np.random.default_rng(1)
    cells = rng.choice(["d", "a", "c", "b"], 50)
    order = rng.permutation(50)
    first, X, _ = encode({"c": cells})
    second, Y, _ = encode({"c": cells[order]})
    assert first.get_feature_names_out().tolist() == second.get_feature_names_out().tolist()
    np.testing.assert_array_equal(X[order], Y)


TABLE = {
    "c": ["a", None, "b"],
    "id": [3, 4, 4],
    "b": [1.0, 2.0, 3.0],
    "z": [1.0, 2.0, 4.0],
    "g": ["x|y", "y", None],
}
MODES = {"id": "category", "b": "bin", "z": "standardize"}


def restored_by_json(encoder):
    return OneHotFieldEncoder.from_json(encoder.to_json())


@pytest.mark.parametrize("copy", [lambda e: pickle.loads(pickle.dumps(e)), restored_by_json])
def test_copies_transform_alike(copy):
    encoder = OneHotFieldEncoder(numeric=MODES, sets={"g": "|"}, dtype=np.float64).fit(TABLE)
    other = copy(encoder)
    assert (other.transform(TABLE) != encoder.transform(TABLE)).nnz == 0
    assert other.get_feature_names_out().tolist() == encoder.get_feature_names_out().tolist()
    np.testing.assert_array_equal(other.fields_, encoder.fields_)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"handle_unknown": "warn"}, "handle_unknown must be one of"),
        ({"missing": "drop"}, "missing must be one of"),
        ({"set_norm": "max"}, "set_norm must be one of"),
        ({"numeric": "log"}, "numeric must be one of .*'log'"),
        ({"numeric": {"age": "log"}}, "numeric must be one of .*'log'"),
        ({"numeric": {"height": "bin"}}, "numeric names a column 'height' that X lacks"),
        ({"sets": {"tags": ","}}, "sets names a column 'tags' that X lacks"),
        ({"n_bins": 1}, "n_bins must be an integer of at least 2"),
        ({"min_count": 0}, "min_count must be an integer of at least 1"),
        ({"dtype": np.int64}, "dtype must be float32 or float64, got int64"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        OneHotFieldEncoder(**parameters).fit(DATA)


def test_wrong_number_of_columns():
    encoder = OneHotFieldEncoder().fit(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="X has 3 features, but OneHotFieldEncoder is expecting 2"):
        encoder.transform(np.zeros((3, 3)))


def test_names_out_follow_the_input_names():
    encoder = OneHotFieldEncoder().fit([["a", 1.0]])
    assert encoder.get_feature_names_out(["c", "n"]).tolist() == ["c=a", "n"]
    with pytest.raises(ValueError, match="input_features should have length"):
        encoder.get_feature_names_out(["c"])
    with pytest.raises(ValueError, match="not equal to feature_names_in_"):
        OneHotFieldEncoder().fit(DATA).get_feature_names_out(["c", "n"])


def test_in_a_pipeline():
    model = make_pipeline(OneHotFieldEncoder(), LogisticRegression())
    X, y = pd.DataFrame({"c": list("abab")}), [0, 1, 0, 1]
    assert clone(model).fit(X, y).predict(pd.DataFrame({"c": ["b", "a"]})).tolist() == [1, 0]
