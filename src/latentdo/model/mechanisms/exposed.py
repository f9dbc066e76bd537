r"""Counts over a known exposure: a library size, hours of observation, persons at risk.

.. math:: \mu = e^{\eta + o}, \qquad \eta = c + b' x

The offset :math:`o`, the logarithm of the exposure in units of a typical one, is the last column that the mechanism is
given, and has a coefficient of one in every regime: an intervention changes a rate, not for how long it was looked at.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from latentdo.model.mechanisms.base import Array
from latentdo.model.mechanisms.count import CountMechanism
from latentdo.model.mechanisms.response import FARTHEST


class ExposedCount(CountMechanism):
    """See :class:`CountMechanism`; ``x [n, q + 1]`` are inputs and, last, the offset."""

    family: ClassVar[str] = "exposed-count"
    summary: ClassVar[str] = "Poisson or negative binomial regression of rates, given the exposure of rows"

    @classmethod
    def split(cls, x: Array) -> tuple[Array, Array]:
        """See :class:`Response`."""
        return x[:, :-1], np.ascontiguousarray(x[:, -1])

    @classmethod
    def without_parents(cls, x: Array) -> Array:
        """See :class:`Response`: the exposure stays."""
        return x[:, -1:]

    def predictors(self, x: Array) -> Array:
        """See :class:`Response`."""
        inputs, offset = self.split(x)
        return np.asarray(np.clip(super().predictors(inputs) + offset, -FARTHEST, FARTHEST))
