"""Losses. One file and one line here for each."""

from polyfm.losses.huber import Huber
from polyfm.losses.logistic import Logistic
from polyfm.losses.poisson import Poisson
from polyfm.losses.quantile import Quantile
from polyfm.losses.squared import Squared
from polyfm.losses.squared_hinge import SquaredHinge

__all__ = ["Huber", "Logistic", "Poisson", "Quantile", "Squared", "SquaredHinge"]
