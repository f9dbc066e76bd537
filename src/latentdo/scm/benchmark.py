"""One call from a few words to a labelled benchmark data set."""

import numbers
from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd

from latentdo import graphs
from latentdo.scm._random import RandomState, as_generator
from latentdo.scm.interventions import Atomic, Imperfect, Intervention, Stochastic
from latentdo.scm.mechanisms import MLP, LayeredMechanism, Linear, NonadditiveMLP
from latentdo.scm.model import SCM
from latentdo.scm.noise import FloatArray, Gaussian, Noise, centred_noise
from latentdo.scm.presets import PRESETS, Preset
from latentdo.scm.simulation import Simulation
from latentdo.scm.variable import Variable

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

    Streams of randomness are separate: with one ``random_state``, changing the number of rows leaves graph and
    mechanisms as they are, and changing the kind of intervention leaves the observational rows as they are
    (before standardisation).

    Parameters
    ----------
    n_variables
        Number of variables ``d``, named ``X1`` ... ``Xd``.
    edges_per_node
        Expected number of edges ``e`` a variable: edge probability ``2 e / (d - 1)`` below a random order.
    mechanism
        ``"linear"``; ``"nonlinear"``: networks with one hidden layer of 5 ReLU units plus noise; ``"nonadditive"``:
        the noise is one more input of the network. Biases are drawn like weights.
    intervention
        ``"stochastic"``: the variable is its intervened noise, :math:`x_j = \tilde\varepsilon_j`; ``"atomic"``: held
        at :math:`\pm u`; ``"imperfect"``: the weights of the last layer are drawn afresh (the only layer, if
        linear), and the noise is replaced by the intervened noise.
    n_samples
        Number of rows asked for. Every regime gets ``floor(n_samples * weight)``, so a few may be missing: 10000 rows
        over 11 regimes are 11 times 909.
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
        ``"student"`` (5 degrees of freedom), ``"uniform"``, ``"laplace"``, ``"exponential"`` or ``"gamma"`` (the last
        two skewed). The intervened noise stays Gaussian, as in the paper.
    targets_per_regime
        How many variables an intervention hits; a pair ``(low, high)`` draws the number for every regime.
    n_regimes
        Number of regimes, the observational one included. By default ``d + 1``, where intervention ``k`` hits
        variable ``k`` (and random others if there are several targets). Otherwise variables take turns in random
        order, so that none is hit twice before all were hit once; regimes beyond that repeat targets with other
        shifts. ``1`` gives observational data.
    regime_weights
        Relative sizes of the regimes, ``n_regimes`` of them; equal by default.
    observational
        If False, no row is observational: regime 0 keeps its place but is empty.
    separation
        Size of the shift :math:`u` in standard deviations of the intervened noise; a range of :math:`u` is scaled so
        that its midpoint lies there. By default the preset's: 5.4 in ``paper``, 2 in ``dcdi``.
    standardize
        Subtract mean and divide by standard deviation of every column over all rows; yes in every preset.
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
    settings = _look_up_preset(preset)
    d = settings.n_variables if n_variables is None else _positive_integer("n_variables", n_variables)
    rows = settings.n_samples if n_samples is None else _positive_integer("n_samples", n_samples)
    _choice("mechanism", mechanism, get_args(MechanismKind))
    _choice("intervention", intervention, get_args(InterventionKind))
    _choice("graph", graph, get_args(GraphKind))
    k = d + 1 if n_regimes is None else _positive_integer("n_regimes", n_regimes)
    sizes = _regime_sizes(rows, k, regime_weights, observational=observational)
    density = _edge_density(d, edges_per_node, edge_probability, settings)
    shift = _shift_range(settings, separation)
    low, high = _target_counts(targets_per_regime, d)

    streams = as_generator(random_state).spawn(6)
    graph_rng, model_rng, target_rng, intervention_rng, row_rng, shuffle_rng = streams
    adjacency = graphs.random_dag(d, **density, kind=graph, rng=graph_rng)
    names = [f"X{j + 1}" for j in range(d)]
    scm = _random_scm(adjacency, names, mechanism, noise, settings, model_rng)
    targets = _random_targets(d, k, low, high, in_order=n_regimes is None, rng=target_rng)
    regime_scms = [scm]
    for regime, rng in enumerate(intervention_rng.spawn(k - 1), start=1):
        hit = [names[j] for j in np.flatnonzero(targets[regime])]
        regime_scms.append(
            scm.do({name: _draw(scm[name], intervention, settings, shift, rng) for name in hit})
        )

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


