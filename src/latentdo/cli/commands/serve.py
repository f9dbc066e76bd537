"""``latentdo app``: the page in the browser."""

from __future__ import annotations

from latentdo.cli.application import app
from latentdo.cli.options import ConfigFile


@app.command(name="app")
def serve(
    *,
    port: int = 8501,
    browser: bool = True,
    config: ConfigFile = None,  # noqa: ARG001  (read by latentdo.cli.sources)
) -> None:
    """Open the app in a browser: choose a table, run, look at the report, download everything.

    It serves this computer only and sends nothing anywhere. Ctrl-C ends it.

    Parameters
    ----------
    port
        Port to listen on.
    browser
        Open a browser.
    """
    from latentdo.app import launch

    code = launch(port, browser=browser)
    if code:
        raise ValueError(
            f"the app's server ended with code {code}; if port {port} is taken, choose another with --port."
        )
