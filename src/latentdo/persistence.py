"""Save and load a :class:`FitResult`: one safetensors file, no pickle, the same bytes every time.

The file holds arrays (the model's, the responsibilities and the probabilities) and a single metadata entry,
``latentdo``: JSON with sorted keys that carries everything else, a format version and a SHA-256 checksum over arrays
and metadata. Loading never executes anything from the file: the families of mechanisms are looked up in the registry,
and whatever does not fit together is refused with a :class:`ResultFileError`.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Hashable, Mapping
from importlib import metadata as packages
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_safetensors

from latentdo.choices import DENSITY, SOLVER
from latentdo.data import ROWS, Background, Circumstances
from latentdo.data.transforms import Preprocessor
from latentdo.files import write_atomically
from latentdo.model.fitted import FittedModel
from latentdo.model.legacy import FAMILIES as LEGACY_FAMILIES
from latentdo.model.legacy import from_legacy
from latentdo.result import SEGMENTS, FitResult

__all__ = [
    "FORMAT",
    "NewerFormatError",
    "ResultFileError",
    "load_arrays",
    "load_result",
    "pack_result",
    "save_arrays",
    "save_result",
]

FORMAT: Final = 2
"""Version of the file format; raised whenever an older latentdo could misread a file."""

_ENTRY = "latentdo"
_WRITERS = {
    "latentdo": "model.safetensors of `latentdo fit`, or a file of LatentInterventionDAG.save",
    "latentdo-bootstrap": "a checkpoint of `latentdo bootstrap`, or a file of BootstrapDAG.save",
}
_MODEL = "model."
_ARRAYS = ("responsibilities", "edge_probabilities", "ancestor_probabilities", "target_probabilities")
_SCALARS = ("evidence", "solver", "density", "intervention", "status", "message", "data_hash", "seconds")
_GROUPS = "groups"  # only where rows were grouped
_WHERE, _BACKGROUND = "where.", "background."  # only where it was said when and where rows were measured
_NAMES = ("series_names", "batch_names")
_RECORDS = ("checks", "hints")
_OPTIONAL = ("lagged", "explained", "moved", "model_edge_probabilities")
_DTYPES = frozenset("?bhilqBHILQfd")  # what a model may hold; no objects, no text, no exotic floats


class ResultFileError(ValueError):
    """A file is not a result that can be trusted: damaged, truncated, or something else altogether."""


class NewerFormatError(ResultFileError):
    """A file was written by a later version of latentdo."""


def save_result(result: FitResult, path: str | Path) -> None:
    """Write a result to a file, whole or not at all.

    The same result always gives the same bytes. Whatever JSON cannot hold in ``configuration`` or ``history``
    (a function, a random generator) is kept as its ``repr``.

    Parameters
    ----------
    result : FitResult
        What to save.
    path : str or Path
        The file; usually called ``model.safetensors``. An existing file is replaced once the new one is complete.
    """
    content = pack_result(result)
    write_atomically(Path(path), lambda temporary: temporary.write_bytes(content))


def pack_result(result: FitResult) -> bytes:
    """The bytes of the file that :func:`save_result` writes."""
    arrays = {_MODEL + name: array for name, array in result.model.to_arrays().items()}
    arrays |= {name: getattr(result, name) for name in _ARRAYS}
    grouped: dict[str, Any] = {}
    if result.groups is not None:
        arrays[_GROUPS] = result.groups
        grouped["group_names"] = [_pack(name) for name in result.group_names]
    for name in ROWS:
        if (held := getattr(result.where, name)) is not None:
            arrays[_WHERE + name] = held
            grouped["where"] = {
                **{key: [_pack(one) for one in getattr(result.where, key)] for key in _NAMES},
                "dated": result.where.dated,
                "counted": result.where.counted,
            }
    if result.background is not None:
        arrays |= {_BACKGROUND + name: array for name, array in result.background.to_arrays().items()}
        grouped["background"] = [_pack(name) for name in result.background.batch_names]
    arrays |= {name: held for name in _OPTIONAL if (held := getattr(result, name)) is not None}
    if result.segments is not None:
        grouped["segments"] = _pack_segments(result.segments)
    state: dict[str, Any] = {
        "columns": list(result.columns),
        "preprocessor": _pack(result.preprocessor.to_dict()),
        "regime_names": [_pack(name) for name in result.regime_names],
        "evidence_terms": _pack(dict(result.evidence_terms)),
        "history": [_pack(dict(entry)) for entry in result.history],
        "comparison": [_pack(dict(entry)) for entry in result.comparison],
        "configuration": _pack(dict(result.configuration)),
        **{
            name: [_pack(dict(entry)) for entry in held]
            for name in _RECORDS
            if (held := getattr(result, name))
        },
        "warnings": list(result.warnings),
        **grouped,
        **{name: _pack(getattr(result, name)) for name in _SCALARS},
    }
    return _pack_arrays(_ENTRY, arrays, state)


def load_result(path: str | Path) -> FitResult:
    """Read what :func:`save_result` wrote.

    Parameters
    ----------
    path : str or Path
        The file.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    NewerFormatError
        If a later version of latentdo wrote it.
    ResultFileError
        If it is damaged, truncated, or not a saved result.
    """
    path = Path(path)
    state, arrays = load_arrays(path, _ENTRY)
    try:
        return _build(state, arrays)
    except ResultFileError as error:
        raise type(error)(f"{str(path)!r} {error}") from None
    except Exception as error:  # whatever a hostile file provokes is one kind of error to the caller
        reason = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        raise ResultFileError(f"{str(path)!r} does not hold a consistent result: {reason}.") from error


def save_arrays(
    path: str | Path, entry: str, arrays: Mapping[str, NDArray[Any]], state: Mapping[str, Any]
) -> None:
    """Write arrays and JSON to one safetensors file, with format version and checksum, whole or not at all.

    Parameters
    ----------
    path : str or Path
        The file.
    entry : str
        Kind of the file: the name of its metadata entry.
    arrays : mapping
        Numbers by name.
    state : mapping
        Anything that JSON can hold; see also :func:`load_arrays`.
    """
    content = _pack_arrays(entry, arrays, state)
    write_atomically(Path(path), lambda temporary: temporary.write_bytes(content))


def _pack_arrays(entry: str, arrays: Mapping[str, NDArray[Any]], state: Mapping[str, Any]) -> bytes:
    own = {name: _contiguous(array) for name, array in arrays.items()}
    full = {"format": FORMAT, "written_by": packages.version("latentdo"), **state}
    full["checksum"] = _checksum(own, full)
    return bytes(to_safetensors(own, metadata={entry: _dump(full)}))


def load_arrays(path: str | Path, entry: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read what :func:`save_arrays` wrote: the JSON, and the arrays. Damage is a :class:`ResultFileError`."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {str(path)!r}.")
    state, arrays = _read(path, entry)
    checksum = state.pop("checksum", None)
    if any(array.dtype.char not in _DTYPES for array in arrays.values()):
        raise ResultFileError(f"{str(path)!r} holds numbers of a kind that no result has.")
    try:
        expected = _checksum(arrays, state)
    except (ValueError, TypeError, RecursionError):
        expected = None
    if checksum is None or checksum != expected:
        raise ResultFileError(
            f"{str(path)!r} is damaged: its checksum does not match. Copy or save it again."
        )
    return state, arrays


def _read(path: Path, entry: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The metadata and the arrays of a file, of whatever origin."""
    foreign = ResultFileError(
        f"{str(path)!r} is a safetensors file, but not a result of latentdo of this kind; give "
        f"{_WRITERS.get(entry, entry)}."
    )
    try:
        with safe_open(path, framework="numpy") as file:
            text = (file.metadata() or {}).get(entry)
            if text is None:
                raise foreign
            state = json.loads(text)
            # the version is judged before anything else: a later format may hold arrays unknown here
            if not isinstance(state, dict) or type(state.get("format")) is not int or state["format"] < 1:
                raise foreign
            if state["format"] > FORMAT:
                raise NewerFormatError(
                    f"{str(path)!r} was written by latentdo {state.get('written_by', '(later version)')} in "
                    f"format {state['format']}; this version reads up to format {FORMAT}: upgrade latentdo."
                )
            return state, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except ResultFileError:
        raise
    except (SafetensorError, ValueError, TypeError, KeyError, RecursionError, OSError) as error:
        raise ResultFileError(
            f"{str(path)!r} is damaged, truncated, or not a safetensors file ({error})."
        ) from error


