"""Trained networks of the paper's model as mechanisms: embeddings at their posterior means, one DAG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray

from latentdo.choices import DENSITY
from latentdo.forks import prepare_torch
from latentdo.model.mechanisms.base import Array, Mechanism, Parents
from latentdo.model.mechanisms.inputs import AS_IT_IS, LEVELS, LOGARITHM, Inputs
from latentdo.model.variational.densities import ConditionalDensity
from latentdo.model.variational.graph import GraphSample
from latentdo.model.variational.mixture import Architecture

_DENSITIES = {one.code: one.name for one in DENSITY.choices if one.code is not None}
_CODES = {name: code for code, name in _DENSITIES.items()}
_LARGEST_SHAPE = 4096  # of one side of a network; a hundred times what the paper uses
_CHUNK = 20_000  # rows evaluated at once, so that memory does not grow with their number


@dataclass(frozen=True, eq=False)
class Networks:
    """Weights that all mechanisms of one fit share.

    Parameters
    ----------
    architecture : Architecture
        Shape of the networks.
    embeddings : ndarray [n_regimes, h]
        One embedding per regime; row 0 gives the reference mechanisms.
    state : mapping
        The weights of the density's networks, by name.
    """

    architecture: Architecture
    embeddings: NDArray[np.float32]
    state: Mapping[str, NDArray[np.float32]]

    def __post_init__(self) -> None:
        """Build the networks once, and one density per variable when it is first asked for."""
        prepare_torch()
        density = self.architecture.build_density()
        density.load_state_dict(
            {name: torch.as_tensor(np.array(value)) for name, value in self.state.items()}
        )
        density.eval()

        @cache
        def only(variable: int) -> ConditionalDensity:
            return density.only(variable)

        object.__setattr__(self, "density", density)
        object.__setattr__(self, "only", only)
        object.__setattr__(self, "u", torch.as_tensor(np.array(self.embeddings)))

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the arrays, not the networks built from them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)
        self.__post_init__()

    density: ClassVar[ConditionalDensity]
    only: ClassVar[Any]
    u: ClassVar[torch.Tensor]


@dataclass(frozen=True, eq=False)
class NeuralMechanism(Mechanism):
    """One variable of shared networks, in one regime.

    Parameters
    ----------
    networks : Networks
        Shared by all mechanisms of a fit.
    variable : int
        Which of the networks.
    parents : ndarray of int64
        Which of their inputs are used.
    regime : int
        Row of the embeddings.
    intervened : bool
        Whether this is the mechanism of an intervention.
    """

    networks: Networks
    variable: int
    parents: Parents
    regime: int = 0
    intervened: bool = False

    family: ClassVar[str] = "neural"

    @property
    def n_parameters(self) -> int:
        """What the density's family counts for a mechanism with so many parents; the weights are shared."""
        alone = self.intervened and self.networks.architecture.perfect
        return self.networks.density.n_parameters(self.variable, [] if alone else self.parents.tolist())

    @property
    def n_levels(self) -> int | None:
        """See :class:`Mechanism`."""
        recipes = self.networks.architecture.recipes
        what, first, _ = recipes[self.variable] if recipes else (AS_IT_IS, 0.0, 0.0)
        return int(first) if what == LEVELS else 0 if what == LOGARITHM else None

    @torch.no_grad()
    def quantile(self, x: Array, uniform: Array) -> Array:
        """See :class:`Mechanism`."""
        prepare_torch()
        density, graph, u = self.networks.only(self.variable), self._graph, self.networks.u
        typical = self.networks.architecture.recipes[self.variable][1]
        out = density.outputs(self._rows(x), graph, u, self.regime, intervened=self.intervened)[0]
        found: Array = density.count_quantile(out, typical, torch.as_tensor(uniform)).numpy()
        return found

    def without(self, parent: int) -> NeuralMechanism:
        """The same network that no longer sees one of its parents."""
        return replace(self, parents=self.parents[self.parents != parent])

    def _rows(self, x: Array) -> torch.Tensor:
        """Rows as the networks take them, zero wherever it does not matter."""
        rows = torch.zeros(len(x), self.networks.architecture.n_variables)
        rows[:, torch.as_tensor(self.parents)] = torch.as_tensor(np.array(x, dtype=np.float32))
        return rows

    @property
    def _graph(self) -> GraphSample:
        d = self.networks.architecture.n_variables
        graph = torch.zeros(1, d, d)
        graph[0, torch.as_tensor(self.parents), self.variable] = 1.0
        return GraphSample(graph)

    @torch.no_grad()
    def log_density(self, x: Array, y: Array) -> Array:
        """See :class:`Mechanism`."""
        prepare_torch()
        density, graph, u = self.networks.only(self.variable), self._graph, self.networks.u
        out = np.empty(len(y))
        for start in range(0, len(y), _CHUNK):
            part = slice(start, start + _CHUNK)
            rows = self._rows(x[part])
            rows[:, self.variable] = torch.as_tensor(np.array(y[part], dtype=np.float32))
            if self.intervened:
                places = torch.arange(len(rows))
                value = density.intervened(rows, graph, u, places, torch.full_like(places, self.regime))
            else:
                value = density.reference(rows, graph, u)
            out[part] = value[:, 0].numpy()
        return out

    @torch.no_grad()
    def draw(self, x: Array, rng: np.random.Generator) -> Array:
        """See :class:`Mechanism`."""
        prepare_torch()
        density, graph, u = self.networks.only(self.variable), self._graph, self.networks.u
        out = np.empty(len(x))
        for start in range(0, len(x), _CHUNK):
            rows = self._rows(x[start : start + _CHUNK])
            noise = torch.as_tensor(rng.standard_normal((len(rows), 1)).astype(np.float32))
            drawn = density.draw(rows, graph, u, self.regime, intervened=self.intervened, noise=noise)
            out[start : start + _CHUNK] = drawn[:, 0]
        return out

    @classmethod
    def pack(cls, mechanisms: Sequence[Self]) -> dict[str, NDArray[Any]]:
        """See :class:`Mechanism`; the networks once, then who uses which of them."""
        (networks,) = {id(one.networks): one.networks for one in mechanisms}.values()
        shape = networks.architecture
        integers = (
            _CODES[shape.density],
            int(shape.perfect),
            shape.embedding_size,
            shape.width,
            shape.n_blocks,
            shape.flow_layers,
            shape.flow_units,
            shape.n_variables,
        )
        uses = [(one.variable, one.regime, int(one.intervened)) for one in mechanisms]
        recipes = {"recipes": np.array(shape.recipes, dtype=np.float64)} if shape.recipes else {}
        return {
            **recipes,
            "architecture": np.array(integers, dtype=np.int64),
            "embeddings": networks.embeddings,
            "uses": np.array(uses, dtype=np.int64),
            **{f"state.{name}": np.asarray(value) for name, value in networks.state.items()},
        }

    @classmethod
    def unpack(cls, arrays: Mapping[str, NDArray[Any]], parents: Sequence[Parents]) -> list[Self]:
        """See :class:`Mechanism`."""
        shape = arrays["architecture"]
        highest = [max(_DENSITIES), 1, *[_LARGEST_SHAPE] * 6]
        if shape.dtype != np.int64 or shape.shape != (8,) or not ((shape >= 0) & (shape <= highest)).all():
            raise ValueError(f"architecture is {shape.tolist()}, which no fit has")
        code, perfect, size, width, blocks, layers, units, d = (int(v) for v in shape)
        embeddings = np.array(arrays["embeddings"])
        if embeddings.dtype != np.float32 or embeddings.shape[1:] != (size,):
            raise ValueError(f"embeddings have the shape {embeddings.shape}")
        recipes = np.array(arrays.get("recipes", np.empty((0, 3))), dtype=np.float64)
        if recipes.shape not in ((0, 3), (d, 3)):
            raise ValueError("it is not said of every variable what it is")
        architecture = Architecture(
            density=_DENSITIES[code],
            recipes=tuple((what, first, second) for what, first, second in Inputs(recipes).recipes.tolist()),
            perfect=bool(perfect),
            n_variables=d,
            n_regimes=len(embeddings),
            embedding_size=size,
            width=width,
            n_blocks=blocks,
            flow_layers=layers,
            flow_units=units,
        )
        state = {
            name.removeprefix("state."): np.array(value)
            for name, value in arrays.items()
            if name.startswith("state.")
        }
        with torch.device("meta"):  # sizes alone: forged ones must not fill the memory
            wanted = {name: tuple(v.shape) for name, v in architecture.build_density().state_dict().items()}
        if {name: v.shape for name, v in state.items() if v.dtype == np.float32} != wanted:
            raise ValueError("the weights of the networks do not fit the architecture")
        for name, value in (*state.items(), ("embeddings", embeddings)):
            if not np.isfinite(value).all():
                raise ValueError(f"{name} are not finite")
        networks = Networks(architecture, embeddings, state)
        found = []
        for (variable, regime, intervened), inputs in zip(arrays["uses"].tolist(), parents, strict=True):
            if not (0 <= variable < d and 0 <= regime < len(embeddings)):
                raise ValueError("a mechanism belongs to no variable or no regime of its networks")
            if variable in inputs or not (inputs < d).all():
                raise ValueError("the parents of a mechanism are not inputs of its network")
            found.append(cls(networks, variable, inputs, regime, bool(intervened)))
        return found
