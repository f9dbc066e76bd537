"""Exponentials and logarithms that loops can take several of at a time."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from latentdo.model.transcendental import LOWEST, fast_exp, fast_log

ROUNDING = 2e-14  # relative; a few dozen units in the last place


@given(st.floats(LOWEST, -LOWEST))
def test_exponentials(x):
    np.testing.assert_allclose(fast_exp(x), np.exp(x), rtol=ROUNDING)


@given(st.floats(1e-300, 1e300))
def test_logarithms(x):
    np.testing.assert_allclose(fast_log(x), np.log(x), rtol=ROUNDING, atol=1e-15)


def test_what_is_exact_stays_exact():
    assert fast_exp(0.0) == 1.0
    assert fast_log(1.0) == 0.0
