"""Messages of the library in the words of the command line: flags where Python has arguments."""

from __future__ import annotations

import ast
import re
import shlex

_FLAGS = {
    name: "--" + name.replace("_", "-")
    for name in (
        "columns", "concentration", "decimal", "density", "device", "drop", "edge_prior", "encoding", "forbidden",
        "group_column", "group_size", "mean_duration", "series_column", "time_column", "batch_column", "id_column",
        "weight_column", "offset_column",
        "lags", "seasonality",
        "intervention", "layer", "learning_rate", "na_values", "max_parents", "max_regimes", "missing", "n_init",
        "n_jobs", "observational", "random_state", "regime_column", "required", "separator", "solver", "target_prior",
        "transform", "n_samples", "n_variables", "edges_per_node", "n_regimes", "targets_per_regime", "n_trials",
        "study_name", "storage", "tiers", "validation_fraction", "n_resamples", "resample", "resamples", "threshold",
        "mechanism", "noise", "noise_scale", "penetrance", "preset", "separation", "violation",
    )
}  # fmt: skip

_WHOLE = (
    (r"overwrite=True \(--overwrite\)", "--overwrite"),
    (r"header=False", "--no-header"),
    (
        r"(?<=[\]\"]), (?=(?:missing|decimal|separator|na_values)=)",
        " ",
    ),  # so that what mends a table can be copied
    (r"keep it apart and pass it as (time|batch)= to fit", r"pass it as --\1-column"),
    (r"pass observational=None if", "leave out --observational if"),
    (r", or observational=None if there is none", ""),
    (r"drop it from X and pass it as regimes= to fit", "pass it as --regime-column"),
    (r"pass regimes=(?=['\"])", "pass regime_column="),  # which becomes a flag below
    (r"pass regimes= too, the name of a column", "pass --regime-column too"),
    *(
        (rf"(?<!\w){name}=(?=[\s,)]|$)", f"--{name.removesuffix('s') if name != 'series' else name}-column")
        for name in ("regimes", "groups", "time", "series", "batch", "offset")
    ),
    (r"pass sample_weight \* n_rows / sample_weight\.sum\(\)", "scale them to add up to the number of rows"),
    (r"(?<!\w)sample_weight(?:=(?=\s)|(?=\s))", "--weight-column"),
    (r"kinds=\{(['\"])(.+?)\1: '(\w+)'\}", r"--kinds '\2=\3'"),
    (r"(?<!\w)kinds=(?=\s)", "--kinds"),
    (r"make it the index, X\.set_index\((.+?)\)", r"pass --id-column \1"),
    (r"remove them \(pandas: X\.drop_duplicates\(\)\)", "remove them"),
)
"""Turns of phrase that are not ``name=value``."""

_ARGUMENT = re.compile(
    rf"(?<![\w.-])({'|'.join(_FLAGS)})=(\[[^\[\]]*\]|\"[^\"]*\"|'(?:[^'\\]|\\.)*'|-?[\w.+-]*\w)"
)
_WITHOUT_VALUE = re.compile(rf"(?<![\w.-])({'|'.join(_FLAGS)})=(?=[\s.,;)]|$)")
# Words with an underscore are arguments even alone; in quotes they are names of the user's.
_BARE = re.compile(rf"(?<![\w.'\"-])({'|'.join(name for name in _FLAGS if '_' in name)})(?![\w=\"'-])")


def in_flags(message: str) -> str:
    """Rewrite arguments in a message as flags.

    Examples
    --------
    >>> in_flags('pass missing="drop" to leave out these rows')
    'pass --missing drop to leave out these rows'
    >>> in_flags("regimes has 5 labels, but max_regimes=3; raise max_regimes")
    'regimes has 5 labels, but --max-regimes 3; raise --max-regimes'
    >>> in_flags("ruled out by forbidden= or tiers=")
    'ruled out by --forbidden or --tiers'
    >>> in_flags("say kinds={'tissue': 'categorical'}")
    "say --kinds 'tissue=categorical'"
    >>> in_flags("if they name the rows, make it the index, X.set_index('sample')")
    "if they name the rows, pass --id-column 'sample'"
    """
    for pattern, words in _WHOLE:
        message = re.sub(pattern, words, message)
    message = _ARGUMENT.sub(lambda found: _flag(_FLAGS[found[1]], found[2]), message)
    message = _WITHOUT_VALUE.sub(lambda found: _FLAGS[found[1]], message)
    return _BARE.sub(lambda found: _FLAGS[found[1]], message)


def _flag(flag: str, text: str) -> str:
    """A flag with its value; with an equals sign where the value would look like another flag."""
    value = _value(text)
    if not value.startswith("-") or re.fullmatch(r"-[\d.e]+", value):
        return f"{flag} {value}"
    return " ".join(f"{flag}={word}" for word in value.split(" "))


def _value(text: str) -> str:
    """A Python literal as one or several words of a shell."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
    if isinstance(value, list):
        return " ".join(shlex.quote(str(item)) for item in value)
    return repr(value) if value in ("\t", "") else shlex.quote(str(value))
