"""What the solvers see, and how users' data gets there."""

from polyfm.data.encoders import OneHotFieldEncoder

__all__ = ["OneHotFieldEncoder"]
