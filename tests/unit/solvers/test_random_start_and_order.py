"""The counter-based random numbers: where factors start, and in which order rows are visited."""

import numpy as np
import pytest

from polyfm.data.rows import read_only, row_numbers
from polyfm.solvers._random import BLOCK, WINDOW, random_bits, random_order, symmetric
from polyfm.testing import plain


def order_of(n_rows, seed=0, epoch=0):
    return order_of_numbers(row_numbers(n_rows), seed, epoch)


def order_of_numbers(numbers, seed=0, epoch=0):
    order = random_order(read_only(numbers), seed, epoch)
    for n_threads in (2, 3, 7):
        np.testing.assert_array_equal(random_order(numbers, seed, epoch, n_threads), order)
    return order


def test_bits_are_those_of_split_mix():
    # The first outputs of the published reference program for the seed 1234567.
    wanted = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert [int(random_bits(1234567, counter)) for counter in range(3)] == wanted
    assert [int(plain(random_bits)(1234567, counter)) for counter in range(3)] == wanted


def test_start_is_uniform_of_variance_one():
    drawn = np.array([symmetric(3, row, column) for row in range(400) for column in range(10)])
    assert abs(drawn.mean()) < 0.05
    assert drawn.var() == pytest.approx(1.0, rel=0.05)
    assert np.abs(drawn).max() <= np.sqrt(3.0)
    table = drawn.reshape(400, 10)
    assert np.abs(np.corrcoef(table, rowvar=False) - np.eye(10)).max() < 0.2
    assert len(np.unique(drawn)) == drawn.size


def test_start_depends_on_each_of_its_arguments():
    here = symmetric(3, 1, 2)
    assert here == symmetric(3, 1, 2) == plain(symmetric)(3, 1, 2)
    assert len({here, symmetric(4, 1, 2), symmetric(3, 2, 2), symmetric(3, 1, 3)}) == 4


@pytest.mark.parametrize("n_rows", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 1000, BLOCK * WINDOW + 77])
def test_order_visits_every_row_once(n_rows):
    assert np.array_equal(np.sort(order_of(n_rows)), np.arange(n_rows))


def test_order_depends_on_seed_and_epoch():
    orders = [order_of(500, seed, epoch) for seed in (0, 1) for epoch in (0, 1)]
    assert len({order.tobytes() for order in orders}) == 4
    assert np.array_equal(order_of(500, 1, 1), orders[3])


def test_order_leaves_nothing_of_an_order_in_the_data():
    n_rows = 2 * BLOCK * WINDOW
    order = order_of(n_rows)
    assert abs(np.corrcoef(np.arange(n_rows), order)[0, 1]) < 0.05
    # Neighbours in the data are neighbours in the visit no more often than by chance.
    visit = np.argsort(order)
    assert np.mean(np.abs(np.diff(visit)) == 1) < 0.01


def test_every_row_may_come_first():
    first = {int(order_of(20, seed)[0]) for seed in range(400)}
    assert len(first) == 20


def test_order_of_some_rows_is_that_of_their_places():
    numbers = np.arange(3, 3000, 7, dtype=np.int32)
    np.testing.assert_array_equal(order_of_numbers(numbers), numbers[order_of(len(numbers))])
