"""Where the memory of parameters starts."""

import numpy as np
import pytest

from polyfm.models.factorized import aligned_zeros


@pytest.mark.parametrize(
    ("n", "start"), [(3, 64), (1 << 19, 64), (1 << 20, 1 << 21), (3_000_001, 1 << 21)]
)
def test_parameters_start_a_cache_line_or_a_huge_page(n, start):
    for _ in range(5):
        block = aligned_zeros((n, 4), np.float32)
        assert block.shape == (n, 4) and not block[-1].any()
        assert block.ctypes.data % start == 0
