"""Reading the arguments of `simulate`: defaults from the preset, clear errors for the rest."""

import sys

import numpy as np
import numpy.typing as npt

from latentdo.scm.presets import PRESETS, Preset


def look_up_preset(preset: str | Preset) -> Preset:
    """Preset by name; a `Preset` passes through."""
    if isinstance(preset, Preset):
        return preset
    choice("preset", preset, tuple(PRESETS))
    return PRESETS[preset]


def choice(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """Refuse anything that is not in ``allowed``."""
    if value not in allowed:
        raise ValueError(f"{name}={value!r} is unknown: choose one of {', '.join(allowed)}")


def compatible(preset: Preset, **kinds: str) -> None:
    """Refuse what a preset cannot draw: networks are never scaled to their noise, curves always are."""
    if preset.signal_to_noise is None:
        refused, needed = ("smooth", "multiplicative", "growing"), "such as 'field'"
    else:
        refused, needed = ("nonlinear", "nonadditive", "imperfect"), "such as 'paper'"
    if preset.kinds is not None and (one := set(kinds.values()) & {"multiplicative", "growing"}):
        raise ValueError(
            f"{sorted(one)[0]!r} needs a preset whose columns are all continuous, such as 'field'"
        )
    for name, value in kinds.items():
        if value in refused:
            hint = "; 'soft' interventions keep their mechanism here" if value == "imperfect" else ""
            raise ValueError(f"{name}={value!r} needs another preset, {needed}{hint}")


def probability(name: str, value: object) -> float:
    """Number above 0 and at most 1."""
    number = _number(name, value)
    if not 0 < number <= 1:
        raise ValueError(f"{name}={value!r} must be above 0 and at most 1")
    return number


def positive_integer(name: str, value: object) -> int:
    """Integer of at least one."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name}={value!r} must be an integer of at least 1")
    return int(value)


def _number(name: str, value: object) -> float:
    if not isinstance(value, int | float | np.integer | np.floating) or not np.isfinite(value):
        raise ValueError(f"{name}={value!r} must be a finite number")
    return float(value)


def duration(value: object, group_size: int) -> float:
    """Mean rows of a visit, at least one; groups and visits exclude each other."""
    if group_size > 1:
        raise ValueError(f"group_size={group_size} and mean_duration={value} were both given; choose one")
    number = _number("mean_duration", value)
    if not number >= 1.0:
        raise ValueError(f"mean_duration={value} is a number of rows, at least 1")
    return number


def edge_density(
    d: int, edges_per_node: object, edge_probability: object, preset: Preset
) -> dict[str, float]:
    """Keyword for `graphs.random_dag`: the density that was given, else the preset's."""
    if edges_per_node is not None and edge_probability is not None:
        raise ValueError("give edges_per_node or edge_probability, not both")
    most = (d - 1) / 2
    if edge_probability is not None:
        probability = _number("edge_probability", edge_probability)
        if not 0 <= probability <= 1:
            raise ValueError(f"edge_probability={probability:g} must lie between 0 and 1")
        return {"edge_probability": probability}
    if edges_per_node is not None:
        per_node = _number("edges_per_node", edges_per_node)
        if not 0 <= per_node <= most:
            raise ValueError(
                f"edges_per_node={per_node:g} is impossible: with n_variables={d} it lies between 0 and "
                f"{most:g}, the complete graph"
            )
        return {"edges_per_node": per_node}
    if preset.edge_probability is not None:
        return {"edge_probability": preset.edge_probability}
    assert preset.edges_per_node is not None  # the preset has exactly one of the two
    # Nobody asked for this density, so a graph too small for it is no error.
    return {"edges_per_node": min(preset.edges_per_node, most)}


def shift_range(preset: Preset, separation: object) -> tuple[float, float]:
    """Range of the size of the shift, its midpoint at ``separation`` standard deviations if given."""
    low, high = preset.shift
    if separation is None:
        return low, high
    factor = _number("separation", separation) * np.sqrt(preset.intervention_variance) / (0.5 * (low + high))
    if factor < 0:
        raise ValueError(f"separation={separation!r} is a number of standard deviations, at least 0")
    return float(low * factor), float(high * factor)


def target_counts(targets_per_regime: object, d: int, preset: Preset) -> tuple[int, int]:
    """Smallest and largest number of targets of a regime: those given, else the preset's."""
    if targets_per_regime is None:
        # Nobody asked for this number, so a table too small for it is no error.
        low, high = target_counts(preset.targets_per_regime, sys.maxsize, preset)
        return min(low, d), min(high, d)
    pair = targets_per_regime if isinstance(targets_per_regime, tuple | list) else (targets_per_regime,) * 2
    if len(pair) != 2:
        raise ValueError(
            f"targets_per_regime={targets_per_regime!r} must be one number or a pair (low, high)"
        )
    low, high = (positive_integer("targets_per_regime", value) for value in pair)
    if not low <= high <= d:
        raise ValueError(
            f"targets_per_regime={targets_per_regime!r} must not exceed the {d} variables, "
            "and low must not exceed high"
        )
    return low, high


def default_weights(preset: Preset, n_regimes: int, *, observational: bool) -> npt.NDArray[np.float64] | None:
    """Shares of the regimes where the caller says nothing; None for equal ones."""
    if preset.reference_share is None or n_regimes == 1:
        return None
    others = np.geomspace(3.0, 1.0, n_regimes - 1)
    share = preset.reference_share if observational else 0.0
    return np.array([share, *((1 - share) * others / others.sum())])


def regime_sizes(
    n_samples: int, n_regimes: int, regime_weights: object, *, observational: bool
) -> npt.NDArray[np.int64]:
    """Rows of every regime: ``floor(n_samples * share)``."""
    weights = np.ones(n_regimes)
    if regime_weights is not None:
        weights = np.asarray(regime_weights, dtype=np.float64)
        if weights.shape != (n_regimes,):
            raise ValueError(
                f"regime_weights must have n_regimes={n_regimes} entries, the observational one first, "
                f"got shape {weights.shape}"
            )
        if not (np.isfinite(weights).all() and (weights >= 0).all()):
            raise ValueError(f"regime_weights must be finite and not negative, got {weights.tolist()}")
        if not observational and weights[0] > 0:
            raise ValueError("observational=False contradicts regime_weights[0] > 0; set that entry to 0")
    if not observational:
        weights = np.where(np.arange(n_regimes) == 0, 0.0, weights)
    if not weights.any():
        raise ValueError("no regime would have rows: give a positive weight, or n_regimes of at least 2")
    # The small addition keeps exact shares from falling just below an integer.
    sizes: npt.NDArray[np.int64] = np.floor(n_samples * weights / weights.sum() + 1e-9).astype(np.int64)
    empty = np.flatnonzero((sizes == 0) & (weights > 0))
    if len(empty):
        enough = int(np.ceil(weights.sum() / weights[weights > 0].min() - 1e-9))
        raise ValueError(
            f"n_samples={n_samples} leaves regime {empty[0]} without rows; ask for at least {enough}"
        )
    return sizes
