"""One call from a few words to a labelled benchmark data set."""

import copy
from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd

from latentdo import graphs
from latentdo.scm import _arguments
from latentdo.scm._random import RandomState, as_generator
from latentdo.scm.calibration import calibrated_scm
from latentdo.scm.discrete import CONTINUOUS
from latentdo.scm.mixed_models import draw_exposure, mixed_scm
from latentdo.scm.model import SCM
from latentdo.scm.noise import FloatArray
from latentdo.scm.presets import Preset
from latentdo.scm.random_models import random_intervention, random_scm, random_targets
from latentdo.scm.simulation import Simulation
from latentdo.scm.tables import to_frame
from latentdo.scm.violations import DEPENDENT_ROWS, VIOLATIONS, violate, with_copies, with_dependent_rows

MechanismKind = Literal["linear", "nonlinear", "nonadditive", "smooth", "multiplicative"]
InterventionKind = Literal["stochastic", "atomic", "imperfect", "soft"]
GraphKind = Literal["erdos-renyi", "scale-free"]
NoiseScale = Literal["constant", "growing"]


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
    noise_scale: NoiseScale = "constant",
    targets_per_regime: int | tuple[int, int] | None = None,
    n_regimes: int | None = None,
    regime_weights: Sequence[float] | npt.NDArray[np.float64] | None = None,
    observational: bool = True,
    separation: float | None = None,
    penetrance: float = 1.0,
    group_size: int = 1,
    mean_duration: float | None = None,
    violation: str | None = None,
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

    ``released`` is ``paper`` as the authors' published code draws it: weights :math:`\pm` U(0.25, 1.25), shifts
    :math:`\pm` U(4, 8), and noise of standard deviation 0.2 with and without intervention.

    Another preset, ``field``, makes tables as laboratories and sensors do: 8 variables, 1.5 edges per node, 3000
    rows; 40 % of them observational, the rest in 4 regimes of unequal size with one or two targets each. Signal
    and noise of every variable have about the same variance (a ratio from U(0.7, 1.4)). Shifts are 2.5 standard
    deviations that the variable has in observational rows, and an intervened variable keeps the shape and the
    variance of its noise. Columns come in arbitrary units.

    Four more have columns of other kinds, and are otherwise as ``field``; `KindSettings` says how large effects are.

    ==================  ===================  ===================  ==================  =======================
    preset              ``mixed``            ``counts``           ``binary``          ``screen``
    ==================  ===================  ===================  ==================  =======================
    columns             10: 4 continuous,    8 counts with means  8 of 0 and 1        12: 9 counts with means
                        2 binary, 2 counts,  of 0.5 to 50                             of 2 to 30,
                        2 categorical                                                 3 continuous
    density of edges    1.2 a node           1.2 a node           1.2 a node          1.2 a node
    n_samples           5000                 5000                 5000                6000
    n_regimes           5                    5                    5                   7
    targets             1 or 2               1 or 2               2 or 3              1, a count
    intervention        2.5 sd; log-odds     means times or over  log-odds            means over 11
                        :math:`\pm 2.5`;     7.4                  :math:`\pm 4`
                        means times or over
                        7.4
    exposure            none                 log-normal, sd 0.4   none                log-normal, sd 0.5
    ==================  ===================  ===================  ==================  =======================

    The first target of a regime in ``mixed`` is continuous or a count: an intervention on one binary or categorical
    column alone hardly shows in rows without labels.

    Streams of randomness are separate: with one ``random_state``, changing the number of rows leaves graph,
    mechanisms and interventions as they are, and changing the kind of intervention leaves the observational
    rows as they are (before standardisation). Changing the penetrance leaves the rows as they are that respond.

    Parameters
    ----------
    n_variables
        Number of variables ``d``, named ``X1`` ... ``Xd``.
    edges_per_node
        Expected number of edges ``e`` a variable: edge probability ``2 e / (d - 1)`` below a random order.
    mechanism
        ``"linear"``; ``"nonlinear"``: networks with one hidden layer of 5 ReLU units plus noise, where a
        variable without parents is its noise; ``"nonadditive"``: the noise is one more input of the network,
        for variables without parents the only one. Biases are drawn like weights. In ``field``: ``"linear"``;
        ``"smooth"``: a sum of curves, each saturating, wavy or a softplus; ``"multiplicative"``: the effects of
        the parents multiply. With other kinds of columns ``"linear"`` or ``"smooth"``, on the scale of the link:
        binary parents act by being one, counts by ``log(1 + count)``, categories by their level.
    intervention
        ``"stochastic"``: the variable is its intervened noise, :math:`x_j = \tilde\varepsilon_j`;
        ``"atomic"``: it is held at :math:`\pm u`; ``"imperfect"``: the weights of the last layer (of the only
        one, if linear) are drawn afresh, and the noise is replaced by the intervened noise; ``"soft"``: the
        mechanism stays, and :math:`\pm u` is added to the variable. ``field`` has all but ``"imperfect"``. Where a
        column is not continuous, :math:`\pm u` is added to the logarithm of its odds or its mean; of a categorical
        one, the odds of one level drawn afresh are raised.
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
        (the last two skewed), ``"bimodal"`` (two humps). The intervened noise stays Gaussian, as in the paper,
        except in ``field``.
    noise_scale
        ``"constant"``, or, in ``field``, ``"growing"``: the noise of a variable grows with its signal.
    targets_per_regime
        How many variables an intervention hits; a pair ``(low, high)`` draws the number for every regime. By
        default 1; ``(1, 2)`` in ``field``.
    n_regimes
        Number of regimes, the observational one included; 5 in ``field``. By default ``d + 1``, where
        intervention ``k`` hits variable ``k`` (and random others, if there are several targets). Otherwise the
        variables take turns in random order: none leads a second regime before all have led one. Regimes that
        share their targets still differ in their shifts. ``n_regimes=1`` gives purely observational data.
    regime_weights
        Relative sizes of the regimes, ``n_regimes`` of them; equal by default. In ``field`` 40 % of the rows are
        observational, and the largest other regime has three times the rows of the smallest.
    observational
        If False, no row is observational: regime 0 keeps its place but is empty.
    separation
        Size of the shift :math:`u` in standard deviations of the intervened noise; where :math:`u` is drawn
        from a range, the range is scaled so that its midpoint lies there. By default the preset's: 5.4 in
        ``paper``, 2 in ``dcdi``. Atomic interventions use the same :math:`u`. In ``field``, where 2.5 is the
        default, it is counted in standard deviations of the variable in observational rows.
    penetrance
        Probability that a row of an intervened regime responds. Rows that do not respond are observational: 0 in
        ``regimes``; ``assigned`` keeps what they were meant to undergo.
    group_size
        Rows that share a regime, as those of a plate or an animal do: ``groups`` then says which. The last group of a
        regime may be smaller. Groups respond as a whole; with full penetrance the rows are those of ``group_size=1``.
    mean_duration
        Rows are one series: regimes take turns, and a visit lasts this many rows on average (geometric). ``groups`` are
        the visits, in order.
    violation
        One way in which real tables break the model: ``"rounding"``, ``"detection-limit"``, ``"zeros"``,
        ``"common-factor"``, ``"measurement-error"``, ``"dependent-rows"``, ``"copies"`` or ``"log-normal"``; see
        `latentdo.scm.violations`.
    standardize
        Subtract the mean and divide by the standard deviation of every column over all rows; so do all
        presets but ``field``, where every column has a location and a scale of its own unless ``standardize``
        is given. A column without any variation is only centred; one that is not continuous stays as it is.
    shuffle
        Put the rows into random order; otherwise they are sorted by regime.

    Returns
    -------
    Simulation
        ``X``, ``regimes``, ``groups``, ``targets``, ``adjacency``, ``kinds``, the models, and the scaling.

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
        ("noise_scale", noise_scale, NoiseScale),
    ):
        _arguments.choice(name, value, get_args(kinds))
    _arguments.compatible(settings, mechanism=mechanism, intervention=intervention, noise_scale=noise_scale)
    if violation is not None:
        _arguments.choice("violation", violation, VIOLATIONS)
    responding = _arguments.probability("penetrance", penetrance)
    together = _arguments.positive_integer("group_size", group_size)
    visit = None if mean_duration is None else _arguments.duration(mean_duration, together)
    d = _arguments.positive_integer(
        "n_variables", settings.n_variables if n_variables is None else n_variables
    )
    rows = _arguments.positive_integer("n_samples", settings.n_samples if n_samples is None else n_samples)
    in_order = n_regimes is None and settings.n_regimes is None
    default_regimes = d + 1 if settings.n_regimes is None else settings.n_regimes
    k = _arguments.positive_integer("n_regimes", default_regimes if n_regimes is None else n_regimes)
    if regime_weights is None:
        regime_weights = _arguments.default_weights(settings, k, observational=observational)
    sizes = _arguments.regime_sizes(rows, k, regime_weights, observational=observational)
    density = _arguments.edge_density(d, edges_per_node, edge_probability, settings)
    shift = _arguments.shift_range(settings, separation)
    counts = _arguments.target_counts(targets_per_regime, d, settings)

    streams = as_generator(random_state).spawn(6)
    graph_rng, model_rng, target_rng, intervention_rng, row_rng, shuffle_rng = streams
    # Later additions hang below the last stream: a generator that was handed in moves on as it always did.
    response_rng, unit_rng, violation_rng, visit_rng, exposure_rng = shuffle_rng.spawn(5)
    names = [f"X{j + 1}" for j in range(d)]
    adjacency = graphs.random_dag(d, **density, kind=graph, rng=graph_rng)
    units = np.ones(d)
    if settings.kinds is not None:
        scm, units = mixed_scm(adjacency, names, mechanism, noise, settings, model_rng)
    elif settings.signal_to_noise is None:
        scm = random_scm(adjacency, names, mechanism, noise, settings, model_rng)
    else:
        scm, units = calibrated_scm(adjacency, names, mechanism, noise, noise_scale, settings, model_rng)
    if violation == DEPENDENT_ROWS:
        scm = with_dependent_rows(scm)
    column_kinds = np.array(list(scm.kinds.values()))
    continuous = column_kinds == CONTINUOUS
    leading = None if settings.kinds is None else np.isin(column_kinds, settings.kinds.leading)
    targets = random_targets(d, k, counts, in_order=in_order, rng=target_rng, leading=leading)
    regime_scms = [scm]
    for hits, rng in zip(targets[1:], intervention_rng.spawn(k - 1), strict=True):
        hit = np.flatnonzero(hits)
        draws = {
            names[j]: random_intervention(
                scm[names[j]], intervention, settings, shift, stream, float(units[j])
            )
            for j, stream in zip(hit, rng.spawn(len(hit)), strict=True)
        }
        regime_scms.append(scm.do(draws))

    assigned = np.repeat(np.arange(k), sizes)
    groups = _groups(sizes, together) if visit is None else _visits(sizes, visit, visit_rng)
    regimes = np.where(response_rng.random(len(assigned))[groups] < responding, assigned, 0)
    exposure = draw_exposure(settings.kinds, len(assigned), exposure_rng)
    values = np.concatenate(
        [
            _rows(
                scm,
                regime_scm,
                regimes[assigned == regime] == regime,
                rng,
                None if exposure is None else exposure[assigned == regime],
            )
            for regime, (regime_scm, rng) in enumerate(zip(regime_scms, row_rng.spawn(k), strict=True))
        ]
    )
    if shuffle:
        permutation = shuffle_rng.permutation(len(values))
        if visit is not None:  # visits change places, rows of a visit do not
            permutation = np.argsort(visit_rng.permutation(groups.max() + 1)[groups], kind="stable")
        values, regimes, assigned = values[permutation], regimes[permutation], assigned[permutation]
        exposure = None if exposure is None else exposure[permutation]
        groups = pd.factorize(groups[permutation])[0].astype(np.int64)  # numbers must not tell regimes
    mean, scale = np.zeros(d), np.ones(d)
    if standardize or (standardize is None and not settings.arbitrary_units):
        mean, scale = _pooled_scaling(values)
    elif standardize is None:
        mean, scale = _arbitrary_units(d, unit_rng)
    mean, scale = np.where(continuous, mean, 0.0), np.where(continuous, scale, 1.0)
    if standardize is not False:
        values = (values - mean) / scale
    X = to_frame(values, scm.variables)
    if violation is not None:
        X = violate(X, violation, violation_rng, scm.kinds)
    return Simulation(
        X=X,
        regimes=regimes,
        targets=pd.DataFrame(targets, columns=names).reindex(columns=X.columns, fill_value=0),
        adjacency=with_copies(pd.DataFrame(adjacency, index=names, columns=names), X.columns),
        scm=scm,
        regime_scms=tuple(regime_scms),
        mean=pd.Series(mean, index=names),
        scale=pd.Series(scale, index=names),
        assigned=assigned,
        groups=groups,
        violation=violation,
        exposure=None if exposure is None else pd.Series(exposure, name="exposure"),
    )


