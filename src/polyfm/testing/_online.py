"""The contract of estimators that learn streams: what is learnt depends on the events alone."""

from __future__ import annotations

import copy
import functools
import pickle
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError

from polyfm import estimators
from polyfm.persistence import load_model, save_model
from polyfm.testing._asserts import require

_SPACE = 1 << 10
_N_EVENTS = 42
_N_FIRST = 21
Stream = tuple[list[dict[str, Any]], NDArray[Any]]

_NO_PENALTY = {"alpha": 0.0, "beta": 0.0}
_VARIANTS: dict[str, list[dict[str, Any]]] = {
    "DiFacto": [
        {"random_state": 0},
        {"random_state": 0, "ranks": (2, 4), "thresholds": (2, 5), "init_scale": 0.3},
    ],
    # Their penalties are shared by the rows known so far, which batches tell.
    "FM": [
        {"solver": "adagrad", "random_state": 0, **_NO_PENALTY},
        {"solver": "sgd", "learning_rate": 0.02, "random_state": 0, **_NO_PENALTY},
        {"solver": "ftrl", "random_state": 0},
    ],
    "FTRL": [{}, {"penalty": "l1", "alpha": 0.5}],
    "HierarchicalFM": [{"random_state": 0}, {"random_state": 0, "fit_weights": True}],
    "PQR": [
        {"order": 4, "warmup": 10},
        {"order": "auto", "warmup": 2},
        {"solver": "sgd", "warmup": 10},
    ],
}


def online_estimators() -> Iterator[Any]:
    """Yield estimators of every kind that learns a stream of events, ready for the checks."""
    for name in estimators.__all__:
        kind = getattr(estimators, name)
        family = name.removesuffix("Regressor").removesuffix("Classifier")
        if "max_features" in kind._get_param_names():
            for parameters in _VARIANTS.get(family, [{}]):
                yield kind(**parameters)


def check_online(estimator: Any) -> None:
    """Check that an estimator learns a stream as one should.

    Rows at once are rows one by one, and however they are cut into batches; a model that is
    pickled or saved midway goes on to the same bits; names may come in any order, be new, or stay
    away; nothing is predicted before something is learnt; memory is bounded; events are not
    changed; rows of weight 0 do not exist; predicting changes nothing; a clone is a fresh
    estimator; columns that come later are learnt as if there had been room for them from the start;
    a batch that cannot be learnt leaves no trace.

    Parameters
    ----------
    estimator : estimator
        With ``partial_fit``, ``learn_one`` and ``max_features``, which is set here. It is cloned.

    Raises
    ------
    AssertionError
        Where a promise is broken; the message says which.

    Notes
    -----
    An estimator that reads its units off the first batch is given the same first batch whenever two
    models are compared.

    Examples
    --------
    >>> from polyfm import FTRLRegressor
    >>> from polyfm.testing import check_online
    >>> check_online(FTRLRegressor())  # doctest: +SKIP
    """
    for check in CHECKS:
        check(clone(estimator).set_params(max_features=_SPACE))


def _stream(model: Any) -> Stream:
    """Make events of texts and one number, some names of which come late."""
    random = np.random.default_rng(0)
    events: list[dict[str, Any]] = []
    for t in range(_N_EVENTS):
        event = {"user": f"u{random.integers(6)}", "item": f"i{random.integers(4)}", "age": 0.5}
        event["age"] = float(np.round(random.normal(), 2))
        if t % 5 == 4:
            event[f"campaign {t // 10}"] = 1.0
        events.append(event)
    likes = np.array([e["user"] > "u2" or e["item"] == "i0" for e in events])
    if is_classifier(model):
        return events, np.where(likes, "yes", "no")
    return events, likes + 0.1 * random.normal(size=_N_EVENTS)


def _begun(model: Any) -> tuple[Any, int]:
    """Return the model, after a first batch if it reads anything off one, and where to go on."""
    events, y = _stream(model)
    measures = getattr(model, "_measures", lambda streaming: False)
    if not measures(True):
        return model, 0
    return model.partial_fit(events[:_N_FIRST], y[:_N_FIRST], **_classes(model)), _N_FIRST


def _classes(model: Any) -> dict[str, Any]:
    return {"classes": ["no", "yes"]} if is_classifier(model) else {}


def _learnt(model: Any, *sizes: int) -> Any:
    """Return a model that has learnt the stream in batches of these sizes, in turn."""
    events, y = _stream(model)
    model, start = _begun(model)
    turn = 0
    while start < len(events):
        stop = start + sizes[turn % len(sizes)]
        model.partial_fit(events[start:stop], y[start:stop], **_classes(model))
        start, turn = stop, turn + 1
    return model


