"""Draw the pictures of README and documentation from a real fit: ``python docs/make_images.py``."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from latentdo import LatentInterventionDAG, plots, simulate

IMAGES = Path(__file__).parent / "images"


def overview() -> Figure:
    """One table in; graph, regimes and targets out."""
    data = simulate(n_variables=4, edges_per_node=1, n_samples=2000, random_state=5)
    X = data.X.rename(columns=dict(zip(data.X.columns, "ABCD", strict=True)))
    result = LatentInterventionDAG(max_regimes=8, random_state=0).fit(X).result_
    cause, effect = next(iter(result.to_networkx().edges))
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    before, after, graph = figure.subplots(1, 3, width_ratios=[1, 1.42, 0.9])
    before.scatter(X[cause], X[effect], s=6, color=plots.REFERENCE_COLOUR, alpha=0.5, linewidths=0)
    before.set_xlabel(cause)
    before.set_ylabel(effect)
    before.set_title("What you have: rows without labels", fontsize=11)
    plots.pair(result, X, cause, effect, after, max_rows=2000)
    after.set_title("Found: who was intervened upon", fontsize=11)
    plots.graph(result, graph, regime=result.regime_names[1])
    graph.set_title("Found: the causal graph", fontsize=11)
    return figure


def main() -> None:
    """Write every picture; the same versions give the same bytes."""
    IMAGES.mkdir(exist_ok=True)
    overview().savefig(IMAGES / "overview.png", dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    main()
