"""One call from a few words to a labelled benchmark data set."""

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd

from latentdo import graphs
from latentdo.scm import _arguments
from latentdo.scm._random import RandomState, as_generator
from latentdo.scm.noise import FloatArray
from latentdo.scm.presets import Preset
from latentdo.scm.random_models import random_intervention, random_scm, random_targets
from latentdo.scm.simulation import Simulation

MechanismKind = Literal["linear", "nonlinear", "nonadditive"]
InterventionKind = Literal["stochastic", "atomic", "imperfect"]
GraphKind = Literal["erdos-renyi", "scale-free"]


def simulate(
    n_variables: int | None = None,
    edges_per_node: float | None = None,
    mechanism: MechanismKind = "linear",
    intervention: InterventionKind = "stochastic",
    n_samples: int | None = None,
    preset: str | Preset = "paper",
    random_state: RandomState = 0,
    *,
    edge_probability: float | None = None,
    graph: GraphKind = "erdos-renyi",
    noise: str = "gaussian",
    targets_per_regime: int | tuple[int, int] = 1,
    n_regimes: int | None = None,
    regime_weights: Sequence[float] | npt.NDArray[np.float64] | None = None,
    observational: bool = True,
    separation: float | None = None,
    standardize: bool | None = None,
    shuffle: bool = True,
) -> Simulation:
    r"""Draw a random model, intervene on it, and sample a table with known ground truth.

    Arguments left at ``None`` take the value of the preset; an argument that is given always wins.

    ==================  ===================  =============  ===================  =====================
    preset              ``paper``            paper-pairs    ``paper-hetero``     ``dcdi``
    ==================  ===================  =============  ===================  =====================
    n_variables         10                   **2**          10                   10
    density of edges    1 a node             **p = 2/3**    1 a node             1 a node
    n_samples           10000                **999**        10000                10000
    weights             N(0, var 2)          as paper       as paper             :math:`\pm` U(0.25, 1)
    noise variance      0.015                as paper       **U(0.005, 0.05)**   U(1, 2)
    intervened noise    N(:math:`\pm u`,     as paper       as paper             N(:math:`\pm 2`, var 1)
                        var 0.1),
                        u ~ U(1.2, 2.2)
    ==================  ===================  =============  ===================  =====================

    Streams of randomness are separate: with one ``random_state``, changing the number of rows leaves graph,
    mechanisms and interventions as they are, and changing the kind of intervention leaves the observational
    rows as they are (before standardisation).

    Parameters
    ----------
    n_variables
        Number of variables ``d``, named ``X1`` ... ``Xd``.
    edges_per_node
        Expected number of edges ``e`` a variable: edge probability ``2 e / (d - 1)`` below a random order.
    mechanism
        ``"linear"``; ``"nonlinear"``: networks with one hidden layer of 5 ReLU units plus noise, where a
        variable without parents is its noise; ``"nonadditive"``: the noise is one more input of the network,
        for variables without parents the only one. Biases are drawn like weights.
    intervention
        ``"stochastic"``: the variable is its intervened noise, :math:`x_j = \tilde\varepsilon_j`;
        ``"atomic"``: it is held at :math:`\pm u`; ``"imperfect"``: the weights of the last layer (of the only
        one, if linear) are drawn afresh, and the noise is replaced by the intervened noise.
    n_samples
        Number of rows asked for. Every regime gets ``floor(n_samples * share)``, so a few may be missing:
        10000 rows over 11 regimes are 11 times 909.
    preset
        Name from the table, or a `Preset` of your own.
    random_state
        Seed or generator.
    edge_probability
        Probability of an edge below the order, instead of ``edges_per_node``.
    graph
        Kind of random DAG.
    noise
        Family of the variables' noise, always with mean zero and the preset's variance: ``"gaussian"``,
        ``"student"`` (5 degrees of freedom), ``"uniform"``, ``"laplace"``, ``"exponential"`` or ``"gamma"``
        (the last two skewed). The intervened noise stays Gaussian, as in the paper.
    targets_per_regime
        How many variables an intervention hits; a pair ``(low, high)`` draws the number for every regime.
    n_regimes
        Number of regimes, the observational one included. By default ``d + 1``, where intervention ``k`` hits
        variable ``k`` (and random others, if there are several targets). Otherwise the variables take turns
        in random order: none leads a second regime before all have led one. Regimes that share their targets
        still differ in their shifts. ``n_regimes=1`` gives purely observational data.
    regime_weights
        Relative sizes of the regimes, ``n_regimes`` of them; equal by default.
    observational
        If False, no row is observational: regime 0 keeps its place but is empty.
    separation
        Size of the shift :math:`u` in standard deviations of the intervened noise; where :math:`u` is drawn
        from a range, the range is scaled so that its midpoint lies there. By default the preset's: 5.4 in
        ``paper``, 2 in ``dcdi``. Atomic interventions use the same :math:`u`.
    standardize
        Subtract the mean and divide by the standard deviation of every column over all rows; so do all
        presets. A column without any variation is only centred.
    shuffle
        Put the rows into random order; otherwise they are sorted by regime.

    Returns
    -------
    Simulation
        ``X``, ``regimes``, ``targets``, ``adjacency``, the models, and the scaling.

    Examples
    --------
    >>> data = simulate(n_variables=5, n_samples=600, random_state=1)
    >>> data.X.shape, data.targets.shape
    ((600, 5), (6, 5))
    >>> simulate(preset="paper-pairs").X.shape
    (999, 2)
    """
    settings = _arguments.look_up_preset(preset)
    for name, value, kinds in (
        ("mechanism", mechanism, MechanismKind),
        ("intervention", intervention, InterventionKind),
        ("graph", graph, GraphKind),
    ):
        _arguments.choice(name, value, get_args(kinds))
    d = _arguments.positive_integer(
        "n_variables", settings.n_variables if n_variables is None else n_variables
    )
    rows = _arguments.positive_integer("n_samples", settings.n_samples if n_samples is None else n_samples)
    k = d + 1 if n_regimes is None else _arguments.positive_integer("n_regimes", n_regimes)
    sizes = _arguments.regime_sizes(rows, k, regime_weights, observational=observational)
    density = _arguments.edge_density(d, edges_per_node, edge_probability, settings)
    shift = _arguments.shift_range(settings, separation)
    counts = _arguments.target_counts(targets_per_regime, d)

    streams = as_generator(random_state).spawn(6)
    graph_rng, model_rng, target_rng, intervention_rng, row_rng, shuffle_rng = streams
    names = [f"X{j + 1}" for j in range(d)]
    adjacency = graphs.random_dag(d, **density, kind=graph, rng=graph_rng)
    scm = random_scm(adjacency, names, mechanism, noise, settings, model_rng)
    targets = random_targets(d, k, counts, in_order=n_regimes is None, rng=target_rng)
    regime_scms = [scm]
    for hits, rng in zip(targets[1:], intervention_rng.spawn(k - 1), strict=True):
        hit = [names[j] for j in np.flatnonzero(hits)]
        draws = {
            name: random_intervention(scm[name], intervention, settings, shift, stream)
            for name, stream in zip(hit, rng.spawn(len(hit)), strict=True)
        }
        regime_scms.append(scm.do(draws))

    values = np.concatenate(
        [
            regime_scm.sample_array(size, rng)
            for regime_scm, size, rng in zip(regime_scms, sizes, row_rng.spawn(k), strict=True)
        ]
    )
    regimes = np.repeat(np.arange(k), sizes)
    if shuffle:
        permutation = shuffle_rng.permutation(len(values))
        values, regimes = values[permutation], regimes[permutation]
    mean, scale = np.zeros(d), np.ones(d)
    if standardize is None or standardize:
        mean, scale = _pooled_scaling(values)
        values = (values - mean) / scale
    return Simulation(
        X=pd.DataFrame(values, columns=names),
        regimes=regimes,
        targets=pd.DataFrame(targets, columns=names),
        adjacency=pd.DataFrame(adjacency, index=names, columns=names),
        scm=scm,
        regime_scms=tuple(regime_scms),
        mean=pd.Series(mean, index=names),
        scale=pd.Series(scale, index=names),
    )


def _pooled_scaling(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    mean, scale = values.mean(axis=0), values.std(axis=0)
    # A dead network can make a column constant; rounding would then leave a meaningless scale near 1e-17.
    constant = np.ptp(values, axis=0) == 0
    return np.where(constant, values[0], mean), np.where(constant, 1.0, scale)
