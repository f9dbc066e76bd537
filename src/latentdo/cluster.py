"""Everything that runs in parallel, on a Dask cluster instead of this machine.

Restarts, resamples, refits and the cells of experiments are all handed to joblib, so that
``joblib.parallel_config(backend="dask")`` is all it takes. :func:`compute_on` adds the connection, and says what is
wrong if there is none.
"""

from __future__ import annotations

import importlib
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import joblib

__all__ = ["compute_on"]

PATIENCE = 10.0
"""Seconds to wait for the scheduler, and for its first worker."""


def _knock(address: str) -> None:
    """See whether anybody listens: a client that cannot connect leaves threads behind that disturb the next one.

    Raises
    ------
    OSError, ValueError
        If nobody does, or the address is none.
    """
    scheme, _, place = address.rpartition("://")
    if scheme not in ("", "tcp", "tls"):
        raise ValueError(f"unknown scheme {scheme!r}")
    host, _, port = place.rpartition(":")
    socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE).close()


@contextmanager
def compute_on(address: str | None) -> Iterator[None]:
    """Within the block, run whatever is parallel (``n_jobs`` of -1, None or more than 1) on a cluster.

    Parameters
    ----------
    address : str, optional
        Where the Dask scheduler listens, for example ``tcp://10.0.0.1:8786``; None for this machine, as always.

    Raises
    ------
    ImportError
        If Dask is not installed.
    ConnectionError
        If no scheduler answers there, or it has no workers.

    Examples
    --------
    >>> with compute_on(None):  # no cluster, nothing changes
    ...     joblib.effective_n_jobs(None)
    1
    """
    if address is None:
        yield
        return
    try:
        distributed = importlib.import_module("distributed")
    except ImportError as error:
        raise ImportError(
            "A Dask cluster needs Dask, which is not installed: pip install 'latentdo[dask]'"
        ) from error
    config = importlib.import_module("dask").config
    scheduler = config.get("scheduler", None)
    try:
        _knock(address)
        client = distributed.Client(address, timeout=PATIENCE)
    except (OSError, ValueError, TypeError) as error:
        config.set(scheduler=scheduler)  # a client that fails to connect leaves itself as everybody's default
        raise ConnectionError(
            f"No Dask scheduler answers at {address!r}; start one with `dask scheduler`, and give the address that it "
            "prints, such as tcp://10.0.0.1:8786."
        ) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError as error:
            raise ConnectionError(
                f"The Dask scheduler at {address!r} has no workers; start some with "
                f"`dask worker {address} --nthreads 1`."
            ) from error
        with joblib.parallel_config(backend="dask", n_jobs=-1):
            yield
