"""Model files, and the ways of Python to store objects: the same bits come back."""

from __future__ import annotations

import copy
import io
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from safetensors.numpy import load_file, save_file
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression

import polyfm
from polyfm import FMClassifier, FMRegressor, load_model, load_pipeline, save_model
from polyfm.data import HashingEncoder, OneHotFieldEncoder, VocabularyEncoder
from polyfm.losses import Huber
from polyfm.persistence import ModelFileError
from polyfm.persistence import codec as codec_module
from polyfm.persistence.container import read_container, write_container
from polyfm.updates import AdaGrad


def table(seed: int = 0, n_rows: int = 120, d: int = 9) -> sp.csr_matrix:
    dense = np.random.default_rng(seed).normal(size=(n_rows, d))
    dense[np.abs(dense) < 0.6] = 0.0
    return sp.csr_matrix(dense)


X, X2 = table(0), table(1)
Y = np.asarray(X.sum(axis=1)).ravel() * 3.0 + 50.0
Y2 = np.asarray(X2.sum(axis=1)).ravel() * 3.0 + 50.0


def regressor(**options: Any) -> FMRegressor:
    return FMRegressor(max_iter=3, rank=4, random_state=0, **options).fit(X, Y)


def through_file(model: Any, folder: Path, **options: Any) -> Any:
    save_model(model, folder / "m.polyfm", **options)
    return load_model(folder / "m.polyfm")


def through_pickle(model: Any, folder: Path) -> Any:
    return pickle.loads(pickle.dumps(model))


def through_oldest_pickle(model: Any, folder: Path) -> Any:
    return pickle.loads(pickle.dumps(model, protocol=0))


def through_joblib(model: Any, folder: Path) -> Any:
    joblib.dump(model, folder / "m.joblib")
    return joblib.load(folder / "m.joblib")


def through_cloudpickle(model: Any, folder: Path) -> Any:
    cloudpickle = pytest.importorskip("cloudpickle")
    return pickle.loads(cloudpickle.dumps(model))


def through_deepcopy(model: Any, folder: Path) -> Any:
    return copy.deepcopy(model)


WAYS = [
    through_file,
    through_pickle,
    through_oldest_pickle,
    through_joblib,
    through_cloudpickle,
    through_deepcopy,
]


@pytest.mark.parametrize("way", WAYS)
def test_bits_and_later_learning_are_kept(way: Any, tmp_path: Path) -> None:
    straight, stored = regressor(), regressor()
    stored = way(stored, tmp_path)
    np.testing.assert_array_equal(stored.predict(X2), straight.predict(X2))
    straight.partial_fit(X2, Y2)
    stored.partial_fit(X2, Y2)
    np.testing.assert_array_equal(stored.predict(X), straight.predict(X))
    assert stored.t_ == straight.t_


@pytest.mark.parametrize("way", [through_file, through_pickle])
def test_a_warm_start_goes_on(way: Any, tmp_path: Path) -> None:
    straight = regressor(warm_start=True, tol=0.0)
    stored = way(regressor(warm_start=True, tol=0.0), tmp_path)
    np.testing.assert_array_equal(stored.fit(X, Y).predict(X2), straight.fit(X, Y).predict(X2))
    assert stored.history_["loss"] == straight.history_["loss"]


def assert_same(a: Any, b: Any) -> None:
    assert type(a) is type(b)
    if isinstance(a, np.ndarray):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    elif isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            assert_same(a[key], b[key])
    elif isinstance(a, list | tuple):
        assert len(a) == len(b)
        for left, right in zip(a, b, strict=True):
            assert_same(left, right)
    elif isinstance(a, float) and np.isnan(a):
        assert np.isnan(b)
    else:
        assert a == b


