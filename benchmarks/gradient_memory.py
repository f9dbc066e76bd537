"""Peak memory of training against the number of variables, batch 128 (the figure of the paper's appendix C).

Every size runs in a process of its own; what is printed is the peak of that process less its size after importing
torch. The last lines repeat one size with many more rows: at a fixed batch, memory should grow by the table itself and
no more.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys


def measure(density: str, n_variables: int, n_rows: int, batch: int) -> None:
    """Train a few steps and print the growth of the peak, in megabytes."""
    import torch

    from latentdo.model.variational.mixture import Architecture, LatentMixture, Priors

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    torch.manual_seed(0)
    x = torch.randn(n_rows, n_variables)
    model = LatentMixture(Architecture(density, True, n_variables, 12))
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(3):
        rows = torch.randint(n_rows, (batch,))
        labels = torch.randint(0, 12, (batch,))
        candidates = torch.nn.functional.one_hot(labels, 12).bool()
        if model.density.is_cheap_in_regimes:
            candidates = None
        optimiser.zero_grad()
        evidence = model.exact_evidence(x[rows], labels, Priors(), n_rows, candidates=candidates)
        (-evidence.total / n_rows).backward()
        optimiser.step()
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"{density:10} d={n_variables:3} n={n_rows:8} batch={batch}: {(after - before) / 1024:8.1f} MB",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--one", nargs=4, metavar=("DENSITY", "VARIABLES", "ROWS", "BATCH"))
    parser.add_argument("--sizes", type=int, nargs="*", default=[5, 10, 20, 40, 80])
    arguments = parser.parse_args()
    if arguments.one:
        density, *numbers = arguments.one
        measure(density, *(int(number) for number in numbers))
        return
    cases = [(density, d, 10_000) for density in ("linear", "nonlinear", "flow") for d in arguments.sizes]
    cases += [("nonlinear", min(arguments.sizes), rows) for rows in (1_000, 1_000_000)]
    for density, d, rows in cases:
        command = [sys.executable, __file__, "--one", density, str(d), str(rows), "128"]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
