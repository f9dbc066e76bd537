"""The published algorithm on the published linear data: Table 1, stochastic interventions, e = 1, all four columns.

``python experiments/paper_linear.py --graphs 10`` prints Hamming distances beside the paper's. ``--fractions`` runs the
semi-supervised curve of appendix G instead. ``--smoke`` does one tiny fit, for continuous integration.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from latentdo.data import Dataset
from latentdo.scm import simulate
from latentdo.solvers.gradient import GradientConfiguration, solve

PUBLISHED = {"latent": (5.9, 6.2), "unknown": (3.4, 3.2), "known": (0.5, 1.3), "observational": (10.3, 7.8)}


def fit(variant, seed, configuration, *, fraction=None, **options):
    """Hamming distance and seconds of one fit."""
    s = simulate(random_state=seed, **options)
    known = {}
    if variant in ("unknown", "known"):
        known["regimes"] = s.regimes
    if variant == "known":
        known["targets"] = s.targets
    if fraction is not None:
        shown = np.random.default_rng(seed).random(len(s.regimes)) < fraction
        known["regimes"] = [int(k) if yes else None for k, yes in zip(s.regimes, shown, strict=True)]
    started = time.perf_counter()
    result = solve(Dataset.from_table(s.X, **known), configuration)
    distance = int((result.model.topology.adjacency != s.adjacency.to_numpy()).sum())
    return distance, time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--graphs", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--variants", nargs="*", default=list(PUBLISHED))
    parser.add_argument("--fractions", action="store_true", help="the semi-supervised curve of appendix G")
    parser.add_argument("--solver", choices=["paper", "gradient"], default="paper")
    parser.add_argument("--smoke", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    make = GradientConfiguration.paper if arguments.solver == "paper" else GradientConfiguration
    changes = {}
    options = {"edges_per_node": 1}
    if arguments.smoke:
        changes = {"first_steps": 20, "steps": 5, "max_subproblems": 3, "embedding_size": 8, "width": 8}
        options |= {"n_variables": 4, "n_samples": 300}
        arguments.graphs = 1
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.graphs)
    runs = [(name, None) for name in arguments.variants]
    if arguments.fractions:
        runs = [("semi-supervised", f) for f in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)]
    for variant, fraction in runs:
        regimes = 1 if variant == "observational" else 12
        configuration = make(max_regimes=regimes, **changes)
        fits = [fit(variant, seed, configuration, fraction=fraction, **options) for seed in seeds]
        distances = np.array([distance for distance, _ in fits], dtype=float)
        line = {
            "solver": arguments.solver,
            "variant": variant if fraction is None else f"{variant} {fraction:.1f}",
            "distances": distances.astype(int).tolist(),
            "mean": distances.mean(),
            "standard_error": distances.std(ddof=1) / np.sqrt(len(distances)) if len(distances) > 1 else None,
            "seconds": np.mean([seconds for _, seconds in fits]),
        }
        if variant in PUBLISHED and not arguments.smoke:
            mean, deviation = PUBLISHED[variant]
            line |= {"published": mean, "published_standard_error": deviation / np.sqrt(10)}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
