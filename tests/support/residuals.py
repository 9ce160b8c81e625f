"""Residuals and widths to find roots for: by hand, and drawn by hypothesis."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp


def row(*values):
    """One member."""
    return np.array([values], dtype=float)


def outside(residual, width, scale):
    """Rows outside, (M, K), by the comparison that everybody uses."""
    return (residual[:, None, :] > scale[:, :, None] * width[:, None, :]).sum(axis=2)


@st.composite
def sides(draw, dtype=np.float64, tied=False):
    """Residuals and widths (M, N); unless `tied`, no two ratios of a member are the same."""
    shape = draw(st.tuples(st.integers(1, 3), st.integers(1, 12)))
    whole = st.integers(-4, 4) if tied else st.integers(-4000, 4000)
    ratio = draw(hnp.arrays(np.int64, shape, elements=whole, unique=not tied))
    unit = draw(st.floats(1e-3, 1e3))
    width = draw(hnp.arrays(dtype, shape, elements=st.floats(2**-6, 64, width=32)))
    return (unit * ratio * width).astype(dtype), width


counts_of = st.lists(st.integers(0, 14), min_size=1, max_size=6)
