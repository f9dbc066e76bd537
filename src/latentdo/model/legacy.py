"""Models in files of version 0.1, which had one class per solver instead of one mixture of mechanisms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from latentdo.model.fitted import FittedModel, Topology
from latentdo.model.mechanisms import LinearMechanism, Mechanism, NetworkMechanism, Noise
from latentdo.model.mechanisms.base import split

Arrays = Mapping[str, NDArray[Any]]


def from_legacy(family: str, arrays: Arrays) -> FittedModel:
    """The model that a file of version 0.1 holds; what does not fit together is a :class:`ValueError`."""
    topology = Topology.from_arrays(arrays)
    reference, own = FAMILIES[family](arrays, topology)
    d = topology.n_variables
    if len(reference) != d or sorted(own) != [(int(k), int(j)) for k, j in np.argwhere(topology.targets)]:
        raise ValueError("the mechanisms do not belong to the variables and targets")
    return FittedModel(topology, tuple(reference), own)


_Parts = tuple[list[Mechanism], dict[tuple[int, int], Mechanism]]


def _linear(arrays: Arrays, topology: Topology) -> _Parts:
    """``LinearMixture``: one row of coefficients over all variables per mechanism."""
    parents = [np.flatnonzero(column) for column in topology.adjacency.T]

    def mechanism(coefficients: NDArray[np.float64], variance: float, j: int) -> Mechanism:
        used = 1 + parents[j]
        if np.delete(coefficients, [0, *used]).any():
            raise ValueError("a variable depends on others than its parents")
        slopes = coefficients[used]
        parameters = np.concatenate([coefficients[:1], slopes if slopes.any() else slopes[:0]])
        LinearMechanism.check(parameters, parents[j].size)
        return LinearMechanism(parameters, Noise.from_array(np.array([1.0, 0.0, variance])))

    reference = [
        mechanism(c, float(v), j)
        for j, (c, v) in enumerate(zip(arrays["coefficients"], arrays["variances"], strict=True))
    ]
    own = {
        (int(k), int(j)): mechanism(c, float(v), int(j))
        for (k, j), c, v in zip(
            arrays["target_index"], arrays["target_coefficients"], arrays["target_variances"], strict=True
        )
    }
    return reference, own


def _relu(arrays: Arrays, topology: Topology) -> _Parts:
    """``ReluMixture``: networks, and intervened mechanisms over parents and the reference network's hidden units."""
    parents = [np.flatnonzero(column) for column in topology.adjacency.T]
    reference: list[Mechanism] = []
    networks: list[NetworkMechanism] = []
    for j, (parameters, flat) in enumerate(
        zip(split("networks", arrays), split("noises", arrays), strict=True)
    ):
        NetworkMechanism.check(parameters, parents[j].size)
        networks.append(NetworkMechanism(parameters, Noise.from_array(flat)))
    reference += networks
    own: dict[tuple[int, int], Mechanism] = {}
    parts = (arrays["target_index"], split("own", arrays), split("own_noises", arrays))
    for (k, j), coefficients, flat in zip(*parts, strict=True):
        noise, p = Noise.from_array(flat), parents[j].size
        units = (networks[j].parameters.size - 1 - p) // (p + 2)
        if coefficients.size in (1, 1 + p):
            own[int(k), int(j)] = LinearMechanism(coefficients, noise)
        elif coefficients.size == 1 + p + units:
            own[int(k), int(j)] = networks[j].with_last_layer(coefficients, p, noise)
        else:
            raise ValueError(f"an own mechanism has {coefficients.size} coefficients")
    return reference, own


def _neural(arrays: Arrays, topology: Topology) -> _Parts:
    """``NeuralMixture``: shared networks."""
    from latentdo.model.mechanisms.neural import NeuralMechanism

    d = topology.n_variables
    keys = [(int(k), int(j)) for k, j in np.argwhere(topology.targets)]
    uses = [*((j, 0, 0) for j in range(d)), *((j, k, 1) for k, j in keys)]
    packed = {
        **arrays,
        "architecture": np.append(arrays["architecture"], d),
        "uses": np.array(uses, dtype=np.int64),
    }
    parents = [np.flatnonzero(topology.adjacency[:, j]) for j, _, _ in uses]
    found = NeuralMechanism.unpack(packed, parents)
    return list(found[:d]), dict(zip(keys, found[d:], strict=True))


FAMILIES: Final[Mapping[str, Callable[[Arrays, Topology], _Parts]]] = {
    "linear": _linear,
    "relu": _relu,
    "neural": _neural,
}
"""Names of the old classes in files."""
