"""Randomness is an argument: how seeds become generators, and why streams are spawned."""

import numpy as np

RandomState = int | np.random.Generator | None
"""What every function that draws accepts: an integer seed, a generator, or ``None`` for fresh entropy."""


def as_generator(random_state: object) -> np.random.Generator:
    """Turn a seed into a numpy generator; a generator passes through untouched.

    Streams for independent purposes are then taken with ``generator.spawn(k)``, never by drawing from one
    stream in turn: so asking for more rows does not change the graph, and intervening on one variable does
    not change the noise of the others.
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    if random_state is None:
        return np.random.default_rng()
    if (
        isinstance(random_state, int | np.integer)
        and not isinstance(random_state, bool)
        and random_state >= 0
    ):
        return np.random.default_rng(int(random_state))
    raise ValueError(
        f"random_state={random_state!r} is not usable: give a non-negative integer, "
        "a numpy.random.Generator, or None"
    )
