"""A page in the browser for people who do not program: choose a table, look at the report, take everything home.

``page`` is what Streamlit runs, ``job`` the fit in a process of its own, so that the page answers while it runs and can
stop it. Nothing leaves the machine: the server listens on this computer only, and reports no usage.
"""

from __future__ import annotations

import importlib.util
import signal
import subprocess
import sys
from pathlib import Path

__all__ = ["PAGE", "launch", "server_command"]

PAGE = Path(__file__).with_name("page.py")
"""The script that Streamlit runs."""


def server_command(port: int = 8501, *, browser: bool = True) -> list[str]:
    """The command that serves the page.

    Parameters
    ----------
    port : int
        Where to listen, on this computer only.
    browser : bool
        Open a browser.
    """
    options = {
        "server.port": port,
        "server.address": "localhost",
        "server.headless": str(not browser).lower(),
        "server.showEmailPrompt": "false",
        "server.maxUploadSize": 2000,
        "server.fileWatcherType": "none",
        "browser.gatherUsageStats": "false",
        "client.toolbarMode": "minimal",
    }
    return [
        sys.executable,
        "-m",
        "streamlit",
        "run",
        str(PAGE),
        *(f"--{key}={value}" for key, value in options.items()),
    ]


def launch(port: int = 8501, *, browser: bool = True) -> int:
    """Serve the page until interrupted; return the server's exit code.

    Raises
    ------
    ImportError
        If Streamlit is not installed.
    """
    if importlib.util.find_spec("streamlit") is None:
        raise ImportError("The app needs Streamlit, which is not installed: pip install 'latentdo[app]'")
    with subprocess.Popen(server_command(port, browser=browser)) as server:
        # whoever ends this process means the server
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            return server.wait()
        except KeyboardInterrupt:  # the usual end; the terminal has told the server too
            server.terminate()
            server.wait()
            return 0