def _one_by_one(model: Any, change: Callable[[dict[str, Any]], dict[str, Any]] = dict) -> Any:
    events, y = _stream(model)
    model, start = _begun(model)
    for x, target in zip(events[start:], y[start:], strict=True):
        require(
            model.learn_one(change(x), target, **_classes(model)) is model,
            "learn_one does not return the estimator.",
        )
    return model


def _outputs(model: Any, X: Any = None) -> NDArray[Any]:
    """Return what a model predicts, as numbers."""
    X = _stream(model)[0] if X is None else X
    return np.asarray(model.decision_function(X) if is_classifier(model) else model.predict(X))


def _require_same(one: Any, other: Any, what: str, X: Any = None) -> None:
    a, b = _outputs(one, X), _outputs(other, X)
    require(np.array_equal(a, b), f"{what}: predictions differ by up to {np.abs(a - b).max():.3g}.")


def check_learn_many(model: Any) -> None:
    """Rows at once are rows one by one."""
    whole, single = _learnt(clone(model), _N_EVENTS), _one_by_one(clone(model))
    _require_same(whole, single, "learning many rows is not learning them one by one")
    require(whole.t_ == single.t_ == _N_EVENTS, "t_ does not count the rows.")


def check_batches(model: Any) -> None:
    """Three rows and four are seven rows."""
    seven, three_and_four = _learnt(clone(model), 7), _learnt(clone(model), 3, 4)
    _require_same(seven, three_and_four, "batches of 3 and 4 rows are not batches of 7")


def check_going_on(model: Any) -> None:
    """A model that was pickled or saved midway goes on to the same bits."""
    events, y = _stream(model)
    half = _N_EVENTS // 2
    model.partial_fit(events[:half], y[:half], **_classes(model))
    copies = {"pickled": pickle.loads(pickle.dumps(model)), "saved": _saved(model)}
    for one in (model, *copies.values()):
        one.partial_fit(events[half:], y[half:])
    for how, other in copies.items():
        _require_same(model, other, f"a model that was {how} midway goes on differently")


def _saved(model: Any) -> Any:
    if type(model).__module__.partition(".")[0] != "polyfm":
        return copy.deepcopy(model)
    with tempfile.TemporaryDirectory(prefix="polyfm-") as folder:
        path = Path(folder) / "stream.polyfm"
        save_model(model, path)
        return load_model(path)


def check_order_of_names(model: Any) -> None:
    """Names in another order are the same event."""
    straight = _one_by_one(clone(model))
    backward = _one_by_one(clone(model), lambda x: dict(reversed(x.items())))
    _require_same(straight, backward, "the order of names matters")


def check_emerging_names(model: Any) -> None:
    """A name that was never learnt plays no part of its own, and is learnt when it comes."""
    model = _one_by_one(model)
    events, y = _stream(model)
    known = _outputs(model)
    strange = _outputs(model, [{**x, "never seen": 3.0, "nor this": "x"} for x in events])
    alone = getattr(model, "_shares_weights", False) or np.array_equal(known, strange)
    require(alone, "names that were never learnt change predictions.")
    for x, target in zip(events, y, strict=True):
        model.learn_one({**x, "new": 1.0}, target)
    one = [{"new": 1.0}]
    require(
        not np.array_equal(_outputs(model, one), _outputs(model, [{"other": 1.0}])),
        "a name that came late was not learnt.",
    )


def check_vanishing_names(model: Any) -> None:
    """Events may lack names, down to all of them."""
    model = _one_by_one(model)
    events, y = _stream(model)
    for x, target in zip(events, y, strict=True):
        model.learn_one({"user": x["user"], "age": None}, target)
    model.learn_one({}, y[0])
    require(np.isfinite(_outputs(model, [{}, {"user": "u1"}])).all(), "few names, no prediction.")


def check_before_learning(model: Any) -> None:
    """Predicting before learning is refused in words."""
    event = {"user": "u1"}
    for predict, x in ((model.predict_one, event), (model.predict, [event])):
        try:
            predict(x)
        except NotFittedError as error:
            require("fit" in str(error), "the error does not say what to call first.")
        else:
            raise AssertionError("a model that has learnt nothing predicts.")


def check_memory(model: Any) -> None:
    """Ever new names take no more memory than ``max_features`` says."""
    model.set_params(max_features=16)
    model = _one_by_one(model)
    sizes = []
    for part in range(2):
        events = [{"id": f"{part}-{k}", "age": 0.5} for k in range(200)]
        y = np.resize(_stream(model)[1], len(events))
        model.partial_fit(events, y)
        sizes.append(len(pickle.dumps(model)))
    require(model.n_features_in_ == 16, f"n_features_in_ is {model.n_features_in_}, not 16.")
    require(sizes[1] <= 1.2 * sizes[0], f"the model grows from {sizes[0]} to {sizes[1]} bytes.")


