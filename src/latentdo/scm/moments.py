"""Exact moments of linear structural causal models: the oracle against which samples are tested."""

from collections.abc import Mapping, Sequence

import numpy as np

from latentdo.scm.mechanisms import Linear
from latentdo.scm.noise import FloatArray
from latentdo.scm.variable import Variable


def linear_moments(
    variables: Mapping[str, Variable], order: Sequence[int], *, need_variance: bool
) -> tuple[FloatArray, FloatArray]:
    r"""Mean ``[d]`` and covariance ``[d, d]`` of a linear model.

    With total effects :math:`T = (I - B)^{-1}`, where :math:`B_{ij}` is the weight of :math:`i \to j`, and
    :math:`c` the intercepts,

    .. math:: \mathbb{E}[x] = T^\top (c + \mathbb{E}[\varepsilon]), \qquad
              \mathrm{Cov}[x] = T^\top \mathrm{diag}(\mathrm{Var}[\varepsilon])\, T .

    Parameters
    ----------
    variables
        Name to structural equation.
    order
        Topological order of their positions.
    need_variance
        Whether the covariance is wanted: then noise without finite variance is an error, else it is ``nan``.
    """
    names = list(variables)
    index = {name: position for position, name in enumerate(names)}
    constant, variance = np.empty(len(names)), np.empty(len(names))
    total = np.eye(len(names))
    # Summing along the order needs no matrix inverse: column j is its own noise plus what the parents carry.
    for position in order:
        name = names[position]
        variable = variables[name]
        if not variable.is_linear:
            raise ValueError(
                f"exact moments need linear mechanisms, but {name!r} has {variable.formula()}; "
                "estimate them from a large sample instead"
            )
        assert isinstance(variable.mechanism, Linear)  # what a linear variable has
        constant[position] = variable.mechanism.intercept + variable.noise.mean
        variance[position] = variable.noise.variance
        if not np.isfinite(constant[position]):
            raise ValueError(f"the noise of {name!r}, {variable.noise!r}, has no mean")
        if need_variance and not np.isfinite(variance[position]):
            raise ValueError(f"the noise of {name!r}, {variable.noise!r}, has no finite variance")
        for parent, weight in variable.mechanism.weights.items():
            total[:, position] += weight * total[:, index[parent]]
    mean = constant @ total
    if not need_variance:
        return mean, np.full((len(names), len(names)), np.nan)
    return mean, (total.T * variance) @ total
