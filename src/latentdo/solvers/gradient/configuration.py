"""Every choice of a gradient fit in one frozen place; the paper's own under one name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from latentdo.choices import DENSITY, INTERVENTION
from latentdo.files import CHECKPOINT_SECONDS, check_seconds
from latentdo.graphs.constraints import Constraints
from latentdo.solvers.gradient.acyclicity import MEASURES
from latentdo.solvers.gradient.lagrangian import AugmentedLagrangian

Estimator = Literal["exact", "sampled"]

_TEXT_OF_ITS_PRIORS: Final[Mapping[str, Any]] = {
    "edge_log_odds": -0.1,
    "target_log_odds": -0.01,
    "per_row_embeddings": True,
    "per_row_target_entropy": True,
}
_TEXT_OF_ITS_SCHEDULE: Final[Mapping[str, Any]] = {
    "max_regimes": 12,
    "edge_jitter": 0.0,
    "target_jitter": 0.0,
    "embedding_scale": 0.1,
    "fixed_embedding_scale": False,
    "reference": "embedding",
    "regime_steps": 0,
    "free_target_steps": 0,
    "max_subproblems": 200,
    "lagrangian": AugmentedLagrangian(0.0, 1e-8, 2.0, 0.9),
    "learning_rate": 10**-2.5,
    "structure_rate": 1.0,
    "batch_size": None,
}
TEXT_OF_THE_PAPER: Final[Mapping[str, Any]] = MappingProxyType(
    {**_TEXT_OF_ITS_PRIORS, **_TEXT_OF_ITS_SCHEDULE}
)
"""Every option in which :meth:`GradientConfiguration.paper` departs from the paper's text, with the text's value.

