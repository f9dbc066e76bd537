"""Options from elsewhere than flags: the environment, and a file that ``--config`` names.

Cyclopts asks the sources in their order and keeps the first answer, so flags win over the environment, and the
environment over the file. A name that no command has is never passed over in silence.
"""

from __future__ import annotations

import csv
import difflib
import io
import os
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cyclopts.config import Dict, Env

from latentdo.cli.console import warn
from latentdo.cli.faults import SHOW_TRACEBACK

if TYPE_CHECKING:
    from cyclopts import App
    from cyclopts.argument import ArgumentCollection

__all__ = ["ConfigurationFile", "Environment"]

PREFIX: Final = "LATENTDO_"


class Environment:
    """Options from variables such as ``LATENTDO_MAX_REGIMES``."""

    def __init__(self) -> None:
        self._read = Env(PREFIX, command=False, show=False, source="the environment")

    def __call__(self, app: App, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
        """Fill in what no flag has given; warn of variables that no command knows."""
        set_here = sorted(
            variable for variable in os.environ if variable.startswith(PREFIX) and variable != SHOW_TRACEBACK
        )
        if not set_here:  # the usual case; asking every command for its options takes time
            return
        known = {f"{PREFIX}{name.upper()}" for names in _options(app).values() for name in names}
        for variable in set_here:
            if variable not in known:
                warn(f"the environment sets {variable}, which no option reads{_nearest(variable, known)}")
        self._read(app, commands, arguments)


class ConfigurationFile:
    """Options from the TOML file that ``--config`` names.

    Keys are the names of options, which are those of the estimator's arguments. Those at the top are for every command
    that has them; a table with the name of a command is for that command alone, and wins.
    """

    def __call__(self, app: App, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
        """Fill in what neither a flag nor the environment has given."""
        argument = arguments.get("--config", default=None)
        if argument is None or not argument.tokens:
            return
        path = Path(argument.tokens[0].value)
        content = _load(path)
        options = _options(app)
        everywhere = {name for names in options.values() for name in names}
        for key, value in content.items():
            if isinstance(value, dict) and key in options:
                _check(value, options[key], f"{path}, table [{key}]")
            elif isinstance(value, dict):
                raise ValueError(f"{path}: there is no command {key!r} for the table{_nearest(key, options)}")
        plain = {key: value for key, value in content.items() if not isinstance(value, dict)}
        _check(plain, everywhere, str(path))
        command = commands[-1] if commands else ""
        own = options.get(command, set())
        chosen = {key: value for key, value in plain.items() if key in own} | content.get(command, {})
        given = {key: value for key, value in chosen.items() if key != "config"}
        if isinstance(
            given.get("tiers"), list
        ):  # a flag has no lists of lists: it writes a tier as a line of CSV
            given["tiers"] = [_line(tier) if isinstance(tier, list) else tier for tier in given["tiers"]]
        Dict(given, source=str(path), use_commands_as_keys=False)(app, commands, arguments)


def _load(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {str(path)!r} (--config).")
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not TOML: {error}.") from error


def _options(app: App) -> dict[str, set[str]]:
    """Names of the options of every command, as Python writes them."""
    root = app.app_stack.current_frame[0]
    found = {}
    for name in root:
        if name.startswith("-"):
            continue
        collection = root[name].assemble_argument_collection(parse_docstring=False)
        flags = [argument.name for argument in collection if argument.name.startswith("--")]
        found[name] = {flag.removeprefix("--").replace("-", "_") for flag in flags}
    return found


def _check(values: Iterable[str], known: Iterable[str], where: str) -> None:
    names = sorted(known)
    for key in values:
        if key not in names:
            raise ValueError(f"{where}: there is no option {key!r}{_nearest(key, names)}")


def _nearest(name: str, known: Iterable[str]) -> str:
    found = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"; did you mean {found[0]!r}?" if found else "; `latentdo fit --help` lists them"


def _line(names: list[Any]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="").writerow(names)
    return buffer.getvalue()
