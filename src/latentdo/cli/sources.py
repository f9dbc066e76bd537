"""Options from elsewhere than flags: the environment, and a file that ``--config`` names.

Cyclopts asks the sources in their order and keeps the first answer, so flags win over the environment, and the
environment over the file. Nothing is passed over in silence: neither a name that no command has, nor a value that is
not what the option takes.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cyclopts import CoercionError, Token

from latentdo.cli.console import warn
from latentdo.cli.faults import SHOW_TRACEBACK
from latentdo.cli.values import takes_whole_numbers, words_of_text, words_of_value

if TYPE_CHECKING:
    from cyclopts import App
    from cyclopts.argument import Argument, ArgumentCollection

PREFIX: Final = "LATENTDO_"

TABLE: Final = "kinds"
"""The option whose value is a table, from columns to what they are."""

_MOST_DIGITS: Final = 19  # of integers that 64 bits hold


class Environment:
    """Options from variables such as ``LATENTDO_MAX_REGIMES``."""

    def __call__(self, app: App, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:  # noqa: ARG002
        """Fill in what no flag has given; warn of variables that no command knows."""
        set_here = sorted(
            variable for variable in os.environ if variable.startswith(PREFIX) and variable != SHOW_TRACEBACK
        )
        if not set_here:  # the usual case; asking every command for its options takes time
            return
        from latentdo.readers import UNPACKED_VARIABLE

        known = {f"{PREFIX}{name.upper()}" for names in _options(app).values() for name in names}
        for variable in set_here:
            if variable not in known and variable != UNPACKED_VARIABLE:
                warn(f"the environment sets {variable}, which no option reads{_nearest(variable, known)}")
        for name, argument in _named(arguments).items():
            variable = f"{PREFIX}{name.upper()}"
            if variable not in os.environ:
                continue
            try:
                words = words_of_text(name, os.environ[variable], argument.hint)
            except ValueError as error:
                raise ValueError(f"the environment sets {variable}, but {error}") from error
            _fill(argument, words, variable, "the environment")


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
        from latentdo.readers import read_toml

        path = Path(argument.tokens[0].value)
        content = read_toml(path, "(--config)")
        options = _options(app)
        everywhere = {name for names in options.values() for name in names}
        for key, value in content.items():
            if isinstance(value, dict) and key in options:
                _check(value, options[key], f"{path}, table [{key}]")
            elif isinstance(value, dict) and key in everywhere and key != TABLE:
                raise ValueError(f"{path}: {key!r} is a table, but must be a value")
            elif isinstance(value, dict) and key != TABLE:
                raise ValueError(f"{path}: there is no command {key!r} for the table{_nearest(key, options)}")
        plain = {key: value for key, value in content.items() if not isinstance(value, dict) or key == TABLE}
        _check(plain, everywhere, str(path))
        command = commands[-1] if commands else ""
        for key, value in (plain | content.get(command, {})).items():
            taker = _named(arguments).get(key)
            if taker is None or key == "config":  # for another command
                continue
            try:
                words = words_of_value(key, value, taker.hint)
            except ValueError as error:
                raise ValueError(f"{path}: {error}") from error
            _fill(taker, words, key, str(path))


def check_whole_numbers(app: App, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:  # noqa: ARG001
    """Refuse 2.7 for a whole number, wherever it comes from: cyclopts would round it."""
    for argument in _named(arguments).values():
        for token in argument.tokens if takes_whole_numbers(argument.hint) else ():
            text = str(token.value)
            is_whole = text.lstrip("+-").isdecimal() and len(text) <= _MOST_DIGITS
            if not is_whole:
                message = f"{text[:40]!r} is not a whole number of at most {_MOST_DIGITS - 1} digits."
                raise CoercionError(msg=message, argument=argument, token=token, target_type=int)


def _fill(argument: Argument, words: list[str], keyword: str, source: str) -> None:
    """Hand the words to an option as if a flag had them, unless an earlier source has spoken."""
    if argument.tokens:
        return
    if not words:  # an empty list is an answer too: later sources must not fill it
        argument.append(Token(keyword=keyword, source=source, implicit_value=[]))
    for index, word in enumerate(words):
        argument.append(Token(keyword=keyword, value=word, source=source, index=index))


def _named(arguments: ArgumentCollection) -> dict[str, Argument]:
    """Options that have flags, by their names as Python writes them."""
    return {
        argument.name.removeprefix("--").replace("-", "_"): argument
        for argument in arguments
        if argument.name.startswith("--")
    }


def _options(app: App) -> dict[str, set[str]]:
    """Names of the options of every command, as Python writes them."""
    root = app.app_stack.current_frame[0]
    return {
        name: set(_named(root[name].assemble_argument_collection(parse_docstring=False)))
        for name in root
        if not name.startswith("-")
    }


def _check(values: Iterable[str], known: Iterable[str], where: str) -> None:
    names = sorted(known)
    for key in values:
        if key not in names:
            raise ValueError(f"{where}: there is no option {key!r}{_nearest(key, names)}")


def _nearest(name: str, known: Iterable[str]) -> str:
    found = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"; did you mean {found[0]!r}?" if found else "; `latentdo fit --help` lists them"
