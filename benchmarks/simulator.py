"""How long the simulator takes: 100 000 rows, 100 variables, 101 regimes.

Run ``python benchmarks/simulator.py``; ``--smoke`` uses a tiny size. Times are wall-clock seconds, best of
three, on one thread.
"""

import argparse
import time
from collections.abc import Callable

from latentdo.scm import simulate


def best_of(repeats: int, function: Callable[[], object]) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="tiny size, to see that it runs")
    smoke = parser.parse_args().smoke
    rows, variables, repeats = (1_000, 5, 1) if smoke else (100_000, 100, 3)

    print(f"{rows} rows x {variables} variables x {variables + 1} regimes")
    print(f"{'mechanism':<12} {'intervention':<12} {'edges a node':>12} {'seconds':>8}")
    for mechanism in ("linear", "nonlinear", "nonadditive"):
        for intervention in ("stochastic", "imperfect"):
            for edges in (1, 2) if smoke else (1, 4):
                seconds = best_of(
                    repeats, lambda m=mechanism, i=intervention, e=edges: simulate(variables, e, m, i, rows)
                )
                print(f"{mechanism:<12} {intervention:<12} {edges:>12} {seconds:>8.2f}")
    data = simulate(variables, 1, n_samples=rows)
    print(f"true log-densities of all rows under all regimes: {best_of(repeats, data.log_density):.2f} s")


if __name__ == "__main__":
    main()
