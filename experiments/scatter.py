"""The paper's figure of simulated interventions: nine panels, three mechanisms times three kinds of intervention.

``python -m experiments.scatter`` writes ``docs/images/experiments-scatter.png``; nothing is fitted or stored.
"""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from experiments import runner
from latentdo import plots

IMAGES = Path(__file__).parents[1] / "docs" / "images"
MECHANISMS, INTERVENTIONS = ("linear", "nonlinear", "nonadditive"), ("atomic", "stochastic", "imperfect")


def figure(n_samples: int = 999, seed: int = 3) -> Figure:
    """One row a mechanism, one column a kind of intervention."""
    out = Figure(figsize=(10, 9), layout="constrained")
    panels = out.subplots(len(MECHANISMS), len(INTERVENTIONS))
    for row, mechanism in zip(panels, MECHANISMS, strict=True):
        for ax, intervention in zip(row, INTERVENTIONS, strict=True):
            plots.paper_scatter(mechanism, intervention, ax, n_samples=n_samples, random_state=seed)
            ax.set_title(f"{mechanism}, {intervention}", fontsize=10)
            ax.get_legend().remove()
    out.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return out


def main() -> None:
    options = runner.arguments(__doc__)
    path = (options.store or IMAGES) / "experiments-scatter.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    figure(n_samples=90 if options.smoke else 999).savefig(path, dpi=40 if options.smoke else 90)
    print(f"wrote {path.name}")


if __name__ == "__main__":
    main()
