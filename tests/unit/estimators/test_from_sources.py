"""Fits from datasets, files and streams: the same rows lead to the same model, stopped or not."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline

import polyfm
from polyfm.data import Dataset
from polyfm.data.batches import Batch
from polyfm.data.source import Source
from polyfm.estimators import _out_of_core, checkpoints
from polyfm.estimators.checkpoints import Checkpoint
from polyfm.solvers.stochastic import StochasticLearner

N, D = 6_000, 300


@pytest.fixture(scope="module")
def problem():
    random = np.random.default_rng(0)
    columns = np.stack([random.integers(60 * f, 60 * f + 60, N) for f in range(5)], axis=1)
    X = sp.csr_matrix(
        (np.ones(5 * N, np.float32), columns.ravel(), np.arange(0, 5 * N + 1, 5)), shape=(N, D)
    )
    V = random.normal(size=(D, 2))
    total = X @ V
    score = ((total**2).sum(1) - X @ (V**2).sum(1)) / 2 + X @ random.normal(size=D)
    return X, (score + random.normal(size=N) > 0).astype(int)


@pytest.fixture
def dataset(problem, tmp_path):
    return Dataset.write(tmp_path / "rows", [problem], shard_rows=2500)


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch):
    monkeypatch.setattr(_out_of_core, "_PART_ROWS", 1024)
    monkeypatch.setattr(_out_of_core, "_BLOCK", 128)
    monkeypatch.setattr(_out_of_core, "_LOOK_ROWS", 2048)


KINDS = {
    "fm": (polyfm.FMClassifier, {"max_iter": 3, "rank": 3}),
    "ftrl": (polyfm.FTRLClassifier, {"max_iter": 3, "early_stopping": True}),
    "hierarchical": (polyfm.HierarchicalFMClassifier, {"max_iter": 2, "rank": 2}),
    "pqr": (polyfm.PQRClassifier, {"order": 20, "max_iter": 3, "early_stopping": True}),
    "difacto": (polyfm.DiFactoClassifier, {"max_iter": 3, "early_stopping": True}),
}


def _new(kind, **more):
    cls, settings = KINDS[kind]
    return cls(random_state=0, **{**settings, **more})


def _same(a, b, X):
    np.testing.assert_array_equal(a.decision_function(X), b.decision_function(X))
    assert a.history_["loss"] == b.history_["loss"]
    assert a.n_iter_ == b.n_iter_ and a.best_score_ == b.best_score_ and a.t_ == b.t_


@pytest.mark.parametrize("kind", KINDS)
def test_a_dataset_teaches_as_much_as_rows_in_memory(kind, problem, dataset):
    X, y = problem
    in_memory, mapped = _new(kind).fit(X, y), _new(kind).fit(dataset)
    aucs = [roc_auc_score(y, m.decision_function(X)) for m in (in_memory, mapped)]
    assert aucs[1] == pytest.approx(aucs[0], abs=0.02) and aucs[1] > 0.6
    _same(mapped, _new(kind).fit(str(dataset.path)), X)


class _KilledError(Exception):
    pass


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_training_goes_on_to_the_same_bits(kind, problem, dataset, tmp_path, monkeypatch):
    X, _ = problem
    path, save, saves = tmp_path / "run.polyfm", checkpoints.Keeper.save, []

    def save_and_die(keeper):
        save(keeper)
        saves.append(1)
        if len(saves) in (1, 3, 5):
            raise _KilledError

    whole = _new(kind).fit(dataset)
    monkeypatch.setattr(checkpoints.Keeper, "save", save_and_die)
    for _ in range(3):
        with pytest.raises(_KilledError):
            _new(kind).fit(dataset, checkpoint=Checkpoint(path, rows=2000))
    resumed = _new(kind).fit(dataset, checkpoint=Checkpoint(path, rows=2000))
    _same(whole, resumed, X)
    # What is finished is finished: the file is the model.
    _same(resumed, _new(kind).fit(dataset, checkpoint=Checkpoint(path, rows=2000)), X)
    np.testing.assert_array_equal(
        polyfm.load_model(path).decision_function(X), whole.decision_function(X)
    )


def test_a_stream_goes_on_to_the_same_bits(problem, tmp_path, monkeypatch):
    X, y = problem
    file, path = tmp_path / "rows.svm", tmp_path / "run.polyfm"
    dump_svmlight_file(X, y, str(file), zero_based=False)
    source = Source(file, batch_rows=700, n_features=D)
    whole = polyfm.FMClassifier(max_iter=1, random_state=0).fit(source)
    by_hand = polyfm.FMClassifier(max_iter=1, random_state=0)
    for first in range(0, N, 700):
        by_hand.partial_fit(X[first : first + 700], y[first : first + 700])
    np.testing.assert_array_equal(whole.decision_function(X), by_hand.decision_function(X))
    save = checkpoints.Keeper.save

    def save_and_die(keeper):
        save(keeper)
        raise _KilledError

    with monkeypatch.context() as patch:
        patch.setattr(checkpoints.Keeper, "save", save_and_die)
        for _ in range(2):
            with pytest.raises(_KilledError):
                polyfm.FMClassifier(max_iter=1, random_state=0).fit(
                    source, checkpoint=Checkpoint(path, rows=1400)
                )
    resumed = polyfm.FMClassifier(max_iter=1, random_state=0)
    resumed.fit(source, checkpoint=Checkpoint(path, rows=1400))
    np.testing.assert_array_equal(whole.decision_function(X), resumed.decision_function(X))


def _columns_of(rows):
    """Return the column numbers of the rows that are named."""
    spans = [rows.indices[rows.indptr[i] : rows.indptr[i + 1]] for i in rows.numbers]
    return np.concatenate(spans)


def test_each_epoch_visits_each_row_once_but_those_held_out(dataset):
    model = _new("fm").fit(dataset)
    reader = _out_of_core.PartReader(model, dataset, 5, 0.2, True, 1024)
    orders = []
    for epoch in range(2):
        seen = [rows for (rows,) in reader.read(epoch)]
        orders.append(np.concatenate([_columns_of(rows) for rows in seen]))
        assert sum(rows.n_rows for rows in seen) + reader.held().n_rows == N
    assert reader.held().n_rows == pytest.approx(0.2 * N, rel=0.15)
    assert not np.array_equal(*orders)
    np.testing.assert_array_equal(np.sort(orders[0]), np.sort(orders[1]))
    later = [_columns_of(rows) for (rows,) in reader.read(1, 2)]
    np.testing.assert_array_equal(np.concatenate(later), orders[1][-sum(map(len, later)) :])


@pytest.mark.parametrize("weights", [None, np.arange(N) % 3])
def test_rows_are_checked_once(weights, problem, tmp_path, monkeypatch):
    """What the checks made of rows is what later epochs make of them without checks."""
    X, y = problem
    rows = Dataset.write(tmp_path / "rows", [(X, y, weights)], shard_rows=2500)
    model = _new("fm", class_weight="balanced").fit(rows)
    reader = _out_of_core.PartReader(model, rows, 5, 0.2, True, 1024)
    checked = [part for (part,) in reader.read(0, 2)]  # not all of them
    assert not reader._are_checked
    assert sum(part.n_rows for part in reader.in_order(0)) == sum(
        part.n_rows for (part,) in reader.read(0)
    )
    monkeypatch.delattr(polyfm.FMClassifier, "_check_targets")
    again = [part for (part,) in reader.read(0, 2)]
    assert len(again) == len(checked) > 1
    for before, after in zip(checked, again, strict=True):
        for one, other in zip(before, after, strict=True):
            np.testing.assert_array_equal(one, other)
            assert one.dtype == other.dtype


@pytest.mark.parametrize("row", [7, 5_999])
def test_a_value_too_large_is_named_in_the_first_pass(row, problem, tmp_path, monkeypatch):
    X, y = problem
    X = X.copy()
    X.data[5 * row] = 1e30
    rows = Dataset.write(tmp_path / "rows", [(X, y)], shard_rows=2500)
    monkeypatch.setattr(_out_of_core, "_LOOK_ROWS", 128)
    with pytest.raises(ValueError, match=r"has the value 1e\+30 in row \d+, column .* too large"):
        _new("fm").fit(rows)


def test_rows_held_out_teach_nothing(problem, tmp_path):
    X, y = problem
    seed = int(np.random.RandomState(0).randint(np.iinfo(np.int32).max))
    held = _out_of_core._are_held(np.arange(N), seed, 0.1)
    wrong = np.where(held, 1 - y, y)
    settings = {"max_iter": 2, "early_stopping": True, "tol": 0.0}
    fits = []
    for number, labels in enumerate((y, wrong)):
        rows = Dataset.write(tmp_path / f"rows{number}", [(X, labels)])
        fits.append(polyfm.FTRLClassifier(random_state=0, **settings).fit(rows))
    np.testing.assert_array_equal(fits[0].history_["loss"], fits[1].history_["loss"])
    assert fits[0].history_["validation_loss"] != fits[1].history_["validation_loss"]


def test_rows_in_parts_are_counted_as_the_whole(problem):
    X, y = problem
    X = X.multiply(np.random.default_rng(1).uniform(0.5, 2.0, D).astype(np.float32)).tocsr()
    learners = []
    for cuts in ([0, N], [0, 1000, 1001, N]):
        model = polyfm.FMClassifier(max_iter=1, random_state=0, early_stopping=False).fit(X, y)
        rows = polyfm.data.rows.as_rows(X, y.astype(np.float32))
        parts = [rows._replace(numbers=rows.numbers[a:b]) for a, b in itertools.pairwise(cuts)]
        (learner,) = model._learners
        learner.set_parts(parts)
        learners.append(learner)
    assert isinstance(learners[0], StochasticLearner)
    np.testing.assert_array_equal(*[x.model.parameters.linear for x in learners])
    assert learners[0].n_rows == learners[1].n_rows == N


def test_solvers_of_all_rows_read_all_rows(problem, dataset):
    X, y = problem
    fits = [
        polyfm.FMClassifier(solver="cd", max_iter=3, random_state=0).fit(*rows)
        for rows in ((X, y), (dataset,))
    ]
    np.testing.assert_array_equal(*[fit.decision_function(X) for fit in fits])
    with pytest.raises(ValueError, match="no checkpoints"):
        fits[0].fit(dataset, checkpoint=Checkpoint("x"))
    convex = [
        polyfm.ConvexFMClassifier(max_iter=2, random_state=0).fit(*rows)
        for rows in ((X, y), (dataset,))
    ]
    np.testing.assert_array_equal(*[fit.decision_function(X) for fit in convex])


def test_text_labels_and_balanced_classes(problem, tmp_path):
    X, y = problem
    names = np.where(y > 0, "click", "none")
    names[:5] = "rare"
    rows = Dataset.write(tmp_path / "rows", [(X, names)])
    model = polyfm.FMClassifier(max_iter=2, random_state=0, class_weight="balanced").fit(rows)
    assert list(model.classes_) == ["click", "none", "rare"]
    counts = np.array([(names == name).sum() for name in model.classes_])
    np.testing.assert_allclose(model._class_factors, N / (3 * counts))


def test_files_whose_width_is_not_told(problem, tmp_path):
    X, y = problem
    for base in (0, 1):
        file = tmp_path / f"rows{base}.svm"
        dump_svmlight_file(X, y, str(file), zero_based=base == 0)
        model = _new("fm").fit(str(file))
        assert model.n_features_in_ == D
        assert roc_auc_score(y, model.decision_function(X)) > 0.7
    one, two = tmp_path / "a.svm", tmp_path / "b.svm"
    dump_svmlight_file(X[:2000], y[:2000], str(one), zero_based=False)
    dump_svmlight_file(X[2000:], y[2000:], str(two), zero_based=False)
    _same(model, _new("fm").fit([str(one), str(two)]), X)


def test_iterators_of_batches(problem):
    X, y = problem
    batches = [(X[i : i + 1000], y[i : i + 1000]) for i in range(0, N, 1000)]
    several = _new("fm").fit(iter(batches))
    assert several.n_iter_ > 1 and several.n_features_in_ == D
    once = polyfm.FMClassifier(max_iter=1, max_features=D, random_state=0).fit(iter(batches))
    by_hand = polyfm.FMClassifier(max_iter=1, max_features=D, random_state=0)
    by_hand.partial_fit(iter(batches), classes=[0, 1])
    np.testing.assert_array_equal(once.decision_function(X), by_hand.decision_function(X))


def test_judges_may_lie_in_a_dataset(problem, dataset):
    X, y = problem
    a = _new("fm").fit(X, y, X_val=dataset)
    b = _new("fm").fit(X, y, X_val=X, y_val=y)
    _same(a, b, X)
    assert "validation_loss" in _new("fm").fit(dataset, X_val=X[:500], y_val=y[:500]).history_


@pytest.mark.parametrize("kind", KINDS)
def test_a_dataset_may_bring_columns_to_a_warm_start(kind, problem, dataset):
    X, y = problem
    first = X.copy()
    first.data[first.indices >= D // 2] = 0.0
    narrow = _new(kind, warm_start=True, max_features=D).fit(first[:, : D // 2], y)
    whole = _new(kind, warm_start=True, max_features=D).fit(first, y)
    _same(narrow.fit(dataset), whole.fit(dataset), X)


def test_two_threads_share_one_model(problem, dataset):
    X, y = problem
    model = _new("fm", n_jobs=2).fit(dataset)
    assert roc_auc_score(y, model.decision_function(X)) > 0.7


def test_what_is_refused(problem, dataset, tmp_path):
    X, y = problem
    model = _new("fm")
    with pytest.raises(ValueError, match="takes y from the rows' source"):
        model.fit(dataset, y)
    with pytest.raises(ValueError, match="X is in memory"):
        model.fit(X, y, checkpoint=Checkpoint("x"))
    with pytest.raises(ValueError, match="max_memory must be"):
        model.fit(dataset, max_memory="much")
    with pytest.raises(MemoryError, match=r"parameters of 300 columns.*max_memory=10 kB"):
        model.fit(dataset, max_memory="10 kB")
    with pytest.raises(FileNotFoundError):
        model.fit(str(tmp_path / "none.svm"))
    with pytest.raises(ValueError, match="no targets"):
        model.fit(Dataset.write(tmp_path / "bare", [Batch(X, None)]))
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_what_a_checkpoint_refuses(problem, dataset, tmp_path):
    X, y = problem
    path = tmp_path / "run.polyfm"
    _new("ftrl").fit(dataset, checkpoint=Checkpoint(path))
    with pytest.raises(ValueError, match=r"with alpha=.* and it is 7"):
        _new("ftrl", alpha=7).fit(dataset, checkpoint=Checkpoint(path))
    with pytest.raises(ValueError, match="from other rows"):
        other = Dataset.write(tmp_path / "other", [(X[:-1], y[:-1])])
        _new("ftrl").fit(other, checkpoint=Checkpoint(path))
    with pytest.raises(ValueError, match="checkpoint of a FTRLClassifier"):
        _new("fm").fit(dataset, checkpoint=Checkpoint(path))
    polyfm.save_model(_new("ftrl").fit(X, y), path)
    with pytest.raises(ValueError, match="no checkpoint"):
        _new("ftrl").fit(dataset, checkpoint=Checkpoint(path))
    _new("ftrl").fit(dataset, checkpoint=Checkpoint(path, resume=False))


REGRESSORS = {
    "ftrl": polyfm.FTRLRegressor,
    "pqr": polyfm.PQRRegressor,
    "difacto": polyfm.DiFactoRegressor,
    "hierarchical": polyfm.HierarchicalFMRegressor,
    "fm": polyfm.FMRegressor,
}


@pytest.mark.parametrize("kind", REGRESSORS)
def test_a_stream_is_measured_by_its_first_batch(kind, problem, tmp_path):
    X, _ = problem
    y = 5e5 + 300.0 * (X @ np.random.default_rng(3).normal(size=D))
    file = tmp_path / "rows.svm"
    dump_svmlight_file(X, y, str(file), zero_based=False)
    model = REGRESSORS[kind](max_iter=1).fit(Source(file, n_features=D, batch_rows=2000))
    assert model.score(X, y) > 0.5
    assert "_measures_stream" not in vars(model)


def test_later_files_count_columns_like_the_first(tmp_path):
    first, later = tmp_path / "a.svm", tmp_path / "b.svm"
    first.write_text("1 0:1 1:1\n0 1:1 2:1\n" * 50)
    later.write_text("1 1:1\n0 2:1\n" * 50)
    model = polyfm.FTRLClassifier(max_features=3).partial_fit(str(first), classes=[0, 1])
    model.partial_fit(str(later))
    np.testing.assert_array_equal(model.counts_, [50, 150, 100])
    polyfm.save_model(model, tmp_path / "m.polyfm")
    again = polyfm.load_model(tmp_path / "m.polyfm").partial_fit(str(later))
    np.testing.assert_array_equal(again.counts_, [50, 200, 150])
    ones = polyfm.FTRLClassifier(max_features=3).partial_fit(str(later), classes=[0, 1])
    with pytest.raises(ValueError, match="index 0 in a file said to start at 1"):
        ones.partial_fit(str(first))
    judged = polyfm.FMClassifier(max_iter=2).fit(Source(first, n_features=3), X_val=str(later))
    assert judged.n_features_in_ == 3


def test_bad_lines_left_out_of_a_file_that_counts_from_0(tmp_path):
    file = tmp_path / "rows.svm"
    file.write_text("1 3:1\nbad line\n0 2:1\n" * 10 + "1 0:1\n" * 20)
    with pytest.warns(UserWarning, match="10"):
        model = polyfm.FTRLClassifier(max_features=4).partial_fit(
            Source(file, on_error="skip"), classes=[0, 1]
        )
    np.testing.assert_array_equal(model.counts_, [20, 0, 10, 10])
    with file.open("rb") as stream, pytest.raises(ValueError, match="say zero_based"):
        polyfm.FTRLClassifier(max_features=4).partial_fit(
            Source(stream, on_error="skip"), classes=[0, 1]
        )


def test_streams_that_cannot_be_taken_up(problem, tmp_path):
    X, y = problem
    path = tmp_path / "run.polyfm"
    with pytest.raises(ValueError, match="is read once"):
        polyfm.FTRLClassifier(max_iter=1, max_features=D).fit(iter([(X, y)]), checkpoint=path)
    file = tmp_path / "rows.svm"
    dump_svmlight_file(X[:500], y[:500], str(file), zero_based=False)
    source = {"n_features": D, "batch_rows": 100}
    polyfm.FTRLClassifier(max_iter=1).fit(Source(file, **source), checkpoint=str(path))
    dump_svmlight_file(X[500:1000], y[500:1000], str(file), zero_based=False)
    with pytest.raises(ValueError, match="from other rows"):
        polyfm.FTRLClassifier(max_iter=1).fit(Source(file, **source), checkpoint=path)
    with pytest.raises(TypeError, match="checkpoint must be"):
        polyfm.FTRLClassifier().fit(Source(file, **source), checkpoint=7)


def test_a_finished_training_is_not_longer(problem, dataset, tmp_path):
    path = tmp_path / "run.polyfm"
    settings = {"random_state": 0, "tol": 0.0}
    polyfm.FMClassifier(max_iter=2, **settings).fit(dataset, checkpoint=path)
    with pytest.raises(ValueError, match="ended after max_iter=2 epochs"):
        polyfm.FMClassifier(max_iter=5, **settings).fit(dataset, checkpoint=path)


def test_long_arrays_among_the_parameters_are_compared(dataset, tmp_path):
    path, fields = tmp_path / "run.polyfm", np.zeros(D, dtype=int)
    fields[150:] = 1
    settings = {"max_iter": 1, "alpha": np.float64(1.0), "beta": {0: 1.0, 1: 2.0}}
    polyfm.FMClassifier(fields=fields, **settings).fit(dataset, checkpoint=path)
    polyfm.FMClassifier(fields=fields.copy(), **settings).fit(dataset, checkpoint=path)
    fields[140] = 1
    with pytest.raises(ValueError, match="with fields="):
        polyfm.FMClassifier(fields=fields, **settings).fit(dataset, checkpoint=path)


def test_rows_of_weight_0_bring_no_class(problem, tmp_path):
    X, y = problem
    rows = Dataset.write(tmp_path / "rows", [Batch(X, y, (y == 0).astype(float))])
    with pytest.raises(ValueError, match="at least two classes"):
        polyfm.FMClassifier(max_iter=1).fit(rows)


def test_a_file_sorted_by_label_says_what_helps(problem, tmp_path):
    X, y = problem
    order, file = np.argsort(y, kind="stable"), tmp_path / "rows.svm"
    dump_svmlight_file(X[order], y[order], str(file), zero_based=False)
    source = Source(file, n_features=D, batch_rows=1000)
    with pytest.raises(ValueError, match=r"rows.svm.*name them all in partial_fit"):
        polyfm.FTRLClassifier(max_iter=1).fit(source)
    assert polyfm.FTRLClassifier().partial_fit(source, classes=[0, 1]).t_ == N


def test_empty_files_are_named(tmp_path):
    file = tmp_path / "none.svm"
    file.write_text("")
    for learn in (polyfm.FMClassifier().fit, polyfm.FTRLClassifier(max_features=3).partial_fit):
        with pytest.raises(ValueError, match=r"none.svm has no rows"):
            learn(str(file))


def test_a_pipeline_passes_sources_on(problem, dataset):
    X, _ = problem
    model = make_pipeline(polyfm.FMClassifier(max_iter=1, random_state=0)).fit(dataset)
    alone = polyfm.FMClassifier(max_iter=1, random_state=0).fit(dataset)
    np.testing.assert_array_equal(model.decision_function(X), alone.decision_function(X))
    np.testing.assert_array_equal(alone.decision_function(dataset), alone.decision_function(X))


def test_an_interrupt_leaves_what_was_learnt(problem, dataset, monkeypatch):
    X, _ = problem
    visit, visits = StochasticLearner.visit, []

    def interrupted(self, *args, **kwargs):
        visits.append(1)
        if len(visits) == 9:
            raise KeyboardInterrupt
        return visit(self, *args, **kwargs)

    monkeypatch.setattr(StochasticLearner, "visit", interrupted)
    model = _new("fm")
    with pytest.raises(KeyboardInterrupt):
        model.fit(dataset)
    assert model.n_iter_ == 1 and np.isfinite(model.decision_function(X)).all()
    before, visits[:] = model.decision_function(X), []
    with pytest.raises(KeyboardInterrupt):
        model.fit(dataset)
    np.testing.assert_array_equal(model.decision_function(X), before)


def test_a_training_that_goes_on_with_fewer_epochs_ends(dataset, tmp_path, monkeypatch):
    path, save, saves = tmp_path / "run.polyfm", checkpoints.Keeper.save, []

    def save_and_die(keeper):
        save(keeper)
        saves.append(1)
        if len(saves) == 9:
            raise _KilledError

    monkeypatch.setattr(checkpoints.Keeper, "save", save_and_die)
    settings = {"random_state": 0, "tol": 0.0, "early_stopping": False}
    checkpoint = Checkpoint(path, rows=2000)
    with pytest.raises(_KilledError):
        polyfm.FMClassifier(max_iter=50, **settings).fit(dataset, checkpoint=checkpoint)
    model = polyfm.FMClassifier(max_iter=1, **settings).fit(dataset, checkpoint=checkpoint)
    assert 1 < model.n_iter_ < 50
