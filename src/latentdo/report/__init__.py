"""One self-contained HTML page that says what was found, how sure it is, and where it came from.

No scripts, no network: the page's own content-security policy forbids everything but its one style sheet, which is
named by its hash. ``content`` gathers the facts, ``drawings`` makes SVG of them, ``report.html.j2`` and ``report.css``
say how it looks.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from functools import cache
from importlib import resources

import jinja2
import numpy as np
import pandas as pd
from markupsafe import Markup
from numpy.typing import NDArray

from latentdo.plots import evidence_curve
from latentdo.report import content, drawings
from latentdo.report.content import installed_versions
from latentdo.result import FitResult

__all__ = ["installed_versions", "render_report"]

_MOST_POINTS = 1200
_MOST_PAIRS = 6


def render_report(
    result: FitResult,
    X: pd.DataFrame | NDArray[np.float64] | None = None,
    *,
    title: str = "Causal graph and hidden interventions",
    versions: Mapping[str, str] | None = None,
) -> str:
    """Render the report of a fit as one HTML page.

    Parameters
    ----------
    result : FitResult
        What was found.
    X : DataFrame or array [n, d], optional
        The rows that were fitted, in the user's units; adds scatter plots of the surest effects.
    title : str
        Heading of the page.
    versions : mapping from str to str, optional
        Versions that made the result; those of the running process by default.

    Returns
    -------
    str
        A complete HTML document.

    Raises
    ------
    ValueError
        If ``X`` does not have the rows and columns that were fitted.
    """
    rows, edges = content.regimes(result), content.edges(result)
    graph, graph_width = drawings.graph(result, edges)
    matrix, matrix_width = drawings.matrix(result)
    seconds, evidence = evidence_curve(result)
    style = _style(result.n_regimes, graph_width, matrix_width)
    return _template().render(
        title=title,
        policy=f"default-src 'none'; style-src 'sha256-{_digest(style)}'; base-uri 'none'; form-action 'none'",
        style=Markup(style),  # ours alone: nothing of the user's enters the style sheet
        result=result,
        headline=content.headline(result, rows),
        cautions=content.cautions(result),
        regimes=rows,
        edges=edges,
        graph=graph,
        matrix=matrix,
        chart=drawings.evidence_chart(seconds, evidence) if len(evidence) > 1 else None,
        scatters=[] if X is None else _scatters(result, X, edges),
        ambiguous=result.ambiguous_edges().to_dict("records"),
        comparison=content.table(result.comparison),
        terms=content.settings(result.evidence_terms),
        configuration=content.settings(result.configuration),
        versions=dict(installed_versions() if versions is None else versions),
        citation=content.CITATION,
        chance=content.chance,
        percent=content.percent,
        number=content.number,
        palette=drawings.palette_class,
    )


def _scatters(
    result: FitResult, X: pd.DataFrame | NDArray[np.float64], edges: list[content.Edge]
) -> list[Markup]:
    columns = list(result.columns)
    values = np.asarray(X[columns] if isinstance(X, pd.DataFrame) else X, dtype=np.float64)
    if values.shape != (len(result.responsibilities), len(columns)):
        raise ValueError(
            f"X has shape {values.shape}, but the fit saw {(len(result.responsibilities), len(columns))}; "
            "pass the rows that were fitted."
        )
    z = result.preprocessor.forward(values)
    every = np.unique(np.linspace(0, len(z) - 1, min(len(z), _MOST_POINTS)).round().astype(np.int64))
    return [
        drawings.scatter(
            result,
            z,
            columns.index(edge.cause),
            columns.index(edge.effect),
            every,
            f"Scatter plot of {edge.cause} and {edge.effect}, coloured by regime.",
        )
        for edge in edges[:_MOST_PAIRS]
    ]


def _style(n_regimes: int, graph_width: float, matrix_width: float) -> str:
    """The style sheet, with one rule a regime to light up its targets and sizes below which drawings scroll."""
    rules = [
        f"svg.graph{{min-width:{min(graph_width, 0.62 * graph_width + 120):.0f}px}}",
        f"svg.matrix{{min-width:{min(matrix_width, 0.62 * matrix_width + 120):.0f}px}}",
    ]
    for k in range(1, n_regimes):
        colour = f"var(--{drawings.palette_class(k)})"
        rules.append(
            f"#show-{k}:checked~.canvas .t{k} rect{{fill:{colour};fill-opacity:.3;stroke:{colour};stroke-width:3}}"
        )
        rules.append(
            f"#show-{k}:checked~label[for=show-{k}]{{border-color:{colour};box-shadow:inset 0 0 0 1px {colour}}}"
        )
    return (
        "\n"
        + resources.files(__package__).joinpath("report.css").read_text("utf-8")
        + "\n".join(rules)
        + "\n"
    )


def _digest(style: str) -> str:
    return base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(
            lambda name: resources.files(__package__).joinpath(name).read_text("utf-8")
        ),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html.j2")