def _build(state: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> FitResult:
    """Put the result together, and check it whole."""
    family = state.get("family")  # only files of version 0.1 have one
    if family is not None and (not isinstance(family, str) or family not in LEGACY_FAMILIES):
        raise ResultFileError(f"holds a model family {family!r} that this version does not know.")
    columns = tuple(_text(name, "columns") for name in _sequence(state, "columns"))
    names = tuple(_field({"regime_names": name}, "regime_names") for name in _sequence(state, "regime_names"))
    groups = arrays.pop(_GROUPS, None)
    group_names = _sequence(state, "group_names") if groups is not None else ()
    where, background = _where(state, arrays), _background(state, arrays, len(columns))
    extra: dict[str, Any] = {name: arrays.pop(name, None) for name in _OPTIONAL}
    for name in _RECORDS:
        if name in state:
            extra[name] = tuple(_mapping({name: entry}, name) for entry in _sequence(state, name))
    own = {name: _get(arrays, name) for name in _ARRAYS}
    for name, array in own.items():
        if array.dtype != np.float64:
            raise ResultFileError(f"has {name} of the type {array.dtype}.")
        array.setflags(write=False)
    scalars = {name: _field(state, name) for name in _SCALARS}
    scalars["density"] = _density(scalars)
    try:
        preprocessor = Preprocessor.from_dict(_mapping(state, "preprocessor"))
    except (KeyError, TypeError, ValueError) as error:
        raise ResultFileError(f"has a preprocessor that no fit leaves ({error}).") from error
    result = FitResult(
        model=_model(family, arrays),
        columns=columns,
        preprocessor=preprocessor,
        regime_names=names,
        **own,
        **(scalars | {name: _number(scalars[name], name) for name in ("evidence", "seconds")}),
        evidence_terms={
            _text(key, "evidence_terms"): _number(value, "evidence_terms")
            for key, value in _mapping(state, "evidence_terms").items()
        },
        history=tuple(_mapping({"history": entry}, "history") for entry in _sequence(state, "history")),
        comparison=tuple(
            _mapping({"comparison": entry}, "comparison") for entry in _sequence(state, "comparison")
        ),
        configuration=_mapping(state, "configuration"),
        warnings=tuple(_text(warning, "warnings") for warning in _sequence(state, "warnings")),
        groups=groups,
        group_names=tuple(_field({"group_names": name}, "group_names") for name in group_names),
        where=where,
        background=background,
        segments=_segments(state, where),
        **extra,
    )
    result.check()
    _try(result.model)
    return result


def _taken(arrays: dict[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    """Arrays whose names begin so, which are no longer among the others."""
    return {name.removeprefix(prefix): arrays.pop(name) for name in list(arrays) if name.startswith(prefix)}


def _where(state: Mapping[str, Any], arrays: dict[str, NDArray[Any]]) -> Circumstances:
    """When and where rows were measured."""
    held: dict[str, Any] = {**_taken(arrays, _WHERE)}
    if not held:
        return Circumstances()
    if set(held) - set(ROWS):
        raise ResultFileError("holds circumstances of rows that this version does not know.")
    told = _mapping(state, "where")
    names: dict[str, Any] = {
        key: tuple(_field({key: one}, key) for one in _sequence(told, key)) for key in _NAMES
    }
    return Circumstances(
        **held, **names, dated=told.get("dated") is True, counted=told.get("counted") is True
    )


def _background(
    state: Mapping[str, Any], arrays: dict[str, NDArray[Any]], n_variables: int
) -> Background | None:
    """What circumstances explain of rows."""
    held = _taken(arrays, _BACKGROUND)
    if not held:
        return None
    names = tuple(_field({"background": one}, "background") for one in _sequence(state, "background"))
    return Background.from_arrays(held, names, n_variables)


def _pack_segments(segments: pd.DataFrame) -> dict[str, Any]:
    """A table of segments as JSON; times as numbers."""
    plain = {
        name: [one.timestamp() for one in column] if column.dtype.kind == "M" else column.tolist()
        for name, column in segments.items()
    }
    return {str(name): [_pack(value) for value in values] for name, values in plain.items()}


def _segments(state: Mapping[str, Any], where: Circumstances) -> pd.DataFrame | None:
    """Undo :func:`_pack_segments`."""
    if "segments" not in state:
        return None
    held = _mapping(state, "segments")
    if set(SEGMENTS[1:]) - set(held) or set(held) - set(SEGMENTS):
        raise ResultFileError("holds other segments than a fit leaves.")
    order = [name for name in SEGMENTS if name in held]
    columns: dict[str, Any] = {
        name: [_field({name: one}, name) for one in _sequence(held, name)] for name in order
    }
    for name in ("start", "end"):
        columns[name] = where.shown(np.array([_number(one, name) for one in columns[name]], dtype=np.float64))
    return pd.DataFrame(columns)


def _density(scalars: Mapping[str, Any]) -> str:
    """The density by its present name: files of version 0.1 may have another for it."""
    try:
        return str(DENSITY.resolve(scalars["density"], SOLVER.resolve(scalars["solver"]).name).name)
    except ValueError as error:
        raise ResultFileError(
            f"has a {error}; a density of your own must be registered before, see latentdo.register_family."
        ) from None


def _model(family: str | None, arrays: Mapping[str, NDArray[Any]]) -> FittedModel:
    """The model; its mechanisms check their arrays."""
    own = {key.removeprefix(_MODEL): array for key, array in arrays.items() if key.startswith(_MODEL)}
    if len(own) + len(_ARRAYS) != len(arrays):
        raise ResultFileError("holds other arrays than a result has.")
    try:
        return FittedModel.from_arrays(own) if family is None else from_legacy(family, own)
    except KeyError as error:
        raise ResultFileError(f"lacks the array {_MODEL}{error.args[0]}.") from None


def _try(model: FittedModel) -> None:
    """One row in every regime: parts that do not fit together fail here, not in the user's hands."""
    rng = np.random.default_rng(0)
    with np.errstate(all="ignore"):
        density = model.log_density(model.blank(1))
        draws = [model.sample(1, regime, rng) for regime in range(model.topology.n_regimes)]
    if not (np.isfinite(density).all() and np.isfinite(draws).all()):
        raise ResultFileError("holds a model that cannot be evaluated.")


def _checksum(arrays: Mapping[str, NDArray[Any]], state: Mapping[str, Any]) -> str:
    digest = hashlib.sha256(_dump(state).encode())
    for name, array in sorted(arrays.items()):
        digest.update(repr((name, array.dtype.str, array.shape)).encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _dump(state: Mapping[str, Any]) -> str:
    return json.dumps(state, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _contiguous(array: NDArray[Any]) -> NDArray[Any]:
    """An own contiguous little-endian copy: safetensors would save the bytes of a view in the wrong order."""
    return np.array(array, dtype=array.dtype.newbyteorder("<"), order="C")


def _pack(value: Any) -> Any:
    """A value as JSON, with one-key objects for what JSON has no notation for; :func:`_unpack` undoes it."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": repr(value)}
    if isinstance(value, list):
        return [_pack(item) for item in value]
    if isinstance(value, tuple):
        return {"$tuple": [_pack(item) for item in value]}
    if isinstance(value, Mapping):
        if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: _pack(item) for key, item in value.items()}
        return {"$items": [[_pack(key), _pack(item)] for key, item in value.items()]}
    if hasattr(value, "to_dict") and hasattr(value, "columns"):  # a table, such as a matrix of prior log-odds
        return {"$table": _pack(value.to_dict("split"))}
    return repr(value)


def _unpack(value: Any) -> Any:
    if isinstance(value, list):
        return [_unpack(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((key, item),) = value.items()
        if key == "$float":
            return {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}[item]
        if key == "$tuple":
            return tuple(_unpack(part) for part in item)
        if key == "$items":
            return {_hashable(_unpack(name)): _unpack(part) for name, part in item}
        if key == "$table":
            return pd.DataFrame(**_unpack(item))
    return {key: _unpack(item) for key, item in value.items()}


def _get(holder: Mapping[str, Any], name: str) -> Any:
    if name not in holder:
        raise ResultFileError(f"lacks the field {name!r}.")
    return holder[name]


def _field(state: Mapping[str, Any], name: str) -> Any:
    """A value of the metadata; what :func:`_pack` cannot have written is refused by the name of its field."""
    value = _get(state, name)
    try:
        return _unpack(value)
    except (KeyError, TypeError, ValueError) as error:
        raise ResultFileError(f"has {name} that cannot be read ({error}).") from error


def _mapping(state: Mapping[str, Any], name: str) -> dict[Any, Any]:
    unpacked = _field(state, name)
    if not isinstance(unpacked, dict):
        raise ResultFileError(f"has {name} that is not an object but {type(unpacked).__name__}.")
    return unpacked


def _sequence(state: Mapping[str, Any], name: str) -> list[Any]:
    value = _get(state, name)
    if not isinstance(value, list):
        raise ResultFileError(f"has {name} that is not a list but {type(value).__name__}.")
    return value


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise ResultFileError(f"has {name} with {value!r}, which is not text.")
    return value


def _number(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ResultFileError(f"has {name} {value!r}, which is not a number.")
    return float(value)


def _hashable(value: Any) -> Hashable:
    hash(value)
    return value  # type: ignore[no-any-return]