def test_every_attribute_comes_back(tmp_path: Path) -> None:
    model = regressor(loss=Huber(delta=2.0), solver=AdaGrad(0.1, 5.0))
    loaded = through_file(model, tmp_path)
    assert list(vars(loaded)) == list(vars(model))
    assert_same(loaded.get_params(), model.get_params())
    for name in ("history_", "n_iter_", "best_iteration_", "best_score_", "t_", "n_features_in_"):
        assert_same(getattr(loaded, name), getattr(model, name))
    for name in ("coef_", "factors_", "weights_", "degree_weights_", "intercept_"):
        assert_same(getattr(loaded, name), getattr(model, name))
    assert loaded._scale == model._scale
    assert loaded._learners[0].settings.seed == model._learners[0].settings.seed


def test_parameters_lie_in_memory_as_they_did(tmp_path: Path) -> None:
    for block in through_file(regressor(), tmp_path)._learners[0].model.parameters:
        assert block.flags.writeable and block.flags.c_contiguous
        assert block.ctypes.data % 64 == 0


@pytest.mark.parametrize(
    "labels",
    [
        np.array([3, 7]),
        np.array([3, 7], dtype=np.int8),
        np.array([-1.0, 1.0]),
        np.array(["no", "ja"]),
        np.array(["no", "ja", "vielleicht"], dtype=object),
        np.array([False, True]),
        np.array([10, 20, 30], dtype=np.uint16),
    ],
    ids=lambda labels: f"{labels.dtype}x{len(labels)}",
)
def test_labels_of_any_type(labels: Any, tmp_path: Path) -> None:
    y = labels[np.random.default_rng(2).integers(len(labels), size=X.shape[0])]
    model = FMClassifier(max_iter=2, random_state=0).fit(X, y)
    loaded = through_file(model, tmp_path)
    assert_same(loaded.classes_, model.classes_)
    assert_same(loaded.predict(X2), model.predict(X2))
    np.testing.assert_array_equal(loaded.predict_proba(X2), model.predict_proba(X2))


def test_column_names_are_kept_and_checked(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X.toarray(), columns=[f"größe {j}" for j in range(X.shape[1])])
    model = FMRegressor(max_iter=2, random_state=0).fit(frame, Y)
    loaded = through_file(model, tmp_path)
    assert_same(loaded.feature_names_in_, model.feature_names_in_)
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame.rename(columns={"größe 1": "other"}))


@pytest.mark.parametrize(
    "options",
    [
        {"rank": 0},
        {"order": 1},
        {"order": 3, "fit_lower": "augment", "random_state": 1},
        {"class_weight": {0: 1.0, 1: 2.5}},
        {"random_state": np.random.RandomState(4)},
        {"alpha": np.float32(0.1)},
    ],
    ids=lambda options: "-".join(options),
)
def test_parameters_of_many_kinds(options: dict[str, Any], tmp_path: Path) -> None:
    model = FMClassifier(**{"max_iter": 2, **options}).fit(X, Y > 50)
    loaded = through_file(model, tmp_path)
    np.testing.assert_array_equal(loaded.decision_function(X2), model.decision_function(X2))
    parameters, kept = model.get_params(), loaded.get_params()
    random, kept_random = parameters.pop("random_state"), kept.pop("random_state")
    assert_same(kept, parameters)
    if isinstance(random, np.random.RandomState):
        assert random.randint(10**9) == kept_random.randint(10**9)


def test_without_state_it_predicts_and_says_why_it_cannot_learn(tmp_path: Path) -> None:
    model = regressor()
    loaded = through_file(model, tmp_path, include_state=False)
    np.testing.assert_array_equal(loaded.predict(X2), model.predict(X2))
    assert_same(loaded.factors_, model.factors_)
    with pytest.raises(ValueError, match="include_state=False"):
        loaded.partial_fit(X2, Y2)
    with pytest.raises(ValueError, match="include_state=False"):
        loaded.set_params(warm_start=True).fit(X2, Y2)
    np.testing.assert_array_equal(loaded.predict(X2), model.predict(X2))
    loaded.set_params(warm_start=False).fit(X2, Y2).partial_fit(X, Y)


