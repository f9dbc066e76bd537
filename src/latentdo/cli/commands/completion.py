"""``latentdo completion``: the Tab key learns commands and options."""

from __future__ import annotations

import sys
from typing import Literal

from latentdo.cli.application import app
from latentdo.cli.console import say
from latentdo.cli.options import Flag


@app.command
def completion(
    shell: Literal["bash", "zsh", "fish", "powershell"] | None = None, /, *, install: Flag = False
) -> None:
    """Print the script that completes commands and options in a shell.

    For one session: `source <(latentdo completion bash)`. For good: `latentdo completion bash --install`.

    Parameters
    ----------
    shell
        Which shell; the one that runs, by default.
    install
        Write the script where the shell looks for it, and load it from the shell's start file.
    """
    from cyclopts.completion import ShellDetectionError

    try:
        if install:
            say(f"Wrote {app.install_completion(shell=shell)}; open a new shell to use it.")
        else:
            sys.stdout.write(app.generate_completion(shell=shell))
    except ShellDetectionError as error:
        raise ValueError(
            "cannot tell which shell this is; name it: bash, zsh, fish or powershell."
        ) from error
