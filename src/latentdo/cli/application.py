"""The program that the sub-commands belong to."""

from __future__ import annotations

from cyclopts import App

from latentdo.cli.sources import ConfigurationFile, Environment, check_whole_numbers


def program_version() -> str:
    """Version of the installed package."""
    from importlib.metadata import version

    return version("latentdo")


app = App(
    name="latentdo",
    help=(
        "Find the causal graph, the hidden interventions and their targets in one table.\n\n"
        "Start with `latentdo demo`, or with your own table: `latentdo fit data.csv --out results`.\n\n"
        "Every option can also stand in a file (`--config settings.toml`, with `max_regimes = 8`) or in the "
        "environment (`LATENTDO_MAX_REGIMES=8`). A flag wins over the environment, and the environment over the file."
    ),
    help_format="markdown",
    version=program_version,
    config=(Environment(), ConfigurationFile(), check_whole_numbers),
    result_action="return_value",
    suppress_keyboard_interrupt=False,
)
