"""Snapshots of a web service with hidden incidents: a table whose columns mean something, and whose truth is known."""

from collections.abc import Mapping
from typing import Final

import numpy as np
import pandas as pd

from latentdo.scm._arguments import positive_integer
from latentdo.scm._random import RandomState, as_generator
from latentdo.scm.interventions import Imperfect
from latentdo.scm.mechanisms import Linear
from latentdo.scm.model import SCM
from latentdo.scm.noise import Gaussian
from latentdo.scm.simulation import Simulation

INCIDENTS: Final[Mapping[str, str]] = {
    "cold cache": "cache_misses",
    "busy neighbour": "disk_wait",
    "bad deployment": "cpu",
}
"""What happens now and then, and the metric that it changes; regimes 1 to 3 of :func:`simulate_snapshots`."""

_SHARE = 0.07  # of the rows, in every kind of incident


def simulate_snapshots(n_rows: int = 2000, random_state: RandomState = 0) -> Simulation:
    """Draw rows of a service: each is one machine in one minute, far enough apart to be independent.

    Requests make cache misses, these make queries, and queries make the disk wait; requests cost processor time; disk
    and processor make latency. In one row of five or so something is wrong: the cache is cold, a neighbour keeps the
    disk busy, or a deployment costs processor time. Each changes the mechanism of one metric.

    Parameters
    ----------
    n_rows
        Number of rows.
    random_state
        Seed or generator.

    Examples
    --------
    >>> data = simulate_snapshots(500, random_state=1)
    >>> data.X.shape, data.n_regimes, int(data.adjacency.to_numpy().sum())
    ((500, 6), 4, 6)
    """
    n = positive_integer("n_rows", n_rows)
    scm = SCM(
        {
            "requests": Gaussian(120.0, 25.0),
            "cache_misses": (Linear({"requests": 0.1}), Gaussian(60.0, 2.0)),
            "queries": (Linear({"cache_misses": 3.0}), Gaussian(40.0, 6.0)),
            "disk_wait": (Linear({"queries": 0.15}), Gaussian(10.0, 1.5)),
            "cpu": (Linear({"requests": 0.3}), Gaussian(15.0, 4.0)),
            "latency": (Linear({"disk_wait": 2.5, "cpu": 0.8}), Gaussian(20.0, 5.0)),
        }
    )
    broken = (
        scm,
        scm.do(cache_misses=Imperfect(noise=Gaussian(74.0, 3.0))),
        scm.do(disk_wait=Imperfect(noise=Gaussian(21.0, 3.0))),
        scm.do(cpu=Imperfect(noise=Gaussian(37.0, 6.0))),
    )
    which, rows = as_generator(random_state).spawn(2)
    shares = [1.0 - _SHARE * len(INCIDENTS), *[_SHARE] * len(INCIDENTS)]
    regimes = which.choice(len(broken), n, p=shares)
    X = pd.DataFrame(0.0, index=range(n), columns=list(scm.names))
    for k, world in enumerate(broken):
        members = np.flatnonzero(regimes == k)
        if members.size:
            X.iloc[members] = world.sample(members.size, random_state=rows).to_numpy()
    targets = np.zeros((len(broken), len(scm)), dtype=np.int64)
    for k, name in enumerate(INCIDENTS.values(), start=1):
        targets[k, scm.names.index(name)] = 1
    return Simulation(
        X=X,
        regimes=regimes,
        targets=pd.DataFrame(targets, columns=list(scm.names)),
        adjacency=scm.adjacency,
        scm=scm,
        regime_scms=broken,
        mean=pd.Series(0.0, index=list(scm.names)),
        scale=pd.Series(1.0, index=list(scm.names)),
        assigned=regimes,
        groups=np.arange(n),
    )