def test_without_state_it_is_smaller_and_can_be_saved_again(tmp_path: Path) -> None:
    model = FMRegressor(max_iter=1, rank=16).fit(table(0, 300, 400), np.arange(300.0))
    save_model(model, tmp_path / "all")
    save_model(model, tmp_path / "small", include_state=False)
    assert (tmp_path / "small").stat().st_size < 0.6 * (tmp_path / "all").stat().st_size
    save_model(load_model(tmp_path / "small"), tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "small").read_bytes()


def test_another_process_predicts_the_same_bits(tmp_path: Path) -> None:
    model = regressor()
    save_model(model, tmp_path / "m.polyfm")
    sp.save_npz(tmp_path / "X.npz", X2)
    program = (
        "import sys, numpy, scipy.sparse, polyfm\n"
        "X = scipy.sparse.load_npz(sys.argv[1] + '/X.npz')\n"
        "p = polyfm.load_model(sys.argv[1] + '/m.polyfm').predict(X)\n"
        "numpy.save(sys.argv[1] + '/p.npy', p)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True)
    np.testing.assert_array_equal(np.load(tmp_path / "p.npy"), model.predict(X2))


def test_encoder_and_notes_travel_along(tmp_path: Path) -> None:
    rows = [{"user": f"u{i % 5}", "n": i} for i in range(40)]
    encoder = OneHotFieldEncoder(numeric={"n": "bin"})
    model = FMRegressor(max_iter=2).fit(encoder.fit_transform(rows), np.arange(40.0))
    path = tmp_path / "m.polyfm"
    save_model(model, path, encoder=encoder, notes={"target": "größe", "n": [1, 2]})
    saved = load_pipeline(path)
    assert saved.notes == {"target": "größe", "n": [1, 2]}
    assert (saved.encoder.transform(rows) != encoder.transform(rows)).nnz == 0
    assert load_pipeline(path).model.n_features_in_ == model.n_features_in_
    save_model(model, path)
    assert load_pipeline(path)[0] is None


@pytest.mark.parametrize(
    "encoder",
    [
        HashingEncoder(8, signed=True, numeric={"n": "log2"}),
        HashingEncoder(6, per_field=True, missing="ignore"),
        VocabularyEncoder(min_count=2, numeric={"n": "bin"}, handle_unknown="category"),
    ],
    ids=["hashing", "per field", "vocabulary"],
)
def test_every_encoder_travels_and_learns_on(encoder: Any, tmp_path: Path) -> None:
    rows = [{"user": f"u{i % 5}", "n": i, "tags": ["a", f"t{i}"]} for i in range(40)]
    model = FMRegressor(max_iter=2).fit(encoder.fit_transform(rows), np.arange(40.0))
    save_model(model, tmp_path / "m.polyfm", encoder=encoder)
    saved = load_pipeline(tmp_path / "m.polyfm")
    assert saved.encoder.get_params() == encoder.get_params()
    new = [{"user": "u9", "n": 5, "tags": ["b"]}, {"user": "u9"}, {"user": None}]
    for rows_too in (rows, new):
        assert (saved.encoder.transform(rows_too) != encoder.transform(rows_too)).nnz == 0
    saved.encoder.partial_fit(new)
    encoder.partial_fit(new)
    assert (saved.encoder.transform(new) != encoder.transform(new)).nnz == 0


def test_a_damaged_count_of_an_encoder_is_refused(tmp_path: Path) -> None:
    text = HashingEncoder(8).fit({"c": ["a"]}).to_json()
    state = json.loads(text)
    state["columns"][0]["counted"] = ""
    with pytest.raises(ValueError, match="0 parts instead of 1024"):
        HashingEncoder.from_json(json.dumps(state))
    with pytest.raises(ValueError, match="n_bits must be"):
        HashingEncoder.from_json(text.replace('"n_bits": 8', '"n_bits": 40'))


class MyRule(NamedTuple):
    learning_rate: float = 0.1


@pytest.mark.parametrize(
    ("parameter", "value"), [("solver", MyRule()), ("class_weight", {object(): 1.0})]
)
def test_foreign_objects_are_refused_when_saving(
    parameter: str, value: Any, tmp_path: Path
) -> None:
    model = FMClassifier(max_iter=1).fit(X, Y > 50)
    setattr(model, parameter, value)
    with pytest.raises(TypeError, match=rf"params\.{parameter}.*cannot hold.*joblib"):
        save_model(model, tmp_path / "m.polyfm")
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_fitted_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        save_model(FMRegressor(), tmp_path / "m")
    with pytest.raises(TypeError, match="LinearRegression"):
        save_model(LinearRegression(), tmp_path / "m")
    with pytest.raises(TypeError, match="encoder must be"):
        save_model(regressor(), tmp_path / "m", encoder="one-hot")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_a_missing_file_or_folder_is_an_oserror(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="gone"):
        load_model(tmp_path / "gone.polyfm")
    with pytest.raises(FileNotFoundError, match="no such folder"):
        save_model(regressor(), tmp_path / "gone" / "m.polyfm")
    with pytest.raises(IsADirectoryError):
        load_model(tmp_path)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="rights do not bind this user")
