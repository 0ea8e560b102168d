"""Interaction kernels. One file and one line here for each."""

from polyfm.kernels.all_subsets import AllSubsets
from polyfm.kernels.anova import ANOVA
from polyfm.kernels.polynomial import Polynomial

__all__ = ["ANOVA", "AllSubsets", "Polynomial"]
