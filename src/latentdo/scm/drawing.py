"""Picture of a structural causal model."""

from typing import TYPE_CHECKING

import networkx as nx

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from latentdo.scm.model import SCM

PLAIN, INTERVENED = "#dfe7f1", "#f6b26b"


def draw_scm(scm: "SCM", ax: "Axes | None" = None) -> "Axes":
    """Draw ``scm``; see `SCM.draw`.

    Edges that an intervention removed are drawn dotted, so that the picture shows what was cut.
    """
    import matplotlib.pyplot as plt

    if ax is None:
        _, ax = plt.subplots(figsize=(1.5 + 1.1 * len(scm) ** 0.75, 1.5 + 0.7 * len(scm) ** 0.75))
    reference, current = scm.reference.to_networkx(), scm.to_networkx()
    # Layers of the uncut graph: a variable keeps its place when it is intervened upon.
    for layer, names in enumerate(nx.topological_generations(reference)):
        for name in names:
            reference.nodes[name]["layer"] = layer
    places = nx.multipartite_layout(reference, subset_key="layer")
    colours = [INTERVENED if name in scm.targets else PLAIN for name in scm.names]
    nx.draw_networkx_nodes(
        reference,
        places,
        nodelist=list(scm.names),
        node_color=colours,
        edgecolors="#333333",
        node_size=1100,
        ax=ax,
    )
    nx.draw_networkx_labels(reference, places, font_size=9, ax=ax)
    cut = [edge for edge in reference.edges if edge not in current.edges]
    arrows = {"node_size": 1100, "connectionstyle": "arc3,rad=0.08", "ax": ax}
    nx.draw_networkx_edges(reference, places, edgelist=list(current.edges), **arrows)
    nx.draw_networkx_edges(reference, places, edgelist=cut, style="dotted", edge_color="#999999", **arrows)
    ax.margins(0.2)
    ax.set_axis_off()
    return ax