# -- drawing ---------------------------------------------------------------------------------------------------


def _random_scm(
    adjacency: npt.NDArray[np.int64],
    names: list[str],
    mechanism: str,
    noise: str,
    preset: Preset,
    rng: np.random.Generator,
) -> SCM:
    variables = {}
    for j, (name, stream) in enumerate(zip(names, rng.spawn(len(names)), strict=True)):
        parents = [names[i] for i in np.flatnonzero(adjacency[:, j])]
        # Drawn even where the range is a point, so that presets share their weights under one seed.
        variance = float(stream.uniform(*preset.noise_variance))
        variables[name] = Variable(
            _random_mechanism(parents, mechanism, preset, stream), centred_noise(noise, variance)
        )
    return SCM(variables)


def _random_mechanism(
    parents: list[str], mechanism: str, preset: Preset, rng: np.random.Generator
) -> LayeredMechanism:
    if mechanism == "nonadditive":
        return NonadditiveMLP.random(parents, rng, preset.weights, preset.n_hidden)
    if mechanism == "nonlinear" and parents:
        return MLP.random(parents, rng, preset.weights, preset.n_hidden)
    weights = preset.weights(rng, (len(parents),)).tolist()
    return Linear(dict(zip(parents, weights, strict=True)))


def _draw(
    variable: Variable, kind: str, preset: Preset, shift: tuple[float, float], rng: np.random.Generator
) -> Intervention:
    """One intervention on one variable. Sign and shift come first: all kinds share them under one seed."""
    value = float((1 - 2 * rng.integers(0, 2)) * rng.uniform(*shift))
    if kind == "atomic":
        return Atomic(value)
    noise: Noise = Gaussian(value, float(np.sqrt(preset.intervention_variance)))
    if kind == "stochastic":
        return Stochastic(noise)
    mechanism = variable.mechanism
    assert isinstance(mechanism, LayeredMechanism)  # every mechanism drawn above is
    return Imperfect(mechanism.redraw_last_layer(rng, preset.weights), noise)


