"""Errors and warnings that are polyfm's own."""

from __future__ import annotations


class DivergenceError(ArithmeticError):
    """Training left the finite numbers; the message names the epoch, the row and what to do."""
