"""Reading ahead: the same items in the same order, errors in their place, no thread left behind."""

import threading

import pytest

from polyfm.data.prefetch import prefetched


def _readers():
    return [t for t in threading.enumerate() if t.name == "polyfm-reader"]


def test_items_come_in_order_and_the_thread_ends():
    assert list(prefetched(iter(range(1000)), depth=3)) == list(range(1000))
    assert _readers() == []


def test_an_error_comes_after_the_items_before_it():
    def items():
        yield 1
        raise ValueError("line 7")

    stream = prefetched(items())
    assert next(stream) == 1
    with pytest.raises(ValueError, match="line 7"):
        next(stream)
    assert _readers() == []


def test_a_caller_who_stops_ends_the_thread_and_closes_the_source():
    closed = threading.Event()

    def items():
        try:
            yield from range(10**9)
        finally:
            closed.set()

    stream = prefetched(items())
    assert next(stream) == 0
    stream.close()
    assert _readers() == []
    assert closed.is_set()


def test_no_more_than_depth_items_wait():
    asked = []

    def items():
        for i in range(100):
            asked.append(i)
            yield i

    stream = prefetched(items(), depth=2)
    for i in range(50):
        assert next(stream) == i
        # One is with the caller, two wait, one is in the thread's hand, one is asked for.
        assert len(asked) <= i + 5
    stream.close()
