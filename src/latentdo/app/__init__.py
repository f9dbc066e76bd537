"""A page in the browser for people who do not program: choose a table, look at the report, take everything home.

``page`` is what Streamlit runs, ``job`` the fit in a process of its own, so that the page answers while it runs and can
stop it. Nothing leaves the machine: the server listens on this computer only, answers only pages that were opened
under this computer's own name, and reports no usage.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

__all__ = ["PAGE", "launch", "serve", "server_arguments", "start"]

PAGE = Path(__file__).with_name("page.py")
"""The script that Streamlit runs."""


_OWN_NAMES: Final = ("localhost", "127.0.0.1", "::1")
"""Of this computer. A page elsewhere whose name was made to point here (DNS rebinding) asks under its own."""


def start(module: str, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    """Start ``python -m module``; neither it nor its children import or read settings from the current folder.

    People start the app where their downloads lie, and there a file may have any name.

    Parameters
    ----------
    module, *arguments : str
        What to run; paths must be absolute.
    **options
        Of :class:`subprocess.Popen`.
    """
    environment = {**os.environ, "PYTHONSAFEPATH": "1", "OMP_WAIT_POLICY": "PASSIVE"}
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.Popen(command, cwd=PAGE.parent, env=environment, **options)


def server_arguments(port: int = 8501, *, browser: bool = True) -> list[str]:
    """What Streamlit is told.

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
        "server.enableCORS": "true",
        "server.enableXsrfProtection": "true",
        "server.enableAgentApi": "false",
        "server.headless": str(not browser).lower(),
        "server.showEmailPrompt": "false",
        "server.maxUploadSize": 2000,
        "server.fileWatcherType": "none",
        "browser.gatherUsageStats": "false",
        "client.toolbarMode": "minimal",
    }
    return [
        "run",
        str(PAGE),
        *(f"--{key}={value}" for key, value in options.items()),
        *(f"--server.allowedHosts={name}" for name in _OWN_NAMES),
    ]


def serve(port: int = 8501, *, browser: bool = True, **options: Any) -> subprocess.Popen[bytes]:
    """Start the server; see :func:`server_arguments` and :func:`start`."""
    return start("streamlit", *server_arguments(port, browser=browser), **options)


def launch(port: int = 8501, *, browser: bool = True) -> int:
    """Serve the page until interrupted; return the server's exit code.

    Raises
    ------
    ImportError
        If Streamlit is not installed.
    """
    if importlib.util.find_spec("streamlit") is None:
        raise ImportError("The app needs Streamlit, which is not installed: pip install 'latentdo[app]'")
    with serve(port, browser=browser) as server:
        # whoever ends this process means the server
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            return server.wait()
        except KeyboardInterrupt:  # the usual end; the terminal has told the server too
            server.terminate()
            server.wait()
            return 0
