"""Feature interactions on sparse data: factorization machines of any order."""

__version__ = "0.1.0"