def check_events_stay(model: Any) -> None:
    """Learning and predicting do not change an event."""
    events, y = _stream(model)
    before = copy.deepcopy(events)
    model.partial_fit(events, y)
    for x, target in zip(events, y, strict=True):
        model.predict_one(x)
        model.learn_one(x, target)
    require(events == before, "events were changed.")


def check_weight_zero(model: Any) -> None:
    """Rows of weight 0 do not exist."""
    model = _one_by_one(model)
    events, y = _stream(model)
    before, t = pickle.loads(pickle.dumps(model)), model.t_
    model.partial_fit(events, y, sample_weight=np.zeros(len(events)))
    model.learn_one(events[0], y[0], 0.0)
    _require_same(before, model, "rows of weight 0 change the model")
    require(model.t_ == t, "rows of weight 0 are counted.")


def check_predicting_is_pure(model: Any) -> None:
    """Predicting changes nothing, and one event alone is predicted as among others."""
    model = _one_by_one(model)
    events, _ = _stream(model)
    first = _outputs(model)
    single = [model.predict_one(x) for x in events]
    require(np.array_equal(first, _outputs(model)), "predicting changes predictions.")
    require(
        single == np.asarray(model.predict(events)).tolist(), "predict_one differs from predict."
    )
    if hasattr(model, "predict_proba_one"):
        shares = model.predict_proba_one(events[0])
        require(list(shares) == ["no", "yes"], f"labels are {list(shares)}.")
        require(abs(sum(shares.values()) - 1.0) < 1e-12, "probabilities do not add up to 1.")


def check_clone(model: Any) -> None:
    """A clone is a fresh estimator with the same parameters, which learns the same."""
    first = _one_by_one(clone(model))
    fresh = clone(first)
    check_before_learning(fresh)
    _require_same(first, _one_by_one(fresh), "a clone learns something else")


def check_growing(model: Any) -> None:
    """Columns that come later are learnt as if there had been room for them from the start."""
    random = np.random.default_rng(1)
    dense = (random.random((30, 20)) < 0.4).astype(float)
    dense[:10, 12:] = 0.0
    X = sp.csr_matrix(dense)
    y = _stream(model)[1][:30]
    grown, roomy = clone(model), clone(model)
    grown.partial_fit(X[:10, :12], y[:10], **_classes(model))
    roomy.partial_fit(X[:10], y[:10], **_classes(model))
    if not getattr(model, "_shares_weights", False):
        _require_same(grown, roomy, "columns without training change predictions", X)
    for start, width in ((10, 15), (20, 20)):
        rows = slice(start, start + 10)
        grown.partial_fit(X[rows, :width], y[rows])
        roomy.partial_fit(_first(X[rows], width), y[rows])
        require(grown.n_features_in_ == width, "n_features_in_ does not follow the columns.")
    grown.partial_fit(X[:10, :12], y[:10])
    roomy.partial_fit(X[:10, :12], y[:10])
    _require_same(grown, roomy, "columns that come later are learnt differently", X)
    _check_bound(grown, y)


def _first(X: sp.csr_matrix, width: int) -> sp.csr_matrix:
    """Return a matrix whose columns from the given one on are empty."""
    return sp.hstack([X[:, :width], sp.csr_matrix((X.shape[0], X.shape[1] - width))]).tocsr()


def _check_bound(model: Any, y: NDArray[Any]) -> None:
    wide = sp.csr_matrix(([1.0], ([0], [_SPACE])), shape=(1, _SPACE + 1))
    try:
        model.partial_fit(wide, y[:1])
    except ValueError as error:
        require("max_features" in str(error), "the error does not name max_features.")
    else:
        raise AssertionError("there are more columns than max_features.")
    require(model.n_features_in_ == 20, "a batch that was refused has left its columns.")


def check_failing(model: Any) -> None:
    """A batch that cannot be learnt leaves no trace."""
    model = _one_by_one(model)
    events, y = _stream(model)
    before = pickle.loads(pickle.dumps(model))
    for bad in ({"user": float("nan")}, {"user": [1]}, {3: 1.0}):
        for learn in (
            functools.partial(model.partial_fit, [*events, bad], [*y, y[0]]),
            functools.partial(model.learn_one, bad, y[0]),
        ):
            try:
                learn()
            except (ValueError, TypeError):
                continue
            raise AssertionError(f"the event {bad} was learnt.")
    _require_same(before, model, "events that were refused change the model")


CHECKS: tuple[Callable[[Any], None], ...] = (
    check_learn_many,
    check_batches,
    check_going_on,
    check_order_of_names,
    check_emerging_names,
    check_vanishing_names,
    check_before_learning,
    check_memory,
    check_events_stay,
    check_weight_zero,
    check_predicting_is_pure,
    check_clone,
    check_growing,
    check_failing,
)
