"""One self-contained HTML page that says what was found, how sure it is, and where it came from.

No network: the page's own content-security policy forbids everything but its one style sheet and its one script, which
are named by their hashes and hold nothing of the user's. The script only adds comfort; the page says the same without
it. ``content`` gathers the findings, ``mechanisms`` those about each variable, ``rows`` those about rows, ``support``
what a bootstrap adds, ``trials`` what a tuning tried and ``origin`` where it all came from; ``wording`` makes text of
numbers, ``drawings`` the graph as SVG, ``charts`` rows and the course of the fit (both made of ``svg``);
``report.html.j2``, ``report.css`` and ``report.js`` say how it looks and acts.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

import jinja2
import numpy as np
import pandas as pd
from markupsafe import Markup
from numpy.typing import NDArray

from latentdo.bootstrap import BootstrapDAG
from latentdo.checks import abstention
from latentdo.choices import DENSITY
from latentdo.diagnosis import Diagnosis
from latentdo.names import visible
from latentdo.plots import history_curve
from latentdo.plots.bars import is_leveled
from latentdo.report import charts, content, drawings, messages, rows, svg
from latentdo.report.bars import bar_chart
from latentdo.report.mechanisms import mechanisms
from latentdo.report.origin import CITATION, installed_versions
from latentdo.report.support import Support, support_tables
from latentdo.report.trials import trial_table
from latentdo.result import FitResult

__all__ = ["Support", "installed_versions", "render_report"]

_MOST_POINTS = 1200
_MOST_PAIRS = 6


def render_report(
    result: FitResult,
    X: pd.DataFrame | NDArray[np.float64] | None = None,
    *,
    title: str | None = None,
    story: Sequence[str] = (),
    versions: Mapping[str, str] | None = None,
    diagnosis: Diagnosis | Mapping[str, Any] | Sequence[str] | None = None,
    bootstrap: BootstrapDAG | Support | None = None,
    trials: pd.DataFrame | None = None,
) -> str:
    """Render the report of a fit as one HTML page.

    Parameters
    ----------
    result : FitResult
        What was found.
    X : DataFrame or array [n, d], optional
        The rows that were fitted, in the user's units; adds scatter plots of the surest effects, or bars where a
        variable is not continuous.
    title : str
        Heading of the page.
    story : sequence of str
        Paragraphs about these data, at the top of the page.
    versions : mapping from str to str, optional
        Versions that made the result; those of the running process by default.
    diagnosis : Diagnosis, mapping or sequence of sentences, optional
        What these data can and cannot show: the answer of ``diagnose()``, or sentences.
    bootstrap : BootstrapDAG or Support, optional
        What resampled rows say.
    trials : DataFrame, optional
        What a tuning tried: ``TunedDAG.trials_``.

    Returns
    -------
    str
        A complete HTML document.

    Raises
    ------
    ValueError
        If ``X`` does not have the rows and columns that were fitted.
    """
    edges = content.edges(result)
    scatters = [] if X is None else _scatters(result, X, edges)
    numbers = X.index.to_numpy() if isinstance(X, pd.DataFrame) else np.arange(len(result.responsibilities))
    regimes = content.regimes(result)
    graph, graph_width = drawings.graph(result, edges)
    matrix, matrix_width = drawings.matrix(result)
    seconds, evidence = history_curve(result, "evidence")
    times, violation = history_curve(result, "violation")
    style, script = _style(result.n_regimes, graph_width, matrix_width), _file("report.js")
    support = Support.of(bootstrap) if isinstance(bootstrap, BootstrapDAG) else bootstrap
    said = content.sentences(diagnosis.sentences() if isinstance(diagnosis, Diagnosis) else diagnosis)
    segments = content.segments(result)
    anchors = [
        ("graph-title", "Graph"),
        ("regimes-title", "Regimes"),
        *([("time-title", "Timeline")] if segments else []),
        ("rows-title", "Rows"),
        *([("pairs-title", "Pairs")] if scatters else []),
        ("sure-title", "How sure"),
        *([("bootstrap-title", "Bootstrap")] if support else []),
        *([("diagnosis-title", "Limits of the data")] if said else []),
        *([("trials-title", "Trials")] if trials is not None else []),
        ("fit-title", "Fit"),
        ("read-title", "How to read"),
        ("origin-title", "Origin"),
    ]
    page = _template().render(
        title=title or "Causal graph and hidden interventions",
        story=[messages.unbroken(paragraph) for paragraph in story],
        policy=(
            f"default-src 'none'; style-src 'sha256-{_digest(style)}'; script-src 'sha256-{_digest(script)}'; "
            "base-uri 'none'; form-action 'none'"
        ),
        style=Markup(style),  # ours alone: nothing of the user's enters the style sheet or the script
        script=Markup(script),
        parts=anchors,
        result=result,
        density_summary=DENSITY.resolve(result.density, result.solver).summary,
        abstention=[messages.unbroken(sentence) for sentence in abstention(result)],
        headline=[messages.unbroken(sentence) for sentence in content.headline(result, regimes)],
        how_counted=content.how_counted(result, regimes),
        cautions=[messages.unbroken(caution) for caution in content.cautions(result)],
        regimes=regimes,
        edges=edges,
        graph=graph,
        graph_is_wide=graph_width > 1000,
        has_left_out=Markup('class="edge maybe"') in graph,
        mechanisms=mechanisms(result, regimes),
        curve=charts.curve,
        responsibilities=charts.responsibilities(result),
        assignment=rows.assignment(result),
        doubtful_rows=rows.doubtful_rows(result, numbers),
        row_data=rows.row_data(result, numbers),
        rows_are_counted=not isinstance(X, pd.DataFrame)
        or (X.index.name is None and X.index.dtype.kind in "iu"),
        segments=segments,
        timeline=charts.timeline(result) if segments else None,
        bootstrap=None if support is None else support_tables(result, support),
        diagnosis=[(heading, messages.unbroken(sentence)) for heading, sentence in said],
        trials=None if trials is None else trial_table(trials),
        matrix=matrix,
        chart=charts.evidence_chart(seconds, evidence) if len(evidence) > 1 else None,
        violation=charts.violation_chart(times, violation) if len(violation) > 1 else None,
        scatters=scatters,
        ambiguous=result.ambiguous_edges().to_dict("records"),
        comparison=messages.table(result.comparison),
        choice=content.choice(result),
        terms=messages.settings(result.evidence_terms),
        configuration=messages.settings(result.configuration),
        versions=dict(installed_versions() if versions is None else versions),
        citation=CITATION,
        chance=messages.chance,
        percent=messages.percent,
        number=messages.number,
        palette=svg.palette_class,
    )
    # names come in everywhere, in drawings too: what hides or reorders text is made visible in the page as a whole
    return visible(page, keep="\n\t")


def _scatters(
    result: FitResult, X: pd.DataFrame | NDArray[np.float64], edges: list[content.Edge]
) -> list[Markup]:
    columns = list(result.columns)
    values = result.fitted_values(X)
    if result.background is not None and result.background.uses_past() and np.isnan(values).any():
        return []  # nobody knows what to expect of a row after missing cells
    z = result.read(values, result.where).z
    every = np.unique(np.linspace(0, len(z) - 1, min(len(z), _MOST_POINTS)).round().astype(np.int64))
    drawings = []
    for edge in edges[:_MOST_PAIRS]:
        cause, effect = columns.index(edge.cause), columns.index(edge.effect)
        if is_leveled(result, cause, effect):
            drawings.append(bar_chart(result, values, cause, effect))
            continue
        title = f"Scatter plot of {edge.cause} and {edge.effect}, coloured by regime."
        drawings.append(charts.scatter(result, z, cause, effect, every, title))
    return drawings


def _style(n_regimes: int, graph_width: float, matrix_width: float) -> str:
    """The style sheet, with one rule a regime to light up its targets and sizes below which drawings scroll."""
    rules = [
        f"svg.graph{{min-width:{min(graph_width, 0.62 * graph_width + 120):.0f}px}}",
        f"svg.matrix{{min-width:{min(matrix_width, 0.62 * matrix_width + 120):.0f}px}}",
    ]
    for k in range(1, n_regimes):
        colour = f"var(--{svg.palette_class(k).split()[0]})"
        rules.append(
            f"#show-{k}:checked~.explorer .t{k} rect{{fill:{colour};fill-opacity:.3;stroke:{colour};stroke-width:3}}"
            f"#show-{k}:checked~.explorer .t{k}{{opacity:1!important}}"
        )
        rules.append(
            f"#show-{k}:checked~label[for=show-{k}]{{border-color:{colour};box-shadow:inset 0 0 0 1px {colour}}}"
        )
    return "\n" + _file("report.css") + "\n".join(rules) + "\n"


def _file(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_file),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html.j2")
