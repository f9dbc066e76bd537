"""Picture of a structural causal model."""

from typing import TYPE_CHECKING

import networkx as nx

from latentdo.graphs.layout import layered_layout

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
    # The layout has causes above effects, the picture has them on the left.
    layout = layered_layout(scm.reference.adjacency)
    places = {name: (y, -x) for name, (x, y) in zip(scm.names, layout.positions.tolist(), strict=True)}
    if ax is None:
        _, ax = plt.subplots(figsize=(max(2 + layout.height / 85, 3.0), max(1.5 + layout.width / 85, 2.0)))
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
    for (i, j), route in layout.routes.items():
        edge = (scm.names[i], scm.names[j])
        kept = current.has_edge(*edge)
        # Edges that skip layers bend around what lies between.
        bend = 0.3 if len(route) > 2 else 0.0
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