def test_a_read_only_folder_is_an_oserror(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError):
        save_model(regressor(), tmp_path / "m.polyfm")


@pytest.mark.parametrize("content", [b"", b"PK", b"label,x\n1,2\n" * 20, bytes(200)])
def test_other_files_are_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(content)
    with pytest.raises(ModelFileError, match="not a polyfm model file"):
        load_model(tmp_path / "m")


def test_a_file_cut_anywhere_is_refused(tmp_path: Path) -> None:
    save_model(regressor(), tmp_path / "m")
    whole = (tmp_path / "m").read_bytes()
    for size in (len(whole) - 1, len(whole) // 2, 100, 9):
        (tmp_path / "m").write_bytes(whole[:size])
        with pytest.raises(ModelFileError, match="cut off"):
            load_model(tmp_path / "m")


def rewrite(path: Path, change: Any) -> None:
    tensors, texts = read_container(path)
    description = json.loads(texts["description"])
    change(tensors, texts, description)
    texts["description"] = texts.get("broken", json.dumps(description))
    write_container(path, tensors, texts)


def _newer(tensors: Any, texts: Any, description: Any) -> None:
    texts.update(format_version="99", polyfm_version="7.0")


def _unknown_class(tensors: Any, texts: Any, description: Any) -> None:
    texts["class"] = "Popen"


def _short_table(tensors: Any, texts: Any, description: Any) -> None:
    tensors["fitted._learners.0.model.parameters.table"] = np.zeros((1, 2, 4))


def _lost_tensor(tensors: Any, texts: Any, description: Any) -> None:
    del tensors["fitted._learners.0.model.parameters.linear"]


def _mixed_types(tensors: Any, texts: Any, description: Any) -> None:
    name = "fitted._learners.0.model.parameters.linear"
    tensors[name] = tensors[name].astype(np.float32)


def _foreign_spec(tensors: Any, texts: Any, description: Any) -> None:
    description["params"]["map"][0][1] = {"spec": "Path", "fields": {}}


def _foreign_field(tensors: Any, texts: Any, description: Any) -> None:
    description["params"]["map"][0][1] = {"spec": "Huber", "fields": {"x": 1}}


def _unknown_parameter(tensors: Any, texts: Any, description: Any) -> None:
    description["params"]["map"].append(["colour", "red"])


def _no_json(tensors: Any, texts: Any, description: Any) -> None:
    texts["broken"] = "{"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_newer, "99.*polyfm 7.0.*pip install -U"),
        (_unknown_class, "'Popen'.*does not know"),
        (_short_table, "table has shape"),
        (_lost_tensor, "damaged"),
        (_mixed_types, "one floating-point type"),
        (_foreign_spec, "'Path'"),
        (_foreign_field, r"unknown fields \['x'\]"),
        (_unknown_parameter, "colour"),
        (_no_json, "damaged"),
    ],
)
def test_damaged_and_foreign_contents_are_refused(
    change: Any, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "m.polyfm"
    save_model(regressor(), path)
    rewrite(path, change)
    with pytest.raises(ModelFileError, match=message) as caught:
        load_model(path)
    assert "m.polyfm" in str(caught.value)


def test_other_safetensors_files_are_refused(tmp_path: Path) -> None:
    save_file({"a": np.zeros(3)}, tmp_path / "m")
    with pytest.raises(ModelFileError, match="no polyfm model"):
        load_model(tmp_path / "m")


def test_the_file_is_what_the_safetensors_library_reads(tmp_path: Path) -> None:
    model = regressor()
    save_model(model, tmp_path / "m")
    tensors = load_file(tmp_path / "m")
    table = tensors["fitted._learners.0.model.parameters.table"]
    np.testing.assert_array_equal(table, model._learners[0].model.parameters.table)


class StoppedError(Exception):
    pass


def test_an_end_while_writing_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.polyfm"
    save_model(regressor(), path)
    before = path.read_bytes()

    def stop(descriptor: int) -> None:
        raise StoppedError

    monkeypatch.setattr(os, "fsync", stop)
    with pytest.raises(StoppedError):
        save_model(regressor(order=1), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_nothing_is_written_under_the_final_name_before_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.polyfm"
    seen: list[bool] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: seen.append(path.exists()))
    save_model(regressor(), path)
    assert seen == [False] and path.exists()


def test_loading_never_unpickles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_model(regressor(), tmp_path / "m")

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("pickle was used")

    monkeypatch.setattr(pickle, "loads", refuse)
    monkeypatch.setattr(pickle, "load", refuse)
    monkeypatch.setattr(pickle, "Unpickler", refuse)
    load_model(tmp_path / "m")


def test_decoder_refuses_what_the_encoder_never_writes() -> None:
    decoder = codec_module.Decoder({"t": np.frombuffer(b"[1]", dtype=np.uint8)})
    for form in ([1], {"call": "os.system"}, {"a": 1, "b": 2}, {"array": "M8[s]", "text": "t"}):
        with pytest.raises(ModelFileError):
            decoder.decode(form)
    with pytest.raises(ModelFileError, match="number of type"):
        decoder.decode({"scalar": "object", "value": 1})


def test_numbers_beyond_json_survive() -> None:
    encoder = codec_module.Encoder()
    values = {"a": [np.nan, np.inf, -np.inf, 0.1], "b": (1, None, True), 3: np.float32(0.1)}
    text = json.dumps(encoder.encode(values, "values"), allow_nan=False)
    assert_same(codec_module.Decoder(encoder.tensors).decode(json.loads(text)), values)


def test_pickled_models_stay_small(tmp_path: Path) -> None:
    model = FMRegressor(max_iter=1, rank=16).fit(table(0, 300, 4000), np.arange(300.0))
    stream = io.BytesIO()
    pickle.dump(model, stream)
    save_model(model, tmp_path / "m")
    assert stream.tell() < 1.2 * (tmp_path / "m").stat().st_size


def test_public_names() -> None:
    assert polyfm.save_model is save_model
    assert {"load_model", "load_pipeline", "save_model", "ModelFileError"} <= set(polyfm.__all__)


def test_crosses_of_columns_with_units_come_back(tmp_path: Path) -> None:
    X = table()
    X.data = np.random.default_rng(1).uniform(0.2, 5.0, X.nnz)
    model = polyfm.PQRRegressor(order=3, max_iter=2).fit(X, np.arange(X.shape[0]))
    again = through_file(model, tmp_path)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