def _groups(sizes: npt.NDArray[np.int64], group_size: int) -> npt.NDArray[np.int64]:
    """Group of every row, numbered through all regimes, whose rows come one after another."""
    first, groups = 0, []
    for size in sizes.tolist():
        groups.append(first + np.arange(size) // group_size)
        first += -(-size // group_size)
    return np.concatenate(groups)


def _visits(sizes: npt.NDArray[np.int64], mean: float, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Visit of every row, numbered through all regimes, whose rows come one after another; geometric lengths."""
    starts = rng.random(int(sizes.sum())) < 1.0 / mean
    starts[(np.cumsum(sizes) - sizes)[sizes > 0]] = True
    return np.cumsum(starts) - 1


def _rows(
    scm: SCM,
    intervened: SCM,
    responded: npt.NDArray[np.bool_],
    rng: np.random.Generator,
    exposure: FloatArray | None,
) -> FloatArray:
    """Rows of one regime; those that did not respond have the noise they would have had, and no intervention."""
    n = len(responded)
    plain = None if responded.all() else scm.sample_array(n, copy.deepcopy(rng), exposure=exposure)
    values = intervened.sample_array(n, rng, exposure=exposure)
    return values if plain is None else np.where(responded[:, None], values, plain)


def _arbitrary_units(d: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Mean and scale by which columns get a standard deviation between 0.01 and 1000 and a location of that order."""
    size = 10.0 ** rng.uniform(-2.0, 3.0, size=d)
    location = rng.uniform(-5.0, 5.0, size=d)  # in standard deviations
    return -location, 1.0 / size


def _pooled_scaling(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    mean, scale = values.mean(axis=0), values.std(axis=0)
    # A dead network can make a column constant; rounding would then leave a meaningless scale near 1e-17.
    constant = np.ptp(values, axis=0) == 0
    return np.where(constant, values[0], mean), np.where(constant, 1.0, scale)
