"""Time of whole gradient fits: 10 variables, 10 000 rows, one edge a node, true regimes and unknown targets.

``python -m benchmarks.gradient_fit`` prints wall and processor seconds of every family, and the processor seconds of
one 4096 x 4096 float32 product in the same process. Processor time is what can be compared on a shared machine; the
goals (linear 20 s, nonlinear 2 min, flow 4 min) are wall time on two quiet cores.
"""

from __future__ import annotations

import argparse
import time
import warnings

import torch
from sklearn.exceptions import ConvergenceWarning

from latentdo import LatentInterventionDAG, metrics, simulate

MECHANISMS = {"linear": "linear", "nonlinear": "nonlinear", "flow": "nonadditive"}
GOAL = {"linear": 20, "nonlinear": 120, "flow": 240}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--densities", default="linear,nonlinear,flow")
    parser.add_argument("--interventions", default="stochastic,imperfect")
    parser.add_argument("--latent", action="store_true", help="without labels")
    parser.add_argument("--seed", type=int, default=1200)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--variables", type=int, default=10)
    parser.add_argument("--n-init", type=int, default=4)
    arguments = parser.parse_args()
    before = torch.get_num_threads()
    torch.set_num_threads(arguments.threads)
    a = torch.randn(4096, 4096, generator=torch.Generator().manual_seed(0))
    a @ a
    began = time.process_time()
    a @ a
    print(f"one product: {time.process_time() - began:.2f} processor seconds, {arguments.threads} threads")
    print(f"{'fit':34} {'wall s':>8} {'processor s':>12} {'goal s':>7} {'Hamming':>8}")
    for density in arguments.densities.split(","):
        for intervention in arguments.interventions.split(","):
            measure(arguments, density, intervention)
    torch.set_num_threads(before)


def measure(arguments: argparse.Namespace, density: str, intervention: str) -> None:
    """Fit once and print one line."""
    data = simulate(
        arguments.variables,
        1,
        MECHANISMS[density],
        intervention,
        arguments.rows,
        "paper",
        random_state=arguments.seed,
    )
    kind = "imperfect" if intervention == "imperfect" else "perfect"
    model = LatentInterventionDAG(
        density=density, intervention=kind, solver="gradient", n_init=arguments.n_init
    )
    wall, processor = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(data.X, regimes=None if arguments.latent else data.regimes)
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    distance = metrics.hamming_distance(data.adjacency, model.adjacency_)
    name = f"{density}, {intervention}, {'latent' if arguments.latent else 'unknown'}"
    print(f"{name:34} {wall:8.1f} {processor:12.1f} {GOAL[density]:7d} {distance:8d}", flush=True)


if __name__ == "__main__":
    main()
