"""Penalties. One file and one line here for each."""

from polyfm.penalties.box import Box
from polyfm.penalties.elastic_net import ElasticNet
from polyfm.penalties.l2 import L2

__all__ = ["L2", "Box", "ElasticNet"]
