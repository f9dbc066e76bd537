r"""A service over time: metrics that remember, follow the hour of the day, and break now and then.

Every metric is a linear function of its causes in the same minute, plus a daily curve, plus noise that remembers,

.. math::
    x_{j,t} = b_j^\top x_{pa(j),t} + c_j(t) + n_{j,t} + \delta_{j,t}, \qquad
    n_{j,t} = \varphi n_{j,t-1} + e_{j,t},

and an incident lifts :math:`\delta_{j,t}` of its root cause for as long as it lasts. What depends on it follows.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.signal import lfilter

from latentdo import graphs
from latentdo.scm._arguments import positive_integer
from latentdo.scm._random import RandomState, as_generator
from latentdo.scm.noise import FloatArray, centred_noise

_DAY = 1440
_WARM_UP = 500
_QUIET = 30  # minutes between two incidents, at least


@dataclass(frozen=True, eq=False)
class Service:
    """Metrics of a service, and the truth about them.

    Attributes
    ----------
    X : DataFrame [n, d]
        One row a minute; its index is the time.
    regimes : ndarray of int [n]
        0 in quiet minutes, else the number of the cause of the incident.
    targets : DataFrame [n_causes + 1, d]
        0/1: the root cause of every kind of incident; row 0 is zero.
    adjacency : DataFrame [d, d]
        0/1; row causes column, in the same minute.
    incidents : DataFrame
        Start, end (the last minute), regime and cause of every incident, in order.
    """

    X: pd.DataFrame
    regimes: npt.NDArray[np.int64]
    targets: pd.DataFrame
    adjacency: pd.DataFrame
    incidents: pd.DataFrame

    @property
    def time(self) -> pd.DatetimeIndex:
        """When each row was measured."""
        return pd.DatetimeIndex(self.X.index)


def simulate_service(
    n_metrics: int = 15,
    n_minutes: int = 14 * _DAY,
    n_incidents: int = 12,
    n_causes: int = 6,
    random_state: RandomState = 0,
    *,
    duration: tuple[int, int] = (20, 60),
    size: float = 5.0,
    memory: float = 0.9,
    season: float = 1.0,
    noise: str = "student",
    edges_per_node: float = 1.2,
    start: str = "2024-03-04",
) -> Service:
    """Draw a random service and its incidents.

    Parameters
    ----------
    n_metrics, n_minutes
        Columns and rows.
    n_incidents, n_causes
        Number of incidents, and of root causes among which they are evenly divided; 0 incidents for a quiet time.
    random_state
        Seed or generator.
    duration
        Fewest and most minutes of an incident.
    size
        How far an incident lifts its root cause, in standard deviations of that metric's own noise.
    memory
        Correlation of the noise with that of the minute before, from 0 to below 1.
    season
        Amplitude of the daily curves, in standard deviations of the noise; every metric has its own, of about this
        size.
    noise
        Family of what is new in the noise of a minute, as for `simulate`.
    edges_per_node
        Expected number of causes of a metric.
    start
        Date of the first row.

    Returns
    -------
    Service
        Metrics, and the truth.

    Examples
    --------
    >>> service = simulate_service(n_metrics=4, n_minutes=2000, n_incidents=3, n_causes=2, random_state=1)
    >>> service.X.shape, len(service.incidents)
    ((2000, 4), 3)
    """
    d, n = positive_integer("n_metrics", n_metrics), positive_integer("n_minutes", n_minutes)
    if not 0.0 <= memory < 1.0:
        raise ValueError(f"memory={memory!r} must be at least 0 and below 1")
    if not n_incidents >= 0 or not 1 <= n_causes <= d:
        raise ValueError(
            f"n_incidents={n_incidents!r} must not be negative, and n_causes={n_causes!r} lie between 1 and {d}"
        )
    shortest, longest = duration
    if not 1 <= shortest <= longest:
        raise ValueError(f"duration={duration!r} must be the fewest and the most minutes of an incident")
    if n_incidents * (longest + _QUIET) > n - _QUIET:
        raise ValueError(f"{n_incidents} incidents of up to {longest} minutes do not fit into {n} minutes")
    graph_rng, weight_rng, noise_rng, season_rng, incident_rng, unit_rng = as_generator(random_state).spawn(6)
    names = [f"m{j + 1:02d}" for j in range(d)]
    adjacency = graphs.random_dag(d, edges_per_node=edges_per_node, rng=graph_rng)
    weights = adjacency * weight_rng.uniform(0.4, 1.0, (d, d)) * weight_rng.choice([-1.0, 1.0], (d, d))
    family = centred_noise(noise, 1.0 - memory**2)
    fresh = np.column_stack([family.sample(rng, n + _WARM_UP) for rng in noise_rng.spawn(d)])
    own = lfilter([1.0], [1.0, -memory], fresh, axis=0)[_WARM_UP:] + season * _days(n, d, season_rng)
    incidents, regimes, causes = _incidents(n, n_incidents, n_causes, d, duration, incident_rng)
    for begin, end, k in incidents:
        own[begin:end, causes[k]] += size
    values = np.zeros((n, d))
    for j in graphs.topological_order(adjacency):
        values[:, j] = own[:, j] + values @ weights[:, j]
    values = 10.0 ** unit_rng.uniform(-1.0, 3.0, d) * (values + unit_rng.uniform(5.0, 20.0, d))
    time = pd.date_range(start, periods=n, freq="min", tz="UTC", name="time")
    targets = np.zeros((n_causes + 1, d), dtype=np.int64)
    targets[np.arange(1, n_causes + 1), causes] = 1
    return Service(
        X=pd.DataFrame(values, columns=names, index=time),
        regimes=regimes,
        targets=pd.DataFrame(targets, columns=names),
        adjacency=pd.DataFrame(adjacency, index=names, columns=names),
        incidents=pd.DataFrame(
            [
                {"start": time[a], "end": time[b - 1], "regime": k + 1, "cause": names[causes[k]]}
                for a, b, k in incidents
            ],
            columns=["start", "end", "regime", "cause"],
        ),
    )


def _days(n: int, d: int, rng: np.random.Generator) -> FloatArray:
    """Daily curves of two harmonics, ``[n, d]``."""
    phase = 2.0 * np.pi * np.arange(n)[:, None] / _DAY
    first, second = rng.uniform(0.0, 2.0 * np.pi, (2, d))
    amplitude = rng.uniform(0.5, 1.5, d)
    return np.asarray(amplitude * (np.sin(phase + first) + 0.4 * np.sin(2.0 * phase + second)))


def _incidents(
    n: int, count: int, n_causes: int, d: int, duration: tuple[int, int], rng: np.random.Generator
) -> tuple[list[tuple[int, int, int]], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Incidents ``(begin, end, cause)`` in order, the regime of every row, and the metrics that causes hit."""
    causes = rng.permutation(d)[:n_causes]
    lengths = rng.integers(duration[0], duration[1] + 1, count)
    # what is left over is spread at random before, between and after them
    spare = n - int(lengths.sum()) - _QUIET * (count + 1)
    breaks = (
        np.diff(np.sort(rng.integers(0, spare + 1, count)), prepend=0) if count else np.empty(0, dtype=int)
    )
    which = rng.permutation(np.arange(count) % n_causes)
    regimes = np.zeros(n, dtype=np.int64)
    found, at = [], 0
    for gap, length, k in zip(breaks.tolist(), lengths.tolist(), which.tolist(), strict=True):
        begin = at + _QUIET + gap
        at = begin + length
        regimes[begin:at] = k + 1
        found.append((begin, at, k))
    return found, regimes, causes
