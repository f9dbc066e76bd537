r"""Exponentials and logarithms without branches or calls, so that loops over them take several elements at a time.

Fits of noise are sums of exponentials, and a call for each of them takes twelve times as long. Both are within a few
units in the last place.
"""

from __future__ import annotations

import math

import numpy as np

from latentdo.compilation import njit

LOWEST = -700.0
"""Smallest argument of :func:`fast_exp`; the result is 1e-304 there, and nothing that is added to one."""

_LOG2_E = 1.0 / math.log(2.0)
_LOG2_HIGH, _LOG2_LOW = (
    0.6931471803691238,
    1.9082149292705877e-10,
)  # sum to log 2; the first has zeros at its end
_ROUND = 1.5 * 2.0**52  # added to a number it leaves the nearest integer in the last bits
_MANTISSA = (1 << 52) - 1
_ONE = 1023 << 52  # bits of 1.0
_ROOT_HALF = 0x3FE6A09E667F3BCD  # bits of the square root of one half


@njit
def fast_exp(x):  # type: ignore[no-untyped-def]
    r"""Exponential of a number between :data:`LOWEST` and 700: :math:`e^x = 2^k e^r`, where :math:`|r| \le 0.35`."""
    shifted = x * _LOG2_E + _ROUND
    k = shifted - _ROUND
    r = (x - k * _LOG2_HIGH) - k * _LOG2_LOW
    tail = 1.0 / 5040 + r * (1.0 / 40320 + r * (1.0 / 362880 + r * (1.0 / 3628800 + r * (1.0 / 39916800))))
    series = 1.0 + r * (
        1.0 + r * (1.0 / 2 + r * (1.0 / 6 + r * (1.0 / 24 + r * (1.0 / 120 + r * (1.0 / 720 + r * tail)))))
    )
    bits = (np.float64(shifted).view(np.int64) << 52) + np.float64(series).view(np.int64)
    return np.int64(bits).view(np.float64)


@njit
def fast_log(x):  # type: ignore[no-untyped-def]
    r"""Logarithm of a positive number: :math:`\log 2^k m = k \log 2 + 2 \operatorname{artanh} \frac{m - 1}{m + 1}`."""
    bits = np.float64(x).view(np.int64) + (_ONE - _ROOT_HALF)
    m = np.int64((bits & _MANTISSA) + _ROOT_HALF).view(np.float64)
    # Adding a power of two turns an integer in the last bits into a number, without a conversion.
    k = np.int64((bits >> 52) + 0x4330000000000000).view(np.float64) - (2.0**52 + 1023.0)
    f = (m - 1.0) / (m + 1.0)
    s = f * f
    tail = 1.0 / 13 + s * (1.0 / 15 + s * (1.0 / 17 + s * (1.0 / 19 + s * (1.0 / 21))))
    series = f + f * s * (1.0 / 3 + s * (1.0 / 5 + s * (1.0 / 7 + s * (1.0 / 9 + s * (1.0 / 11 + s * tail)))))
    return k * _LOG2_HIGH + (2.0 * series + k * _LOG2_LOW)
