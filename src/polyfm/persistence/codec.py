"""Python values as JSON and tensors, and back; only values of listed types exist on either side."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import json
import math
import reprlib
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from polyfm.estimators._target import TargetScale
from polyfm.estimators._waiting import WaitingRows
from polyfm.models._lifted_score import LiftedParameters
from polyfm.models._score import Parameters
from polyfm.models.difacto import DiFacto
from polyfm.models.factorized import Factorized, aligned_zeros
from polyfm.models.layout import Layout
from polyfm.models.lifted import Lifted
from polyfm.models.pqr import PQR
from polyfm.persistence.container import TENSOR_TYPES, ModelFileError
from polyfm.persistence.frozen import FrozenDiFactoLearner, FrozenLearner, FrozenPQRLearner
from polyfm.solvers._epoch import Penalties, Switches
from polyfm.solvers._low_rank import LowRank
from polyfm.solvers.batches import BatchLearner
from polyfm.solvers.convex_learner import ConvexLearner
from polyfm.solvers.coordinate_descent import CoordinateLearner
from polyfm.solvers.learner import Settings
from polyfm.solvers.lifted_descent import LiftedLearner
from polyfm.solvers.memory_adaptive import DiFactoLearner, FactorSteps
from polyfm.solvers.online_conditional_gradient import (
    Form,
    GradientSum,
    OnlineConvexLearner,
    OnlineSettings,
)
from polyfm.solvers.projective import PQRLearner
from polyfm.solvers.quasi_newton import QuasiNewtonLearner
from polyfm.solvers.stochastic import StochasticLearner

_SPEC_PACKAGES = ("kernels", "losses", "penalties", "updates")


@functools.cache
def _records() -> dict[str, type]:
    """The classes whose objects a model file may hold, by name."""
    classes: list[type] = [
        *(Factorized, Parameters, Layout, Penalties, Switches, Settings, TargetScale),
        *(StochasticLearner, BatchLearner, QuasiNewtonLearner, CoordinateLearner, FrozenLearner),
    ]
    classes += [Lifted, LiftedParameters, LiftedLearner, ConvexLearner]
    classes += [PQR, PQRLearner, FrozenPQRLearner, WaitingRows]
    classes += [DiFacto, DiFactoLearner, FactorSteps, FrozenDiFactoLearner]
    classes += [OnlineConvexLearner, OnlineSettings, Form, GradientSum, LowRank]
    for package in _SPEC_PACKAGES:
        module = importlib.import_module(f"polyfm.{package}")
        classes += [getattr(module, name) for name in module.__all__]
    return {cls.__name__: cls for cls in classes}


def _fields(cls: type) -> tuple[str, ...]:
    if dataclasses.is_dataclass(cls):
        return tuple(field.name for field in dataclasses.fields(cls) if field.init)
    return tuple(cls._fields)  # type: ignore[attr-defined]


class Encoder:
    """Turns values into JSON; arrays go into ``tensors``."""

    def __init__(self) -> None:
        self.tensors: dict[str, NDArray[Any]] = {}

    def encode(self, value: Any, place: str) -> Any:
        """Return the JSON form of a value; ``place`` is where it was found, for errors and names.

        Raises
        ------
        TypeError
            For a value of a type that a model file cannot hold.
        """
        if value is None or type(value) in (bool, int) or isinstance(value, str):
            return str(value) if isinstance(value, str) else value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if isinstance(value, np.generic):
            return self._scalar(value, place)
        if isinstance(value, np.ndarray):
            return self._array(value, place)
        if isinstance(value, np.random.RandomState):
            return {"random_state": self.encode(value.get_state(legacy=False), place)}
        return self._compound(value, place)

    def _compound(self, value: Any, place: str) -> Any:
        kind = type(value)
        if kind in (list, tuple):
            return {kind.__name__: [self.encode(v, f"{place}.{i}") for i, v in enumerate(value)]}
        if kind is slice:
            return {"slice": [value.start, value.stop]}
        if kind is dict:
            pairs = [
                [self.encode(key, f"{place} (a key)"), self.encode(item, f"{place}.{key}")]
                for key, item in value.items()
            ]
            return {"map": pairs}
        if _records().get(kind.__name__) is kind:
            if isinstance(value, PQR):
                value = value.packed()
            fields = {
                name: self.encode(getattr(value, name), f"{place}.{name}") for name in _fields(kind)
            }
            return {"spec": kind.__name__, "fields": fields}
        self._refuse(value, place)

    def _scalar(self, value: np.generic, place: str) -> Any:
        if value.dtype.kind not in "biuf" or value.dtype.itemsize > 8:
            self._refuse(value, place)
        return {"scalar": value.dtype.name, "value": self.encode(value.item(), place)}

    def _array(self, array: NDArray[Any], place: str) -> Any:
        if array.dtype.name in TENSOR_TYPES:
            self.tensors[place] = array
            return {"tensor": place}
        if array.ndim != 1 or array.dtype.kind not in "biufUO":
            self._refuse(array, place)
        elements = [self.encode(element, f"{place}.{i}") for i, element in enumerate(array)]
        # Names of millions of features would be too long for the header.
        text = json.dumps(elements).encode()
        self.tensors[place] = np.frombuffer(text, dtype=np.uint8)
        return {"array": array.dtype.str, "text": place}

    def _refuse(self, value: Any, place: str) -> NoReturn:
        raise TypeError(
            f"{place} is {reprlib.repr(value)}, of type {type(value).__name__}, which a model file "
            "cannot hold: it takes numbers, texts, lists and the specs that polyfm exports. Pickle "
            "(joblib) stores everything, at the price that loading can execute code."
        )


class Decoder:
    """Turns JSON back into values; it builds objects of the listed classes only."""

    def __init__(self, tensors: dict[str, NDArray[Any]]) -> None:
        self._tensors = tensors

    def decode(self, form: Any) -> Any:
        """Return the value of a JSON form.

        Raises
        ------
        ModelFileError
            For a form that :class:`Encoder` does not write.
        """
        if not isinstance(form, dict):
            if isinstance(form, list):
                raise ModelFileError("the file's description of the model is malformed.")
            return form
        for tag in ("spec", "tensor", "array", "scalar"):
            if tag in form:
                return getattr(self, f"_{tag}")(form)
        if len(form) != 1:
            raise ModelFileError(f"the file's description has an unknown entry {list(form)}.")
        ((tag, content),) = form.items()
        return self._tagged(tag, content)

    def _tagged(self, tag: str, content: Any) -> Any:
        if tag == "float":
            return float(content)
        if tag == "list":
            return [self.decode(item) for item in content]
        if tag == "tuple":
            return tuple(self.decode(item) for item in content)
        if tag == "map":
            return {self.decode(key): self.decode(item) for key, item in content}
        if tag == "slice":
            return slice(*content)
        if tag == "random_state":
            random = np.random.RandomState()
            random.set_state(self.decode(content))
            return random
        raise ModelFileError(f"the file's description has an unknown entry {tag!r}.")

    def _spec(self, form: dict[str, Any]) -> Any:
        name, fields = form["spec"], form["fields"]
        cls = _records().get(name)
        if cls is None:
            raise ModelFileError(f"the file holds a {name!r}, which this polyfm does not know.")
        unknown = sorted(set(fields) - set(_fields(cls)))
        if unknown:
            raise ModelFileError(f"the file holds a {name} with unknown fields {unknown}.")
        return cls(**{field: self.decode(value) for field, value in fields.items()})

    def _tensor(self, form: dict[str, Any]) -> NDArray[Any]:
        stored = self._tensors[form["tensor"]]
        array = aligned_zeros(stored.shape, stored.dtype)
        array[...] = stored
        return array

    def _array(self, form: dict[str, Any]) -> NDArray[Any]:
        elements = json.loads(self._tensors[form["text"]].tobytes())
        dtype = np.dtype(form["array"])
        if dtype.kind not in "biufUO":
            raise ModelFileError(f"the file holds an array of {dtype.name}.")
        array = np.empty(len(elements), dtype=dtype)
        for i, element in enumerate(elements):
            array[i] = self.decode(element)
        return array

    def _scalar(self, form: dict[str, Any]) -> Any:
        dtype = np.dtype(form["scalar"])
        if dtype.kind not in "biuf":
            raise ModelFileError(f"the file holds a number of type {dtype.name}.")
        return dtype.type(self.decode(form["value"]))
