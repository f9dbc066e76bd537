"""From data and configuration to a model and a training problem."""

from __future__ import annotations

import logging
import shutil

import numpy as np
import torch
from numpy.typing import NDArray

from latentdo.data import Dataset
from latentdo.model.fitted import Array
from latentdo.model.mechanisms.inputs import LEVELS, Inputs
from latentdo.model.variational.assignments import UNKNOWN
from latentdo.model.variational.densities.heads import Recipe
from latentdo.model.variational.mixture import Architecture, LatentMixture, Priors, StartingValues
from latentdo.model.variational.supervision import Supervision
from latentdo.solvers.gradient.configuration import GradientConfiguration
from latentdo.solvers.gradient.loop import TrainingRows
from latentdo.solvers.gradient.proposal import Proposal
from latentdo.solvers.gradient.starts import cluster_rows
from latentdo.solvers.settings import PROPOSED_TARGETS

logger = logging.getLogger(__name__)


def recipes_of(dataset: Dataset) -> tuple[Recipe, ...]:
    """What the variables are to the densities; nothing if all are continuous."""
    if not dataset.is_mixed:
        return ()
    recipes = Inputs.of(dataset.kinds, dataset.z).recipes
    for j, kind in enumerate(dataset.kinds):
        if kind.levels:  # two of them too: one head serves both
            recipes[j] = LEVELS, len(kind.levels), 0.0
    return tuple((what, first, second) for what, first, second in recipes.tolist())


def build(
    n_variables: int,
    supervision: Supervision,
    configuration: GradientConfiguration,
    recipes: tuple[Recipe, ...] = (),
) -> LatentMixture:
    """A fresh model of the configured shape."""
    c = configuration
    shape = Architecture(
        density=c.density,
        perfect=c.intervention == "perfect",
        n_variables=n_variables,
        n_regimes=supervision.n_regimes,
        embedding_size=c.embedding_size,
        width=c.width,
        n_blocks=c.n_blocks,
        dropout=c.dropout,
        flow_layers=c.flow_layers,
        flow_units=c.flow_units,
        amortised=c.estimator == "sampled",
        closed_form=c.closed_form,
        recipes=recipes,
        free_reference=c.reference == "free",
    )
    return LatentMixture(
        shape,
        concentration=c.concentration,
        known_targets=torch.as_tensor(supervision.targets, dtype=torch.float32),
        allowed=None if c.constraints is None else torch.as_tensor(c.constraints.allowed),
        required=None if c.constraints is None else torch.as_tensor(c.constraints.required),
        start=StartingValues(c.edge_logit, c.edge_jitter, c.target_logit, c.target_jitter, c.embedding_scale),
    )


def check_device(name: str) -> None:
    """Refuse a device that this machine does not have, before anything is computed.

    Raises
    ------
    ValueError
        Naming the remedy.
    """
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ValueError(f"device={name!r} is not one that torch knows; use 'cpu' or 'cuda'.") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(
            f"device={name!r}, but torch finds no CUDA: use device='cpu', or install a CUDA build of torch "
            "(https://pytorch.org/get-started) on a machine with an NVIDIA driver."
        )
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ValueError(f"device={name!r}, but there are only {torch.cuda.device_count()} CUDA devices.")
    try:
        torch.ones(1, device=device).item()
    except (RuntimeError, NotImplementedError, AssertionError) as error:
        raise ValueError(
            f"device={name!r} cannot be used here ({str(error).splitlines()[0]}); use device='cpu'."
        ) from error


def dtype_of(configuration: GradientConfiguration) -> torch.dtype:
    """Steps on moments are tiny and cancel, so they run in float64; everything else in float32."""
    moments = configuration.density == "linear" and configuration.estimator == "exact"
    return torch.float64 if moments else torch.float32


def training_rows(
    z: Array,
    supervision: Supervision,
    configuration: GradientConfiguration,
    rng: np.random.Generator,
    guess: NDArray[np.int64] | None = None,
    recipes: tuple[Recipe, ...] = (),
) -> TrainingRows:
    """Rows, labels, priors and (for a latent exact fit) a rough clustering to start from."""
    c = configuration
    n = len(z)
    xi = c.edge_log_odds
    priors = Priors(
        edge_log_odds=xi
        if isinstance(xi, float | int)
        else torch.as_tensor(xi, dtype=dtype_of(c), device=c.device),
        target_log_odds=c.target_log_odds,
        per_row=c.per_row_priors,
        per_row_embeddings=c.per_row_embeddings,
        per_row_target_entropy=c.per_row_target_entropy,
        parameter_cost=0.0 if c.per_row_priors else 0.5 * float(np.log(n)),
    )
    warm = None
    if c.estimator == "exact" and bool((supervision.labels == UNKNOWN).any()):
        if guess is None:
            columns = Inputs(np.array(recipes)).expand(z) if recipes else z
            guess = cluster_rows(columns, supervision.labels, supervision.n_regimes, rng)
        warm = torch.as_tensor(guess, device=c.device)
    x = torch.as_tensor(z, dtype=dtype_of(c), device=c.device)
    return TrainingRows(x, supervision.label_tensor(c.device), priors, warm)


def compile_networks(mixture: LatentMixture) -> bool:
    """Compile the networks' trunk in place, if there are any and a C++ compiler exists; says which in one log line."""
    trunk = getattr(mixture.density, "trunk", None)
    if trunk is None:
        return False
    if not any(shutil.which(name) for name in ("g++", "clang++", "c++")):
        logger.info("No C++ compiler found: networks run uncompiled.")
        return False
    trunk.compile(dynamic=True)
    return True


@torch.no_grad()
def start_from(mixture: LatentMixture, proposal: Proposal, strength: float) -> None:
    """Set the logits of edges and targets so that they lean towards a proposal."""
    targets = np.zeros(mixture.targets.logits.shape)
    rows = min(len(targets), len(proposal.targets))
    targets[:rows] = proposal.targets[:rows]
    for logits, values, size in (
        (mixture.graph.logits, proposal.adjacency, strength),
        (mixture.targets.logits, targets, strength + PROPOSED_TARGETS),
    ):
        signs = torch.as_tensor(2.0 * values - 1.0, dtype=logits.dtype, device=logits.device)
        logits.add_(size * signs - logits.mean())
