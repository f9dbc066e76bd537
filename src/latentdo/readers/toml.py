"""TOML from a file or from text, or one sentence about what is wrong with it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Final

from latentdo.readers.files import check_file

_LARGEST: Final = (
    16 * 2**20
)  # bytes; what a person writes has kilobytes, and a parser in Python takes a second per MB


def read_toml(path: Path, purpose: str = "") -> dict[str, Any]:
    """Content of a TOML file.

    Raises
    ------
    FileNotFoundError
        If there is no such file; ``purpose`` says what it was to be read for.
    ValueError
        If it is not TOML; the message names the file.
    """
    check_file(path, purpose)
    size = path.stat().st_size
    if size > _LARGEST:
        raise ValueError(
            f"{path} has {size} bytes, more than the {_LARGEST} that TOML may have here; tables of log-odds may be CSV "
            "instead."
        )
    try:
        return parse_toml(path.read_bytes().decode("utf-8"))
    except ValueError as error:  # UnicodeDecodeError is one
        raise ValueError(f"{path} is not TOML: {error}.") from error


def parse_toml(text: str) -> dict[str, Any]:
    """Content of TOML text; ValueError with the place if it is none."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise ValueError("lists or tables are nested too deeply") from None
    except ValueError as error:  # Python reads no integers of more than some thousand digits
        raise ValueError("a number has too many digits") from error