def _random_targets(
    d: int, n_regimes: int, low: int, high: int, *, in_order: bool, rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Targets ``[n_regimes, d]``; every regime has a leading variable, and variables take turns in leading."""
    turns = -(-(n_regimes - 1) // d)
    leaders = np.concatenate([np.arange(d) if in_order else rng.permutation(d) for _ in range(max(turns, 1))])
    targets = np.zeros((n_regimes, d), dtype=np.int64)
    for regime in range(1, n_regimes):
        leader = leaders[regime - 1]
        others = np.delete(np.arange(d), leader)
        count = int(rng.integers(low, high + 1))
        targets[regime, [leader, *rng.choice(others, size=count - 1, replace=False)]] = 1
    return targets


def _pooled_scaling(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    mean, scale = values.mean(axis=0), values.std(axis=0)
    # A dead network can make a column constant; rounding would then leave a meaningless scale near 1e-17.
    constant = np.ptp(values, axis=0) == 0
    return np.where(constant, values[0], mean), np.where(constant, 1.0, scale)


# -- reading arguments -----------------------------------------------------------------------------------------


def _look_up_preset(preset: str | Preset) -> Preset:
    if isinstance(preset, Preset):
        return preset
    _choice("preset", preset, tuple(PRESETS))
    return PRESETS[preset]


def _choice(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name}={value!r} is unknown: choose one of {', '.join(allowed)}")


def _positive_integer(name: str, value: object) -> int:
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name}={value!r} must be an integer of at least 1")
    return int(value)


def _edge_density(
    d: int, edges_per_node: float | None, edge_probability: float | None, preset: Preset
) -> dict[str, float]:
    """Arguments for `graphs.random_dag`: a density that was given, else the preset's."""
    if edges_per_node is not None and edge_probability is not None:
        raise ValueError("give edges_per_node or edge_probability, not both")
    if edge_probability is None and edges_per_node is None:
        if preset.edge_probability is not None:
            return {"edge_probability": preset.edge_probability}
        assert preset.edges_per_node is not None
        return {"edges_per_node": min(preset.edges_per_node, (d - 1) / 2)}
    if edge_probability is not None:
        if not 0 <= edge_probability <= 1:
            raise ValueError(f"edge_probability={edge_probability!r} must lie between 0 and 1")
        return {"edge_probability": float(edge_probability)}
    assert edges_per_node is not None
    if not 0 <= edges_per_node <= (d - 1) / 2:
        raise ValueError(
            f"edges_per_node={edges_per_node!r} is impossible: with {d} variables it lies between 0 and "
            f"{(d - 1) / 2:g}, the complete graph"
        )
    return {"edges_per_node": float(edges_per_node)}


def _shift_range(preset: Preset, separation: float | None) -> tuple[float, float]:
    low, high = preset.shift
    if separation is None:
        return low, high
    if not (np.isfinite(separation) and separation >= 0):
        raise ValueError(f"separation={separation!r} must be a number of standard deviations, at least 0")
    factor = separation * float(np.sqrt(preset.intervention_variance)) / (0.5 * (low + high))
    return low * factor, high * factor


def _target_counts(targets_per_regime: object, d: int) -> tuple[int, int]:
    low, high = (
        targets_per_regime if isinstance(targets_per_regime, tuple | list) else (targets_per_regime,) * 2
    )
    low, high = _positive_integer("targets_per_regime", low), _positive_integer("targets_per_regime", high)
    if not low <= high <= d:
        raise ValueError(
            f"targets_per_regime={targets_per_regime!r} must be one number or (low, high) with "
            f"low <= high <= {d}, the number of variables"
        )
    return low, high


def _regime_sizes(
    n_samples: int, n_regimes: int, regime_weights: object, *, observational: bool
) -> npt.NDArray[np.int64]:
    """Rows of every regime: ``floor(n_samples * weight)``."""
    if regime_weights is None:
        weights = np.ones(n_regimes)
    else:
        weights = np.asarray(regime_weights, dtype=np.float64)
        if weights.shape != (n_regimes,):
            raise ValueError(
                f"regime_weights must have {n_regimes} entries, one a regime with the observational one first, "
                f"got shape {weights.shape}"
            )
        if not (np.isfinite(weights).all() and (weights >= 0).all()):
            raise ValueError("regime_weights must be finite and not negative")
        if not observational and weights[0] > 0:
            raise ValueError("observational=False contradicts regime_weights[0] > 0; set that entry to 0")
    if not observational:
        weights = np.where(np.arange(n_regimes) == 0, 0.0, weights)
    if not weights.sum() > 0:
        raise ValueError("no regime has any rows: with observational=False use n_regimes of at least 2")
    # The small addition keeps exact shares from falling just below an integer.
    sizes = np.floor(n_samples * weights / weights.sum() + 1e-9).astype(np.int64)
    empty = np.flatnonzero((sizes == 0) & (weights > 0))
    if len(empty):
        raise ValueError(
            f"n_samples={n_samples} leaves regime {empty[0]} without rows; "
            f"ask for at least {int(np.ceil(weights.sum() / weights[empty].min()))}"
        )
    return sizes
