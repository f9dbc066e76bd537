"""Trained networks as a fitted model: embeddings at their posterior means, one DAG, hard targets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray

from latentdo.forks import prepare_torch
from latentdo.model.densities import ConditionalDensity
from latentdo.model.fitted import Array, FittedModel, Topology
from latentdo.model.graph import GraphSample
from latentdo.model.linear_mixture import LinearMixture
from latentdo.model.mixture import Architecture

_FAMILY_CODES = ("linear", "nonlinear", "flow")
_LARGEST_SHAPE = 4096  # of one side of a network; a hundred times what the paper uses
_CHUNK = 20_000  # rows evaluated at once, so that memory does not grow with their number


@dataclass(frozen=True, eq=False)
class NeuralMixture(FittedModel):
    """A fitted mixture whose mechanisms are networks.

    Parameters
    ----------
    topology : Topology
        Graph, targets and weights.
    architecture : Architecture
        Shape of the networks; ``n_regimes`` is that of the topology.
    embeddings : ndarray [n_regimes, h]
        One embedding a regime; row 0 gives the reference mechanisms.
    state : mapping
        The weights of the density's networks, by name.
    """

    topology: Topology
    architecture: Architecture
    embeddings: NDArray[np.float32]
    state: Mapping[str, NDArray[np.float32]]

    family: ClassVar[str] = "neural"

    def __post_init__(self) -> None:
        """Build the networks once, and one density a variable."""
        prepare_torch()
        density = self.architecture.build_density()
        density.load_state_dict(
            {name: torch.as_tensor(np.array(value)) for name, value in self.state.items()}
        )
        density.eval()

        @cache
        def one(variable: int) -> ConditionalDensity:
            return density.only(variable)

        graph = torch.as_tensor(np.array(self.topology.adjacency, dtype=np.float32))[None]
        object.__setattr__(self, "_one", one)
        object.__setattr__(self, "_graph", GraphSample(graph))
        object.__setattr__(self, "_u", torch.as_tensor(np.array(self.embeddings)))

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the arrays, not the networks built from them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)
        self.__post_init__()

    def _parts(self, variable: int) -> tuple[ConditionalDensity, GraphSample, torch.Tensor]:
        prepare_torch()
        return self._one(variable), self._graph, self._u  # type: ignore[attr-defined]

    @torch.no_grad()
    def variable_log_density(self, z: Array, variable: int, regime: int) -> Array:
        """See :class:`FittedModel`."""
        density, graph, u = self._parts(variable)
        out = np.empty(len(z))
        for start in range(0, len(z), _CHUNK):
            x = torch.as_tensor(np.array(z[start : start + _CHUNK], dtype=np.float32))
            if self.topology.targets[regime, variable]:
                rows = torch.arange(len(x))
                value = density.intervened(x, graph, u, rows, torch.full_like(rows, regime))
            else:
                value = density.reference(x, graph, u)
            out[start : start + _CHUNK] = value[:, 0].numpy()
        return out

    @torch.no_grad()
    def draw_variable(self, z: Array, variable: int, regime: int, rng: np.random.Generator) -> Array:
        """See :class:`FittedModel`."""
        density, graph, u = self._parts(variable)
        hit = bool(self.topology.targets[regime, variable])
        out = np.empty(len(z))
        for start in range(0, len(z), _CHUNK):
            x = torch.as_tensor(np.array(z[start : start + _CHUNK], dtype=np.float32))
            noise = torch.as_tensor(rng.standard_normal((len(x), 1)).astype(np.float32))
            out[start : start + _CHUNK] = density.draw(x, graph, u, regime, intervened=hit, noise=noise)[:, 0]
        return out

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """See :class:`FittedModel`."""
        shape = self.architecture
        integers = (
            _FAMILY_CODES.index(shape.density),
            int(shape.perfect),
            shape.embedding_size,
            shape.width,
            shape.n_blocks,
            shape.flow_layers,
            shape.flow_units,
        )
        return {
            "adjacency": self.topology.adjacency,
            "targets": self.topology.targets,
            "weights": self.topology.weights,
            "architecture": np.array(integers, dtype=np.int64),
            "embeddings": self.embeddings,
            **{f"state.{name}": np.asarray(value) for name, value in self.state.items()},
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]]) -> Self:
        """See :class:`FittedModel`."""
        values: dict[str, NDArray[Any]] = {name: np.array(array) for name, array in arrays.items()}
        topology = Topology.from_arrays(arrays)
        shape = values["architecture"]
        highest = [len(_FAMILY_CODES) - 1, 1, *[_LARGEST_SHAPE] * 5]
        if shape.dtype != np.int64 or shape.shape != (7,) or not ((shape >= 0) & (shape <= highest)).all():
            raise ValueError(f"architecture is {shape.tolist()}, which no fit has")
        family, perfect, size, width, blocks, layers, units = (int(v) for v in shape)
        architecture = Architecture(
            density=_FAMILY_CODES[family],
            perfect=bool(perfect),
            n_variables=topology.n_variables,
            n_regimes=topology.n_regimes,
            embedding_size=size,
            width=width,
            n_blocks=blocks,
            flow_layers=layers,
            flow_units=units,
        )
        state = {name.removeprefix("state."): v for name, v in values.items() if name.startswith("state.")}
        embeddings = values["embeddings"]
        if embeddings.dtype != np.float32 or embeddings.shape != (topology.n_regimes, size):
            raise ValueError(f"embeddings have the shape {embeddings.shape}")
        with torch.device("meta"):  # sizes alone: forged ones must not fill the memory
            wanted = {name: tuple(v.shape) for name, v in architecture.build_density().state_dict().items()}
        if {name: v.shape for name, v in state.items() if v.dtype == np.float32} != wanted:
            raise ValueError("the weights of the networks do not fit the architecture")
        for name, value in (*state.items(), ("embeddings", embeddings)):
            if not np.isfinite(value).all():
                raise ValueError(f"{name} are not finite")
        return cls(topology, architecture, embeddings, state)

    @torch.no_grad()
    def to_linear(self) -> LinearMixture:
        """The same model in closed form; only for the linear family."""
        if self.architecture.density != "linear":
            raise ValueError(f"A {self.architecture.density} model has no linear form.")
        density = self.architecture.build_density()
        density.load_state_dict(
            {name: torch.as_tensor(np.array(value)) for name, value in self.state.items()}
        )
        a, b, log_scale = (
            part.double().numpy()
            for part in density.mechanisms(torch.as_tensor(np.array(self.embeddings)))  # type: ignore[operator]
        )
        masked = a * self.topology.adjacency  # [K, parent, variable]
        own = np.concatenate([b[:, None], masked], axis=1).transpose(0, 2, 1)  # [K, variable, 1 + parent]
        index = np.argwhere(self.topology.targets).astype(np.int64).reshape(-1, 2)
        hit = own[index[:, 0], index[:, 1]].copy()
        if self.architecture.perfect:
            hit[:, 1:] = 0.0
        variances = np.exp(2.0 * log_scale)
        return LinearMixture(
            self.topology, own[0].copy(), variances[0].copy(), index, hit, variances[index[:, 0], index[:, 1]]
        )
