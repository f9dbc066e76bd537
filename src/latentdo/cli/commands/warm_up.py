"""``latentdo warm-up``: compile now what the first fit would compile."""

from __future__ import annotations

from latentdo.cli.application import app
from latentdo.cli.console import say


@app.command
def warm_up() -> None:
    """Compile what the first fit would compile: one to two minutes, once per installation or upgrade.

    Useful at the end of an installation, or in the recipe of a container. Fits need no warm-up: without it, the first
    one compiles what it needs.
    """
    from latentdo.warm_up import warm_up as compile_all

    say("Compiling; one to two minutes ...")
    found = compile_all()
    if found.folder is None:
        raise ValueError(
            "compiled code cannot be kept: neither the folder of the package nor the user's home can be written. Set "
            "NUMBA_CACHE_DIR to a folder that can."
        )
    say(f"Done in {found.seconds:.0f} s. First fits now start at once.")