``GradientConfiguration.paper(**TEXT_OF_THE_PAPER)`` follows it to the letter, and finds no regimes. The reasons are in
``docs/mathematics.md``; what was tried is in ``experiments/notes/gradient.md``.
"""


@dataclass(frozen=True, eq=False)
class GradientConfiguration:
    """How to fit; :meth:`paper` gives the published algorithm, the defaults are ours.

    Parameters
    ----------
    density : {"linear", "nonlinear", "flow"}
        Family of conditional densities.
    intervention : {"perfect", "imperfect"}
        Whether intervened mechanisms ignore their parents.
    max_regimes : int
        Truncation: regimes allowed, the reference included. Labels may make it larger.
    estimator : {"exact", "sampled"}
        Exact expectations over targets and regimes, or the paper's relaxed draws and amortised posterior.
    mechanisms : {"auto", "networks", "closed-form"}
        Train networks, or refit linear mechanisms in closed form at every step; "auto" does so wherever it
        can (linear
        densities, exact estimator).
    per_row_priors : bool
        Divergences of graph, targets and sticks count once per row, as the paper writes them. Only with the
        paper's own
        grid of xi and gamma.
    per_row_embeddings : bool
        So does that of the embeddings: the literal reading of the paper. It collapses (see the laboratory
        book), so even
        :meth:`paper` counts this divergence once per data set.
    per_row_target_entropy : bool
        So does the entropy of the targets' posterior, which with ``gamma = -0.01`` leaves all targets near one half:
        off as well, so that a target costs ``gamma`` a row, just as an edge costs ``xi`` a row.
    edge_log_odds, target_log_odds : float or ndarray [d, d], float
        The paper's xi and gamma.
    prior_grid : tuple of (float, float)
        Pairs of xi and gamma among which held-out rows choose, one fit each (the paper's choice for every graph);
        empty: the two above, and nothing is chosen.
    constraints : Constraints, optional
        Edges that may and must exist; any, by default.
    concentration : float
        Alpha of the Dirichlet process.
    kappa : float
        Weight of known labels in the amortised posterior (sampled estimator only).
    embedding_size, width, n_blocks, dropout, flow_layers, flow_units
        Shape of the networks.
    edge_logit, target_logit, embedding_scale : float
        Starting values.
    edge_jitter, target_jitter : float
        Standard deviations of random starts around ``edge_logit`` and ``target_logit``: what makes restarts differ,
        and regimes without labels.
    fixed_embedding_scale : bool
        The standard deviations of the embeddings' posterior stay at ``embedding_scale``. Trained, they return to those
        of the prior within a few hundred steps, and every mechanism is a network of noise.
    reference : {"embedding", "free"}
        Linear mechanisms of the reference come from the hypernetwork of a draw of ``u_0``, as published, or are
        parameters of their own: the noise of ``u_0`` then enters no mechanism.
    regime_steps : int
        Steps before the first sub-problem in which rows without labels form regimes under a graph that stands still.
        With edges that learn, a dense cyclic graph explains the rows before any regime does. Not done where all labels
        are known.
    regime_graph : {"empty", "ordered"}
        That graph: none, or every edge of a random order of the variables, which explains any dependence inside a
        regime, so that no regimes are spent on it. Each start has an order of its own.
    regime_starts : int
        Random starts of the regime steps; the one with the best bound goes on.
    free_target_steps : int
        The first of these, in which a target costs nothing: charged from the start, regimes lose their targets before
        they have found rows.
    fresh_start : bool
        Once regimes have formed, mechanisms start anew, and so do targets, at ``target_logit`` without
        ``target_jitter``: both have adapted to another graph, and what is downstream of a target counts as a target
        there.
    hold_regimes : bool
        After the regime steps, rows stay in their regimes: amortised posterior and embeddings learn no more. Targets
        and edges that start anew would dissolve them.
    first_steps, steps : int
        Optimisation steps of the first sub-problem, and of the later ones; -1 chooses by the family.
    final_steps : int
        Steps with the graph fixed to the DAG that was found; -1 chooses by the family.
    max_subproblems : int
        Updates of the Lagrangian at most.
    anneal_cost, anneal_floor, anneal_share : float
        Extra cost of a target, in nats per row of its regime: where it starts, where it ends, and over which
        share of the first
        sub-problem it falls (exact estimator only).
    target_step : float
        Step of the natural gradients of targets.
    lagrangian : AugmentedLagrangian
        Its start.
    acyclicity : str
        Name of the measure of acyclicity.
    tolerance : float
        Violation at which training stops. The result is a DAG in any case; it counts as converged if the edges above
        one half form one without a cut.
    learning_rate, weight_decay : float
        Of Adam.
    structure_rate : float
        Learning rate of the graph, and of targets that are sampled and cost something, relative to that of the
        networks.
    batch_size : int, optional
        Rows a step; all if None, -1 chooses by the family.
    graph_samples : int
        Graphs drawn a step, shared out among the rows.
    temperature, final_temperature : float
        Of the relaxations, interpolated geometrically over the first sub-problem.
    candidate_threshold : float
        Pairs of row and regime below this responsibility are skipped where all pairs would be expensive.
    refresh : int
        Steps between two refreshes of these pairs.
    propose : bool
        Start networks, and fits that look for regimes, from what structural search finds (exact estimator only).
    proposal_strength : float
        Logits with which edges of that structure start; its targets start one higher.
    prune : bool
        Drop edges and targets whose removal raises the penalised score (exact estimator only).
    train_fraction : float
        Share of rows that train; the others choose among restarts.
    min_share : float
        Unlabelled regimes with a smaller share of the rows are dropped.
    n_init, n_jobs, random_state : int
        Restarts, parallel workers, and the seed.
    patience : int
        Steps without improvement after which a sub-problem stops early; 0 switches this off.
    device : str
        Where torch computes.
    compile : bool
        Use ``torch.compile`` for the densities where a compiler exists.
    checkpoint : path, optional
        File to which the state is written now and then, and from which a fit resumes.
    checkpoint_seconds : float
        Longest time between two writes; they come every few seconds at first. 0 for one after every step.
    verbose : bool
        Show progress.
    """

    density: str = "linear"
    intervention: str = "perfect"
    max_regimes: int = 16
    estimator: Estimator = "exact"
    mechanisms: Literal["auto", "networks", "closed-form"] = "auto"
    per_row_priors: bool = False
    per_row_embeddings: bool = False
    per_row_target_entropy: bool = False
    edge_log_odds: float | NDArray[np.float64] = 0.0
    target_log_odds: float = 0.0
    prior_grid: tuple[tuple[float, float], ...] = ()
    constraints: Constraints | None = None
    concentration: float = 9.0
    kappa: float = 0.5
    embedding_size: int = 16
    width: int = 32
    n_blocks: int = 2
    dropout: float = 0.0
    flow_layers: int = 2
    flow_units: int = 12
    edge_logit: float = 0.0
    edge_jitter: float = 0.5
    target_logit: float = -2.0
    target_jitter: float = 0.0
    fixed_embedding_scale: bool = False
    reference: Literal["embedding", "free"] = "embedding"
    regime_steps: int = 0
    regime_graph: Literal["empty", "ordered"] = "empty"
    regime_starts: int = 1
    free_target_steps: int = 0
    fresh_start: bool = False
    hold_regimes: bool = False
    embedding_scale: float = 0.05
    first_steps: int = -1
    steps: int = -1
    final_steps: int = -1
    max_subproblems: int = 50
    anneal_cost: float = 5.0
    anneal_floor: float = 0.05
    anneal_share: float = 0.8
    target_step: float = 0.05
    lagrangian: AugmentedLagrangian = field(default_factory=lambda: AugmentedLagrangian(0.0, 1e-4, 3.0, 0.9))
    acyclicity: str = "trace-exponential"
    tolerance: float = 1e-2
    learning_rate: float = 5e-3
    structure_rate: float = 6.0
    weight_decay: float = 1e-6
    batch_size: int | None = -1
    graph_samples: int = 64
    temperature: float = 1.0
    final_temperature: float = 1.0
    candidate_threshold: float = 1e-3
    refresh: int = 50
    prune: bool = True
    propose: bool = True
    proposal_strength: float = 2.0
    train_fraction: float = 0.8
    min_share: float = 2e-3
    n_init: int = 1
    n_jobs: int = 1
    random_state: int = 0
    patience: int = 0
    device: str = "cpu"
    compile: bool = False
    checkpoint: Path | None = None
    checkpoint_seconds: float = CHECKPOINT_SECONDS
    verbose: bool = False

    def __post_init__(self) -> None:
        """Fill in what depends on the family, and refuse values that cannot work, by name."""
        fast = self.density == "linear" and self.estimator == "exact" and self.mechanisms != "networks"
        defaults: dict[str, int | None] = {
            "first_steps": 200 if fast else 600,
            "steps": 20 if fast else 40,
            "final_steps": 0 if fast else 300,
            "batch_size": None if fast else 1000,
        }
        for name, value in defaults.items():
            if getattr(self, name) == -1:
                object.__setattr__(self, name, value)
        allowed = {
            "density": DENSITY.names("gradient"),
            "intervention": INTERVENTION.names("gradient"),
            "estimator": ("exact", "sampled"),
            "acyclicity": tuple(MEASURES),
        }
        for name, values in allowed.items():
            if getattr(self, name) not in values:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} is unknown; use one of {', '.join(values)}."
                )
        check_seconds(self.checkpoint_seconds)
        positive = (
            "max_regimes", "concentration", "embedding_size", "width", "first_steps", "steps",
            "max_subproblems", "regime_starts",
            "tolerance", "learning_rate", "graph_samples", "temperature", "final_temperature", "n_init",
            "refresh",
        )  # fmt: skip
        for name in positive:
            if not getattr(self, name) > 0:
                raise ValueError(f"{name}={getattr(self, name)} must be positive.")
        if not 0.0 < self.train_fraction <= 1.0:
            raise ValueError(f"train_fraction={self.train_fraction} must lie in (0, 1].")

    @property
    def closed_form(self) -> bool:
        """Whether mechanisms are refitted in closed form."""
        possible = self.density == "linear" and self.estimator == "exact"
        if self.mechanisms == "closed-form" and not possible:
            raise ValueError("Closed-form mechanisms need density='linear' and the exact estimator.")
        return possible and self.mechanisms != "networks"

    @classmethod
    def paper(cls, *, labelled: bool = False, **changes: Any) -> GradientConfiguration:
        """The published algorithm (paper, section 4, appendices B and G), as far as its text leads to regimes.

        :data:`TEXT_OF_THE_PAPER` has what differs. With ``labelled``, where all labels are known and no regime has to
        be found, only priors differ, and the schedule is the text's. The paper chooses xi and gamma for every data
        set, from -0.1 to 0.1 and from -0.1 and -0.01, by held-out rows, which ``prior_grid`` does too. The values here
        are those that held-out rows preferred on a development graph. Appendix G's (-0.1 and -0.01) make targets
        cheaper than edges: all variables become targets, and the graph stays empty.
        """
        published = cls(
            estimator="sampled",
            per_row_priors=True,
            edge_log_odds=-0.01,
            target_log_odds=-0.1,
            target_logit=0.0,
            target_jitter=1.5,
            max_regimes=30,
            concentration=9.0,
            embedding_size=264,
            width=32,
            n_blocks=2,
            flow_layers=2,
            flow_units=12,
            regime_steps=800,
            free_target_steps=450,
            first_steps=500,
            steps=50,
            final_steps=0,
            max_subproblems=60,
            lagrangian=AugmentedLagrangian(0.0, 1e-4, 3.0, 0.5),
            tolerance=1e-8,
            learning_rate=6e-3,
            structure_rate=3.0,
            edge_jitter=0.5,
            batch_size=2000,
            weight_decay=1e-6,
            embedding_scale=0.01,
            fixed_embedding_scale=True,
            reference="free",
            prune=False,
        )
        return replace(published, **{**(_TEXT_OF_ITS_SCHEDULE if labelled else {}), **changes})

    def temperature_at(self, step: int) -> float:
        """Temperature of the relaxations at an overall step."""
        share = min(step / self.first_steps, 1.0)
        return float(self.temperature * (self.final_temperature / self.temperature) ** share)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for provenance."""
        values = asdict(self)
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                values[name] = value.tolist()
            elif name == "constraints" and value is not None:
                values[name] = {key: np.asarray(part).tolist() for key, part in value.items()}
            elif isinstance(value, Path) or (isinstance(value, float) and math.isinf(value)):
                values[name] = str(value)
        values["lagrangian"]["last"] = str(values["lagrangian"]["last"])
        return values
