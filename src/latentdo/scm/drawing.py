"""Picture of a structural causal model."""

from typing import TYPE_CHECKING, Any

import networkx as nx

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from latentdo.scm.model import SCM

PLAIN, INTERVENED = "#dfe7f1", "#f6b26b"
NODE_SIZE = 1100


def draw_scm(scm: "SCM", ax: "Axes | None" = None) -> "Axes":
    """Draw ``scm``; see `SCM.draw`.

    Edges that an intervention removed are drawn dotted, so that the picture shows what was cut.
    """
    import matplotlib.pyplot as plt

    reference, current = scm.reference.to_networkx(), scm.to_networkx()
    # Places come from the uncut graph: a variable keeps its place when it is intervened upon.
    places = _layered_places(reference)
    if ax is None:
        width = 2 + 1.4 * max(x for x, _ in places.values())
        height = 1.5 + 2.4 * max(abs(y) for _, y in places.values())
        _, ax = plt.subplots(figsize=(max(width, 3.0), max(height, 2.0)))
    colours = [INTERVENED if name in scm.targets else PLAIN for name in scm.names]
    nx.draw_networkx_nodes(
        reference,
        places,
        nodelist=list(scm.names),
        node_color=colours,
        edgecolors="#333333",
        node_size=NODE_SIZE,
        ax=ax,
    )
    nx.draw_networkx_labels(reference, places, font_size=9, ax=ax)
    for edge in reference.edges:
        kept = current.has_edge(*edge)
        # Edges that skip layers bend around what lies between.
        bend = 0.0 if places[edge[1]][0] - places[edge[0]][0] < 1.5 else 0.3
        nx.draw_networkx_edges(
            reference,
            places,
            edgelist=[edge],
            style="solid" if kept else "dotted",
            edge_color="#333333" if kept else "#999999",
            connectionstyle=f"arc3,rad={bend}",
            node_size=NODE_SIZE,
            ax=ax,
        )
    ax.margins(x=0.15, y=0.3)
    ax.set_axis_off()
    return ax


def _layered_places(graph: Any) -> dict[str, tuple[float, float]]:
    """Causes left of effects; within a layer, variables lie near the mean height of their parents."""
    places: dict[str, tuple[float, float]] = {}
    for layer, names in enumerate(nx.topological_generations(graph)):
        heights = {}
        for name in names:
            above = [places[parent][1] for parent in graph.predecessors(name)]
            heights[name] = sum(above) / max(len(above), 1)
        ordered = sorted(names, key=heights.__getitem__, reverse=True)
        for rank, name in enumerate(ordered):
            places[name] = (float(layer), 0.5 * (len(ordered) - 1) - rank)
    return places
